/* The loops of numpy's functions that are programs, or optimisers; long arrays are shared by several threads. */

#include <stdatomic.h>

#include "convolution.h"
#include "elements.h"
#include "kinds.h"
#include "optimisers.h"

EACH_KIND(Elements, elements)
EACH_KIND(Optimise, optimise)

/* So many new numbers are worth the help of other threads. */
#define MANY_NEW 65536

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

/* As numpy calls it, like the next one. */
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

/* So many elements of what numpy gives, from one of them on. */
static void update(const Optimiser *o, char *const *places, const intptr_t *distances, int64_t at, int64_t count) {
  Update u = {.way = o->way, .count = count};
  const int64_t grad = o->arrays, rates = grad + 1, news = rates + o->rates;
  for (int64_t i = 0; i < o->arrays; i++) {
    u.old[i] = (const float *)(places[i] + at * distances[i]);
    u.new[i] = (float *)(places[news + i] + at * distances[news + i]);
  }
  u.grad = (const float *)(places[grad] + at * distances[grad]);
  for (int64_t i = 0; i < o->rates; i++) u.rates[i] = *(const float *)(places[rates + i] + at * distances[rates + i]);
  (*optimise_of[o->kind])(&u, count * o->arrays >= MANY_NEW ? atomic_load(&penstock_lent) : 0);
}

/* Inputs are a variable and its slots, a gradient, and rates, the results a variable and its slots. */
PUBLIC void penstock_optimise(char **places, const intptr_t *counts, const intptr_t *distances, void *optimiser) {
  const Optimiser *o = optimiser;
  const int64_t rates = o->arrays + 1, news = rates + o->rates;
  int is_usual = 1;
  for (int64_t i = 0; i < news + o->arrays; i++)
    is_usual &= distances[i] == (i >= rates && i < news ? 0 : (intptr_t)sizeof(float));
  if (is_usual)
    update(o, places, distances, 0, counts[0]);
  else
    for (int64_t at = 0; at < counts[0]; at++) update(o, places, distances, at, 1);
}
