/* Blocks of sums of products, and what is done to them last, for what is compiled once for each kind of vectors. */

#ifndef PENSTOCK_FINISH_H
#define PENSTOCK_FINISH_H

#include "convolution.h"
#include "vectors.h"

/* Filters of a block; the last block may have one vector only. */
#define BLOCK (2 * LANES)

/* What is done last to the sums of some filters, at most LANES; no bias is -0, which changes no number. */
typedef struct {
  const float *added;
  float *out;
  vec bias, low, high;
  int64_t count;
} Last;

static inline Last last_of(const Convolution *c, int64_t filter, int64_t count) {
  vec bias = c->bias ? load_some(c->bias + filter, count) : all(-0.0f);
  return (Last){c->added, c->out, bias, all(c->low), all(c->high), count};
}

/* Write sums with what is added, between the limits. */
static inline void finish(const Last *last, vec sum, int64_t at) {
  sum += last->bias;
  if (last->added) sum += load_some(last->added + at, last->count);
  store_some(last->out + at, smaller(last->high, larger(last->low, sum)), last->count);
}

/* The same for one half of a vector, with as many filters. */
static inline void finish_half(const Last *last, vec sum, int half, int64_t at) {
  sum += last->bias;
  if (last->added) sum += load_halves(last->added + at, last->added + at);
  store_half(last->out + at, smaller(last->high, larger(last->low, sum)), half);
}

#endif
