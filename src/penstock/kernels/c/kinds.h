/* What is compiled once for each kind of vectors, as KIND with a name after it, and found again by a number. */

#ifndef PENSTOCK_KINDS_H
#define PENSTOCK_KINDS_H

#define PUBLIC __attribute__((visibility("default")))

#define JOIN_NAMES(A, B) A##_##B
/* What has a name among those of a kind. */
#define OF_KIND(A_KIND, NAME) JOIN_NAMES(A_KIND, NAME)

/* ``NAME_of``: what has this name, for each kind that there may be on such a machine. */
#if defined(__x86_64__)
#define EACH_KIND(TYPE, NAME)                                                                            \
  extern const TYPE penstock_plain_##NAME, penstock_avx2_##NAME, penstock_avx512_##NAME;                 \
  static const TYPE *const NAME##_of[] = {&penstock_plain_##NAME, &penstock_avx2_##NAME, &penstock_avx512_##NAME};
#else
#define EACH_KIND(TYPE, NAME)                                                                            \
  extern const TYPE penstock_plain_##NAME;                                                               \
  static const TYPE *const NAME##_of[] = {&penstock_plain_##NAME};
#endif

#endif
