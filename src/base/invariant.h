/* Invariants are checked in one of two ways.
 *
 * assert(): a comparison or two, where the claim is relied upon. In every build: this header has it whatever NDEBUG
 * says. It stands for what we ourselves would have done wrong, so nothing that the wire or a caller brings may reach
 * it.
 *
 * vb_NOUN_check(): walks a whole object and asserts what its file says under "Holds". For tests, simulations and
 * fuzzers, which call it between their steps; nothing else does. */
#ifndef VB_BASE_INVARIANT_H
#define VB_BASE_INVARIANT_H

#undef NDEBUG
#include <assert.h>

#endif
