/* Instructions of whole programs, loops among them.  machine.py has the same structures. */

#ifndef PENSTOCK_MACHINE_H
#define PENSTOCK_MACHINE_H

#include <stdint.h>

/* Registers are places of arrays in memory. */
typedef char *const *Registers;

typedef struct {
  int32_t code, to, first, second;
  /* Elements, bytes, or the number of an instruction. */
  int64_t amount;
  /* Whatever else there is to say. */
  const int64_t *numbers;
} Instruction;

/* What is done by a call of its own; programs name it. */
typedef struct {
  const char *name;
  void (*run)(Registers r, const Instruction *i);
} Operation;

/* Codes below those of operations. */
typedef enum { END, UNLESS, BEGIN, AGAIN, NEED, SWAP, MOVE, CONTROLS } Control;

typedef struct {
  const Operation *operations;
  int64_t count;
} Operations;

#endif
