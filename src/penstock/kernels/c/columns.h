/* Rows of one number for each channel, and what is computed channel by channel. */

#ifndef PENSTOCK_COLUMNS_H
#define PENSTOCK_COLUMNS_H

#include <stdint.h>

typedef struct {
  /* Rows, and as many others; NULL where there are none. */
  const float *from, *other;
  /* Numbers for each channel; NULL where there are none. */
  const float *mean, *scale, *offset, *factor;
  /* Rows; or sums, those of some rows after those of the rows before. */
  float *to;
  int64_t count, length, rows_in_piece;
} Columns;

typedef void (*OfColumns)(const Columns *columns, int helpers);

#endif
