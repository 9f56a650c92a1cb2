/* Local peers in the summary at exit, and why requests do not go by memory. */
#include "base/invariant.h"
#include "host/peers/calibration.h"
#include "host/peers/host_peer.h"

#include <stdio.h>
#include "host/report/text.h"

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
		[VB_LOCAL_UNABLE] =
			"it took no part: no descriptor (ulimit -n) or no memory is left there, or it has ended",
		[VB_LOCAL_NO_PROC] = "/proc is not mounted (mount -t proc proc /proc)",
		[VB_LOCAL_UNWANTED] = "no queue pair there is connected to this process",
		[VB_LOCAL_FULL] = "here or there local peers have all descriptors that are for them (64, and a 16th of "
				  "ulimit -n)",
		[VB_LOCAL_IDLE] = "it was not used, and was let go",
	};
	return texts[reason];
}

static void print_mechanism(const struct vb_host_peer *peer, char *text, size_t size)
{
	if (peer->pull_reason == VB_LOCAL_IS_USED)
		snprintf(text, size, "messages of %u bytes and more by one copy%s", vb_pull_pays_from(),
			peer->is_mapped ? ", and from mapped memory" : "");
	else
		snprintf(text, size, "all by two copies: %s", vb_local_reason_text(peer->pull_reason));
}

/* Bytes that any of our lanes sent to one slot, and received from it, by memory. */
struct talk {
	uint64_t sent, received;
	const struct vb_host_peer *peer; /* as one of the lanes knows it; NULL: none talked with it */
};

static bool goes_by_memory(const struct vb_host_peer *peer)
{
	return peer->reason == VB_LOCAL_IS_USED || peer->reason == VB_LOCAL_ENDED || peer->reason == VB_LOCAL_IDLE;
}

static struct talk talk_with(const struct vb_process *p, unsigned lanes, unsigned slot)
{
	struct talk talk = { 0 };

	assert(slot < VB_HOST_PEER_SLOTS);
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		const struct vb_host_peers *all = lanes >> i & 1 ? p->host_lanes[i]->peers : NULL;
		const struct vb_host_peer *peer = all ? all->by_slot[slot] : NULL;
		if (!peer || !goes_by_memory(peer))
			continue;
		talk.sent += peer->sent;
		talk.received += peer->received;
		talk.peer = peer;
	}
	return talk;
}

/* Each reason once, however many lanes have it. */
static void tell_refusals(const struct vb_summary *summary, const struct vb_process *p, unsigned lanes, unsigned slot)
{
	unsigned said = 0;

	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		const struct vb_host_peers *all = lanes >> i & 1 ? p->host_lanes[i]->peers : NULL;
		const struct vb_host_peer *peer = all ? all->by_slot[slot] : NULL;
		if (!peer || goes_by_memory(peer) || (said >> peer->reason & 1))
			continue;
		said |= 1u << peer->reason;
		vb_summary_add(summary, "local: slot %u of this host goes over the wire: %s", slot,
			vb_local_reason_text(peer->reason));
	}
}

static void tell_ourselves(const struct vb_summary *summary, const struct talk *talk)
{
	char sent[32], received[32];

	if (talk->peer)
		vb_summary_add(summary, "local: %s sent, %s received, to this process itself",
			vb_text_bytes(talk->sent, sent, sizeof(sent)),
			vb_text_bytes(talk->received, received, sizeof(received)));
}

static void tell_other(const struct vb_summary *summary, const struct talk *talk)
{
	char sent[32], received[32], mechanism[160];

	assert(talk->peer);
	print_mechanism(talk->peer, mechanism, sizeof(mechanism));
	vb_summary_add(summary, "local: %s sent, %s received, process %u of this host (slot %u): shared memory, %s",
		vb_text_bytes(talk->sent, sent, sizeof(sent)),
		vb_text_bytes(talk->received, received, sizeof(received)), talk->peer->pid, talk->peer->slot,
		mechanism);
}

static void tell_settings(const struct vb_summary *summary, const struct vb_process *p)
{
	enum vb_local_reason refusal = vb_local_refusal(vb_settings_get());
	char backed[32];

	if (refusal != VB_LOCAL_IS_USED)
		vb_summary_add(summary, "local: none: %s", vb_local_reason_text(refusal));
	if (p->backing.bytes)
		vb_summary_add(summary, "local: %s of registered memory became shared (VERBENA_MAP=registered)",
			vb_text_bytes(p->backing.bytes, backed, sizeof(backed)));
}

static void put_talk(struct vb_json_line *json, const struct talk *talk, const char *path)
{
	assert(talk->peer && json->text->length > 0);
	vb_json_line_add(json, "%s{\"pid\":%u,\"path\":\"%s\",\"sent\":%llu,\"received\":%llu}",
		json->text->bytes[json->text->length - 1] == '[' ? "" : ",", talk->peer->pid, path,
		(unsigned long long)talk->sent, (unsigned long long)talk->received);
}

bool vb_host_peers_tell(const struct vb_process *p, unsigned lanes, const struct vb_summary *summary)
{
	struct talk ourselves = { 0 };
	bool has_talked = false;

	tell_settings(summary, p);
	for (unsigned slot = 0; slot < VB_HOST_PEER_SLOTS; slot++) {
		struct talk talk = talk_with(p, lanes, slot);
		has_talked |= talk.sent || talk.received;
		if (vb_process_has_slot(p, slot)) {
			ourselves.sent += talk.sent;
			ourselves.received += talk.received;
			ourselves.peer = talk.peer ? talk.peer : ourselves.peer;
		} else if (talk.peer) {
			tell_other(summary, &talk);
		}
		tell_refusals(summary, p, lanes, slot);
	}
	tell_ourselves(summary, &ourselves);
	return has_talked;
}

/* The lanes' own slots as one peer, which is the process itself. */
void vb_host_peers_put(const struct vb_process *p, unsigned lanes, struct vb_json_line *json)
{
	struct talk ourselves = { 0 };

	for (unsigned slot = 0; slot < VB_HOST_PEER_SLOTS; slot++) {
		const struct talk talk = talk_with(p, lanes, slot);
		if (!talk.peer)
			continue;
		if (vb_process_has_slot(p, slot)) {
			ourselves.sent += talk.sent;
			ourselves.received += talk.received;
			ourselves.peer = talk.peer;
		} else {
			put_talk(json, &talk, "shared memory");
		}
	}
	if (ourselves.peer)
		put_talk(json, &ourselves, "itself");
}
