/*
 * Pooling with vectors of LANES floats; compiled once for each kind of them, as KIND with ``_pool`` after it.
 *
 * What is beyond the images is left out: a place has its own first and last row and column.
 */

#include <float.h>

#include "convolution.h"
#include "kinds.h"
#include "pooling.h"
#include "vectors.h"

/* A call takes longer than what these do. */
#define ALWAYS_INLINE __attribute__((always_inline)) static inline
/* Channels that are gone through together, and those that a piece of gradients has. */
#define CHANNELS (4 * LANES)
/* Elements of the largest window by whose filters there is a gradient. */
#define LARGEST 64

/* What a place sees: its first element among the images and in the window, and how many rows and columns. */
typedef struct {
  int64_t first, in_window, rows, columns;
} Seen;

static inline Seen seen_by(const Pooling *p, int64_t image, int64_t row, int64_t column) {
  int64_t top = row * p->row_stride - p->rows_before, left = column * p->column_stride - p->columns_before;
  int64_t bottom = least(top + p->window_rows, p->image_rows);
  int64_t right = least(left + p->window_columns, p->image_columns);
  int64_t above = top < 0 ? -top : 0, beside = left < 0 ? -left : 0;
  top += above, left += beside;
  int64_t first = ((image * p->image_rows + top) * p->image_columns + left) * p->depth;
  return (Seen){first, above * p->window_columns + beside, bottom - top, right - left};
}

/* -- the greatest and the mean ------------------------------------------------------------------ */

/* A function for VECS vectors of channels side by side: all that a place sees, joined. */
#define JOINED(NAME, VECS, FIRST, NEXT, LAST)                                                   \
  ALWAYS_INLINE void NAME(const Pooling *p, Seen seen, int64_t channel, float *to, int64_t count) { \
    vec so_far[VECS];                                                                           \
    for (int i = 0; i < VECS; i++) so_far[i] = all(FIRST);                                      \
    for (int64_t row = 0; row < seen.rows; row++) {                                             \
      const float *from = p->images + seen.first + row * p->image_columns * p->depth + channel; \
      for (int64_t column = 0; column < seen.columns; column++, from += p->depth)               \
        for (int i = 0; i < VECS; i++) {                                                        \
          vec x = VECS > 1 ? load(from + i * LANES) : load_some(from, count);                   \
          so_far[i] = NEXT;                                                                     \
        }                                                                                       \
    }                                                                                           \
    for (int i = 0; i < VECS; i++) store_some(to + channel + i * LANES, LAST, count - i * LANES); \
  }
/* NaN is never the greatest, and nothing is less than the least finite number. */
JOINED(greatest_of_1, 1, -FLT_MAX, larger(x, so_far[i]), so_far[i])
JOINED(greatest_of_4, 4, -FLT_MAX, larger(x, so_far[i]), so_far[i])
JOINED(mean_of_1, 1, 0, so_far[i] + x, so_far[i] / all((float)(seen.rows * seen.columns)))
JOINED(mean_of_4, 4, 0, so_far[i] + x, so_far[i] / all((float)(seen.rows * seen.columns)))

/* One row of places.  The last vector ends with the channels, if there are so many. */
static void row_of_places(const void *work, int64_t number) {
  const Pooling *p = work;
  float *to = p->out + number * p->columns * p->depth;
  for (int64_t column = 0; column < p->columns; column++, to += p->depth) {
    Seen seen = seen_by(p, number / p->rows, number % p->rows, column);
    int64_t channel = 0;
    for (; channel + CHANNELS <= p->depth; channel += CHANNELS)
      if (p->way == GREATEST)
        greatest_of_4(p, seen, channel, to, CHANNELS);
      else
        mean_of_4(p, seen, channel, to, CHANNELS);
    for (; channel < p->depth; channel += LANES) {
      if (channel + LANES > p->depth && p->depth >= LANES) channel = p->depth - LANES;
      int64_t count = least(p->depth - channel, LANES);
      if (p->way == GREATEST)
        greatest_of_1(p, seen, channel, to, count);
      else
        mean_of_1(p, seen, channel, to, count);
    }
  }
}

/* -- gradients ---------------------------------------------------------------------------------- */

/* The number of the greatest in its window: the first of equals, and NaN if that comes first. */
ALWAYS_INLINE mask number_of_greatest(const Pooling *p, Seen seen, int64_t channel, int64_t count) {
  vec best = all(0);
  mask number = {0}, now = {0};
  for (int64_t row = 0; row < seen.rows; row++) {
    const float *from = p->images + seen.first + row * p->image_columns * p->depth + channel;
    for (int64_t column = 0; column < seen.columns; column++, from += p->depth, now += 1) {
      vec x = load_some(from, count);
      mask is_better = row || column ? x > best : best == best;
      best = choose(is_better, x, best);
      number = (is_better & now) | (~is_better & number);
    }
  }
  return number;
}

/* Windows that are apart have their elements for themselves, which may be anything before. */
ALWAYS_INLINE void give(const Pooling *p, Seen seen, int64_t channel, int64_t count, int64_t place, int are_apart) {
  vec gradient = load_some(p->gradients + place * p->depth + channel, count);
  mask number = number_of_greatest(p, seen, channel, count), now = {0};
  for (int64_t row = 0; row < seen.rows; row++) {
    float *to = p->out + seen.first + row * p->image_columns * p->depth + channel;
    for (int64_t column = 0; column < seen.columns; column++, to += p->depth, now += 1) {
      vec here = (vec)((mask)gradient & (number == now));
      store_some(to, (are_apart ? all(0) : load_some(to, count)) + here, count);
    }
  }
}

/* What the elements under a window get: the gradient times the window's filters. */
ALWAYS_INLINE void give_times_filters(const Pooling *p, Seen seen, int64_t channel, int64_t count, int64_t place) {
  vec gradient = load_some(p->gradients + place * p->depth + channel, count);
  for (int64_t row = 0; row < seen.rows; row++) {
    float *to = p->out + seen.first + row * p->image_columns * p->depth + channel;
    const float *filter = p->filters + (seen.in_window + row * p->window_columns) * p->depth + channel;
    for (int64_t column = 0; column < seen.columns; column++, to += p->depth, filter += p->depth)
      store_some(to, load_some(to, count) + gradient * load_some(filter, count), count);
  }
}

/* Some channels of one image, for all places in their order. */
static void some_channels(const void *work, int64_t number) {
  const Pooling *p = work;
  int64_t blocks = (p->depth + CHANNELS - 1) / CHANNELS, image = number / blocks;
  int64_t first = number % blocks * CHANNELS, end = least(first + CHANNELS, p->depth);
  int64_t place = image * p->rows * p->columns;
  int are_apart = p->row_stride >= p->window_rows && p->column_stride >= p->window_columns;
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t column = 0; column < p->columns; column++, place++) {
      Seen seen = seen_by(p, image, row, column);
      for (int64_t channel = first; channel < end; channel += LANES) {
        int64_t count = least(end - channel, LANES);
        if (p->way == GRADIENT_OF_IMAGES)
          give_times_filters(p, seen, channel, count, place);
        else
          give(p, seen, channel, count, place, are_apart);
      }
    }
}

/* -- the gradient of a mean ---------------------------------------------------------------------- */

/* Gradients of one row of places, in as many parts as each place sees elements. */
static void parts_of_row(const void *work, int64_t number) {
  const Pooling *p = work;
  const float *from = p->gradients + number * p->columns * p->depth;
  float *to = p->parts + number * p->columns * p->depth;
  for (int64_t column = 0; column < p->columns; column++, from += p->depth, to += p->depth) {
    const Seen seen = seen_by(p, number / p->rows, number % p->rows, column);
    const vec parts = all((float)(seen.rows * seen.columns));
    for (int64_t channel = 0; channel < p->depth; channel += LANES) {
      const int64_t count = least(p->depth - channel, LANES);
      store_some(to + channel, load_some(from + channel, count) / parts, count);
    }
  }
}

/* From the first place along a dimension that sees an element to behind the last. */
typedef struct {
  int64_t first, end;
} Places;

static inline Places places_of(int64_t element, int64_t before, int64_t window, int64_t stride, int64_t places) {
  const int64_t missed = element + before - window + stride;
  return (Places){missed < 0 ? 0 : missed / stride, least((element + before) / stride + 1, places)};
}

/* What an element gets of all places that see it, which are those of some rows and columns. */
#define COLLECTED(NAME, VECS)                                                                               \
  ALWAYS_INLINE void NAME(const Pooling *p, int64_t image, Places rows, Places columns, int64_t channel,    \
                          float *to, int64_t count) {                                                       \
    vec sum[VECS];                                                                                          \
    for (int i = 0; i < VECS; i++) sum[i] = all(0);                                                         \
    for (int64_t row = rows.first; row < rows.end; row++) {                                                 \
      const int64_t place = (image * p->rows + row) * p->columns + columns.first;                           \
      const float *from = p->parts + place * p->depth + channel;                                            \
      for (int64_t column = columns.first; column < columns.end; column++, from += p->depth)                \
        for (int i = 0; i < VECS; i++) sum[i] += VECS > 1 ? load(from + i * LANES) : load_some(from, count);\
    }                                                                                                       \
    for (int i = 0; i < VECS; i++) store_some(to + channel + i * LANES, sum[i], count - i * LANES);         \
  }
COLLECTED(collected_1, 1)
COLLECTED(collected_4, 4)

static void row_of_elements(const void *work, int64_t number) {
  const Pooling *p = work;
  const int64_t image = number / p->image_rows, row = number % p->image_rows;
  const Places rows = places_of(row, p->rows_before, p->window_rows, p->row_stride, p->rows);
  float *to = p->out + number * p->image_columns * p->depth;
  for (int64_t column = 0; column < p->image_columns; column++, to += p->depth) {
    const Places columns =
        places_of(column, p->columns_before, p->window_columns, p->column_stride, p->columns);
    int64_t channel = 0;
    for (; channel + CHANNELS <= p->depth; channel += CHANNELS)
      collected_4(p, image, rows, columns, channel, to, CHANNELS);
    for (; channel < p->depth; channel += LANES)
      collected_1(p, image, rows, columns, channel, to, least(p->depth - channel, LANES));
  }
}

/* -- the gradient of filters --------------------------------------------------------------------- */

/* The filters of a vector of channels: for each element of the window what it saw times the gradients.
   Rows of places are added up by themselves first. */
static void filters_of_channels(const void *work, int64_t number) {
  const Pooling *p = work;
  int64_t channel = number * LANES, count = least(p->depth - channel, LANES), place = 0;
  int64_t elements = p->window_rows * p->window_columns;
  vec total[LARGEST], sum[LARGEST];
  for (int64_t i = 0; i < elements; i++) total[i] = all(0);
  for (int64_t image = 0; image < p->batch; image++)
    for (int64_t row = 0; row < p->rows; row++) {
      for (int64_t i = 0; i < elements; i++) sum[i] = all(0);
      for (int64_t column = 0; column < p->columns; column++, place++) {
        Seen seen = seen_by(p, image, row, column);
        vec gradient = load_some(p->gradients + place * p->depth + channel, count);
        for (int64_t r = 0; r < seen.rows; r++) {
          const float *from = p->images + seen.first + r * p->image_columns * p->depth + channel;
          vec *to = sum + seen.in_window + r * p->window_columns;
          for (int64_t c = 0; c < seen.columns; c++) to[c] += load_some(from + c * p->depth, count) * gradient;
        }
      }
      for (int64_t i = 0; i < elements; i++) total[i] += sum[i];
    }
  for (int64_t i = 0; i < elements; i++) store_some(p->out + i * p->depth + channel, total[i], count);
}

/* Rows, of places that see so many elements each, that are worth being taken by a thread: some 10 microseconds. */
static int64_t rows_together(const Pooling *p, int64_t columns, int64_t seen) {
  return penstock_together(columns * ((p->depth + LANES - 1) / LANES) * seen, 1000);
}

static void pool(const Pooling *p, int helpers) {
  const int64_t seen = p->window_rows * p->window_columns;
  if (p->way == GREATEST || p->way == MEAN) {
    penstock_share(row_of_places, p, p->batch * p->rows, rows_together(p, p->columns, seen), helpers);
  } else if (p->way == GRADIENT_OF_MEAN) {
    penstock_share(parts_of_row, p, p->batch * p->rows, rows_together(p, p->columns, 1), helpers);
    penstock_share(row_of_elements, p, p->batch * p->image_rows, rows_together(p, p->image_columns, 1), helpers);
  } else if (p->way == GRADIENT_OF_FILTERS) {
    penstock_share(filters_of_channels, p, (p->depth + LANES - 1) / LANES, 1, helpers);
  } else {
    penstock_share(some_channels, p, p->batch * ((p->depth + CHANNELS - 1) / CHANNELS), 1, helpers);
  }
}

const Pool OF_KIND(KIND, pool) = pool;
