/*
 * Parts of images, with vectors of LANES floats; compiled once for each kind of them, as KIND with ``_crop`` after
 * it.  Each blend is rounded where numpy would round.
 */

#include "crops.h"
#include "convolution.h"
#include "kinds.h"
#include "vectors.h"

/* Numbers that are worth being a piece: some 5 microseconds. */
#define WORTH 8192

static inline vec between(vec a, vec b, vec part) { return a + rounded((b - a) * part); }

/* One row of one crop. */
static void row_of_crop(const void *work, int64_t number) {
  const Crops *c = work;
  const int64_t crop = number / c->rows, depth = c->depth;
  const int64_t image = c->owners[crop] * c->image_rows;
  const float *up = c->images + (image + c->by_row.lower[number]) * c->image_columns * depth;
  const float *down = c->images + (image + c->by_row.upper[number]) * c->image_columns * depth;
  const vec y = all(c->by_row.part[number]);
  float *to = c->out + number * c->columns * depth;
  for (int64_t column = 0; column < c->columns; column++, to += depth) {
    const int64_t place = crop * c->columns + column;
    if (!c->by_row.is_inside[number] || !c->by_column.is_inside[place]) {
      for (int64_t at = 0; at < depth; at += LANES) store_some(to + at, all(c->outside), depth - at);
      continue;
    }
    const int64_t left = c->by_column.lower[place] * depth, right = c->by_column.upper[place] * depth;
    const vec x = all(c->by_column.part[place]);
    for (int64_t at = 0; at < depth; at += LANES) {
      const int64_t some = depth - at;
      const vec above = between(load_some(up + left + at, some), load_some(up + right + at, some), x);
      const vec below = between(load_some(down + left + at, some), load_some(down + right + at, some), x);
      store_some(to + at, between(above, below, y), some);
    }
  }
}

static void crop(const Crops *c, int helpers) {
  penstock_share(row_of_crop, c, c->count * c->rows, penstock_together(c->columns * c->depth, WORTH), helpers);
}

const Crop OF_KIND(KIND, crop) = crop;
