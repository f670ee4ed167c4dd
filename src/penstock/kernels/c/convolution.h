/* What a convolution is, for all who compute a part of it.  library.py has the same structure. */

#ifndef PENSTOCK_CONVOLUTION_H
#define PENSTOCK_CONVOLUTION_H

#include <stdint.h>

/* Changes with the structure, so that a library of other sources is not used. */
#define PENSTOCK_LAYOUT 24

/* Filters that are put into the order in which they are read, or a batch of them.  Steps are in bytes. */
typedef struct {
  const float *filters;
  float *packed;
  /* The depth is that of the images; so many elements lie side by side in these. */
  int64_t batch, elements, depth, count, batch_step, element_step, filter_step;
  /* From batch to batch in what is packed. */
  int64_t packed_step;
} Packing;

/*
 * Sums of products of windows and filters.  A step is a distance in bytes.  Numbers of one pixel lie
 * side by side.  Python makes sure that all of this lies inside of the arrays.
 */
typedef struct {
  const float *images;
  /* Images with zeros around them, and room between pixels, which are put there first; NULL if windows see
     them where they are. */
  float *framed;
  /* As ``pack`` leaves them; by channel, as they are: [window rows, window columns, depth].  To
     correlate, gradients: [batch, rows, columns, count]. */
  const float *filters;
  /* What is to be packed to there first, unless it may as well stay where it is; or NULL. */
  const Packing *packing;
  /* A number for each filter, added to its sums; or NULL. */
  const float *bias;
  /* As the results lie, to which it is added after the bias; or NULL. */
  const float *added;
  float *out;
  /* What all results are kept between; NaN stays. */
  float low, high;

  /* Images, which are the planes of a volume if windows see several of them. */
  int64_t planes, image_rows, image_columns, depth;
  int64_t image_step, row_step, column_step;
  int64_t planes_before, rows_before, columns_before, framed_planes, framed_rows, framed_columns;
  int64_t framed_column_step;
  /* How many pixels apart places, and elements of a window, see; for windows that see beyond the edges. */
  int64_t row_stride, column_stride, row_dilation, column_dilation;

  /* Places of the window, and how many results each has. */
  int64_t batch, rows, columns, count;
  int64_t window_planes, window_rows, window_columns;
  /* From result to result, in numbers: images, rows and columns. */
  int64_t out_image_step, out_row_step, out_column_step;
  /* From image to image in packed filters, if each has filters of its own; or 0. */
  int64_t filters_step;
  /* From image to image and place to place in what windows see, and between elements of one. */
  int64_t seen_image_step, seen_row_step, seen_column_step;
  int64_t element_plane_step, element_row_step, element_column_step;
} Convolution;

/* Does one piece of some work. */
typedef void (*Piece)(const void *work, int64_t number);

/* Do so many pieces, with so many threads beside the caller's, each of which takes some of them together.
   Returns when all are done. */
void penstock_share(Piece piece, const void *work, int64_t count, int64_t together, int helpers);

/* How many pieces of some size are worth being taken together: to take any keeps all other threads from
   it for as long as a core needs to hear of another's writing. */
static inline int64_t penstock_together(int64_t size, int64_t worth) { return 1 + worth / (size + 1); }

/* One kind of vectors: how filters are packed for it, and convolutions with it. */
typedef struct {
  /* How many places are read side by side, if there are so many. */
  int64_t widest;
  /* Bytes that packed filters take. */
  int64_t (*packed_bytes)(int64_t elements, int64_t count);
  void (*pack)(const Packing *packing, int helpers);
  void (*convolve)(const Convolution *convolution, int helpers);
} Kind;

/* Does something with windows and what they see. */
typedef void (*OfWindows)(const Convolution *windows, int helpers);

#endif
