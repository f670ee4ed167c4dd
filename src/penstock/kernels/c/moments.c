/*
 * The sum of rows, their mean and variance, and what these make of rows, with vectors of LANES floats;
 * compiled once for each kind of them, as KIND with ``_sums``, ``_moments`` and ``_normalize`` after it.
 *
 * Thirty-two sums are added up side by side, whatever the vectors, so that all kinds give the same bits;
 * not more than a block's numbers, so that many are added up as exactly as few.
 */

#include <math.h>

#include "convolution.h"
#include "kinds.h"
#include "rows.h"
#include "vectors.h"

/* Numbers that are worth being a piece: some 15 microseconds. */
#define WORTH_A_PIECE 65536
#define WORTH_A_PIECE_NORMALIZED 16384
#define SUMS 32
#define BLOCK 4096
#define VECS (SUMS / LANES)

static float sum_of_block(const float *row, int64_t length) {
  vec sums[VECS];
  for (int i = 0; i < VECS; i++) sums[i] = all(0);
  int64_t at = 0;
  for (; at + SUMS <= length; at += SUMS)
    for (int i = 0; i < VECS; i++) sums[i] += load(row + at + i * LANES);
  for (int i = 0; i < VECS && at < length; i++, at += LANES) sums[i] += load_some(row + at, length - at);
  return added_up(sums, VECS);
}

/* The sum of squares of distances from a mean. */
static float squares_of_block(const float *row, int64_t length, float mean) {
  vec sums[VECS];
  for (int i = 0; i < VECS; i++) sums[i] = all(0);
  int64_t at = 0;
  for (; at + SUMS <= length; at += SUMS)
    for (int i = 0; i < VECS; i++) {
      vec far = load(row + at + i * LANES) - all(mean);
      sums[i] += far * far;
    }
  for (int i = 0; i < VECS && at < length; i++, at += LANES) {
    float rest[LANES] = {0};
    for (int64_t k = 0; k < least(length - at, LANES); k++) rest[k] = row[at + k] - mean;
    vec far = load(rest);
    sums[i] += far * far;
  }
  return added_up(sums, VECS);
}

static float sum_of_row(const float *row, int64_t length) {
  double sum = 0;
  for (int64_t at = 0; at < length; at += BLOCK) sum += sum_of_block(row + at, least(length - at, BLOCK));
  return (float)sum;
}

static float variance_of_row(const float *row, int64_t length, float mean) {
  double sum = 0;
  for (int64_t at = 0; at < length; at += BLOCK)
    sum += squares_of_block(row + at, least(length - at, BLOCK), mean);
  return (float)sum / (float)length;
}

static int64_t rows_in_piece(const Rows *rows) { return 1 + WORTH_A_PIECE / rows->length; }

static void some_moments(const void *work, int64_t number) {
  const Rows *rows = work;
  int64_t row = number * rows_in_piece(rows), end = least(row + rows_in_piece(rows), rows->count);
  for (; row < end; row++) {
    const float *from = rows->from + row * rows->length;
    rows->to[row] = sum_of_row(from, rows->length) / (float)rows->length;
    rows->also_to[row] = variance_of_row(from, rows->length, rows->to[row]);
  }
}

static void some_sums(const void *work, int64_t number) {
  const Rows *rows = work;
  int64_t row = number * rows_in_piece(rows), end = least(row + rows_in_piece(rows), rows->count);
  for (; row < end; row++) rows->to[row] = sum_of_row(rows->from + row * rows->length, rows->length);
}

/* -- normalised rows --------------------------------------------------------------------------- */

/* Each is rounded where the ops would round that the whole stands for. */
static void normalize_row(const Rows *rows, const float *from, float *to, const float *added) {
  const int64_t length = rows->length;
  if (added) {
    for (int64_t at = 0; at < length; at += LANES)
      store_some(to + at, load_some(from + at, length - at) + load_some(added + at, length - at), length - at);
    from = to;
  }
  const float mean = sum_of_row(from, length) / (float)length;
  const vec inverse = all(1.0f / sqrtf(variance_of_row(from, length, mean) + rows->epsilon));
  for (int64_t at = 0; at < length; at += LANES) {
    const int64_t left = length - at;
    const vec x = load_some(from + at, left);
    const vec scale = rows->scale ? load_some(rows->scale + at, left) : all(1.0f);
    /* What changes no number, whatever its sign, is the negative zero. */
    const vec offset = rows->offset ? load_some(rows->offset + at, left) : all(-0.0f);
    if (rows->is_centered) {
      store_some(to + at, rounded(rounded((x - all(mean)) * inverse) * scale) + offset, left);
    } else {
      const vec factor = rounded(inverse * scale);
      store_some(to + at, rounded(x * factor) + (rounded(all(-mean) * factor) + offset), left);
    }
  }
}

static int64_t normalized_in_piece(const Rows *rows) { return 1 + WORTH_A_PIECE_NORMALIZED / rows->length; }

static void some_normalized(const void *work, int64_t number) {
  const Rows *rows = work;
  int64_t row = number * normalized_in_piece(rows), end = least(row + normalized_in_piece(rows), rows->count);
  for (; row < end; row++) {
    int64_t at = row * rows->length;
    normalize_row(rows, rows->from + at, rows->to + at, rows->added ? rows->added + at : 0);
  }
}

/* -- pieces ------------------------------------------------------------------------------------ */

static int64_t pieces(const Rows *rows) { return (rows->count + rows_in_piece(rows) - 1) / rows_in_piece(rows); }

static void moments(const Rows *rows, int helpers) { penstock_share(some_moments, rows, pieces(rows), 1, helpers); }

static void sums(const Rows *rows, int helpers) { penstock_share(some_sums, rows, pieces(rows), 1, helpers); }

static void normalize(const Rows *rows, int helpers) {
  int64_t in_piece = normalized_in_piece(rows);
  penstock_share(some_normalized, rows, (rows->count + in_piece - 1) / in_piece, 1, helpers);
}

const OfRows OF_KIND(KIND, moments) = moments;
const OfRows OF_KIND(KIND, sums) = sums;
const OfRows OF_KIND(KIND, normalize) = normalize;
