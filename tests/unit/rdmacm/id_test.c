/* Ids and channels: addresses, options, what descriptors show, migration, destruction. */
#include "loop.h"

#include <sys/wait.h>
#include <unistd.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static int setup(void **state)
{
	int error = loop_setup(state);
	channel = rdma_create_event_channel();
	return error || !channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP);
}

static int teardown(void **state)
{
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return loop_teardown(state);
}

static void assert_fails(int result, int error)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, error);
}

static void create_id__unknown_port_space_is_refused(void **state)
{
	struct rdma_cm_id *none = NULL;
	assert_fails(rdma_create_id(channel, &none, NULL, (enum rdma_port_space)5), EINVAL);
	assert_null(none);
}

static void bind__address_of_a_device_sets_it(void **state)
{
	assert_int_equal(rdma_bind_addr(id, loop_address("10.0.0.1", 7471)), 0);
	assert_non_null(id->verbs);
	assert_non_null(id->pd);
	assert_int_equal(id->port_num, 1);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 7471);
	assert_int_equal(rdma_get_dst_port(id), 0);
	assert_fails(rdma_bind_addr(id, loop_address("10.0.0.1", 7472)), EINVAL);
}

static void bind__any_has_no_device_and_port_0_gets_one(void **state)
{
	assert_int_equal(rdma_bind_addr(id, loop_address("::", 0)), 0);
	assert_null(id->verbs);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 40001);
}

static void bind__loopback_gets_the_device_that_has_it(void **state)
{
	assert_int_equal(rdma_bind_addr(id, loop_address("::1", 7471)), 0);
	assert_non_null(id->verbs);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 7471);
	assert_int_equal(id->route.addr.addr.ibaddr.sgid.raw[15], 1);
	assert_int_equal(id->route.addr.addr.ibaddr.sgid.raw[10], 0);
	assert_fails(rdma_bind_addr(id, loop_address("::1", 7472)), EINVAL);
}

static void expect_first_gid(const union ibv_gid *gid)
{
	const struct vb_gid first = vb_sockaddr_gid(loop_address("10.0.0.1", 0));
	assert_memory_equal(gid->raw, first.raw, sizeof(first.raw));
}

/* libfabric would take the device for all there is. */
static void bind__loopback_of_no_device_waits_for_a_peer(void **state)
{
	assert_int_equal(rdma_bind_addr(id, loop_address("127.0.0.1", 7471)), 0);
	assert_null(id->verbs);
	/* The program sees what it asked for. */
	assert_int_equal(vb_sockaddr_gid(rdma_get_local_addr(id)).raw[12], 127);
	assert_int_equal(rdma_resolve_addr(id, NULL, loop_address("127.0.0.1", 99), 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_non_null(id->verbs);
	assert_non_null(id->pd);
	expect_first_gid(&id->route.addr.addr.ibaddr.sgid);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 7471);
}

static void resolve__loopback_leads_from_the_first_device_to_itself(void **state)
{
	assert_int_equal(rdma_resolve_addr(id, NULL, loop_address("127.0.0.1", 99), 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	expect_first_gid(&id->route.addr.addr.ibaddr.sgid);
	expect_first_gid(&id->route.addr.addr.ibaddr.dgid);
	assert_int_equal(vb_sockaddr_gid(rdma_get_local_addr(id)).raw[12], 127);
	assert_int_equal(vb_sockaddr_gid(rdma_get_peer_addr(id)).raw[12], 127);
	assert_int_equal(rdma_resolve_route(id, 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	expect_first_gid(&id->route.path_rec->sgid);
	expect_first_gid(&id->route.path_rec->dgid);
}

static void resolve__id_at_loopback_gets_its_device(void **state)
{
	assert_int_equal(rdma_bind_addr(id, loop_address("::1", 7471)), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, loop_address("::1", 99), 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_non_null(id->verbs);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 7471);
}

static void bind__bad_addresses_have_their_errno(void **state)
{
	struct sockaddr local = { .sa_family = AF_UNIX };
	assert_fails(rdma_bind_addr(id, NULL), EINVAL);
	assert_fails(rdma_bind_addr(id, &local), EAFNOSUPPORT);
	assert_fails(rdma_bind_addr(id, loop_address("10.0.0.1", 1)), EADDRINUSE);
	assert_fails(rdma_bind_addr(id, loop_address("203.0.113.9", 0)), EADDRNOTAVAIL);
	assert_fails(rdma_bind_addr(id, loop_address("fe80::1", 0)), EINVAL);
	assert_int_equal(loop_bound(), 0);
}

static void listen__port_in_use_can_be_left(void **state)
{
	assert_int_equal(rdma_bind_addr(id, loop_address("10.0.0.1", 2)), 0);
	assert_fails(rdma_listen(id, 1), EADDRINUSE);
}

static void listen__unbound_id_gets_a_port(void **state)
{
	assert_int_equal(rdma_listen(id, 0), 0);
	assert_int_not_equal(rdma_get_src_port(id), 0);
	assert_fails(rdma_listen(id, 0), EINVAL);
}

static void resolve__gives_event_device_and_path(void **state)
{
	assert_int_equal(rdma_resolve_addr(id, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 99), 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_non_null(id->verbs);
	assert_int_equal(ntohs(rdma_get_dst_port(id)), 99);
	assert_fails(rdma_connect(id, NULL), EINVAL); /* no route yet */
	assert_int_equal(rdma_resolve_route(id, 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(id->route.num_paths, 1);
	assert_int_equal(id->route.path_rec->hop_limit, 64);
	assert_int_equal(id->route.path_rec->mtu, IBV_MTU_1024);
	assert_int_equal(id->route.path_rec->packet_life_time, 16);
	assert_fails(rdma_resolve_route(id, 100), EINVAL);
}

static void resolve__own_address_of_no_device_is_an_event(void **state)
{
	assert_int_equal(rdma_resolve_addr(id, NULL, loop_address(LOOP_NO_DEVICES, 99), 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	assert_null(id->verbs);
	assert_int_equal(rdma_resolve_addr(id, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 99), 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static void resolve__families_must_agree(void **state)
{
	assert_fails(rdma_resolve_addr(id, loop_address("10.0.0.1", 0), loop_address("fd00::1", 1), 100), EINVAL);
	assert_fails(rdma_resolve_addr(id, NULL, NULL, 100), EINVAL);
	assert_int_equal(rdma_bind_addr(id, loop_address("10.0.0.1", 0)), 0);
	assert_fails(rdma_resolve_addr(id, NULL, loop_address("fd00::1", 1), 100), EINVAL);
}

static void option__lengths_values_and_times_are_checked(void **state)
{
	uint8_t byte = 17;
	int flag = 1;
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1), 0);
	assert_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &flag, sizeof(flag)), EINVAL);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), 0);
	byte = 32;
	assert_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), EINVAL);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &flag, sizeof(flag)), 0);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &flag, sizeof(flag)), 0);
	assert_fails(rdma_set_option(id, RDMA_OPTION_ID, 99, &flag, sizeof(flag)), ENOSYS);
	assert_fails(rdma_set_option(id, 99, 0, &flag, sizeof(flag)), ENOSYS);
	assert_fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &flag, sizeof(flag)), EINVAL);
	assert_int_equal(rdma_bind_addr(id, loop_address("10.0.0.1", 0)), 0);
	assert_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &flag, sizeof(flag)), EINVAL);
}

static void option__ack_timeout_is_the_paths(void **state)
{
	uint8_t byte = 20;
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), 0);
	assert_int_equal(rdma_resolve_addr(id, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 99), 100), 0);
	assert_int_equal(rdma_resolve_route(id, 100), 0);
	assert_int_equal(id->route.path_rec->packet_life_time, 19);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	loop_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static void channel__is_readable_exactly_while_an_event_waits(void **state)
{
	struct rdma_cm_event *event;

	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_false(loop_is_readable(channel));
	assert_fails(rdma_get_cm_event(channel, &event), EAGAIN);
	assert_int_equal(rdma_resolve_addr(id, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 99), 100), 0);
	assert_int_equal(rdma_resolve_route(id, 100), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_true(loop_is_readable(channel));
	loop_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_false(loop_is_readable(channel));
	assert_fails(rdma_get_cm_event(channel, &event), EAGAIN);
}

static void destroy__takes_waiting_events_along(void **state)
{
	struct rdma_cm_id *other;
	assert_int_equal(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(other, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 1), 1), 0);
	assert_true(loop_is_readable(channel));
	assert_int_equal(rdma_destroy_id(other), 0);
	assert_false(loop_is_readable(channel));
}

static void *acknowledge_late(void *event)
{
	struct timespec little = { .tv_nsec = 20000000 };
	nanosleep(&little, NULL);
	rdma_ack_cm_event(event);
	return NULL;
}

static void destroy__waits_for_acknowledgements(void **state)
{
	struct rdma_cm_id *other;
	struct rdma_cm_event *event;
	pthread_t thread;

	assert_int_equal(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(other, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 1), 1), 0);
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	struct id_object *object = vb_id_of(other);
	assert_int_equal(object->fetched - object->acknowledged, 1);
	assert_int_equal(pthread_create(&thread, NULL, acknowledge_late, event), 0);
	assert_int_equal(rdma_destroy_id(other), 0); /* what the thread touches must still be there */
	pthread_join(thread, NULL);
}

static void migrate__waiting_events_come_along(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	assert_int_equal(rdma_resolve_addr(id, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 99), 100), 0);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	assert_ptr_equal(id->channel, other);
	assert_false(loop_is_readable(channel));
	loop_expect(other, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_migrate_id(id, channel), 0);
	rdma_destroy_event_channel(other);
}

static void synchronous__calls_wait_and_show_their_event(void **state)
{
	struct rdma_cm_id *sync;
	assert_int_equal(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP), 0);
	assert_non_null(sync->channel);
	assert_int_equal(rdma_resolve_addr(sync, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 99), 100), 0);
	assert_int_equal(sync->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(sync, 100), 0);
	assert_int_equal(sync->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_destroy_id(sync), 0);
}

static void synchronous__a_failed_event_is_errno(void **state)
{
	struct rdma_cm_id *sync;
	assert_int_equal(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP), 0);
	assert_fails(rdma_resolve_addr(sync, NULL, loop_address(LOOP_NO_DEVICES, 99), 100), ENODEV);
	assert_int_equal(sync->event->event, RDMA_CM_EVENT_ADDR_ERROR);
	/* Made asynchronous, it needs no event shown. */
	assert_int_equal(rdma_migrate_id(sync, channel), 0);
	assert_null(sync->event);
	assert_int_equal(rdma_resolve_addr(sync, NULL, loop_address(LOOP_NO_DEVICES, 99), 100), 0);
	assert_ptr_equal(loop_expect(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV), sync);
	assert_int_equal(rdma_destroy_id(sync), 0);
}

/* What it makes itself is its own. */
static void child__is_refused_what_its_parent_made(void **state)
{
	struct rdma_cm_id *own;
	int status;

	pid_t child = fork();
	if (!child) {
		bool is_refused = rdma_bind_addr(id, loop_address("10.0.0.1", 7471)) < 0 && errno == EPERM;
		bool is_made = !rdma_create_id(NULL, &own, NULL, RDMA_PS_TCP) &&
			       !rdma_bind_addr(own, loop_address("10.0.0.1", 7471)) && !rdma_listen(own, 1);
		_exit(is_refused && is_made ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* In a child that has so long for it. Returns how many lines it is told. */
static unsigned expect_in_child(bool (*is_well)(void))
{
	FILE *said = tmpfile();
	char line[256], wanted[256];
	unsigned lines = 0;
	int status;

	assert_non_null(said);
	pid_t child = fork();
	if (!child) {
		alarm(5);
		if (dup2(fileno(said), STDERR_FILENO) < 0)
			_exit(2);
		_exit(is_well() ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	snprintf(wanted, sizeof(wanted),
		"verbena: process %d was forked from one that had made rdma_cm ids or event channels: make them again "
		"in the child\n",
		(int)child);
	rewind(said);
	for (; fgets(line, sizeof(line), said); lines++)
		assert_string_equal(line, wanted);
	fclose(said);
	return lines;
}

static bool destroys_all(void)
{
	bool is_done = !rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return is_done;
}

static void child__takes_no_event_from_its_parent(void **state)
{
	assert_int_equal(rdma_resolve_addr(id, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 99), 100), 0);
	assert_int_equal(expect_in_child(destroys_all), 0);
	assert_true(loop_is_readable(channel));
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static bool fetches_and_makes(void)
{
	struct sockaddr *address = loop_address("10.0.0.1", 99);
	struct rdma_cm_event *event;
	struct rdma_cm_id *own;

	return rdma_get_cm_event(channel, &event) < 0 && errno == EPERM &&
	       rdma_create_id(channel, &own, NULL, RDMA_PS_TCP) < 0 && errno == EPERM &&
	       rdma_resolve_addr(id, NULL, address, 100) < 0 && errno == EPERM &&
	       !rdma_create_id(NULL, &own, NULL, RDMA_PS_TCP) && rdma_migrate_id(own, channel) < 0 && errno == EPERM &&
	       rdma_migrate_id(id, own->channel) < 0 && errno == EPERM;
}

static void child__puts_no_event_into_its_parents_channel(void **state)
{
	assert_int_equal(rdma_bind_addr(id, loop_address("10.0.0.1", 7471)), 0);
	assert_int_equal(expect_in_child(fetches_and_makes), 1);
	assert_false(loop_is_readable(channel));
}

static bool destroys_id(void)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	return !rdma_destroy_id(id);
}

static bool is_refused(int result)
{
	return result == -1 && errno == EPERM;
}

static bool is_refused_all(void)
{
	struct sockaddr *address = loop_address("10.0.0.1", 99);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_ece ece = { .vendor_id = 1 };
	uint8_t tos = 1;
	int mask;

	return is_refused(rdma_bind_addr(id, address)) && is_refused(rdma_resolve_addr(id, NULL, address, 100)) &&
	       is_refused(rdma_resolve_route(id, 100)) && is_refused(rdma_listen(id, 1)) &&
	       is_refused(rdma_connect(id, NULL)) && is_refused(rdma_accept(id, NULL)) &&
	       is_refused(rdma_reject(id, NULL, 0)) && is_refused(rdma_establish(id)) &&
	       is_refused(rdma_disconnect(id)) && is_refused(rdma_notify(id, IBV_EVENT_COMM_EST)) &&
	       is_refused(rdma_create_qp(id, NULL, &init)) && is_refused(rdma_init_qp_attr(id, &attr, &mask)) &&
	       is_refused(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos))) &&
	       is_refused(rdma_join_multicast(id, address, NULL)) && is_refused(rdma_leave_multicast(id, address)) &&
	       is_refused(rdma_set_local_ece(id, &ece)) && is_refused(rdma_get_remote_ece(id, &ece)) &&
	       is_refused(rdma_migrate_id(id, NULL));
}

static void child__waits_for_none_of_its_parents_threads(void **state)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_resolve_addr(id, loop_address("10.0.0.1", 0), loop_address("10.0.0.1", 99), 100), 0);
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	pthread_mutex_lock(&vb_id_of(id)->calls); /* as a thread of the parent's might have */
	assert_int_equal(expect_in_child(destroys_id), 0);
	assert_int_equal(expect_in_child(is_refused_all), 1);
	pthread_mutex_unlock(&vb_id_of(id)->calls);
	rdma_ack_cm_event(event);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(create_id__unknown_port_space_is_refused),
		TEST(bind__address_of_a_device_sets_it),
		TEST(bind__any_has_no_device_and_port_0_gets_one),
		TEST(bind__loopback_gets_the_device_that_has_it),
		TEST(bind__loopback_of_no_device_waits_for_a_peer),
		TEST(resolve__loopback_leads_from_the_first_device_to_itself),
		TEST(resolve__id_at_loopback_gets_its_device),
		TEST(bind__bad_addresses_have_their_errno),
		TEST(listen__port_in_use_can_be_left),
		TEST(listen__unbound_id_gets_a_port),
		TEST(resolve__gives_event_device_and_path),
		TEST(resolve__own_address_of_no_device_is_an_event),
		TEST(resolve__families_must_agree),
		TEST(option__lengths_values_and_times_are_checked),
		TEST(option__ack_timeout_is_the_paths),
		TEST(child__is_refused_what_its_parent_made),
		TEST(child__takes_no_event_from_its_parent),
		TEST(child__puts_no_event_into_its_parents_channel),
		TEST(child__waits_for_none_of_its_parents_threads),
		TEST(channel__is_readable_exactly_while_an_event_waits),
		TEST(destroy__takes_waiting_events_along),
		TEST(destroy__waits_for_acknowledgements),
		TEST(migrate__waiting_events_come_along),
		TEST(synchronous__calls_wait_and_show_their_event),
		TEST(synchronous__a_failed_event_is_errno),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
