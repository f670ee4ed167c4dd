/*
 * Rows that are weighed and added up, first to last, with vectors of LANES floats; compiled once for each kind of
 * them, as KIND with ``_weigh`` after it.  Each product is rounded, and each sum.
 */

#include "weighing.h"
#include "convolution.h"
#include "kinds.h"
#include "vectors.h"

/* Products that are worth being a piece: some 5 microseconds. */
#define WORTH 16384

/* Numbers from a place on: some, or as many as a vector has, if there are so many before the end. */
static inline vec load_before(const float *end, const float *from, int64_t some) {
  return end - from >= LANES ? load(from) : load_some(from, some);
}

static void weigh_one(const void *work, int64_t number) {
  const Weighing *w = work;
  const int64_t place = number % w->after, length = w->length;
  const float *from = w->from + number / w->after * w->before * length;
  const int64_t *sources = w->sources + place * w->taps;
  const float *weights = w->weights + place * w->taps;
  const float *end = w->from + w->outer * w->before * length;
  float *to = w->to + number * length;
  for (int64_t at = 0; at < length; at += LANES) {
    const float *column = from + at;
    vec sum = rounded(load_before(end, column + sources[0] * length, length - at) * all(weights[0]));
    for (int64_t k = 1; k < w->taps; k++)
      sum += rounded(load_before(end, column + sources[k] * length, length - at) * all(weights[k]));
    store_some(to + at, sum, length - at);
  }
}

static void weigh(const Weighing *w, int helpers) {
  penstock_share(weigh_one, w, w->outer * w->after, penstock_together(w->length * w->taps, WORTH), helpers);
}

const Weigh OF_KIND(KIND, weigh) = weigh;
