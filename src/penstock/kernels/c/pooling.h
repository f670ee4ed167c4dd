/* What pooling, and a convolution by channel, is for all who compute a part of it.  pooling.py has the same structure. */

#ifndef PENSTOCK_POOLING_H
#define PENSTOCK_POOLING_H

#include <stdint.h>

/* In the order of ``_WAYS`` in pooling.py. */
typedef enum {
  GREATEST, MEAN, GRADIENT_OF_GREATEST, GRADIENT_OF_MEAN, GRADIENT_OF_IMAGES, GRADIENT_OF_FILTERS,
} Way;

/*
 * Windows that see one channel each, of images whose numbers follow each other: [batch, rows, columns,
 * depth].  The greatest, or the mean, of what a place sees; or what elements get of gradients of places;
 * or what elements, or filters, of convolutions get of them.
 */
typedef struct {
  /* What windows see; not read for the gradients of a mean and of a convolution's images. */
  const float *images;
  /* By the places, [batch, rows, columns, depth]; only for gradients. */
  const float *gradients;
  /* [window rows, window columns, depth]; only for the gradient of a convolution's images. */
  const float *filters;
  /* Room for numbers like the gradients; only for that of a mean. */
  float *parts;
  /* By the places; for gradients like the images, or like the filters, and zeros, but for those of a mean. */
  float *out;
  int64_t batch, image_rows, image_columns, depth, rows, columns;
  int64_t window_rows, window_columns, row_stride, column_stride, rows_before, columns_before;
  int64_t way;
} Pooling;

typedef void (*Pool)(const Pooling *pooling, int helpers);

#endif
