/*
 * Convolutions with vectors of LANES floats; compiled once for each kind of them, as KIND with ``_tiles``
 * after it.
 *
 * A result is one running sum over rows, columns and depth of its window, in this order, whichever
 * tile it is part of, or two of them for sixteen filters or fewer (see below): kinds with fused
 * multiplication give the same bits, on any number of threads.
 *
 * A tile is a few neighbouring places, times one or two vectors of filters: its sums stay in registers
 * while the window is gone through, for each element of which the weights are read once.  Images are
 * read where they are, or where they were put first.  The processor's second cache keeps the weights of
 * a block from tile to tile; meanwhile those of the block that comes after it are fetched, of which each
 * tile asks for some.
 */

#include <math.h>

#include "finish.h"
#include "kinds.h"
#include "winograd.h"

#define UNROLL _Pragma("GCC unroll 16")
/* So many products are worth being a piece: some 15 microseconds. */
#define WORTH_A_PIECE 500000
/* Fewer numbers are packed by one thread; no more are packed by whoever needs them first, since weights
   that are packed before come from far away, but in time. */
#define SHARED 65536
#define MOST_IN_PIECES 262144
/* With fewer tiles than that, a block is one piece if there are so many for each thread: then each
   thread reads its weights once, and knows which come next. */
#define FEW_TILES 24
#define MANY_BLOCKS 8
/* Bytes that are fetched at a time, and for how many elements once: the weights of a block are asked
   for by eight of its tiles. */
#define LINE 64
#define BETWEEN_LINES 4

static inline const char *seen_from(const Convolution *c) {
  return (const char *)(c->framed ? c->framed : c->images);
}

/* -- windows over all of the depth ---------------------------------------------------------- */

/* A function for WIDE places and VECS vectors of filters; three places share a pointer. */
#define TILE(WIDE, VECS)                                                                            \
  static void tile_##WIDE##_##VECS(const Convolution *c, const char *seen, const float *filters,    \
                                   int64_t at, int64_t filter, int64_t count, const char *ahead) {  \
    const int64_t step = c->seen_column_step, depth = c->depth;                                     \
    vec sum[WIDE][VECS];                                                                            \
    UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < VECS; j++) sum[i][j] = all(0); \
    for (int64_t row = 0; row < c->window_rows; row++)                                              \
      for (int64_t column = 0; column < c->window_columns; column++) {                              \
        const char *p0 = seen + row * c->element_row_step + column * c->element_column_step;        \
        const char *p3 = p0 + 3 * step, *p6 = p3 + 3 * step, *p9 = p6 + 3 * step;                   \
        const char *p12 = p9 + 3 * step;                                                            \
        for (int64_t d = 0; d < depth; d++) {                                                       \
          if (d % BETWEEN_LINES == 0) __builtin_prefetch(ahead + d * (LINE / BETWEEN_LINES), 0, 2);  \
          vec weight[VECS];                                                                         \
          UNROLL for (int j = 0; j < VECS; j++) weight[j] = load(filters + j * LANES);              \
          filters += VECS * LANES;                                                                  \
          UNROLL for (int i = 0; i < WIDE; i++) {                                                   \
            const char *near = i < 3 ? p0 : i < 6 ? p3 : i < 9 ? p6 : i < 12 ? p9 : p12;            \
            vec value = all(*(const float *)(near + i % 3 * step));                                 \
            UNROLL for (int j = 0; j < VECS; j++) sum[i][j] += value * weight[j];                   \
          }                                                                                         \
          p0 += 4, p3 += 4, p6 += 4, p9 += 4, p12 += 4;                                             \
        }                                                                                           \
        ahead += depth * (LINE / BETWEEN_LINES);                                                    \
      }                                                                                             \
    UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < VECS; j++)                     \
      if (count > j * LANES)                                                                        \
        finish(c, sum[i][j], at + i * c->count + j * LANES, filter + j * LANES, count - j * LANES); \
  }

#define TILES(WIDE) TILE(WIDE, 1) TILE(WIDE, 2)
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#if LANES == 16 /* which comes with 32 registers */
TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
#endif

typedef void (*Tile)(const Convolution *, const char *, const float *, int64_t, int64_t, int64_t,
                     const char *);
#define PAIR(WIDE) {tile_##WIDE##_1, tile_##WIDE##_2}
/* By width less one, and by vectors less one. */
static const Tile TILE_OF[][2] = {
    PAIR(1), PAIR(2), PAIR(3), PAIR(4), PAIR(5), PAIR(6),
#if LANES == 16
    PAIR(7), PAIR(8), PAIR(9), PAIR(10), PAIR(11), PAIR(12), PAIR(13), PAIR(14),
#endif
};
#define WIDEST ((int64_t)(sizeof TILE_OF / sizeof *TILE_OF))

/* -- a few filters ---------------------------------------------------------------------------- */

/*
 * With one vector of filters, each product needs a number of the image in all lanes, which takes as long
 * as two products.  So two neighbouring numbers are taken at a time, in lanes by turns: a vector of
 * weights has those of both for half of the filters.  Each result is the sum of two: over numbers of even
 * and of odd depth; with shorter vectors, too, so that they give the same bits.
 */
#define FEW 16
#if LANES >= 8
static int is_few(int64_t depth, int64_t filter, int64_t count) {
  return depth % 2 == 0 && filter % (2 * FEW) == 0 && count - filter <= FEW;
}
#else
static int is_few(int64_t depth, int64_t filter, int64_t count) {
  (void)depth, (void)filter, (void)count;
  return 0;
}
#endif

#if LANES == 16
/* Both numbers in one pass: the first vector has sums of filters 0, 2, 4 ..., the second of 1, 3, 5 ... */
#define PASSES 1
typedef uint64_t pairs __attribute__((vector_size(4 * LANES)));

static inline vec numbers_at(const char *near) {
  uint64_t both;
  memcpy(&both, near, sizeof both);
  return (vec)(both - (pairs){0});
}

/* Each pair of sums is added up in the lane that is its filter's. */
static inline vec even_and_odd(const vec *kept, const vec *sum, int j) {
  (void)kept, (void)j;
  const mask is_low = (mask)((pairs){0} + 0xffffffff);
  vec low = sum[0] + (vec)((pairs)sum[0] >> 32), high = (vec)((pairs)sum[1] << 32) + sum[1];
  return choose(is_low, low, high);
}

/* Where the weight of an element for a filter is, among those of two elements. */
static int64_t place_of(int64_t element, int64_t filter) {
  return filter % 2 * FEW + filter / 2 * 2 + element % 2;
}
#else
/* One number after the other: numbers of even depth first, whose sums are kept. */
#define PASSES 2
static inline vec numbers_at(const char *near) { return all(*(const float *)near); }

static inline vec even_and_odd(const vec *kept, const vec *sum, int j) { return kept[j] + sum[j]; }

static int64_t place_of(int64_t element, int64_t filter) { return element % 2 * FEW + filter; }
#endif

#define FEW_TILE(WIDE)                                                                              \
  static void few_##WIDE(const Convolution *c, const char *seen, const float *filters, int64_t at,  \
                         int64_t filter, int64_t count) {                                           \
    const int64_t step = c->seen_column_step, depth = c->depth;                                     \
    vec sum[WIDE][2], kept[WIDE][2];                                                                \
    for (int pass = 0; pass < PASSES; pass++) {                                                     \
      const float *weights = filters + pass * FEW;                                                  \
      UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < 2; j++)                      \
        kept[i][j] = pass ? sum[i][j] : all(0), sum[i][j] = all(0);                                 \
      for (int64_t row = 0; row < c->window_rows; row++)                                            \
        for (int64_t column = 0; column < c->window_columns; column++) {                            \
          const char *p0 = seen + row * c->element_row_step + column * c->element_column_step + pass * 4; \
          const char *p3 = p0 + 3 * step, *p6 = p3 + 3 * step, *p9 = p6 + 3 * step;                 \
          const char *p12 = p9 + 3 * step;                                                          \
          for (int64_t d = 0; d < depth; d += 2) {                                                  \
            vec weight[2];                                                                          \
            UNROLL for (int j = 0; j < 2; j++) weight[j] = load(weights + j * LANES);               \
            weights += 2 * FEW;                                                                     \
            UNROLL for (int i = 0; i < WIDE; i++) {                                                 \
              const char *near = i < 3 ? p0 : i < 6 ? p3 : i < 9 ? p6 : i < 12 ? p9 : p12;          \
              vec numbers = numbers_at(near + i % 3 * step);                                        \
              UNROLL for (int j = 0; j < 2; j++) sum[i][j] += numbers * weight[j];                  \
            }                                                                                       \
            p0 += 8, p3 += 8, p6 += 8, p9 += 8, p12 += 8;                                           \
          }                                                                                         \
        }                                                                                           \
    }                                                                                               \
    UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < FEW / LANES; j++)              \
      if (count > j * LANES)                                                                        \
        finish(c, even_and_odd(kept[i], sum[i], j), at + i * c->count + j * LANES,                  \
               filter + j * LANES, count - j * LANES);                                              \
  }

#if LANES >= 8
FEW_TILE(1) FEW_TILE(2) FEW_TILE(3) FEW_TILE(4) FEW_TILE(5) FEW_TILE(6)
#endif
#if LANES == 16
FEW_TILE(7) FEW_TILE(8) FEW_TILE(9) FEW_TILE(10) FEW_TILE(11) FEW_TILE(12) FEW_TILE(13) FEW_TILE(14)
#endif

typedef void (*FewTile)(const Convolution *, const char *, const float *, int64_t, int64_t, int64_t);
/* By width less one; of short vectors, nobody asks for them. */
static const FewTile FEW_TILE_OF[] = {
#if LANES >= 8
    few_1, few_2, few_3, few_4, few_5, few_6,
#endif
#if LANES == 16
    few_7, few_8, few_9, few_10, few_11, few_12, few_13, few_14,
#endif
    0,
};

/* -- filters in the order in which tiles read them ------------------------------------------- */

/* Vectors of the block that begins with a filter. */
static int64_t vectors(int64_t filter, int64_t count) { return count - filter > LANES ? 2 : 1; }

static int64_t packed_bytes(int64_t elements, int64_t count) {
  int64_t last = (count - 1) / BLOCK * BLOCK;
  int64_t width = vectors(last, count) * LANES;
  return (last + (LANES < FEW && LANES >= 8 ? FEW : width)) * elements * (int64_t)sizeof(float);
}

/* A few filters: two elements after the other, with zeros for filters that there are not. */
static void pack_few(const Packing *p, const char *from, float *to, int64_t count) {
  for (int64_t element = 0; element < p->elements; element++, from += p->element_step)
    for (int64_t filter = 0; filter < FEW; filter++)
      to[element / 2 * 2 * FEW + place_of(element, filter)] =
          filter < count ? *(const float *)(from + filter * p->filter_step) : 0.0f;
}

static void pack_piece(const void *work, int64_t number) {
  const Packing *p = work;
  int64_t blocks = (p->count + BLOCK - 1) / BLOCK, filter = number % blocks * BLOCK;
  int64_t width = vectors(filter, p->count) * LANES, filled = least(p->count - filter, width);
  const char *from = (const char *)p->filters + number / blocks * p->batch_step + filter * p->filter_step;
  float *to = (float *)((char *)p->packed + number / blocks * p->packed_step) + filter * p->elements;
  if (is_few(p->depth, filter, p->count)) {
    pack_few(p, from, to, filled);
    return;
  }
  if (p->filter_step == sizeof(float)) {
    for (int64_t element = 0; element < p->elements; element++, from += p->element_step, to += width) {
      memcpy(to, from, (size_t)filled * sizeof(float));
      memset(to + filled, 0, (size_t)(width - filled) * sizeof(float));
    }
    return;
  }
  const int64_t step = p->element_step;
  for (int64_t start = 0, end; start < p->elements; start = end) {
    end = least(start + 16, p->elements);
    for (int64_t i = 0; i < filled; i++) {
      const char *filter_at = from + i * p->filter_step;
      for (int64_t element = start; element < end; element++)
        to[element * width + i] = *(const float *)(filter_at + element * step);
    }
    for (int64_t element = start; element < end; element++)
      memset(to + element * width + filled, 0, (size_t)(width - filled) * sizeof(float));
  }
}

/* One block of filters, of all in a batch. */
static void pack_block(const Packing *p, int64_t block) {
  const int64_t blocks = (p->count + BLOCK - 1) / BLOCK;
  for (int64_t number = block; number < p->batch * blocks; number += blocks) pack_piece(p, number);
}

static void pack(const Packing *p, int helpers) {
  int64_t blocks = (p->count + BLOCK - 1) / BLOCK, numbers = p->batch * p->elements * p->count;
  penstock_share(pack_piece, p, p->batch * blocks, 1, numbers < SHARED ? 0 : helpers);
}

/* -- pieces ----------------------------------------------------------------------------------- */

/* How the work falls into pieces: some tiles of a row of places or of several, for one block. */
typedef struct {
  const Convolution *convolution;
  int64_t tiles_in_row, tiles, tiles_in_piece, pieces_in_block;
  /* Bytes of a block's weights, from there to those that its thread wants next, and those of which a
     tile asks for. */
  int64_t weights, ahead, ahead_of_tile;
  /* Whether each piece is a block whose filters it packs first. */
  int packs;
} Dense;

static void dense_piece(const void *work, int64_t number) {
  const Dense *dense = work;
  const Convolution *c = dense->convolution;
  int64_t filter = number / dense->pieces_in_block * BLOCK, count = least(c->count - filter, BLOCK);
  const float *filters = c->filters + filter * c->window_rows * c->window_columns * c->depth;
  int64_t tile = number % dense->pieces_in_block * dense->tiles_in_piece;
  int64_t end = least(tile + dense->tiles_in_piece, dense->tiles);
  if (dense->packs) pack_block(c->packing, filter / BLOCK);
  /* Tiles of a row are equally wide, but the first ones are wider by one if that does not work out. */
  int64_t width = c->columns / dense->tiles_in_row, wider = c->columns % dense->tiles_in_row;
  for (; tile < end; tile++) {
    int64_t row = tile / dense->tiles_in_row, in_row = tile % dense->tiles_in_row;
    int64_t column = in_row * width + least(in_row, wider);
    const char *seen = seen_from(c) + row / c->rows * c->seen_image_step +
                       row % c->rows * c->seen_row_step + column * c->seen_column_step;
    const float *own = (const float *)((const char *)filters + row / c->rows * c->filters_step);
    int64_t at = (row * c->columns + column) * c->count + filter;
    /* Beyond the next weights there is nothing to be fetched. */
    const char *ahead = (const char *)own;
    if (!dense->packs && tile * dense->ahead_of_tile < dense->weights) ahead += dense->ahead + tile * dense->ahead_of_tile;
    int64_t wide = width + (in_row < wider);
    if (is_few(c->depth, filter, c->count))
      FEW_TILE_OF[wide - 1](c, seen, own, at, filter, count);
    else
      TILE_OF[wide - 1][count > LANES](c, seen, own, at, filter, count, ahead);
  }
}

static void convolve(const Convolution *c, int helpers) {
  Dense dense = {.convolution = c};
  dense.tiles_in_row = (c->columns + WIDEST - 1) / WIDEST;
  dense.tiles = c->batch * c->rows * dense.tiles_in_row;
  int64_t elements = c->window_rows * c->window_columns * c->depth, blocks = (c->count + BLOCK - 1) / BLOCK;
  int is_few = dense.tiles <= FEW_TILES, is_even = blocks % (helpers + 1) == 0;
  int is_whole = is_few && blocks >= MANY_BLOCKS * (helpers + 1);
  if (c->packing) {
    dense.packs = is_few && (is_whole || is_even) && elements * c->count <= MOST_IN_PIECES;
    is_whole |= dense.packs;
    if (!dense.packs) pack(c->packing, helpers);
  }
  int64_t products = c->columns / dense.tiles_in_row * BLOCK * elements;
  dense.tiles_in_piece = is_whole ? dense.tiles : 1 + WORTH_A_PIECE / (products + 1);
  dense.pieces_in_block = (dense.tiles + dense.tiles_in_piece - 1) / dense.tiles_in_piece;
  dense.weights = elements * BLOCK * (int64_t)sizeof(float);
  dense.ahead = dense.weights * (is_whole ? helpers + 1 : 1);
  dense.ahead_of_tile = elements * (LINE / BETWEEN_LINES);
  penstock_share(dense_piece, &dense, dense.pieces_in_block * blocks, 1, helpers);
}

/* One tile of what has one window element: see winograd.h. */
BLOCK_PRODUCT(OF_KIND(KIND, block_product)) {
  Convolution c = {.out = out, .low = -INFINITY, .high = INFINITY, .depth = depth, .count = BLOCK};
  c.window_rows = c.window_columns = 1, c.seen_column_step = row_step;
  const float *ahead = weights + depth * BLOCK;
  TILE_OF[count - 1][1](&c, (const char *)rows, weights, 0, 0, BLOCK, (const char *)ahead);
}

/* -- gradients of filters --------------------------------------------------------------------- */

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

/* -- windows of one channel each -------------------------------------------------------------- */

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
    UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < VECS; j++)                     \
      finish(c, sum[i][j], at + i * c->count + j * LANES, channel + j * LANES, LANES);              \
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
  finish(c, all(sum), at, channel, 1);
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
  penstock_share(slide_piece, c, c->batch * c->rows, penstock_together(products, WORTH_A_PIECE / 8), helpers);
}

const Kind OF_KIND(KIND, tiles) = {WIDEST, packed_bytes, pack, convolve, correlate, slide};
