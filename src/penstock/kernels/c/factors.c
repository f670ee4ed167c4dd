/*
 * Products of small matrices, [batch, m, k] by [batch, k, n], as instructions of programs; compiled once for each
 * kind of vectors, as KIND with ``_product_`` and a type after it.
 *
 * Matrices lie in memory as they are, and behind each there is room for one vector more.
 */

#include "kinds.h"
#include "machine.h"
#include "vectors.h"


/* Numbers: batch, m, n, k; steps of the first by batch, row and column; of the other by batch and row. */
typedef struct {
  int64_t batch, m, n, k, a_batch, a_row, a_column, b_batch, b_row;
} Shapes;

/* Some rows by some vectors of columns; the last may have fewer columns. */
static inline __attribute__((always_inline)) void part(const int ROWS, const int VECS, float *to, const float *a,
                                                       const float *b, const Shapes *s, int64_t columns) {
  vec sum[4][8];
  UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < VECS; j++) sum[i][j] = all(0);
  for (int64_t k = 0; k < s->k; k++, a += s->a_column, b += s->b_row) {
    vec right[8];
    UNROLL for (int j = 0; j < VECS; j++) right[j] = load(b + j * LANES);
    UNROLL for (int i = 0; i < ROWS; i++) {
      vec left = all(a[i * s->a_row]);
      UNROLL for (int j = 0; j < VECS; j++) sum[i][j] += left * right[j];
    }
  }
  UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < VECS; j++)
    store_some(to + i * s->n + j * LANES, sum[i][j], columns - j * LANES);
}

/* One row by one vector or two: four sums of each, since a sum waits for the one before. */
static inline __attribute__((always_inline)) void few(const int VECS, float *to, const float *a, const float *b,
                                                      const Shapes *s, int64_t columns) {
  vec sum[4][2];
  UNROLL for (int i = 0; i < 4; i++) UNROLL for (int j = 0; j < VECS; j++) sum[i][j] = all(0);
  int64_t k = 0;
  for (; k + 4 <= s->k; k += 4, a += 4 * s->a_column, b += 4 * s->b_row)
    UNROLL for (int i = 0; i < 4; i++) UNROLL for (int j = 0; j < VECS; j++)
      sum[i][j] += all(a[i * s->a_column]) * load(b + i * s->b_row + j * LANES);
  for (; k < s->k; k++, a += s->a_column, b += s->b_row)
    UNROLL for (int j = 0; j < VECS; j++) sum[0][j] += all(*a) * load(b + j * LANES);
  UNROLL for (int j = 0; j < VECS; j++)
    store_some(to + j * LANES, (sum[0][j] + sum[1][j]) + (sum[2][j] + sum[3][j]), columns - j * LANES);
}

#if LANES == 16
#define SOME 4
#else
#define SOME 2
#endif

/* So many columns at a time, whose sums stay in the first cache; and so few that it is not worth it. */
#define BAND 2048
#define NARROW 64
#define STEPS 4

/* One row by the columns of some pairs of vectors, which are as many as it returns.  Rows of the other matrix are
   read from end to end, a few at a time, as memory gives them soonest; one that begins anywhere is read as fast. */
static int64_t by_rows(float *to, const float *a, const float *b, const Shapes *s) {
  const int64_t whole = s->n / (2 * LANES) * (2 * LANES);
  for (int64_t from = 0, end; from < whole; from = end) {
    end = least(from + BAND, whole);
    memset(to + from, 0, (size_t)(end - from) * sizeof *to);
    const float *left = a, *right = b;
    int64_t k = 0;
    for (; k + STEPS <= s->k; k += STEPS, left += STEPS * s->a_column, right += STEPS * s->b_row) {
      vec each[STEPS];
      UNROLL for (int i = 0; i < STEPS; i++) each[i] = all(left[i * s->a_column]);
      for (int64_t at = from; at < end; at += 2 * LANES) {
        vec sum = load(to + at), other = load(to + at + LANES);
        UNROLL for (int i = 0; i < STEPS; i++) {
          sum += each[i] * load(right + i * s->b_row + at);
          other += each[i] * load(right + i * s->b_row + at + LANES);
        }
        store(to + at, sum), store(to + at + LANES, other);
      }
    }
    for (; k < s->k; k++, left += s->a_column, right += s->b_row)
      for (int64_t at = from; at < end; at += LANES) store(to + at, load(to + at) + all(*left) * load(right + at));
  }
  return whole;
}

static void some_rows(int64_t rows, float *to, const float *a, const float *b, const Shapes *s) {
  int64_t at = 0;
#define PARTS(ROWS, VECS)                                                                             \
  for (; s->n - at > (VECS - 1) * LANES; at += VECS * LANES)                                          \
    part(ROWS, VECS, to + at, a, b + at, s, least(s->n - at, VECS * LANES))
  if (rows == 4) {
    PARTS(4, SOME);
    PARTS(4, 2);
    PARTS(4, 1);
  } else if (rows == 2) {
    PARTS(2, 4);
    PARTS(2, 2);
    PARTS(2, 1);
  } else {
    if (s->n >= NARROW) at = by_rows(to, a, b, s);
    PARTS(1, 4);
    for (; s->n - at > LANES; at += 2 * LANES) few(2, to + at, a, b + at, s, least(s->n - at, 2 * LANES));
    for (; s->n - at > 0; at += LANES) few(1, to + at, a, b + at, s, least(s->n - at, LANES));
  }
}

void OF_KIND(KIND, product_float32)(Registers r, const Instruction *i) {
  const Shapes *s = (const Shapes *)i->numbers;
  float *to = (float *)r[i->to];
  for (int64_t batch = 0; batch < s->batch; batch++) {
    const float *a = (const float *)r[i->first] + batch * s->a_batch;
    const float *b = (const float *)r[i->second] + batch * s->b_batch;
    for (int64_t m = 0, rows; m < s->m; m += rows) {
      rows = s->m - m >= 4 ? 4 : s->m - m >= 2 ? 2 : 1;
      some_rows(rows, to, a + m * s->a_row, b, s);
      to += rows * s->n;
    }
  }
}

void OF_KIND(KIND, product_float64)(Registers r, const Instruction *i) {
  const Shapes *s = (const Shapes *)i->numbers;
  double *to = (double *)r[i->to];
  for (int64_t batch = 0; batch < s->batch; batch++)
    for (int64_t m = 0; m < s->m; m++, to += s->n) {
      const double *a = (const double *)r[i->first] + batch * s->a_batch + m * s->a_row;
      const double *b = (const double *)r[i->second] + batch * s->b_batch;
      for (int64_t n = 0; n < s->n; n++) to[n] = 0;
      for (int64_t k = 0; k < s->k; k++)
        for (int64_t n = 0; n < s->n; n++) to[n] += a[k * s->a_column] * b[k * s->b_row + n];
    }
}
