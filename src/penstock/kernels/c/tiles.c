/*
 * Convolutions with vectors of LANES floats; compiled once for each kind of them, as KIND with ``_tiles``
 * after it.
 *
 * A result is one running sum over planes, rows, columns and depth of its window, in this order, whichever
 * tile it is part of, or two of them for sixteen filters or fewer (see below): kinds with fused
 * multiplication give the same bits, on any number of threads.
 *
 * A tile is a few neighbouring places, times one or two vectors of filters: its sums stay in registers
 * while the window is gone through, for each element of which the weights are read once.  Images are
 * read where they are, or where they were put first.  The processor's second cache keeps the weights of
 * a block from tile to tile; meanwhile those of the block that comes after it are fetched, of which each
 * tile asks for some.
 *
 * Weights are packed, so that those of a block lie side by side.  What may be others in the next work is
 * packed by this one: by all threads first, or block by block by the thread that needs it; for few tiles
 * it is read where it is.
 */

#include <math.h>

#include "few.h"
#include "finish.h"
#include "kinds.h"
#include "windows.h"
#include "winograd.h"

/* Weights for so few tiles are read where they are, in blocks that are full whatever LANES is, unless their
   elements are a page or more apart, which caches and address translation do not bear. */
#define TILES_IN_PLACE 10
#define FULL_BLOCKS 32
#define PAGE 4096
/* Fewer numbers are packed by one thread; no more are packed by whoever needs them first, since weights
   that are packed before come from far away, but in time. */
#define SHARED 65536
#define MOST_IN_PIECES 262144
/* With fewer tiles than that, a block is one piece if there are so many for each thread: then each
   thread reads its weights once, and knows which come next. */
#define FEW_TILES 24
#define MANY_BLOCKS 8
/* Bytes that are fetched at a time.  A tile asks for the weights of one element while it goes through so many,
   so that those of a block are asked for by four tiles. */
#define LINE 64
#define BETWEEN_FETCHES 4

/* -- windows over all of the depth ---------------------------------------------------------- */

/* Where the weights of a block's elements begin, those that are fetched by the way, and bytes from element
   to element in both. */
typedef struct {
  const char *own, *ahead;
  int64_t step;
} Weights;

/* A function for WIDE places and VECS vectors of filters; three places share a pointer. */
#define TILE(WIDE, VECS)                                                                            \
  static void tile_##WIDE##_##VECS(const Convolution *c, const char *seen, const Weights *weights,   \
                                   int64_t at, int64_t filter, int64_t count) {                     \
    const char *own = weights->own, *ahead = weights->ahead;                                        \
    const int64_t weights_step = weights->step;                                                     \
    const int64_t step = c->seen_column_step, depth = c->depth;                                     \
    vec sum[WIDE][VECS];                                                                            \
    UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < VECS; j++) sum[i][j] = all(0); \
    EACH_ELEMENT(c) {                                                                               \
      const char *p0 = seen + bytes_to(c, plane, row, column);                                      \
      const char *p3 = p0 + 3 * step, *p6 = p3 + 3 * step, *p9 = p6 + 3 * step;                     \
      const char *p12 = p9 + 3 * step;                                                              \
      for (int64_t d = 0; d < depth; d++) {                                                         \
        if (d % BETWEEN_FETCHES == 0) {                                                             \
          UNROLL for (int j = 0; j < VECS * LANES * 4; j += LINE) __builtin_prefetch(ahead + j, 0, 2); \
          ahead += weights_step;                                                                    \
        }                                                                                           \
        vec weight[VECS];                                                                           \
        UNROLL for (int j = 0; j < VECS; j++) weight[j] = load((const float *)own + j * LANES);     \
        own += weights_step;                                                                        \
        UNROLL for (int i = 0; i < WIDE; i++) {                                                     \
          const char *near = i < 3 ? p0 : i < 6 ? p3 : i < 9 ? p6 : i < 12 ? p9 : p12;              \
          vec value = all(*(const float *)(near + i % 3 * step));                                   \
          UNROLL for (int j = 0; j < VECS; j++) sum[i][j] += value * weight[j];                     \
        }                                                                                           \
        p0 += 4, p3 += 4, p6 += 4, p9 += 4, p12 += 4;                                               \
      }                                                                                             \
    }                                                                                               \
    UNROLL for (int j = 0; j < VECS; j++)                                                           \
      if (count > j * LANES) {                                                                      \
        const Last last = last_of(c, filter + j * LANES, count - j * LANES);                        \
        UNROLL for (int i = 0; i < WIDE; i++) finish(&last, sum[i][j], at + i * c->out_column_step + j * LANES); \
      }                                                                                             \
  }

#define TILES(WIDE) TILE(WIDE, 1) TILE(WIDE, 2)
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#if LANES == 16 /* which comes with 32 registers */
TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
#endif

typedef void (*Tile)(const Convolution *, const char *, const Weights *, int64_t, int64_t, int64_t);
#define PAIR(WIDE) {tile_##WIDE##_1, tile_##WIDE##_2}
/* By width less one, and by vectors less one. */
static const Tile TILE_OF[][2] = {
    PAIR(1), PAIR(2), PAIR(3), PAIR(4), PAIR(5), PAIR(6),
#if LANES == 16
    PAIR(7), PAIR(8), PAIR(9), PAIR(10), PAIR(11), PAIR(12), PAIR(13), PAIR(14),
#endif
};
_Static_assert(sizeof TILE_OF / sizeof *TILE_OF == WIDEST, "each width has its tiles");

/* -- a few filters: see few.h ------------------------------------------------------------------- */

#if LANES >= FEWER
/* Two numbers in one pass, whose sums for a filter lie side by side. */
typedef uint64_t pairs __attribute__((vector_size(4 * LANES)));

static inline vec two_at(const char *near) {
  uint64_t both;
  memcpy(&both, near, sizeof both);
  return (vec)(both - (pairs){0});
}

/* The sum of each two lanes of one vector or of two, which follow each other. */
static inline vec sides_added(const vec *kept, const vec *sum, int some, int j) {
  (void)kept, (void)j;
  vec last = 2 * some > LANES ? sum[1] : all(0);
#if LANES == 16
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
  return (vec)_mm512_permutex2var_ps((__m512)sum[0], even, (__m512)last) +
         (vec)_mm512_permutex2var_ps((__m512)sum[0], odd, (__m512)last);
#else
  const __m256d by_fours = _mm256_castps_pd(_mm256_hadd_ps((__m256)sum[0], (__m256)last));
  return (vec)_mm256_permute4x64_pd(by_fours, 0xd8);
#endif
}

/* One number after the other: those of even depth first, whose sums are kept. */
static inline vec one_at(const char *near) { return all(*(const float *)near); }

static inline vec passes_added(const vec *kept, const vec *sum, int some, int j) {
  (void)some;
  return kept[j] + sum[j];
}

/* A function for WIDE places and SOME filters, in so many PASSES; see above for NUMBERS and SUMS. */
#define FEW_TILE(WIDE, SOME, PASSES, NUMBERS, SUMS)                                                 \
  static void few_##WIDE##_##SOME(const Convolution *c, const char *seen, const float *filters, int64_t at, \
                                  int64_t filter, int64_t count) {                                  \
    enum { VECS = 2 * SOME / PASSES / LANES };                                                      \
    const int64_t step = c->seen_column_step, depth = c->depth;                                     \
    vec sum[WIDE][VECS], kept[WIDE][VECS];                                                          \
    for (int pass = 0; pass < PASSES; pass++) {                                                     \
      const float *weights = filters + pass * SOME;                                                 \
      UNROLL for (int i = 0; i < WIDE; i++) UNROLL for (int j = 0; j < VECS; j++)                   \
        kept[i][j] = pass ? sum[i][j] : all(0), sum[i][j] = all(0);                                 \
      EACH_ELEMENT(c) {                                                                             \
        const char *p0 = seen + bytes_to(c, plane, row, column) + pass * 4;                         \
        const char *p3 = p0 + 3 * step, *p6 = p3 + 3 * step, *p9 = p6 + 3 * step;                   \
        const char *p12 = p9 + 3 * step;                                                            \
        for (int64_t d = 0; d < depth; d += 2) {                                                    \
          vec weight[VECS];                                                                         \
          UNROLL for (int j = 0; j < VECS; j++) weight[j] = load(weights + j * LANES);              \
          weights += 2 * SOME;                                                                      \
          UNROLL for (int i = 0; i < WIDE; i++) {                                                   \
            const char *near = i < 3 ? p0 : i < 6 ? p3 : i < 9 ? p6 : i < 12 ? p9 : p12;            \
            vec numbers = NUMBERS(near + i % 3 * step);                                             \
            UNROLL for (int j = 0; j < VECS; j++) sum[i][j] += numbers * weight[j];                 \
          }                                                                                         \
          p0 += 8, p3 += 8, p6 += 8, p9 += 8, p12 += 8;                                             \
        }                                                                                           \
      }                                                                                             \
    }                                                                                               \
    UNROLL for (int j = 0; j * LANES < SOME; j++)                                                   \
      if (count > j * LANES) {                                                                      \
        const Last last = last_of(c, filter + j * LANES, count - j * LANES);                        \
        UNROLL for (int i = 0; i < WIDE; i++)                                                       \
          finish(&last, SUMS(kept[i], sum[i], SOME, j), at + i * c->out_column_step + j * LANES);   \
      }                                                                                             \
  }

#if LANES == 16
#define TILES_OF_FEW(WIDE) FEW_TILE(WIDE, 8, 1, two_at, sides_added) FEW_TILE(WIDE, 16, 1, two_at, sides_added)
#else
#define TILES_OF_FEW(WIDE) FEW_TILE(WIDE, 8, 1, two_at, sides_added) FEW_TILE(WIDE, 16, 2, one_at, passes_added)
#endif
TILES_OF_FEW(1) TILES_OF_FEW(2) TILES_OF_FEW(3) TILES_OF_FEW(4) TILES_OF_FEW(5) TILES_OF_FEW(6)
#if LANES == 16
TILES_OF_FEW(7) TILES_OF_FEW(8) TILES_OF_FEW(9) TILES_OF_FEW(10)
TILES_OF_FEW(11) TILES_OF_FEW(12) TILES_OF_FEW(13) TILES_OF_FEW(14)
#endif
#endif

typedef void (*FewTile)(const Convolution *, const char *, const float *, int64_t, int64_t, int64_t);
#define FEW_PAIR(WIDE) {few_##WIDE##_8, few_##WIDE##_16}
/* By width less one, and by whether there are more than FEWER; of short vectors, nobody asks for them. */
static const FewTile FEW_TILE_OF[][2] = {
#if LANES >= FEWER
    FEW_PAIR(1), FEW_PAIR(2), FEW_PAIR(3), FEW_PAIR(4), FEW_PAIR(5), FEW_PAIR(6),
#endif
#if LANES == 16
    FEW_PAIR(7), FEW_PAIR(8), FEW_PAIR(9), FEW_PAIR(10), FEW_PAIR(11), FEW_PAIR(12), FEW_PAIR(13), FEW_PAIR(14),
#endif
    {0},
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
static void pack_few(const Packing *p, const char *from, float *to, int some, int64_t count) {
  for (int64_t element = 0; element < p->elements; element++, from += p->element_step)
    for (int64_t filter = 0; filter < some; filter++)
      to[element / 2 * 2 * some + place_of_few(element, filter, some)] =
          filter < count ? *(const float *)(from + filter * p->filter_step) : 0.0f;
}

static void pack_piece(const void *work, int64_t number) {
  const Packing *p = work;
  int64_t blocks = (p->count + BLOCK - 1) / BLOCK, filter = number % blocks * BLOCK;
  int64_t width = vectors(filter, p->count) * LANES, filled = least(p->count - filter, width);
  const char *from = (const char *)p->filters + number / blocks * p->batch_step + filter * p->filter_step;
  float *to = (float *)((char *)p->packed + number / blocks * p->packed_step) + filter * p->elements;
  const int some = few_of(p->depth, filter, p->count);
  if (some) {
    pack_few(p, from, to, some, least(p->count - filter, some));
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
  int64_t tiles_in_row, tiles, tiles_in_piece, blocks;
  /* Tiles fall into a group for each thread, which has all blocks of it, and so the same places of images in
     its cache from work to work; and each block of a group into so many pieces. */
  int64_t pieces_in_group;
  /* Weights, packed or where they came from; bytes from block to block, from element to element of a full
     block, and to those of the next image. */
  const char *filters;
  int64_t block_step, element_step, image_step;
  /* How many tiles of a group ask for the weights of the next block, and each for so many bytes. */
  int64_t tiles_ahead, ahead_of_tile;
  /* Whether each piece is a block whose filters it packs first. */
  int packs;
} Dense;

static void dense_piece(const void *work, int64_t number) {
  const Dense *dense = work;
  const Convolution *c = dense->convolution;
  int64_t in_group = dense->blocks * dense->pieces_in_group, group = number / in_group;
  int64_t filter = number % in_group / dense->pieces_in_group * BLOCK, count = least(c->count - filter, BLOCK);
  const char *filters = dense->filters + filter / BLOCK * dense->block_step;
  int64_t first = group * dense->pieces_in_group * dense->tiles_in_piece;
  int64_t tile = first + number % dense->pieces_in_group * dense->tiles_in_piece;
  int64_t end = least(tile + dense->tiles_in_piece, dense->tiles);
  if (dense->packs) pack_block(c->packing, filter / BLOCK);
  const int few = few_of(c->depth, filter, c->count);
  /* Only packed blocks may be the last and not full. */
  Weights weights = {.step = count > LANES ? dense->element_step : LANES * (int64_t)sizeof(float)};
  /* Tiles of a row are equally wide, but the first ones are wider by one if that does not work out. */
  int64_t width = c->columns / dense->tiles_in_row, wider = c->columns % dense->tiles_in_row;
  for (; tile < end; tile++) {
    int64_t row = tile / dense->tiles_in_row, in_row = tile % dense->tiles_in_row;
    int64_t column = in_row * width + least(in_row, wider);
    const char *seen = seen_from(c) + row / c->rows * c->seen_image_step +
                       row % c->rows * c->seen_row_step + column * c->seen_column_step;
    int64_t at = row / c->rows * c->out_image_step + row % c->rows * c->out_row_step +
                 column * c->out_column_step + filter;
    weights.own = weights.ahead = filters + row / c->rows * dense->image_step;
    /* Beyond the next weights there is nothing to be fetched. */
    if (tile - first < dense->tiles_ahead)
      weights.ahead += dense->block_step + (tile - first) * dense->ahead_of_tile;
    int64_t wide = width + (in_row < wider);
    if (few)
      FEW_TILE_OF[wide - 1][few > FEWER](c, seen, (const float *)weights.own, at, filter, count);
    else
      TILE_OF[wide - 1][count > LANES](c, seen, &weights, at, filter, count);
  }
}

/* Whether weights that are yet to be packed may stay where they are. */
static int are_in_place(const Dense *dense) {
  const Convolution *c = dense->convolution;
  const Packing *p = c->packing;
  int64_t tiles = p->batch > 1 ? dense->tiles / p->batch : dense->tiles;
  return tiles <= TILES_IN_PLACE && c->count % FULL_BLOCKS == 0 && p->filter_step == sizeof(float) &&
         p->element_step > 0 && p->element_step < PAGE;
}

static void convolve(const Convolution *c, int helpers) {
  const int64_t elements = c->window_planes * c->window_rows * c->window_columns * c->depth;
  const int64_t blocks = (c->count + BLOCK - 1) / BLOCK;
  Dense dense = {.convolution = c, .blocks = blocks, .tiles_in_row = (c->columns + WIDEST - 1) / WIDEST};
  dense.tiles = c->batch * c->rows * dense.tiles_in_row;
  const int has_few_tiles = dense.tiles <= FEW_TILES, is_even = blocks % (helpers + 1) == 0;
  /* Whether a block is one piece. */
  int is_whole = has_few_tiles && blocks >= MANY_BLOCKS * (helpers + 1);
  if (c->packing && are_in_place(&dense)) {
    dense.filters = (const char *)c->packing->filters;
    dense.block_step = BLOCK * (int64_t)sizeof(float);
    dense.element_step = c->packing->element_step;
    dense.image_step = c->filters_step ? c->packing->batch_step : 0;
    is_whole |= is_even;
  } else {
    dense.filters = (const char *)c->filters;
    dense.block_step = elements * BLOCK * (int64_t)sizeof(float);
    dense.element_step = BLOCK * (int64_t)sizeof(float);
    dense.image_step = c->filters_step;
    dense.packs = c->packing && has_few_tiles && (is_whole || is_even) && elements * c->count <= MOST_IN_PIECES;
    is_whole |= dense.packs;
    if (c->packing && !dense.packs) pack(c->packing, helpers);
  }
  int64_t products = c->columns / dense.tiles_in_row * BLOCK * elements;
  dense.tiles_in_piece = is_whole ? dense.tiles : 1 + WORTH_A_PIECE / (products + 1);
  const int64_t pieces = (dense.tiles + dense.tiles_in_piece - 1) / dense.tiles_in_piece;
  /* Unless there are more weights than numbers of images: then a thread has some blocks for all tiles. */
  const int64_t places = c->batch * c->rows * c->columns;
  const int64_t groups = elements * c->count > places * c->depth ? 1 : least(pieces, helpers + 1);
  dense.pieces_in_group = (pieces + groups - 1) / groups;
  dense.tiles_ahead = dense.packs ? 0 : BETWEEN_FETCHES;
  dense.ahead_of_tile = elements / BETWEEN_FETCHES * dense.element_step;
  penstock_share(dense_piece, &dense, groups * blocks * dense.pieces_in_group, 1, helpers);
}

/* One tile of places that follow each other: see winograd.h. */
BLOCK_PRODUCT(OF_KIND(KIND, block_product)) {
  const int64_t step = BLOCK * (int64_t)sizeof(float);
  const Weights own = {weights, weights + c->window_planes * c->depth * step, step};
  if (few)
    FEW_TILE_OF[wide - 1][few > FEWER](c, seen, (const float *)weights, at, 0, few);
  else
    TILE_OF[wide - 1][1](c, seen, &own, at, 0, BLOCK);
}

const Kind OF_KIND(KIND, tiles) = {WIDEST, packed_bytes, pack, convolve};
