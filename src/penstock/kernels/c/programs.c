/* The loop of numpy's functions that are programs; long arrays are shared by several threads. */

#include <stdatomic.h>

#include "convolution.h"
#include "elements.h"
#include "kinds.h"

EACH_KIND(Elements, elements)

/* Threads that may help.  Python sets it, whenever it likes. */
PUBLIC atomic_int penstock_lent = 0;

PUBLIC int64_t penstock_elements_layout(void) {
  return REGISTERS * 65536 + (int64_t)(sizeof(Program) * 256 + sizeof(Step)) + (CONSTANT << 24);
}

typedef struct {
  const Program *program;
  char *const *places;
  const intptr_t *distances;
  int64_t count;
} Work;

static void piece_of(const void *given, int64_t number) {
  const Work *work = given;
  const Program *p = work->program;
  char *places[REGISTERS];
  int64_t start = number * p->piece, left = work->count - start;
  for (int64_t i = 0; i <= p->inputs; i++) places[i] = work->places[i] + start * work->distances[i];
  (*elements_of[p->kind])(p, places, work->distances, left < p->piece ? left : p->piece);
}

/* As numpy calls it. */
PUBLIC void penstock_elements(char **places, const intptr_t *counts, const intptr_t *distances, void *program) {
  const Program *p = program;
  int64_t count = counts[0];
  int helpers = count >= p->many ? atomic_load(&penstock_lent) : 0;
  if (!helpers) {
    (*elements_of[p->kind])(p, places, distances, count);
    return;
  }
  Work work = {p, places, distances, count};
  penstock_share(piece_of, &work, (count + p->piece - 1) / p->piece, 1, helpers);
}
