/* faulty_program STEP: for faults_test.py, which sets VERBENA_FAULTS. Each call that fails is printed with its errno.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "verbs/later.h"

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

static struct ibv_qp *make_qp_of(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	require(qp && ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
		"QP");
	return qp;
}

static struct ibv_qp *make_qp(struct ibv_cq **cq)
{
	*cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	require(*cq != NULL, "ibv_create_cq");
	return make_qp_of(*cq);
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

/* The same by the extended poller: a failed start needs no end. */
static void polls(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &init);
	struct ibv_poll_cq_attr attr = { 0 };
	require(cq != NULL, "ibv_create_cq_ex");
	struct ibv_qp *qp = make_qp_of(ibv_cq_ex_to_cq(cq));
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	for (int i = 0; i < 3; i++) {
		struct ibv_recv_wr wr = { .wr_id = 7 }, *bad = NULL;
		require(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
	}
	require(ibv_modify_qp(qp, &error, IBV_QP_STATE) == 0, "ibv_modify_qp");
	say("ibv_start_poll", 1, ibv_start_poll(cq, &attr));
	say("ibv_start_poll", 2, ibv_start_poll(cq, &attr));
	require(cq->wr_id == 7 && cq->status == IBV_WC_WR_FLUSH_ERR, "completion");
	for (int i = 1; i <= 2; i++)
		say("ibv_next_poll", i, ibv_next_poll(cq));
	ibv_end_poll(cq);
	require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0, "destroying");
}

/* By ibv_wr_*: a batch that fails is dropped, and leaves the QP to the next one. */
static void batches(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex init = { .send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp *qp = cq ? ibv_create_qp_ex(context, &init) : NULL;
	struct ibv_qp_attr ready = { .qp_state = IBV_QPS_INIT, .port_num = 1 }, error = { .qp_state = IBV_QPS_ERR };
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_wc wc;
	require(qp && mr, "QP");
	require(ibv_modify_qp(qp, &ready, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0 &&
			ibv_modify_qp(qp, &error, IBV_QP_STATE) == 0,
		"ibv_modify_qp");
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	for (int i = 1; i <= 3; i++) {
		ibv_wr_start(ex);
		ex->wr_id = i;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory);
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
		say("ibv_wr_complete", i, ibv_wr_complete(ex));
		int found = ibv_poll_cq(cq, 1, &wc);
		printf("completed %d: %d\n", i, found == 1 ? (int)wc.wr_id : 0);
	}
	require(ibv_dereg_mr(mr) == 0 && ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "destroying");
}

/* A call that fails changes no value. */
static void counters(void)
{
	struct later_comp_cntr_init_attr init = { .type = LATER_COMP_CNTR_WRS };
	struct later_comp_cntr *counter = later_create_comp_cntr(context, &init);
	uint64_t value = 0;
	require(counter != NULL, "ibv_create_comp_cntr");
	for (int i = 1; i <= 2; i++)
		say("ibv_set_comp_cntr", i, later_set_comp_cntr(counter, 10 * i));
	for (int i = 1; i <= 2; i++)
		say("ibv_inc_comp_cntr", i, later_inc_comp_cntr(counter, i));
	for (int i = 1; i <= 2; i++)
		say("ibv_read_comp_cntr", i, later_read_comp_cntr(counter, &value));
	printf("value: %d\n", (int)value);
	for (int i = 1; i <= 2; i++)
		say("ibv_destroy_comp_cntr", i, later_destroy_comp_cntr(counter));
}

static void device_memory(void)
{
	struct ibv_dm *dm = ibv_alloc_dm(context, &(struct ibv_alloc_dm_attr){ .length = 64 });
	uint32_t word = 7;
	require(dm != NULL, "ibv_alloc_dm");
	for (int i = 1; i <= 2; i++)
		say("ibv_memcpy_to_dm", i, ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)));
	word = 0;
	for (int i = 1; i <= 2; i++)
		say("ibv_memcpy_from_dm", i, ibv_memcpy_from_dm(&word, dm, 0, sizeof(word)));
	require(word == 7, "device memory");
	require(ibv_free_dm(dm) == 0, "ibv_free_dm");
}

static void register_one(const char *who, int number)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	say(who, number, mr ? 0 : errno);
	if (mr)
		require(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
}

/* The child has a device of its own, and its parent's counts. What its parent's device is asked counts too. */
static void forks(void)
{
	struct ibv_pd *parents = pd;
	struct ibv_context *parents_context = context;
	int status;
	register_one("parent", 1);
	fflush(stdout);
	pid_t child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		require(!ibv_reg_mr(parents, memory, sizeof(memory), 0) && errno == EPERM, "refusal");
		open_device();
		register_one("child", 1);
		register_one("child", 2);
		next_event();
		close_device();
		require(ibv_close_device(parents_context) == 0, "ibv_close_device");
		exit(0);
	}
	require(waitpid(child, &status, 0) == child && status == 0, "child");
	register_one("parent", 2);
	register_one("parent", 3);
}

/* Three events about the oldest SRQ and CQ; the objects are destroyed when all are acknowledged. */
static void queues_fail(void)
{
	struct ibv_async_event event;
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0),
		      *younger = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	require(cq && younger && srq, "queues");
	for (int i = 0; i < 3; i++) {
		struct pollfd wait = { .fd = context->async_fd, .events = POLLIN };
		require(poll(&wait, 1, 10000) == 1 && ibv_get_async_event(context, &event) == 0, "an event");
		const bool is_of_cq = event.event_type == IBV_EVENT_CQ_ERR;
		require(is_of_cq ? event.element.cq == cq : event.element.srq == srq, "the oldest object");
		printf("event: %s\n", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;
	require(ibv_post_srq_recv(srq, &wr, &bad) == 0, "the event alone");
	require(ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0 && ibv_destroy_cq(younger) == 0, "destroying");
}

static void work_queue_fails(void)
{
	struct ibv_async_event event;
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pd, .cq = cq };
	struct ibv_wq *wq = cq ? ibv_create_wq(context, &init) : NULL;
	require(wq != NULL, "ibv_create_wq");
	require(ibv_get_async_event(context, &event) == 0 && event.element.wq == wq, "an event");
	printf("event: %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	require(ibv_destroy_wq(wq) == 0 && ibv_destroy_cq(cq) == 0, "destroying");
}

/* Events that nobody fetches go with their object. */
static void queues_go(void)
{
	struct pollfd wait = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	require(cq && srq && poll(&wait, 1, 10000) == 1, "an event");
	usleep(100000);
	require(ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0, "destroying");
	require(poll(&wait, 1, 0) == 0, "no event");
	printf("events: gone\n");
}

static void qp_is_told(void)
{
	struct ibv_cq *cq;
	struct ibv_qp *qp = make_qp(&cq);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	next_event();
	next_event();
	require(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_INIT, "the events alone");
	require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "destroying");
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
	{ "device", device_fails }, { "polls", polls }, { "batches", batches }, { "counters", counters },
	{ "device memory", device_memory }, { "forks", forks }, { "queues", queues_fail },
	{ "work queue", work_queue_fails }, { "gone", queues_go }, { "told", qp_is_told } };

int main(int argc, char **argv)
{
	size_t step = 0;
	while (step < sizeof(steps) / sizeof(steps[0]) && (argc < 2 || strcmp(argv[1], steps[step].name) != 0))
		step++;
	require(step < sizeof(steps) / sizeof(steps[0]), "no such step");
	open_device();
	steps[step].run();
	close_device();
	return 0;
}
