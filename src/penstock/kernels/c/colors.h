/* Colours of pixels.  colors.py has the same structure, and numbers of ways. */

#ifndef PENSTOCK_COLORS_H
#define PENSTOCK_COLORS_H

#include <stdint.h>

/* Pixels of three numbers each, and what becomes of them; by how much, if they are adjusted. */
typedef struct {
  const float *from;
  float *to;
  int64_t count, way;
  float amount;
} Colors;

typedef void (*Recolor)(const Colors *colors, int helpers);

#endif
