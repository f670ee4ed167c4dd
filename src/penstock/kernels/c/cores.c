/* Which cores a thread runs on: on Linux; elsewhere nothing is lent. */

#ifdef __linux__
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <sys/resource.h>

#include "cores.h"

static int64_t lost_by(int who) {
  struct rusage usage;
  return getrusage(who, &usage) ? 0 : usage.ru_nivcsw;
}

int64_t penstock_lost_cores(void) { return lost_by(RUSAGE_SELF); }

#ifdef __linux__

int64_t penstock_lost_own_cores(void) { return lost_by(RUSAGE_THREAD); }

/* What the caller may use; written by whoever lends, which one thread does at a time. */
static cpu_set_t own;

int penstock_this_thread(void) { return (int)syscall(SYS_gettid); }

int penstock_lend_core(int thread) {
  cpu_set_t one;
  int core = sched_getcpu();
  /* A machine of more cores than the set has room for is refused here, before anything is changed. */
  if (thread == 0 || core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof own, &own)) return 0;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return sched_setaffinity(thread, sizeof one, &one) == 0;
}

void penstock_give_all_cores(int thread) {
  if (thread && !sched_getaffinity(0, sizeof own, &own)) sched_setaffinity(thread, sizeof own, &own);
}

void penstock_take_core_back(int thread) {
  cpu_set_t others = own;
  int core = sched_getcpu();
  if (core >= 0 && core < CPU_SETSIZE && CPU_COUNT(&others) > 1) CPU_CLR(core, &others);
  sched_setaffinity(thread, sizeof others, &others);
}

#else

int64_t penstock_lost_own_cores(void) { return 0; }
int penstock_this_thread(void) { return 0; }
int penstock_lend_core(int thread) { return (void)thread, 0; }
void penstock_give_all_cores(int thread) { (void)thread; }
void penstock_take_core_back(int thread) { (void)thread; }

#endif
