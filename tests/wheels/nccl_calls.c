/* nccl_calls server PORT | client HOST PORT: the calls of NCCL's InfiniBand transport, without NCCL, which wants a
 * GPU. It opens libibverbs by its bare name, takes each function by name and version, finds the GID by /sys, and moves
 * data as NCCL
 * does: the receiver writes into the sender's list where it wants the next buffer, the sender writes it there and says
 * so by an immediate. The client sends; the server checks. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 8, MESSAGES = 64, MESSAGE = 1 << 20, PORT_NUMBER = 1, WAIT_SECONDS = 30 };

#define FUNCTIONS(X)                                                                                                   \
	X(ibv_get_device_list, "IBVERBS_1.1")                                                                          \
	X(ibv_free_device_list, "IBVERBS_1.1")                                                                         \
	X(ibv_get_device_name, "IBVERBS_1.1")                                                                          \
	X(ibv_open_device, "IBVERBS_1.1")                                                                              \
	X(ibv_close_device, "IBVERBS_1.1")                                                                             \
	X(ibv_get_async_event, "IBVERBS_1.1")                                                                          \
	X(ibv_ack_async_event, "IBVERBS_1.1")                                                                          \
	X(ibv_query_device, "IBVERBS_1.1")                                                                             \
	X(ibv_query_gid, "IBVERBS_1.1")                                                                                \
	X(ibv_query_qp, "IBVERBS_1.1")                                                                                 \
	X(ibv_alloc_pd, "IBVERBS_1.1")                                                                                 \
	X(ibv_dealloc_pd, "IBVERBS_1.1")                                                                               \
	X(ibv_dereg_mr, "IBVERBS_1.1")                                                                                 \
	X(ibv_create_cq, "IBVERBS_1.1")                                                                                \
	X(ibv_destroy_cq, "IBVERBS_1.1")                                                                               \
	X(ibv_create_qp, "IBVERBS_1.1")                                                                                \
	X(ibv_modify_qp, "IBVERBS_1.1")                                                                                \
	X(ibv_destroy_qp, "IBVERBS_1.1")                                                                               \
	X(ibv_fork_init, "IBVERBS_1.1")                                                                                \
	X(ibv_event_type_str, "IBVERBS_1.1")                                                                           \
	X(ibv_reg_mr_iova2, "IBVERBS_1.8")                                                                             \
	X(ibv_query_ece, "IBVERBS_1.10")                                                                               \
	X(ibv_set_ece, "IBVERBS_1.10")                                                                                 \
	X(ibv_reg_dmabuf_mr, "IBVERBS_1.12")

#define POINTER(name, version) static __typeof__(&(name)) p_##name;
FUNCTIONS(POINTER)
/* verbs.h makes a macro of this name. */
#undef ibv_query_port
static int (*p_ibv_query_port)(struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *);

/* One buffer that the receiver wants filled. */
struct slot {
	uint64_t addr;
	uint32_t rkey, number;
};

struct side {
	uint64_t list;
	uint32_t rkey, qpn;
	union ibv_gid gid;
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *list_mr, *data_mr;
	int gid_index;
	enum ibv_mtu mtu;
	struct side own, peer;
	struct slot list[SLOTS];
	unsigned char *data;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

static void need(int ok, const char *what)
{
	if (!ok)
		die("%s failed: %m", what);
}

static void *take(void *library, const char *name, const char *version)
{
	void *found = dlvsym(library, name, version);
	if (!found)
		die("no %s of version %s", name, version);
	return found;
}

static void load(void)
{
	void *library = dlopen("libibverbs.so", RTLD_NOW);
	if (!library)
		library = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!library)
		die("%s", dlerror());
#define TAKE(name, version) p_##name = (__typeof__(p_##name))take(library, #name, version);
	FUNCTIONS(TAKE)
	p_ibv_query_port = (__typeof__(p_ibv_query_port))take(library, "ibv_query_port", "IBVERBS_1.1");
}

static int read_text(const char *path, char *text, int size)
{
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	int there = fgets(text, size, file) != NULL;
	fclose(file);
	return there;
}

/* The first GID of RoCE v2 that is an IPv4 address. */
static int find_gid(const char *device, struct ibv_context *context, int count, union ibv_gid *gid)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	char path[PATH_MAX], text[64];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device,
			PORT_NUMBER, i);
		if (!read_text(path, text, sizeof(text)) || strncmp(text, "RoCE v2", 7) != 0)
			continue;
		need(p_ibv_query_gid(context, PORT_NUMBER, i, gid) == 0, "ibv_query_gid");
		if (memcmp(gid->raw, mapped, sizeof(mapped)) == 0)
			return i;
	}
	die("%s has no RoCE v2 GID of an IPv4 address in /sys", device);
}

/* NCCL joins ports of one adapter by its place in the tree of devices. */
static void show_place(const char *device)
{
	char link[PATH_MAX], place[PATH_MAX];

	snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", device);
	printf("device %s at %s\n", device, realpath(link, place) ? place : "no place");
}

static void open_first_active(struct end *e)
{
	int count = 0;
	struct ibv_device **list = p_ibv_get_device_list(&count);

	need(list != NULL, "ibv_get_device_list");
	for (int i = 0; i < count && !e->context; i++) {
		struct ibv_port_attr port = { 0 };
		struct ibv_device_attr device;
		struct ibv_context *context = p_ibv_open_device(list[i]);

		need(context != NULL, "ibv_open_device");
		need(p_ibv_query_device(context, &device) == 0, "ibv_query_device");
		need(p_ibv_query_port(context, PORT_NUMBER, (struct _compat_ibv_port_attr *)&port) == 0,
			"ibv_query_port");
		if (port.state != IBV_PORT_ACTIVE || port.link_layer != IBV_LINK_LAYER_ETHERNET) {
			p_ibv_close_device(context);
			continue;
		}
		const char *name = p_ibv_get_device_name(list[i]);
		e->context = context;
		e->mtu = port.active_mtu;
		e->gid_index = find_gid(name, context, port.gid_tbl_len, &e->own.gid);
		show_place(name);
	}
	if (!e->context)
		die("none of %d devices has an active port", count);
	p_ibv_free_device_list(list);
}

static void make_queue_pair(struct end *e)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_qp_init_attr wanted = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4 * SLOTS,
			.max_recv_wr = 4 * SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = sizeof(struct slot) } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = PORT_NUMBER, .qp_access_flags = access };

	e->pd = p_ibv_alloc_pd(e->context);
	need(e->pd != NULL, "ibv_alloc_pd");
	e->cq = wanted.send_cq = wanted.recv_cq = p_ibv_create_cq(e->context, 16 * SLOTS, NULL, NULL, 0);
	need(e->cq != NULL, "ibv_create_cq");
	e->qp = p_ibv_create_qp(e->pd, &wanted);
	need(e->qp != NULL, "ibv_create_qp");
	need(p_ibv_modify_qp(e->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
		"ibv_modify_qp to INIT");
	e->data = aligned_alloc(4096, (size_t)SLOTS * MESSAGE);
	e->data_mr = p_ibv_reg_mr_iova2(
		e->pd, e->data, (size_t)SLOTS * MESSAGE, (uintptr_t)e->data, access | IBV_ACCESS_RELAXED_ORDERING);
	e->list_mr = p_ibv_reg_mr_iova2(e->pd, e->list, sizeof(e->list), (uintptr_t)e->list, access);
	need(e->data_mr && e->list_mr, "ibv_reg_mr_iova2");
	e->own = (struct side){
		.list = (uintptr_t)e->list, .rkey = e->list_mr->rkey, .qpn = e->qp->qp_num, .gid = e->own.gid
	};
}

static void connect_queue_pair(struct end *e)
{
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_RTR,
		.path_mtu = e->mtu,
		.dest_qp_num = e->peer.qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			.port_num = PORT_NUMBER,
			.grh = { .dgid = e->peer.gid, .sgid_index = (uint8_t)e->gid_index, .hop_limit = 255 } } };

	need(p_ibv_modify_qp(e->qp, &to,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
		"ibv_modify_qp to RTR");
	to = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};
	need(p_ibv_modify_qp(e->qp, &to,
		     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC) == 0,
		"ibv_modify_qp to RTS");
}

static int meet(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE },
			*at;
	int yes = 1;

	if (getaddrinfo(host, port, &hints, &at))
		die("no such address");
	int s = socket(AF_INET, SOCK_STREAM, 0);
	if (host) {
		need(connect(s, at->ai_addr, at->ai_addrlen) == 0, "connect");
		freeaddrinfo(at);
		return s;
	}
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	need(bind(s, at->ai_addr, at->ai_addrlen) == 0 && listen(s, 1) == 0, "listen");
	freeaddrinfo(at);
	return accept(s, NULL, NULL);
}

static void exchange(int s, struct end *e)
{
	need(write(s, &e->own, sizeof(e->own)) == sizeof(e->own), "write");
	need(recv(s, &e->peer, sizeof(e->peer), MSG_WAITALL) == sizeof(e->peer), "read");
}

/* The next completion of that opcode; sends of others are taken on the way. */
static struct ibv_wc wait_for(struct end *e, enum ibv_wc_opcode opcode)
{
	time_t until = time(NULL) + WAIT_SECONDS;
	struct ibv_wc wc;

	for (;;) {
		int found = ibv_poll_cq(e->cq, 1, &wc);
		if (found > 0 && wc.status != IBV_WC_SUCCESS)
			die("a completion with status %d, vendor_err %u", wc.status, wc.vendor_err);
		if (found > 0 && wc.opcode == opcode)
			return wc;
		if (found < 0 || time(NULL) > until)
			die("no completion of opcode %d within %d s", opcode, WAIT_SECONDS);
	}
}

static void post_write(
	struct end *e, enum ibv_wr_opcode opcode, struct ibv_sge *from, uint64_t addr, uint32_t rkey, unsigned flags)
{
	struct ibv_send_wr *bad, wr = { .opcode = opcode,
		.sg_list = from,
		.num_sge = 1,
		.send_flags = flags,
		.imm_data = htonl(from->length),
		.wr.rdma = { addr, rkey } };

	need(ibv_post_send(e->qp, &wr, &bad) == 0, "ibv_post_send");
}

static unsigned char byte_of(unsigned message, size_t i)
{
	return (unsigned char)(i * 7 + i / 251 + message * 13);
}

/* Says where the message of that number is wanted. */
static void want(struct end *e, unsigned message)
{
	struct slot slot = { (uintptr_t)e->data + (uint64_t)(message % SLOTS) * MESSAGE, e->data_mr->rkey,
		message + 1 };
	struct ibv_sge from = { (uintptr_t)&slot, sizeof(slot), 0 };
	struct ibv_recv_wr *bad, wr = { .wr_id = message };

	need(ibv_post_recv(e->qp, &wr, &bad) == 0, "ibv_post_recv");
	post_write(e, IBV_WR_RDMA_WRITE, &from, e->peer.list + message % SLOTS * sizeof(slot), e->peer.rkey,
		IBV_SEND_INLINE | IBV_SEND_SIGNALED);
}

static void receive_all(struct end *e)
{
	for (unsigned message = 0; message < SLOTS; message++)
		want(e, message);
	for (unsigned message = 0; message < MESSAGES; message++) {
		struct ibv_wc wc = wait_for(e, IBV_WC_RECV_RDMA_WITH_IMM);
		const unsigned char *data = e->data + (size_t)(message % SLOTS) * MESSAGE;

		if (wc.wr_id != message || ntohl(wc.imm_data) != MESSAGE)
			die("message %u came as %u with %u bytes", message, (unsigned)wc.wr_id, ntohl(wc.imm_data));
		for (size_t i = 0; i < MESSAGE; i++)
			if (data[i] != byte_of(message, i))
				die("message %u: byte %zu is wrong", message, i);
		if (message + SLOTS < MESSAGES)
			want(e, message + SLOTS);
	}
}

static void send_all(struct end *e)
{
	for (unsigned message = 0; message < MESSAGES; message++) {
		struct slot *slot = &e->list[message % SLOTS];
		unsigned char *data = e->data + (size_t)(message % SLOTS) * MESSAGE;
		struct ibv_sge from = { (uintptr_t)data, MESSAGE, e->data_mr->lkey };
		time_t until = time(NULL) + WAIT_SECONDS;

		while (__atomic_load_n(&slot->number, __ATOMIC_ACQUIRE) != message + 1) {
			struct ibv_wc wc;

			if (ibv_poll_cq(e->cq, 1, &wc) > 0 || time(NULL) > until)
				die("message %u was never wanted", message);
		}
		for (size_t i = 0; i < MESSAGE; i++)
			data[i] = byte_of(message, i);
		post_write(e, IBV_WR_RDMA_WRITE_WITH_IMM, &from, slot->addr, slot->rkey, IBV_SEND_SIGNALED);
		wait_for(e, IBV_WC_RDMA_WRITE);
	}
}

static void take_down(struct end *e)
{
	need(p_ibv_destroy_qp(e->qp) == 0 && p_ibv_destroy_cq(e->cq) == 0, "destroying");
	need(p_ibv_dereg_mr(e->data_mr) == 0 && p_ibv_dereg_mr(e->list_mr) == 0, "ibv_dereg_mr");
	need(p_ibv_dealloc_pd(e->pd) == 0 && p_ibv_close_device(e->context) == 0, "closing");
	free(e->data);
}

int main(int argc, char **argv)
{
	static struct end e;
	int is_server = argc == 3 && strcmp(argv[1], "server") == 0;

	if (!is_server && !(argc == 4 && strcmp(argv[1], "client") == 0))
		die("usage: nccl_calls server PORT | client HOST PORT");
	load();
	need(p_ibv_fork_init() == 0, "ibv_fork_init");
	open_first_active(&e);
	make_queue_pair(&e);
	int s = meet(is_server ? NULL : argv[2], argv[argc - 1]);
	exchange(s, &e);
	connect_queue_pair(&e);
	exchange(s, &e); /* nobody sends before both can receive */
	if (is_server)
		receive_all(&e);
	else
		send_all(&e);
	exchange(s, &e); /* nobody goes before the other is done */
	take_down(&e);
	puts("done");
	return 0;
}
