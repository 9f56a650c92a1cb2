/* pair [overflow|leak|race]: two connected QPs of one process. One thread writes and posts, the other polls, reads what
 * has come, and writes into both buffers again. Prints "done", or has the bug of its argument: a sanitizer is to find
 * that one and nothing else. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 65536, MESSAGES = 100 };

static struct end {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *bytes;
} ends[2];

static atomic_int turn; /* the poster may write that message */
static int unguarded;

static void must(int is_right, const char *what)
{
	if (!is_right) {
		perror(what);
		exit(1);
	}
}

static void make_end(struct ibv_context *context, struct ibv_pd *pd, struct end *end)
{
	end->bytes = malloc(SIZE);
	end->mr = ibv_reg_mr(pd, end->bytes, SIZE, IBV_ACCESS_LOCAL_WRITE);
	end->cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	must(end->mr && end->cq, "objects");
	struct ibv_qp_init_attr attr = { .send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 } };
	end->qp = ibv_create_qp(pd, &attr);
	must(end->qp != NULL, "ibv_create_qp");
}

static void connect_end(struct end *end, const struct end *to, union ibv_gid gid)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp->qp_num,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };

	must(!ibv_modify_qp(end->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		"INIT");
	must(!ibv_modify_qp(end->qp, &rtr,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		"RTR");
	must(!ibv_modify_qp(end->qp, &rts,
		     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC),
		"RTS");
}

static uint32_t length_of(int message)
{
	return message % 2 ? SIZE : 64;
}

static void *post(void *has_race)
{
	for (int i = 0; i < MESSAGES; i++) {
		while (atomic_load(&turn) != i)
			;
		memset(ends[0].bytes, i, SIZE);
		struct ibv_sge sge = { (uintptr_t)ends[0].bytes, length_of(i), ends[0].mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED },
				   *bad;
		if (has_race)
			unguarded++;
		must(!ibv_post_send(ends[0].qp, &wr, &bad), "ibv_post_send");
	}
	return NULL;
}

static struct ibv_wc take(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	return wc;
}

static void receive(int message)
{
	struct ibv_sge sge = { (uintptr_t)ends[1].bytes, SIZE, ends[1].mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(ends[1].qp, &wr, &bad), "ibv_post_recv");
	must(take(ends[1].cq).byte_len == length_of(message), "length");
	for (uint32_t i = 0; i < length_of(message); i++)
		must(ends[1].bytes[i] == (char)message, "bytes");
	take(ends[0].cq);
	memset(ends[0].bytes, 0xee, SIZE);
	memset(ends[1].bytes, 0xee, SIZE);
}

int main(int argc, char **argv)
{
	const char *bug = argc > 1 ? argv[1] : "";
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices[0] ? ibv_open_device(devices[0]) : NULL;
	must(context != NULL, "ibv_open_device");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	union ibv_gid gid;
	pthread_t poster;

	must(!ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
	for (int i = 0; i < 2; i++)
		make_end(context, pd, &ends[i]);
	for (int i = 0; i < 2; i++)
		connect_end(&ends[i], &ends[!i], gid);
	must(!pthread_create(&poster, NULL, post, strcmp(bug, "race") == 0 ? &unguarded : NULL), "pthread_create");
	for (int i = 0; i < MESSAGES; i++) {
		if (strcmp(bug, "race") == 0)
			unguarded++;
		receive(i);
		atomic_store(&turn, i + 1);
	}
	pthread_join(poster, NULL);
	if (strcmp(bug, "overflow") == 0)
		ends[0].bytes[SIZE + argc] = 1;
	for (int i = 0; i < 2; i++) {
		must(!ibv_destroy_qp(ends[i].qp) && !ibv_destroy_cq(ends[i].cq) && !ibv_dereg_mr(ends[i].mr),
			"destroy");
		if (strcmp(bug, "leak") != 0)
			free(ends[i].bytes);
		ends[i].bytes = NULL;
	}
	must(!ibv_dealloc_pd(pd) && !ibv_close_device(context), "close");
	ibv_free_device_list(devices);
	printf("done\n");
	return 0;
}
