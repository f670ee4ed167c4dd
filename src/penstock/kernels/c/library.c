/* What Python calls.  A kind of vectors is a number: the processor has those below ``penstock_kinds``. */

#include <string.h>

#include "convolution.h"
#include "philox.h"
#include "pooling.h"
#include "resizing.h"
#include "rows.h"
#include "segments.h"
#include "winograd.h"

#define PUBLIC __attribute__((visibility("default")))

/* By which tools/build_kernels.py knows that there is nothing to do; nothing calls for it. */
PUBLIC const char penstock_made_of[] = PENSTOCK_MADE_OF;

extern const Kind penstock_plain;
extern const Pool penstock_plain_pool;
extern const Winograd penstock_plain_winograd;
extern const OfRows penstock_plain_softmax, penstock_plain_prediction, penstock_plain_moments, penstock_plain_sums;
extern const OfRows penstock_plain_normalize;
extern const SumSegments penstock_plain_segments;
extern const DrawNumbers penstock_plain_philox;
extern const Resize penstock_plain_resize;
#if defined(__x86_64__)
extern const Kind penstock_avx2, penstock_avx512;
extern const Pool penstock_avx2_pool, penstock_avx512_pool;
extern const Winograd penstock_avx2_winograd, penstock_avx512_winograd;
extern const OfRows penstock_avx2_softmax, penstock_avx512_softmax;
extern const OfRows penstock_avx2_prediction, penstock_avx512_prediction;
extern const OfRows penstock_avx2_moments, penstock_avx512_moments, penstock_avx2_sums, penstock_avx512_sums;
extern const OfRows penstock_avx2_normalize, penstock_avx512_normalize;
extern const SumSegments penstock_avx2_segments, penstock_avx512_segments;
extern const DrawNumbers penstock_avx2_philox, penstock_avx512_philox;
extern const Resize penstock_avx2_resize, penstock_avx512_resize;
#endif

static const Kind *const KINDS[] = {
    &penstock_plain,
#if defined(__x86_64__)
    &penstock_avx2,
    &penstock_avx512,
#endif
};

static const Pool *const POOLS[] = {
    &penstock_plain_pool,
#if defined(__x86_64__)
    &penstock_avx2_pool,
    &penstock_avx512_pool,
#endif
};

static const Winograd *const WINOGRADS[] = {
    &penstock_plain_winograd,
#if defined(__x86_64__)
    &penstock_avx2_winograd,
    &penstock_avx512_winograd,
#endif
};

static const OfRows *const SOFTMAXES[] = {
    &penstock_plain_softmax,
#if defined(__x86_64__)
    &penstock_avx2_softmax,
    &penstock_avx512_softmax,
#endif
};

static const OfRows *const PREDICTIONS[] = {
    &penstock_plain_prediction,
#if defined(__x86_64__)
    &penstock_avx2_prediction,
    &penstock_avx512_prediction,
#endif
};

static const OfRows *const MOMENTS[] = {
    &penstock_plain_moments,
#if defined(__x86_64__)
    &penstock_avx2_moments,
    &penstock_avx512_moments,
#endif
};

static const OfRows *const SUMS[] = {
    &penstock_plain_sums,
#if defined(__x86_64__)
    &penstock_avx2_sums,
    &penstock_avx512_sums,
#endif
};

static const OfRows *const NORMALIZES[] = {
    &penstock_plain_normalize,
#if defined(__x86_64__)
    &penstock_avx2_normalize,
    &penstock_avx512_normalize,
#endif
};

static const SumSegments *const SEGMENTS[] = {
    &penstock_plain_segments,
#if defined(__x86_64__)
    &penstock_avx2_segments,
    &penstock_avx512_segments,
#endif
};

static const DrawNumbers *const PHILOXES[] = {
    &penstock_plain_philox,
#if defined(__x86_64__)
    &penstock_avx2_philox,
    &penstock_avx512_philox,
#endif
};

static const Resize *const RESIZES[] = {
    &penstock_plain_resize,
#if defined(__x86_64__)
    &penstock_avx2_resize,
    &penstock_avx512_resize,
#endif
};

PUBLIC int64_t penstock_layout(void) {
  const size_t others = sizeof(Packing) + sizeof(Pooling) + sizeof(Rows) + sizeof(Segments) + sizeof(Philox) +
                        sizeof(Resizing);
  return (PENSTOCK_LAYOUT * 4096 + (int64_t)sizeof(Convolution)) * 4096 + (int64_t)others;
}

PUBLIC int penstock_kinds(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
             ? 3
             : 2;
#else
  return 1;
#endif
}

PUBLIC int64_t penstock_widest(int kind) { return KINDS[kind]->widest; }

PUBLIC int64_t penstock_packed_bytes(int kind, int64_t elements, int64_t count) {
  return KINDS[kind]->packed_bytes(elements, count);
}

PUBLIC void penstock_pack(int kind, const Packing *packing, int helpers) {
  KINDS[kind]->pack(packing, helpers);
}

/* So many numbers are worth being copied by a thread of its own: a few microseconds. */
#define WORTH_A_TAKE 16384

/* One row of an image with zeros around it, and room between its pixels. */
static void frame_piece(const void *work, int64_t number) {
  const Convolution *c = work;
  int64_t row = number % c->framed_rows - c->rows_before;
  int64_t pixel = c->depth * (int64_t)sizeof(float), step = c->framed_column_step;
  char *to = (char *)c->framed + number * c->framed_columns * step;
  if (row < 0 || row >= c->image_rows) {
    memset(to, 0, (size_t)(c->framed_columns * step));
    return;
  }
  const char *from = (const char *)c->images + number / c->framed_rows * c->image_step + row * c->row_step;
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
  penstock_share(frame_piece, c, c->batch * c->framed_rows, penstock_together(numbers, WORTH_A_TAKE), helpers);
}

/* Windows over all of the depth; filters are packed for this kind. */
PUBLIC void penstock_convolve(int kind, const Convolution *convolution, int helpers) {
  frame(convolution, helpers);
  KINDS[kind]->convolve(convolution, helpers);
}

/* Windows of three by three, side by side, if all sums are finite; whether they are. */
PUBLIC int penstock_winograd(int kind, const Convolution *convolution, int helpers) {
  frame(convolution, helpers);
  return WINOGRADS[kind]->convolve(convolution, helpers);
}

/* Filters of three by three as that takes them. */
PUBLIC void penstock_transform_filters(int kind, const Packing *packing, int helpers) {
  WINOGRADS[kind]->transform_filters(packing, helpers);
}

/* What elements of all windows saw times the gradients of their places: [window rows, window columns,
   depth, count].  Knows no bias, nothing added, and no limits. */
PUBLIC void penstock_correlate(int kind, const Convolution *convolution, int helpers) {
  frame(convolution, helpers);
  KINDS[kind]->correlate(convolution, helpers);
}

/* Windows of one channel each. */
PUBLIC void penstock_slide(int kind, const Convolution *convolution, int helpers) {
  frame(convolution, helpers);
  KINDS[kind]->slide(convolution, helpers);
}

/* The greatest or the mean under windows, or their gradients. */
PUBLIC void penstock_pool(int kind, const Pooling *pooling, int helpers) { (*POOLS[kind])(pooling, helpers); }

/* The softmax of each of some rows, times a factor. */
PUBLIC void penstock_softmax(int kind, const Rows *rows, int helpers) { (*SOFTMAXES[kind])(rows, helpers); }

/* The same, and for each row the sum of what was divided by it, and the row's largest number. */
PUBLIC void penstock_prediction(int kind, const Rows *rows, int helpers) { (*PREDICTIONS[kind])(rows, helpers); }

/* The sum of each of some rows. */
PUBLIC void penstock_sums(int kind, const Rows *rows, int helpers) { (*SUMS[kind])(rows, helpers); }

/* The mean of each of some rows, and its variance. */
PUBLIC void penstock_moments(int kind, const Rows *rows, int helpers) { (*MOMENTS[kind])(rows, helpers); }

/* Each of some rows with mean 0 and variance 1, times a scale and plus an offset. */
PUBLIC void penstock_normalize(int kind, const Rows *rows, int helpers) { (*NORMALIZES[kind])(rows, helpers); }

/* The sums of gathered rows, segment by segment. */
PUBLIC void penstock_segments(int kind, const Segments *segments, int helpers) { (*SEGMENTS[kind])(segments, helpers); }

/* Random words, or numbers made of them, four for each value of a counter. */
PUBLIC void penstock_philox(int kind, const Philox *philox, int helpers) { (*PHILOXES[kind])(philox, helpers); }

/* Images of another size. */
PUBLIC void penstock_resize(int kind, const Resizing *resizing, int helpers) { (*RESIZES[kind])(resizing, helpers); }
