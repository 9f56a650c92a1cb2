/* Streams, from the call that connects one to the last byte: what a program of sockets relies on. */
#include "pair.h"

#include <unistd.h>

enum { LONG = 300000 }; /* more than a ring holds */

static uint8_t sent[LONG], received[LONG];

static void fill(void)
{
	for (int i = 0; i < LONG; i++)
		sent[i] = (uint8_t)(i * 7 + i / 251);
	memset(received, 0, sizeof(received));
}

/* As much as goes now. */
static size_t send_some(int fd, size_t from)
{
	ssize_t n = rsend(fd, sent + from, LONG - from, MSG_DONTWAIT);
	return n < 0 && errno == EAGAIN ? 0 : (assert_true(n >= 0), (size_t)n);
}

static size_t receive_some(int fd, size_t to, size_t most)
{
	ssize_t n = rrecv(fd, received + to, most < LONG - to ? most : LONG - to, MSG_DONTWAIT);
	return n < 0 && errno == EAGAIN ? 0 : (assert_true(n >= 0), (size_t)n);
}

static void carry(int from, int to)
{
	size_t out = 0, in = 0;

	fill();
	for (int turns = 0; in < LONG && turns < 100000; turns++) {
		if (out < LONG)
			out += send_some(from, out);
		in += receive_some(to, in, 10007);
	}
	assert_memory_equal(sent, received, LONG);
}

static void stream__carries_every_byte_in_order_both_ways(void **state)
{
	carry(pair_client, pair_server);
	carry(pair_server, pair_client);
}

static size_t send_until_full(void)
{
	size_t out = 0;
	for (int quiet = 0; quiet < 100 && out < LONG;) {
		size_t n = send_some(pair_client, out);
		quiet = n ? 0 : quiet + 1;
		out += n;
	}
	return out;
}

/* A receiver that does not read is never sent more than it has room for. */
static void send__stops_where_the_peers_room_ends(void **state)
{
	int room = 8192;

	assert_int_equal(rsetsockopt(pair_listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
	pair_connect();
	fill();
	size_t full = send_until_full();
	assert_in_range(full, 1, room);
	struct pollfd writable = { .fd = pair_client, .events = POLLOUT };
	assert_int_equal(rpoll(&writable, 1, 0), 0);
	assert_int_equal(rrecv(pair_server, received, LONG, 0), full);
	assert_memory_equal(sent, received, full);
	assert_int_equal(rpoll(&writable, 1, 1000), 1);
	assert_in_range(send_until_full(), 1, room);
}

static void peek__shows_what_the_next_read_takes(void **state)
{
	char text[8] = "";

	assert_int_equal(rsend(pair_client, "abcdef", 6, 0), 6);
	assert_int_equal(rrecv(pair_server, text, 3, MSG_PEEK), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(rrecv(pair_server, text, 6, 0), 6);
	assert_string_equal(text, "abcdef");
	pair_assert_fails(rrecv(pair_server, text, 6, MSG_DONTWAIT), EAGAIN);
}

static void *send_the_rest(void *unused)
{
	usleep(10000);
	assert_int_equal(rsend(pair_client, "def", 3, 0), 3);
	return NULL;
}

static void read__of_all_waits_for_the_rest(void **state)
{
	pthread_t thread;
	char text[8] = "";

	assert_int_equal(rsend(pair_client, "abc", 3, 0), 3);
	assert_int_equal(pthread_create(&thread, NULL, send_the_rest, NULL), 0);
	assert_int_equal(rrecv(pair_server, text, 6, MSG_WAITALL), 6);
	assert_string_equal(text, "abcdef");
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void vector__is_gathered_and_scattered(void **state)
{
	char first[4] = "", second[4] = "";
	struct iovec out[3] = { { (char *)"ab", 2 }, { NULL, 0 }, { (char *)"cdef", 4 } };
	struct iovec in[2] = { { first, 3 }, { second, 3 } };

	assert_int_equal(rwritev(pair_client, out, 3), 6);
	assert_int_equal(rreadv(pair_server, in, 2), 6);
	assert_string_equal(first, "abc");
	assert_string_equal(second, "def");
	pair_assert_fails(rwritev(pair_client, out, -1), EINVAL);
}

static void shutdown__ends_one_direction(void **state)
{
	char text[8] = "";

	assert_int_equal(rsend(pair_client, "last", 4, 0), 4);
	assert_int_equal(rshutdown(pair_client, SHUT_WR), 0);
	pair_assert_fails(rsend(pair_client, "more", 4, MSG_NOSIGNAL), EPIPE);
	assert_int_equal(rrecv(pair_server, text, sizeof(text), 0), 4);
	assert_int_equal(rrecv(pair_server, text, sizeof(text), 0), 0);
	assert_int_equal(rsend(pair_server, "back", 4, 0), 4);
	assert_int_equal(rrecv(pair_client, text, sizeof(text), 0), 4);
	assert_memory_equal(text, "back", 4);
	pair_assert_fails(rshutdown(pair_client, 9), EINVAL);
}

static void close__is_seen_behind_the_data(void **state)
{
	char text[8];
	struct pollfd readable = { .fd = pair_server, .events = POLLIN };

	assert_int_equal(rsend(pair_client, "last", 4, 0), 4);
	assert_int_equal(rclose(pair_client), 0);
	pair_client = -1;
	assert_int_equal(rpoll(&readable, 1, 1000), 1);
	assert_int_equal(rrecv(pair_server, text, sizeof(text), 0), 4);
	assert_int_equal(rrecv(pair_server, text, sizeof(text), 0), 0);
	pair_assert_fails(rsend(pair_server, "back", 4, MSG_NOSIGNAL), EPIPE);
}

static void names__are_those_of_both_ends(void **state)
{
	struct sockaddr_in name, peer;
	socklen_t length = sizeof(name), peer_length = sizeof(peer);

	assert_int_equal(rgetsockname(pair_client, (struct sockaddr *)&name, &length), 0);
	assert_int_equal(rgetpeername(pair_server, (struct sockaddr *)&peer, &peer_length), 0);
	assert_int_equal(length, sizeof(name));
	assert_int_equal(name.sin_port, peer.sin_port);
	assert_int_equal(name.sin_addr.s_addr, peer.sin_addr.s_addr);
	length = 4; /* as much as there is room for, and how much there is */
	name.sin_addr.s_addr = 0;
	assert_int_equal(rgetpeername(pair_client, (struct sockaddr *)&name, &length), 0);
	assert_int_equal(ntohs(name.sin_port), PAIR_PORT);
	assert_int_equal(name.sin_addr.s_addr, 0);
	assert_int_equal(length, sizeof(name));
	pair_assert_fails(rgetpeername(pair_listener, (struct sockaddr *)&name, &length), ENOTCONN);
	pair_assert_fails(rgetsockname(pair_client, NULL, &length), EFAULT);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static int to_port(uint16_t port)
{
	return rconnect(pair_client, loop_address("10.0.0.1", port), sizeof(struct sockaddr_in));
}

static void connect__is_refused_where_nobody_listens(void **state)
{
	pair_client = rsocket(AF_INET, SOCK_STREAM, 0);
	pair_assert_fails(rsend(pair_client, "a", 1, MSG_NOSIGNAL), ENOTCONN);
	pair_assert_fails(to_port(PAIR_PORT + 1), ECONNREFUSED);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_ERROR), 0);
	pair_assert_fails(to_port(PAIR_PORT), ECONNABORTED); /* as with sockets: a new one is needed */
}

static void connect__that_does_not_wait_is_asked_how_it_went(void **state)
{
	struct pollfd done = { .events = POLLOUT };

	done.fd = pair_client = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(rfcntl(pair_client, F_SETFL, O_NONBLOCK), 0);
	loop_lose(true);
	pair_assert_fails(to_port(PAIR_PORT), EINPROGRESS);
	pair_assert_fails(to_port(PAIR_PORT), EALREADY);
	assert_int_equal(rpoll(&done, 1, 0), 0);
	loop_pass(600 * VB_S);
	assert_int_equal(rpoll(&done, 1, 1000), 1);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_ERROR), ETIMEDOUT);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_ERROR), 0); /* told once */
}

static void connect__arguments_are_checked(void **state)
{
	struct sockaddr *ipv6 = loop_address("fd00::1", PAIR_PORT), *ipv4 = loop_address("10.0.0.1", PAIR_PORT);

	pair_connect();
	pair_assert_fails(rconnect(pair_client, ipv6, sizeof(struct sockaddr_in6)), EAFNOSUPPORT);
	pair_assert_fails(rconnect(pair_client, ipv4, sizeof(struct sockaddr_in) - 1), EINVAL);
	pair_assert_fails(to_port(PAIR_PORT), EISCONN);
	pair_assert_fails(rconnect(pair_listener, ipv4, sizeof(struct sockaddr_in)), EOPNOTSUPP);
	pair_assert_fails(rbind(pair_client, ipv4, sizeof(struct sockaddr_in)), EINVAL);
	pair_assert_fails(raccept(pair_client, NULL, NULL), EINVAL);
}

/* A program of librdmacm that knows nothing of rsockets. */
static void listener__turns_others_away(void **state)
{
	struct rdma_conn_param param = { .private_data = "hello", .private_data_len = 6 };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, loop_address("10.0.0.1", PAIR_PORT), 1), 0);
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	loop_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(rfcntl(pair_listener, F_SETFL, O_NONBLOCK), 0);
	pair_assert_fails(raccept(pair_listener, NULL, NULL), EAGAIN);
	struct pollfd answered = { .fd = channel->fd, .events = POLLIN };
	assert_int_equal(poll(&answered, 1, 1000), 1);
	loop_expect(channel, RDMA_CM_EVENT_REJECTED, VB_CM_REJ_CONSUMER);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

static void await_connected(int fd)
{
	struct pollfd connected = { .fd = fd, .events = POLLOUT };
	assert_int_equal(rpoll(&connected, 1, 5000), 1);
	assert_int_equal(connected.revents, POLLOUT);
}

/* The listener makes two connections ahead: a third one is made as soon as the program has accepted the first. */
static void listener__that_was_full_goes_on_when_one_is_accepted(void **state)
{
	int clients[3];

	for (int i = 0; i < 3; i++) {
		clients[i] = rsocket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(rfcntl(clients[i], F_SETFL, O_NONBLOCK), 0);
		int rc = rconnect(clients[i], loop_address("10.0.0.1", PAIR_PORT), sizeof(struct sockaddr_in));
		assert_true(rc == 0 || errno == EINPROGRESS); /* it may be connected at once */
		if (i < 2)
			await_connected(clients[i]);
	}
	struct pollfd third = { .fd = clients[2], .events = POLLOUT };
	assert_int_equal(rpoll(&third, 1, 50), 0);
	pair_server = raccept(pair_listener, NULL, NULL);
	assert_true(pair_server >= 0);
	await_connected(clients[2]);
	for (int i = 0; i < 3; i++)
		rclose(clients[i]);
}

/* ---- Direct placement -------------------------------------------------------------------------------------------- */

static int setup_mapped(void **state)
{
	int mappings = 16, error = pair_setup(state);

	if (error || rsetsockopt(pair_listener, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof(mappings)))
		return -1;
	pair_client = rsocket(AF_INET, SOCK_STREAM, 0);
	if (rsetsockopt(pair_client, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof(mappings)) || to_port(PAIR_PORT))
		return -1;
	pair_server = raccept(pair_listener, NULL, NULL);
	return pair_server < 0;
}

/* What was sent behind riomap tells that the peer knows of it, and what was sent behind riowrite that it is there. */
static void mapping__is_written_at_its_offset(void **state)
{
	char memory[64] = "", next[8] = "", text[4];

	assert_int_equal(riomap(pair_server, memory, sizeof(memory), PROT_WRITE, 0, 1000), 1000);
	assert_int_equal(riomap(pair_server, next, sizeof(next), PROT_WRITE, 0, 1064), 1064);
	assert_int_equal(rsend(pair_server, "go", 2, 0), 2);
	assert_int_equal(rrecv(pair_client, text, 2, MSG_WAITALL), 2);
	assert_int_equal(riowrite(pair_client, "there", 5, 1010, 0), 5);
	assert_int_equal(riowrite(pair_client, "in both of them", 15, 1060, 0), 12); /* as much as there is room for */
	pair_assert_fails((ssize_t)riowrite(pair_client, "nowhere", 7, 1072, 0), EINVAL);
	pair_assert_fails((ssize_t)riowrite(pair_client, "nowhere", 7, 999, 0), EINVAL);
	assert_int_equal(rsend(pair_client, "go", 2, 0), 2);
	assert_int_equal(rrecv(pair_server, text, 2, MSG_WAITALL), 2);
	assert_string_equal(memory + 10, "there");
	assert_memory_equal(memory + 60, "in b", 4);
	assert_memory_equal(next, "oth of t", 8);
	assert_int_equal(riounmap(pair_server, memory, sizeof(memory)), 0);
	pair_assert_fails(riounmap(pair_server, memory, sizeof(memory)), EINVAL);
}

/* As where the connection is made by raccept. */
static void mapping__may_be_asked_for_until_a_connection_is_accepted(void **state)
{
	char memory[64] = "", text[2];
	int mappings = 1;

	pair_client = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(to_port(PAIR_PORT), 0);
	assert_int_equal(rsetsockopt(pair_listener, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof(mappings)), 0);
	pair_server = raccept(pair_listener, NULL, NULL);
	assert_true(pair_server >= 0);
	assert_int_equal(riomap(pair_client, memory, sizeof(memory), PROT_WRITE, 0, 0), 0);
	assert_int_equal(rsend(pair_client, "go", 2, 0), 2);
	assert_int_equal(rrecv(pair_server, text, 2, MSG_WAITALL), 2);
	assert_int_equal(riowrite(pair_server, "there", 5, 10, 0), 5);
	assert_int_equal(rsend(pair_server, "go", 2, 0), 2);
	assert_int_equal(rrecv(pair_client, text, 2, MSG_WAITALL), 2);
	assert_string_equal(memory + 10, "there");
	assert_int_equal(riounmap(pair_client, memory, sizeof(memory)), 0);
}

/* Places are given out again. */
static void mapping__table_has_as_many_places_as_were_asked_for(void **state)
{
	char memory[64];
	int places = pair_option(pair_client, SOL_RDMA, RDMA_IOMAPSIZE);

	for (int i = 0; i < places; i++)
		assert_int_equal(riomap(pair_server, memory, 1 + (size_t)i, PROT_WRITE, 0, i), i);
	pair_assert_fails(riomap(pair_server, memory, 50, PROT_WRITE, 0, 99), ENOBUFS);
	assert_int_equal(riomap(pair_server, memory, 50, PROT_NONE, 0, 99), 99); /* which nobody is told of */
	assert_int_equal(riounmap(pair_server, memory, 3), 0);
	assert_int_equal(riomap(pair_server, memory, 60, PROT_WRITE, 0, 99), 99);
	pair_assert_fails(riomap(pair_listener, memory, 60, PROT_WRITE, 0, 99), ENOTCONN);
	pair_assert_fails(riomap(pair_server, memory, 60, PROT_EXEC, 0, 99), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			stream__carries_every_byte_in_order_both_ways, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(send__stops_where_the_peers_room_ends, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			peek__shows_what_the_next_read_takes, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(read__of_all_waits_for_the_rest, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(vector__is_gathered_and_scattered, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(shutdown__ends_one_direction, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(close__is_seen_behind_the_data, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(names__are_those_of_both_ends, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(connect__is_refused_where_nobody_listens, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			connect__that_does_not_wait_is_asked_how_it_went, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(connect__arguments_are_checked, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(listener__turns_others_away, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			listener__that_was_full_goes_on_when_one_is_accepted, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(mapping__is_written_at_its_offset, setup_mapped, pair_teardown),
		cmocka_unit_test_setup_teardown(
			mapping__may_be_asked_for_until_a_connection_is_accepted, pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			mapping__table_has_as_many_places_as_were_asked_for, setup_mapped, pair_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
