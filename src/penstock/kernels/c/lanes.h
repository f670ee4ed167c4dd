/* Rows of few numbers, of which LANES are gone through side by side: a vector has one number of each. */

#ifndef PENSTOCK_LANES_H
#define PENSTOCK_LANES_H

#include "vectors.h"

/* Longer rows fill vectors by themselves. */
#define SHORT 32

/* Rows that follow each other, LANES at most; what is in lanes without a row is of no use. */
static inline void take_rows(vec *x, const float *from, int64_t rows, int64_t length) {
  float *to = (float *)x;
  for (int i = 0; i < LANES; i++) {
    const float *row = from + (i < rows ? i : 0) * length;
    for (int64_t k = 0; k < length; k++) to[k * LANES + i] = row[k];
  }
}

static inline void give_rows(float *to, const vec *x, int64_t rows, int64_t length) {
  const float *from = (const float *)x;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < length; k++) to[i * length + k] = from[k * LANES + i];
}

#endif
