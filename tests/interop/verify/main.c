/* Compares bytes after every kind of operation between two machines, of which one may be a kernel's NIC: the same
 * program runs at both ends, each on whichever libibverbs its machine has. Only the public verbs ABI; one thread.
 *
 *   verify -d DEVICE -g GID-INDEX -p PORT [-m MTU] [-t rc|uc|ud] [-k] [HOST]       HOST: be the client; -k: no windows
 *
 * Holds: both ends draw the same steps from the same numbers, so each knows what its memory must look like afterwards,
 * all of it: what an operation may not touch is compared too. A step is one or several work requests of the active end;
 * first the client is active, then the server. Every wait has an end, after which the program says what it waited for.
 * The last line of output is "verified N operations, M bytes". */
#include "verify.h"

static const enum ibv_wr_opcode rc_opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD };

static void run_rc(struct end *end, bool is_active, bool has_windows)
{
	connect_qp(end, IBV_QPT_RC, ACCESS);
	for (unsigned i = 0; i < 5; i++)
		run_sizes(end, rc_opcodes[i], UINT32_MAX, is_active);
	run_atomics(end, is_active);
	run_bursts(end, rc_opcodes, 6, is_active);
	run_late_receive(end, is_active);
	disconnect_qp(end);
	if (has_windows)
		run_window(end, is_active);
	run_refusals(end, is_active);
}

static void run_uc(struct end *end, bool is_active)
{
	connect_qp(end, IBV_QPT_UC, ACCESS);
	for (unsigned i = 0; i < 4; i++)
		run_sizes(end, rc_opcodes[i], 65537, is_active);
	disconnect_qp(end);
}

static void run_ud(struct end *end, bool is_active)
{
	connect_qp(end, IBV_QPT_UD, 0);
	run_sizes(end, IBV_WR_SEND, 128u << end->mtu, is_active);
	run_sizes(end, IBV_WR_SEND_WITH_IMM, 128u << end->mtu, is_active);
	disconnect_qp(end);
}

static void open_device(struct end *end, const char *name)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);

	for (struct ibv_device **device = devices; device && *device; device++)
		if (strcmp(ibv_get_device_name(*device), name) == 0)
			end->context = ibv_open_device(*device);
	if (devices)
		ibv_free_device_list(devices);
	if (!end->context)
		fail(end, "there is no device %s", name);
	if (ibv_query_gid(end->context, 1, end->gid_index, &end->self.gid))
		fail(end, "device %s has no GID %d", name, end->gid_index);
	end->pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 256, NULL, NULL, 0);
	end->memory = aligned_alloc(4096, SPAN);
	end->expected = malloc(SPAN);
	end->other = malloc(SPAN);
	if (!end->pd || !end->cq || !end->memory || !end->expected || !end->other)
		fail(end, "not enough memory");
	end->mr = ibv_reg_mr(end->pd, end->memory, SPAN, ACCESS | IBV_ACCESS_MW_BIND);
	end->grh_mr = ibv_reg_mr(end->pd, end->grh, sizeof(end->grh), IBV_ACCESS_LOCAL_WRITE);
	if (!end->mr || !end->grh_mr)
		fail(end, "ibv_reg_mr failed");
	end->self.rkey = end->mr->rkey;
	end->self.memory = (uintptr_t)end->memory;
}

static enum ibv_mtu mtu_code(int bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 128 << code < bytes)
		code++;
	return code;
}

int main(int argc, char **argv)
{
	static struct end end = { .mtu = IBV_MTU_1024 };
	const char *device = NULL, *port = "18515", *types = "rcucud";
	bool has_windows = true;
	int option;

	while ((option = getopt(argc, argv, "d:g:p:m:t:k")) != -1) {
		switch (option) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			end.gid_index = atoi(optarg);
			break;
		case 'p':
			port = optarg;
			break;
		case 'm':
			end.mtu = mtu_code(atoi(optarg));
			break;
		case 't':
			types = optarg;
			break;
		case 'k':
			has_windows = false;
			break;
		default:
			return 2;
		}
	}
	if (!device)
		fail(&end, "-d DEVICE is missing");
	end.is_client = optind < argc;
	open_device(&end, device);
	end.socket = connect_tcp(end.is_client ? argv[optind] : NULL, port);
	if (end.socket < 0)
		fail(&end, "no TCP connection on port %s", port);
	for (int turn = 0; turn < 2; turn++) {
		bool is_active = end.is_client == (turn == 0);

		if (strstr(types, "rc"))
			run_rc(&end, is_active, has_windows);
		if (strstr(types, "uc"))
			run_uc(&end, is_active);
		if (strstr(types, "ud"))
			run_ud(&end, is_active);
	}
	printf("verified %llu operations, %llu bytes\n", (unsigned long long)end.operations,
		(unsigned long long)end.bytes);
	return 0;
}
