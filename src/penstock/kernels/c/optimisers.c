/*
 * Steps of optimisers with vectors of LANES floats; compiled once for each kind of them, as KIND with
 * ``_optimise`` after it.
 *
 * Each array is read once, and each new one written once.  Every operation is rounded, as numpy would round it.
 */

#include "optimisers.h"
#include "convolution.h"
#include "functions.h"
#include "kinds.h"

/* Elements of a piece: a few microseconds. */
#define IN_PIECE 16384

/* What optimisers make of ``x``, a variable and its slots, by a gradient and rates. */
#define STEP(NAME) static inline void NAME(vec *x, vec grad, const vec *rates)

static inline vec towards(vec old, vec goal, vec part) { return rounded((goal - old) * part) + old; }
static inline vec squared(vec x) { return rounded(x * x); }

/* Rates: of learning. */
STEP(gradient_descent) { x[0] -= rounded(grad * rates[0]); }

/* Rates: of learning, momentum. */
STEP(momentum) {
  x[1] = rounded(x[1] * rates[1]) + grad;
  x[0] -= rounded(x[1] * rates[0]);
}

STEP(nesterov_momentum) {
  x[1] = rounded(x[1] * rates[1]) + grad;
  x[0] -= rounded(grad * rates[0]) + rounded(rounded(x[1] * rates[1]) * rates[0]);
}

STEP(keras_momentum) {
  x[1] = rounded(x[1] * rates[1]) - rounded(grad * rates[0]);
  x[0] += x[1];
}

STEP(nesterov_keras_momentum) {
  x[1] = rounded(x[1] * rates[1]) - rounded(grad * rates[0]);
  x[0] += rounded(x[1] * rates[1]) - rounded(grad * rates[0]);
}

/* Rates: of learning; what roots have added to them. */
static inline vec by_root(vec grad, vec squares, const vec *rates) { return grad * rates[0] / root(squares); }
static inline vec by_root_and_more(vec grad, vec squares, const vec *rates) {
  return grad * rates[0] / (root(squares) + rates[1]);
}

STEP(adagrad) {
  x[1] += squared(grad);
  x[0] -= by_root(grad, x[1], rates);
}

STEP(still_adagrad) { x[0] -= by_root(grad, x[1], rates); }

STEP(adagrad_v2) {
  x[1] += squared(grad);
  x[0] -= by_root_and_more(grad, x[1], rates);
}

STEP(still_adagrad_v2) { x[0] -= by_root_and_more(grad, x[1], rates); }

/* Rates: of learning, momentum, what is added to variances, and what new squares and means count. */
STEP(rms_prop) {
  x[1] = towards(x[1], squared(grad), rates[3]);
  x[2] = rounded(x[2] * rates[1]) + grad * rates[0] / root(x[1] + rates[2]);
  x[0] -= x[2];
}

/* Slots: means, squares, and what goes on. */
STEP(centered_rms_prop) {
  x[2] = towards(x[2], squared(grad), rates[3]);
  x[1] = towards(x[1], grad, rates[3]);
  x[3] = rounded(x[3] * rates[1]) + grad * rates[0] / root(x[2] - squared(x[1]) + rates[2]);
  x[0] -= x[3];
}

/* Rates: of learning, without the bias of moments; what roots have added to them; what a new mean counts, and a
   new square; and what the old mean does. */
static inline void add_moments(vec *x, vec grad, const vec *rates) {
  x[1] = towards(x[1], grad, rates[2]);
  x[2] = towards(x[2], squared(grad), rates[3]);
}

STEP(adam) {
  add_moments(x, grad, rates);
  x[0] -= x[1] * rates[0] / (root(x[2]) + rates[1]);
}

STEP(nesterov_adam) {
  add_moments(x, grad, rates);
  const vec mean = rounded(x[1] * rates[4]) + rounded(grad * rates[2]);
  x[0] -= mean * rates[0] / (root(x[2]) + rates[1]);
}

/* In the order of ``OPTIMISERS`` in optimisers.py; and so many arrays. */
#define EACH_WAY(DO)                                                                       \
  DO(gradient_descent, 1) DO(momentum, 2) DO(nesterov_momentum, 2) DO(keras_momentum, 2)   \
  DO(nesterov_keras_momentum, 2) DO(adagrad, 2) DO(still_adagrad, 2) DO(adagrad_v2, 2)     \
  DO(still_adagrad_v2, 2) DO(rms_prop, 3) DO(centered_rms_prop, 4) DO(adam, 3) DO(nesterov_adam, 3)

/* The elements from ``at`` on, a vector at most. */
#define STEP_AT(NAME, ARRAYS)                                                              \
  static inline void NAME##_at(const Update *u, const vec *rates, int64_t at, int64_t left) { \
    vec x[ARRAYS];                                                                         \
    for (int i = 0; i < ARRAYS; i++) x[i] = load_some(u->old[i] + at, left);               \
    NAME(x, load_some(u->grad + at, left), rates);                                         \
    for (int i = 0; i < ARRAYS; i++) store_some(u->new[i] + at, x[i], left);               \
  }                                                                                        \
  static void NAME##_piece(const void *work, int64_t number) {                             \
    const Update *u = work;                                                                \
    int64_t at = number * IN_PIECE, end = least(at + IN_PIECE, u->count);                  \
    vec rates[MOST_RATES];                                                                 \
    for (int i = 0; i < MOST_RATES; i++) rates[i] = all(u->rates[i]);                      \
    for (; at + LANES <= end; at += LANES) NAME##_at(u, rates, at, LANES);                 \
    if (at < end) NAME##_at(u, rates, at, end - at);                                       \
  }
EACH_WAY(STEP_AT)

#define NAMED_PIECE(NAME, ARRAYS) NAME##_piece,
static const Piece pieces[] = {EACH_WAY(NAMED_PIECE)};

static void optimise(const Update *update, int helpers) {
  penstock_share(pieces[update->way], update, (update->count + IN_PIECE - 1) / IN_PIECE, 1, helpers);
}

const Optimise OF_KIND(KIND, optimise) = optimise;
