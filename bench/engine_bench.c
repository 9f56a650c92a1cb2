/* engine_bench [SECONDS [ROW]]: nanoseconds of engine per packet, without sockets: two lanes back to back, packets
 * handed over by pointer, or descriptors, as on one host; and 1,024 adapters in turn, a packet at a time, as in a
 * fabric, where each adapter's state is cold. The cost of a packet is that of its sender, its receiver and its share of
 * the acks; in the fabric each ack counts as a packet. The figure is the CPU time of the best slice of some
 * milliseconds, since other programs slow all other slices. Also the memory of an idle connected RC QP. One line for
 * each measurement, or that of one row alone; compare.py runs two builds turn about. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "local/local.h"
#include "engine/nic.h"

#define DEPTH    16
#define SLICE_NS 5000000
#define BUFFER   (1 << 20)
#define PAGE     4096

struct end {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
	uint8_t *memory;
	struct vb_gid gid;
	uint8_t slot;
	struct vb_local_peer other; /* of rows by descriptors */
};

/* What one line measures: messages of length bytes of op. */
struct row {
	const char *name;
	enum vb_wr_opcode op;
	uint32_t length;
	bool is_phantom;
	bool is_local; /* by descriptors */
	/* bytes between the two buffers' places within a page: what copies is slow where they are few */
	uint32_t apart;
};

static const struct row rows[] = {
	{ "WRITE 8 B", VB_WR_RDMA_WRITE, 8, .apart = 0 },
	{ "SEND 8 B", VB_WR_SEND, 8, .apart = 0 },
	{ "WRITE 8 B by descriptors", VB_WR_RDMA_WRITE, 8, .is_local = true },
	{ "SEND 8 B by descriptors", VB_WR_SEND, 8, .is_local = true },
	{ "WRITE 64 KiB, packets of 4 KiB", VB_WR_RDMA_WRITE, 65536, .apart = 0 },
	{ "WRITE 64 KiB, 16 bytes apart", VB_WR_RDMA_WRITE, 65536, .apart = 16 },
	{ "WRITE 64 KiB, packets of 4 KiB, no memory", VB_WR_RDMA_WRITE, 65536, .is_phantom = true },
	{ "READ 64 KiB, packets of 4 KiB", VB_WR_RDMA_READ, 65536, .apart = 0 },
};

static struct vb_batch batch;
static vb_time now;
static uint64_t packets;

static void must(int rc, const char *what)
{
	if (rc) {
		fprintf(stderr, "engine_bench: %s: %s\n", what, strerror(-rc));
		exit(1);
	}
}

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void open_end(struct end *end, uint8_t n, size_t bytes, bool is_phantom, uint32_t offset)
{
	struct vb_nic_config nic = { .seed = n, .mtu = 4096 };
	struct vb_lane_config lane = { .seed = n, .slot = n };
	struct vb_cq_config cq = { .capacity = 1024 };
	memset(end, 0, sizeof(*end));
	end->gid = vb_gid_from_ipv4(10, 0, 0, n);
	end->slot = n;
	end->memory = is_phantom ? NULL : aligned_alloc(PAGE, bytes + PAGE);
	if (end->memory)
		memset(end->memory, n, bytes + PAGE);
	must(vb_nic_create(&nic, &end->nic), "nic");
	must(vb_nic_set_gid(end->nic, 0, &end->gid), "gid");
	must(vb_lane_create(&lane, &end->lane), "lane");
	must(vb_pd_create(end->nic, &end->pd), "pd");
	must(vb_cq_create(end->nic, &cq, &end->cq), "cq");
	struct vb_mr_config mr = { .memory = is_phantom ? NULL : end->memory + offset,
		.iova = 1 << 20,
		.length = bytes,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
		.kind = is_phantom ? &vb_memory_phantom : NULL };
	must(vb_mr_register(end->pd, &mr, &end->mr), "mr");
}

static void close_end(struct end *end)
{
	must(vb_qp_destroy(end->qp), "destroy qp");
	vb_mr_invalidate(end->mr);
	vb_mr_free(end->mr);
	must(vb_cq_destroy(end->cq), "destroy cq");
	must(vb_pd_destroy(end->pd), "destroy pd");
	vb_lane_destroy(end->lane);
	vb_nic_destroy(end->nic);
	free(end->memory);
}

static struct vb_qp *create_qp(struct end *end, uint32_t depth)
{
	struct vb_qp_config config = { .type = VB_QP_RC,
		.pd = end->pd,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.max_send_wr = depth,
		.max_recv_wr = depth,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
	struct vb_qp *qp;
	must(vb_qp_create(end->lane, &config, &qp), "qp");
	return qp;
}

static void connect_qp(struct end *end, struct vb_qp *qp, const struct vb_gid *peer, uint32_t qpn)
{
	struct vb_qp_attr attr = { .path_mtu = 4096,
		.dest_qpn = qpn,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
		.port = 1,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.av = { .sgid = end->gid, .dgid = *peer } };
	attr.state = VB_QPS_INIT;
	must(vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS, now), "INIT");
	attr.state = VB_QPS_RTR;
	must(vb_qp_modify(qp, &attr,
		     VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
			     VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER,
		     now),
		"RTR");
	attr.state = VB_QPS_RTS;
	must(vb_qp_modify(qp, &attr,
		     VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN |
			     VB_QP_MAX_QP_RD_ATOMIC,
		     now),
		"RTS");
}

/* Everything that from has to send goes to to, by pointer. */
static bool carry(struct end *from, struct end *to)
{
	struct vb_packet train[VB_BATCH_PACKETS];
	struct vb_path path = { .src = from->gid, .dst = to->gid, .src_port = 0xC000, .hop_limit = 64 };
	unsigned n = vb_lane_transmit(from->lane, &batch, VB_BATCH_PACKETS, now);
	for (unsigned i = 0; i < n; i++) {
		train[i] = batch.out[i].packet;
		train[i].payload = batch.out[i].iov_count ? batch.iov[batch.out[i].iov_first].base : NULL;
	}
	if (n) {
		vb_lane_receive(to->lane, &path, train, n, now);
		vb_lane_transmit_done(from->lane, batch.completions, n, now);
	}
	packets += n;
	return n > 0;
}

/* The same of descriptors, and of the answers to them. */
static bool carry_local(struct end *from, struct end *to)
{
	struct vb_descriptor descriptors[VB_BATCH_PACKETS];
	struct vb_answer answers[VB_BATCH_PACKETS], back[VB_BATCH_PACKETS];
	static uint8_t heap[VB_LOCAL_PART], heap_back[VB_LOCAL_PART];
	struct vb_local_heap seen = { heap, sizeof(heap) };
	struct vb_local_room out = { .descriptors = descriptors,
		.answers = answers,
		.descriptor_max = VB_BATCH_PACKETS,
		.answer_max = VB_BATCH_PACKETS,
		.heap = heap,
		.heap_bytes = sizeof(heap) };
	struct vb_local_room in = {
		.answers = back, .answer_max = VB_BATCH_PACKETS, .heap = heap_back, .heap_bytes = sizeof(heap_back)
	};
	vb_local_transmit(&from->other, &out, now);
	if (out.answer_count)
		vb_local_answered(&to->other, answers, out.answer_count, &seen, now);
	if (out.descriptor_count)
		vb_local_receive(&to->other, descriptors, out.descriptor_count, &seen, &in, now);
	must(in.answer_count ? -5 : 0, "an answer that is not success");
	packets += out.descriptor_count;
	return out.descriptor_count + out.answer_count > 0;
}

static void carry_all(struct end *a, struct end *b, bool is_local)
{
	bool (*carry_some)(struct end *, struct end *) = is_local ? carry_local : carry;
	while ((int)carry_some(a, b) | (int)carry_some(b, a)) /* both, always */
		now = vb_time_add(now, VB_US);
}

static void post(struct end *end, const struct vb_send_wr *wr, unsigned count)
{
	vb_sq_begin(end->qp);
	while (count-- > 0)
		must(vb_sq_put(end->qp, wr), "post");
	vb_sq_end(end->qp, true);
}

static unsigned reap(struct end *end)
{
	struct vb_wc wc[DEPTH];
	int n = vb_cq_poll(end->cq, wc, DEPTH);
	for (int i = 0; i < n; i++)
		must(wc[i].status ? -5 : 0, "completion");
	return (unsigned)n;
}

/* As many messages as a slice takes; their best price so far goes to *packet_ns and *message_ns. */
static void take_slice(struct end *a, struct end *b, const struct row *row, double *packet_ns, double *message_ns)
{
	struct vb_sge sge = { 1 << 20, row->length, vb_mr_key(a->mr) },
		      recv_sge = { 1 << 20, BUFFER, vb_mr_key(b->mr) };
	struct vb_recv_wr recv = { .sges = &recv_sge, .sge_count = 1 };
	struct vb_send_wr wr = { .opcode = row->op,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.remote_addr = 1 << 20,
		.rkey = vb_mr_key(b->mr) };
	uint64_t messages = 0, begin = clock_ns(), elapsed;
	packets = 0;
	do {
		for (unsigned round = 0; round < 16; round++) {
			unsigned done = 0;
			for (int i = 0; row->op == VB_WR_SEND && i < DEPTH; i++)
				must(vb_rq_post(b->qp, &recv), "post a receive");
			post(a, &wr, DEPTH);
			while (done < DEPTH) {
				carry_all(a, b, row->is_local);
				done += reap(a);
				vb_lane_advance(a->lane, now);
				vb_lane_advance(b->lane, now);
			}
			messages += done;
			if (row->op == VB_WR_SEND)
				reap(b);
		}
		elapsed = clock_ns() - begin;
	} while (elapsed < SLICE_NS);
	if ((double)elapsed / (double)packets < *packet_ns)
		*packet_ns = (double)elapsed / (double)packets;
	if ((double)elapsed / (double)messages < *message_ns)
		*message_ns = (double)elapsed / (double)messages;
}

static void be_local_peers(struct end *a, struct end *b)
{
	vb_local_peer_init(&a->other, a->lane, b->slot, 0);
	must(vb_lane_set_local_peer(a->lane, &b->gid, b->slot, &a->other), "local peer");
}

static void measure(const struct row *row, double seconds)
{
	struct end a, b;
	double packet_ns = 1e18, message_ns = 1e18;
	open_end(&a, 1, BUFFER, row->is_phantom, 0);
	open_end(&b, 2, BUFFER, row->is_phantom, row->apart);
	struct vb_peer_facts facts = { .is_verbena = true, .receive_buffer = 4 << 20 };
	vb_lane_set_peer(a.lane, &b.gid, &facts);
	vb_lane_set_peer(b.lane, &a.gid, &facts);
	if (row->is_local) {
		be_local_peers(&a, &b);
		be_local_peers(&b, &a);
	}
	a.qp = create_qp(&a, DEPTH);
	b.qp = create_qp(&b, DEPTH);
	connect_qp(&a, a.qp, &b.gid, vb_qp_number(b.qp));
	connect_qp(&b, b.qp, &a.gid, vb_qp_number(a.qp));
	for (uint64_t begin = clock_ns(); (double)(clock_ns() - begin) < seconds * 1e9;)
		take_slice(&a, &b, row, &packet_ns, &message_ns);
	printf("%-44s %7.1f ns a packet  %8.1f ns a message\n", row->name, packet_ns, message_ns);
	close_end(&a);
	close_end(&b);
}

/* ---- A fabric's endpoints ---- */

enum { ENDPOINTS = 1024, FAR = 517, FLOW = 2 << 20, AHEAD = 4 };

struct endpoint {
	struct end end; /* sends by its qp */
	struct vb_qp *receiver;
	struct vb_packet packet; /* on its way */
	bool is_on_way;
};

static void open_endpoint(struct endpoint *endpoint, uint32_t n)
{
	struct vb_nic_config nic = { .seed = n, .mtu = 4096 };
	struct vb_lane_config lane = { .seed = n,
		.slot = 1,
		.unknown_peer_allowance = VB_UNLIMITED,
		.cc.algorithm = &vb_cc_none,
		.acks = { .every_bytes = VB_UNLIMITED, .every_packets = 1, .by_count_alone = true },
		.packet_overhead = VB_NONE,
		.never_probes = true,
		.turn_bytes = 1,
		.replies_first = true };
	struct vb_cq_config cq = { .capacity = 16 };
	struct vb_mr_config mr = {
		.length = FLOW, .kind = &vb_memory_phantom, .access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE
	};
	struct end *end = &endpoint->end;
	end->gid = vb_gid_from_ipv4(10, 0, (uint8_t)(n >> 8), (uint8_t)n);
	must(vb_nic_create(&nic, &end->nic), "nic");
	must(vb_nic_set_gid(end->nic, 0, &end->gid), "gid");
	must(vb_lane_create(&lane, &end->lane), "lane");
	must(vb_pd_create(end->nic, &end->pd), "pd");
	must(vb_cq_create(end->nic, &cq, &end->cq), "cq");
	must(vb_mr_register(end->pd, &mr, &end->mr), "mr");
	end->qp = create_qp(end, 2);
	endpoint->receiver = create_qp(end, 1);
}

static struct endpoint *peer_of(struct endpoint *endpoints, uint32_t n)
{
	return &endpoints[(n + FAR) % ENDPOINTS];
}

/* The next packet, which stays on its way. */
static void pull(struct endpoint *endpoint)
{
	struct vb_lane *lane = endpoint->end.lane;
	endpoint->is_on_way = vb_lane_transmit(lane, &batch, 1, now) > 0;
	if (!endpoint->is_on_way)
		return;
	endpoint->packet = batch.out[0].packet;
	vb_lane_transmit_done(lane, batch.completions, 1, now);
	packets++;
}

/* What from has on its way arrives. As its holder does, to is asked what it wants. */
static void deliver(struct endpoint *from, struct endpoint *to)
{
	struct vb_path path = { .src = from->end.gid, .dst = to->end.gid };
	if (!from->is_on_way)
		return;
	vb_lane_receive(to->end.lane, &path, &from->packet, 1, now);
	from->is_on_way = false;
	if (vb_lane_next_deadline(to->end.lane).is_set && vb_lane_wants_transmit(to->end.lane, now) &&
		!vb_cq_is_empty(to->end.cq))
		reap(&to->end);
}

static void post_flow(struct endpoint *from, struct endpoint *to)
{
	struct vb_sge sge = { 0, FLOW, vb_mr_key(from->end.mr) };
	struct vb_send_wr wr = { .opcode = VB_WR_RDMA_WRITE,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.rkey = vb_mr_key(to->end.mr) };
	reap(&from->end);
	post(&from->end, &wr, 1);
}

/* All data packets of a moment leave and arrive, then their acks do. */
static void turn(struct endpoint *endpoints)
{
	for (uint32_t i = 0; i < ENDPOINTS; i++) {
		vb_lane_prefetch(endpoints[(i + AHEAD) % ENDPOINTS].end.lane,
			vb_qp_number(endpoints[(i + AHEAD) % ENDPOINTS].end.qp));
		pull(&endpoints[i]);
	}
	now = vb_time_add(now, 100 * VB_NS);
	for (uint32_t i = 0; i < ENDPOINTS; i++) {
		vb_lane_prefetch(
			peer_of(endpoints, i + AHEAD)->end.lane, endpoints[(i + AHEAD) % ENDPOINTS].packet.dest_qpn);
		deliver(&endpoints[i], peer_of(endpoints, i));
	}
	for (uint32_t i = 0; i < ENDPOINTS; i++)
		pull(&endpoints[i]);
	now = vb_time_add(now, 100 * VB_NS);
	for (uint32_t i = 0; i < ENDPOINTS; i++) {
		vb_lane_prefetch(endpoints[(i + AHEAD) % ENDPOINTS].end.lane,
			vb_qp_number(endpoints[(i + AHEAD) % ENDPOINTS].end.qp));
		deliver(peer_of(endpoints, i), &endpoints[i]);
	}
}

static void measure_fabric(const char *name, double seconds)
{
	struct endpoint *endpoints = calloc(ENDPOINTS, sizeof(*endpoints));
	double packet_ns = 1e18;
	for (uint32_t i = 0; i < ENDPOINTS; i++)
		open_endpoint(&endpoints[i], i);
	for (uint32_t i = 0; i < ENDPOINTS; i++) {
		struct endpoint *peer = peer_of(endpoints, i);
		connect_qp(&endpoints[i].end, endpoints[i].end.qp, &peer->end.gid, vb_qp_number(peer->receiver));
		connect_qp(&peer->end, peer->receiver, &endpoints[i].end.gid, vb_qp_number(endpoints[i].end.qp));
	}
	for (uint64_t begin = clock_ns(); (double)(clock_ns() - begin) < seconds * 1e9;) {
		for (uint32_t i = 0; i < ENDPOINTS; i++)
			post_flow(&endpoints[i], peer_of(endpoints, i));
		for (int part = 0; part < 16; part++) {
			uint64_t slice = clock_ns();
			packets = 0;
			for (int i = 0; i < FLOW / 4096 / 16; i++)
				turn(endpoints);
			double taken = (double)(clock_ns() - slice) / (double)packets;
			packet_ns = taken < packet_ns ? taken : packet_ns;
		}
	}
	printf("%-44s %7.1f ns a packet\n", name, packet_ns);
	for (uint32_t i = 0; i < ENDPOINTS; i++) {
		must(vb_qp_destroy(endpoints[i].receiver), "destroy qp");
		close_end(&endpoints[i].end);
	}
	free(endpoints);
}

static void measure_memory(uint32_t depth)
{
	enum { COUNT = 2000 };
	struct end end;
	struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 9);
	struct vb_qp *qps[COUNT];
	open_end(&end, 1, 4096, false, 0);
	end.qp = create_qp(&end, 1);
	size_t before = mallinfo2().uordblks;
	for (int i = 0; i < COUNT; i++) {
		qps[i] = create_qp(&end, depth);
		connect_qp(&end, qps[i], &peer, 77);
	}
	size_t each = (mallinfo2().uordblks - before) / COUNT;
	printf("idle connected RC QP, %4u sends and receives  %7zu bytes\n", depth, each);
	for (int i = 0; i < COUNT; i++)
		must(vb_qp_destroy(qps[i]), "destroy qp");
	close_end(&end);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (argc <= 2 || strcmp(argv[2], rows[i].name) == 0)
			measure(&rows[i], seconds);
	static const char fabric[] = "fabric, 1,024 adapters in turn";
	if (argc <= 2 || strcmp(argv[2], fabric) == 0)
		measure_fabric(fabric, seconds);
	if (argc > 2)
		return 0;
	measure_memory(1);
	measure_memory(64);
	return 0;
}
