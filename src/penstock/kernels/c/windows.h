/* Windows that slide over images, for what is compiled once for each kind of vectors. */

#ifndef PENSTOCK_WINDOWS_H
#define PENSTOCK_WINDOWS_H

#include "convolution.h"

/* So many neighbouring places, or numbers, at a time: their sums, two vectors of each, are in registers, of which
   there are 32 beside long vectors and 16 beside others. */
#if LANES == 16
#define WIDEST 14
#else
#define WIDEST 6
#endif
/* So many products are worth being a piece: some 15 microseconds. */
#define WORTH_A_PIECE 500000

static inline const char *seen_from(const Convolution *c) {
  return (const char *)(c->framed ? c->framed : c->images);
}

#endif
