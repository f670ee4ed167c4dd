/*
 * Sums channel by channel, and rows that numbers by channel are applied to, with vectors of LANES floats; compiled
 * once for each kind of them, as KIND with ``_column_sums``, ``_scale_columns`` and ``_send_back`` after it.
 *
 * Each piece of rows has sums of its own, whatever the threads, and no more rows than add up as exactly as few do.
 */

#include "columns.h"
#include "convolution.h"
#include "kinds.h"
#include "vectors.h"

/* Rows whose numbers are added to each other before they are added to the sums. */
#define AT_ONCE 8

static int64_t end_of(const Columns *c, int64_t number) { return least((number + 1) * c->rows_in_piece, c->count); }

/* -- sums -------------------------------------------------------------------------------------- */

/* Add up the places ``at`` of a few rows: what they are, or the squares of their distances from the means; or what
   others are, and these times the distances of rows from the means. */
static inline void add_places(const Columns *c, int64_t row, int64_t rows, int64_t at, int64_t left, float *sums) {
  const float *from = c->from + row * c->length + at;
  const vec mean = c->mean ? load_some(c->mean + at, left) : all(0.0f);
  vec sum = all(0.0f), product = all(0.0f);
  if (c->other) {
    const float *other = c->other + row * c->length + at;
    for (int64_t i = 0; i < rows; i++) {
      const vec each = load_some(other + i * c->length, left);
      sum += each;
      product += each * (load_some(from + i * c->length, left) - mean);
    }
    float *products = sums + c->length;
    store_some(products + at, load_some(products + at, left) + product, left);
  } else if (c->mean) {
    for (int64_t i = 0; i < rows; i++) {
      const vec far = load_some(from + i * c->length, left) - mean;
      sum += far * far;
    }
  } else {
    for (int64_t i = 0; i < rows; i++) sum += load_some(from + i * c->length, left);
  }
  store_some(sums + at, load_some(sums + at, left) + sum, left);
}

static inline void add_rows(const Columns *c, int64_t row, int64_t rows, float *sums) {
  int64_t at = 0;
  for (; at + LANES <= c->length; at += LANES) add_places(c, row, rows, at, LANES, sums);
  if (at < c->length) add_places(c, row, rows, at, c->length - at, sums);
}

static void some_sums(const void *work, int64_t number) {
  const Columns *c = work;
  const int64_t size = c->length * (c->other ? 2 : 1), end = end_of(c, number);
  float *sums = c->to + number * size;
  memset(sums, 0, (size_t)size * sizeof(float));
  int64_t row = number * c->rows_in_piece;
  for (; row + AT_ONCE <= end; row += AT_ONCE) add_rows(c, row, AT_ONCE, sums);
  if (row < end) add_rows(c, row, end - row, sums);
}

/* -- rows -------------------------------------------------------------------------------------- */

/* Each is rounded where numpy would round. */
static inline void scale_places(const Columns *c, int64_t row, int64_t at, int64_t left) {
  const int64_t place = row * c->length + at;
  const vec far = load_some(c->from + place, left) - load_some(c->mean + at, left);
  const vec scaled = rounded(far * load_some(c->scale + at, left));
  store_some(c->to + place, scaled + load_some(c->offset + at, left), left);
}

/* What others are, less their means and what goes through the variance, times a factor. */
static inline void send_places_back(const Columns *c, int64_t row, int64_t at, int64_t left) {
  const int64_t place = row * c->length + at;
  const vec far = load_some(c->from + place, left) - load_some(c->mean + at, left);
  const vec through = rounded(far * load_some(c->scale + at, left));
  const vec sent = load_some(c->other + place, left) - load_some(c->offset + at, left);
  store_some(c->to + place, (sent - through) * load_some(c->factor + at, left), left);
}

/* Do something with all places of a piece. */
#define EACH_PLACE(DO)                                                                                   \
  const Columns *c = work;                                                                               \
  const int64_t whole = c->length / LANES * LANES, end = end_of(c, number);                              \
  for (int64_t row = number * c->rows_in_piece; row < end; row++) {                                      \
    for (int64_t at = 0; at < whole; at += LANES) DO(c, row, at, LANES);                                 \
    if (whole < c->length) DO(c, row, whole, c->length - whole);                                         \
  }

static void some_scaled(const void *work, int64_t number) { EACH_PLACE(scale_places) }

static void some_sent_back(const void *work, int64_t number) { EACH_PLACE(send_places_back) }

/* -- pieces ------------------------------------------------------------------------------------ */

static void share(Piece piece, const Columns *c, int helpers) {
  penstock_share(piece, c, (c->count + c->rows_in_piece - 1) / c->rows_in_piece, 1, helpers);
}

static void column_sums(const Columns *c, int helpers) { share(some_sums, c, helpers); }
static void scale_columns(const Columns *c, int helpers) { share(some_scaled, c, helpers); }
static void send_back(const Columns *c, int helpers) { share(some_sent_back, c, helpers); }

const OfColumns OF_KIND(KIND, column_sums) = column_sums;
const OfColumns OF_KIND(KIND, scale_columns) = scale_columns;
const OfColumns OF_KIND(KIND, send_back) = send_back;
