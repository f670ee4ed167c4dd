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
  /* Rows that are added to them first; a factor and a term for each place in a row.  NULL where there are
     none. */
  const float *added, *scale, *offset;
  int64_t count, length, is_centered, way;
  /* What is added to a variance; and what all numbers are multiplied by first, which is not negative. */
  float epsilon, factor;
} Rows;

typedef void (*OfRows)(const Rows *rows, int helpers);

#endif
