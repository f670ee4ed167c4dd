/* Convolutions with windows of three by three whose results come from fewer products. */

#ifndef PENSTOCK_WINOGRAD_H
#define PENSTOCK_WINOGRAD_H

#include "convolution.h"

/* Places of a tile side by side, and elements of images that they see together. */
#define TILE_SIDE 4
#define SEEN_SIDE (TILE_SIDE + 2)
#define SEEN (SEEN_SIDE * SEEN_SIDE)

typedef struct {
  /* Filters, [3, 3, depth, count], of whole vectors: 36 numbers of the nine of each channel and filter.  They are
     packed block by block: [36, depth] numbers for each filter of a block side by side. */
  void (*transform_filters)(const Packing *packing, int helpers);
  /* A convolution with such filters; images are framed so that tiles may go beyond the last results.  Whether all
     sums are finite: if not, those beside an infinite one may be wrong. */
  int (*convolve)(const Convolution *convolution, int helpers);
} Winograd;

/* Rows that lie so many bytes apart, as many as a tile is wide at most, times the packed weights of one block: a
   block of results for each. */
#define BLOCK_PRODUCT(NAME)                                                                                \
  void NAME(const float *rows, int64_t row_step, int64_t count, int64_t depth, const float *weights, float *out)

#endif
