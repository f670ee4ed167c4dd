/*
 * The softmax of rows, with vectors of LANES floats; compiled once for each kind of them, as KIND with
 * ``_softmax`` after it.
 *
 * Sixteen sums are added up side by side, whatever the vectors, so that all kinds give the same bits.
 */

#include <math.h>

#include "convolution.h"
#include "functions.h"
#include "rows.h"

/* Numbers that are worth being a piece: some 15 microseconds. */
#define WORTH_A_PIECE 16384
#define SUMS 16
#define VECS (SUMS / LANES)

/* Numbers from a place on, with something else for those that are not of the row. */
static inline vec of_row(const float *row, int64_t at, int64_t length, float otherwise) {
  if (at + LANES <= length) return load(row + at);
  vec some = all(otherwise);
  if (at < length) memcpy(&some, row + at, (size_t)(length - at) * sizeof(float));
  return some;
}

static void softmax_of_row(const float *row, float *to, int64_t length) {
  vec most = all(-INFINITY), sums[VECS];
  for (int64_t at = 0; at < length; at += LANES) most = maximum(of_row(row, at, length, -INFINITY), most);
  float largest = most[0];
  for (int i = 1; i < LANES; i++) largest = most[i] > largest || most[i] != most[i] ? most[i] : largest;
  for (int i = 0; i < VECS; i++) sums[i] = all(0);
  for (int64_t at = 0; at < length; at += SUMS)
    for (int i = 0; i < VECS && at + i * LANES < length; i++) {
      int64_t here = at + i * LANES;
      vec power = exp_of(of_row(row, here, length, -INFINITY) - all(largest));
      store_some(to + here, power, length - here);
      sums[i] += of_row(to, here, length, 0);
    }
  float parts[SUMS];
  memcpy(parts, sums, sizeof parts);
  for (int half = SUMS / 2; half; half /= 2)
    for (int i = 0; i < half; i++) parts[i] += parts[i + half];
  for (int64_t at = 0; at < length; at += LANES)
    store_some(to + at, of_row(to, at, length, 0) / all(parts[0]), length - at);
}

static int64_t rows_in_piece(const Rows *rows) { return 1 + WORTH_A_PIECE / rows->length; }

static void some_rows(const void *work, int64_t number) {
  const Rows *rows = work;
  int64_t row = number * rows_in_piece(rows), end = least(row + rows_in_piece(rows), rows->count);
  for (; row < end; row++) softmax_of_row(rows->from + row * rows->length, rows->to + row * rows->length, rows->length);
}

static void softmax(const Rows *rows, int helpers) {
  penstock_share(some_rows, rows, (rows->count + rows_in_piece(rows) - 1) / rows_in_piece(rows), 1, helpers);
}

#define JOIN(KIND) KIND##_softmax
#define NAMED(KIND) JOIN(KIND)
const OfRows NAMED(KIND) = softmax;
