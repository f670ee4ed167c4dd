/* Numbers of float16 and of bfloat16, and of float32. */

#ifndef PENSTOCK_NARROW_H
#define PENSTOCK_NARROW_H

#include <stdint.h>

enum { TO_FLOAT16, FROM_FLOAT16, TO_BFLOAT16 };

typedef struct {
  const void *from;
  void *to;
  /* How many numbers; and which of the ways above. */
  int64_t count, way;
} Conversion;

typedef void (*Convert)(const Conversion *conversion, int helpers);

#endif
