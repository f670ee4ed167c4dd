/*
 * Windows of one channel each, with vectors of LANES floats; compiled once for each kind of them, as KIND with
 * ``_slide`` after it.
 *
 * A strip is one place or four, for one or two vectors of channels, whose sums stay in registers.
 */

#include "finish.h"
#include "kinds.h"
#include "windows.h"

/* So many products are worth being taken together. */
#define WORTH_TAKING 62500

#define STRIP(WIDE, VECS)                                                                           \
  static void strip_##WIDE##_##VECS(const Convolution *c, const char *seen, int64_t at,             \
                                    int64_t channel) {                                              \
    const float *weights = c->filters + channel;                                                    \
    vec sum[WIDE][VECS];                                                                            \
    UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < VECS; j++) sum[i][j] = all(0); \
    for (int64_t row = 0; row < c->window_rows; row++)                                              \
      for (int64_t column = 0; column < c->window_columns; column++, weights += c->depth) {         \
        const char *p = seen + row * c->element_row_step + column * c->element_column_step;         \
        UNROLL for (int j = 0; j < VECS; j++) {                                                     \
          vec weight = load(weights + j * LANES);                                                   \
          UNROLL for (int i = 0; i < WIDE; i++)                                                     \
            sum[i][j] += load((const float *)(p + i * c->seen_column_step) + j * LANES) * weight;   \
        }                                                                                           \
      }                                                                                             \
    UNROLL for (int j = 0; j < VECS; j++) {                                                         \
      const Last last = last_of(c, channel + j * LANES, LANES);                                     \
      UNROLL for (int i = 0; i < WIDE; i++) finish(&last, sum[i][j], at + i * c->count + j * LANES); \
    }                                                                                               \
  }
STRIP(1, 1) STRIP(1, 2) STRIP(4, 1) STRIP(4, 2)

/* The same for one place and one channel, in the same order. */
static void slide_one(const Convolution *c, const char *seen, int64_t at, int64_t channel) {
  float sum = 0;
  for (int64_t row = 0; row < c->window_rows; row++)
    for (int64_t column = 0; column < c->window_columns; column++) {
      const char *p = seen + row * c->element_row_step + column * c->element_column_step;
      sum += *(const float *)p * c->filters[(row * c->window_columns + column) * c->depth + channel];
    }
  const Last last = last_of(c, channel, 1);
  finish(&last, all(sum), at);
}

/* Four places, or one, for all channels.  The last vector begins where it ends with the depth. */
static void strip(const Convolution *c, const char *seen, int64_t at, int is_wide) {
  int64_t channel = 0;
  for (; channel + 2 * LANES <= c->depth; channel += 2 * LANES)
    (is_wide ? strip_4_2 : strip_1_2)(c, seen + channel * 4, at + channel, channel);
  for (; channel < c->depth; channel += LANES) {
    if (channel + LANES > c->depth) channel = c->depth - LANES;
    (is_wide ? strip_4_1 : strip_1_1)(c, seen + channel * 4, at + channel, channel);
  }
}

static void slide_piece(const void *work, int64_t number) {
  const Convolution *c = work;
  const char *seen = seen_from(c) + number / c->rows * c->seen_image_step + number % c->rows * c->seen_row_step;
  int64_t at = number * c->columns * c->count;
  for (int64_t column = 0; column < c->columns;) {
    int is_wide = column + 4 <= c->columns;
    if (c->depth >= LANES)
      strip(c, seen, at, is_wide);
    else
      for (int64_t i = 0; i < (is_wide ? 4 : 1); i++)
        for (int64_t channel = 0; channel < c->depth; channel++)
          slide_one(c, seen + i * c->seen_column_step + channel * 4, at + i * c->count + channel, channel);
    column += is_wide ? 4 : 1;
    seen += (is_wide ? 4 : 1) * c->seen_column_step;
    at += (is_wide ? 4 : 1) * c->count;
  }
}

static void slide(const Convolution *c, int helpers) {
  int64_t products = c->columns * c->depth * c->window_rows * c->window_columns;
  penstock_share(slide_piece, c, c->batch * c->rows, penstock_together(products, WORTH_TAKING), helpers);
}

const OfWindows OF_KIND(KIND, slide) = slide;
