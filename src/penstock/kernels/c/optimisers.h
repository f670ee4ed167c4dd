/* Steps of optimisers.  optimisers.py has the same structure, and numbers of ways. */

#ifndef PENSTOCK_OPTIMISERS_H
#define PENSTOCK_OPTIMISERS_H

#include <stdint.h>

/* A variable and its slots; and numbers that are the same for all elements. */
#define MOST_ARRAYS 4
#define MOST_RATES 5

/* One optimiser: its way, and so many arrays and rates. */
typedef struct {
  int64_t way, arrays, rates, kind;
} Optimiser;

typedef struct {
  const float *old[MOST_ARRAYS];
  const float *grad;
  float rates[MOST_RATES];
  /* What old ones become. */
  float *new[MOST_ARRAYS];
  int64_t way, count;
} Update;

/* One for each kind of vectors. */
typedef void (*Optimise)(const Update *update, int helpers);

#endif
