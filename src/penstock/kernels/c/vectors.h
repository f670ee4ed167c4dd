/* Vectors of LANES floats, for what is compiled once for each kind of them. */

#ifndef PENSTOCK_VECTORS_H
#define PENSTOCK_VECTORS_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__) && LANES == 16
#define HAS_MASKS
#endif

/* Before a loop of so few turns that all of them are written out. */
#define UNROLL _Pragma("GCC unroll 16")

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float vec_anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(4 * LANES)));

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline vec all(float number) { return number - (vec){0}; }
static inline vec choose(mask where, vec a, vec b) {
  return (vec)((where & (mask)a) | (~where & (mask)b));
}

/* ``a`` where it is larger, or smaller, and ``b`` where it is not, or one of them is no number. */
#if defined(__x86_64__) && LANES == 16
static inline vec larger(vec a, vec b) { return (vec)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vec smaller(vec a, vec b) { return (vec)_mm512_min_ps((__m512)a, (__m512)b); }
#elif defined(__x86_64__) && LANES == 8
static inline vec larger(vec a, vec b) { return (vec)_mm256_max_ps((__m256)a, (__m256)b); }
static inline vec smaller(vec a, vec b) { return (vec)_mm256_min_ps((__m256)a, (__m256)b); }
#elif defined(__x86_64__) && LANES == 4
static inline vec larger(vec a, vec b) { return (vec)_mm_max_ps((__m128)a, (__m128)b); }
static inline vec smaller(vec a, vec b) { return (vec)_mm_min_ps((__m128)a, (__m128)b); }
#else
static inline vec larger(vec a, vec b) { return choose(a > b, a, b); }
static inline vec smaller(vec a, vec b) { return choose(a < b, a, b); }
#endif

/* A product that is rounded before anything is added to it. */
static inline vec rounded(vec product) {
#if defined(__x86_64__) || defined(__i386__)
  __asm__("" : "+x"(product));
#elif defined(__aarch64__)
  __asm__("" : "+w"(product));
#else
  __asm__("" : "+m"(product));
#endif
  return product;
}

/* A sum and a product, which are rounded once where the processor can do that: a compiler may have its reasons to
   round twice here and once there. */
static inline vec plus_product(vec sum, vec a, vec b) {
#if defined(__FMA__) && LANES == 16
  return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(__FMA__) && LANES == 8
  return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#else
  return sum + a * b;
#endif
}

static inline vec load(const float *from) { return *(const vec_anywhere *)from; }

#ifdef HAS_MASKS
/* The halves of a vector, which are in two places. */
static inline vec load_halves(const float *a, const float *b) {
  return (vec)_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(a)), _mm256_loadu_ps(b), 1);
}

static inline void store_half(float *to, vec value, int half) {
  __m512 both = (__m512)value;
  _mm256_storeu_ps(to, half ? _mm512_extractf32x8_ps(both, 1) : _mm512_castps512_ps256(both));
}

/* For the first lanes, so many of them. */
static inline __mmask16 first_lanes(int64_t count) { return (__mmask16)((1u << count) - 1); }

static inline vec load_part(const float *from, int64_t count) {
  return (vec)_mm512_maskz_loadu_ps(first_lanes(count), from);
}

static inline void store_part(float *to, vec value, int64_t count) {
  _mm512_mask_storeu_ps(to, first_lanes(count), (__m512)value);
}
#else
static inline vec load_halves(const float *a, const float *b) {
  vec both;
  memcpy(&both, a, sizeof both / 2);
  memcpy((char *)&both + sizeof both / 2, b, sizeof both / 2);
  return both;
}

static inline void store_half(float *to, vec value, int half) {
  memcpy(to, (const char *)&value + half * sizeof value / 2, sizeof value / 2);
}

static inline vec load_part(const float *from, int64_t count) {
  vec some = {0};
  memcpy(&some, from, (size_t)count * sizeof(float));
  return some;
}

static inline void store_part(float *to, vec value, int64_t count) {
  memcpy(to, &value, (size_t)count * sizeof(float));
}
#endif

static inline vec load_some(const float *from, int64_t count) {
  return count >= LANES ? load(from) : load_part(from, count);
}

/* The sum of all numbers of so many vectors, half by half: the same bits whatever LANES is. */
static inline float added_up(const vec *sums, int count) {
  float parts[count * LANES];
  memcpy(parts, sums, sizeof parts);
  for (int half = count * LANES / 2; half; half /= 2)
    for (int i = 0; i < half; i++) parts[i] += parts[i + half];
  return parts[0];
}

static inline void store(float *to, vec value) { *(vec_anywhere *)to = value; }
static inline void store_some(float *to, vec value, int64_t count) {
  if (count >= LANES)
    store(to, value);
  else
    store_part(to, value, count);
}

#endif
