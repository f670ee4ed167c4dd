/*
 * Numbers of 16 bits out of those of float32, the nearest ones, ties to even, and back, with vectors of LANES
 * floats; compiled once for each kind of them, as KIND with ``_narrow`` after it.
 *
 * All of it is arithmetic with whole numbers, so that all kinds give the same bits, those of NaNs included; but
 * for the smallest numbers of float16, which arithmetic of float32 knows as ordinary ones.  Processors that have
 * instructions for float16 do the same by these, but where there are NaNs, whose bits they change.
 */

#include "narrow.h"

#include "convolution.h"
#include "kinds.h"
#include "vectors.h"

typedef uint16_t narrow __attribute__((vector_size(2 * LANES)));

/* Numbers that are worth being a piece: some 5 microseconds. */
#define PIECE 16384

/* float32: the bits of its fraction, its sign, infinity; and by how much its exponents are raised. */
#define FRACTION 23
#define SIGN 0x80000000
#define INFINITE 0x7f800000
#define RAISED 127

/* float16, whose infinity comes after its largest number, and how many bits fewer its fraction has. */
#define INFINITE_16 0x7c00
#define RAISED_16 15
#define FEWER (FRACTION - 10)
/* A number whose last bit is the smallest float16; and the first one of those that have all bits of a fraction. */
#define ROUGH 0.5f
#define NORMAL ((RAISED - RAISED_16 + 1) << FRACTION)

static inline mask pick(mask where, mask a, mask b) { return (where & a) | (~where & b); }

static mask to_float16(mask bits) {
  const mask size = bits & 0x7fffffff;
  mask large = (size - ((RAISED - RAISED_16) << FRACTION) + (1 << FEWER) / 2 - 1 + (size >> FEWER & 1)) >> FEWER;
  large = pick(large > INFINITE_16, INFINITE_16 - (mask){0}, large);
  mask small = (mask)((vec)size + all(ROUGH)) - (mask)all(ROUGH);
  mask payload = size >> FEWER & 0x3ff;
  mask no_number = INFINITE_16 + pick(payload == 0, 1 - (mask){0}, payload);
  mask number = pick(size < NORMAL, small, large);
  return pick(size > INFINITE, no_number, number) | (bits >> 16 & (SIGN >> 16));
}

static mask from_float16(mask bits) {
  const mask size = bits & 0x7fff, moved = size << FEWER;
  mask small = (mask)(__builtin_convertvector(size, vec) * all(0x1p-24f));
  mask raised = pick(size < INFINITE_16, (RAISED - RAISED_16) - (mask){0}, 2 * (RAISED - RAISED_16) - (mask){0});
  mask large = moved + (raised << FRACTION);
  return pick(size < 1 << 10, small, large) | (bits & 0x8000) << 16;
}

static mask to_bfloat16(mask bits) {
  const mask size = bits & 0x7fffffff;
  mask number = (size + 0x7fff + (size >> 16 & 1)) >> 16;
  return pick(size > INFINITE, 0x7fc0 - (mask){0}, number) | (bits >> 16 & (SIGN >> 16));
}

#if defined(__AVX512F__) && LANES == 16
static int has_nan(vec x) { return _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q) != 0; }

static narrow by_instruction(vec x) {
  return (narrow)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static vec back_by_instruction(narrow x) { return (vec)_mm512_cvtph_ps((__m256i)x); }
#elif defined(__F16C__) && LANES == 8
static int has_nan(vec x) { return _mm256_movemask_ps(_mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q)) != 0; }

static narrow by_instruction(vec x) { return (narrow)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT); }

static vec back_by_instruction(narrow x) { return (vec)_mm256_cvtph_ps((__m128i)x); }
#else
static int has_nan(vec x) {
  (void)x;
  return 1;
}

static narrow by_instruction(vec x) {
  (void)x;
  return (narrow){0};
}

static vec back_by_instruction(narrow x) {
  (void)x;
  return all(0);
}
#endif

static narrow narrow_to_float16(vec x) {
  return has_nan(x) ? __builtin_convertvector(to_float16((mask)x), narrow) : by_instruction(x);
}

static narrow narrow_to_bfloat16(vec x) { return __builtin_convertvector(to_bfloat16((mask)x), narrow); }

/* -- pieces ------------------------------------------------------------------------------------ */

static inline narrow load_narrow(const uint16_t *from, int64_t count) {
  narrow some = {0};
  if (count < LANES)
    memcpy(&some, from, (size_t)count * sizeof *from);
  else
    memcpy(&some, from, sizeof some);
  return some;
}

static inline void store_narrow(uint16_t *to, narrow some, int64_t count) {
  if (count < LANES)
    memcpy(to, &some, (size_t)count * sizeof *to);
  else
    memcpy(to, &some, sizeof some);
}

#define NARROWING(NAME)                                                                                  \
  static void some_##NAME(const void *work, int64_t number) {                                            \
    const Conversion *c = work;                                                                          \
    int64_t at = number * PIECE, end = least(at + PIECE, c->count);                                      \
    const float *from = c->from;                                                                         \
    uint16_t *to = c->to;                                                                                \
    for (; at < end; at += LANES)                                                                        \
      store_narrow(to + at, narrow_##NAME(load_some(from + at, end - at)), end - at);                    \
  }
NARROWING(to_float16)
NARROWING(to_bfloat16)

static void some_from_float16(const void *work, int64_t number) {
  const Conversion *c = work;
  int64_t at = number * PIECE, end = least(at + PIECE, c->count);
  const uint16_t *from = c->from;
  float *to = c->to;
  for (; at < end; at += LANES) {
    const narrow x = load_narrow(from + at, end - at);
    vec found = back_by_instruction(x);
    if (has_nan(found)) found = (vec)from_float16(__builtin_convertvector(x, mask));
    store_some(to + at, found, end - at);
  }
}

static const Piece some[] = {
    [TO_FLOAT16] = some_to_float16,
    [FROM_FLOAT16] = some_from_float16,
    [TO_BFLOAT16] = some_to_bfloat16,
};

static void convert(const Conversion *c, int helpers) {
  penstock_share(some[c->way], c, (c->count + PIECE - 1) / PIECE, 1, helpers);
}

const Convert OF_KIND(KIND, narrow) = convert;
