/*
 * The softmax of rows, its logarithm, and what else the loss of a prediction takes, with vectors of LANES floats;
 * compiled once for each kind of them, as KIND with ``_softmax``, ``_log_softmax`` and ``_prediction`` after it.
 *
 * Sixteen sums of a row are added up side by side, whatever the vectors, so that all kinds give the same bits; of a
 * short one they are added up first to last, for several rows at once.
 */

#include <math.h>

#include "convolution.h"
#include "functions.h"
#include "kinds.h"
#include "lanes.h"
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

static float largest_of(const float *row, int64_t length) {
  vec most = all(-INFINITY);
  for (int64_t at = 0; at < length; at += LANES) most = maximum(of_row(row, at, length, -INFINITY), most);
  float largest = most[0];
  for (int i = 1; i < LANES; i++) largest = most[i] > largest || most[i] != most[i] ? most[i] : largest;
  return largest;
}

static void divide(float *row, int64_t length, float by) {
  for (int64_t at = 0; at < length; at += LANES) store_some(row + at, of_row(row, at, length, 0) / all(by), length - at);
}

/* Of a row times a factor, which is rounded for itself; the largest number stays the largest. */
static void softmax_of_row(const float *row, float *to, int64_t length, float factor) {
  float largest = largest_of(row, length) * factor;
  vec sums[VECS];
  for (int i = 0; i < VECS; i++) sums[i] = all(0);
  for (int64_t at = 0; at < length; at += SUMS)
    for (int i = 0; i < VECS && at + i * LANES < length; i++) {
      int64_t here = at + i * LANES;
      vec power = exp_of(rounded(of_row(row, here, length, -INFINITY) * all(factor)) - all(largest));
      store_some(to + here, power, length - here);
      sums[i] += of_row(to, here, length, 0);
    }
  divide(to, length, added_up(sums, VECS));
}

static void log_softmax_of_row(const float *row, float *to, int64_t length) {
  float largest = largest_of(row, length);
  vec sums[VECS];
  for (int i = 0; i < VECS; i++) sums[i] = all(0);
  for (int64_t at = 0; at < length; at += SUMS)
    for (int i = 0; i < VECS && at + i * LANES < length; i++) {
      int64_t here = at + i * LANES;
      vec log = of_row(row, here, length, -INFINITY) - all(largest);
      store_some(to + here, log, length - here);
      sums[i] += exp_of(log);
    }
  vec total = log_of(all(added_up(sums, VECS)));
  for (int64_t at = 0; at < length; at += LANES) store_some(to + at, of_row(to, at, length, 0) - total, length - at);
}

/* -- predictions ------------------------------------------------------------------------------- */

/* Numbers that TensorFlow adds up side by side, and how many such groups. */
#define EIGHT 8
#define TOGETHER 4

static void add_eight(float *sums, const float *more) {
  for (int i = 0; i < EIGHT; i++) sums[i] += more[i];
}

/* A row's sum in TensorFlow's order, since the loss of a sure prediction is the rounding of this sum: of each
   four groups of eight numbers one, these four sums, the groups that are left, and what is less than a group. */
static float total_of(const float *row, int64_t length) {
  const int64_t whole = length - length % EIGHT, together = whole - whole % (TOGETHER * EIGHT);
  float four[TOGETHER][EIGHT] = {{0}}, *sums = four[0];
  int64_t at = 0;
  for (; at < together; at += EIGHT) add_eight(four[at / EIGHT % TOGETHER], row + at);
  for (int i = 1; i < TOGETHER; i++) add_eight(sums, four[i]);
  for (; at < whole; at += EIGHT) add_eight(sums, row + at);
  for (int half = EIGHT / 2; half; half /= 2)
    for (int i = 0; i < half; i++) sums[i] += sums[i + half];
  float rest = 0;
  for (; at < length; at++) rest += row[at];
  return sums[0] + rest;
}

/* The softmax; and the total of the powers, and the largest number. */
static void predict_row(const float *row, float *to, int64_t length, float *numbers) {
  float largest = largest_of(row, length);
  for (int64_t at = 0; at < length; at += LANES)
    store_some(to + at, exp_of(of_row(row, at, length, -INFINITY) - all(largest)), length - at);
  numbers[0] = total_of(to, length);
  numbers[1] = largest;
  divide(to, length, numbers[0]);
}

/* -- short rows --------------------------------------------------------------------------------- */

/* The largest number of each row. */
static vec largest_of_short(const vec *x, int64_t length) {
  vec largest = x[0];
  for (int64_t k = 1; k < length; k++) largest = maximum(x[k], largest);
  return largest;
}

static void softmax_of_short(const float *from, float *to, int64_t rows, int64_t length, float factor) {
  vec x[SHORT], sum = all(0);
  take_rows(x, from, rows, length);
  const vec largest = rounded(largest_of_short(x, length) * all(factor));
  for (int64_t k = 0; k < length; k++) sum += x[k] = exp_of(rounded(x[k] * all(factor)) - largest);
  for (int64_t k = 0; k < length; k++) x[k] /= sum;
  give_rows(to, x, rows, length);
}

static void log_softmax_of_short(const float *from, float *to, int64_t rows, int64_t length) {
  vec x[SHORT], sum = all(0);
  take_rows(x, from, rows, length);
  const vec largest = largest_of_short(x, length);
  for (int64_t k = 0; k < length; k++) sum += exp_of(x[k] -= largest);
  const vec total = log_of(sum);
  for (int64_t k = 0; k < length; k++) x[k] -= total;
  give_rows(to, x, rows, length);
}

/* As ``total_of`` adds up. */
static vec total_of_short(const vec *x, int64_t length) {
  const int64_t whole = length - length % EIGHT;
  vec sums[EIGHT] = {{0}}, rest = all(0);
  for (int64_t k = 0; k < whole; k++) sums[k % EIGHT] += x[k];
  for (int half = EIGHT / 2; half; half /= 2)
    for (int i = 0; i < half; i++) sums[i] += sums[i + half];
  for (int64_t k = whole; k < length; k++) rest += x[k];
  return sums[0] + rest;
}

static void predict_short(const float *from, float *to, int64_t rows, int64_t length, float *numbers) {
  vec x[SHORT];
  take_rows(x, from, rows, length);
  const vec largest = largest_of_short(x, length);
  for (int64_t k = 0; k < length; k++) x[k] = exp_of(x[k] - largest);
  const vec total = total_of_short(x, length);
  for (int64_t k = 0; k < length; k++) x[k] /= total;
  for (int64_t i = 0; i < rows; i++) numbers[2 * i] = total[i], numbers[2 * i + 1] = largest[i];
  give_rows(to, x, rows, length);
}

/* -- pieces ------------------------------------------------------------------------------------ */

static int64_t rows_in_piece(const Rows *rows) { return LANES + WORTH_A_PIECE / rows->length / LANES * LANES; }

/* Do something with each row of a piece, or with as many short ones as there are lanes. */
#define EACH_ROW(SHORT_ROWS, ROW)                                                                     \
  const Rows *rows = work;                                                                            \
  const int64_t length = rows->length;                                                                \
  int64_t row = number * rows_in_piece(rows), end = least(row + rows_in_piece(rows), rows->count);    \
  for (int64_t some; row < end; row += some) {                                                        \
    const float *from = rows->from + row * length;                                                    \
    float *to = rows->to + row * length;                                                              \
    some = length < SHORT ? least(end - row, LANES) : 1;                                              \
    if (length < SHORT)                                                                               \
      SHORT_ROWS;                                                                                     \
    else                                                                                              \
      ROW;                                                                                            \
  }

static void some_rows(const void *work, int64_t number) {
  EACH_ROW(softmax_of_short(from, to, some, length, rows->factor), softmax_of_row(from, to, length, rows->factor))
}

static void some_log_rows(const void *work, int64_t number) {
  EACH_ROW(log_softmax_of_short(from, to, some, length), log_softmax_of_row(from, to, length))
}

static void some_predictions(const void *work, int64_t number) {
  EACH_ROW(predict_short(from, to, some, length, rows->also_to + 2 * row),
           predict_row(from, to, length, rows->also_to + 2 * row))
}

static int64_t pieces(const Rows *rows) { return (rows->count + rows_in_piece(rows) - 1) / rows_in_piece(rows); }

static void softmax(const Rows *rows, int helpers) { penstock_share(some_rows, rows, pieces(rows), 1, helpers); }

static void log_softmax(const Rows *rows, int helpers) {
  penstock_share(some_log_rows, rows, pieces(rows), 1, helpers);
}

static void prediction(const Rows *rows, int helpers) {
  penstock_share(some_predictions, rows, pieces(rows), 1, helpers);
}

const OfRows OF_KIND(KIND, softmax) = softmax;
const OfRows OF_KIND(KIND, log_softmax) = log_softmax;
const OfRows OF_KIND(KIND, prediction) = prediction;
