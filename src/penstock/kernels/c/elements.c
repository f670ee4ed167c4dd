/*
 * Programs of functions of single elements, with vectors of LANES floats; compiled once for each kind of
 * them, as KIND with ``_elements`` after it.
 *
 * A block of elements goes through all steps while it is in the first cache.  What an element comes
 * to depends neither on its place, nor on what is beside it, nor on which steps are one program.
 */

#include "elements.h"
#include "vectors.h"

/* Elements of a block. */
#define BLOCK 256

/* -- functions ---------------------------------------------------------------------------------- */

/* In all of these, comparisons with NaN do not hold, and NaN stays. */
static inline vec maximum(vec a, vec b) { return choose(a != a, a, choose(a > b, a, b)); }
static inline vec minimum(vec a, vec b) { return choose(a != a, a, choose(a < b, a, b)); }
static inline vec clip(vec x, float low, float high) {
  x = choose(x < all(low), all(low), x);
  return choose(x > all(high), all(high), x);
}

static inline vec root(vec x) {
  for (int i = 0; i < LANES; i++) x[i] = __builtin_sqrtf(x[i]);
  return x;
}

/* exp(x + rest), where the rest is small: 2 to some power times a polynomial, whose error is 2^-28. */
static inline vec exp_of_sum(vec x, vec rest) {
  const float to_integer = 12582912.0f; /* 1.5 * 2^23: what is added to it is rounded */
  x = clip(x, -104.0f, 89.0f);
  vec shifted = x * all(1.44269504f) + all(to_integer);
  vec power = shifted - all(to_integer);
  /* The logarithm of 2 in two parts, of which the first times the power is exact. */
  vec r = x - power * all(0.693359375f) - power * all(-2.12194440e-4f) + rest;
  vec p = all(0.0013814318226650357f);
  p = p * r + all(0.008368851616978645f);
  p = p * r + all(0.041668400168418884f);
  p = p * r + all(0.1666651964187622f);
  p = p * r + all(0.4999999403953552f);
  p = p * (r * r) + r + all(1.0f);
  /* In two halves, since 2 to the power may be no normal number. */
  mask whole = (mask)shifted - (mask)all(to_integer), half = whole >> 1;
  vec first = (vec)((half + 127) << 23), second = (vec)((whole - half + 127) << 23);
  return p * first * second;
}

static inline vec exp_of(vec x) { return exp_of_sum(x, all(0.0f)); }

/* x P(x^2) / Q(x^2), the best such quotient of polynomials of degree 4: its error is 2^-25. */
static inline vec tanh_of(vec x) {
  x = clip(x, -9.02f, 9.02f);
  vec u = x * x;
  vec p = all(1.33178099e-08f), q = all(7.76150218e-07f);
  p = p * u + all(2.05825723e-05f), q = q * u + all(3.28300318e-04f);
  p = p * u + all(3.49398026e-03f), q = q * u + all(2.58708684e-02f);
  p = p * u + all(1.33796729e-01f), q = q * u + all(4.67129882e-01f);
  p = p * u + all(1.0f), q = q * u + all(1.0f);
  return clip(x * p / q, -1.0f, 1.0f);
}

static inline vec sigmoid_of(vec x) { return all(1.0f) / (all(1.0f) + exp_of(-x)); }

/* The tangent, and the polynomials of this and the next, are those of error_function.py. */
static inline vec erf_of(vec x) {
  vec u = clip(x * x, 0.0f, 16.0f);
  vec p = all(5.3331516980392735e-09f);
  p = p * u + all(2.9565661918695696e-08f);
  p = p * u + all(-4.810737209481886e-06f);
  p = p * u + all(8.46557377371937e-05f);
  p = p * u + all(-0.0006149390246719122f);
  p = p * u + all(-0.0001952148595592007f);
  p = p * u + all(0.10276984423398972f);
  p = p * u + all(1.128379225730896f);
  return tanh_of(p * x);
}

static inline vec erfc_of(vec x) {
  vec size = clip(choose(x < all(0.0f), -x, x), 0.0f, 11.0f);
  vec t = size / (size + all(2.0f));
  vec p = all(-0.20606832206249237f);
  p = p * t + all(0.6117709279060364f);
  p = p * t + all(-0.42420756816864014f);
  p = p * t + all(-0.08138060569763184f);
  p = p * t + all(-0.446294367313385f);
  p = p * t + all(0.5444389581680298f);
  p = p * t + all(1.6705716848373413f);
  p = p * t + all(-3.2837860584259033f);
  p = p * t + all(1.7432422637939453f);
  p = p * t + all(1.0f);
  vec leading = (vec)((mask)size & -(1 << 12)), missing = (leading - size) * (leading + size);
  vec found = p / (size + size + all(1.0f)) * exp_of_sum(-(leading * leading), missing);
  return choose(x < all(0.0f), all(2.0f) - found, found);
}

/* -- programs ----------------------------------------------------------------------------------- */

#define APPLY(NAME, VALUE)                                                                     \
  static void NAME(float *target, const float *first, const float *second, int64_t count) {    \
    for (int64_t i = 0; i < count; i += LANES) {                                               \
      vec a = load(first + i), b = load(second + i);                                           \
      (void)b;                                                                                 \
      store(target + i, VALUE);                                                                \
    }                                                                                          \
  }
APPLY(apply_neg, -a)
APPLY(apply_abs, (vec)((mask)a & 0x7fffffff))
APPLY(apply_square, a * a)
APPLY(apply_sqrt, root(a))
APPLY(apply_rsqrt, all(1.0f) / root(a))
APPLY(apply_reciprocal, all(1.0f) / a)
APPLY(apply_relu, maximum(a, all(0.0f)))
APPLY(apply_relu6, clip(a, 0.0f, 6.0f))
APPLY(apply_exp, exp_of(a))
APPLY(apply_tanh, tanh_of(a))
APPLY(apply_sigmoid, sigmoid_of(a))
APPLY(apply_erf, erf_of(a))
APPLY(apply_erfc, erfc_of(a))
APPLY(apply_add, a + b)
APPLY(apply_sub, a - b)
APPLY(apply_mul, a * b)
APPLY(apply_div, a / b)
APPLY(apply_maximum, maximum(a, b))
APPLY(apply_minimum, minimum(a, b))
APPLY(apply_squared_difference, (a - b) * (a - b))

typedef void (*Applied)(float *, const float *, const float *, int64_t);
static const Applied APPLIED[] = {
    [NEG] = apply_neg, [ABS] = apply_abs, [SQUARE] = apply_square, [SQRT] = apply_sqrt,
    [RSQRT] = apply_rsqrt, [RECIPROCAL] = apply_reciprocal, [RELU] = apply_relu, [RELU6] = apply_relu6,
    [EXP] = apply_exp, [TANH] = apply_tanh, [SIGMOID] = apply_sigmoid, [ERF] = apply_erf,
    [ERFC] = apply_erfc, [ADD] = apply_add, [SUB] = apply_sub, [MUL] = apply_mul, [DIV] = apply_div,
    [MAXIMUM] = apply_maximum, [MINIMUM] = apply_minimum, [SQUARED_DIFFERENCE] = apply_squared_difference,
};

/* Elements at a distance, side by side; those after the last up to a whole vector are zeros. */
static void gather(float *to, const char *from, intptr_t distance, int64_t count) {
  if (distance == sizeof(float))
    memcpy(to, from, (size_t)count * sizeof(float));
  else
    for (int64_t i = 0; i < count; i++) memcpy(to + i, from + i * distance, sizeof(float));
  for (int64_t i = count; i % LANES; i++) to[i] = 0.0f;
}

static void scatter(char *to, intptr_t distance, const float *from, int64_t count) {
  if (distance == sizeof(float))
    memcpy(to, from, (size_t)count * sizeof(float));
  else
    for (int64_t i = 0; i < count; i++) memcpy(to + i * distance, from + i, sizeof(float));
}

static void fill(float *to, float number, int64_t count) {
  for (int64_t i = 0; i < count; i += LANES) store(to + i, all(number));
}

static void run(const Program *p, char *const *places, const intptr_t *distances, int64_t count) {
  float frame[REGISTERS][BLOCK] __attribute__((aligned(64)));
  const float *at[REGISTERS];
  const int64_t inputs = p->inputs, block = least(BLOCK, (count + LANES - 1) / LANES * LANES);
  for (int64_t i = inputs; i < p->registers; i++) at[i] = frame[i];
  for (int64_t i = 0; i < p->constant_count; i++) fill(frame[inputs + i], p->constants[i], block);
  for (int64_t i = 0; i < inputs; i++)
    if (!distances[i]) {
      float number;
      memcpy(&number, places[i], sizeof number);
      fill(frame[i], number, block);
      at[i] = frame[i];
    }
  const Step *last = p->steps + p->count - 1;
  for (int64_t start = 0, some; start < count; start += some) {
    /* Whole vectors first; what is left is put where there is room after it. */
    some = least(BLOCK, count - start);
    if (some > LANES) some -= some % LANES;
    int is_whole = some % LANES == 0;
    for (int64_t i = 0; i < inputs; i++) {
      const char *from = places[i] + start * distances[i];
      if (!distances[i]) continue;
      if (is_whole && distances[i] == sizeof(float)) {
        at[i] = (const float *)from;
        continue;
      }
      gather(frame[i], from, distances[i], some);
      at[i] = frame[i];
    }
    for (const Step *step = p->steps; step < last; step++)
      APPLIED[step->function](frame[step->target], at[step->first], at[step->second], some);
    char *to = places[inputs] + start * distances[inputs];
    int is_direct = is_whole && distances[inputs] == sizeof(float);
    float *target = is_direct ? (float *)to : frame[last->target];
    APPLIED[last->function](target, at[last->first], at[last->second], some);
    if (!is_direct) scatter(to, distances[inputs], target, some);
  }
}

#define JOIN(KIND) KIND##_elements
#define NAMED(KIND) JOIN(KIND)
const Elements NAMED(KIND) = run;
