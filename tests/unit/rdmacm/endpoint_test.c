/* Endpoints: ids made ready in one call, from what rdma_getaddrinfo finds, and the requests of those that listen. */
#include <infiniband/sa.h>
#include <pthread.h>
#include "loop.h"
#include "../verbs/loop_host.h"
#include "../verbs/fixture.h"

enum { PORT = 7471 };

static struct fixture *f;

static int setup(void **state)
{
	int error = loop_setup(state) || fixture_open((void **)&f);
	loop_set_verbs(f->context, f->pd);
	return error;
}

static int teardown(void **state)
{
	return fixture_close((void **)&f) || loop_teardown(state);
}

static void assert_fails(int result, int error)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, error);
}

static struct ibv_qp_init_attr attributes(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 3, .max_recv_sge = 1 }
	};
}

static struct rdma_addrinfo passive_at(uint16_t port)
{
	return (struct rdma_addrinfo){ .ai_flags = RAI_PASSIVE,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = loop_address("10.0.0.1", port) };
}

static struct rdma_addrinfo active_to(const char *ip)
{
	return (struct rdma_addrinfo){
		.ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP, .ai_dst_addr = loop_address(ip, PORT)
	};
}

/* What the program sends goes behind what its address came with. */
static void *connect_one(void *unused)
{
	struct rdma_conn_param param = { .private_data = "own", .private_data_len = 4 };
	struct rdma_addrinfo to = active_to("10.0.0.1");
	struct ibv_qp_init_attr attr = attributes();
	struct rdma_cm_id *id = NULL;

	to.ai_connect = "its";
	to.ai_connect_len = 3;
	assert_int_equal(rdma_create_ep(&id, &to, f->pd, &attr), 0);
	assert_non_null(id->qp);
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(id->qp->state, IBV_QPS_RTS);
	return id;
}

static void request__gets_a_qp_as_its_listener_was_told(void **state)
{
	struct rdma_addrinfo at = passive_at(PORT);
	struct ibv_qp_init_attr attr = attributes();
	struct rdma_cm_id *listener, *request;
	pthread_t thread;
	void *id;

	assert_int_equal(rdma_create_ep(&listener, &at, f->pd, &attr), 0);
	assert_null(listener->qp);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, connect_one, NULL), 0);
	assert_int_equal(rdma_get_request(listener, &request), 0);
	assert_ptr_not_equal(request->channel, listener->channel);
	assert_memory_equal(request->event->param.conn.private_data, "itsown", 7);
	struct ibv_qp_attr is;
	struct ibv_qp_init_attr made;
	assert_int_equal(ibv_query_qp(request->qp, &is, IBV_QP_STATE, &made), 0);
	assert_int_equal(is.qp_state, IBV_QPS_INIT);
	assert_int_equal(made.cap.max_send_sge, 3);
	assert_int_equal(rdma_accept(request, NULL), 0); /* returns when the peer has confirmed */
	assert_int_equal(pthread_join(thread, &id), 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(request);
	rdma_destroy_ep(listener);
}

/* The ports are given back: teardown counts them. */
static void endpoint__that_fails_leaves_nothing(void **state)
{
	struct rdma_addrinfo taken = passive_at(1), nowhere = active_to(LOOP_NO_DEVICES), to = active_to("10.0.0.1");
	struct ibv_qp_init_attr attr = attributes();
	struct rdma_cm_id *id = NULL;

	assert_fails(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
	assert_fails(rdma_create_ep(&id, &taken, f->pd, &attr), EADDRINUSE);
	assert_fails(rdma_create_ep(&id, &nowhere, f->pd, &attr), ENODEV);
	attr.cap.max_send_sge = 1 << 20;
	assert_fails(rdma_create_ep(&id, &to, f->pd, &attr), EINVAL);
	assert_null(id);
}

static void route__of_the_program_must_be_the_only_one(void **state)
{
	struct rdma_addrinfo to = active_to("10.0.0.1");
	struct vb_gid own = vb_sockaddr_gid(loop_address("10.0.0.1", 0));
	struct ibv_path_data paths[2] = { 0 };
	struct rdma_cm_id *id = NULL;

	paths[1].flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	memcpy(paths[1].path.sgid.raw, own.raw, sizeof(own.raw));
	memcpy(paths[1].path.dgid.raw, own.raw, sizeof(own.raw));
	to.ai_route = paths;
	to.ai_route_len = sizeof(paths);
	assert_int_equal(rdma_create_ep(&id, &to, NULL, NULL), 0);
	assert_int_equal(id->route.num_paths, 1);
	assert_null(id->qp);
	rdma_destroy_ep(id);

	id = NULL;
	paths[1].flags &= ~IBV_PATH_FLAG_PRIMARY;
	assert_fails(rdma_create_ep(&id, &to, NULL, NULL), EINVAL);
	paths[1].flags |= IBV_PATH_FLAG_PRIMARY;
	to.ai_route_len = sizeof(paths) - 1;
	assert_fails(rdma_create_ep(&id, &to, NULL, NULL), EINVAL);
	to.ai_route_len = sizeof(paths);
	paths[1].path.dgid.raw[15]++;
	assert_fails(rdma_create_ep(&id, &to, NULL, NULL), EINVAL);
	assert_null(id);
}

static void request__is_of_synchronous_listeners_alone(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener, *request;

	assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_fails(rdma_get_request(listener, &request), EINVAL);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(request__gets_a_qp_as_its_listener_was_told, setup, teardown),
		cmocka_unit_test_setup_teardown(endpoint__that_fails_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(route__of_the_program_must_be_the_only_one, setup, teardown),
		cmocka_unit_test_setup_teardown(request__is_of_synchronous_listeners_alone, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
