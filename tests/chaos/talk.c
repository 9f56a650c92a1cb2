/* Connections that live through disturbances: made, used and closed for as long as one likes, by IP address. Only the
 * public ABI of librdmacm and libibverbs; one thread.
 *
 *   talk server ADDRESS PORT [-y]
 *     -y: accepts requests without our greeting too, and gives them up after a second; else it refuses them
 *   talk client ADDRESS PORT [-w AT-ONCE] [-n COUNT] [-m MESSAGES] [-p PERIOD-MS]
 *     AT-ONCE connections at a time, COUNT in all (0: until SIGTERM), each until MESSAGES went each way (0: for ever)
 *   both: -t SECONDS  after which a connection that neither proceeds nor is told of its end is "silent" (twice that
 *                     while it is being made or closed: a lost message of the connection manager is repeated after 4.3
 * s)
 *
 * Holds: each end sends a message every PERIOD-MS, the server until the client closes, so that each finds out about
 * the other's end by itself; message i of a connection has a content that follows from (connection, i, sender).
 * Whatever goes wrong with a connection, an event, a completion or a call's errno, is told on stdout, and the
 * connection given up; the program goes on. It prints a line "status ..." with its counts, at most twice a second.
 * SIGTERM: closes what is open and ends, with 0 when nothing was wrong or silent; with COUNT also every connection must
 * have been whole. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 512, RECEIVES = 8, SLOTS = 4096, RESOLVE_MS = 3000, TOLD_LINES = 40, BEAT_S = 5 };
enum { STRANGERS = 1024, STRANGER_S = 1 }; /* at a time, and each for so long */
#define MAGIC 0x63686173                   /* in a greeting */
#define MARK  "chaos-own-data!!"           /* hostile.c looks for it in what it gets to read */

enum step { RESOLVING, ROUTING, REQUESTING, ANSWERING, OPEN, CLOSING, STEPS };
static const char *const step_name[STEPS] = { "resolving", "routing", "requesting", "answering", "open", "closing" };

struct hello {
	uint32_t magic, number, messages, period_ms;
};

struct connection {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct hello hello;
	uint32_t slot, generation, sent, received;
	enum step step;
	bool is_sending, is_over, is_stranger;
	double began, stepped, heard, sent_at;
	uint8_t out[LENGTH], in[RECEIVES][LENGTH];
};

static struct {
	bool is_server, takes_strangers;
	const char *address, *port;
	unsigned at_once, count, messages, period_ms;
	double silence;
} options = { .at_once = 1, .messages = 4, .period_ms = 20, .silence = 40 };

static struct {
	struct rdma_event_channel *channel;
	struct ibv_comp_channel *completions;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct connection *of_slot[SLOTS];
	uint32_t generation, first_number;
	unsigned alive, started, made, whole, told, strangers, refused, wrong, silent;
	unsigned long messages;
	double worst_connect, longest_turn;
} all;

static volatile sig_atomic_t is_ending;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fatal(const char *what)
{
	fprintf(stderr, "talk: %s (%s)\n", what, strerror(errno));
	exit(1);
}

/* The connection ends here, and why is said. */
static void tell(struct connection *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(struct connection *c, const char *format, ...)
{
	va_list arguments;

	if (c->is_over)
		return;
	c->is_over = true;
	if (c->is_stranger || all.told++ > TOLD_LINES)
		return;
	printf("told %s connection %08x: ", step_name[c->step], c->hello.number);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

static void step(struct connection *c, enum step next)
{
	c->step = next;
	c->stepped = c->heard = now();
}

static void fill(uint8_t *bytes, uint32_t number, uint32_t message, bool from_server)
{
	uint32_t x = number * 2654435761u ^ message * 40503u ^ from_server;

	memcpy(bytes, MARK, sizeof(MARK) - 1);
	for (unsigned i = sizeof(MARK) - 1; i < LENGTH; i++) {
		x = x * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(x >> 24);
	}
}

/* ---- A connection ------------------------------------------------------------------------------------------------ */

static struct connection *new_connection(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (all.of_slot[i])
			continue;
		struct connection *c = calloc(1, sizeof(*c));
		if (!c)
			fatal("memory");
		c->slot = i;
		c->generation = ++all.generation;
		c->began = now();
		all.of_slot[i] = c;
		all.alive++;
		step(c, options.is_server ? ANSWERING : RESOLVING);
		return c;
	}
	return NULL;
}

static void free_connection(struct connection *c)
{
	if (c->id) {
		if (c->id->qp)
			rdma_destroy_qp(c->id);
		if (c->mr)
			ibv_dereg_mr(c->mr);
		rdma_destroy_id(c->id);
	}
	all.of_slot[c->slot] = NULL;
	all.alive--;
	all.strangers -= c->is_stranger;
	free(c);
}

static uint64_t work_id(const struct connection *c, unsigned receive)
{
	return (uint64_t)c->generation << 32 | receive << 16 | c->slot;
}

static void post_receive(struct connection *c, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)c->in[i], LENGTH, c->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = work_id(c, i), .sg_list = &sge, .num_sge = 1 };
	int error = ibv_post_recv(c->id->qp, &wr, &bad);

	if (error)
		tell(c, "ibv_post_recv: %s", strerror(error));
}

static void send_next(struct connection *c)
{
	fill(c->out, c->hello.number, c->sent, options.is_server);
	struct ibv_sge sge = { (uintptr_t)c->out, LENGTH, c->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = work_id(c, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED };
	int error = ibv_post_send(c->id->qp, &wr, &bad);

	if (error)
		tell(c, "ibv_post_send: %s", strerror(error));
	c->is_sending = true;
	c->sent++;
	c->sent_at = now();
}

static bool open_device(struct ibv_context *verbs)
{
	if (all.cq)
		return true;
	all.pd = ibv_alloc_pd(verbs);
	all.completions = ibv_create_comp_channel(verbs);
	if (!all.pd || !all.completions || fcntl(all.completions->fd, F_SETFL, O_NONBLOCK))
		return false;
	all.cq = ibv_create_cq(verbs, SLOTS * 2, NULL, all.completions, 0);
	return all.cq && !ibv_req_notify_cq(all.cq, 0);
}

static bool equip(struct connection *c)
{
	if (!open_device(c->id->verbs)) {
		tell(c, "protection domain and completion queue: %s", strerror(errno));
		return false;
	}
	struct ibv_qp_init_attr attr = { .send_cq = all.cq,
		.recv_cq = all.cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1 } };
	if (rdma_create_qp(c->id, all.pd, &attr)) {
		tell(c, "rdma_create_qp: %s", strerror(errno));
		return false;
	}
	c->mr = ibv_reg_mr(all.pd, c->out, sizeof(c->out) + sizeof(c->in), IBV_ACCESS_LOCAL_WRITE);
	if (!c->mr) {
		tell(c, "ibv_reg_mr: %s", strerror(errno));
		return false;
	}
	for (unsigned i = 0; i < RECEIVES && !c->is_over; i++)
		post_receive(c, i);
	return !c->is_over;
}

static void established(struct connection *c)
{
	step(c, OPEN);
	all.made++;
	if (now() - c->began > all.worst_connect)
		all.worst_connect = now() - c->began;
}

static void received(struct connection *c, unsigned i)
{
	uint8_t expected[LENGTH];

	fill(expected, c->hello.number, c->received++, !options.is_server);
	c->heard = now();
	all.messages++;
	if (memcmp(expected, c->in[i], LENGTH)) {
		all.wrong++;
		printf("WRONG connection %08x: message %u has other bytes than were sent\n", c->hello.number,
			c->received - 1);
	}
	post_receive(c, i);
}

static void close_connection(struct connection *c)
{
	step(c, CLOSING);
	if (rdma_disconnect(c->id))
		tell(c, "rdma_disconnect: %s", strerror(errno));
}

/* What is due of a connection that nothing happened to. */
static void advance(struct connection *c, double at)
{
	const uint32_t messages = c->hello.messages;
	const bool is_said = messages && !options.is_server && c->sent >= messages;

	if (c->step == OPEN && !c->is_sending && !is_said && at - c->sent_at >= c->hello.period_ms * 1e-3)
		send_next(c);
	if (c->step == OPEN && !options.is_server &&
		(is_ending || (is_said && !c->is_sending && c->received >= messages)))
		close_connection(c);
	const double limit = c->step == OPEN ? options.silence : options.silence * 2;
	const double since = at - (c->step == OPEN ? c->heard : c->stepped);
	c->is_over |= c->is_stranger && since > STRANGER_S;
	if (c->is_over || since < limit)
		return;
	all.silent++;
	printf("SILENT connection %08x: %s for %.1f s, neither data nor word of its end\n", c->hello.number,
		step_name[c->step], since);
	c->is_over = true;
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* False: it came to nothing. */
static bool dial(void)
{
	struct rdma_addrinfo *info, hints = { .ai_port_space = RDMA_PS_TCP };
	struct connection *c = new_connection();

	if (!c)
		return false;
	if (!all.started) {
		printf("dialling\n");
		fflush(stdout);
	}
	c->hello = (struct hello){ MAGIC, all.first_number + all.started++, options.messages, options.period_ms };
	if (rdma_getaddrinfo(options.address, options.port, &hints, &info)) {
		tell(c, "rdma_getaddrinfo: %s", strerror(errno));
		return false;
	}
	if (rdma_create_id(all.channel, &c->id, c, RDMA_PS_TCP))
		tell(c, "rdma_create_id: %s", strerror(errno));
	else if (rdma_resolve_addr(c->id, NULL, info->ai_dst_addr, RESOLVE_MS))
		tell(c, "rdma_resolve_addr: %s", strerror(errno));
	rdma_freeaddrinfo(info);
	return !c->is_over;
}

static void request(struct connection *c)
{
	struct hello hello = { htonl(MAGIC), htonl(c->hello.number), htonl(c->hello.messages),
		htonl(c->hello.period_ms) };
	struct rdma_conn_param param = { .private_data = &hello,
		.private_data_len = sizeof(hello),
		.retry_count = 7,
		.rnr_retry_count = 7,
		.responder_resources = 1,
		.initiator_depth = 1 };

	if (!equip(c))
		return;
	step(c, REQUESTING);
	if (rdma_connect(c->id, &param))
		tell(c, "rdma_connect: %s", strerror(errno));
}

static void answer(const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7 };
	struct connection *c;
	struct hello hello;

	memcpy(&hello, event->param.conn.private_data, sizeof(hello));
	const bool is_stranger = hello.magic != htonl(MAGIC);
	if (is_stranger && (!options.takes_strangers || all.strangers >= STRANGERS)) {
		all.refused++;
		return;
	}
	c = new_connection();
	if (!c)
		return;
	c->is_stranger = is_stranger;
	all.strangers += is_stranger;
	c->id = event->id;
	c->id->context = c;
	c->hello = (struct hello){ MAGIC, ntohl(hello.number), ntohl(hello.messages), ntohl(hello.period_ms) };
	if (equip(c) && rdma_accept(c->id, &param))
		tell(c, "rdma_accept: %s", strerror(errno));
}

static void take_event(const struct rdma_cm_event *event)
{
	struct connection *c = event->id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		answer(event);
		return;
	}
	if (!c || c->is_over)
		return;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		step(c, ROUTING);
		if (rdma_resolve_route(c->id, RESOLVE_MS))
			tell(c, "rdma_resolve_route: %s", strerror(errno));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		request(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(c);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* Well ended: who closed it hears so, the other has heard all. */
		if (c->step == CLOSING || (c->hello.messages && c->received >= c->hello.messages)) {
			all.whole++;
			c->is_over = true;
		} else {
			tell(c, "disconnected after %u messages", c->received);
		}
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		tell(c, "%s, status %d", rdma_event_str(event->event), event->status);
	}
}

static void take_events(void)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(all.channel, &event)) {
		struct rdma_cm_id *id = event->id;
		const bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		take_event(event);
		rdma_ack_cm_event(event);
		if (is_request && !id->context)
			rdma_destroy_id(id); /* which refuses it */
	}
}

static void take_completions(void)
{
	struct ibv_wc wc[16];
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(all.completions, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(all.cq, 0);
	for (int n; (n = ibv_poll_cq(all.cq, 16, wc)) > 0;)
		for (int i = 0; i < n; i++) {
			struct connection *c = all.of_slot[wc[i].wr_id & 0xFFFF];
			if (!c || c->generation != wc[i].wr_id >> 32 || c->is_over)
				continue;
			if (wc[i].status == IBV_WC_WR_FLUSH_ERR && c->step != OPEN)
				continue; /* of a connection that is being closed */
			if (wc[i].status == IBV_WC_WR_FLUSH_ERR)
				continue; /* an event says why */
			if (wc[i].status != IBV_WC_SUCCESS)
				tell(c, "completion with %s", ibv_wc_status_str(wc[i].status));
			else if (wc[i].opcode & IBV_WC_RECV)
				received(c, wc[i].wr_id >> 16 & 0xFFFF);
			else
				c->is_sending = false;
		}
}

/* ---- Turns ------------------------------------------------------------------------------------------------------- */

/* When something has changed, and else every few seconds: whoever watches sees that it lives. */
static void print_status(bool is_last)
{
	static char before[256];
	static double said;
	char line[256];
	unsigned open = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		open += all.of_slot[i] && all.of_slot[i]->step == OPEN;
	snprintf(line, sizeof(line),
		"status made=%u whole=%u told=%u refused=%u wrong=%u silent=%u open=%u pending=%u messages=%lu "
		"worst_ms=%.0f turn_ms=%.0f",
		all.made, all.whole, all.told, all.refused, all.wrong, all.silent, open, all.alive - open, all.messages,
		all.worst_connect * 1e3, all.longest_turn * 1e3);
	if (!is_last && strcmp(line, before) == 0 && now() - said < BEAT_S)
		return;
	said = now();
	strcpy(before, line);
	printf("%s at=%.1f\n", line, said);
	fflush(stdout);
}

static bool is_over(void)
{
	if (options.is_server)
		return is_ending;
	return !all.alive && (is_ending || (options.count && all.started >= options.count));
}

static void turn(void)
{
	struct pollfd fds[2] = { { all.channel->fd, POLLIN, 0 },
		{ all.completions ? all.completions->fd : -1, POLLIN, 0 } };

	poll(fds, 2, 2);
	const double began = now();
	if (all.cq) /* before the events: of a connection that is closed all has been taken */
		take_completions();
	take_events();
	for (unsigned i = 0; i < SLOTS; i++) {
		if (all.of_slot[i] && !all.of_slot[i]->is_over)
			advance(all.of_slot[i], now());
		if (all.of_slot[i] && all.of_slot[i]->is_over)
			free_connection(all.of_slot[i]);
	}
	while (!options.is_server && !is_ending && all.alive < options.at_once &&
		(!options.count || all.started < options.count))
		if (!dial())
			break; /* one failing call a turn: not a loop of its own */
	if (now() - began > all.longest_turn)
		all.longest_turn = now() - began;
}

static struct rdma_cm_id *listen_at(void)
{
	struct rdma_addrinfo *info, hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE };
	struct rdma_cm_id *listener;

	if (rdma_getaddrinfo(options.address, options.port, &hints, &info))
		fatal("rdma_getaddrinfo");
	if (rdma_create_id(all.channel, &listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(listener, info->ai_src_addr) ||
		rdma_listen(listener, 1024))
		fatal("rdma_listen");
	rdma_freeaddrinfo(info);
	printf("listening\n");
	fflush(stdout);
	return listener;
}

static void end(int number)
{
	(void)number;
	is_ending = 1;
}

static void read_options(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "w:n:m:p:t:y")) != -1;)
		switch (c) {
		case 'w':
			options.at_once = (unsigned)atoi(optarg);
			break;
		case 'n':
			options.count = (unsigned)atoi(optarg);
			break;
		case 'm':
			options.messages = (unsigned)atoi(optarg);
			break;
		case 'p':
			options.period_ms = (unsigned)atoi(optarg);
			break;
		case 'y':
			options.takes_strangers = true;
			break;
		case 't':
			options.silence = atof(optarg);
			break;
		default:
			exit(2);
		}
	if (argc - optind != 3) {
		fprintf(stderr, "usage: talk server|client ADDRESS PORT [-w AT-ONCE] [-n COUNT] [-m MESSAGES] "
				"[-p PERIOD-MS] [-t SECONDS] [-y]\n");
		exit(2);
	}
	options.is_server = strcmp(argv[optind], "server") == 0;
	options.address = argv[optind + 1];
	options.port = argv[optind + 2];
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener = NULL;

	read_options(argc, argv);
	signal(SIGTERM, end);
	if (getrandom(&all.first_number, sizeof(all.first_number), 0) < 0)
		fatal("getrandom");
	all.channel = rdma_create_event_channel();
	if (!all.channel || fcntl(all.channel->fd, F_SETFL, O_NONBLOCK))
		fatal("rdma_create_event_channel");
	if (options.is_server)
		listener = listen_at();
	for (double said = 0; !is_over();) {
		turn();
		if (now() - said >= 0.5) {
			said = now();
			print_status(false);
		}
	}
	print_status(true);
	for (unsigned i = 0; i < SLOTS; i++)
		if (all.of_slot[i])
			free_connection(all.of_slot[i]);
	if (listener)
		rdma_destroy_id(listener);
	if (all.cq)
		ibv_destroy_cq(all.cq);
	if (all.completions)
		ibv_destroy_comp_channel(all.completions);
	if (all.pd)
		ibv_dealloc_pd(all.pd);
	rdma_destroy_event_channel(all.channel);
	return all.wrong || all.silent || (options.count && all.whole != options.count);
}
