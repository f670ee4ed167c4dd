/* Runs programs, instruction by instruction; stops now and then, so that somebody may end them. */

#include <string.h>

#include "kinds.h"
#include "machine.h"

EACH_KIND(Operations, operations)

PUBLIC int64_t penstock_machine_layout(void) { return (int64_t)sizeof(Instruction) * 256 + CONTROLS; }

/* The name of an operation; its code is the number and ``CONTROLS``.  None for a number too large. */
PUBLIC const char *penstock_operation(int kind, int64_t number) {
  return number < operations_of[kind]->count ? operations_of[kind]->operations[number].name : 0;
}

typedef enum { DONE, FAILED, PAUSED } Outcome;

/*
 * Go on with a program from an instruction on, which becomes the one to go on with; for about so many
 * nanoseconds, as its loops say what they cost.
 */
PUBLIC int penstock_machine(int kind, const Instruction *program, char **registers, int64_t *place, int64_t budget) {
  const Operation *operations = operations_of[kind]->operations - CONTROLS;
  const Instruction *i = program + *place;
  for (;; i++) switch (i->code) {
      case END:
        return DONE;
      case UNLESS: /* go to an instruction if something does not hold */
        if (!*(const uint8_t *)registers[i->first]) i = program + i->amount - 1;
        break;
      case BEGIN: /* no iteration of a loop is done */
        memset(registers[i->to], 0, sizeof(int64_t));
        break;
      case AGAIN: /* another one is: go to an instruction, if there is time for it */
        ++*(int64_t *)registers[i->to];
        budget -= i->numbers[0];
        if (budget < 0) {
          *place = i->amount;
          return PAUSED;
        }
        i = program + i->amount - 1;
        break;
      case NEED:
        if (!*(const uint8_t *)registers[i->first]) return FAILED;
        break;
      case SWAP: {
        char *kept = registers[i->to];
        registers[i->to] = registers[i->first];
        registers[i->first] = kept;
        break;
      }
      case MOVE:
        memcpy(registers[i->to], registers[i->first], (size_t)i->amount);
        break;
      default:
        operations[i->code].run(registers, i);
    }
}
