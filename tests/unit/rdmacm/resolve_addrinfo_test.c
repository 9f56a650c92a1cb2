/* Addresses resolved with an event at the end, and events that programs write. Needs no network. */
#include "loop.h"
#include "rdmacm/later.h"

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

/* The next event's type and status. */
static enum rdma_cm_event_type next_event(int *status)
{
	struct rdma_cm_event *event;
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_ptr_equal(event->id, id);
	enum rdma_cm_event_type type = event->event;
	*status = event->status;
	rdma_ack_cm_event(event);
	return type;
}

static void resolve__ends_with_an_event_and_its_answer_is_fetched_once(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST | LATER_RAI_DNS,
		.ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info = NULL;
	int status;
	assert_fails(later_rdma_query_addrinfo(id, &info), ENOENT);
	assert_int_equal(later_rdma_resolve_addrinfo(id, "10.1.2.3", "7471", &hints), 0);
	assert_int_equal((int)next_event(&status), LATER_EVENT_ADDRINFO_RESOLVED);
	assert_int_equal(status, 0);
	assert_fails(later_rdma_resolve_addrinfo(id, "10.1.2.4", "7471", &hints), EBUSY);
	assert_int_equal(later_rdma_query_addrinfo(id, &info), 0);
	assert_int_equal(vb_sockaddr_port(info->ai_src_addr), 7471);
	assert_int_equal(info->ai_src_len, sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(info);
	assert_fails(later_rdma_query_addrinfo(id, &info), ENOENT);
	assert_int_equal(
		later_rdma_resolve_addrinfo(id, "10.1.2.4", "1", &hints), 0); /* what nobody fetches is freed */
}

static void resolve__failure_is_an_event_too(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST }, *info;
	int status;
	assert_int_equal(later_rdma_resolve_addrinfo(id, "no address", NULL, &hints), 0);
	assert_int_equal((int)next_event(&status), LATER_EVENT_ADDRINFO_ERROR);
	assert_int_equal(status, -ENOENT);
	assert_fails(later_rdma_query_addrinfo(id, &info), ENOENT);
	assert_int_equal(later_rdma_resolve_addrinfo(id, "10.1.2.3", NULL, &hints), 0); /* and the id is free again */
	assert_int_equal((int)next_event(&status), LATER_EVENT_ADDRINFO_RESOLVED);
}

static void resolve__of_a_synchronous_id_waits(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST }, *info;
	struct rdma_cm_id *sync;
	assert_int_equal(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(later_rdma_resolve_addrinfo(sync, "10.1.2.3", "1", &hints), 0);
	assert_int_equal(later_rdma_query_addrinfo(sync, &info), 0);
	rdma_freeaddrinfo(info);
	assert_fails(later_rdma_resolve_addrinfo(sync, "no address", NULL, &hints), ENOENT);
	rdma_destroy_id(sync);
}

static void resolve__what_ethernet_does_not_have_is_refused(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = LATER_RAI_SA };
	assert_fails(later_rdma_resolve_addrinfo(id, NULL, "service", &hints), ENOTSUP);
	hints.ai_flags = LATER_RAI_SA | LATER_RAI_DNS;
	assert_fails(later_rdma_resolve_addrinfo(id, NULL, "service", &hints), ENOTSUP);
	assert_fails(later_rdma_resolve_addrinfo(id, NULL, NULL, NULL), EINVAL);
	assert_fails(later_rdma_resolve_addrinfo(NULL, "10.1.2.3", "1", NULL), EINVAL);
	assert_false(loop_is_readable(channel));
}

static void write_event__comes_out_of_the_channel_with_its_argument(void **state)
{
	struct rdma_cm_event *event;
	uint64_t argument;
	assert_int_equal(
		later_rdma_write_cm_event(id, (enum rdma_cm_event_type)LATER_EVENT_USER, -7, 0x1122334455667788), 0);
	assert_true(loop_is_readable(channel));
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_int_equal((int)event->event, LATER_EVENT_USER);
	assert_int_equal(event->status, -7);
	assert_ptr_equal(event->id, id);
	memcpy(&argument, (const char *)event + LATER_EVENT_ARG, sizeof(argument));
	assert_true(argument == 0x1122334455667788);
	assert_string_equal(rdma_event_str(event->event), "RDMA_CM_EVENT_USER");
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_fails(later_rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(resolve__ends_with_an_event_and_its_answer_is_fetched_once),
		TEST(resolve__failure_is_an_event_too),
		TEST(resolve__of_a_synchronous_id_waits),
		TEST(resolve__what_ethernet_does_not_have_is_refused),
		TEST(write_event__comes_out_of_the_channel_with_its_argument),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
