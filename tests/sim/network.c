/* A network that does everything a network may do: the links of lanes to the switch between them lose, double,
 * reorder, delay and mark packets, and a receiver's socket holds only so many bytes. A corrupted packet goes through
 * the real codec: encoded, bits flipped, the ICRC verified, decoded; only if the ICRC should miss it does it arrive. */
#include <stdlib.h>
#include <string.h>
#include "base/bursts.h"
#include "sim.h"
#include "wire/icrc.h"

#define FRAME_OVERHEAD 768 /* what a socket buffer charges for a datagram beside its bytes */

/* From a lane to the switch. */
static struct way {
	struct vb_bursts bursts;
	struct vb_random random;
	uint64_t sent;                          /* packets */
	uint64_t newest[MAX_HOSTS * MAX_LANES]; /* that has come here, by who sent it */
} ways[MAX_HOSTS * MAX_LANES];

static uint32_t one_of(const uint32_t *choices, unsigned n)
{
	return choices[below(n)];
}

#define ONE_OF(...) one_of((const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

/* Half of the seeds have the plain window, a quarter none, and a quarter a rate that moves. By the seed itself: what
 * else it draws stays what it was. */
static void choose_congestion_control(struct conditions *n)
{
	uint32_t kind = (uint32_t)((world.seed * 0x9E3779B97F4A7C15u) >> 62);
	n->paced = (struct paced){ .rate = n->bytes_per_second / 4, .period = 50 * VB_US, .is_moody = true };
	n->cc.parameters = &n->paced;
	n->cc.algorithm = kind < 2 ? NULL : kind == 2 ? &vb_cc_none : &paced_algorithm;
	if (kind == 2 && n->receive_buffer == 0)
		n->unknown_peer_allowance = VB_UNLIMITED;
}

/* By the seed, too: a quarter of them lose packets in runs, through which the retries of a connection may not last. */
static void choose_bursts(struct conditions *n)
{
	static const uint32_t shares[] = { 100, 1000, 10000, 30000 }, runs[] = { 3, 10, 100, 1000 };
	uint32_t draw = (uint32_t)((world.seed * 0xD6E8FEB86659FD93u) >> 56);
	if (draw & 3)
		return;
	n->burst_ppm = shares[draw >> 2 & 3];
	n->burst_run = runs[draw >> 4 & (world.is_twin ? 1 : 3)];
	n->may_exhaust = true;
	trace("network: %u ppm lost in runs of %u", n->burst_ppm, n->burst_run);
}

/* By the seed, too: a quarter of them have NICs. */
static void choose_habits(struct conditions *n)
{
	uint32_t draw = (uint32_t)((world.seed * 0xBF58476D1CE4E5B9u) >> 56);
	n->is_of_nics = (draw & 3) == 3;
	if (!n->is_of_nics)
		return;
	n->acks = (struct vb_ack_policy){ .every_packets = draw >> 2 & 3, .by_count_alone = draw >> 4 & 1 };
	n->cnps = (struct vb_cnp_policy){ .scope = (enum vb_cnp_scope)(draw >> 5 & 3), .interval = 4 * VB_US };
	n->packet_overhead = draw >> 7 ? VB_NONE : 64;
	n->never_probes = draw >> 3 & 1;
	n->replies_first = draw >> 6 & 1;
}

/* By the seed, too: half of the seeds have many. Where links die, these go by two rails. */
static void choose_paths(struct conditions *n)
{
	uint32_t draw = (uint32_t)((world.seed * 0xD6E8FEB86659FD93u) >> 56);
	static const uint16_t counts[] = { 1, 1, 2, 8 };
	n->paths = counts[draw & 3];
	n->flowlet = (uint8_t)(1 << (draw >> 2 & 7) % 5);
}

/* By the seed, too: in half of the seeds NICs take large packets, which in a quarter of those no way carries. */
static void choose_large_packets(struct conditions *n)
{
	uint32_t draw = (uint32_t)((world.seed * 0xD1342543DE82EF95u) >> 56);
	static const uint32_t sizes[] = { 0, 0, VB_LARGE_MTU, 6000 };
	n->large_mtu = sizes[draw & 3];
	n->carried = draw >> 2 & 3 ? 0 : VB_MAX_MTU;
}

/* By the seed, too, or as the command line says: half of the seeds go back, a quarter recover selectively, and a
 * quarter agree on that, some of them with every other host alone. Of those that hold, a few hold little. */
static void choose_recovery(struct conditions *n)
{
	uint32_t draw = (uint32_t)((world.seed * 0x94D049BB133111EBu) >> 56);
	static const enum vb_recovery_kind kinds[] = { VB_RECOVERY_GO_BACK_N, VB_RECOVERY_GO_BACK_N,
		VB_RECOVERY_SELECTIVE, VB_RECOVERY_AGREED };
	n->recovery = world.is_recovery_given ? world.recovery : kinds[draw & 3];
	n->takes_hellos = (draw >> 2 & 3) != 0;
	n->hold_bytes = (draw >> 4 & 7) == 0 ? 40000 : 0;
	n->fails_over = n->recovery == VB_RECOVERY_AGREED && draw >> 7;
	n->may_exhaust |= n->fails_over;
	choose_paths(n);
	choose_large_packets(n);
	trace("network: recovery %d, hold %u, paths %u of flowlets of %u%s, packets of %u, more than %u get lost",
		n->recovery, n->hold_bytes, n->paths, n->flowlet, n->fails_over ? ", links die" : "", n->large_mtu,
		n->carried);
}

/* Connections of twins are to last, and to agree where they can. One that goes back may wear out its retries all the
 * same, where nearly all packets overtake others. */
static void spare_connections(struct conditions *n)
{
	n->drop_ppm = n->drop_ppm < 10000 ? n->drop_ppm : 10000;
	n->chaos_ppm = 0;
	n->fails_over = false;
	n->is_trained = true;
	n->may_exhaust = n->recovery == VB_RECOVERY_GO_BACK_N || n->burst_run || n->receive_buffer == 65536;
}

void network_choose(void)
{
	struct conditions *n = &world.network;
	n->drop_ppm = ONE_OF(0, 0, 100, 1000, 10000, 30000, 100000);
	n->duplicate_ppm = ONE_OF(0, 0, 1000, 10000, 100000);
	n->reorder_ppm = ONE_OF(0, 0, 1000, 10000, 100000);
	n->corrupt_ppm = ONE_OF(0, 0, 1000, 10000);
	n->ce_ppm = ONE_OF(0, 0, 0, 1000, 50000);
	n->delay = (vb_time)ONE_OF(1, 5, 20, 100, 1000) * VB_US;
	n->jitter = (vb_time)ONE_OF(0, 0, 1, 10, 100) * VB_US;
	n->reorder_delay = (vb_time)ONE_OF(5, 50, 500, 5000) * VB_US;
	n->bytes_per_second = (uint64_t)ONE_OF(125, 1250, 1250, 12500) * 1000000;
	n->receive_buffer = ONE_OF(0, 65536, 212992, 212992, 4194304);
	n->packet_cost = (vb_time)ONE_OF(50, 200, 200, 1000) * VB_NS;
	n->ack_delay = (vb_time)ONE_OF(0, 0, 5, 20, 100) * VB_US;
	n->chaos_ppm = ONE_OF(0, 20000, 100000, 300000);
	n->has_pauses = chance(500000);
	n->has_restarts = chance(500000);
	n->has_dead_keys = chance(500000);
	n->is_ipv6 = chance(500000);
	n->is_trained = chance(500000);
	n->patience = (vb_time)ONE_OF(0, 4, 32) * VB_MS;
	n->excused_until = world.now;
	n->may_exhaust = n->drop_ppm >= 30000 || n->receive_buffer == 65536;
	choose_congestion_control(n);
	choose_habits(n);
	choose_recovery(n);
	choose_bursts(n);
	if (world.is_twin)
		spare_connections(n);
	trace("network: %s%s", n->cc.algorithm ? n->cc.algorithm->name : "window", n->is_of_nics ? ", of NICs" : "");
	trace("network: drop %u dup %u reorder %u corrupt %u ppm, delay %lld+%lld us, %llu MB/s, buffer %llu, ack "
	      "delay %lld us",
		n->drop_ppm, n->duplicate_ppm, n->reorder_ppm, n->corrupt_ppm, (long long)(n->delay / VB_US),
		(long long)(n->jitter / VB_US), (unsigned long long)n->bytes_per_second / 1000000,
		(unsigned long long)n->receive_buffer, (long long)(n->ack_delay / VB_US));
}

static struct frame *frame_get(void)
{
	struct frame *frame = world.frames;
	if (frame)
		world.frames = frame->next;
	else
		frame = malloc(sizeof(*frame));
	return frame;
}

void frame_put(struct frame *frame)
{
	frame->next = world.frames;
	world.frames = frame;
}

/* Flips bits of the frame's bytes. False: the packet is gone, as it nearly always is. */
static bool survives_corruption(struct frame *frame)
{
	uint8_t bytes[VB_MAX_PACKET_BYTES];
	struct vb_flow flow = { frame->path.src, frame->path.dst, frame->path.src_port, VB_UDP_PORT };
	size_t n = vb_packet_encode_headers(&frame->packet, bytes), headers = n;
	if (frame->packet.payload_length)
		memcpy(bytes + n, frame->payload, frame->packet.payload_length);
	n += frame->packet.payload_length;
	for (uint32_t pad = vb_pad(frame->packet.payload_length); pad; pad--)
		bytes[n++] = 0;
	uint32_t crc = vb_icrc_begin(&flow, n + VB_ICRC_LENGTH, 0);
	crc = vb_icrc_headers(crc, bytes, headers);
	crc = vb_icrc_end(vb_icrc_add(crc, bytes + headers, n - headers));
	for (int i = 0; i < 4; i++)
		bytes[n++] = (uint8_t)(crc >> 8 * i);

	uint16_t id = 0;
	if (!vb_icrc_verify(&flow, bytes, n, false, &id))
		broken("an intact packet fails its own ICRC: %s", vb_packet_row(&frame->packet)->name);
	/* Over IPv4 only single errors are sure to be seen, for the identification takes 16 bits of strength. */
	unsigned flips = world.network.is_ipv6 ? 1 + below(8) : 1;
	while (flips--)
		bytes[below((uint32_t)n)] ^= (uint8_t)(1u << below(8));
	struct vb_packet packet;
	if (!vb_icrc_verify(&flow, bytes, n, false, &id) || vb_packet_decode(&packet, bytes, n) != VB_DECODE_OK)
		return false;
	/* A flip in the masked byte of the BTH (FECN, BECN) is not covered; the rest would have been. */
	packet.payload = frame->packet.payload;
	packet.fecn = frame->packet.fecn;
	packet.becn = frame->packet.becn;
	frame->packet = packet;
	return true;
}

static const struct host *find_host(const struct vb_gid *gid)
{
	for (unsigned i = 0; i < world.host_count; i++)
		if (vb_gid_equal(&world.hosts[i].gid, gid) || vb_gid_equal(&world.hosts[i].further, gid))
			return &world.hosts[i];
	broken("a packet goes to an address that nobody has");
}

/* The link of that address of the host's, by the time and the seed: one in eight is dead at any time, of those every
 * other one in one direction alone. */
static bool is_dead(const struct host *host, const struct vb_gid *gid, bool is_outwards)
{
	if (!world.network.fails_over)
		return false;
	uint64_t span = (uint64_t)(vb_time_diff(world.now, world.begin) / (40 * VB_MS));
	uint64_t mixed = (world.seed * 64 + host->index * 2u + (gid->raw[14] & 1)) * 0x9E3779B97F4A7C15u + span;
	mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9u;
	bool is_one_way = mixed >> 43 & 1, dead_way = mixed >> 44 & 1;
	return (mixed >> 40 & 7) == 0 && (!is_one_way || dead_way == is_outwards);
}

static void gather(struct frame *frame, const struct vb_outgoing *out, const struct vb_batch *batch)
{
	uint32_t length = 0;
	for (unsigned i = 0; i < out->iov_count; i++) {
		const struct vb_iov *iov = &batch->iov[out->iov_first + i];
		if (length + iov->length > VB_MAX_PAYLOAD)
			broken("a packet's scatter list is longer than any packet");
		memcpy(frame->payload + length, iov->base, iov->length);
		length += (uint32_t)iov->length;
	}
	if (length != out->packet.payload_length && out->iov_count)
		broken("%s says %u bytes and brings %u", vb_packet_row(&out->packet)->name, out->packet.payload_length,
			length);
	frame->is_phantom = out->iov_count == 0;
}

void trace_packet(const char *verb, uint32_t qpn, const struct vb_packet *packet)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	bool has_reth = false, has_aeth = false;
	for (const uint8_t *header = row->headers; *header != VB_END; header++) {
		has_reth |= *header == VB_RETH;
		has_aeth |= *header == VB_AETH;
	}
	trace("%06x %s %s to %06x psn %u%s len %u dma %u va %llx key %x syndrome %02x", qpn, verb,
		row->name ? row->name : "?", packet->dest_qpn, packet->psn, packet->ackreq ? " ackreq" : "",
		packet->payload_length, has_reth ? packet->dma_length : 0,
		has_reth ? (unsigned long long)packet->va : 0, has_reth ? packet->rkey : 0,
		has_aeth ? packet->syndrome : 0);
}

/* Of the endpoint that a lane is; a host has as many as it might have lanes. */
static uint32_t number_of(const struct lane *lane)
{
	return lane->host->index * MAX_LANES + (uint32_t)(lane - lane->host->lanes);
}

enum {
	LONGEST_HEADERS = 12 + 4 + 16 + 4
}; /* BTH, XRCETH, RETH, ImmDt: links carry them beside what they are said to */

static bool is_too_long(const struct vb_packet *packet)
{
	return vb_packet_row(packet)->headers_length + packet->payload_length > world.network.carried + LONGEST_HEADERS;
}

/* The lane that the QPN names. */
static const struct lane *find_lane(const struct host *host, uint32_t qpn)
{
	for (unsigned i = 0; i < host->lane_count; i++)
		if (host->lanes[i].slot == qpn >> 16)
			return &host->lanes[i];
	return &host->lanes[0];
}

void network_send(struct lane *from, const struct vb_outgoing *out, const struct vb_batch *batch)
{
	const struct host *to = find_host(&out->av->dgid);
	bool is_lost = is_dead(from->host, &out->av->sgid, true) || is_dead(to, &out->av->dgid, false);
	struct way *way = &ways[number_of(from)];
	is_lost |= world.network.carried && is_too_long(&out->packet);
	if (world.network.burst_run)
		is_lost |= vb_bursts_strikes(&way->bursts, &way->random);
	struct frame *frame = frame_get();
	world.packets++;
	if (is_verbose)
		trace_packet("sends", out->qp ? vb_qp_number(out->qp) : 0, &out->packet);
	note((uint64_t)out->packet.opcode << 48 | (uint64_t)out->packet.dest_qpn << 24 | out->packet.psn);
	frame->packet = out->packet;
	frame->sender = number_of(from);
	frame->number = way->sent++;
	frame->path = (struct vb_path){
		.src = out->av->sgid, .dst = out->av->dgid, .src_port = out->flow, .hop_limit = 60, .ifindex = 1
	};
	gather(frame, out, batch);
	if (is_lost) {
		world.lost++;
		frame_put(frame);
		return;
	}
	fabric_send(world.fabric, &(struct fabric_post){ .from = number_of(from),
					  .to = number_of(find_lane(to, out->packet.dest_qpn)),
					  .flow = out->flow,
					  .wire_bytes = (uint16_t)(vb_packet_wire_length(&out->packet) + 66),
					  .takes_marks = true,
					  .cargo = frame });
}

/* How many of the sender's have overtaken this one. */
static void measure_order(const struct lane *to, const struct frame *frame)
{
	uint64_t *newest = &ways[number_of(to)].newest[frame->sender];
	if (frame->number > *newest)
		*newest = frame->number;
	else if (*newest - frame->number > world.farthest)
		world.farthest = *newest - frame->number;
}

/* Into the lane's socket, if it has room. */
static void on_arrival(void *user, uint32_t number, void *cargo, bool is_marked)
{
	struct lane *lane = &world.hosts[number / MAX_LANES].lanes[number % MAX_LANES];
	struct frame *frame = cargo;
	uint64_t bytes = frame->packet.payload_length + FRAME_OVERHEAD;
	world.now = vb_time_add(world.begin, fabric_now(world.fabric));
	frame->path.traffic_class = is_marked ? 3 : 2;
	measure_order(lane, frame);
	if (chance(world.network.corrupt_ppm)) {
		world.corrupted++;
		if (!survives_corruption(frame)) {
			frame_put(frame);
			return;
		}
	}
	if (world.network.receive_buffer && lane->rx_bytes + bytes > world.network.receive_buffer) {
		world.overflowed++;
		frame_put(frame);
		return;
	}
	frame->packet.payload = frame->is_phantom ? NULL : frame->payload;
	frame->next = NULL;
	frame->arrived_at = world.now;
	*lane->rx_tail = frame;
	lane->rx_tail = &frame->next;
	lane->rx_bytes += bytes;
	lane->rx_count++;
	lane_wake(lane, world.now);
}

static void on_loss(void *user, void *cargo)
{
	frame_put(cargo);
}

static void *on_copy(void *user, void *cargo)
{
	const struct frame *frame = cargo;
	struct frame *copy = frame_get();
	memcpy(copy, frame, offsetof(struct frame, payload) + (frame->is_phantom ? 0 : frame->packet.payload_length));
	return copy;
}

static void on_call(void *user, uint32_t number)
{
	world.now = vb_time_add(world.begin, fabric_now(world.fabric));
	world_happen(event_take(number));
}

/* A lane's link is faulty on the way to the switch alone, and the way from there takes next to no time. */
static void connect(uint32_t lane)
{
	const struct conditions *n = &world.network;
	struct network *topology = &world.topology;
	struct network_fault fault = { .loss_ppm = n->drop_ppm,
		.duplicate_ppm = n->duplicate_ppm,
		.mark_ppm = n->ce_ppm,
		.late_ppm = n->reorder_ppm,
		.late_by = n->reorder_delay,
		.jitter = n->jitter };
	uint32_t link = network_connect(topology, lane, network_switch_node(0), n->bytes_per_second * 8, n->delay);
	network_set_fault(topology, link, &fault);
	topology->links[link + 1] = (struct network_link){ .from = network_switch_node(0),
		.to = lane,
		.bits_per_second = 8000000000000u,
		.reverse = link,
		.fault = NETWORK_NONE };
}

void network_open(void)
{
	static const struct switch_profile profile = { .name = "ideal", .class_count = 1 };
	static const struct nic_profile nic = { .name = "ideal" };
	static const struct fabric_holder holder = {
		.on_arrival = on_arrival, .on_loss = on_loss, .on_copy = on_copy, .on_call = on_call, .day_shift = 17
	};
	char why[100];
	memset(ways, 0, sizeof(ways));
	network_add_profile(&world.topology, &profile);
	network_add_nic(&world.topology, &nic);
	network_add_switch(&world.topology, 0, 0, NETWORK_NONE);
	for (unsigned i = 0; i < world.host_count * MAX_LANES; i++) {
		network_add_endpoint(&world.topology, i / MAX_LANES, 0);
		connect(i);
		vb_random_seed(&ways[i].random, world.seed * 64 + i);
		if (world.network.burst_run)
			vb_bursts_init(&ways[i].bursts, world.network.burst_ppm, world.network.burst_run);
	}
	if (network_finish(&world.topology, why, sizeof(why)) ||
		fabric_open(&world.topology, world.seed, &holder, &world.fabric, why, sizeof(why)))
		broken("there is no network: %s", why);
}

bool network_step(void)
{
	int rc = fabric_step(world.fabric);
	if (rc < 0)
		broken("there is no memory for the network");
	return rc;
}

vb_time network_free_at(const struct lane *lane)
{
	return vb_time_add(world.begin, fabric_free_at(world.fabric, number_of(lane)));
}

void network_black_out(const struct lane *lane, vb_time span)
{
	vb_time now = fabric_now(world.fabric);
	for (unsigned i = 0; i < world.topology.fault_count; i++) {
		if (lane && i != number_of(lane))
			continue;
		world.topology.faults[i].down_at = now;
		world.topology.faults[i].up_at = now + span;
	}
}

void network_close(void)
{
	world.lost += fabric_lost(world.fabric);
	fabric_close(world.fabric);
	network_free(&world.topology);
	for (struct frame *frame; (frame = world.frames);) {
		world.frames = frame->next;
		free(frame);
	}
}
