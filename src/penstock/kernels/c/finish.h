/* Blocks of sums of products, and what is done to them last, for what is compiled once for each kind of vectors. */

#ifndef PENSTOCK_FINISH_H
#define PENSTOCK_FINISH_H

#include "convolution.h"
#include "vectors.h"

/* Filters of a block; the last block may have one vector only. */
#define BLOCK (2 * LANES)

/* Write sums with what is added, between the limits. */
static inline void finish(const Convolution *c, vec sum, int64_t at, int64_t filter, int64_t count) {
  if (c->bias) sum += load_some(c->bias + filter, count);
  if (c->added) sum += load_some(c->added + at, count);
  sum = choose(sum < all(c->low), all(c->low), sum);
  sum = choose(sum > all(c->high), all(c->high), sum);
  store_some(c->out + at, sum, count);
}

#endif
