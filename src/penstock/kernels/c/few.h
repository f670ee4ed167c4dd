/* A few filters, which fill no two vectors by themselves: how their weights lie, whatever LANES is. */

#ifndef PENSTOCK_FEW_H
#define PENSTOCK_FEW_H

#include "vectors.h"

/*
 * With one vector of filters, each product needs a number of the image in all lanes, which takes as long
 * as two products; and eight filters fill half of a long vector.  So two neighbouring numbers are taken at a
 * time, in lanes by turns: a vector of weights has those of both for half as many filters.  Each result is the
 * sum of two: over numbers of even and of odd depth; with shorter vectors, too, so that they give the same
 * bits.
 */
#define FEW 16
#define FEWER 8

/* Of the filters from one on: FEW, FEWER, or 0 if there are more. */
static inline int few_of(int64_t depth, int64_t filter, int64_t count) {
  if (LANES < FEWER || depth % 2 || filter % (2 * FEW) || count - filter > FEW) return 0;
  return count - filter > FEWER ? FEW : FEWER;
}

/* Where the weight of an element for one of some filters is, among those of two elements. */
static inline int64_t place_of_few(int64_t element, int64_t filter, int some) {
  return LANES < some ? element % 2 * some + filter : 2 * filter + element % 2;
}

#endif
