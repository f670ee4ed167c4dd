/* What Python calls.  A kind of vectors is a number: the processor has those below ``penstock_kinds``. */

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <string.h>

#include "colors.h"
#include "columns.h"
#include "convolution.h"
#include "crops.h"
#include "extremes.h"
#include "kinds.h"
#include "narrow.h"
#include "philox.h"
#include "pooling.h"
#include "resizing.h"
#include "rows.h"
#include "segments.h"
#include "weighing.h"
#include "winograd.h"

/* By which tools/build_kernels.py knows that there is nothing to do; nothing calls for it. */
PUBLIC const char penstock_made_of[] = PENSTOCK_MADE_OF;

EACH_KIND(Kind, tiles)
EACH_KIND(Winograd, winograd)
EACH_KIND(OfWindows, correlate)
EACH_KIND(OfWindows, slide)

PUBLIC int64_t penstock_layout(void) {
  const size_t others = sizeof(Packing) + sizeof(Pooling) + sizeof(Rows) + sizeof(Segments) + sizeof(Philox) +
                        sizeof(Resizing) + sizeof(Conversion) + sizeof(Columns) + sizeof(Extremes) + sizeof(Crops) +
                        sizeof(Colors) + sizeof(Weighing);
  return (PENSTOCK_LAYOUT * 4096 + (int64_t)sizeof(Convolution)) * 4096 + (int64_t)others;
}

#if defined(__x86_64__)
/* Whether there are instructions for float16, of which not all compilers can ask by name. */
static int converts_halves(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

PUBLIC int penstock_kinds(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !converts_halves()) return 1;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
             ? 3
             : 2;
#else
  return 1;
#endif
}

PUBLIC int64_t penstock_widest(int kind) { return tiles_of[kind]->widest; }

PUBLIC int64_t penstock_packed_bytes(int kind, int64_t elements, int64_t count) {
  return tiles_of[kind]->packed_bytes(elements, count);
}

PUBLIC void penstock_pack(int kind, const Packing *packing, int helpers) {
  tiles_of[kind]->pack(packing, helpers);
}

/* So many numbers are worth being copied by a thread of its own: a few microseconds. */
#define WORTH_A_TAKE 16384

/* One row of an image with zeros around it, and room between its pixels. */
static void frame_piece(const void *work, int64_t number) {
  const Convolution *c = work;
  int64_t plane = number / c->framed_rows - c->planes_before, row = number % c->framed_rows - c->rows_before;
  int64_t pixel = c->depth * (int64_t)sizeof(float), step = c->framed_column_step;
  char *to = (char *)c->framed + number * c->framed_columns * step;
  if (plane < 0 || plane >= c->planes || row < 0 || row >= c->image_rows) {
    memset(to, 0, (size_t)(c->framed_columns * step));
    return;
  }
  const char *from = (const char *)c->images + plane * c->image_step + row * c->row_step;
  int64_t before = c->columns_before * step, width = c->image_columns * step;
  memset(to, 0, (size_t)before);
  memset(to + before + width, 0, (size_t)(c->framed_columns * step - before - width));
  if (c->column_step == pixel && step == pixel)
    memcpy(to + before, from, (size_t)width);
  else
    for (int64_t column = 0; column < c->image_columns; column++)
      memcpy(to + before + column * step, from + column * c->column_step, (size_t)pixel);
}

static void frame(const Convolution *c, int helpers) {
  if (!c->framed) return;
  int64_t numbers = c->framed_columns * c->depth;
  penstock_share(frame_piece, c, c->framed_planes * c->framed_rows, penstock_together(numbers, WORTH_A_TAKE), helpers);
}

/* Windows over all of the depth; filters are packed for this kind, or are to be. */
PUBLIC void penstock_convolve(int kind, const Convolution *convolution, int helpers) {
  frame(convolution, helpers);
  tiles_of[kind]->convolve(convolution, helpers);
}

/* Windows of three by three, side by side, if all sums are finite; whether they are. */
PUBLIC int penstock_winograd(int kind, const Convolution *convolution, int helpers) {
  return winograd_of[kind]->convolve(convolution, helpers);
}

/* Filters of three by three as that takes them. */
PUBLIC void penstock_transform_filters(int kind, const Packing *packing, int helpers) {
  winograd_of[kind]->transform_filters(packing, helpers);
}

/* What elements of all windows saw times the gradients of their places: [window rows, window columns,
   depth, count].  Knows no bias, nothing added, and no limits. */
PUBLIC void penstock_correlate(int kind, const Convolution *convolution, int helpers) {
  frame(convolution, helpers);
  (*correlate_of[kind])(convolution, helpers);
}

/* Windows of one channel each. */
PUBLIC void penstock_slide(int kind, const Convolution *convolution, int helpers) {
  (*slide_of[kind])(convolution, helpers);
}

/* A function by its name and the kind of vectors, which does some work with so many threads besides. */
#define BY_KIND(NAME, FUNCTION, WORK)                                                                    \
  EACH_KIND(FUNCTION, NAME)                                                                              \
  PUBLIC void penstock_##NAME(int kind, const WORK *work, int helpers) { (*NAME##_of[kind])(work, helpers); }

/* The greatest or the mean under windows, or their gradients. */
BY_KIND(pool, Pool, Pooling)
/* The softmax of each of some rows, times a factor. */
BY_KIND(softmax, OfRows, Rows)
/* Its logarithm. */
BY_KIND(log_softmax, OfRows, Rows)
/* The softmax, and for each row the sum of what was divided by it, and the row's largest number. */
BY_KIND(prediction, OfRows, Rows)
/* The sum of each of some rows. */
BY_KIND(sums, OfRows, Rows)
/* What each of some rows of few numbers comes to. */
BY_KIND(reduce, OfRows, Rows)
/* The mean of each of some rows, and its variance. */
BY_KIND(moments, OfRows, Rows)
/* Each of some rows with mean 0 and variance 1, times a scale and plus an offset. */
BY_KIND(normalize, OfRows, Rows)
/* The sums of some rows at a time, channel by channel. */
BY_KIND(column_sums, OfColumns, Columns)
/* Rows less means, times a scale and plus an offset, channel by channel. */
BY_KIND(scale_columns, OfColumns, Columns)
/* Gradients less what goes through means and variances, times a factor, channel by channel. */
BY_KIND(send_back, OfColumns, Columns)
/* The sums of gathered rows, segment by segment. */
BY_KIND(segments, SumSegments, Segments)
/* Random words, or numbers made of them, four for each value of a counter. */
BY_KIND(philox, DrawNumbers, Philox)
/* Images of another size. */
BY_KIND(resize, Resize, Resizing)
/* Numbers of another width. */
BY_KIND(narrow, Convert, Conversion)
/* Where the greatest or the least number of each of some rows is. */
BY_KIND(extremes, FindExtremes, Extremes)
/* Parts of images. */
BY_KIND(crop, Crop, Crops)
/* Pixels with other colours. */
BY_KIND(recolor, Recolor, Colors)
/* Rows that are weighed and added up. */
BY_KIND(weigh, Weigh, Weighing)
