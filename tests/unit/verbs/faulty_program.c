/* faulty_program STEP: for faults_test.py, which sets VERBENA_FAULTS. Each call that fails is printed with its errno.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static char memory[4096];

static void require(int holds, const char *what)
{
	if (holds)
		return;
	printf("broken: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say(const char *call, int number, int error)
{
	printf("%s %d: %s\n", call, number, error ? strerrorname_np(error) : "ok");
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	require(list && list[0], "no device");
	context = ibv_open_device(list[0]);
	if (!context) {
		say("ibv_open_device", 1, errno);
		context = ibv_open_device(list[0]);
	}
	require(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	require(pd != NULL, "ibv_alloc_pd");
}

static void close_device(void)
{
	require(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
	require(ibv_close_device(context) == 0, "ibv_close_device");
}

static void regions(void)
{
	for (int i = 1; i <= 6; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
		say("ibv_reg_mr", i, mr ? 0 : errno);
		if (mr)
			require(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
	}
}

static struct ibv_qp *make_qp(struct ibv_cq **cq)
{
	*cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	require(*cq != NULL, "ibv_create_cq");
	struct ibv_qp_init_attr init = { .send_cq = *cq,
		.recv_cq = *cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	require(qp && ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
		"QP");
	return qp;
}

static void posts(void)
{
	struct ibv_cq *cq;
	struct ibv_qp *qp = make_qp(&cq);
	struct ibv_wc wc;
	for (int i = 1; i <= 3; i++) {
		struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;
		const int error = ibv_post_recv(qp, &wr, &bad);
		require(!error || bad == &wr, "bad_wr");
		say("ibv_post_recv", i, error);
		const int found = ibv_poll_cq(cq, 1, &wc);
		say("ibv_poll_cq", i, found < 0 ? -found : 0);
	}
	require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "destroying");
}

static int next_event(void)
{
	struct ibv_async_event event;
	struct pollfd wait = { .fd = context->async_fd, .events = POLLIN };
	require(poll(&wait, 1, 10000) == 1 && ibv_get_async_event(context, &event) == 0, "an event");
	printf("event: %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	return event.event_type;
}

static void say_port(void)
{
	struct ibv_port_attr attr;
	require(ibv_query_port(context, 1, &attr) == 0, "ibv_query_port");
	printf("port: %s\n", ibv_port_state_str(attr.state));
}

static void port(void)
{
	say_port();
	next_event();
	say_port();
	next_event();
	say_port();
}

static void qp_fails(void)
{
	struct ibv_cq *cq;
	struct ibv_qp *qp = make_qp(&cq);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	next_event();
	require(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
	printf("QP: %s\n", attr.qp_state == IBV_QPS_ERR ? "ERR" : "not ERR");
	require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "destroying");
}

static void device_fails(void)
{
	next_event();
	regions();
}

static const struct {
	const char *name;
	void (*run)(void);
} steps[] = { { "regions", regions }, { "posts", posts }, { "port", port }, { "qp", qp_fails },
	{ "device", device_fails } };

int main(int argc, char **argv)
{
	open_device();
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (argc > 1 && strcmp(argv[1], steps[i].name) == 0)
			steps[i].run();
	close_device();
	return 0;
}
