/* Connections by IP address, many of them, one after the other and at once: what Debian's programs cannot do. Only the
 * public ABI of librdmacm and libibverbs; one thread, driven by events.
 *
 *   dial server ADDRESS PORT                    serve until a client says that it was the last; print what was served
 *   dial client ADDRESS PORT [-n COUNT] [-w AT-ONCE] [-m MESSAGES] [-a] [-l]
 *     COUNT connections are opened, carry MESSAGES each way, every byte verified, and are closed, AT-ONCE at a time;
 *     -a: all are opened before the first is used; -l: the last one waits for the others and tells the server to end
 *   both: -x STEP   print "at STEP" and stop there for ever, waiting to be killed. Client: resolved, requested,
 *                   established, sent, disconnected. Server: listening, asked, accepted, established, disconnected
 *
 * Holds: message i of connection c has a content that follows from (c, i), so that what reaches the wrong connection is
 * seen. The client prints "done ..." with the times of the phases; each end how many descriptors it holds more than
 * before the first connection, and at most how much memory a connection took. A connection that fails is named and ends
 * it. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 256, RESOLVE_MS = 5000, HANG_S = 150, LAST = 1, SLOTS = 65536 };

/* What a client tells the server with its request. */
struct hello {
	uint32_t number, messages, flags;
};

struct connection {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct hello hello;
	uint32_t slot, sent, received;
	bool is_established, is_disconnecting;
	double began;
	uint8_t out[LENGTH], in[LENGTH];
};

static struct {
	bool is_server, opens_all_first, ends_server;
	const char *address, *port, *stop;
	unsigned count, at_once, messages;
} options = { .count = 1, .at_once = 1, .messages = 4 };

static struct {
	struct rdma_event_channel *channel;
	struct ibv_comp_channel *completions;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct connection *of_slot[SLOTS]; /* what a completion names may be gone */
	unsigned started, established, finished, alive, open, most_open;
	bool is_over;
	int descriptors;
	long memory, most_memory;
	double connect_seconds, began;
} all;

static void die(const struct connection *c, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
static void die(const struct connection *c, const char *format, ...)
{
	va_list arguments;

	if (c)
		fprintf(stderr, "connection %u: ", c->hello.number);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, errno ? " (%s)\n" : "\n", strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Where a test kills us. */
static void step(const char *name)
{
	if (!options.stop || strcmp(options.stop, name) != 0)
		return;
	printf("at %s\n", name);
	fflush(stdout);
	for (;;)
		pause();
}

static int count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = -3; /* ".", ".." and this one */

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Resident bytes. */
static long count_memory(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		die(NULL, "/proc/self/statm");
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void fill(uint8_t *bytes, uint32_t number, uint32_t message, bool from_server)
{
	uint32_t x = number * 2654435761u ^ message * 40503u ^ from_server;

	for (unsigned i = 0; i < LENGTH; i++) {
		x = x * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(x >> 24);
	}
}

/* ---- A connection ------------------------------------------------------------------------------------------------ */

static void post_receive(struct connection *c)
{
	struct ibv_sge sge = { (uintptr_t)c->in, LENGTH, c->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = c->slot, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		die(c, "ibv_post_recv");
}

static void send_next(struct connection *c)
{
	fill(c->out, c->hello.number, c->sent++, options.is_server);
	struct ibv_sge sge = { (uintptr_t)c->out, LENGTH, c->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = c->slot, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	if (ibv_post_send(c->id->qp, &wr, &bad))
		die(c, "ibv_post_send");
}

static struct connection *new_connection(void)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c || all.of_slot[all.started % SLOTS])
		die(NULL, "too many connections at once");
	c->slot = all.started++ % SLOTS;
	all.alive++;
	all.of_slot[c->slot] = c;
	return c;
}

static void equip(struct connection *c)
{
	if (!all.pd) {
		all.pd = ibv_alloc_pd(c->id->verbs);
		all.completions = ibv_create_comp_channel(c->id->verbs);
		all.cq = ibv_create_cq(c->id->verbs, 16384, NULL, all.completions, 0);
		if (!all.pd || !all.completions || !all.cq || ibv_req_notify_cq(all.cq, 0))
			die(c, "protection domain and completion queue");
		all.descriptors = count_descriptors();
		all.memory = count_memory();
	}
	struct ibv_qp_init_attr attr = { .send_cq = all.cq,
		.recv_cq = all.cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	if (rdma_create_qp(c->id, all.pd, &attr))
		die(c, "rdma_create_qp");
	c->mr = ibv_reg_mr(all.pd, c->out, 2 * LENGTH, IBV_ACCESS_LOCAL_WRITE);
	if (!c->mr)
		die(c, "ibv_reg_mr");
	post_receive(c);
}

static void disconnect(struct connection *c)
{
	c->is_disconnecting = true;
	if (rdma_disconnect(c->id))
		die(c, "rdma_disconnect");
	step("disconnected");
}

static void free_connection(struct connection *c)
{
	if (c->is_established)
		all.open--;
	rdma_destroy_qp(c->id);
	if (c->mr && ibv_dereg_mr(c->mr))
		die(c, "ibv_dereg_mr");
	if (rdma_destroy_id(c->id))
		die(c, "rdma_destroy_id");
	all.of_slot[c->slot] = NULL;
	all.alive--;
	free(c);
}

static void established(struct connection *c)
{
	c->is_established = true;
	all.established++;
	if (++all.open >= all.most_open) {
		all.most_open = all.open;
		all.most_memory = count_memory();
	}
	step("established");
}

static void received(struct connection *c)
{
	uint8_t expected[LENGTH];

	fill(expected, c->hello.number, c->received++, !options.is_server);
	if (memcmp(expected, c->in, LENGTH) != 0)
		die(c, "message %u has other bytes than were sent", c->received - 1);
	if (options.is_server || c->received < c->hello.messages)
		post_receive(c);
	if (options.is_server || c->sent < c->hello.messages) {
		send_next(c);
		step("sent");
	} else {
		disconnect(c);
	}
}

/* ---- The client -------------------------------------------------------------------------------------------------- */

static void dial(void)
{
	struct connection *c = new_connection();
	struct rdma_addrinfo *info, hints = { .ai_port_space = RDMA_PS_TCP };

	if (rdma_getaddrinfo(options.address, options.port, &hints, &info))
		die(NULL, "rdma_getaddrinfo");
	c->hello = (struct hello){ .number = all.started - 1, .messages = options.messages };
	if (all.started == options.count && options.ends_server)
		c->hello.flags = LAST;
	c->began = now();
	if (rdma_create_id(all.channel, &c->id, c, RDMA_PS_TCP) ||
		rdma_resolve_addr(c->id, NULL, info->ai_dst_addr, RESOLVE_MS))
		die(c, "rdma_resolve_addr");
	rdma_freeaddrinfo(info);
}

static void request(struct connection *c)
{
	equip(c);
	step("resolved");
	struct hello hello = { htonl(c->hello.number), htonl(c->hello.messages), htonl(c->hello.flags) };
	struct rdma_conn_param param = { .private_data = &hello,
		.private_data_len = sizeof(hello),
		.retry_count = 7,
		.rnr_retry_count = 7,
		.responder_resources = 1,
		.initiator_depth = 1 };
	if (rdma_connect(c->id, &param))
		die(c, "rdma_connect");
	step("requested");
}

static void talk(struct connection *c)
{
	if (c->hello.messages == 0) {
		disconnect(c);
		return;
	}
	send_next(c);
	step("sent");
}

/* With -a: the connections that wait for the last to be made. */
static struct connection **waiting;
static unsigned waiting_count;

static void client_established(struct connection *c)
{
	all.connect_seconds += now() - c->began;
	established(c);
	if (!options.opens_all_first) {
		talk(c);
		return;
	}
	waiting[waiting_count++] = c;
	if (waiting_count < options.count)
		return;
	printf("all %u open after %.3f s\n", all.open, now() - all.began);
	for (unsigned i = 0; i < waiting_count; i++)
		talk(waiting[i]);
}

static void client_event(const struct rdma_cm_event *event, struct connection *c)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(c->id, RESOLVE_MS))
			die(c, "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		request(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		client_established(c);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (!c->is_disconnecting)
			die(c, "disconnected by the server after %u messages", c->received);
		all.finished++;
		c->id->context = NULL; /* destroyed once the event is acknowledged */
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		errno = 0;
		die(c, "%s, status %d", rdma_event_str(event->event), event->status);
	}
}

/* ---- The server -------------------------------------------------------------------------------------------------- */

/* The connection, whose id has no context any more if it came to nothing. */
static struct connection *answer(const struct rdma_cm_event *event)
{
	struct connection *c = new_connection();
	struct hello hello;

	if (event->param.conn.private_data_len < sizeof(hello))
		die(NULL, "a request without greeting");
	memcpy(&hello, event->param.conn.private_data, sizeof(hello));
	c->hello = (struct hello){ ntohl(hello.number), ntohl(hello.messages), ntohl(hello.flags) };
	c->id = event->id;
	c->id->context = c;
	step("asked");
	equip(c);
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7 };
	if (rdma_accept(c->id, &param)) { /* who asked is no more */
		printf("gone: connection %u before it was one: accepted too late\n", c->hello.number);
		c->id->context = NULL;
		return c;
	}
	step("accepted");
	return c;
}

static struct connection *server_event(const struct rdma_cm_event *event, struct connection *c)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		c = answer(event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(c);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnect(c);
		if (c->sent == c->hello.messages)
			all.finished++;
		else
			printf("gone: connection %u after %u of %u messages\n", c->hello.number, c->sent,
				c->hello.messages);
		all.is_over |= c->hello.flags & LAST;
		c->id->context = NULL;
		break;
	case RDMA_CM_EVENT_REJECTED: /* who asked is no more */
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		printf("gone: connection %u before it was one: %s\n", c->hello.number, rdma_event_str(event->event));
		c->id->context = NULL;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		errno = 0;
		die(c, "%s, status %d", rdma_event_str(event->event), event->status);
	}
	fflush(stdout);
	return c;
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

static void take_event(void)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(all.channel, &event))
		die(NULL, "rdma_get_cm_event");
	struct rdma_cm_id *id = event->id;
	struct connection *c = id->context;
	if (options.is_server)
		c = server_event(event, c);
	else
		client_event(event, c);
	rdma_ack_cm_event(event);
	if (c && !id->context)
		free_connection(c);
}

static void take_completions(void)
{
	struct ibv_cq *cq;
	void *context;
	struct ibv_wc wc[16];

	if (ibv_get_cq_event(all.completions, &cq, &context) || ibv_req_notify_cq(cq, 0))
		die(NULL, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	for (int n; (n = ibv_poll_cq(cq, 16, wc)) != 0;) {
		if (n < 0)
			die(NULL, "ibv_poll_cq");
		for (int i = 0; i < n; i++) {
			struct connection *c = all.of_slot[wc[i].wr_id];
			if (!c || wc[i].status == IBV_WC_WR_FLUSH_ERR)
				continue;
			errno = 0;
			if (wc[i].status == IBV_WC_SUCCESS && wc[i].opcode & IBV_WC_RECV)
				received(c);
			else if (wc[i].status != IBV_WC_SUCCESS && !options.is_server)
				die(c, "completion with %s", ibv_wc_status_str(wc[i].status));
		}
	}
}

static void wait_and_take(void)
{
	struct pollfd fds[2] = { { all.channel->fd, POLLIN, 0 },
		{ all.completions ? all.completions->fd : -1, POLLIN, 0 } };
	int n = poll(fds, 2, HANG_S * 1000);

	if (n <= 0) {
		errno = n ? errno : 0;
		die(NULL, "nothing happened for %d s: %u started, %u established, %u finished", HANG_S, all.started,
			all.established, all.finished);
	}
	if (fds[1].revents) /* before the events: of a connection that is closed all has been taken */
		take_completions();
	if (fds[0].revents)
		take_event();
}

/* ---- Both -------------------------------------------------------------------------------------------------------- */

static void print_summary(void)
{
	double seconds = now() - all.began;

	printf("done connections=%u seconds=%.3f connect_us=%.1f open=%u", all.finished, seconds,
		all.established ? all.connect_seconds / all.established * 1e6 : 0.0, all.most_open);
	printf(" bytes_each=%ld descriptors=%d\n",
		all.most_open ? (all.most_memory - all.memory) / (long)all.most_open : 0L,
		all.pd ? count_descriptors() - all.descriptors : 0);
}

static bool may_dial(void)
{
	bool is_last = all.started + 1 == options.count;

	if (is_last && options.ends_server && !options.opens_all_first)
		return all.alive == 0;
	return all.started < options.count && all.alive < options.at_once;
}

static void run_client(void)
{
	if (options.opens_all_first && !(waiting = calloc(options.count, sizeof(*waiting))))
		die(NULL, "memory");
	while (all.finished < options.count) {
		while (may_dial())
			dial();
		wait_and_take();
	}
	free(waiting);
}

static void run_server(void)
{
	struct rdma_addrinfo *info, hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE };
	struct rdma_cm_id *listener;

	if (rdma_getaddrinfo(options.address, options.port, &hints, &info))
		die(NULL, "rdma_getaddrinfo");
	if (rdma_create_id(all.channel, &listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(listener, info->ai_src_addr) ||
		rdma_listen(listener, 1024))
		die(NULL, "rdma_listen");
	rdma_freeaddrinfo(info);
	printf("listening\n");
	fflush(stdout);
	step("listening");
	while (!all.is_over || all.alive > 0)
		wait_and_take();
	if (rdma_destroy_id(listener))
		die(NULL, "rdma_destroy_id");
}

static void read_options(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "n:w:m:x:al")) != -1;) {
		switch (c) {
		case 'n':
			options.count = (unsigned)atoi(optarg);
			break;
		case 'w':
			options.at_once = (unsigned)atoi(optarg);
			break;
		case 'm':
			options.messages = (unsigned)atoi(optarg);
			break;
		case 'x':
			options.stop = optarg;
			break;
		case 'a':
			options.opens_all_first = true;
			break;
		case 'l':
			options.ends_server = true;
			break;
		default:
			exit(2);
		}
	}
	if (argc - optind != 3) {
		fprintf(stderr, "usage: dial server|client ADDRESS PORT [-n COUNT] [-w AT-ONCE] [-m MESSAGES] [-a] "
				"[-l] [-x STEP]\n");
		exit(2);
	}
	options.is_server = strcmp(argv[optind], "server") == 0;
	options.address = argv[optind + 1];
	options.port = argv[optind + 2];
	if (options.opens_all_first)
		options.at_once = options.count;
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	all.began = now();
	all.channel = rdma_create_event_channel();
	if (!all.channel)
		die(NULL, "rdma_create_event_channel");
	if (options.is_server)
		run_server();
	else
		run_client();
	print_summary();
	if (all.pd && (ibv_destroy_cq(all.cq) || ibv_destroy_comp_channel(all.completions) || ibv_dealloc_pd(all.pd)))
		die(NULL, "not everything was given back");
	rdma_destroy_event_channel(all.channel);
	return 0;
}
