/* Images of another size, of which each pixel is blended from four, along rows and along columns. */

#ifndef PENSTOCK_RESIZING_H
#define PENSTOCK_RESIZING_H

#include <stdint.h>

/* Where the places of a dimension take from: from two elements, and this part of the second one; from one
   alone where both are the same. */
typedef struct {
  const int64_t *first, *second;
  const float *parts;
} Blend;

typedef struct {
  /* Of floats, or of bytes. */
  const void *images;
  float *out;
  /* Two rows of the result for each band. */
  float *spare;
  Blend by_row, by_column;
  int64_t batch, image_rows, image_columns, depth, rows, columns;
  /* Rows of the result that are computed together. */
  int64_t band;
  /* Whether images are of bytes. */
  int64_t is_of_bytes;
} Resizing;

typedef void (*Resize)(const Resizing *resizing, int helpers);

#endif
