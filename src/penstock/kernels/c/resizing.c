/*
 * Images of another size with vectors of LANES floats; compiled once for each kind of them, as KIND with
 * ``_resize`` after it.
 *
 * A row of an image is made as long as the result's; two such rows, one after the other used by several rows of
 * the result, are blended.
 */

#include "convolution.h"
#include "kinds.h"
#include "resizing.h"
#include "vectors.h"

static inline float between_of(float a, float b, float part) { return a + (b - a) * part; }

/* So many numbers, each between two, or the first ones if both are the same. */
static void blend(float *to, const float *a, const float *b, float part, int64_t count) {
  if (a == b) {
    memcpy(to, a, (size_t)count * sizeof *to);
    return;
  }
  int64_t at = 0;
  for (; at + LANES <= count; at += LANES) {
    const vec first = load(a + at);
    store(to + at, first + (load(b + at) - first) * all(part));
  }
  for (; at < count; at++) to[at] = between_of(a[at], b[at], part);
}

/* A row of an image, as long as the result's. */
static void lengthen(const Resizing *r, const float *row, float *to) {
  const Blend *by = &r->by_column;
  if (r->depth == 1) {
    for (int64_t place = 0; place < r->columns; place++) {
      const int64_t first = by->first[place], second = by->second[place];
      const float other = first == second ? 0.0f : by->parts[place] * (row[second] - row[first]);
      to[place] = row[first] + other;
    }
    return;
  }
  for (int64_t place = 0; place < r->columns; place++, to += r->depth)
    blend(to, row + by->first[place] * r->depth, row + by->second[place] * r->depth, by->parts[place], r->depth);
}

/* The same for a row of bytes, which are all finite: between two equal ones there is nothing else. */
static void lengthen_bytes(const Resizing *r, const uint8_t *row, float *to) {
  const Blend *by = &r->by_column;
  for (int64_t place = 0; place < r->columns; place++, to += r->depth) {
    const uint8_t *a = row + by->first[place] * r->depth, *b = row + by->second[place] * r->depth;
    for (int64_t i = 0; i < r->depth; i++) to[i] = between_of(a[i], b[i], by->parts[place]);
  }
}

static void resize_band(const void *work, int64_t number) {
  const Resizing *r = work;
  const int64_t length = r->columns * r->depth, bands = (r->rows + r->band - 1) / r->band;
  const int64_t image_row = number / bands * r->image_rows, numbers_in_row = r->image_columns * r->depth;
  float *long_rows[2] = {r->spare + 2 * number * length, r->spare + (2 * number + 1) * length};
  int64_t have[2] = {-1, -1};
  int64_t row = number % bands * r->band, end = least(row + r->band, r->rows);
  float *to = r->out + (number / bands * r->rows + row) * length;
  for (; row < end; row++, to += length) {
    const int64_t wanted[2] = {r->by_row.first[row], r->by_row.second[row]};
    /* What is there stays, in the place where it is. */
    int first = have[1] == wanted[0];
    const int second = wanted[0] == wanted[1] ? first : !first;
    for (int i = 0; i < 2; i++) {
      const int place = i ? second : first;
      if (have[place] == wanted[i]) continue;
      const int64_t from = (image_row + wanted[i]) * numbers_in_row;
      if (r->is_of_bytes)
        lengthen_bytes(r, (const uint8_t *)r->images + from, long_rows[place]);
      else
        lengthen(r, (const float *)r->images + from, long_rows[place]);
      have[place] = wanted[i];
    }
    blend(to, long_rows[first], long_rows[second], r->by_row.parts[row], length);
  }
}

static void resize(const Resizing *r, int helpers) {
  penstock_share(resize_band, r, r->batch * ((r->rows + r->band - 1) / r->band), 1, helpers);
}

const Resize OF_KIND(KIND, resize) = resize;
