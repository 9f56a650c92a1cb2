/* A small RDMA program of our own for what Debian's programs cannot do: verify every byte they move, take many clients
 * in one process, sleep while others write into it. Only the public verbs ABI; one thread; a TCP connection a client.
 *
 *   peer server [-c CLIENTS] [-z]             serve CLIENTS connections, verify, end; -z: asleep in pause() until USR1
 *   peer client HOST -o OP [-s] [-n] [-q]     OP is write, read, send, atomic or idle; -t: for so many seconds, not -n;
 *                                             -e: asleep until completions come
 *   both: -d DEVICE -g GID-INDEX -p PORT
 *
 * Holds: message i of a QP has a content that follows from (seed, i); it lies in slot i % DEPTH of the QP's part of the
 * region. The client prints one line "done ..." with its longest wait for a completion; the server prints one
 * "served". */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 16, MAX_CLIENTS = 256, CQ_ENTRIES = 16384 };
enum op { WRITE, READ, SEND, ATOMIC, IDLE };
static const char *const op_name[] = { "write", "read", "send", "atomic", "idle" };

struct options {
	const char *device, *host, *port;
	int gid_index, clients;
	bool is_server, sleeps, waits;
	uint32_t op, size, count, qps, timeout;
	double seconds;
};

/* What the two ends tell each other. Both ends are the same program on the same kind of machine. */
struct plan {
	uint32_t op, size, count, qps, seed;
};
struct address {
	uint32_t qpn, rkey;
	uint64_t addr;
	union ibv_gid gid;
};

struct nic {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	union ibv_gid gid;
	enum ibv_mtu mtu;
};

/* One connection: qps QPs and the memory they use. */
struct link {
	int fd;
	struct plan plan;
	struct ibv_qp **qp;
	struct address *remote;
	uint8_t *memory;
	struct ibv_mr *mr;
	uint32_t *posted, *completed; /* per QP; at the server of SENDs: receives */
	uint32_t *sent;               /* per QP, at the server: how many messages the client says there were */
};

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *format, ...)
{
	va_list arguments;

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
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Contents ---------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint64_t seed_of(const struct plan *plan, uint32_t qp, uint32_t message)
{
	return mix(((uint64_t)plan->seed << 32) + ((uint64_t)qp << 24) + message + 1);
}

static void fill(uint8_t *to, uint32_t size, uint64_t seed)
{
	uint32_t at = 0;

	for (; at + 8 <= size; at += 8, seed += 0x9e3779b97f4a7c15)
		memcpy(to + at, &seed, 8);
	memcpy(to + at, &seed, size - at);
}

static void verify(const uint8_t *from, uint32_t size, uint64_t seed, uint32_t qp, uint32_t message)
{
	for (uint32_t at = 0; at < size; at += 8, seed += 0x9e3779b97f4a7c15) {
		uint32_t n = size - at < 8 ? size - at : 8;

		if (memcmp(from + at, &seed, n)) {
			errno = 0;
			die("wrong data: QP %u message %u near byte %u of %u", qp, message, at, size);
		}
	}
}

/* The client's half of a QP's memory comes first in its link, then nothing: both ends lay out alike. */
static uint8_t *slot(const struct link *link, uint32_t qp, uint32_t message)
{
	return link->memory + ((size_t)qp * DEPTH + message % DEPTH) * link->plan.size;
}

/* ---- TCP --------------------------------------------------------------------------------------------------------- */

static void put(int fd, const void *bytes, size_t size)
{
	if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
		die("the other end is gone");
}

static void get(int fd, void *bytes, size_t size)
{
	ssize_t n;

	do {
		n = recv(fd, bytes, size, MSG_WAITALL);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)size)
		die("the other end is gone");
}

static int connect_to(const struct options *options)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;

	if (getaddrinfo(options->host, options->port, &hints, &found))
		die("%s: unknown host", options->host);
	int fd = socket(found->ai_family, SOCK_STREAM, 0);
	for (int tries = 0; connect(fd, found->ai_addr, found->ai_addrlen); tries++) {
		if (tries == 100)
			die("connect to %s", options->host);
		usleep(20000);
	}
	freeaddrinfo(found);
	return fd;
}

static int listen_on(const struct options *options)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(options->port)) };
	int fd = socket(AF_INET6, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, MAX_CLIENTS))
		die("listen on port %s", options->port);
	return fd;
}

/* ---- Verbs ------------------------------------------------------------------------------------------------------- */

static struct nic open_nic(const struct options *options)
{
	struct nic nic = { 0 };
	struct ibv_port_attr port;
	int count, i = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	while (i < count && options->device && strcmp(ibv_get_device_name(list[i]), options->device))
		i++;
	if (!list || i >= count)
		die("no device %s", options->device ? options->device : "at all");
	nic.context = ibv_open_device(list[i]);
	if (!nic.context)
		die("ibv_open_device");
	ibv_free_device_list(list);
	nic.pd = ibv_alloc_pd(nic.context);
	nic.channel = ibv_create_comp_channel(nic.context);
	nic.cq = nic.channel ? ibv_create_cq(nic.context, CQ_ENTRIES, NULL, nic.channel, 0) : NULL;
	if (!nic.pd || !nic.cq || ibv_query_port(nic.context, 1, &port) ||
		ibv_query_gid(nic.context, 1, options->gid_index, &nic.gid))
		die("cannot set up the device");
	nic.mtu = port.active_mtu;
	return nic;
}

static void make_qps(struct link *link, const struct nic *nic)
{
	size_t bytes = (size_t)link->plan.qps * DEPTH * link->plan.size;
	int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	link->qp = calloc(link->plan.qps, sizeof(*link->qp));
	link->remote = calloc(link->plan.qps, sizeof(*link->remote));
	link->posted = calloc(link->plan.qps, sizeof(*link->posted));
	link->completed = calloc(link->plan.qps, sizeof(*link->completed));
	link->sent = calloc(link->plan.qps, sizeof(*link->sent));
	link->memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	memset(link->memory, 0, bytes);
	link->mr = ibv_reg_mr(nic->pd, link->memory, bytes, access);
	if (!link->mr)
		die("ibv_reg_mr");
	for (uint32_t i = 0; i < link->plan.qps; i++) {
		struct ibv_qp_init_attr init = { .send_cq = nic->cq,
			.recv_cq = nic->cq,
			.qp_type = IBV_QPT_RC,
			.sq_sig_all = 1,
			.qp_context = link,
			.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 } };

		link->qp[i] = ibv_create_qp(nic->pd, &init);
		if (!link->qp[i])
			die("ibv_create_qp %u", i);
	}
}

static void post_receive(struct link *link, uint32_t qp, uint32_t message)
{
	struct ibv_sge sge = { (uintptr_t)slot(link, qp, message), link->plan.size, link->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)qp << 32 | message, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(link->qp[qp], &wr, &bad);
	if (errno)
		die("ibv_post_recv");
}

static void connect_qps(struct link *link, const struct nic *nic, const struct options *options)
{
	for (uint32_t i = 0; i < link->plan.qps; i++) {
		struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags =
				IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
		struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
			.path_mtu = nic->mtu,
			.dest_qp_num = link->remote[i].qpn,
			.rq_psn = 77,
			.max_dest_rd_atomic = 16,
			.min_rnr_timer = 12,
			.ah_attr = { .is_global = 1,
				.port_num = 1,
				.grh = { .dgid = link->remote[i].gid,
					.sgid_index = (uint8_t)options->gid_index,
					.hop_limit = 64 } } };
		struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
			.sq_psn = 77,
			.timeout = (uint8_t)options->timeout,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = 16 };

		errno = ibv_modify_qp(
			link->qp[i], &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
		if (errno)
			die("ibv_modify_qp to INIT");
		if (options->is_server && link->plan.op == SEND)
			for (; link->posted[i] < DEPTH && link->posted[i] < link->plan.count; link->posted[i]++)
				post_receive(link, i, link->posted[i]);
		errno = ibv_modify_qp(link->qp[i], &rtr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
		if (errno)
			die("ibv_modify_qp to RTR");
		errno = ibv_modify_qp(link->qp[i], &rts,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				IBV_QP_MAX_QP_RD_ATOMIC);
		if (errno)
			die("ibv_modify_qp to RTS");
	}
}

static void tell_addresses(struct link *link, const struct nic *nic)
{
	for (uint32_t i = 0; i < link->plan.qps; i++) {
		struct address address = { link->qp[i]->qp_num, link->mr->rkey, (uintptr_t)slot(link, i, 0), nic->gid };

		put(link->fd, &address, sizeof(address));
	}
}

static void close_link(struct link *link)
{
	for (uint32_t i = 0; i < link->plan.qps; i++)
		if (ibv_destroy_qp(link->qp[i]))
			die("ibv_destroy_qp");
	if (ibv_dereg_mr(link->mr))
		die("ibv_dereg_mr");
	close(link->fd);
	link->fd = -1;
	free(link->qp);
	free(link->remote);
	free(link->posted);
	free(link->completed);
	free(link->sent);
	free(link->memory);
}

static void close_nic(struct nic *nic)
{
	if (ibv_destroy_cq(nic->cq) || ibv_destroy_comp_channel(nic->channel) || ibv_dealloc_pd(nic->pd) ||
		ibv_close_device(nic->context))
		die("closing the device");
}

/* ---- Client ------------------------------------------------------------------------------------------------------ */

static void post(struct link *link, uint32_t qp, uint32_t message)
{
	static const enum ibv_wr_opcode opcode[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
		IBV_WR_ATOMIC_FETCH_AND_ADD };
	uint64_t remote = link->remote[qp].addr;
	struct ibv_sge sge = { (uintptr_t)slot(link, qp, message), link->plan.size, link->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uint64_t)qp << 32 | message,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode[link->plan.op] },
			   *bad;

	if (link->plan.op == ATOMIC) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = link->remote[qp].rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote + (uint64_t)(message % DEPTH) * link->plan.size;
		wr.wr.rdma.rkey = link->remote[qp].rkey;
	}
	if (link->plan.op == WRITE || link->plan.op == SEND)
		fill(slot(link, qp, message), link->plan.size, seed_of(&link->plan, qp, message));
	errno = ibv_post_send(link->qp[qp], &wr, &bad);
	if (errno)
		die("ibv_post_send");
}

static void complete(struct link *link, uint32_t qp, uint32_t message)
{
	uint64_t value;

	if (link->plan.op == READ) {
		/* The server's slots hold its messages 0 .. DEPTH-1 and do not change. */
		verify(slot(link, qp, message), link->plan.size, seed_of(&link->plan, qp, message % DEPTH), qp,
			message);
		memset(slot(link, qp, message), 0, link->plan.size);
	} else if (link->plan.op == ATOMIC) {
		memcpy(&value, slot(link, qp, message), 8);
		errno = 0;
		if (value != message)
			die("fetch-and-add %u of QP %u returned %llu", message, qp, (unsigned long long)value);
	}
}

static void check_completion(const struct ibv_wc *wc)
{
	errno = 0;
	if (wc->status)
		die("completion with error: %s, vendor_err %u", ibv_wc_status_str(wc->status), wc->vendor_err);
}

struct pumped {
	double longest; /* wait for a completion, in seconds */
	uint64_t later; /* completions in the second half of the time */
};

static int poll_or_wait(const struct nic *nic, struct ibv_wc *wc, int count, bool waits)
{
	struct ibv_cq *cq;
	void *context;
	int n = ibv_poll_cq(nic->cq, count, wc);

	if (n || !waits)
		return n;
	if (ibv_req_notify_cq(nic->cq, 0))
		die("ibv_req_notify_cq");
	n = ibv_poll_cq(nic->cq, count, wc);
	if (n)
		return n;
	if (ibv_get_cq_event(nic->channel, &cq, &context))
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* Keeps DEPTH messages of every QP under way until count of each, or the time, is up. */
static struct pumped pump(struct link *link, const struct nic *nic, const struct options *options)
{
	uint64_t in_flight = 0;
	double last = now(), end = last + options->seconds, half = last + options->seconds / 2;
	struct pumped pumped = { 0, 0 };
	struct ibv_wc wc[32];

	for (uint32_t i = 0; i < link->plan.qps; i++)
		for (; link->posted[i] < DEPTH && link->posted[i] < link->plan.count; in_flight++)
			post(link, i, link->posted[i]++);
	while (in_flight) {
		int n = poll_or_wait(nic, wc, 32, options->waits);

		if (n < 0)
			die("ibv_poll_cq");
		for (int i = 0; i < n; i++) {
			uint32_t qp = (uint32_t)(wc[i].wr_id >> 32);

			check_completion(&wc[i]);
			if ((uint32_t)wc[i].wr_id != link->completed[qp])
				die("QP %u: completion of %u came instead of %u", qp, (uint32_t)wc[i].wr_id,
					link->completed[qp]);
			complete(link, qp, link->completed[qp]++);
			if (link->posted[qp] < link->plan.count && last < end)
				post(link, qp, link->posted[qp]++);
			else
				in_flight--;
		}
		if (n) {
			double at = now();

			pumped.longest = at - last > pumped.longest ? at - last : pumped.longest;
			pumped.later += at >= half && at < end ? (uint64_t)n : 0;
			last = at;
		}
	}
	return pumped;
}

static void run_client(const struct options *options)
{
	struct nic nic = open_nic(options);
	struct link link = { .fd = connect_to(options),
		.plan = { options->op, options->size, options->count, options->qps, (uint32_t)getpid() } };
	char verdict = 0;

	put(link.fd, &link.plan, sizeof(link.plan));
	make_qps(&link, &nic);
	tell_addresses(&link, &nic);
	for (uint32_t i = 0; i < link.plan.qps; i++)
		get(link.fd, &link.remote[i], sizeof(link.remote[i]));
	connect_qps(&link, &nic, options);
	put(link.fd, "c", 1);
	get(link.fd, &verdict, 1); /* everybody is connected */
	printf("connected %u QPs\n", link.plan.qps);
	fflush(stdout);
	if (options->op == IDLE)
		pause();
	double began = now();
	struct pumped pumped = pump(&link, &nic, options);
	double seconds = now() - began;
	printf("done %s size=%u count=%u qps=%u seconds=%.6f longest_ms=%.3f later=%llu\n", op_name[options->op],
		link.plan.size, link.posted[0], link.plan.qps, seconds, pumped.longest * 1e3,
		(unsigned long long)pumped.later);
	fflush(stdout);
	put(link.fd, link.posted, link.plan.qps * sizeof(*link.posted));
	get(link.fd, &verdict, 1);
	close_link(&link);
	close_nic(&nic);
}

/* ---- Server ------------------------------------------------------------------------------------------------------ */

static void accept_link(struct link *link, int listener, const struct nic *nic, const struct options *options)
{
	link->fd = accept(listener, NULL, NULL);
	if (link->fd < 0)
		die("accept");
	get(link->fd, &link->plan, sizeof(link->plan));
	make_qps(link, nic);
	for (uint32_t i = 0; i < link->plan.qps; i++) {
		get(link->fd, &link->remote[i], sizeof(link->remote[i]));
		if (link->plan.op == READ)
			for (uint32_t message = 0; message < DEPTH; message++)
				fill(slot(link, i, message), link->plan.size, seed_of(&link->plan, i, message));
	}
	connect_qps(link, nic, options);
	tell_addresses(link, nic);
}

/* Takes what has been received, verifies it and posts the buffers again. */
static void receive(const struct nic *nic, struct link *links, int clients)
{
	struct ibv_wc wc[32];
	int n;

	while ((n = ibv_poll_cq(nic->cq, 32, wc)) > 0)
		for (int i = 0; i < n; i++) {
			uint32_t qp = (uint32_t)(wc[i].wr_id >> 32), message = (uint32_t)wc[i].wr_id;
			struct link *link = links;

			check_completion(&wc[i]);
			while (link < links + clients && link->qp[qp < link->plan.qps ? qp : 0]->qp_num != wc[i].qp_num)
				link++;
			if (link == links + clients || link->completed[qp]++ != message ||
				wc[i].byte_len != link->plan.size)
				die("a receive that was not posted so");
			verify(slot(link, qp, message), link->plan.size, seed_of(&link->plan, qp, message), qp,
				message);
			if (link->posted[qp] < link->plan.count)
				post_receive(link, qp, link->posted[qp]++);
		}
	if (n < 0)
		die("ibv_poll_cq");
}

/* What a client left in our memory is what its last messages were. */
static void verify_link(const struct link *link)
{
	uint64_t value;

	for (uint32_t qp = 0; qp < link->plan.qps; qp++) {
		uint32_t count = link->sent[qp];

		if (link->plan.op == WRITE)
			for (uint32_t message = count > DEPTH ? count - DEPTH : 0; message < count; message++)
				verify(slot(link, qp, message), link->plan.size, seed_of(&link->plan, qp, message), qp,
					message);
		memcpy(&value, slot(link, qp, 0), link->plan.size < 8 ? link->plan.size : 8);
		errno = 0;
		if (link->plan.op == ATOMIC && value != count)
			die("the counter of QP %u is %llu, not %u", qp, (unsigned long long)value, count);
		if (link->plan.op == SEND && link->completed[qp] != count)
			die("QP %u received %u of %u messages", qp, link->completed[qp], count);
	}
}

/* Completions come as events, the clients' last words over TCP; neither is polled for. */
static void serve(const struct nic *nic, struct link *links, int clients)
{
	struct pollfd fds[MAX_CLIENTS + 1];
	int open = clients;

	ibv_req_notify_cq(nic->cq, 0);
	receive(nic, links, clients);
	while (open) {
		for (int i = 0; i < clients; i++)
			fds[i] = (struct pollfd){ .fd = links[i].fd, .events = POLLIN };
		fds[clients] = (struct pollfd){ .fd = nic->channel->fd, .events = POLLIN };
		if (poll(fds, (nfds_t)clients + 1, -1) < 0)
			die("poll");
		if (fds[clients].revents) {
			struct ibv_cq *cq;
			void *user;

			if (ibv_get_cq_event(nic->channel, &cq, &user))
				die("ibv_get_cq_event");
			ibv_ack_cq_events(cq, 1);
			ibv_req_notify_cq(nic->cq, 0);
			receive(nic, links, clients);
		}
		for (int i = 0; i < clients; i++) {
			if (!fds[i].revents)
				continue;
			get(links[i].fd, links[i].sent, links[i].plan.qps * sizeof(*links[i].sent));
			receive(nic, links, clients);
			verify_link(&links[i]);
			put(links[i].fd, "v", 1);
			close(links[i].fd);
			links[i].fd = -1;
			open--;
		}
	}
}

static void wake(int number)
{
	(void)number;
}

static void run_server(const struct options *options)
{
	struct nic nic = open_nic(options);
	struct link *links = calloc((size_t)options->clients, sizeof(*links));
	int listener = listen_on(options);
	char word;

	signal(SIGUSR1, wake);
	for (int i = 0; i < options->clients; i++)
		accept_link(&links[i], listener, &nic, options);
	for (int i = 0; i < options->clients; i++)
		get(links[i].fd, &word, 1);
	for (int i = 0; i < options->clients; i++)
		put(links[i].fd, "g", 1);
	if (options->sleeps)
		pause();
	serve(&nic, links, options->clients);
	printf("served %d clients\n", options->clients);
	for (int i = 0; i < options->clients; i++)
		close_link(&links[i]);
	free(links);
	close(listener);
	close_nic(&nic);
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static uint32_t op_of(const char *name)
{
	for (uint32_t op = 0; op < sizeof(op_name) / sizeof(*op_name); op++)
		if (!strcmp(op_name[op], name))
			return op;
	errno = 0;
	die("-o %s: write, read, send, atomic or idle", name);
}

int main(int count, char **arguments)
{
	struct options options = {
		.port = "20000", .clients = 1, .size = 65536, .count = 1000, .qps = 1, .timeout = 14, .seconds = 1e9
	};
	int option;

	while ((option = getopt(count, arguments, "d:g:p:c:zo:s:n:q:u:t:e")) != -1)
		switch (option) {
		case 'd':
			options.device = optarg;
			break;
		case 'g':
			options.gid_index = atoi(optarg);
			break;
		case 'p':
			options.port = optarg;
			break;
		case 'c':
			options.clients = atoi(optarg);
			break;
		case 'z':
			options.sleeps = true;
			break;
		case 'o':
			options.op = op_of(optarg);
			break;
		case 's':
			options.size = (uint32_t)atoi(optarg);
			break;
		case 'n':
			options.count = (uint32_t)atoi(optarg);
			break;
		case 'q':
			options.qps = (uint32_t)atoi(optarg);
			break;
		case 't':
			options.seconds = atof(optarg), options.count = UINT32_MAX;
			break;
		case 'u':
			options.timeout = (uint32_t)atoi(optarg);
			break;
		case 'e':
			options.waits = true;
			break;
		default:
			return 2;
		}
	if (options.op == ATOMIC)
		options.size = 8;
	if (optind < count && !strcmp(arguments[optind], "server") && options.clients <= MAX_CLIENTS) {
		options.is_server = true;
		run_server(&options);
	} else if (optind + 1 < count && !strcmp(arguments[optind], "client")) {
		options.host = arguments[optind + 1];
		run_client(&options);
	} else {
		fprintf(stderr, "usage: peer [-d DEVICE] [-g GID] [-p PORT] [-c CLIENTS] [-z] server\n"
				"       peer [-d DEVICE] [-g GID] [-p PORT] [-o OP] [-s SIZE] [-n COUNT] [-q QPS] [-t "
				"SECONDS] [-u TIMEOUT] [-e] client HOST\n");
		return 2;
	}
	return 0;
}
