/* Random words, four for each value of a counter, and numbers of float32 made of them. */

#ifndef PENSTOCK_PHILOX_H
#define PENSTOCK_PHILOX_H

#include <stdint.h>

/* The words themselves; fractions from 0 on, below 1; normal numbers; those of them that are nearer to 0 than 2,
   of which each counter's are made of the first of so many counters that give enough. */
typedef enum { WORDS, FRACTIONS, NORMAL, CUT_NORMAL } Made;

typedef struct {
  /* How far ahead of the counter each value is; NULL where so many lie between one and the next. */
  const uint64_t *offsets;
  void *numbers;
  int64_t count, step, way;
  /* The counter has 128 bits. */
  uint64_t key, low, high;
} Philox;

typedef void (*DrawNumbers)(const Philox *philox, int helpers);

#endif
