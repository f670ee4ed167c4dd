/*
 * Boxes that no better one covers: candidates come best first, and each is compared with those that were chosen
 * before it, several at a time.  Compiled once, without products and sums in one: the overlaps are numpy's, bit
 * for bit.
 *
 * Few of the candidates are needed as a rule, so that they are found, and sorted, a part at a time, where each
 * part has twice as many as the one before.  Nothing that depends on a score is a branch, which would be taken
 * wrongly half of the time.
 */

#include <stdint.h>
#include <string.h>

#include "kinds.h"


/* As numpy has them: NaN stays. */
static inline float lesser(float a, float b) { return a != a || a < b ? a : b; }
static inline float greater(float a, float b) { return a != a || a > b ? a : b; }

typedef struct {
  float low[2], high[2], area;
} Box;

static Box box_of(const float *corners) {
  Box box;
  for (int i = 0; i < 2; i++) {
    box.low[i] = lesser(corners[i], corners[i + 2]);
    box.high[i] = greater(corners[i], corners[i + 2]);
  }
  box.area = (box.high[0] - box.low[0]) * (box.high[1] - box.low[1]);
  return box;
}

enum { WIDTH = 16 };

/* Boxes side by side; where there is none, all is NaN, and it covers nothing. */
typedef struct {
  float low[2][WIDTH], high[2][WIDTH], area[WIDTH];
} Boxes;

static void put(Boxes *boxes, int64_t place, const Box *box) {
  Boxes *some = boxes + place / WIDTH;
  int at = place % WIDTH;
  if (at == 0) memset(some, 0xff, sizeof *some);
  for (int i = 0; i < 2; i++) {
    some->low[i][at] = box->low[i];
    some->high[i][at] = box->high[i];
  }
  some->area[at] = box->area;
}

/* Whether the area of what a box and one of some boxes cover, over that of what either covers, is more than a
   threshold, which is not negative. */
static int overlap(const Box *a, const Boxes *some, float threshold) {
  int any = 0;
  for (int i = 0; i < WIDTH; i++) {
    float width = lesser(a->high[0], some->high[0][i]) - greater(a->low[0], some->low[0][i]);
    float height = lesser(a->high[1], some->high[1][i]) - greater(a->low[1], some->low[1][i]);
    float both = width * height;
    any |= (width > 0) & (height > 0) & (both / (a->area + some->area[i] - both) > threshold);
  }
  return any;
}

typedef struct {
  uint32_t key;
  int32_t number;
} Candidate;

/* A number that is less for a better score, and equal for equal ones. */
static inline uint32_t key_of(float score) {
  uint32_t bits;
  score += 0.0f; /* of two zeros, none is better */
  memcpy(&bits, &score, sizeof bits);
  return bits >> 31 ? bits : bits ^ 0x7fffffff;
}

enum { DIGIT = 8, DIGITS = 1 << DIGIT, FINE = 11, BINS = 1 << FINE, FIRST_PART = 64 };

/* Sort by keys, where equal ones stay in their order: digit by digit, from the lowest on. */
static void sort(Candidate *candidates, Candidate *spare, int64_t count) {
  Candidate *from = candidates, *to = spare;
  for (int shift = 0; shift < 32; shift += DIGIT) {
    int64_t places[DIGITS] = {0}, place = 0;
    for (int64_t i = 0; i < count; i++) places[from[i].key >> shift & (DIGITS - 1)]++;
    if (places[from[0].key >> shift & (DIGITS - 1)] == count) continue;
    for (int digit = 0; digit < DIGITS; digit++) {
      int64_t here = places[digit];
      places[digit] = place;
      place += here;
    }
    for (int64_t i = 0; i < count; i++) to[places[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    Candidate *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != candidates) memcpy(candidates, from, count * sizeof *from);
}

/* The candidates whose keys begin with one of some bins; returns how many these are. */
static int64_t part_of(const float *scores, int64_t count, float least, uint32_t bin, uint32_t bins,
                       Candidate *part) {
  int64_t size = 0;
  for (int64_t i = 0; i < count; i++) {
    uint32_t key = key_of(scores[i]);
    part[size] = (Candidate){key, (int32_t)i};
    size += ((key >> (32 - FINE)) - bin < bins) & (scores[i] > least);
  }
  return size;
}

/*
 * Put the numbers of at most ``limit`` of so many boxes in ``chosen``, best first: those with better scores
 * than ``least``, unless a better one that is there covers them by more than the threshold.  Returns how many
 * these are.  ``seen`` has room for ``limit`` boxes, ``part`` for all candidates and one more, and ``spare`` for
 * all of them.
 */
PUBLIC int64_t penstock_choose_boxes(const float *boxes, const float *scores, int64_t count, float least,
                                     float threshold, int64_t limit, int32_t *chosen, Boxes *seen,
                                     Candidate *part, Candidate *spare) {
  int32_t sizes[BINS] = {0};
  int64_t known = 0, wanted = FIRST_PART;
  for (int64_t i = 0; i < count; i++) sizes[key_of(scores[i]) >> (32 - FINE)] += scores[i] > least;
  for (uint32_t bin = 0, end; bin < BINS && known < limit; bin = end, wanted *= 2) {
    int64_t size = 0;
    for (end = bin; end < BINS && size < wanted; end++) size += sizes[end];
    if (size == 0) break;
    part_of(scores, count, least, bin, end - bin, part);
    sort(part, spare, size);
    for (int64_t i = 0; i < size && known < limit; i++) {
      Box box = box_of(boxes + 4 * (int64_t)part[i].number);
      int64_t other = 0;
      while (other < known && !overlap(&box, seen + other / WIDTH, threshold)) other += WIDTH;
      if (other < known) continue;
      put(seen, known, &box);
      chosen[known++] = part[i].number;
    }
  }
  return known;
}
