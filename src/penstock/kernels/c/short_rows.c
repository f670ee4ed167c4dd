/*
 * What rows of few numbers come to, with vectors of LANES floats; compiled once for each kind of them, as KIND with
 * ``_reduce`` after it.  Numbers of a row are joined first to last.
 */

#include "convolution.h"
#include "functions.h"
#include "kinds.h"
#include "lanes.h"
#include "rows.h"

/* Numbers that are worth being a piece: some 15 microseconds. */
#define WORTH_A_PIECE 65536

/* In the order of ``WAYS`` in short_rows.py. */
enum { SUM, PRODUCT, GREATEST, LEAST };

static inline vec joined(vec so_far, vec x, int64_t way) {
  switch (way) {
    case SUM: return so_far + x;
    case PRODUCT: return so_far * x;
    case GREATEST: return maximum(so_far, x);
    default: return minimum(so_far, x);
  }
}

static inline __attribute__((always_inline)) void reduce_each(const Rows *rows, int64_t row, int64_t end, int64_t way) {
  vec x[SHORT];
  for (; row < end; row += LANES) {
    const int64_t some = least(end - row, LANES);
    take_rows(x, rows->from + row * rows->length, some, rows->length);
    vec so_far = x[0];
    for (int64_t k = 1; k < rows->length; k++) so_far = joined(so_far, x[k], way);
    store_some(rows->to + row, so_far, some);
  }
}

static int64_t rows_in_piece(const Rows *rows) { return WORTH_A_PIECE / rows->length / LANES * LANES; }

static void reduce_some(const void *work, int64_t number) {
  const Rows *rows = work;
  const int64_t row = number * rows_in_piece(rows), end = least(row + rows_in_piece(rows), rows->count);
  switch (rows->way) {
    case SUM: reduce_each(rows, row, end, SUM); break;
    case PRODUCT: reduce_each(rows, row, end, PRODUCT); break;
    case GREATEST: reduce_each(rows, row, end, GREATEST); break;
    default: reduce_each(rows, row, end, LEAST);
  }
}

static void reduce(const Rows *rows, int helpers) {
  const int64_t in_piece = rows_in_piece(rows);
  penstock_share(reduce_some, rows, (rows->count + in_piece - 1) / in_piece, 1, helpers);
}

const OfRows OF_KIND(KIND, reduce) = reduce;
