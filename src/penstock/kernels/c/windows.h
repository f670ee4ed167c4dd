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

/* For each element of a window, which sees all of the depth there. */
#define EACH_ELEMENT(C)                                                                                   \
  for (int64_t plane = 0; plane < (C)->window_planes; plane++)                                            \
    for (int64_t row = 0; row < (C)->window_rows; row++)                                                  \
      for (int64_t column = 0; column < (C)->window_columns; column++)

static inline int64_t bytes_to(const Convolution *c, int64_t plane, int64_t row, int64_t column) {
  return plane * c->element_plane_step + row * c->element_row_step + column * c->element_column_step;
}

static inline const char *seen_from(const Convolution *c) {
  return (const char *)(c->framed ? c->framed : c->images);
}

#endif
