/* Threads of this process, by the system's numbers for them, and the cores that they run on. */

#ifndef PENSTOCK_CORES_H
#define PENSTOCK_CORES_H

/* The number of the calling thread; 0 where there is none. */
int penstock_this_thread(void);

/* Let another thread run on the caller's core, which waits for it, and on no other; whether it does so now. */
int penstock_lend_core(int thread);

/* After that: let it run on all cores that the caller may use, but not on the caller's, if there is another. */
void penstock_take_core_back(int thread);

#endif
