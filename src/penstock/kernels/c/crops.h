/* Parts of images, blended out of the four nearest pixels of each place. */

#ifndef PENSTOCK_CROPS_H
#define PENSTOCK_CROPS_H

#include <stdint.h>

/* Where the places of crops, [crops, places], lie along a dimension of the images. */
typedef struct {
  /* Neighbours, and how far the place is from the one to the other. */
  const int64_t *lower, *upper;
  const float *part;
  const char *is_inside;
} Along;

typedef struct {
  /* [batch, image rows, image columns, depth] */
  const float *images;
  /* The image of each crop. */
  const int32_t *owners;
  /* [crops, rows, columns, depth] */
  float *out;
  Along by_row, by_column;
  int64_t count, rows, columns, image_rows, image_columns, depth;
  /* What is outside of the images. */
  float outside;
} Crops;

typedef void (*Crop)(const Crops *crops, int helpers);

#endif
