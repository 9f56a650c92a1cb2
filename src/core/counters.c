/* The texts of the engine's lists: what counters and causes of death are called. The lists are in the headers. */
#include <stddef.h>
#include "core/counters.h"
#include "core/qp.h"

const char *const vb_counter_name[VB_COUNTER_COUNT] = {
#define X(name, text, meaning) [VB_##name] = text,
	VB_COUNTERS(X)
#undef X
};

static const char *const cause_text[VB_CAUSE_COUNT] = {
#define X(name, text) [VB_CAUSE_##name] = text,
	VB_CAUSES(X)
#undef X
};

const char *vb_access_text(enum vb_message message)
{
	static const char *const texts[] = {
		[VB_MESSAGE_WRITE] = "WRITE",
		[VB_MESSAGE_READ] = "READ",
		[VB_MESSAGE_ATOMIC] = "atomic operation",
		[VB_MESSAGE_FLUSH] = "FLUSH",
		[VB_MESSAGE_ATOMIC_WRITE] = "ATOMIC WRITE",
	};
	return message < sizeof(texts) / sizeof(texts[0]) ? texts[message] : NULL;
}

const char *vb_cause_text(enum vb_cause_kind kind)
{
	return (unsigned)kind < VB_CAUSE_COUNT ? cause_text[kind] : "unknown cause";
}
