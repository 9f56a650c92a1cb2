/* What is said of neighbours: in the summary at exit, and why requests do not go by memory. */
#include "host/calibration.h"
#include "host/neighbours_state.h"

#include <stdio.h>
#include "host/text.h"

const char *vb_local_reason_text(enum vb_local_reason reason)
{
	static const char *const texts[VB_LOCAL_REASONS] = {
		[VB_LOCAL_IS_USED] = "used",
		[VB_LOCAL_IS_OFF] = "VERBENA_LOCAL=off",
		[VB_LOCAL_CAPTURES] = "VERBENA_PCAP captures packets",
		[VB_LOCAL_IS_FAULTY] = "VERBENA_FAULTS makes packets fail",
		[VB_LOCAL_NO_MEMORY] = "no memory to share",
		[VB_LOCAL_NO_ANSWER] = "no answer",
		[VB_LOCAL_ENDED] = "it has ended",
		[VB_LOCAL_OTHER_USER] = "another user's",
		[VB_LOCAL_FORBIDDEN] = "not permitted to read its memory (Yama, a sandbox, or it is not dumpable)",
		[VB_LOCAL_UNSEEN] = "in another pid namespace",
		[VB_LOCAL_NO_DESCRIPTORS] = "no descriptor is left here (ulimit -n)",
		[VB_LOCAL_UNABLE] = "it took no part: no descriptor (ulimit -n) or no memory is left there, or it has ended",
	};
	return texts[reason];
}

static void print_mechanism(const struct vb_acquaintance *who, char *text, size_t size)
{
	if (who->pull_reason == VB_LOCAL_IS_USED)
		snprintf(text, size, "messages of %u bytes and more by one copy%s", vb_pull_pays_from(),
			who->is_mapped ? ", and from mapped memory" : "");
	else
		snprintf(text, size, "all by two copies: %s", vb_local_reason_text(who->pull_reason));
}

static void print_one(const struct vb_driver *d, const struct vb_acquaintance *who)
{
	char sent[32], received[32], mechanism[160];

	if (who->slot == d->slot.number) {
		vb_log(VB_LOG_ERROR, "local: %s sent, %s received, to this process itself",
			vb_text_bytes(who->sent, sent, sizeof(sent)),
			vb_text_bytes(who->received, received, sizeof(received)));
	} else if (who->reason == VB_LOCAL_IS_USED || who->reason == VB_LOCAL_ENDED) {
		print_mechanism(who, mechanism, sizeof(mechanism));
		vb_log(VB_LOG_ERROR, "local: %s sent, %s received, process %u of this host (slot %u): shared memory, %s",
			vb_text_bytes(who->sent, sent, sizeof(sent)),
			vb_text_bytes(who->received, received, sizeof(received)), who->pid, who->slot, mechanism);
	} else {
		vb_log(VB_LOG_ERROR, "local: slot %u of this host goes over the wire: %s", who->slot,
			vb_local_reason_text(who->reason));
	}
}

bool vb_neighbours_have_talked(const struct vb_driver *d)
{
	for (unsigned slot = 0; d->neighbours && slot < VB_NEIGHBOUR_SLOTS; slot++) {
		const struct vb_acquaintance *who = d->neighbours->by_slot[slot];
		if (who && (who->sent || who->received))
			return true;
	}
	return false;
}

void vb_neighbours_print(const struct vb_driver *d)
{
	enum vb_local_reason refusal = vb_local_refusal(vb_settings_get());
	char backed[32];

	if (!d->neighbours && refusal != VB_LOCAL_IS_USED)
		vb_log(VB_LOG_ERROR, "local: none: %s", vb_local_reason_text(refusal));
	if (d == vb_process_home(d->process) && d->process->backing.bytes)
		vb_log(VB_LOG_ERROR, "local: %s of registered memory became shared (VERBENA_MAP=registered)",
			vb_text_bytes(d->process->backing.bytes, backed, sizeof(backed)));
	for (unsigned slot = 0; d->neighbours && slot < VB_NEIGHBOUR_SLOTS; slot++)
		if (d->neighbours->by_slot[slot])
			print_one(d, d->neighbours->by_slot[slot]);
}
