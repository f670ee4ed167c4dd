/* Memory of large arrays, as numpy asks for it: what one has left is there for the next.

   The C library maps large blocks anew each time, and the system clears each page before a step may write to it;
   smaller blocks it keeps by itself.  Here a range of memory that was given back stays mapped.  What is asked for
   is cut from the smallest range that is large enough; what is given back is joined to the ranges around it.

   The law: what is mapped is never more than what was in use at one time, so that no process needs more memory for
   this at its peak; and of what is not in use, only so much stays as Python has said. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kinds.h"

/* Bytes from which on glibc would map a block of its own, whatever it is told. */
#define LARGE ((size_t)32 << 20)
/* Bytes of a page of the larger kind, of which ranges are made. */
#define PAGE ((size_t)2 << 20)

/* Structures of numpy's interface for such functions, version 1 (NEP 49). */
typedef struct {
  void *context;
  void *(*malloc)(void *context, size_t size);
  void *(*calloc)(void *context, size_t count, size_t size);
  void *(*realloc)(void *context, void *at, size_t size);
  void (*free)(void *context, void *at, size_t size);
} Allocator;

typedef struct {
  char name[127];
  uint8_t version;
  Allocator allocator;
} Handler;

typedef struct {
  char *at;
  size_t size;
  int is_used;
} Range;

/* Guards all that follows; nothing else is locked while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All ranges by address; neighbours that touch are not both unused. */
static Range *ranges;
static int64_t count, room;
/* Bytes in use, mapped but not in use, and the most that were in use at one time; and how many may be kept. */
static size_t used, idle, most_used, kept;

/* Numpy's own functions, for all that is not large; set once, before any of these is called. */
static Allocator others;
static int knows_others;

static size_t whole_pages(size_t size) { return (size + PAGE - 1) & ~(PAGE - 1); }

static char *mapped(size_t size) {
  char *all = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return NULL;
  size_t before = whole_pages((size_t)(uintptr_t)all) - (size_t)(uintptr_t)all;
  if (before) munmap(all, before);
  munmap(all + before + size, PAGE - before);
#ifdef MADV_HUGEPAGE
  madvise(all + before, size, MADV_HUGEPAGE);
#endif
  return all + before;
}

/* The first range that does not begin before an address. */
static int64_t place_of(const char *at) {
  int64_t low = 0, high = count;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (ranges[middle].at < at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Make room for one more; whether there is. */
static int has_room(void) {
  if (count < room) return 1;
  int64_t more = room ? 2 * room : 64;
  Range *moved = realloc(ranges, (size_t)more * sizeof(Range));
  if (!moved) return 0;
  ranges = moved;
  room = more;
  return 1;
}

static void insert(int64_t place, Range range) {
  memmove(ranges + place + 1, ranges + place, (size_t)(count++ - place) * sizeof(Range));
  ranges[place] = range;
}

static void erase(int64_t place) {
  memmove(ranges + place, ranges + place + 1, (size_t)(--count - place) * sizeof(Range));
}

/* Give the system so much back of what is not in use that no more than this stays; the smallest ranges first. */
static void shrink(size_t left) {
  while (idle > left) {
    int64_t smallest = -1;
    for (int64_t i = 0; i < count; i++)
      if (!ranges[i].is_used && (smallest < 0 || ranges[i].size < ranges[smallest].size)) smallest = i;
    Range *range = ranges + smallest;
    size_t gone = range->size < idle - left ? range->size : idle - left;
    if (munmap(range->at + range->size - gone, gone)) return;
    idle -= gone;
    range->size -= gone;
    if (!range->size) erase(smallest);
  }
}

/* The smallest unused range of at least this size; -1 if there is none. */
static int64_t fitting(size_t size) {
  int64_t best = -1;
  for (int64_t i = 0; i < count; i++)
    if (!ranges[i].is_used && ranges[i].size >= size && (best < 0 || ranges[i].size < ranges[best].size)) best = i;
  return best;
}

static void note_use(size_t size) {
  used += size;
  if (used > most_used) most_used = used;
}

static void *taken(size_t size) {
  if (!has_room()) return NULL;
  int64_t place = fitting(size);
  if (place >= 0) {
    Range *range = ranges + place;
    Range rest = {range->at + size, range->size - size, 0};
    range->size = size;
    range->is_used = 1;
    if (rest.size) insert(place + 1, rest);
    idle -= size;
    note_use(size);
    return ranges[place].at;
  }
  size_t most = used + size > most_used ? used + size : most_used;
  shrink(most - used - size);
  char *at = mapped(size);
  if (!at) { /* perhaps since too much is mapped */
    shrink(0);
    at = mapped(size);
  }
  if (!at) return NULL;
  insert(place_of(at), (Range){at, size, 1});
  note_use(size);
  return at;
}

/* Join a range to the next one, if they touch and neither is in use. */
static void join(int64_t place) {
  if (place < 0 || place + 1 >= count) return;
  Range *range = ranges + place, *next = range + 1;
  if (range->is_used || next->is_used || range->at + range->size != next->at) return;
  range->size += next->size;
  erase(place + 1);
}

/* The range in use that begins at an address; -1 if it is none of these. */
static int64_t found(const void *at) {
  if ((uintptr_t)at & (PAGE - 1)) return -1;
  int64_t place = place_of(at);
  return place < count && ranges[place].at == at && ranges[place].is_used ? place : -1;
}

/* Whether it was one of these. */
static int given_back(const void *at) {
  int64_t place = found(at);
  if (place < 0) return 0;
  Range *range = ranges + place;
  range->is_used = 0;
  used -= range->size;
  idle += range->size;
  join(place);
  join(place - 1);
  shrink(kept);
  return 1;
}

static void *block(void *context, size_t size) {
  (void)context;
  if (size < LARGE || size > SIZE_MAX - 2 * PAGE) return others.malloc(others.context, size);
  pthread_mutex_lock(&lock);
  void *at = taken(whole_pages(size));
  pthread_mutex_unlock(&lock);
  return at;
}

/* Pages that are new are zeros already. */
static void *zeros(void *context, size_t number, size_t size) {
  (void)context;
  return others.calloc(others.context, number, size);
}

static void release(void *context, void *at, size_t size) {
  (void)context;
  int is_own = 0;
  if (at && !((uintptr_t)at & (PAGE - 1))) {
    pthread_mutex_lock(&lock);
    is_own = given_back(at);
    pthread_mutex_unlock(&lock);
  }
  if (!is_own) others.free(others.context, at, size);
}

static size_t size_of(const void *at) {
  pthread_mutex_lock(&lock);
  int64_t place = found(at);
  size_t size = place < 0 ? 0 : ranges[place].size;
  pthread_mutex_unlock(&lock);
  return size;
}

static void *resized(void *context, void *at, size_t size) {
  size_t before = at ? size_of(at) : 0;
  if (!before) return others.realloc(others.context, at, size);
  void *moved = block(context, size);
  if (!moved) return NULL;
  memcpy(moved, at, size < before ? size : before);
  release(context, at, before);
  return moved;
}

static void hold(void) { pthread_mutex_lock(&lock); }
static void let_go(void) { pthread_mutex_unlock(&lock); }

static Handler handler = {"penstock", 1, {NULL, block, zeros, resized, release}};

/* What numpy is to be told; it has numpy's own functions do what these do not.  So many bytes may be kept. */
PUBLIC void *penstock_array_memory(const Handler *numpys, int64_t bytes) {
  pthread_mutex_lock(&lock);
  kept = (size_t)bytes;
  if (!knows_others) {
    others = numpys->allocator;
    pthread_atfork(hold, let_go, let_go);
    knows_others = 1;
  }
  pthread_mutex_unlock(&lock);
  return &handler;
}

/* Give the system back all that is not in use. */
PUBLIC void penstock_give_array_memory_back(void) {
  pthread_mutex_lock(&lock);
  shrink(0);
  pthread_mutex_unlock(&lock);
}

/* Bytes in use, mapped but not in use, and the most that were in use at one time. */
PUBLIC void penstock_array_bytes(int64_t *bytes) {
  pthread_mutex_lock(&lock);
  bytes[0] = (int64_t)used;
  bytes[1] = (int64_t)idle;
  bytes[2] = (int64_t)most_used;
  pthread_mutex_unlock(&lock);
}
