/*
 * Gradients of filters: what elements of all windows saw times the gradients of their places, with vectors of
 * LANES floats; compiled once for each kind of them, as KIND with ``_correlate`` after it.
 *
 * A tile is a few numbers that lie side by side in images, times one or two vectors of gradients, whose sums over
 * places stay in registers.
 */

#include "finish.h"
#include "kinds.h"
#include "windows.h"

/* Places whose products are added up before their sum is added to that of all: what they saw, and their
   gradients, stay in a cache meanwhile. */
#define PLACES 256
/* So many groups of tiles for each thread. */
#define GROUPS 2

/* Some rows of places, whole ones or a part of each. */
typedef struct {
  int64_t row, end_row, column, columns;
} Places;

/*
 * What WIDE neighbouring numbers of the images saw at some places, times VECS vectors of gradients.  Where
 * there are fewer gradients than a vector has, those of the next place are beside them, and not stored.
 */
#define GRADIENT(WIDE, VECS)                                                                        \
  static void gradient_##WIDE##_##VECS(const Convolution *c, const char *seen, const Places *at,    \
                                       int64_t filter, float *out, int64_t count) {                 \
    const float *end = c->filters + c->batch * c->rows * c->columns * c->count;                     \
    vec sum[WIDE][VECS];                                                                            \
    UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < VECS; j++) sum[i][j] = all(0); \
    for (int64_t row = at->row; row < at->end_row; row++) {                                         \
      const char *p = seen + row / c->rows * c->seen_image_step + row % c->rows * c->seen_row_step + \
                      at->column * c->seen_column_step;                                             \
      const float *grads = c->filters + (row * c->columns + at->column) * c->count + filter;        \
      for (int64_t i = 0; i < at->columns; i++, p += c->seen_column_step, grads += c->count) {      \
        vec grad[VECS];                                                                             \
        UNROLL for (int j = 0; j < VECS; j++)                                                       \
          grad[j] = VECS > 1 ? load(grads + j * LANES) : load_some(grads, end - grads);             \
        UNROLL for (int k = 0; k < WIDE; k++) {                                                     \
          vec value = all(*(const float *)(p + 4 * k));                                             \
          UNROLL for (int j = 0; j < VECS; j++) sum[k][j] += value * grad[j];                       \
        }                                                                                           \
      }                                                                                             \
    }                                                                                               \
    const int is_first = at->row == 0 && at->column == 0;                                           \
    UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < VECS; j++) {                   \
      float *to = out + i * c->count + j * LANES;                                                   \
      int64_t some = count - j * LANES;                                                             \
      store_some(to, is_first ? sum[i][j] : load_some(to, some) + sum[i][j], some);                 \
    }                                                                                               \
  }

#define GRADIENTS(WIDE) GRADIENT(WIDE, 1) GRADIENT(WIDE, 2)
GRADIENTS(1) GRADIENTS(2) GRADIENTS(3) GRADIENTS(4) GRADIENTS(5) GRADIENTS(6)
#if LANES == 16
GRADIENTS(7) GRADIENTS(8) GRADIENTS(9) GRADIENTS(10) GRADIENTS(11) GRADIENTS(12) GRADIENTS(13) GRADIENTS(14)
#endif

typedef void (*Gradient)(const Convolution *, const char *, const Places *, int64_t, float *, int64_t);
#define GRADIENT_PAIR(WIDE) {gradient_##WIDE##_1, gradient_##WIDE##_2}
/* By width less one, and by vectors less one. */
static const Gradient GRADIENT_OF[][2] = {
    GRADIENT_PAIR(1), GRADIENT_PAIR(2), GRADIENT_PAIR(3),
    GRADIENT_PAIR(4), GRADIENT_PAIR(5), GRADIENT_PAIR(6),
#if LANES == 16
    GRADIENT_PAIR(7), GRADIENT_PAIR(8), GRADIENT_PAIR(9), GRADIENT_PAIR(10),
    GRADIENT_PAIR(11), GRADIENT_PAIR(12), GRADIENT_PAIR(13), GRADIENT_PAIR(14),
#endif
};

/* How filters fall into tiles, numbers that lie side by side in images, some at a time, by vectors; and these
   into groups, of which each is a piece. */
typedef struct {
  const Convolution *convolution;
  /* A run is what a window sees of a row of places, or of one if there are others between them. */
  int64_t run, runs_in_row, tiles_in_run, blocks, tiles, tiles_in_group;
} Filters;

static void filters_tile(const Filters *f, int64_t number, const Places *places) {
  const Convolution *c = f->convolution;
  int64_t filter = number % f->blocks * BLOCK, tile = number / f->blocks;
  int64_t run = tile / f->tiles_in_run, in_run = tile % f->tiles_in_run;
  int64_t width = f->run / f->tiles_in_run, wider = f->run % f->tiles_in_run;
  int64_t element = in_run * width + least(in_run, wider);
  const char *seen = seen_from(c) + run / f->runs_in_row * c->element_row_step +
                     run % f->runs_in_row * c->element_column_step + element * 4;
  float *out = c->out + (run * f->run + element) * c->count;
  const Gradient *gradient = GRADIENT_OF[width + (in_run < wider) - 1];
  int64_t left = c->count - filter;
  if (left >= BLOCK)
    gradient[1](c, seen, places, filter, out + filter, BLOCK);
  else
    for (; left > 0; filter += LANES, left -= LANES)
      gradient[0](c, seen, places, filter, out + filter, least(left, LANES));
}

static void filters_piece(const void *work, int64_t number) {
  const Filters *f = work;
  const Convolution *c = f->convolution;
  const int64_t rows = c->batch * c->rows, begin = number * f->tiles_in_group;
  const int64_t end = least(begin + f->tiles_in_group, f->tiles), rows_together = (PLACES - 1) / c->columns + 1;
  for (int64_t row = 0; row < rows; row += rows_together)
    for (int64_t column = 0; column < c->columns; column += PLACES) {
      Places places = {row, least(row + rows_together, rows), column, least(c->columns - column, PLACES)};
      for (int64_t tile = begin; tile < end; tile++) filters_tile(f, tile, &places);
    }
}

static void correlate(const Convolution *c, int helpers) {
  int is_row = c->element_column_step == c->depth * (int64_t)sizeof(float);
  Filters f = {.convolution = c, .run = c->depth * (is_row ? c->window_columns : 1)};
  f.runs_in_row = is_row ? 1 : c->window_columns;
  f.tiles_in_run = (f.run + WIDEST - 1) / WIDEST;
  f.blocks = (c->count + BLOCK - 1) / BLOCK;
  f.tiles = c->window_rows * f.runs_in_row * f.tiles_in_run * f.blocks;
  int64_t products = c->batch * c->rows * c->columns * (f.run / f.tiles_in_run) * BLOCK;
  int64_t groups = least(f.tiles, GROUPS * (helpers + 1));
  f.tiles_in_group = (f.tiles + groups - 1) / groups;
  if (f.tiles_in_group < penstock_together(products, WORTH_A_PIECE))
    f.tiles_in_group = penstock_together(products, WORTH_A_PIECE);
  penstock_share(filters_piece, &f, (f.tiles + f.tiles_in_group - 1) / f.tiles_in_group, 1, helpers);
}

const OfWindows OF_KIND(KIND, correlate) = correlate;
