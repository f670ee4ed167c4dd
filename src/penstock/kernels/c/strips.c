/*
 * Windows of one channel each, with vectors of LANES floats; compiled once for each kind of them, as KIND with
 * ``_slide`` after it.
 *
 * A strip is one place or four, for one or two vectors of channels, whose sums stay in registers.  Images are read
 * where they are: what windows see beyond their edges is zero, and is multiplied like any other number.  Of windows
 * that networks often have, pixels that neighbouring places see are read once for all of them.
 */

#include "finish.h"
#include "kinds.h"
#include "windows.h"

/* So many products are worth being taken together. */
#define WORTH_TAKING 62500
/* Places of a wide strip. */
#define WIDE 4

static inline int is_inside(int64_t number, int64_t count) { return number >= 0 && number < count; }

/* Where the windows of some neighbouring places begin in an image, or beyond its edges; and where their results do. */
typedef struct {
  const char *image;
  int64_t top, left, at;
} Places;

/* A strip of some places for some channels. */
typedef void (*Strip)(const Convolution *c, const Places *places, int64_t channel);

/* Strips of one place and of WIDE places, of one vector and of two. */
typedef struct {
  Strip narrow[2], wide[2];
} Strips;

/* What windows see in one row, or NULL if that is beyond the edges, times the weights of that: for some places, and
   vectors of channels.  If it is known how many columns a window has, so is the stride; columns are 0 otherwise. */
static inline __attribute__((always_inline)) void add_row(
    const Convolution *c, const char *row, const float *weights, const int wide, const int vecs, const int columns,
    const int stride, vec sum[WIDE][2]) {
  UNROLL for (int j = 0; j < vecs; j++, weights += LANES) {
    const char *seen = row ? row + j * LANES * sizeof(float) : NULL;
    if (columns) {
      UNROLL for (int pixel = 0; pixel < (wide - 1) * stride + columns; pixel++) {
        const vec x = seen ? load((const float *)(seen + pixel * c->column_step)) : all(0);
        UNROLL for (int i = 0; i < wide; i++) {
          const int column = pixel - i * stride;
          if (column >= 0 && column < columns) sum[i][j] = plus_product(sum[i][j], x, load(weights + column * c->depth));
        }
      }
      continue;
    }
    for (int64_t column = 0; column < c->window_columns; column++) {
      const vec weight = load(weights + column * c->depth);
      UNROLL for (int i = 0; i < wide; i++) {
        const int64_t step = column * c->element_column_step + i * c->seen_column_step;
        sum[i][j] = plus_product(sum[i][j], seen ? load((const float *)(seen + step)) : all(0), weight);
      }
    }
  }
}

static inline __attribute__((always_inline)) void finish_places(
    const Convolution *c, const Places *places, int64_t channel, const int wide, const int vecs, vec sum[WIDE][2]) {
  UNROLL for (int j = 0; j < vecs; j++) {
    const Last last = last_of(c, channel + j * LANES, LANES);
    UNROLL for (int i = 0; i < wide; i++)
      finish(&last, sum[i][j], places->at + i * c->count + channel + j * LANES);
  }
}

/* Places whose windows are within the image, but for rows. */
static inline __attribute__((always_inline)) void strip(
    const Convolution *c, const Places *places, int64_t channel, const int wide, const int vecs, const int columns,
    const int stride) {
  vec sum[WIDE][2] = {{{0}}};
  const float *weights = c->filters + channel;
  const char *image = places->image + places->left * c->column_step + channel * sizeof(float);
  for (int64_t row = 0; row < c->window_rows; row++, weights += c->window_columns * c->depth) {
    const int64_t at = places->top + row * c->row_dilation;
    if (is_inside(at, c->image_rows))
      add_row(c, image + at * c->row_step, weights, wide, vecs, columns, stride, sum);
    else
      add_row(c, NULL, weights, wide, vecs, columns, stride, sum);
  }
  finish_places(c, places, channel, wide, vecs, sum);
}

/* What one place sees at an element of its window, for two vectors of channels. */
static inline const float *seen_at(const Convolution *c, const Places *places, int64_t row, int64_t column,
                                   int64_t channel) {
  static const float zeros[2 * LANES];
  const int64_t top = places->top + row * c->row_dilation, left = places->left + column * c->column_dilation;
  if (!is_inside(top, c->image_rows) || !is_inside(left, c->image_columns)) return zeros;
  return (const float *)(places->image + top * c->row_step + left * c->column_step) + channel;
}

/* A place at an edge, of some vectors of channels. */
static inline __attribute__((always_inline)) void strip_at_edge(
    const Convolution *c, const Places *places, int64_t channel, const int vecs) {
  vec sum[WIDE][2] = {{{0}}};
  const float *weights = c->filters + channel;
  for (int64_t row = 0; row < c->window_rows; row++)
    for (int64_t column = 0; column < c->window_columns; column++, weights += c->depth) {
      const float *seen = seen_at(c, places, row, column, channel);
      UNROLL for (int j = 0; j < vecs; j++)
        sum[0][j] = plus_product(sum[0][j], load(seen + j * LANES), load(weights + j * LANES));
    }
  finish_places(c, places, channel, 1, vecs, sum);
}

#define STRIP(NAME, PLACES, VECS, COLUMNS, STRIDE)                                         \
  static void NAME##_##VECS(const Convolution *c, const Places *places, int64_t channel) { \
    strip(c, places, channel, PLACES, VECS, COLUMNS, STRIDE);                              \
  }
#define STRIPS(NAME, COLUMNS, STRIDE)          \
  STRIP(NAME##_narrow, 1, 1, COLUMNS, STRIDE)  \
  STRIP(NAME##_narrow, 1, 2, COLUMNS, STRIDE)  \
  STRIP(NAME##_wide, WIDE, 1, COLUMNS, STRIDE) \
  STRIP(NAME##_wide, WIDE, 2, COLUMNS, STRIDE) \
  static const Strips NAME = {{NAME##_narrow_1, NAME##_narrow_2}, {NAME##_wide_1, NAME##_wide_2}};
STRIPS(any, 0, 0)
STRIPS(three, 3, 1)
STRIPS(three_apart, 3, 2)
STRIPS(five, 5, 1)
STRIPS(five_apart, 5, 2)

static void at_edge_1(const Convolution *c, const Places *places, int64_t channel) {
  strip_at_edge(c, places, channel, 1);
}
static void at_edge_2(const Convolution *c, const Places *places, int64_t channel) {
  strip_at_edge(c, places, channel, 2);
}
static const Strip at_edge[2] = {at_edge_1, at_edge_2};

static const Strips *strips_for(const Convolution *c) {
  if (c->column_dilation > 1 || c->column_stride > 2) return &any;
  const int are_apart = c->column_stride == 2;
  if (c->window_columns == 3) return are_apart ? &three_apart : &three;
  if (c->window_columns == 5) return are_apart ? &five_apart : &five;
  return &any;
}

/* One place and one channel: the first lane of a vector, so that it is rounded as often. */
static void slide_one(const Convolution *c, const Places *places, int64_t channel) {
  const float *weight = c->filters + channel;
  vec sum = all(0);
  for (int64_t row = 0; row < c->window_rows; row++)
    for (int64_t column = 0; column < c->window_columns; column++, weight += c->depth)
      sum = plus_product(sum, all(*seen_at(c, places, row, column, channel)), all(*weight));
  const Last last = last_of(c, channel, 1);
  finish(&last, sum, places->at + channel);
}

/* All channels of some places.  The last vector begins where it ends with the depth. */
static void slide_places(const Convolution *c, const Places *places, const Strip strips[2]) {
  int64_t channel = 0;
  for (; channel + 2 * LANES <= c->depth; channel += 2 * LANES) strips[1](c, places, channel);
  for (; channel < c->depth; channel += LANES)
    strips[0](c, places, channel + LANES > c->depth ? c->depth - LANES : channel);
}

static void slide_piece(const void *work, int64_t number) {
  const Convolution *c = work;
  const Strips *strips = strips_for(c);
  const int64_t row = number % c->rows, stride = c->column_stride;
  Places places = {(const char *)c->images + number / c->rows * c->image_step, row * c->row_stride - c->rows_before,
                   -c->columns_before, number * c->columns * c->count};
  /* Windows that begin before this column end within the image. */
  const int64_t end = c->image_columns - (c->window_columns - 1) * c->column_dilation;
  for (int64_t column = 0, some; column < c->columns; column += some) {
    const int are_inside = places.left >= 0 && places.left < end;
    const int are_wide = are_inside && column + WIDE <= c->columns && places.left + (WIDE - 1) * stride < end;
    some = are_wide && c->depth >= LANES ? WIDE : 1;
    if (c->depth < LANES)
      for (int64_t channel = 0; channel < c->depth; channel++) slide_one(c, &places, channel);
    else
      slide_places(c, &places, are_wide ? strips->wide : are_inside ? strips->narrow : at_edge);
    places.left += some * stride;
    places.at += some * c->count;
  }
}

static void slide(const Convolution *c, int helpers) {
  int64_t products = c->columns * c->depth * c->window_rows * c->window_columns;
  penstock_share(slide_piece, c, c->batch * c->rows, penstock_together(products, WORTH_TAKING), helpers);
}

const OfWindows OF_KIND(KIND, slide) = slide;
