/*
 * Where the greatest or the least numbers are, with vectors of LANES floats; compiled once for each kind of them, as
 * KIND with ``_extremes`` after it.
 *
 * Of equal numbers it is the first.  NaN is never it, unless there is nothing else: then it is the first number.
 */

#include <math.h>

#include "convolution.h"
#include "extremes.h"
#include "kinds.h"
#include "vectors.h"

/* Rows side by side that are gone through together. */
#define TOGETHER 256
/* Numbers that are worth being looked at by a thread of its own: a few microseconds. */
#define WORTH 16384

typedef struct {
  vec best;
  mask number;
} Found;

static inline vec worst_of(const Extremes *e) { return all(e->is_least ? INFINITY : -INFINITY); }

/* What is found when numbers are looked at, too. */
static inline Found next(Found found, vec x, mask number, int is_least) {
  const mask is_better = is_least ? x < found.best : x > found.best;
  return (Found){choose(is_better, x, found.best), (is_better & number) | (~is_better & found.number)};
}

/* -- rows whose numbers are far from each other, side by side -------------------------------------- */

static inline void columns_of(const Extremes *e, const float *from, int64_t count, int64_t *to, int is_least) {
  Found found[TOGETHER / LANES];
  const int64_t vectors = (count + LANES - 1) / LANES;
  for (int64_t i = 0; i < vectors; i++) found[i] = (Found){worst_of(e), {0}};
  for (int64_t row = 0; row < e->length; row++, from += e->inner)
    for (int64_t i = 0; i < vectors; i++) {
      const vec x = load_some(from + i * LANES, count - i * LANES);
      found[i] = next(found[i], x, (mask){0} + (int32_t)row, is_least);
    }
  for (int64_t i = 0; i < count; i++) to[i] = found[i / LANES].number[i % LANES];
}

static void some_columns(const void *work, int64_t piece) {
  const Extremes *e = work;
  const int64_t blocks = (e->inner + TOGETHER - 1) / TOGETHER, outer = piece / blocks;
  const int64_t first = piece % blocks * TOGETHER, count = least(e->inner - first, TOGETHER);
  const float *from = e->from + outer * e->length * e->inner + first;
  int64_t *to = e->to + outer * e->inner + first;
  if (e->is_least)
    columns_of(e, from, count, to, 1);
  else
    columns_of(e, from, count, to, 0);
}

/* -- other rows, one for each lane ---------------------------------------------------------------- */

static inline void lanes_of(const Extremes *e, int64_t first, int64_t count, int is_least) {
  const float *from[LANES];
  Found found = {worst_of(e), {0}};
  for (int i = 0; i < LANES; i++) {
    const int64_t row = first + (i < count ? i : 0);
    from[i] = e->from + row / e->inner * e->length * e->inner + row % e->inner;
  }
  for (int64_t k = 0; k < e->length; k++) {
    vec x;
    for (int i = 0; i < LANES; i++) x[i] = from[i][k * e->inner];
    found = next(found, x, (mask){0} + (int32_t)k, is_least);
  }
  for (int64_t i = 0; i < count; i++) e->to[first + i] = found.number[i];
}

static void some_rows(const void *work, int64_t piece) {
  const Extremes *e = work;
  const int64_t first = piece * LANES, count = least(e->outer * e->inner - first, LANES);
  if (e->is_least)
    lanes_of(e, first, count, 1);
  else
    lanes_of(e, first, count, 0);
}

/* -- all ------------------------------------------------------------------------------------------- */

static void extremes(const Extremes *e, int helpers) {
  if (e->inner >= LANES) {
    const int64_t blocks = (e->inner + TOGETHER - 1) / TOGETHER;
    const int64_t numbers = least(e->inner, TOGETHER) * e->length;
    penstock_share(some_columns, e, e->outer * blocks, penstock_together(numbers, WORTH), helpers);
  } else {
    const int64_t rows = e->outer * e->inner;
    const int64_t together = penstock_together(e->length * LANES, WORTH);
    penstock_share(some_rows, e, (rows + LANES - 1) / LANES, together, helpers);
  }
}

const FindExtremes OF_KIND(KIND, extremes) = extremes;
