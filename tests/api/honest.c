/* Valid traffic beside all the noise: what it sends arrives, unchanged and in time. */
#include "fuzz.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

enum { LENGTH = 4096, PORT = 7999, STREAM_LENGTH = 20000 };

static pthread_t threads[2];
static atomic_uint transfers, connections;

static int patience_ms(void)
{
	return is_sanitized() ? 60000 : 20000;
}

static void fill(uint8_t *bytes, size_t length, uint32_t number)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

static void require_filled(const uint8_t *bytes, size_t length, uint32_t number, const char *what)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != (uint8_t)(number * 31 + i * 7 + (i >> 8)))
			fail(__FILE__, __LINE__, "%s %u: byte %zu is %02x", what, number, i, bytes[i]);
}

/* ---- Verbs ------------------------------------------------------------------------------------------------------- */

static void transfer(struct pair *pair, uint32_t number)
{
	uint8_t *a = pair->a.buffer.bytes, *b = pair->b.buffer.bytes;
	struct request write = { .opcode = IBV_WR_RDMA_WRITE,
		.id = 1,
		.local = &pair->a.buffer,
		.length = LENGTH,
		.remote = (uintptr_t)b,
		.rkey = pair->b.buffer.mr->rkey };
	struct request read = write, send = write;
	read.opcode = IBV_WR_RDMA_READ;
	read.offset = LENGTH;
	send.opcode = IBV_WR_SEND;
	fill(a, LENGTH, number);
	memset(a + LENGTH, 0, LENGTH);
	REQUIRE_EQUAL(post(pair->a.qp, &write), 0);
	wait_success(pair->a.cq, 1);
	REQUIRE_EQUAL(post(pair->a.qp, &read), 0);
	wait_success(pair->a.cq, 1);
	require_filled(b, LENGTH, number, "WRITE");
	require_filled(a + LENGTH, LENGTH, number, "READ");
	REQUIRE_EQUAL(post_receive(pair->b.qp, 2, &pair->b.buffer, LENGTH, LENGTH), 0);
	REQUIRE_EQUAL(post(pair->a.qp, &send), 0);
	wait_success(pair->a.cq, 1);
	wait_success(pair->b.cq, 2);
	require_filled(b + LENGTH, LENGTH, number, "SEND");
}

static void *run_verbs(void *unused)
{
	struct pair pair = make_pair(2 * LENGTH, 16);
	for (uint32_t number = 1; !atomic_load(&is_over); number++) {
		transfer(&pair, number);
		atomic_fetch_add(&transfers, 1);
		sleep_ms(1);
	}
	free_pair(&pair);
	return NULL;
}

/* ---- RDMA-CM ----------------------------------------------------------------------------------------------------- */

static struct rdma_event_channel *open_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	REQUIRE(channel);
	REQUIRE(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	return channel;
}

static struct rdma_cm_id *expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	double began = seconds_now();
	while (rdma_get_cm_event(channel, &event)) {
		REQUIRE(errno == EAGAIN);
		if (poll(&fd, 1, patience_ms()) == 0 || seconds_now() - began > patience_ms() / 1000.0)
			fail(__FILE__, __LINE__, "connection %u: no event %s", connections, rdma_event_str(type));
	}
	if (event->event != type)
		fail(__FILE__, __LINE__, "connection %u: event %s, status %d, instead of %s", connections,
			rdma_event_str(event->event), event->status, rdma_event_str(type));
	struct rdma_cm_id *id = event->id;
	REQUIRE_EQUAL(rdma_ack_cm_event(event), 0);
	return id;
}

static void make_cm_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 64 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	REQUIRE_EQUAL(rdma_create_qp(id, NULL, &attr), 0);
}

static void connect_once(struct rdma_event_channel *active, struct rdma_event_channel *passive)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(PORT)
	};
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7
	};
	struct rdma_cm_id *id, *request;
	REQUIRE_EQUAL(rdma_create_id(active, &id, NULL, RDMA_PS_TCP), 0);
	REQUIRE_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), 0);
	expect_event(active, RDMA_CM_EVENT_ADDR_RESOLVED);
	REQUIRE_EQUAL(rdma_resolve_route(id, 2000), 0);
	expect_event(active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_cm_qp(id);
	REQUIRE_EQUAL(rdma_connect(id, &param), 0);
	request = expect_event(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_cm_qp(request);
	REQUIRE_EQUAL(rdma_accept(request, &param), 0);
	expect_event(active, RDMA_CM_EVENT_ESTABLISHED);
	REQUIRE(expect_event(passive, RDMA_CM_EVENT_ESTABLISHED) == request);
	REQUIRE_EQUAL(rdma_disconnect(id), 0);
	expect_event(passive, RDMA_CM_EVENT_DISCONNECTED);
	REQUIRE_EQUAL(rdma_disconnect(request), 0);
	expect_event(active, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_qp(request);
	REQUIRE_EQUAL(rdma_destroy_id(id), 0);
	REQUIRE_EQUAL(rdma_destroy_id(request), 0);
}

/* ---- rsockets ---------------------------------------------------------------------------------------------------- */

static void wait_for(int fd, short events)
{
	struct pollfd poller = { .fd = fd, .events = events };
	if (rpoll(&poller, 1, patience_ms()) != 1 || poller.revents != events)
		fail(__FILE__, __LINE__, "stream %u: revents %x, not %x", connections, (unsigned)poller.revents,
			(unsigned)events);
}

static int stream_socket(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	REQUIRE(fd >= 0);
	REQUIRE_EQUAL(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void stream_once(int listener)
{
	static uint8_t out[STREAM_LENGTH], in[STREAM_LENGTH];
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(PORT + 1)
	};
	int active = stream_socket();
	fill(out, sizeof(out), connections);
	REQUIRE(rconnect(active, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS);
	wait_for(listener, POLLIN);
	int passive = raccept(listener, NULL, NULL);
	REQUIRE(passive >= 0);
	REQUIRE_EQUAL(rfcntl(passive, F_SETFL, O_NONBLOCK), 0);
	wait_for(active, POLLOUT);
	for (size_t sent = 0, got = 0; got < sizeof(in);) {
		ssize_t n = sent < sizeof(out) ? rsend(active, out + sent, sizeof(out) - sent, 0) : 0;
		REQUIRE(n >= 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		wait_for(passive, POLLIN);
		n = rrecv(passive, in + got, sizeof(in) - got, 0);
		REQUIRE(n > 0);
		got += (size_t)n;
	}
	require_filled(in, sizeof(in), connections, "stream");
	REQUIRE_EQUAL(rclose(active), 0);
	REQUIRE_EQUAL(rclose(passive), 0);
}

static void *run_connections(void *unused)
{
	struct rdma_event_channel *active = open_channel(), *passive = open_channel();
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_cm_id *listener;
	REQUIRE_EQUAL(rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP), 0);
	REQUIRE_EQUAL(rdma_bind_addr(listener, (struct sockaddr *)&any), 0);
	REQUIRE_EQUAL(rdma_listen(listener, 4), 0);
	int socket = stream_socket();
	any.sin_port = htons(PORT + 1);
	REQUIRE_EQUAL(rbind(socket, (struct sockaddr *)&any, sizeof(any)), 0);
	REQUIRE_EQUAL(rlisten(socket, 4), 0);
	do {
		connect_once(active, passive);
		stream_once(socket);
		atomic_fetch_add(&connections, 1);
		sleep_ms(5);
	} while (!atomic_load(&is_over));
	REQUIRE_EQUAL(rclose(socket), 0);
	REQUIRE_EQUAL(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(active);
	rdma_destroy_event_channel(passive);
	return NULL;
}

void honest_start(void)
{
	threads[0] = thread_start(run_verbs, NULL);
	threads[1] = thread_start(run_connections, NULL);
}

void honest_stop(void)
{
	thread_join(threads[0]);
	thread_join(threads[1]);
	printf("  beside it %u transfers and %u connections, as they should be\n", transfers, connections);
}
