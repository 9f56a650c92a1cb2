/* Windows and refusals: what ends, or may end, its connection, so each has one of its own. */
#include "verify.h"

/* rxe hands its kernel's own flag to programs, which is another bit than the verbs' IBV_WC_WITH_INV. */
enum { RXE_WITH_INVALIDATE = 1 << 2 };

static void expect_either(struct end *end, enum ibv_wc_status expected, enum ibv_wc_status also, const char *what)
{
	struct ibv_wc wc;

	wait_completion(end, &wc, what);
	if (wc.status != expected && wc.status != also)
		fail(end, "%s completed with \"%s\", expected \"%s\"", what, ibv_wc_status_str(wc.status),
			ibv_wc_status_str(expected));
}

static void expect_status(struct end *end, enum ibv_wc_status expected, const char *what)
{
	expect_either(end, expected, expected, what);
}

static uint32_t bind_window(struct end *end, struct ibv_mw *window)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;

	wr.bind_mw.mw = window;
	wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ .mr = end->mr,
		.addr = (uintptr_t)end->memory,
		.length = SPAN,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	if (ibv_post_send(end->qp, &wr, &bad))
		fail(end, "posting a bind failed");
	expect_status(end, IBV_WC_SUCCESS, "the bind");
	return wr.bind_mw.rkey;
}

static const struct message through_window[] = {
	{ .opcode = IBV_WR_RDMA_WRITE, .length = 5001, .local = 77, .remote = 4321, .local_pieces = 2 },
	{ .opcode = IBV_WR_SEND_WITH_INV,
		.length = 99,
		.local = 20000,
		.remote = 30000,
		.local_pieces = 1,
		.remote_pieces = 1 },
};

static void use_window(struct end *end, uint32_t rkey)
{
	struct message write = through_window[0];

	post_message(end, &write, 0, rkey);
	expect_status(end, IBV_WC_SUCCESS, "a write through a window");
	post_message(end, &through_window[1], 0, rkey);
	expect_status(end, IBV_WC_SUCCESS, "a send with invalidate");
	write.remote += 10000;
	post_message(end, &write, 0, rkey);
	expect_status(end, IBV_WC_REM_ACCESS_ERR, "a write through an invalidated window");
}

/* A window is bound, written through, invalidated by a SEND, and then refused. */
void run_window(struct end *end, bool is_active)
{
	struct ibv_mw *window = NULL;
	uint32_t rkey = 0;
	struct ibv_wc wc;

	end->doing = "window";
	connect_qp(end, IBV_QPT_RC, ACCESS);
	end->step++;
	prepare(end, through_window, 2, is_active);
	if (!is_active) {
		window = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);
		if (!window)
			fail(end, "ibv_alloc_mw failed");
		rkey = bind_window(end, window);
		post_receive(end, &through_window[1], 0);
		tell(end, &rkey, sizeof(rkey));
		wait_completion(end, &wc, "a receive with invalidate");
		if (wc.status || !(wc.wc_flags & (IBV_WC_WITH_INV | RXE_WITH_INVALIDATE)) ||
			wc.invalidated_rkey != rkey)
			fail(end, "receive with invalidate: %s, flags %#x, rkey %#x, expected %#x",
				ibv_wc_status_str(wc.status), wc.wc_flags, wc.invalidated_rkey, rkey);
	} else {
		hear(end, &rkey, sizeof(rkey));
		use_window(end, rkey);
	}
	meet(end);
	compare(end);
	disconnect_qp(end);
	if (window && ibv_dealloc_mw(window))
		fail(end, "ibv_dealloc_mw failed");
	end->operations += 2;
}

struct refusal {
	const char *what;
	enum ibv_wr_opcode opcode;
	uint32_t length;
	int access; /* of the QP; 0: everything */
	uint32_t rkey_change, address_change;
	uint32_t receive_bytes;          /* posted by the passive end, if not 0 */
	enum ibv_wc_status status, also; /* also: accepted too, if not 0 */
};

static const struct refusal refusals[] = {
	{ .what = "a write with a wrong rkey",
		.opcode = IBV_WR_RDMA_WRITE,
		.length = 3000,
		.rkey_change = 0x5A5A00,
		.status = IBV_WC_REM_ACCESS_ERR },
	{ .what = "a write past the region",
		.opcode = IBV_WR_RDMA_WRITE,
		.length = 3000,
		.address_change = SPAN - 2999,
		.status = IBV_WC_REM_ACCESS_ERR },
	{ .what = "a read past the region",
		.opcode = IBV_WR_RDMA_READ,
		.length = 3000,
		.address_change = SPAN - 2999,
		.status = IBV_WC_REM_ACCESS_ERR },
	{ .what = "an atomic past the region",
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.length = 8,
		.address_change = SPAN,
		.status = IBV_WC_REM_ACCESS_ERR },
	{ .what = "a write that the QP does not allow",
		.opcode = IBV_WR_RDMA_WRITE,
		.length = 3000,
		.access = IBV_ACCESS_REMOTE_READ,
		.status = IBV_WC_REM_INV_REQ_ERR },
	/* rxe calls this one an operation error. */
	{ .what = "a send longer than its receive",
		.opcode = IBV_WR_SEND,
		.length = 3000,
		.receive_bytes = 2000,
		.status = IBV_WC_REM_INV_REQ_ERR,
		.also = IBV_WC_REM_OP_ERR },
};

/* What may not be done is answered with an error, and the passive end's memory is as it was. */
static void run_refusal(struct end *end, const struct refusal *refusal, bool is_active)
{
	struct message receive = { .opcode = IBV_WR_SEND, .length = refusal->receive_bytes, .remote_pieces = 1 };
	struct message message = { .opcode = refusal->opcode,
		.length = refusal->length,
		.local_pieces = 1,
		.remote = refusal->address_change };

	end->doing = refusal->what;
	connect_qp(end, IBV_QPT_RC, refusal->access ? refusal->access : ACCESS);
	end->step++;
	prepare(end, NULL, 0, is_active);
	if (!is_active && receive.length)
		post_receive(end, &receive, 0);
	meet(end);
	if (is_active) {
		post_message(end, &message, 0, end->peer.rkey ^ refusal->rkey_change);
		expect_either(end, refusal->status, refusal->also ? refusal->also : refusal->status, refusal->what);
	}
	meet(end);
	/* A receive that proves too short may have taken what fits. */
	if (!receive.length)
		compare(end);
	disconnect_qp(end);
	end->operations++;
}

void run_refusals(struct end *end, bool is_active)
{
	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		run_refusal(end, &refusals[i], is_active);
}
