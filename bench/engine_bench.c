/* engine_bench [SECONDS]: nanoseconds of engine per packet, without sockets: two lanes back to back, packets handed over by
 * pointer. A packet costs its sender and its receiver, and its share of the acks; all of it is counted. Also the memory of
 * an idle connected RC QP. One line for each measurement. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "engine/nic.h"

#define DEPTH 16

struct end {
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
	uint8_t *memory;
	struct vb_gid gid;
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
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void open_end(struct end *end, uint8_t n, size_t bytes, bool is_phantom)
{
	struct vb_nic_config nic = { .seed = n, .mtu = 4096 };
	struct vb_lane_config lane = { .seed = n, .slot = n };
	struct vb_cq_config cq = { .capacity = 1024 };
	memset(end, 0, sizeof(*end));
	end->gid = vb_gid_from_ipv4(10, 0, 0, n);
	end->memory = is_phantom ? NULL : calloc(1, bytes);
	must(vb_nic_create(&nic, &end->nic), "nic");
	must(vb_nic_set_gid(end->nic, 0, &end->gid), "gid");
	must(vb_lane_create(&lane, &end->lane), "lane");
	must(vb_pd_create(end->nic, &end->pd), "pd");
	must(vb_cq_create(end->nic, &cq, &end->cq), "cq");
	struct vb_mr_config mr = { .memory = end->memory, .iova = 1 << 20, .length = bytes,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
		.kind = is_phantom ? VB_MEMORY_PHANTOM : VB_MEMORY_HOST };
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
	struct vb_qp_config config = { .type = VB_QP_RC, .pd = end->pd, .send_cq = end->cq, .recv_cq = end->cq,
		.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1 };
	struct vb_qp *qp;
	must(vb_qp_create(end->lane, &config, &qp), "qp");
	return qp;
}

static void connect_qp(struct end *end, struct vb_qp *qp, const struct vb_gid *peer, uint32_t qpn)
{
	struct vb_qp_attr attr = { .path_mtu = 4096, .dest_qpn = qpn, .access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
		.port = 1, .max_rd_atomic = 4, .max_dest_rd_atomic = 4, .min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .av = { .sgid = end->gid, .dgid = *peer } };
	attr.state = VB_QPS_INIT;
	must(vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS, now), "INIT");
	attr.state = VB_QPS_RTR;
	must(vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN |
			VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER, now), "RTR");
	attr.state = VB_QPS_RTS;
	must(vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN |
			VB_QP_MAX_QP_RD_ATOMIC, now), "RTS");
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
		vb_lane_transmit_done(from->lane, &batch, now);
	}
	packets += n;
	return n > 0;
}

static void write_messages(struct end *a, struct end *b, uint32_t length, double seconds, const char *name)
{
	struct vb_sge sge = { 1 << 20, length, vb_mr_key(a->mr) };
	struct vb_send_wr wr = { .opcode = VB_WR_RDMA_WRITE, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1,
		.remote_addr = 1 << 20, .rkey = vb_mr_key(b->mr) };
	struct vb_wc wc[DEPTH];
	unsigned outstanding = 0;
	uint64_t messages = 0, begin = clock_ns(), elapsed;
	packets = 0;
	do {
		for (int round = 0; round < 256; round++) {
			vb_sq_begin(a->qp);
			for (; outstanding < DEPTH; outstanding++)
				must(vb_sq_put(a->qp, &wr), "post");
			vb_sq_end(a->qp, true);
			while ((int)carry(a, b) | (int)carry(b, a)) /* both, always */
				now = vb_time_add(now, VB_US);
			int n = vb_cq_poll(a->cq, wc, DEPTH);
			for (int i = 0; i < n; i++)
				must(wc[i].status ? -5 : 0, "completion");
			outstanding -= (unsigned)n;
			messages += (unsigned)n;
			vb_lane_advance(a->lane, now);
			vb_lane_advance(b->lane, now);
		}
		elapsed = clock_ns() - begin;
	} while ((double)elapsed < seconds * 1e9);
	printf("%-44s %7.1f ns a packet  %8.1f ns a message\n", name, (double)elapsed / (double)packets,
		(double)elapsed / (double)messages);
}

static void measure(const char *name, uint32_t length, bool is_phantom, double seconds)
{
	struct end a, b;
	open_end(&a, 1, 1 << 20, is_phantom);
	open_end(&b, 2, 1 << 20, is_phantom);
	struct vb_peer_facts facts = { .is_verbena = true, .receive_buffer = 4 << 20 };
	vb_lane_set_peer(a.lane, &b.gid, &facts);
	a.qp = create_qp(&a, DEPTH);
	b.qp = create_qp(&b, DEPTH);
	connect_qp(&a, a.qp, &b.gid, vb_qp_number(b.qp));
	connect_qp(&b, b.qp, &a.gid, vb_qp_number(a.qp));
	write_messages(&a, &b, length, seconds, name);
	close_end(&a);
	close_end(&b);
}

static void measure_memory(uint32_t depth)
{
	enum { COUNT = 2000 };
	struct end end;
	struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 9);
	struct vb_qp *qps[COUNT];
	open_end(&end, 1, 4096, false);
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
	measure("WRITE 8 B", 8, false, seconds);
	measure("WRITE 64 KiB, packets of 4 KiB", 65536, false, seconds);
	measure("WRITE 64 KiB, packets of 4 KiB, no memory", 65536, true, seconds);
	measure_memory(1);
	measure_memory(64);
	return 0;
}
