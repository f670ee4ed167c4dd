/*
 * Colours as red, green and blue, or hue, saturation and value, with vectors of LANES floats; compiled once for each
 * kind of them, as KIND with ``_recolor`` after it.  Each operation is rounded where numpy would round.
 */

#include "colors.h"
#include "convolution.h"
#include "functions.h"
#include "kinds.h"
#include "lanes.h"

/* Pixels of a piece: some 10 microseconds. */
#define PIECE 4096
#define PARTS 3

/* In the order of ``WAYS`` in colors.py. */
enum { TO_HSV, FROM_HSV, SHIFT_HUE, SCALE_SATURATION };

typedef struct {
  vec hue, most, least;
} Hue;

static inline Hue hue_of(const vec *x) {
  const vec red = x[0], green = x[1], blue = x[2];
  const vec most = maximum(maximum(red, green), blue), least = minimum(minimum(red, green), blue);
  const vec spread = most - least, step = all(1.0f) / (all(6.0f) * spread), third = all(1.0f / 3.0f);
  const vec by_red = step * (green - blue), by_green = rounded(step * (blue - red)) + third;
  const vec by_blue = rounded(step * (red - green)) + third + third;
  vec hue = choose(red == most, by_red, choose(green == most, by_green, by_blue));
  hue = choose(spread > all(0), hue, all(0));
  return (Hue){choose(hue < all(0), hue + all(1.0f), hue), most, least};
}

static inline vec distance(vec a, float b) { return (vec)((mask)(a - all(b)) & 0x7fffffff); }

/* The pure colour, from 0 to 1, of a hue. */
static inline void pure_of(vec hue, vec *to) {
  const vec place = rounded(hue * all(6.0f));
  to[0] = clip(distance(place, 3) - all(1.0f), 0, 1);
  to[1] = clip(all(2.0f) - distance(place, 2), 0, 1);
  to[2] = clip(all(2.0f) - distance(place, 4), 0, 1);
}

static inline void color_of(vec hue, vec saturation, vec value, vec *to) {
  const vec grey = all(1.0f) - saturation;
  pure_of(hue, to);
  for (int i = 0; i < PARTS; i++) to[i] = (grey + rounded(saturation * to[i])) * value;
}

static inline vec saturation_of(Hue h) { return choose(h.most > all(0), (h.most - h.least) / h.most, all(0)); }

/* What is left of whole numbers, from 0 to 1.  Large numbers are whole, and what is infinite leaves nothing. */
static inline vec rest_of(vec x) {
  const mask is_small = (mask)((vec)((mask)x & 0x7fffffff) < all(8388608.0f));
  const vec whole = __builtin_convertvector(__builtin_convertvector(choose(is_small, x, all(0)), mask), vec);
  const vec rest = choose(is_small, x - whole, x - x);
  return choose(rest < all(0), rest + all(1.0f), rest);
}

static inline __attribute__((always_inline)) void recolored(vec *x, int64_t way, vec amount) {
  if (way == FROM_HSV) {
    color_of(x[0], x[1], x[2], x);
    return;
  }
  const Hue h = hue_of(x);
  if (way == TO_HSV) {
    x[0] = h.hue, x[1] = saturation_of(h), x[2] = h.most;
  } else if (way == SHIFT_HUE) {
    pure_of(rest_of(h.hue + amount), x);
    for (int i = 0; i < PARTS; i++) x[i] = h.least + rounded((h.most - h.least) * x[i]);
  } else {
    color_of(h.hue, clip(rounded(saturation_of(h) * amount), 0, 1), h.most, x);
  }
}

static inline __attribute__((always_inline)) void recolor_each(const Colors *c, int64_t at, int64_t end, int64_t way) {
  for (; at < end; at += LANES) {
    vec x[PARTS];
    const int64_t some = least(end - at, LANES);
    take_rows(x, c->from + at * PARTS, some, PARTS);
    recolored(x, way, all(c->amount));
    give_rows(c->to + at * PARTS, x, some, PARTS);
  }
}

static void recolor_some(const void *work, int64_t number) {
  const Colors *c = work;
  const int64_t at = number * PIECE, end = least(at + PIECE, c->count);
  switch (c->way) {
    case TO_HSV: recolor_each(c, at, end, TO_HSV); break;
    case FROM_HSV: recolor_each(c, at, end, FROM_HSV); break;
    case SHIFT_HUE: recolor_each(c, at, end, SHIFT_HUE); break;
    default: recolor_each(c, at, end, SCALE_SATURATION);
  }
}

static void recolor(const Colors *c, int helpers) {
  penstock_share(recolor_some, c, (c->count + PIECE - 1) / PIECE, 1, helpers);
}

const Recolor OF_KIND(KIND, recolor) = recolor;
