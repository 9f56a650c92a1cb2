/* Faults of the program's own calls, of events and of connections, as VERBENA_FAULTS orders them beside those of
 * packets (port/faults.h): the third ibv_reg_mr fails, the port goes down after 2 s, a request is rejected.
 *
 * Holds: the process counts calls from its start, and a forked child goes on from its parent's counts. Chances are
 * drawn from the seed and the call's number, so they do not depend on what other calls there are. */
#ifndef VB_HOST_CALL_FAULTS_H
#define VB_HOST_CALL_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/time.h"
#include "host/call_names.h"

enum vb_call {
#define X(name) VB_CALL_##name,
	VB_CALL_NAMES(X)
#undef X
		VB_CALL_CM_REJECT, /* a request that came */
	VB_CALL_CM_TIMEOUT,        /* a request of ours */
	VB_CALL_CM_DISCONNECT,     /* a connection that is established */
	VB_CALLS,
};

#define VB_CALL_FAULTS_MAX 32 /* in one setting */

enum vb_call_fault_when { VB_FAULT_NTH, VB_FAULT_EVERY, VB_FAULT_FROM, VB_FAULT_CHANCE, VB_FAULT_AFTER };

struct vb_call_fault {
	bool is_event;
	enum vb_call call;
	const char *event; /* its name, if it is one */
	int value;         /* errno; the reason of a rejection; the type of an event */
	enum vb_call_fault_when when;
	uint64_t number; /* of the call, or parts in a million */
	vb_time after;
};

struct vb_call_faults {
	unsigned count;
	uint64_t seed;
	struct vb_call_fault faults[VB_CALL_FAULTS_MAX];
};

/* call_faults_parse.c: the items of text that name a call, an event or a connection; others are a port's. -EINVAL with
 * the reason in why. Pure. */
int vb_call_faults_parse(const char *text, struct vb_call_faults *faults, char *why, size_t why_size);
/* Whether the fault strikes call number n, which counts from 1. index: which of the faults it is. Pure. */
bool vb_call_fault_strikes(const struct vb_call_faults *faults, unsigned index, uint64_t n);
const char *vb_call_name(enum vb_call call);
const char *vb_error_name(int error);

/* The process's, as its settings say. */
enum { VB_CALL_FAULTS_UNREAD, VB_CALL_FAULTS_NONE, VB_CALL_FAULTS_SET };
extern atomic_int vb_call_faults_state;
const struct vb_call_faults *vb_call_faults_get(void);

/* Counts a call. The value of the fault that strikes it, an errno or a reason; 0: none does. */
int vb_call_strike(enum vb_call call);
struct vb_later;
/* The same under a lock: the line that it may say is kept in *unsaid (report/later.h). */
int vb_call_strike_later(enum vb_call call, struct vb_later **unsaid);
/* Calls of this thread are neither counted nor struck while it is true. */
void vb_calls_pass(bool are_passed);
/* From now on calls of libibverbs fail with EIO, but for those that take objects down or fetch what has come. */
void vb_calls_break(bool are_broken);
void vb_call_faults_event_struck(unsigned index);

/* True, with errno: the call must fail, and have no other effect. */
static inline bool vb_call_fails(enum vb_call call)
{
	if (__builtin_expect(
		    atomic_load_explicit(&vb_call_faults_state, memory_order_relaxed) == VB_CALL_FAULTS_NONE, 1))
		return false;
	return vb_call_strike(call) != 0;
}

struct vb_summary;
struct vb_json_line;
void vb_call_faults_tell(const struct vb_summary *summary);
/* ,"faults":[...]: how often each struck, of how many calls. */
void vb_call_faults_put(struct vb_json_line *json);

#endif
