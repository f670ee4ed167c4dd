/* Rows whose numbers follow each other. */

#ifndef PENSTOCK_SOFTMAX_H
#define PENSTOCK_SOFTMAX_H

#include <stdint.h>

typedef struct {
  const float *from;
  float *to;
  int64_t count, length;
} Rows;

typedef void (*Softmax)(const Rows *rows, int helpers);

#endif
