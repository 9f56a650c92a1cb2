/* How much memory an idle, connected RC QP takes: makes many with the smallest queues, each connected to itself, and
 * divides what the process grew by. Only the public verbs ABI. Prints "bytes_per_qp=N". */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM_UP = 100, COUNT = 10000 };

static long resident_bytes(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		exit(1);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void check(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

static void connect_to_itself(struct ibv_qp *qp, const union ibv_gid *gid, enum ibv_mtu mtu)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE
	};
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = *gid, .hop_limit = 64 } } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 16
	};

	check(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	check(!ibv_modify_qp(qp, &rtr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		"RTR");
	check(!ibv_modify_qp(qp, &rts,
		      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			      IBV_QP_MAX_QP_RD_ATOMIC),
		"RTS");
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	check(list && list[0], "ibv_get_device_list");
	struct ibv_context *context = ibv_open_device(list[0]);
	check(context != NULL, "ibv_open_device");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	static struct ibv_qp *qps[WARM_UP + COUNT];
	struct ibv_port_attr port;
	union ibv_gid gid;
	long before = 0;

	check(pd && cq && !ibv_query_port(context, 1, &port) && !ibv_query_gid(context, 1, 0, &gid), "setting up");
	memset(qps, 1, sizeof(qps)); /* resident before we look */
	for (int i = 0; i < WARM_UP + COUNT; i++) {
		struct ibv_qp_init_attr attr = { .send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };

		if (i == WARM_UP)
			before = resident_bytes();
		qps[i] = ibv_create_qp(pd, &attr);
		check(qps[i] != NULL, "ibv_create_qp");
		connect_to_itself(qps[i], &gid, port.active_mtu);
	}
	printf("qps=%d bytes_per_qp=%ld\n", COUNT, (resident_bytes() - before) / COUNT);
	for (int i = 0; i < WARM_UP + COUNT; i++)
		check(!ibv_destroy_qp(qps[i]), "ibv_destroy_qp");
	check(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(context), "tearing down");
	ibv_free_device_list(list);
	return 0;
}
