/*
 * Sums of gathered rows with vectors of LANES floats; compiled once for each kind of them, as KIND with
 * ``_segments`` after it.
 *
 * They are rounded where TensorFlow rounds: of a segment, what is more than a multiple of eight rows is added up
 * first, and then the sum of eight rows at a time; a single row is no sum, and goes with the first eight.  Rows with
 * weights are added up first to last.
 */

#include "convolution.h"
#include "kinds.h"
#include "segments.h"
#include "vectors.h"

/* Numbers that are worth being a piece: some 15 microseconds. */
#define WORTH_A_PIECE 16384
#define EIGHT 8
/* Vectors of a row that are added up side by side. */
#define BLOCK 4

/* Where the row is that comes so late. */
static inline const float *row_of(const Segments *s, int64_t number) {
  return s->rows + (s->gathered ? s->gathered[number] : number) * s->length;
}

/* So many numbers at least; more where more are in memory, which are of no use. */
static inline vec load_at_least(const Segments *s, const float *from, int64_t count) {
  return s->end - from >= LANES ? load(from) : load_some(from, count);
}

/* The sum of some rows, from a column on; of it, so many vectors and no more than so many numbers. */
static void add_up(const Segments *s, int64_t first, int64_t count, int64_t at, int64_t left, vec *sum) {
  const int vectors = (int)(least(left, BLOCK * LANES) + LANES - 1) / LANES;
  for (int64_t n = first; n < first + count; n++) {
    const float *from = row_of(s, n) + at;
    for (int i = 0; i < vectors; i++) {
      vec some = load_at_least(s, from + i * LANES, left - i * LANES);
      sum[i] = n == first ? some : sum[i] + some;
    }
  }
}

static void sum_segment(const Segments *s, int64_t segment) {
  const int64_t start = s->starts[segment], end = s->starts[segment + 1], count = end - start;
  float *to = s->sums + segment * s->length;
  if (count == 0) {
    memset(to, 0, (size_t)s->length * sizeof *to);
    return;
  }
  const int64_t more = count % EIGHT, first = least(more > 1 ? more : more + EIGHT, count);
  for (int64_t at = 0; at < s->length; at += BLOCK * LANES) {
    const int64_t left = s->length - at;
    vec sum[BLOCK], eight[BLOCK];
    add_up(s, start, first, at, left, sum);
    for (int64_t n = start + first; n < end; n += EIGHT) {
      add_up(s, n, EIGHT, at, left, eight);
      for (int i = 0; i < BLOCK && i * LANES < left; i++) sum[i] += eight[i];
    }
    for (int i = 0; i < BLOCK && i * LANES < left; i++) store_some(to + at + i * LANES, sum[i], left - i * LANES);
  }
}

static void sum_weighed(const Segments *s, int64_t segment) {
  const int64_t first = s->starts[segment], end = s->starts[segment + 1];
  float *to = s->sums + segment * s->length;
  for (int64_t at = 0; at < s->length; at += BLOCK * LANES) {
    const int64_t left = s->length - at;
    vec sum[BLOCK];
    for (int i = 0; i < BLOCK; i++) sum[i] = all(0);
    for (int64_t n = first; n < end; n++) {
      const float *row = row_of(s, n) + at;
      for (int i = 0; i < BLOCK && i * LANES < left; i++)
        sum[i] += rounded(load_at_least(s, row + i * LANES, left - i * LANES) * all(s->weights[n]));
    }
    for (int i = 0; i < BLOCK && i * LANES < left; i++) store_some(to + at + i * LANES, sum[i], left - i * LANES);
  }
}

static void some_segments(const void *work, int64_t segment) {
  const Segments *s = work;
  if (s->weights)
    sum_weighed(s, segment);
  else
    sum_segment(s, segment);
}

static void segments(const Segments *s, int helpers) {
  const int64_t numbers = (s->starts[s->count] / s->count + 1) * s->length;
  penstock_share(some_segments, s, s->count, penstock_together(numbers, WORTH_A_PIECE), helpers);
}

const SumSegments OF_KIND(KIND, segments) = segments;
