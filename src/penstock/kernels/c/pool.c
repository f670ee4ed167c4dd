/*
 * Threads that share the pieces of one work after the other.
 *
 * They spin for a moment when they have nothing to do, since the next work often comes at once and to
 * wake a thread takes longer than most works; then they sleep.  The caller takes pieces as well, so
 * that it never waits for a thread to begin; it waits for pieces that others are at, like them.
 *
 * Pieces fall into a part for each thread, which begins with its own and then helps the others: works that
 * follow each other mostly go through the same arrays in the same order, so that each finds in its core's cache
 * what it left there, and not in another's.
 *
 * One work has the threads at a time.  Whoever comes meanwhile does its own alone.
 *
 * A thread whose core another process has got keeps its piece for as long as that process may run,
 * which is longer than most works take.  So a caller that has nothing left to do lends its own core to a
 * thread that keeps it waiting, and then has it go elsewhere; unless others want this core as well.  Whoever
 * waited longer for the others than it worked itself all the same does the next works alone, for several
 * times as long as it waited.
 *
 * As long as nobody else wants the cores, threads spin until the next work mostly is there.  Whether somebody
 * does, callers see by how often the system takes a core away from one of the process's threads: some times a
 * second where it is theirs, hundreds of times where it is not.  Whether somebody wants their own, they see by
 * how often that happens to themselves while they lend it.  Then it is best for all threads to be on one core,
 * on which no other process is, so they may go where they like for a while.
 */

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "convolution.h"
#include "cores.h"

#define MOST_HELPERS 64
/* Nanoseconds that a thread spins: where others want its core, as long as it takes to wake one. */
#define SPINNING 20000
#define SPINNING_LONG 200000
/* A caller looks so many nanoseconds apart whether others do; nothing is to be seen of so many in which it
   did something else; and so often a second a thread loses its core if they do, or a caller its own. */
#define LOOKING 50000000
#define AWAY 250000000
#define OFTEN 100
#define LOOKING_AT_ITSELF 200000000
#define OFTEN_ITSELF 75
/* For so many nanoseconds after that they are taken to want them still: who works alone loses none. */
#define LASTING 1000000000
#define NOT_LENDING 3000000000
/* Nanoseconds that a caller may wait for others however short the work is: threads begin late. */
#define LATE 100000
/* For so many times as long as a caller has waited too long, works are done alone. */
#define TIMES_ALONE 8

/* Guards what sleeps, and the number of threads.  Taken under none, and under ``turn``. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER, is_done = PTHREAD_COND_INITIALIZER;
/* Held by whoever has the threads. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int threads = 0;

/* Bytes that cores exchange when one of them writes. */
#define APART _Alignas(128)

/* The work; written by whoever holds ``turn`` while no thread is at it. */
static APART struct {
  Piece piece;
  const void *work;
  int64_t together;
  int parts;
  fenv_t rounding; /* the caller's, denormal numbers as zeros included */
} given;
/* Numbers of works so far, below which threads have seen all. */
static atomic_long generation = 0;
/* The pieces fall into a part for each thread, of which one is taken next; written like ``given``. */
static struct {
  APART atomic_llong next;
  int64_t end;
} part[MOST_HELPERS + 1];
/* Threads that may still enter, and those that are at pieces. */
static APART atomic_int wanted = 0, at_work = 0;
/* Each thread: the system's number for it, once it runs, and whether it is at pieces. */
static struct {
  APART atomic_int number, is_at_pieces;
  long seen; /* works, when it was made */
} each[MOST_HELPERS];
/* How many threads sleep, and whether the caller does.  Changed under ``lock``. */
static atomic_int asleep = 0, is_caller_asleep = 0;
/* Until when works are done alone.  Written by whoever holds ``turn``. */
static atomic_llong alone_until = 0;
/* How long threads spin.  Written by whoever holds ``turn``. */
static atomic_llong spinning = SPINNING;
/* When a caller looked around, how often cores had been lost by then, and until when others are taken to want
   them: any of the process's, under ``turn``, and the caller's. */
typedef struct {
  int64_t looked, lost, until;
} Wanted;
static Wanted any;
static _Thread_local Wanted its_own;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void rest(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Pieces of a thread's own part, and then of the others'. */
static void take_pieces(int own) {
  const int64_t together = given.together;
  for (int i = 0; i < given.parts; i++) {
    const int from = (own + i) % given.parts;
    const int64_t last = part[from].end;
    int64_t number;
    while ((number = atomic_fetch_add(&part[from].next, together)) < last)
      for (int64_t end = number + together < last ? number + together : last; number < end; number++)
        given.piece(given.work, number);
  }
}

/* Cut so many pieces into parts that are as long, of whole takes. */
static void cut(int64_t count, int64_t together, int parts) {
  const int64_t length = ((count + together - 1) / together + parts - 1) / parts * together;
  for (int i = 0; i < parts; i++) {
    const int64_t begin = i * length < count ? i * length : count;
    atomic_store(&part[i].next, begin);
    part[i].end = begin + length < count ? begin + length : count;
  }
}

/* Look whether others want cores, of which so many have been lost by now, and so many are often. */
static void look(Wanted *wanted, int64_t lost, int64_t often, int64_t lasting, int64_t time) {
  int64_t passed = time - wanted->looked, more = lost - wanted->lost;
  wanted->looked = time;
  wanted->lost = lost;
  if (passed < AWAY && more * 1000000000 >= often * passed) wanted->until = time + lasting;
}

static void look_around(int64_t time) {
  if (time - any.looked >= LOOKING) {
    look(&any, penstock_lost_cores(), OFTEN, LASTING, time);
    atomic_store(&spinning, time < any.until ? SPINNING : SPINNING_LONG);
  }
  /* What happens while no core is lent tells nothing: then it is threads of ours that take it. */
  if (time < its_own.until || time - its_own.looked < LOOKING_AT_ITSELF) return;
  look(&its_own, penstock_lost_own_cores(), OFTEN_ITSELF, NOT_LENDING, time);
  if (time < its_own.until)
    for (int i = 0; i < threads; i++) penstock_give_all_cores(atomic_load(&each[i].number));
}

/* Whether there is work that this thread has not seen; it spins until then, but not for long. */
static int comes_soon(long seen) {
  int64_t end = now() + atomic_load(&spinning);
  do
    for (int i = 0; i < 64; i++) {
      if (atomic_load(&generation) != seen) return 1;
      rest();
    }
  while (now() < end);
  return 0;
}

/* The life of one of them. */
static void *help(void *place) {
  const int own = (int)(intptr_t)place;
  long seen = each[own].seen;
  sigset_t signals;
  sigfillset(&signals);
  pthread_sigmask(SIG_BLOCK, &signals, 0); /* they are for Python's threads */
  atomic_store(&each[own].number, penstock_this_thread());
  for (;;) {
    if (!comes_soon(seen)) {
      pthread_mutex_lock(&lock);
      atomic_fetch_add(&asleep, 1);
      while (atomic_load(&generation) == seen) pthread_cond_wait(&has_work, &lock);
      atomic_fetch_sub(&asleep, 1);
      pthread_mutex_unlock(&lock);
    }
    seen = atomic_load(&generation);
    /* Whoever enters keeps the caller until it has left, so ``given`` stays; who is late stays out. */
    atomic_fetch_add(&at_work, 1);
    if (atomic_fetch_sub(&wanted, 1) > 0) {
      atomic_store(&each[own].is_at_pieces, 1);
      fesetenv(&given.rounding);
      take_pieces((own + 1) % given.parts);
      atomic_store(&each[own].is_at_pieces, 0);
    }
    if (atomic_fetch_sub(&at_work, 1) == 1 && atomic_load(&is_caller_asleep)) {
      pthread_mutex_lock(&lock);
      pthread_cond_signal(&is_done);
      pthread_mutex_unlock(&lock);
    }
  }
  return 0;
}

/* See to it that there are so many threads; returns how many there are. */
static int start(int helpers) {
  pthread_mutex_lock(&lock);
  while (threads < helpers && threads < MOST_HELPERS) {
    pthread_t thread;
    each[threads].seen = atomic_load(&generation);
    if (pthread_create(&thread, 0, help, (void *)(intptr_t)threads)) break;
    pthread_detach(thread);
    threads++;
  }
  int there = threads;
  pthread_mutex_unlock(&lock);
  return there;
}

static void sleep_until_others_are_done(void) {
  pthread_mutex_lock(&lock);
  atomic_store(&is_caller_asleep, 1);
  while (atomic_load(&at_work)) pthread_cond_wait(&is_done, &lock);
  atomic_store(&is_caller_asleep, 0);
  pthread_mutex_unlock(&lock);
}

/* A thread that has the caller's core now; 0 if there is none. */
static int lend_core(int64_t time) {
  if (time < its_own.until) return 0;
  for (int i = 0; i < threads; i++) {
    int number = atomic_load(&each[i].number);
    if (atomic_load(&each[i].is_at_pieces)) return penstock_lend_core(number) ? number : 0;
  }
  return 0;
}

static void wait_for_others(void) {
  int64_t end = now() + atomic_load(&spinning);
  do
    for (int i = 0; i < 64; i++) {
      if (!atomic_load(&at_work)) return;
      rest();
    }
  while (now() < end);
  int borrower = lend_core(end);
  sleep_until_others_are_done();
  if (borrower) penstock_take_core_back(borrower);
}

/* Learn from how long a caller worked, and then waited. */
static void learn(int64_t began, int64_t ended) {
  int64_t done = now(), waited = done - ended;
  if (waited > ended - began + LATE) atomic_store(&alone_until, done + TIMES_ALONE * waited);
}

void penstock_share(Piece piece, const void *work, int64_t count, int64_t together, int helpers) {
  int64_t takes = (count + together - 1) / together;
  if (helpers >= takes) helpers = (int)takes - 1;
  int64_t began = helpers > 0 ? now() : 0;
  if (helpers > 0 && began >= atomic_load(&alone_until) && !pthread_mutex_trylock(&turn)) {
    look_around(began);
    int there = start(helpers);
    if (there < helpers) helpers = there;
    given.piece = piece;
    given.work = work;
    given.together = together;
    given.parts = helpers + 1;
    cut(count, together, given.parts);
    fegetenv(&given.rounding);
    atomic_store(&wanted, helpers);
    atomic_fetch_add(&generation, 1);
    if (atomic_load(&asleep)) {
      pthread_mutex_lock(&lock);
      pthread_cond_broadcast(&has_work);
      pthread_mutex_unlock(&lock);
    }
    take_pieces(0);
    atomic_store(&wanted, 0);
    int64_t ended = now();
    wait_for_others();
    learn(began, ended);
    pthread_mutex_unlock(&turn);
    return;
  }
  for (int64_t number = 0; number < count; number++) piece(work, number);
}

/* Begin anew in the child of a fork, which has none of the threads. */
__attribute__((visibility("default"))) void penstock_forget_threads(void) {
  pthread_mutex_init(&lock, 0);
  pthread_mutex_init(&turn, 0);
  pthread_cond_init(&has_work, 0);
  pthread_cond_init(&is_done, 0);
  threads = 0;
  for (int i = 0; i < MOST_HELPERS; i++) {
    atomic_store(&each[i].number, 0);
    atomic_store(&each[i].is_at_pieces, 0);
  }
  atomic_store(&asleep, 0);
  atomic_store(&is_caller_asleep, 0);
  atomic_store(&wanted, 0);
  atomic_store(&at_work, 0);
  atomic_store(&alone_until, 0);
  atomic_store(&spinning, SPINNING);
}
