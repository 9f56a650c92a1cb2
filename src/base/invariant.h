/* Invariants are checked in one of two ways.
 *
 * assert(): a comparison or two, where the claim is relied upon. It is in every build for tests, simulation and fuzzing
 * and in that of `make`; a release build (-Db_ndebug=true) compiles the claim and drops it. So an assert has no side
 * effects, and nothing that the wire or a caller brings may reach it: it stands for mistakes of our own.
 *
 * vb_NOUN_check(): walks a whole object and asserts what its file says under "Holds". Tests, simulations and fuzzers
 * call it between their steps; nothing else does. */
#ifndef VB_BASE_INVARIANT_H
#define VB_BASE_INVARIANT_H

#include <assert.h>

#ifdef NDEBUG
#undef assert
#define assert(claim) ((void)(0 && (claim)))
#endif

#endif
