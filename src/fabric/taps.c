/* Captures: what leaves on some links, in order of time. */
#include "base/invariant.h"
#include "fabric/taps.h"

#include <errno.h>
#include <stdlib.h>
#include "net/grow.h"
#include "fabric/port.h"
#include "fabric/trim.h"

enum { DSCP_SHIFT = 5, ECT = 2, CE = 3, FIRST_HOP_LIMIT = 64, FIRST_PORT = 0xC000 };

struct seen {
	vb_time at;      /* when its last bit has left */
	uint64_t number; /* of equals, the first that was seen */
	struct packet packet;
	struct vb_packet headers;
	uint32_t link;
};

struct taps {
	struct seen *heap; /* the earliest first */
	uint32_t count, room;
	uint64_t seen;
};

static bool is_before(const struct seen *a, const struct seen *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void put(struct shard *shard, struct seen *seen)
{
	struct taps *taps = shard->fabric->taps;

	if (!grow_by_one(&taps->heap, &taps->room, taps->count, sizeof(*taps->heap))) {
		shard->is_out_of_memory = true;
		return;
	}
	seen->number = taps->seen++;
	uint32_t at = taps->count++;
	for (uint32_t above; at > 0 && is_before(seen, &taps->heap[above = (at - 1) / 2]); at = above)
		taps->heap[at] = taps->heap[above];
	taps->heap[at] = *seen;
}

static void take(struct taps *taps, struct seen *first)
{
	assert(taps->count > 0);
	*first = taps->heap[0];
	const struct seen *last = &taps->heap[--taps->count];
	uint32_t at = 0;
	for (uint32_t below = 1; below < taps->count; below = 2 * at + 1) {
		if (below + 1 < taps->count && is_before(&taps->heap[below + 1], &taps->heap[below]))
			below++;
		if (!is_before(&taps->heap[below], last))
			break;
		taps->heap[at] = taps->heap[below];
		at = below;
	}
	taps->heap[at] = *last;
}

int taps_open(struct fabric *fabric)
{
	const struct fabric_config *config = fabric->config;

	if (!config->on_packet || !config->captured_count)
		return 0;
	fabric->taps = calloc(1, sizeof(*fabric->taps));
	if (!fabric->taps)
		return -ENOMEM;
	for (uint32_t i = 0; i < config->captured_count; i++)
		fabric->links[config->captured_links[i]].is_captured = true;
	return 0;
}

void taps_close(struct fabric *fabric)
{
	if (fabric->taps)
		free(fabric->taps->heap);
	free(fabric->taps);
}

void taps_see(struct shard *shard, uint32_t link, uint32_t packet, vb_time at)
{
	const struct packet *is = &shard->packets[packet];
	struct seen seen = { .at = at + link_time(shard->fabric, &shard->fabric->links[link], is->wire_bytes),
		.packet = *is,
		.headers = packet_headers(shard, packet),
		.link = link };

	if (!is->is_frame || (is->says & 0xFF) != FRAME_CREDIT) /* a capture has no form for credits */
		put(shard, &seen);
}

/* The source port stands for the flow; it is not the engine's. */
static struct vb_path path_of(const struct packet *packet)
{
	uint8_t ecn = packet->is_marked ? CE : packet->takes_marks ? ECT : 0;

	return (struct vb_path){ .src = fabric_gid(packet->src),
		.dst = fabric_gid(packet->dst),
		.src_port = (uint16_t)(FIRST_PORT | packet_flow_hash(packet) >> 18),
		.traffic_class = (uint8_t)(packet->traffic_class << DSCP_SHIFT | ecn),
		.hop_limit = (uint8_t)(FIRST_HOP_LIMIT - packet->hops) };
}

void taps_tell(struct fabric *fabric, vb_time until)
{
	struct taps *taps = fabric->taps;
	struct seen first;

	while (taps && taps->count && taps->heap[0].at <= until) {
		take(taps, &first);
		struct fabric_capture capture = {
			.link = first.link, .at = first.at, .wire_bytes = first.packet.wire_bytes
		};
		uint8_t classes = (uint8_t)(first.packet.says >> 8);
		if (!first.packet.is_frame) {
			capture.path = path_of(&first.packet);
			capture.packet = &first.headers;
			capture.is_cut = trim_is_cut(&first.packet, &first.headers);
		} else if ((first.packet.says & 0xFF) == FRAME_PAUSE) {
			capture.paused_classes = classes;
		} else {
			capture.resumed_classes = classes;
		}
		fabric->config->on_packet(fabric->config->user, &capture);
	}
}
