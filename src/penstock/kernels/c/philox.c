/*
 * Philox4x32-10 for some counters at a time, of which the compiler makes vectors, and what is made of its words;
 * compiled once for each kind of vectors, as KIND with ``_philox`` after it.
 *
 * Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.  Normal numbers come in
 * pairs: Box, Muller: "A note on the generation of random normal deviates", 1958.
 */

#include <math.h>

#include "convolution.h"
#include "kinds.h"
#include "philox.h"
#include "vectors.h"

/* Counters that are worth being a piece, and that are worked on at a time. */
#define PIECE 1024
#define TOGETHER 64
#define ROUNDS 10
#define FOUR 4

/* What words are multiplied by, and what the halves of the key grow by from round to round. */
static const uint64_t FIRST = 0xD2511F53, SECOND = 0xCD9E8D57;
static const uint32_t FIRST_STEP = 0x9E3779B9, SECOND_STEP = 0xBB67AE85;
/* The smallest fraction whose logarithm is taken, and what a cut normal number stays below. */
static const float EPSILON = 1e-7f, CUT = 2.0f;
static const double TURN = 6.283185307179586;

typedef struct {
  uint32_t a[TOGETHER], b[TOGETHER], c[TOGETHER], d[TOGETHER];
} Words;

/* How far ahead of the counter the number-th value is. */
static uint64_t offset_of(const Philox *p, int64_t number) {
  return p->offsets ? p->offsets[number] : (uint64_t)number * (uint64_t)p->step;
}

static void set(const Philox *p, Words *w, int i, uint64_t offset) {
  const uint64_t low = p->low + offset, high = p->high + (low < offset);
  w->a[i] = (uint32_t)low, w->b[i] = (uint32_t)(low >> 32), w->c[i] = (uint32_t)high, w->d[i] = (uint32_t)(high >> 32);
}

/* Turn so many counters into words. */
static inline __attribute__((always_inline)) void mix(uint64_t key, Words *w, int count) {
  uint32_t first = (uint32_t)key, second = (uint32_t)(key >> 32);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < count; i++) {
      const uint64_t one = w->a[i] * FIRST, other = w->c[i] * SECOND;
      w->a[i] = (uint32_t)(other >> 32) ^ w->b[i] ^ first, w->b[i] = (uint32_t)other;
      w->c[i] = (uint32_t)(one >> 32) ^ w->d[i] ^ second, w->d[i] = (uint32_t)one;
    }
    first += FIRST_STEP, second += SECOND_STEP;
  }
}

static void store_words(const Words *w, int i, uint32_t *to) {
  to[0] = w->a[i], to[1] = w->b[i], to[2] = w->c[i], to[3] = w->d[i];
}

/* The low bits of a word as the mantissa of a number between 1 and 2, less 1. */
static inline float fraction_of(uint32_t word) {
  const uint32_t bits = (word & 0x7FFFFF) | 0x3F800000;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number - 1.0f;
}

static void store_fractions(const Words *w, int i, float *to) {
  to[0] = fraction_of(w->a[i]), to[1] = fraction_of(w->b[i]);
  to[2] = fraction_of(w->c[i]), to[3] = fraction_of(w->d[i]);
}

/* Each function is exact to the last digit, and rounded once. */
static void store_pair(uint32_t word, uint32_t other, float *to) {
  const double angle = (float)(TURN * fraction_of(other));
  const float from = fraction_of(word), logarithm = (float)log(from > EPSILON ? from : EPSILON);
  const float radius = sqrtf(-2.0f * logarithm);
  to[0] = (float)sin(angle) * radius, to[1] = (float)cos(angle) * radius;
}

static void store_normal(const Words *w, int i, float *to) {
  store_pair(w->a[i], w->b[i], to);
  store_pair(w->c[i], w->d[i], to + 2);
}

/* Four cut normal numbers, with the first counter's words. */
static void store_cut(const Philox *p, const Words *w, int i, uint64_t offset, float *to) {
  float four[FOUR];
  Words more;
  store_normal(w, i, four);
  for (int have = 0;;) {
    for (int k = 0; k < FOUR && have < FOUR; k++)
      if (fabsf(four[k]) < CUT) to[have++] = four[k];
    if (have == FOUR) return;
    set(p, &more, 0, ++offset);
    mix(p->key, &more, 1);
    store_normal(&more, 0, four);
  }
}

/* What some values give, from a number on; TOGETHER at most. */
static void draw(const Philox *p, int64_t from, int count) {
  Words w;
  for (int i = 0; i < TOGETHER; i++) set(p, &w, i, offset_of(p, from + (i < count ? i : 0)));
  mix(p->key, &w, TOGETHER);
  uint32_t *words = (uint32_t *)p->numbers + from * FOUR;
  float *numbers = (float *)p->numbers + from * FOUR;
  for (int i = 0; i < count; i++, words += FOUR, numbers += FOUR) switch (p->way) {
      case WORDS: store_words(&w, i, words); break;
      case FRACTIONS: store_fractions(&w, i, numbers); break;
      case NORMAL: store_normal(&w, i, numbers); break;
      default: store_cut(p, &w, i, offset_of(p, from + i), numbers);
    }
}

static void draw_piece(const void *work, int64_t piece) {
  const Philox *p = work;
  for (int64_t from = piece * PIECE, end = least(from + PIECE, p->count); from < end; from += TOGETHER)
    draw(p, from, (int)least(end - from, TOGETHER));
}

static void draw_all(const Philox *p, int helpers) {
  penstock_share(draw_piece, p, (p->count + PIECE - 1) / PIECE, 1, helpers);
}

const DrawNumbers OF_KIND(KIND, philox) = draw_all;
