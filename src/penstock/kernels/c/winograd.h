/* Convolutions with windows of three by three whose results come from fewer products. */

#ifndef PENSTOCK_WINOGRAD_H
#define PENSTOCK_WINOGRAD_H

#include "convolution.h"

/* Places of a tile side by side, and elements of images that they see together. */
#define TILE_SIDE 4
#define SEEN_SIDE (TILE_SIDE + 2)
#define SEEN (SEEN_SIDE * SEEN_SIDE)

typedef struct {
  /* Filters, [planes, 3, 3, depth, count]: 36 numbers of the nine of each plane, channel and filter.  Each block of
     filters has [36, planes, depth] numbers for each of its own, with zeros for those that there are not; a few of
     them lie as few.h says. */
  void (*transform_filters)(const Packing *packing, int helpers);
  /* A convolution with such filters: of images, or of a volume, whose planes are one step apart.  Whether all sums
     are finite: if not, those beside an infinite one may be wrong. */
  int (*convolve)(const Convolution *convolution, int helpers);
} Winograd;

/* Sums of ``wide`` places side by side, as many as a tile has at most, for one block of filters or a few, with
   weights that begin there; written from ``at`` on. */
#define BLOCK_PRODUCT(NAME)                                                                                \
  void NAME(const Convolution *c, int few, const char *seen, int64_t wide, const char *weights, int64_t at)

#endif
