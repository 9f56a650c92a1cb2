/* Many threads: connections come and go through one listener and its one channel, each of several threads with ids and
 * a channel of its own. What races here shows under the thread sanitizer. */
#include <unistd.h>
#include "loop.h"

enum { THREADS = 4, ROUNDS = 100, PORT = 7471 };

static struct rdma_event_channel *passive;

/* Takes every connection until all have come and gone. */
static void *serve(void *unused)
{
	for (int gone = 0; gone < THREADS * ROUNDS;) {
		struct rdma_cm_event *event;
		assert_int_equal(rdma_get_cm_event(passive, &event), 0);
		struct rdma_cm_id *id = event->id;
		enum rdma_cm_event_type type = event->event;
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			assert_int_equal(rdma_accept(id, NULL), 0);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			assert_int_equal(rdma_disconnect(id), 0);
			assert_int_equal(rdma_destroy_id(id), 0);
			gone++;
		}
	}
	return NULL;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_int_equal(event->event, type);
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

static void *connect_often(void *unused)
{
	struct rdma_event_channel *channels[2] = { rdma_create_event_channel(), rdma_create_event_channel() };
	for (int round = 0; round < ROUNDS; round++) {
		struct rdma_cm_id *id;
		assert_int_equal(rdma_create_id(channels[0], &id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, loop_address("10.0.0.1", PORT), 1), 0);
		assert_int_equal(rdma_resolve_route(id, 1), 0);
		expect(channels[0], RDMA_CM_EVENT_ADDR_RESOLVED);
		expect(channels[0], RDMA_CM_EVENT_ROUTE_RESOLVED);
		assert_int_equal(rdma_connect(id, NULL), 0);
		/* The reply may come before, amid or after. */
		assert_int_equal(rdma_migrate_id(id, channels[1]), 0);
		expect(channels[1], RDMA_CM_EVENT_CONNECT_RESPONSE);
		assert_int_equal(rdma_establish(id), 0);
		assert_int_equal(rdma_disconnect(id), 0);
		expect(channels[1], RDMA_CM_EVENT_DISCONNECTED);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(channels[0]);
	rdma_destroy_event_channel(channels[1]);
	return NULL;
}

static void connections__come_and_go_in_many_threads(void **state)
{
	struct rdma_cm_id *listener;
	pthread_t server, clients[THREADS];

	passive = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, loop_address("10.0.0.1", PORT)), 0);
	assert_int_equal(rdma_listen(listener, 0), 0);
	assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&clients[i], NULL, connect_often, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) { /* what requests inherit may change as they come */
		uint8_t tos = (uint8_t)i;
		assert_int_equal(rdma_set_option(listener, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)), 0);
		usleep(100);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(clients[i], NULL);
	pthread_join(server, NULL);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(passive);
}

/* A request belongs to the thread that fetched it, or to the end of its listener. */

enum { REQUESTS = 50, ENDS = 60 };

static atomic_bool is_over;

static void *refuse_all(void *unused)
{
	while (!is_over) {
		struct rdma_cm_event *event;
		if (rdma_get_cm_event(passive, &event))
			continue;
		struct rdma_cm_id *id = event->id;
		assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_reject(id, NULL, 0), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	return NULL;
}

static void ask(struct rdma_event_channel *channel, struct rdma_cm_id *ids[REQUESTS])
{
	for (int i = 0; i < REQUESTS; i++) {
		assert_int_equal(rdma_create_id(NULL, &ids[i], NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(ids[i], NULL, loop_address("10.0.0.1", PORT), 1), 0);
		assert_int_equal(rdma_resolve_route(ids[i], 1), 0);
		assert_int_equal(rdma_migrate_id(ids[i], channel), 0);
		assert_int_equal(rdma_connect(ids[i], NULL), 0);
	}
}

static void requests__are_fetched_while_their_listener_ends(void **state)
{
	struct rdma_cm_id *listener, *ids[REQUESTS];
	pthread_t thread;

	for (int round = 0; round < ENDS; round++) {
		struct rdma_event_channel *active = rdma_create_event_channel();
		passive = rdma_create_event_channel();
		assert_int_equal(fcntl(passive->fd, F_SETFL, O_NONBLOCK), 0);
		assert_int_equal(rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_bind_addr(listener, loop_address("10.0.0.1", PORT)), 0);
		assert_int_equal(rdma_listen(listener, 0), 0);
		ask(active, ids);
		is_over = false;
		assert_int_equal(pthread_create(&thread, NULL, refuse_all, NULL), 0);
		usleep((useconds_t)round);
		assert_int_equal(rdma_destroy_id(listener), 0);
		is_over = true;
		pthread_join(thread, NULL);
		for (int i = 0; i < REQUESTS; i++)
			expect(active, RDMA_CM_EVENT_REJECTED);
		for (int i = 0; i < REQUESTS; i++)
			assert_int_equal(rdma_destroy_id(ids[i]), 0);
		rdma_destroy_event_channel(active);
		rdma_destroy_event_channel(passive);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			requests__are_fetched_while_their_listener_ends, loop_setup, loop_teardown),
		cmocka_unit_test_setup_teardown(connections__come_and_go_in_many_threads, loop_setup, loop_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
