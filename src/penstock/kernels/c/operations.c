/*
 * What instructions do with arrays, with vectors of LANES floats; compiled once for each kind of them, as KIND
 * with ``_operations`` after it.
 *
 * Arrays are contiguous.  Functions of single elements of float32 work on whole vectors: behind each array that
 * they read or write there is room for one more.  Indices are told to be in range before they are used, and
 * are taken for the nearest that is, so that nothing else can be read or written.
 */

#include <math.h>

#include "elements.h"
#include "kinds.h"
#include "machine.h"
#include "philox.h"
#include "vectors.h"


static inline int64_t between(int64_t low, int64_t number, int64_t high) {
  return number < low ? low : number > high ? high : number;
}

/* Indices are int32, or int64 if a number says so. */
static inline int64_t index_at(const char *indices, int64_t at, int64_t is_wide) {
  return is_wide ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
}

/* -- element by element ------------------------------------------------------------------------- */

extern const Applied OF_KIND(KIND, applied)[];

/* Functions of float32 that there are vectors for. */
#define EACH_VECTOR_FUNCTION(DO)                                                                      \
  DO(NEG, neg) DO(ABS, abs) DO(SQUARE, square) DO(SQRT, sqrt) DO(RSQRT, rsqrt)                        \
  DO(RECIPROCAL, reciprocal) DO(RELU, relu) DO(RELU6, relu6) DO(EXP, exp) DO(TANH, tanh)              \
  DO(SIGMOID, sigmoid) DO(ERF, erf) DO(ERFC, erfc) DO(LOG, log) DO(LOG1P, log1p) DO(EXPM1, expm1)     \
  DO(ADD, add) DO(SUB, sub) DO(MUL, mul)                                                              \
  DO(DIV, div) DO(MAXIMUM, maximum) DO(MINIMUM, minimum) DO(SQUARED_DIFFERENCE, squared_difference)   \
  DO(RELU_GRAD, relu_grad) DO(RELU6_GRAD, relu6_grad) DO(TANH_GRAD, tanh_grad)                        \
  DO(SIGMOID_GRAD, sigmoid_grad)

#define IN_VECTORS(NUMBER, NAME)                                                                      \
  static void NAME##_float32(Registers r, const Instruction *i) {                                     \
    OF_KIND(KIND, applied)[NUMBER]((float *)r[i->to], (const float *)r[i->first],                          \
                              (const float *)r[i->second], i->amount);                                 \
  }
EACH_VECTOR_FUNCTION(IN_VECTORS)

/* A function NAME of elements of type FROM that gives some of type TO, called ``NAME_CALLED``. */
#define OF_ELEMENTS(NAME, CALLED, FROM, TO, VALUE)                                                    \
  static void NAME##_##CALLED(Registers r, const Instruction *i) {                                    \
    TO *to = (TO *)r[i->to];                                                                          \
    const FROM *x = (const FROM *)r[i->first], *y = (const FROM *)r[i->second];                       \
    (void)y;                                                                                          \
    for (int64_t k = 0; k < i->amount; k++) {                                                          \
      FROM a = x[k], b = y[k];                                                                        \
      (void)b;                                                                                        \
      to[k] = (TO)(VALUE);                                                                            \
    }                                                                                                 \
  }

#define EACH_FLOAT_FUNCTION(DO)                                                                       \
  DO(sin, sin(a)) DO(cos, cos(a)) DO(floor, floor(a)) DO(ceil, ceil(a))

#define EACH_DOUBLE_FUNCTION(DO)                                                                      \
  EACH_FLOAT_FUNCTION(DO)                                                                             \
  DO(log, log(a)) DO(log1p, log1p(a)) DO(expm1, expm1(a))                                             \
  DO(sqrt, sqrt(a)) DO(rsqrt, 1 / sqrt(a)) DO(reciprocal, 1 / a) DO(exp, exp(a)) DO(tanh, tanh(a))    \
  DO(sigmoid, 1 / (1 + exp(-a))) DO(div, a / b) DO(neg, -a) DO(abs, fabs(a)) DO(square, a *a)         \
  DO(add, a + b) DO(sub, a - b) DO(mul, a *b) DO(squared_difference, (a - b) * (a - b))               \
  DO(maximum, a != a ? a : a > b ? a : b) DO(minimum, a != a ? a : a < b ? a : b)                     \
  DO(relu, a != a ? a : a > 0 ? a : 0) DO(relu6, a != a ? a : a < 0 ? 0 : a > 6 ? 6 : a)              \
  DO(relu_grad, a * (b > 0)) DO(relu6_grad, a * (b > 0 && b < 6)) DO(sigmoid_grad, b * (a * (1 - a)))

/* Numbers that are too large begin anew, as numpy's do. */
#define EACH_INTEGER_FUNCTION(DO)                                                                     \
  DO(neg, 0 - a) DO(add, a + b) DO(sub, a - b) DO(mul, a *b) DO(square, a *a)                         \
  DO(squared_difference, (a - b) * (a - b))
/* The smallest number is its own opposite; quotients go towards minus infinity. */
#define OPPOSITE ((__typeof__(a))(0 - (uint64_t)a))
#define QUOTIENT (b == 0 ? 0 : b == -1 ? OPPOSITE : a / b - (a % b != 0 && (a < 0) != (b < 0)))
#define REST (b == 0 || b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0)) * b)
#define EACH_SIGNED_FUNCTION(DO)                                                                      \
  DO(floor_div, QUOTIENT) DO(floor_mod, REST) DO(abs, a < 0 ? OPPOSITE : a)                              \
  DO(maximum, a > b ? a : b) DO(minimum, a < b ? a : b)

#define EACH_COMPARISON(DO)                                                                           \
  DO(equal, a == b) DO(not_equal, a != b) DO(less, a < b) DO(less_equal, a <= b) DO(greater, a > b)   \
  DO(greater_equal, a >= b)
#define EACH_LOGICAL(DO) DO(and, a &b) DO(or, a | b) DO(not, !a)

#define ROUNDED(NAME, VALUE) OF_ELEMENTS(NAME, float32, float, float, VALUE)
#define OF_DOUBLES(NAME, VALUE) OF_ELEMENTS(NAME, float64, double, double, VALUE)
#define OF_INT32(NAME, VALUE) OF_ELEMENTS(NAME, int32, uint32_t, uint32_t, VALUE)
#define OF_INT64(NAME, VALUE) OF_ELEMENTS(NAME, int64, uint64_t, uint64_t, VALUE)
#define OF_SIGNED32(NAME, VALUE) OF_ELEMENTS(NAME, int32, int32_t, int32_t, VALUE)
#define OF_SIGNED64(NAME, VALUE) OF_ELEMENTS(NAME, int64, int64_t, int64_t, VALUE)
EACH_FLOAT_FUNCTION(ROUNDED)
EACH_DOUBLE_FUNCTION(OF_DOUBLES)
EACH_INTEGER_FUNCTION(OF_INT32)
EACH_INTEGER_FUNCTION(OF_INT64)
EACH_SIGNED_FUNCTION(OF_SIGNED32)
EACH_SIGNED_FUNCTION(OF_SIGNED64)
#define OF_TRUTHS(NAME, VALUE) OF_ELEMENTS(NAME, bool, uint8_t, uint8_t, VALUE)
EACH_LOGICAL(OF_TRUTHS)

#define COMPARED(NAME, VALUE)                                                                         \
  OF_ELEMENTS(NAME, float32, float, uint8_t, VALUE)                                                   \
  OF_ELEMENTS(NAME, float64, double, uint8_t, VALUE)                                                  \
  OF_ELEMENTS(NAME, int32, int32_t, uint8_t, VALUE)                                                   \
  OF_ELEMENTS(NAME, int64, int64_t, uint8_t, VALUE)
EACH_COMPARISON(COMPARED)

#define CONVERTED(CALLED, FROM)                                                                       \
  OF_ELEMENTS(float32_from, CALLED, FROM, float, a)                                                   \
  OF_ELEMENTS(float64_from, CALLED, FROM, double, a)
#define CONVERTED_EXACTLY(CALLED, FROM)                                                               \
  CONVERTED(CALLED, FROM)                                                                             \
  OF_ELEMENTS(int32_from, CALLED, FROM, int32_t, a)                                                   \
  OF_ELEMENTS(int64_from, CALLED, FROM, int64_t, a)
CONVERTED(float32, float)
CONVERTED(float64, double)
CONVERTED_EXACTLY(int32, int32_t)
CONVERTED_EXACTLY(int64, int64_t)
CONVERTED_EXACTLY(bool, uint8_t)

/* Elements of one array where another holds, and of a third elsewhere; and the like for all sizes. */
#define OF_SIZE(BYTES, TYPE)                                                                          \
  static void select_##BYTES(Registers r, const Instruction *i) {                                     \
    TYPE *to = (TYPE *)r[i->to];                                                                      \
    const TYPE *x = (const TYPE *)r[i->second], *y = (const TYPE *)r[i->numbers[0]];                  \
    const uint8_t *holds = (const uint8_t *)r[i->first];                                              \
    for (int64_t k = 0; k < i->amount; k++) to[k] = holds[k] ? x[k] : y[k];                            \
  }                                                                                                   \
  static void fill_##BYTES(Registers r, const Instruction *i) {                                       \
    TYPE *to = (TYPE *)r[i->to], number = *(const TYPE *)r[i->first];                                 \
    for (int64_t k = 0; k < i->amount; k++) to[k] = number;                                            \
  }                                                                                                   \
  static void along_##BYTES(TYPE *to, const TYPE *from, int64_t rank, const int64_t *n) {             \
    const int64_t size = n[0], from_step = n[1], to_step = n[2];                                      \
    if (rank > 1)                                                                                     \
      for (int64_t k = 0; k < size; k++)                                                              \
        along_##BYTES(to + k * to_step, from + k * from_step, rank - 1, n + 3);                       \
    else if (from_step == 1 && to_step == 1)                                                          \
      memcpy(to, from, (size_t)size * sizeof(TYPE));                                                  \
    else                                                                                              \
      for (int64_t k = 0; k < size; k++) to[k * to_step] = from[k * from_step];                       \
  }                                                                                                   \
  /* Numbers: an offset in each, the rank, and of each axis the size and the steps. */                \
  static void copy_##BYTES(Registers r, const Instruction *i) {                                       \
    const int64_t *n = i->numbers;                                                                    \
    along_##BYTES((TYPE *)r[i->to] + n[1], (const TYPE *)r[i->first] + n[0], n[2], n + 3);            \
  }                                                                                                   \
  /* The same from an index on.  Numbers: its greatest, its step, and whether it is an int64. */      \
  static void take_##BYTES(Registers r, const Instruction *i) {                                       \
    const int64_t *n = i->numbers;                                                                    \
    int64_t at = between(0, index_at(r[i->second], 0, n[2]), n[0]);                                   \
    along_##BYTES((TYPE *)r[i->to], (const TYPE *)r[i->first] + at * n[1], n[3], n + 4);              \
  }
OF_SIZE(1, uint8_t)
OF_SIZE(4, uint32_t)
OF_SIZE(8, uint64_t)

/* -- rows --------------------------------------------------------------------------------------- */

/* Numbers: the greatest index, bytes of a row, and whether indices are int64. */
static void row(Registers r, const Instruction *i) {
  const int64_t *n = i->numbers;
  int64_t at = between(0, index_at(r[i->second], 0, n[2]), n[0]);
  memcpy(r[i->to], r[i->first] + at * n[1], (size_t)n[1]);
}

static void rows(Registers r, const Instruction *i) {
  const int64_t *n = i->numbers;
  for (int64_t k = 0; k < i->amount; k++) {
    int64_t at = between(0, index_at(r[i->second], k, n[2]), n[0]);
    memcpy(r[i->to] + k * n[1], r[i->first] + at * n[1], (size_t)n[1]);
  }
}

static void put_row(Registers r, const Instruction *i) {
  const int64_t *n = i->numbers;
  int64_t at = between(0, index_at(r[i->second], 0, n[2]), n[0]);
  memcpy(r[i->to] + at * n[1], r[i->first], (size_t)n[1]);
}

/* Whether all indices are at least zero, and less than a number; the other is whether they are int64. */
static void in_range(Registers r, const Instruction *i) {
  uint8_t holds = 1;
  for (int64_t k = 0; k < i->amount; k++) {
    int64_t index = index_at(r[i->first], k, i->numbers[1]);
    holds &= index >= 0 && index < i->numbers[0];
  }
  *(uint8_t *)r[i->to] = holds;
}

/* -- along an axis: [outer, size, inner] to [outer, inner] -------------------------------------- */

/* What elements are combined to, beginning with ``START``. */
#define REDUCED(NAME, CALLED, TYPE, START, VALUE)                                                     \
  static void NAME##_##CALLED(Registers r, const Instruction *i) {                                    \
    const int64_t outer = i->numbers[0], size = i->numbers[1], inner = i->numbers[2];                 \
    TYPE *to = (TYPE *)r[i->to];                                                                      \
    const TYPE *from = (const TYPE *)r[i->first];                                                     \
    for (int64_t o = 0; o < outer; o++, to += inner, from += size * inner) {                          \
      for (int64_t j = 0; j < inner; j++) to[j] = START;                                              \
      for (int64_t k = 0; k < size; k++)                                                              \
        for (int64_t j = 0; j < inner; j++) {                                                         \
          TYPE a = to[j], b = from[k * inner + j];                                                    \
          to[j] = (TYPE)(VALUE);                                                                      \
        }                                                                                             \
    }                                                                                                 \
  }
#define MOST a != a ? a : b != b || b > a ? b : a
#define LEAST a != a ? a : b != b || b < a ? b : a
REDUCED(sum, float64, double, 0, a + b)
REDUCED(prod, float32, float, 1, a *b)
REDUCED(prod, float64, double, 1, a *b)
REDUCED(max, float64, double, -INFINITY, MOST)
REDUCED(min, float64, double, INFINITY, LEAST)
REDUCED(all, bool, uint8_t, 1, a &b)
REDUCED(any, bool, uint8_t, 0, a | b)

/* The same with vectors: of rows, four that are joined in the end; of others, one for neighbours. */
#define REDUCED_IN_VECTORS(NAME, START, JOIN, OF_TWO)                                                 \
  static void NAME##_float32(Registers r, const Instruction *i) {                                     \
    const int64_t outer = i->numbers[0], size = i->numbers[1], inner = i->numbers[2];                 \
    float *to = (float *)r[i->to];                                                                    \
    const float *from = (const float *)r[i->first];                                                   \
    for (int64_t o = 0; o < outer; o++, to += inner, from += size * inner) {                          \
      if (inner == 1) {                                                                               \
        vec s[4] = {all(START), all(START), all(START), all(START)};                                  \
        int64_t k = 0;                                                                                \
        for (; k + 4 * LANES <= size; k += 4 * LANES)                                                 \
          UNROLL for (int v = 0; v < 4; v++) s[v] = JOIN(s[v], load(from + k + v * LANES));           \
        for (; k + LANES <= size; k += LANES) s[0] = JOIN(s[0], load(from + k));                      \
        s[0] = JOIN(JOIN(s[0], s[1]), JOIN(s[2], s[3]));                                              \
        float a = s[0][0];                                                                            \
        for (int lane = 1; lane < LANES; lane++) {                                                    \
          float b = s[0][lane];                                                                       \
          a = OF_TWO;                                                                                 \
        }                                                                                             \
        for (; k < size; k++) {                                                                       \
          float b = from[k];                                                                          \
          a = OF_TWO;                                                                                 \
        }                                                                                             \
        *to = a;                                                                                      \
        continue;                                                                                     \
      }                                                                                               \
      for (int64_t j = 0; j < inner; j += LANES) {                                                    \
        vec s = all(START);                                                                           \
        for (int64_t k = 0; k < size; k++) s = JOIN(s, load_some(from + k * inner + j, inner - j));   \
        store_some(to + j, s, inner - j);                                                             \
      }                                                                                               \
    }                                                                                                 \
  }
static inline vec plus(vec a, vec b) { return a + b; }
static inline vec most(vec a, vec b) { return choose(a != a, a, choose((b != b) | (b > a), b, a)); }
static inline vec lowest(vec a, vec b) { return choose(a != a, a, choose((b != b) | (b < a), b, a)); }
REDUCED_IN_VECTORS(sum, 0.0f, plus, a + b)
REDUCED_IN_VECTORS(max, -INFINITY, most, MOST)
REDUCED_IN_VECTORS(min, INFINITY, lowest, LEAST)

/* Where the first of the largest elements is; the size if that is no number.  [outer, size, inner]. */
#define PLACE_OF_MOST(CALLED, TYPE, TO, INDEX)                                                        \
  static void argmax_##CALLED##_##TO(Registers r, const Instruction *i) {                             \
    const int64_t outer = i->numbers[0], size = i->numbers[1], inner = i->numbers[2];                 \
    INDEX *to = (INDEX *)r[i->to];                                                                    \
    const TYPE *from = (const TYPE *)r[i->first];                                                     \
    for (int64_t o = 0; o < outer; o++, from += size * inner)                                         \
      for (int64_t j = 0; j < inner; j++) {                                                           \
        TYPE best = from[j];                                                                          \
        int64_t place = best == best ? 0 : size;                                                      \
        for (int64_t k = 1; k < size && place < size; k++) {                                          \
          TYPE one = from[k * inner + j];                                                             \
          if (one > best) best = one, place = k;                                                      \
          if (one != one) place = size;                                                               \
        }                                                                                             \
        *to++ = (INDEX)place;                                                                         \
      }                                                                                               \
  }
#define PLACES_OF_MOST(CALLED, TYPE)                                                                  \
  PLACE_OF_MOST(CALLED, TYPE, int32, int32_t) PLACE_OF_MOST(CALLED, TYPE, int64, int64_t)
PLACES_OF_MOST(float32, float)
PLACES_OF_MOST(float64, double)

/* -- products ------------------------------------------------------------------------------------ */

void OF_KIND(KIND, product_float32)(Registers r, const Instruction *i);
void OF_KIND(KIND, product_float64)(Registers r, const Instruction *i);

/* -- random numbers: a stream is its key and a counter of two words ------------------------------ */

extern const DrawNumbers OF_KIND(KIND, philox);

/* Numbers: how many counters, and how far apart they are.  Each gives four results. */
static void draw(Registers r, const Instruction *i, Made way) {
  const uint64_t *stream = (const uint64_t *)r[i->first];
  const Philox philox = {0, r[i->to], i->numbers[0], i->numbers[1], way, stream[0], stream[1], stream[2]};
  OF_KIND(KIND, philox)(&philox, 0);
}
static void draw_fractions(Registers r, const Instruction *i) { draw(r, i, FRACTIONS); }
static void draw_normal(Registers r, const Instruction *i) { draw(r, i, NORMAL); }
static void draw_cut_normal(Registers r, const Instruction *i) { draw(r, i, CUT_NORMAL); }

/* The stream from so many counters later on. */
static void draw_later(Registers r, const Instruction *i) {
  const uint64_t *stream = (const uint64_t *)r[i->first], low = stream[1] + (uint64_t)i->numbers[0];
  const uint64_t later[] = {stream[0], low, stream[2] + (low < stream[1])};
  memcpy(r[i->to], later, sizeof later);
}

/* -- all of them -------------------------------------------------------------------------------- */

#define OPERATION(NAME) {#NAME, NAME},
#define NAME_FLOAT32(NAME, _) OPERATION(NAME##_float32)
#define NAME_VECTORS(_, NAME) OPERATION(NAME##_float32)
#define NAME_FLOAT64(NAME, _) OPERATION(NAME##_float64)
#define NAME_INTEGERS(NAME, _) OPERATION(NAME##_int32) OPERATION(NAME##_int64)
#define NAME_BOOL(NAME, _) OPERATION(NAME##_bool)
#define NAME_COMPARED(NAME, _) NAME_FLOAT32(NAME, _) NAME_FLOAT64(NAME, _) NAME_INTEGERS(NAME, _)
#define NAME_CONVERTED(CALLED) OPERATION(float32_from_##CALLED) OPERATION(float64_from_##CALLED)
#define NAME_EXACTLY(CALLED) NAME_CONVERTED(CALLED) OPERATION(int32_from_##CALLED) OPERATION(int64_from_##CALLED)
#define NAME_SIZE(BYTES)                                                                              \
  OPERATION(select_##BYTES) OPERATION(fill_##BYTES) OPERATION(copy_##BYTES) OPERATION(take_##BYTES)
#define NAME_FLOATS(NAME) OPERATION(NAME##_float32) OPERATION(NAME##_float64)
#define NAME_PLACES(NAME) OPERATION(NAME##_int32) OPERATION(NAME##_int64)

static const Operation OPERATIONS[] = {
    EACH_VECTOR_FUNCTION(NAME_VECTORS) EACH_FLOAT_FUNCTION(NAME_FLOAT32) EACH_DOUBLE_FUNCTION(NAME_FLOAT64)
    EACH_INTEGER_FUNCTION(NAME_INTEGERS) EACH_SIGNED_FUNCTION(NAME_INTEGERS) EACH_LOGICAL(NAME_BOOL)
    EACH_COMPARISON(NAME_COMPARED) NAME_CONVERTED(float32) NAME_CONVERTED(float64) NAME_EXACTLY(int32)
    NAME_EXACTLY(int64) NAME_EXACTLY(bool) NAME_SIZE(1) NAME_SIZE(4) NAME_SIZE(8)
    OPERATION(row) OPERATION(rows) OPERATION(put_row) OPERATION(in_range)
    NAME_FLOATS(sum) NAME_FLOATS(prod) NAME_FLOATS(max) NAME_FLOATS(min) OPERATION(all_bool) OPERATION(any_bool)
    NAME_PLACES(argmax_float32) NAME_PLACES(argmax_float64)
    {"product_float32", OF_KIND(KIND, product_float32)}, {"product_float64", OF_KIND(KIND, product_float64)},
    OPERATION(draw_fractions) OPERATION(draw_normal) OPERATION(draw_cut_normal) OPERATION(draw_later)
};

const Operations OF_KIND(KIND, operations) = {OPERATIONS, sizeof OPERATIONS / sizeof *OPERATIONS};
