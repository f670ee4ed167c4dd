/* Rows whose numbers follow each other, and what is computed of each of them. */

#ifndef PENSTOCK_ROWS_H
#define PENSTOCK_ROWS_H

#include <stdint.h>

typedef struct {
  const float *from;
  /* A row for each of them, or a number. */
  float *to;
  /* Another number for each of them, or two; NULL where there is only one. */
  float *also_to;
  int64_t count, length;
} Rows;

typedef void (*OfRows)(const Rows *rows, int helpers);

#endif
