/*
 * Windows of three by three by Winograd's F(4x4, 3x3), with vectors of LANES floats; compiled once for each kind
 * of them.
 *
 * Sixteen results, four by four, come from 36 elements of images that they see together: these 36 numbers and the
 * filters' nine become 36 each, whose products are those of polynomials at six points in either direction.
 * Their sums over all channels become the sixteen results.  So there are 36 products for a channel and a filter,
 * instead of 144.  The points are 0, infinity, and A, B = 1/A with either sign, for which errors are about twice
 * those of sums of all products; 1 and 2, which are often taken, make them six to eight times as large.
 *
 * A sum is one running sum over the depth: results do not depend on threads, or on how tiles fall into groups.
 */

#include <stdlib.h>

#include "finish.h"
#include "kinds.h"
#include "winograd.h"

#define A 0.70710678f
#define B 1.41421356f
/* Bytes that the numbers of a group of tiles may have to stay in the second cache. */
#define MOST_BYTES (1000 << 10)

extern const Kind OF_KIND(KIND, tiles);
#define TILES OF_KIND(KIND, tiles)
extern BLOCK_PRODUCT(OF_KIND(KIND, block_product));

typedef struct {
  const Convolution *convolution;
  int64_t tiles_in_row, tiles_in_image, tiles, tiles_in_group;
  /* Floats from tile to tile: an odd number of lines, so that they do not push each other out of the first cache. */
  int64_t step;
  /* Set by whoever finds a sum that is not finite, or gets no memory. */
  int *has_failed;
} Work;

static int64_t ceil_div(int64_t number, int64_t of) { return (number + of - 1) / of; }

/* -- one direction ------------------------------------------------------------------------------ */

/* Six numbers of images, as polynomials are evaluated. */
static inline void seen_at_points(const vec d[SEEN_SIDE], vec t[SEEN_SIDE]) {
  vec even = d[4] - 2.0f * d[2], odd = A * d[3] - B * d[1];
  t[1] = even + odd, t[2] = even - odd;
  even = d[4] - 0.5f * d[2], odd = B * d[3] - A * d[1];
  t[3] = even + odd, t[4] = even - odd;
  t[0] = d[0] - 2.5f * d[2] + d[4];
  t[5] = d[1] - 2.5f * d[3] + d[5];
}

/* Four results of what is known at six points. */
static inline void results_of(const vec m[SEEN_SIDE], vec y[TILE_SIDE]) {
  vec near = m[1] + m[2], near_odd = m[1] - m[2], far = m[3] + m[4], far_odd = m[3] - m[4];
  y[0] = m[0] + near + far;
  y[1] = A * near_odd + B * far_odd;
  y[2] = 0.5f * near + 2.0f * far;
  y[3] = 0.5f * A * near_odd + 2.0f * B * far_odd + m[5];
}

/* -- filters ------------------------------------------------------------------------------------ */

/* Three coefficients at the points, over what else is in a product of two such values; at infinity, the last of them
   alone counts. */
static const double AT_POINTS[SEEN_SIDE][3] = {
    {1, 0, 0},
    {-2.0 / 3, -0.70710678118654752 * 2 / 3, -1.0 / 3},
    {-2.0 / 3, 0.70710678118654752 * 2 / 3, -1.0 / 3},
    {1.0 / 6, 1.4142135623730951 / 6, 1.0 / 3},
    {1.0 / 6, -1.4142135623730951 / 6, 1.0 / 3},
    {0, 0, 1},
};

/* The sum of three rows of doubles times three numbers. */
static inline void sum_of_three(const double by[3], const double *x, int64_t apart, double *sum) {
  for (int k = 0; k < LANES; k++) sum[k] = by[0] * x[k] + by[1] * x[apart + k] + by[2] * x[2 * apart + k];
}

/* Of one channel: computed with doubles, and rounded once. */
static void filters_piece(const void *work, int64_t channel) {
  const Packing *p = work;
  const int64_t element = p->depth * p->count;
  for (int64_t filter = 0; filter < p->count; filter += LANES) {
    double nine[3][3][LANES], half[3][SEEN_SIDE][LANES], whole[LANES];
    const float *from = p->filters + channel * p->count + filter;
    for (int row = 0; row < 3; row++) {
      for (int column = 0; column < 3; column++)
        for (int k = 0; k < LANES; k++) nine[row][column][k] = from[(row * 3 + column) * element + k];
      for (int point = 0; point < SEEN_SIDE; point++)
        sum_of_three(AT_POINTS[point], nine[row][0], LANES, half[row][point]);
    }
    float *to = p->packed + filter / BLOCK * (SEEN * p->depth * BLOCK) + channel * BLOCK + filter % BLOCK;
    for (int row = 0; row < SEEN_SIDE; row++)
      for (int point = 0; point < SEEN_SIDE; point++, to += p->depth * BLOCK) {
        sum_of_three(AT_POINTS[row], half[0][point], SEEN_SIDE * LANES, whole);
        for (int k = 0; k < LANES; k++) to[k] = (float)whole[k];
      }
  }
}

static void transform_filters(const Packing *p, int helpers) {
  penstock_share(filters_piece, p, p->depth, penstock_together(p->count, 64), helpers);
}

/* -- tiles -------------------------------------------------------------------------------------- */

/* Where a tile is. */
typedef struct {
  int64_t image, row, column;
} Place;

static Place place_of(const Work *w, int64_t tile) {
  int64_t in_image = tile % w->tiles_in_image;
  return (Place){tile / w->tiles_in_image, in_image / w->tiles_in_row * TILE_SIDE,
                 in_image % w->tiles_in_row * TILE_SIDE};
}

/* What a tile sees, all channels: the first of 36 rows that lie so many floats apart. */
static void transform_seen(const Work *w, int64_t tile, float *to, int64_t apart) {
  const Convolution *c = w->convolution;
  Place place = place_of(w, tile);
  const char *from = (const char *)c->framed + place.image * c->seen_image_step + place.row * c->seen_row_step +
                     place.column * c->seen_column_step;
  for (int64_t channel = 0; channel < c->depth; channel += LANES) {
    vec d[SEEN_SIDE], t[SEEN_SIDE][SEEN_SIDE];
    UNROLL for (int row = 0; row < SEEN_SIDE; row++) {
      UNROLL for (int column = 0; column < SEEN_SIDE; column++)
        d[column] = load((const float *)(from + row * c->seen_row_step + column * c->seen_column_step) + channel);
      seen_at_points(d, t[row]);
    }
    UNROLL for (int column = 0; column < SEEN_SIDE; column++) {
      vec at[SEEN_SIDE];
      UNROLL for (int row = 0; row < SEEN_SIDE; row++) d[row] = t[row][column];
      seen_at_points(d, at);
      UNROLL for (int row = 0; row < SEEN_SIDE; row++)
        store(to + (row * SEEN_SIDE + column) * apart + channel, at[row]);
    }
  }
}

/* The results of a tile for LANES filters, of 36 sums that lie so many floats apart; whether all are finite. */
static int transform_sums(const Work *w, int64_t tile, const float *sums, int64_t apart, int64_t filter) {
  const Convolution *c = w->convolution;
  Place place = place_of(w, tile);
  vec m[SEEN_SIDE], t[TILE_SIDE][SEEN_SIDE], y[TILE_SIDE];
  UNROLL for (int column = 0; column < SEEN_SIDE; column++) {
    UNROLL for (int row = 0; row < SEEN_SIDE; row++) m[row] = load(sums + (row * SEEN_SIDE + column) * apart);
    results_of(m, y);
    UNROLL for (int row = 0; row < TILE_SIDE; row++) t[row][column] = y[row];
  }
  int64_t rows = least(c->rows - place.row, TILE_SIDE), columns = least(c->columns - place.column, TILE_SIDE);
  int64_t first = place.image * c->out_image_step + place.row * c->out_row_step +
                  place.column * c->out_column_step + filter;
  const Last last = last_of(c, filter, LANES);
  mask has_failed = {0};
  UNROLL for (int row = 0; row < TILE_SIDE; row++) {
    results_of(t[row], y);
    UNROLL for (int column = 0; column < TILE_SIDE; column++) {
      has_failed |= (y[column] - y[column]) != all(0);
      if (row < rows && column < columns)
        finish(&last, y[column], first + row * c->out_row_step + column * c->out_column_step);
    }
  }
  int found = 0;
  for (int lane = 0; lane < LANES; lane++) found |= has_failed[lane];
  return !found;
}

static void group_piece(const void *work, int64_t number) {
  const Work *w = work;
  const Convolution *c = w->convolution;
  const int64_t depth = c->depth;
  int64_t start = number * w->tiles_in_group, tiles = least(w->tiles - start, w->tiles_in_group);
  int64_t apart = tiles * w->step, sums_apart = tiles * BLOCK;
  float *seen = malloc((size_t)(SEEN * (apart + sums_apart)) * sizeof(float)), *sums = seen + SEEN * apart;
  if (!seen) {
    __atomic_store_n(w->has_failed, 1, __ATOMIC_RELAXED);
    return;
  }
  for (int64_t tile = 0; tile < tiles; tile++) transform_seen(w, start + tile, seen + tile * w->step, apart);
  const float *weights = c->filters;
  for (int64_t filter = 0; filter < c->count; filter += BLOCK) {
    for (int64_t point = 0; point < SEEN; point++, weights += depth * BLOCK)
      for (int64_t tile = 0, some; tile < tiles; tile += some) {
        some = ceil_div(tiles - tile, ceil_div(tiles - tile, TILES.widest)); /* about as many each time */
        OF_KIND(KIND, block_product)(seen + point * apart + tile * w->step, w->step * (int64_t)sizeof(float), some, depth,
                            weights, sums + point * sums_apart + tile * BLOCK);
      }
    int are_finite = 1;
    for (int64_t tile = 0; tile < tiles; tile++)
      for (int64_t lane = 0; lane < BLOCK; lane += LANES)
        are_finite &= transform_sums(w, start + tile, sums + tile * BLOCK + lane, sums_apart, filter + lane);
    if (!are_finite) {
      __atomic_store_n(w->has_failed, 1, __ATOMIC_RELAXED);
      break;
    }
  }
  free(seen);
}

static int convolve(const Convolution *c, int helpers) {
  int has_failed = 0;
  const int64_t line = 64 / sizeof(float);
  Work w = {.convolution = c, .has_failed = &has_failed, .step = (c->depth / line | 1) * line};
  w.tiles_in_row = ceil_div(c->columns, TILE_SIDE);
  w.tiles_in_image = w.tiles_in_row * ceil_div(c->rows, TILE_SIDE);
  w.tiles = c->batch * w.tiles_in_image;
  /* As many tiles as two products have, for which weights are read once; or as one has, if its numbers stay in the
     second cache and those of two would not. */
  int64_t bytes = SEEN * w.step * (int64_t)sizeof(float) * TILES.widest;
  int64_t most = bytes <= MOST_BYTES && 2 * bytes > MOST_BYTES ? TILES.widest : 2 * TILES.widest;
  /* As many groups for each thread, and about as many tiles in each. */
  int64_t groups = ceil_div(ceil_div(w.tiles, most), helpers + 1) * (helpers + 1);
  w.tiles_in_group = ceil_div(w.tiles, groups);
  penstock_share(group_piece, &w, ceil_div(w.tiles, w.tiles_in_group), 1, helpers);
  return !has_failed;
}

const Winograd OF_KIND(KIND, winograd) = {transform_filters, convolve};
