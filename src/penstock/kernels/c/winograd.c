/*
 * Windows of three by three, in one plane or several, by Winograd's F(4x4, 3x3), with vectors of LANES floats;
 * compiled once for each kind of them.
 *
 * Sixteen results, four by four, come from 36 elements of images that they see together: these 36 numbers and the
 * filters' nine become 36 each, whose products are those of polynomials at six points in either direction.
 * Their sums over all channels become the sixteen results.  So there are 36 products for a channel and a filter,
 * instead of 144.  The points are 0, infinity, and A, B = 1/A with either sign, for which errors are about twice
 * those of sums of all products; 1 and 2, which are often taken, make them six to eight times as large.
 *
 * A tile's 36 numbers lie beside those of the same tile in the next plane, so that windows of several planes are
 * windows over such rows.  A sum is one running sum over planes and depth, or two as few.h says: results do not
 * depend on threads, or on how tiles fall into groups.
 */

#include <math.h>
#include <stdlib.h>

#include "few.h"
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
  /* Tiles lie side by side in images that follow each other, or in one plane of a volume; a group has some of them,
     each in as many planes of the result. */
  int64_t tiles_in_row, tiles_in_image, tiles, planes;
  int64_t tiles_in_group, planes_in_group;
  /* Floats from tile to tile: an odd number of lines, so that they do not push each other out of the first cache;
     or half a line, if that is all. */
  int64_t step;
  /* Set by whoever finds a sum that is not finite, or gets no memory. */
  int *has_failed;
} Work;

/* Some tiles, each in some planes. */
typedef struct {
  int64_t tile, tiles, plane, planes;
} Group;

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

/* Of one channel in one plane: computed with doubles, and rounded once. */
static void filters_piece(const void *work, int64_t number) {
  const Packing *p = work;
  const int64_t element = p->depth * p->count;
  const float *nine_of_one = p->filters + number / p->depth * 9 * element + number % p->depth * p->count;
  for (int64_t filter = 0; filter < ceil_div(p->count, BLOCK) * BLOCK; filter += LANES) {
    const int64_t block = filter / BLOCK * BLOCK, in_block = filter - block, left = p->count - filter;
    const int few = few_of(p->depth, block, p->count);
    const int64_t width = few ? few : BLOCK;
    double nine[3][3][LANES], half[3][SEEN_SIDE][LANES], whole[LANES];
    for (int row = 0; row < 3; row++) {
      for (int column = 0; column < 3; column++)
        for (int k = 0; k < LANES; k++)
          nine[row][column][k] = k < left ? nine_of_one[(row * 3 + column) * element + filter + k] : 0;
      for (int point = 0; point < SEEN_SIDE; point++)
        sum_of_three(AT_POINTS[point], nine[row][0], LANES, half[row][point]);
    }
    float *to = p->packed + block * SEEN * p->elements + (few ? number / 2 * 2 : number) * width;
    for (int row = 0; row < SEEN_SIDE; row++)
      for (int point = 0; point < SEEN_SIDE; point++, to += p->elements * width) {
        sum_of_three(AT_POINTS[row], half[0][point], SEEN_SIDE * LANES, whole);
        for (int64_t k = 0; k < least(LANES, width - in_block); k++)
          to[few ? place_of_few(number, in_block + k, few) : in_block + k] = (float)whole[k];
      }
  }
}

static void transform_filters(const Packing *p, int helpers) {
  penstock_share(filters_piece, p, p->elements, penstock_together(p->count, 64), helpers);
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

/* Pixels that a tile sees: where the first is, and bytes from one to the next. */
typedef struct {
  const char *first;
  int64_t row_step, column_step;
} Seen;

/* What a tile sees at the edges of an image: all of it is put side by side, with zeros for what is beyond them. */
static Seen with_edges(const Convolution *c, const char *image, int64_t top, int64_t left, float *around) {
  const int64_t pixel = c->depth * (int64_t)sizeof(float);
  const int64_t before = left < 0 ? -left : 0, after = least(c->image_columns - left, SEEN_SIDE);
  memset(around, 0, (size_t)(SEEN * pixel));
  for (int64_t row = top < 0 ? -top : 0; row < least(c->image_rows - top, SEEN_SIDE); row++)
    for (int64_t column = before; column < after; column++)
      memcpy((char *)around + (row * SEEN_SIDE + column) * pixel,
             image + (top + row) * c->row_step + (left + column) * c->column_step, (size_t)pixel);
  return (Seen){(const char *)around, SEEN_SIDE * pixel, pixel};
}

/* What a tile sees of a plane. */
static Seen seen_by(const Work *w, Place place, int64_t plane, float *around) {
  const Convolution *c = w->convolution;
  const char *image = (const char *)c->images + plane * c->image_step;
  int64_t top = place.row - c->rows_before, left = place.column - c->columns_before;
  if (top < 0 || left < 0 || top + SEEN_SIDE > c->image_rows || left + SEEN_SIDE > c->image_columns)
    return with_edges(c, image, top, left, around);
  return (Seen){image + top * c->row_step + left * c->column_step, c->row_step, c->column_step};
}

/* All channels of one tile, or of two if both fill a vector together: the first of 36 rows that lie so many floats
   apart.  What is so many bytes ahead is fetched for the next. */
static inline __attribute__((always_inline)) void transform_seen(
    const Convolution *c, const Seen *seen, const int tiles, int64_t ahead, float *to, int64_t apart) {
  for (int64_t channel = 0; channel < c->depth; channel += LANES) {
    const int64_t some = c->depth - channel;
    vec d[SEEN_SIDE], t[SEEN_SIDE][SEEN_SIDE];
    UNROLL for (int row = 0; row < SEEN_SIDE; row++) {
      UNROLL for (int column = 0; column < SEEN_SIDE; column++) {
        const float *from[2];
        for (int i = 0; i < tiles; i++) {
          from[i] = (const float *)(seen[i].first + row * seen[i].row_step + column * seen[i].column_step) + channel;
          if (ahead) __builtin_prefetch((const char *)from[i] + ahead);
        }
        d[column] = tiles == 2 ? load_halves(from[0], from[1]) : load_some(from[0], some);
      }
      seen_at_points(d, t[row]);
    }
    UNROLL for (int column = 0; column < SEEN_SIDE; column++) {
      vec at[SEEN_SIDE];
      UNROLL for (int row = 0; row < SEEN_SIDE; row++) d[row] = t[row][column];
      seen_at_points(d, at);
      UNROLL for (int row = 0; row < SEEN_SIDE; row++)
        store_some(to + (row * SEEN_SIDE + column) * apart + channel, at[row], tiles == 2 ? LANES : some);
    }
  }
}

/* What the tiles of a group see, plane after plane: rows of 36 numbers that lie so many floats apart. */
static void transform_group(const Work *w, const Group *group, float *to, int64_t apart, float *around) {
  const Convolution *c = w->convolution;
  const int64_t ahead = c->window_planes > 1 ? c->image_step : 0, end = group->tile + group->tiles;
  for (int64_t i = 0; i < group->planes + c->window_planes - 1; i++)
    for (int64_t tile = group->tile, tiles; tile < end; tile += tiles, to += tiles * w->step) {
      const int64_t plane = tile / w->tiles_in_image + group->plane + i - c->planes_before;
      const int has_another = tile + 1 < end && (tile + 1) % w->tiles_in_image; /* in the same plane */
      tiles = 2 * c->depth <= LANES && has_another ? 2 : 1;
      if (plane < 0 || plane >= c->planes) {
        for (int64_t row = 0; row < SEEN; row++)
          memset(to + row * apart, 0, (size_t)(tiles * w->step) * sizeof(float));
        continue;
      }
      Seen seen[2];
      for (int64_t k = 0; k < tiles; k++)
        seen[k] = seen_by(w, place_of(w, tile + k), plane, around + k * SEEN * c->depth);
      if (tiles == 2)
        transform_seen(c, seen, 2, ahead, to, apart);
      else
        transform_seen(c, seen, 1, ahead, to, apart);
    }
}

/* Where a tile's results are, and how many there are. */
typedef struct {
  int64_t first, rows, columns;
} Given;

static Given given_by(const Convolution *c, Place place, int64_t filter) {
  int64_t first = place.image * c->out_image_step + place.row * c->out_row_step + place.column * c->out_column_step;
  return (Given){first + filter, least(c->rows - place.row, TILE_SIDE), least(c->columns - place.column, TILE_SIDE)};
}

/* The results of one tile for some filters, or of two for half as many, of 36 sums that lie so many floats apart;
   whether all are finite. */
static inline __attribute__((always_inline)) int transform_sums(
    const Convolution *c, const Given *given, const int tiles, const float *sums, int64_t apart, const Last *last) {
  vec m[SEEN_SIDE], t[TILE_SIDE][SEEN_SIDE], y[TILE_SIDE];
  UNROLL for (int column = 0; column < SEEN_SIDE; column++) {
    UNROLL for (int row = 0; row < SEEN_SIDE; row++) {
      const float *from = sums + (row * SEEN_SIDE + column) * apart;
      m[row] = tiles == 2 ? load(from) : load_some(from, last->count);
    }
    results_of(m, y);
    UNROLL for (int row = 0; row < TILE_SIDE; row++) t[row][column] = y[row];
  }
  mask has_failed = {0};
  UNROLL for (int row = 0; row < TILE_SIDE; row++) {
    results_of(t[row], y);
    UNROLL for (int column = 0; column < TILE_SIDE; column++) {
      has_failed |= (y[column] - y[column]) != all(0);
      for (int i = 0; i < tiles; i++) {
        if (row >= given[i].rows || column >= given[i].columns) continue;
        const int64_t at = given[i].first + row * c->out_row_step + column * c->out_column_step;
        if (tiles == 2)
          finish_half(last, y[column], i, at);
        else
          finish(last, y[column], at);
      }
    }
  }
  int found = 0;
  for (int lane = 0; lane < LANES; lane++) found |= has_failed[lane];
  return !found;
}

/* -- groups of tiles ---------------------------------------------------------------------------- */

static Group group_of(const Work *w, int64_t number) {
  const int64_t beside = ceil_div(w->tiles, w->tiles_in_group);
  const int64_t tile = number % beside * w->tiles_in_group, plane = number / beside * w->planes_in_group;
  return (Group){tile, least(w->tiles - tile, w->tiles_in_group), plane, least(w->planes - plane, w->planes_in_group)};
}

/* The sums of a group for some filters: of places that follow each other, tile after tile and plane after plane. */
static void multiply(const Convolution *sums, int few, const float *seen, int64_t apart, int64_t places,
                     const float *weights) {
  const int64_t width = sums->out_column_step, weights_step = sums->window_planes * sums->depth * width;
  for (int64_t point = 0; point < SEEN; point++)
    for (int64_t place = 0, some; place < places; place += some) {
      some = ceil_div(places - place, ceil_div(places - place, TILES.widest)); /* about as many each time */
      const char *from = (const char *)(seen + point * apart) + place * sums->seen_column_step;
      OF_KIND(KIND, block_product)(sums, few, from, some, (const char *)(weights + point * weights_step),
                                   (point * places + place) * width);
    }
}

/* The results of a group for a block of filters; whether all are finite. */
static int finish_group(const Work *w, const Group *group, const float *sums, int64_t width, int64_t filter) {
  const Convolution *c = w->convolution;
  const int64_t places = group->planes * group->tiles, filters = least(width, c->count - filter);
  int are_finite = 1;
  for (int64_t number = 0, tiles; number < places; number += tiles, sums += tiles * width) {
    tiles = 2 * width <= LANES && number + 1 < places ? 2 : 1;
    for (int64_t lane = 0; lane < filters; lane += LANES) {
      Given given[2];
      for (int64_t k = 0; k < tiles; k++) {
        Place place = place_of(w, group->tile + (number + k) % group->tiles);
        place.image += group->plane + (number + k) / group->tiles;
        given[k] = given_by(c, place, filter + lane);
      }
      Last last = last_of(c, filter + lane, least(LANES, filters - lane));
      if (tiles == 2) {
        last.bias = c->bias ? load_halves(c->bias + filter, c->bias + filter) : last.bias;
        are_finite &= transform_sums(c, given, 2, sums, places * width, &last);
      } else {
        are_finite &= transform_sums(c, given, 1, sums + lane, places * width, &last);
      }
    }
  }
  return are_finite;
}

static void group_piece(const void *work, int64_t number) {
  const Work *w = work;
  const Convolution *c = w->convolution;
  const Group group = group_of(w, number);
  const int64_t places = group.planes * group.tiles, terms = c->window_planes * c->depth;
  const int64_t apart = (group.planes + c->window_planes - 1) * group.tiles * w->step;
  float *seen = malloc((size_t)(SEEN * (apart + places * BLOCK + 2 * c->depth)) * sizeof(float));
  if (!seen) {
    __atomic_store_n(w->has_failed, 1, __ATOMIC_RELAXED);
    return;
  }
  Convolution sums = {.out = seen + SEEN * apart, .low = -INFINITY, .high = INFINITY, .depth = c->depth};
  sums.window_planes = c->window_planes, sums.window_rows = sums.window_columns = 1;
  sums.seen_column_step = w->step * (int64_t)sizeof(float);
  sums.element_plane_step = group.tiles * sums.seen_column_step;
  transform_group(w, &group, seen, apart, sums.out + SEEN * places * BLOCK);
  for (int64_t filter = 0; filter < c->count; filter += BLOCK) {
    const int few = few_of(c->depth, filter, c->count);
    sums.out_column_step = few ? few : BLOCK;
    multiply(&sums, few, seen, apart, places, c->filters + filter * SEEN * terms);
    if (!finish_group(w, &group, sums.out, sums.out_column_step, filter)) {
      __atomic_store_n(w->has_failed, 1, __ATOMIC_RELAXED);
      break;
    }
  }
  free(seen);
}

/* How tiles of images fall into groups: as many as two products have, for which weights are read once; or as one has,
   if its numbers stay in the second cache and those of two would not. */
static void group_images(Work *w, int64_t tile_bytes, int threads) {
  const int64_t bytes = tile_bytes * TILES.widest;
  const int64_t most = bytes <= MOST_BYTES && 2 * bytes > MOST_BYTES ? TILES.widest : 2 * TILES.widest;
  /* As many groups for each thread, and about as many tiles in each. */
  const int64_t groups = ceil_div(ceil_div(w->tiles, most), threads) * threads;
  w->tiles_in_group = ceil_div(w->tiles, groups);
  w->planes_in_group = 1;
}

/* How those of a volume do: of few tiles in many planes, of which only the first and the last are seen by others,
   too; of fewer, if their numbers would not stay in the second cache. */
static void group_planes(Work *w, int64_t tile_bytes) {
  const int64_t more = w->convolution->window_planes - 1, most = MOST_BYTES / tile_bytes;
  int64_t planes = least(w->planes, TILES.widest);
  while (planes > 1 && planes + more > most) planes--;
  w->planes_in_group = ceil_div(w->planes, ceil_div(w->planes, planes));
  int64_t tiles = 2 * TILES.widest / w->planes_in_group;
  while (tiles > 1 && (w->planes_in_group + more) * tiles > most) tiles--;
  w->tiles_in_group = ceil_div(w->tiles, ceil_div(w->tiles, tiles));
}

static int convolve(const Convolution *c, int helpers) {
  int has_failed = 0;
  const int64_t line = 64 / sizeof(float);
  Work w = {.convolution = c, .has_failed = &has_failed, .step = (ceil_div(c->depth, line) | 1) * line};
  if (2 * c->depth <= line) w.step = line / 2;
  w.tiles_in_row = ceil_div(c->columns, TILE_SIDE);
  w.tiles_in_image = w.tiles_in_row * ceil_div(c->rows, TILE_SIDE);
  const int is_flat = c->window_planes == 1;
  w.tiles = w.tiles_in_image * (is_flat ? c->batch : 1);
  w.planes = is_flat ? 1 : c->batch;
  const int64_t tile_bytes = SEEN * w.step * (int64_t)sizeof(float);
  if (is_flat)
    group_images(&w, tile_bytes, helpers + 1);
  else
    group_planes(&w, tile_bytes);
  const int64_t groups = ceil_div(w.tiles, w.tiles_in_group) * ceil_div(w.planes, w.planes_in_group);
  penstock_share(group_piece, &w, groups, 1, helpers);
  return !has_failed;
}

const Winograd OF_KIND(KIND, winograd) = {transform_filters, convolve};
