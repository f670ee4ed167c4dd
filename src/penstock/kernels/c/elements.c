/*
 * Programs of functions of single elements, with vectors of LANES floats; compiled once for each kind of
 * them, as KIND with ``_elements`` after it.
 *
 * A block of elements goes through all steps while it is in the first cache.  What an element comes
 * to depends neither on its place, nor on what is beside it, nor on which steps are one program.
 */

#include "elements.h"
#include "functions.h"
#include "kinds.h"

/* Scale, and scale times alpha, of the self-normalising ELU (Klambauer et al., 2017). */
#define SCALE 1.0507009873554804935f
#define SCALE_ALPHA 1.7580993408473768599f

/* Elements of a block. */
#define BLOCK 256

/* -- programs ----------------------------------------------------------------------------------- */

/* Each function, and what it makes of ``a`` and ``b``.  Of gradients and features, a gradient that is no
   number stays so; other gradients come after the function's results. */
#define EACH_FUNCTION(DO)                                                                      \
  DO(NEG, -a)                                                                                  \
  DO(ABS, (vec)((mask)a & 0x7fffffff))                                                         \
  DO(SQUARE, a * a)                                                                            \
  DO(SQRT, root(a))                                                                            \
  DO(RSQRT, all(1.0f) / root(a))                                                               \
  DO(RECIPROCAL, all(1.0f) / a)                                                                \
  DO(RELU, maximum(a, all(0.0f)))                                                              \
  DO(RELU6, clip(a, 0.0f, 6.0f))                                                               \
  DO(EXP, exp_of(a))                                                                           \
  DO(TANH, tanh_of(a))                                                                         \
  DO(SIGMOID, sigmoid_of(a))                                                                   \
  DO(ERF, erf_of(a))                                                                           \
  DO(ERFC, erfc_of(a))                                                                         \
  DO(LOG, log_of(a))                                                                           \
  DO(LOG1P, log1p_of(a))                                                                       \
  DO(EXPM1, expm1_of(a))                                                                       \
  DO(SOFTPLUS, softplus_of(a))                                                                 \
  DO(ELU, elu_of(a, 1.0f, 1.0f))                                                               \
  DO(SELU, elu_of(a, SCALE, SCALE_ALPHA))                                                      \
  DO(ADD, a + b)                                                                               \
  DO(SUB, a - b)                                                                               \
  DO(MUL, a * b)                                                                               \
  DO(DIV, a / b)                                                                               \
  DO(MAXIMUM, maximum(a, b))                                                                   \
  DO(MINIMUM, minimum(a, b))                                                                   \
  DO(SQUARED_DIFFERENCE, (a - b) * (a - b))                                                    \
  DO(RELU_GRAD, a * choose(b > all(0.0f), all(1.0f), all(0.0f)))                               \
  DO(RELU6_GRAD, a * choose((b > all(0.0f)) & (b < all(6.0f)), all(1.0f), all(0.0f)))          \
  DO(TANH_GRAD, b * (all(1.0f) - rounded(a * a)))                                              \
  DO(SIGMOID_GRAD, b * (a * (all(1.0f) - a)))                                                  \
  DO(SOFTPLUS_GRAD, a / (exp_of(-b) + all(1.0f)))                                              \
  DO(ELU_GRAD, a * (choose(b < all(0.0f), b, all(0.0f)) + all(1.0f)))                          \
  DO(SELU_GRAD, a * choose(b < all(0.0f), b + all(SCALE_ALPHA), all(SCALE)))

#define APPLY(NAME, VALUE)                                                                     \
  static void apply_##NAME(float *target, const float *first, const float *second,             \
                           int64_t count) {                                                    \
    for (int64_t i = 0; i < count; i += LANES) {                                               \
      vec a = load(first + i), b = load(second + i);                                           \
      (void)b;                                                                                 \
      store(target + i, VALUE);                                                                \
    }                                                                                          \
  }
EACH_FUNCTION(APPLY)

#define NAMED_APPLY(NAME, VALUE) [NAME] = apply_##NAME,
const Applied OF_KIND(KIND, applied)[] = {EACH_FUNCTION(NAMED_APPLY)};
#define APPLIED OF_KIND(KIND, applied)

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
  for (int64_t i = 0; i < p->held_constants; i++) fill(frame[inputs + i], p->constants[i], block);
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
      if (step->function == CONSTANT)
        fill(frame[step->target], p->constants[step->first], some);
      else
        APPLIED[step->function](frame[step->target], at[step->first], at[step->second], some);
    char *to = places[inputs] + start * distances[inputs];
    int is_direct = is_whole && distances[inputs] == sizeof(float);
    float *target = is_direct ? (float *)to : frame[last->target];
    APPLIED[last->function](target, at[last->first], at[last->second], some);
    if (!is_direct) scatter(to, distances[inputs], target, some);
  }
}

const Elements OF_KIND(KIND, elements) = run;
