/* Rows that are weighed and added up. */

#ifndef PENSTOCK_WEIGHING_H
#define PENSTOCK_WEIGHING_H

#include <stdint.h>

/* [outer, before, length] becomes [outer, after, length]: each place takes so many rows of those before. */
typedef struct {
  const float *from;
  float *to;
  /* [after, taps] */
  const int64_t *sources;
  const float *weights;
  int64_t outer, before, after, taps, length;
} Weighing;

typedef void (*Weigh)(const Weighing *weighing, int helpers);

#endif
