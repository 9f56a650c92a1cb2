/* Completion counters: what counts, into what, and when they may be attached and destroyed. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "engine/nic.h"
#include "fixture.h"
#include "loop_host.h"
#include "verbs/later.h"

enum {
	OF_SEND = 1 << VB_COUNTED_SEND,
	OF_RECV = 1 << VB_COUNTED_RECV,
	OF_READ = 1 << VB_COUNTED_READ,
	OF_REMOTE_READ = 1 << 3,
	OF_WRITE = 1 << VB_COUNTED_WRITE,
	OF_REMOTE_WRITE = 1 << VB_COUNTED_REMOTE_WRITE,
};

static struct later_comp_cntr *create(struct fixture *f, enum later_comp_cntr_type type)
{
	struct later_comp_cntr *counter =
		later_create_comp_cntr(f->context, &(struct later_comp_cntr_init_attr){ .type = type });
	assert_non_null(counter);
	return counter;
}

static int attach(struct ibv_qp *qp, struct later_comp_cntr *counter, uint32_t ops)
{
	return later_qp_attach_comp_cntr(qp, counter, &(struct later_qp_attach_comp_cntr_attr){ .op_mask = ops });
}

static uint64_t done(struct later_comp_cntr *counter)
{
	uint64_t value;
	assert_int_equal(later_read_comp_cntr(counter, &value), 0);
	return value;
}

static uint64_t failed(struct later_comp_cntr *counter)
{
	uint64_t value;
	assert_int_equal(later_read_err_comp_cntr(counter, &value), 0);
	return value;
}

/* Two QPs, not connected yet: counters come first. */
static void make_pair(struct fixture *f)
{
	f->left = fixture_create_qp(f, IBV_QPT_RC, NULL);
	f->right = fixture_create_qp(f, IBV_QPT_RC, NULL);
}

static void connect_pair(struct fixture *f)
{
	fixture_connect(f->left, f->right->qp_num);
	fixture_connect(f->right, f->left->qp_num);
}

/* Not signalled: nothing but a counter tells of its end. */
static void post(struct fixture *f, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = fixture_sge(f, 0, length);
	struct ibv_send_wr wr = { .opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = (uintptr_t)f->buffer + 8192, .rkey = f->mr->rkey } };
	assert_int_equal(fixture_post(f->left, wr), 0);
}

/* Reading drives the device, so a program may wait for a value alone. */
static void wait_for(struct later_comp_cntr *counter, uint64_t value)
{
	for (int turns = 0; done(counter) < value; turns++)
		assert_true(turns < 100);
}

static void counter__counts_what_it_is_attached_to_signalled_or_not(void **state)
{
	struct fixture *f = *state;
	make_pair(f);
	struct later_comp_cntr *sends = create(f, LATER_COMP_CNTR_WRS), *one_sided = create(f, LATER_COMP_CNTR_WRS),
			       *receives = create(f, LATER_COMP_CNTR_WRS), *arrived = create(f, LATER_COMP_CNTR_WRS);
	assert_int_equal(attach(f->left, sends, OF_SEND), 0);
	assert_int_equal(attach(f->left, one_sided, OF_READ | OF_WRITE), 0);
	assert_int_equal(attach(f->right, receives, OF_RECV), 0);
	assert_int_equal(attach(f->right, arrived, OF_REMOTE_WRITE), 0);
	connect_pair(f);

	struct ibv_sge room = fixture_sge(f, 4096, 512);
	assert_int_equal(fixture_post_recv(f->right, 1, &room), 0);
	assert_int_equal(fixture_post_recv(f->right, 2, &room), 0);
	post(f, IBV_WR_SEND, 100);
	post(f, IBV_WR_RDMA_WRITE, 3000);
	post(f, IBV_WR_RDMA_READ, 200);
	post(f, IBV_WR_RDMA_WRITE_WITH_IMM, 50);
	wait_for(one_sided, 3);
	assert_int_equal(done(sends), 1);
	assert_int_equal(done(one_sided), 3);
	assert_int_equal(done(receives), 2); /* the SEND's, and the one that told of a WRITE */
	assert_int_equal(done(arrived), 2);
	assert_int_equal(failed(sends) + failed(one_sided) + failed(receives) + failed(arrived), 0);
}

static void counter__of_bytes_adds_up_their_data(void **state)
{
	struct fixture *f = *state;
	make_pair(f);
	struct later_comp_cntr *sent = create(f, LATER_COMP_CNTR_BYTES), *received = create(f, LATER_COMP_CNTR_BYTES),
			       *written = create(f, LATER_COMP_CNTR_BYTES);
	assert_int_equal(attach(f->left, sent, OF_SEND | OF_READ | OF_WRITE), 0);
	assert_int_equal(attach(f->right, received, OF_RECV), 0);
	assert_int_equal(attach(f->right, written, OF_REMOTE_WRITE), 0);
	connect_pair(f);
	struct ibv_sge room = fixture_sge(f, 4096, 512);
	assert_int_equal(fixture_post_recv(f->right, 1, &room), 0);
	assert_int_equal(fixture_post_recv(f->right, 2, &room), 0);
	post(f, IBV_WR_SEND, 100);
	post(f, IBV_WR_RDMA_WRITE, 3000);
	post(f, IBV_WR_RDMA_WRITE_WITH_IMM, 50);
	post(f, IBV_WR_RDMA_READ, 7);
	wait_for(sent, 3157);
	assert_int_equal(done(sent), 3157);
	assert_int_equal(done(received), 100);
	assert_int_equal(done(written), 3050);
}

static void counter__counts_failures_apart(void **state)
{
	struct fixture *f = *state;
	make_pair(f);
	struct later_comp_cntr *writes = create(f, LATER_COMP_CNTR_WRS), *receives = create(f, LATER_COMP_CNTR_WRS);
	assert_int_equal(attach(f->left, writes, OF_WRITE), 0);
	assert_int_equal(attach(f->left, receives, OF_RECV), 0);
	connect_pair(f);
	struct ibv_sge room = fixture_sge(f, 4096, 512);
	assert_int_equal(fixture_post_recv(f->left, 1, &room), 0);
	struct ibv_sge sge = fixture_sge(f, 0, 64);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 };
	assert_int_equal(fixture_post(f->left, wr), 0);
	fixture_complete(f->cq);
	fixture_complete(f->cq);
	assert_int_equal(done(writes), 0);
	assert_int_equal(failed(writes), 1);
	assert_int_equal(failed(receives), 1); /* flushed */
}

static void counter__of_several_queues_is_their_sum(void **state)
{
	struct fixture *f = *state;
	make_pair(f);
	struct later_comp_cntr *all = create(f, LATER_COMP_CNTR_WRS);
	assert_int_equal(attach(f->left, all, OF_SEND), 0);
	assert_int_equal(attach(f->right, all, OF_RECV), 0);
	connect_pair(f);
	struct ibv_sge room = fixture_sge(f, 4096, 512);
	assert_int_equal(fixture_post_recv(f->right, 1, &room), 0);
	post(f, IBV_WR_SEND, 10);
	wait_for(all, 2);
	assert_int_equal(done(all), 2);
	assert_int_equal(later_destroy_comp_cntr(all), EBUSY);
	assert_int_equal(ibv_destroy_qp(f->left), 0);
	f->left = NULL;
	assert_int_equal(later_destroy_comp_cntr(all), EBUSY);
	assert_int_equal(ibv_destroy_qp(f->right), 0);
	f->right = NULL;
	assert_int_equal(later_destroy_comp_cntr(all), 0);
}

/* The QP that it counts for stays when a handle goes through which it was attached. */
static void counter__outlives_a_shared_queue(void **state)
{
	struct fixture *f = *state;
	const uint32_t by_descriptor = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct ibv_xrcd_init_attr domain = { .comp_mask = by_descriptor, .fd = -1, .oflags = O_CREAT };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(f->context, &domain);
	assert_non_null(xrcd);
	struct ibv_qp_init_attr_ex of_qp = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd
	};
	struct ibv_qp *made = ibv_create_qp_ex(f->context, &of_qp);
	assert_non_null(made);
	struct ibv_qp_open_attr of_handle = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
							   IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = made->qp_num,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp *opened = ibv_open_qp(f->context, &of_handle);
	assert_non_null(opened);
	struct later_comp_cntr *counter = create(f, LATER_COMP_CNTR_WRS);
	assert_int_equal(attach(opened, counter, OF_RECV), 0);
	assert_int_equal(ibv_destroy_qp(opened), 0);
	assert_int_equal(later_destroy_comp_cntr(counter), EBUSY);
	assert_int_equal(ibv_destroy_qp(made), 0);
	assert_int_equal(later_destroy_comp_cntr(counter), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void counter__values_are_the_programs_to_set(void **state)
{
	struct fixture *f = *state;
	struct later_comp_cntr *counter = create(f, LATER_COMP_CNTR_WRS);
	assert_int_equal(later_set_comp_cntr(counter, UINT64_MAX), 0);
	assert_int_equal(later_inc_comp_cntr(counter, 3), 0); /* wraps behind max_value */
	assert_int_equal(done(counter), 2);
	assert_int_equal(later_set_err_comp_cntr(counter, 40), 0);
	assert_int_equal(later_inc_err_comp_cntr(counter, 2), 0);
	assert_int_equal(failed(counter), 42);
	assert_int_equal(later_destroy_comp_cntr(counter), 0);
}

static void attach__is_refused_with_the_manuals_errno(void **state)
{
	struct fixture *f = *state;
	make_pair(f);
	struct later_comp_cntr *one = create(f, LATER_COMP_CNTR_WRS), *two = create(f, LATER_COMP_CNTR_WRS);
	assert_int_equal(attach(f->left, one, 0), EINVAL);
	assert_int_equal(attach(f->left, one, OF_REMOTE_READ), ENOTSUP);
	assert_int_equal(attach(f->left, one, 1 << 6), ENOTSUP);
	struct later_qp_attach_comp_cntr_attr masked = { .comp_mask = 1, .op_mask = OF_SEND };
	assert_int_equal(later_qp_attach_comp_cntr(f->left, one, &masked), EINVAL);
	assert_int_equal(attach(f->left, one, OF_SEND | OF_WRITE), 0);
	assert_int_equal(attach(f->left, two, OF_READ | OF_WRITE), EBUSY);
	assert_int_equal(attach(f->left, two, OF_READ), 0); /* the refused one left nothing behind */
	struct ibv_context *other = ibv_open_device(f->context->device);
	assert_non_null(other);
	struct later_comp_cntr_init_attr attr = { .type = LATER_COMP_CNTR_WRS };
	struct later_comp_cntr *foreign = later_create_comp_cntr(other, &attr);
	assert_int_equal(attach(f->right, foreign, OF_SEND), EINVAL);
	assert_int_equal(ibv_close_device(other), 0);
	connect_pair(f);
	assert_int_equal(attach(f->left, two, OF_RECV), EINVAL); /* too late */
}

static void create__is_refused_with_the_manuals_errno(void **state)
{
	struct fixture *f = *state;
	struct later_comp_cntr_init_attr masked = { .comp_mask = 1 }, flagged = { .flags = 1 },
					 unknown = { .type = (enum later_comp_cntr_type)2 };
	assert_null(later_create_comp_cntr(f->context, &masked));
	assert_int_equal(errno, EINVAL);
	assert_null(later_create_comp_cntr(f->context, &flagged));
	assert_int_equal(errno, EINVAL);
	assert_null(later_create_comp_cntr(f->context, &unknown));
	assert_int_equal(errno, ENOTSUP);
}

static void caps__fit_every_size(void **state)
{
	struct fixture *f = *state;
	struct {
		struct later_comp_cntr_caps caps;
		uint64_t tomorrow, untouched;
	} said = { .tomorrow = 1, .untouched = 1 };
	assert_int_equal(later_query_comp_cntr_caps(f->context, &said.caps, sizeof(said.caps) + 8), 0);
	assert_true(said.caps.max_value == UINT64_MAX && said.caps.max_counters > 0);
	assert_int_equal(said.caps.supported_qp_attach_ops, OF_SEND | OF_RECV | OF_READ | OF_WRITE | OF_REMOTE_WRITE);
	assert_int_equal(said.tomorrow, 0);
	assert_int_equal(said.untouched, 1);
	said.caps.max_counters = 0;
	assert_int_equal(later_query_comp_cntr_caps(f->context, &said.caps, 8), 0);
	assert_int_equal(said.caps.max_counters, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)
	const struct CMUnitTest tests[] = {
		TEST(counter__counts_what_it_is_attached_to_signalled_or_not),
		TEST(counter__of_bytes_adds_up_their_data),
		TEST(counter__counts_failures_apart),
		TEST(counter__of_several_queues_is_their_sum),
		TEST(counter__outlives_a_shared_queue),
		TEST(counter__values_are_the_programs_to_set),
		TEST(attach__is_refused_with_the_manuals_errno),
		TEST(create__is_refused_with_the_manuals_errno),
		TEST(caps__fit_every_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
