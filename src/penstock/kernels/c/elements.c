/*
 * Programs of functions of single elements, with vectors of LANES floats; compiled once for each kind of
 * them, as KIND with ``_elements`` after it.
 *
 * A block of elements goes through all steps while it is in the first cache.  What an element comes
 * to depends neither on its place, nor on what is beside it, nor on which steps are one program.
 */

#include "elements.h"
#include "functions.h"

/* Elements of a block. */
#define BLOCK 256

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
/* Gradients and features; a gradient that is no number stays so. */
APPLY(apply_relu_grad, a * choose(b > all(0.0f), all(1.0f), all(0.0f)))
APPLY(apply_relu6_grad, a * choose((b > all(0.0f)) & (b < all(6.0f)), all(1.0f), all(0.0f)))
/* Results of the function, and gradients. */
APPLY(apply_tanh_grad, b * (all(1.0f) - rounded(a * a)))
APPLY(apply_sigmoid_grad, b * (a * (all(1.0f) - a)))

typedef void (*Applied)(float *, const float *, const float *, int64_t);
static const Applied APPLIED[] = {
    [NEG] = apply_neg, [ABS] = apply_abs, [SQUARE] = apply_square, [SQRT] = apply_sqrt,
    [RSQRT] = apply_rsqrt, [RECIPROCAL] = apply_reciprocal, [RELU] = apply_relu, [RELU6] = apply_relu6,
    [EXP] = apply_exp, [TANH] = apply_tanh, [SIGMOID] = apply_sigmoid, [ERF] = apply_erf,
    [ERFC] = apply_erfc, [ADD] = apply_add, [SUB] = apply_sub, [MUL] = apply_mul, [DIV] = apply_div,
    [MAXIMUM] = apply_maximum, [MINIMUM] = apply_minimum, [SQUARED_DIFFERENCE] = apply_squared_difference,
    [RELU_GRAD] = apply_relu_grad, [RELU6_GRAD] = apply_relu6_grad,
    [TANH_GRAD] = apply_tanh_grad, [SIGMOID_GRAD] = apply_sigmoid_grad,
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
