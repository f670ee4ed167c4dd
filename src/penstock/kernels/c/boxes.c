/*
 * Boxes that no better one covers: candidates come best first, and each is compared with those that were
 * chosen before it.  Compiled once, without products and sums in one: the overlaps are numpy's, bit for bit.
 */

#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))

typedef struct {
  float low[2], high[2], area;
} Box;

/* As numpy has them: NaN stays. */
static inline float lesser(float a, float b) { return a != a || a < b ? a : b; }
static inline float greater(float a, float b) { return a != a || a > b ? a : b; }

static Box box_of(const float *corners) {
  Box box;
  for (int i = 0; i < 2; i++) {
    box.low[i] = lesser(corners[i], corners[i + 2]);
    box.high[i] = greater(corners[i], corners[i + 2]);
  }
  box.area = (box.high[0] - box.low[0]) * (box.high[1] - box.low[1]);
  return box;
}

/* Whether the area of what both cover, over that of what either covers, is more than a threshold, which
   is not negative.  Most boxes are apart, which needs no quotient to tell. */
static inline int overlap(const Box *a, const Box *b, float threshold) {
  float shared[2];
  for (int i = 0; i < 2; i++) {
    shared[i] = lesser(a->high[i], b->high[i]) - greater(a->low[i], b->low[i]);
    if (!(shared[i] > 0)) return 0;
  }
  float both = shared[0] * shared[1];
  return both / (a->area + b->area - both) > threshold;
}

/*
 * Put the numbers of at most ``limit`` candidates after ``known`` ones that were chosen before, unless one of
 * these covers them by more than the threshold; returns how many are chosen then.  ``seen`` has room for a
 * box of each, and has those of the known ones.
 */
PUBLIC int64_t penstock_choose_boxes(const float *boxes, const int64_t *candidates, int64_t count,
                                     float threshold, int64_t limit, int32_t *chosen, Box *seen,
                                     int64_t known) {
  for (int64_t i = 0; i < count && known < limit; i++) {
    Box box = box_of(boxes + 4 * candidates[i]);
    int64_t other = 0;
    while (other < known && !overlap(&box, seen + other, threshold)) other++;
    if (other < known) continue;
    seen[known] = box;
    chosen[known++] = (int32_t)candidates[i];
  }
  return known;
}
