/* Sums of rows that are gathered out of a table, segment by segment. */

#ifndef PENSTOCK_SEGMENTS_H
#define PENSTOCK_SEGMENTS_H

#include <stdint.h>

typedef struct {
  /* A table of rows, where it ends, and those of them that are gathered; NULL for all in their order. */
  const float *rows, *end;
  const int64_t *gathered;
  /* What each of these is multiplied by; NULL for nothing. */
  const float *weights;
  /* Where each segment begins in ``gathered``, and where the last one ends. */
  const int64_t *starts;
  /* A row for each segment. */
  float *sums;
  int64_t count, length;
} Segments;

typedef void (*SumSegments)(const Segments *segments, int helpers);

#endif
