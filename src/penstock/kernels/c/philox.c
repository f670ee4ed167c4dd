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
static const double TURN = 6.283185307179586, LOG_OF_2 = 0.6931471805599453;
/* A quarter of a turn in two parts, of which some of the first are exact. */
static const double QUARTER = 1.5707963267341256, REST_OF_QUARTER = 6.077100506506192e-11;
/* The bits of the root of a half, as of a float32. */
static const int32_t ROOT_OF_HALF = 0x3F3504F3;

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

static inline float float_of(uint32_t bits) {
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}
static inline uint32_t bits_of(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

/* The low bits of a word as the mantissa of a number between 1 and 2, less 1. */
static inline float fraction_of(uint32_t word) { return float_of((word & 0x7FFFFF) | 0x3F800000) - 1.0f; }

static void store_fractions(const Words *w, int i, float *to) {
  to[0] = fraction_of(w->a[i]), to[1] = fraction_of(w->b[i]);
  to[2] = fraction_of(w->c[i]), to[3] = fraction_of(w->d[i]);
}

/* The logarithm of a fraction of at least EPSILON, which is m times 2 to the power; by the series of the inverse
   hyperbolic tangent. */
static inline double log_of_fraction(float fraction) {
  const int32_t bits = (int32_t)bits_of(fraction), power = (bits - ROOT_OF_HALF) >> 23;
  const double m = float_of((uint32_t)(bits - power * (1 << 23))), s = (m - 1) / (m + 1), t = s * s;
  double p = 1.0 / 19;
  p = p * t + 1.0 / 17;
  p = p * t + 1.0 / 15;
  p = p * t + 1.0 / 13;
  p = p * t + 1.0 / 11;
  p = p * t + 1.0 / 9;
  p = p * t + 1.0 / 7;
  p = p * t + 1.0 / 5;
  p = p * t + 1.0 / 3;
  p = p * t + 1;
  return power * LOG_OF_2 + 2 * s * p;
}

/* The sine and the cosine of an angle of one turn at most; by their series, from the nearest quarter on. */
static inline void sine_and_cosine(float angle, float *sine, float *cosine) {
  const int32_t quarter = (int32_t)(angle * (float)(4 / TURN) + 0.5f);
  const double r = angle - quarter * QUARTER - quarter * REST_OF_QUARTER, t = r * r;
  double s = 1.0 / 355687428096000, c = 1.0 / 20922789888000;
  s = s * t - 1.0 / 1307674368000;
  s = s * t + 1.0 / 6227020800;
  s = s * t - 1.0 / 39916800;
  s = s * t + 1.0 / 362880;
  s = s * t - 1.0 / 5040;
  s = s * t + 1.0 / 120;
  s = s * t - 1.0 / 6;
  s = s * t * r + r;
  c = c * t - 1.0 / 87178291200;
  c = c * t + 1.0 / 479001600;
  c = c * t - 1.0 / 3628800;
  c = c * t + 1.0 / 40320;
  c = c * t - 1.0 / 720;
  c = c * t + 1.0 / 24;
  c = c * t - 1.0 / 2;
  c = c * t + 1;
  /* Without conditions, so that there can be vectors: the one is the other in odd quarters, and signs are bits. */
  const uint32_t is_odd = (uint32_t)-(quarter & 1), one = bits_of((float)s), other = bits_of((float)c);
  const uint32_t sine_bits = (one & ~is_odd) | (other & is_odd), cosine_bits = (other & ~is_odd) | (one & is_odd);
  *sine = float_of(sine_bits ^ (uint32_t)(quarter & 2) << 30);
  *cosine = float_of(cosine_bits ^ (uint32_t)((quarter + 1) & 2) << 30);
}

/* Each function is exact to the last digit, and rounded once. */
static inline void pair_of(uint32_t word, uint32_t other, float *first, float *second) {
  const float angle = (float)(TURN * fraction_of(other));
  /* Compared as whole numbers, which needs no condition, either. */
  const uint32_t fraction = bits_of(fraction_of(word)), least_bits = bits_of(EPSILON);
  const float logarithm = (float)log_of_fraction(float_of(fraction > least_bits ? fraction : least_bits));
  const float radius = __builtin_sqrtf(-2.0f * logarithm);
  float sine, cosine;
  sine_and_cosine(angle, &sine, &cosine);
  *first = sine * radius, *second = cosine * radius;
}

/* Four normal numbers for each counter. */
typedef struct {
  float a[TOGETHER], b[TOGETHER], c[TOGETHER], d[TOGETHER];
} Normals;

static inline __attribute__((always_inline)) void make_normal(const Words *w, Normals *n, int count) {
  for (int i = 0; i < count; i++) pair_of(w->a[i], w->b[i], &n->a[i], &n->b[i]);
  for (int i = 0; i < count; i++) pair_of(w->c[i], w->d[i], &n->c[i], &n->d[i]);
}

static void store_normal(const Normals *n, int i, float *to) {
  to[0] = n->a[i], to[1] = n->b[i], to[2] = n->c[i], to[3] = n->d[i];
}

/* Four cut normal numbers, with the first counter's words. */
static void store_cut(const Philox *p, const Normals *n, int i, uint64_t offset, float *to) {
  float four[FOUR];
  Words more;
  Normals others;
  store_normal(n, i, four);
  for (int have = 0;;) {
    for (int k = 0; k < FOUR && have < FOUR; k++)
      if (fabsf(four[k]) < CUT) to[have++] = four[k];
    if (have == FOUR) return;
    set(p, &more, 0, ++offset);
    mix(p->key, &more, 1);
    make_normal(&more, &others, 1);
    store_normal(&others, 0, four);
  }
}

/* What some values give, from a number on; TOGETHER at most. */
static void draw(const Philox *p, int64_t from, int count) {
  Words w;
  Normals n;
  for (int i = 0; i < TOGETHER; i++) set(p, &w, i, offset_of(p, from + (i < count ? i : 0)));
  mix(p->key, &w, TOGETHER);
  if (p->way == NORMAL || p->way == CUT_NORMAL) make_normal(&w, &n, TOGETHER);
  uint32_t *words = (uint32_t *)p->numbers + from * FOUR;
  float *numbers = (float *)p->numbers + from * FOUR;
  for (int i = 0; i < count; i++, words += FOUR, numbers += FOUR) switch (p->way) {
      case WORDS: store_words(&w, i, words); break;
      case FRACTIONS: store_fractions(&w, i, numbers); break;
      case NORMAL: store_normal(&n, i, numbers); break;
      default: store_cut(p, &n, i, offset_of(p, from + i), numbers);
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
