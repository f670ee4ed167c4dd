/* What is computed element by element.  programs.py has the same structures, and numbers of functions. */

#ifndef PENSTOCK_ELEMENTS_H
#define PENSTOCK_ELEMENTS_H

#include <stdint.h>

/* What a step does with one register, or two; in the order of ``OF_ONE``, ``OF_TWO`` and ``CONSTANT`` in
   programs.py.  The last one takes the constant of that number instead. */
typedef enum {
  NEG, ABS, SQUARE, SQRT, RSQRT, RECIPROCAL, RELU, RELU6, EXP, TANH, SIGMOID, ERF, ERFC, LOG, LOG1P, EXPM1,
  SOFTPLUS, ELU, SELU,
  ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, SQUARED_DIFFERENCE, RELU_GRAD, RELU6_GRAD, TANH_GRAD, SIGMOID_GRAD,
  SOFTPLUS_GRAD, ELU_GRAD, SELU_GRAD,
  CONSTANT,
} Function;

typedef struct {
  int32_t function, target, first, second;
} Step;

/* Registers are the inputs, then the first constants, then what steps compute; the last step's is the
   result. */
typedef struct {
  const Step *steps;
  const float *constants;
  int64_t count, inputs, held_constants, registers;
  /* Of so many elements or more, pieces are done by several threads; a piece has so many. */
  int64_t many, piece;
  int64_t kind;
} Program;

/* One of these, of so many elements, and of those that make the last vector whole; a function of one number
   takes no notice of the second array.  Each kind of vectors has a table of them. */
typedef void (*Applied)(float *to, const float *first, const float *second, int64_t count);

/* The most registers that a program has. */
#define REGISTERS 32

/* Inputs and then the result are ``places``, and from element to element it is so many bytes. */
typedef void (*Elements)(const Program *program, char *const *places, const intptr_t *distances, int64_t count);

#endif
