/* Threads of this process, by the system's numbers for them, and the cores that they run on. */

#ifndef PENSTOCK_CORES_H
#define PENSTOCK_CORES_H

#include <stdint.h>

/* How often the system has taken a core away from one of the process's threads, or from the calling one. */
int64_t penstock_lost_cores(void);
int64_t penstock_lost_own_cores(void);

/* The number of the calling thread; 0 where there is none. */
int penstock_this_thread(void);

/* Let another thread run on the caller's core, which waits for it, and on no other; whether it does so now. */
int penstock_lend_core(int thread);

/* Let it run on all cores that the caller may use. */
void penstock_give_all_cores(int thread);

/* After it was lent the caller's: let it run on all that the caller may use but this one, if there is another. */
void penstock_take_core_back(int thread);

#endif
