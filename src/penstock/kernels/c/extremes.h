/* Where the greatest or the least number of each row is. */

#ifndef PENSTOCK_EXTREMES_H
#define PENSTOCK_EXTREMES_H

#include <stdint.h>

/* Numbers are [outer, length, inner]; those of a row have the same outer and inner place. */
typedef struct {
  const float *from;
  /* [outer, inner] */
  int64_t *to;
  int64_t outer, length, inner, is_least;
} Extremes;

typedef void (*FindExtremes)(const Extremes *extremes, int helpers);

#endif
