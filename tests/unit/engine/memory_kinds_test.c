/* Kinds of memory: what is not there, and a kind of the holder's own, which the engine reaches by its operations
 * alone. */
#include <string.h>
#include "device.h"
#include "request.h"
#include "rig.h"

static const uint8_t payload[64] = "Sixty-four bytes, of which these are the first and the last.";

/* ---- Memory that is not there ---- */

static void phantom__is_checked_and_has_no_bytes(void **state)
{
	struct device device = open_device();
	struct vb_mr_config config = {
		.iova = 4096, .length = 1u << 30, .access = ALL_ACCESS, .kind = &vb_memory_phantom
	};
	struct vb_mr *mr;
	struct vb_reach reach;
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), 0);
	assert_int_equal(vb_reach_remote(device.pd, 5, vb_mr_key(mr), 4096, 1u << 30, ALL_REMOTE, &reach), 0);
	assert_null(vb_load(&reach, 1u << 30));
	assert_int_equal(vb_reach_remote(device.pd, 5, vb_mr_key(mr), 4095, 1, ALL_REMOTE, &reach), -EACCES);
	vb_place(&reach, payload, 8, true);
	assert_int_equal(vb_fetch_add(&reach, 1), 0);
	assert_int_equal(vb_compare_swap(&reach, 0, 1), 0);
	deregister(mr);
	close_device(&device);
}

static void null__forgets_and_reads_zeros(void **state)
{
	struct device device = open_device();
	struct vb_mr_config config = { .length = UINT64_MAX, .access = VB_ACCESS_LOCAL_WRITE, .kind = &vb_memory_null };
	struct vb_mr *mr;
	struct vb_reach reach;
	uint8_t zeros[VB_LARGE_MTU] = { 0 };
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), 0);
	struct vb_sge sge = { .addr = 0x7777777777, .length = UINT32_MAX, .lkey = vb_mr_key(mr) };
	assert_int_equal(vb_reach_local(device.pd, &sge, 5, UINT32_MAX - 5, VB_ACCESS_LOCAL_WRITE, &reach), 0);
	vb_place(&reach, payload, 8, true);
	assert_int_equal(vb_reach_local(device.pd, &sge, 5, sizeof(zeros), 0, &reach), 0);
	assert_memory_equal(vb_load(&reach, sizeof(zeros)), zeros, sizeof(zeros));
	assert_int_equal(vb_reach_local(device.pd, &sge, 5, sizeof(zeros) + 1, 0, &reach), -EACCES);
	assert_int_equal(vb_reach_remote(device.pd, 5, vb_mr_key(mr), 0, 8, VB_ACCESS_REMOTE_READ, &reach), -EACCES);
	assert_int_equal(vb_reach_remote(device.pd, 5, vb_mr_key(mr), 0, 8, VB_ACCESS_REMOTE_WRITE, &reach), -EACCES);
	deregister(mr);
	config.access = ALL_ACCESS;
	assert_int_equal(vb_mr_register(device.pd, &config, &mr), -EINVAL);
	close_device(&device);
}

/* ---- Another device's ----
 * Its addresses are nothing to this process, and its bytes lie there turned around. */

enum { FAR = 4096, FAR_BYTES = 1024 };

static uint8_t far_bytes[FAR_BYTES], staged[FAR_BYTES];
static bool is_away;

static uint8_t *far_at(const void *at)
{
	return far_bytes + ((uintptr_t)at - FAR);
}

static bool far_is_present(const void *at, uint64_t length, bool for_writing)
{
	return !is_away;
}

static const void *far_load(const void *at, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		staged[i] = (uint8_t)~far_at(at)[i];
	return staged;
}

static void far_store(void *at, const uint8_t *from, uint32_t length, bool ends_message)
{
	for (uint32_t i = 0; i < length; i++)
		far_at(at)[i] = (uint8_t)~from[i];
}

static uint64_t far_change(void *at, uint64_t (*change)(uint64_t, uint64_t, uint64_t), uint64_t a, uint64_t b)
{
	uint64_t before, after;
	memcpy(&before, far_load(at, 8), 8);
	after = change(before, a, b);
	far_store(at, (const uint8_t *)&after, 8, true);
	return before;
}

static uint64_t sum(uint64_t before, uint64_t add, uint64_t unused)
{
	return before + add;
}

static uint64_t swap_if_equal(uint64_t before, uint64_t compare, uint64_t swap)
{
	return before == compare ? swap : before;
}

static uint64_t far_fetch_add(void *at, uint64_t add)
{
	return far_change(at, sum, add, 0);
}

static uint64_t far_compare_swap(void *at, uint64_t compare, uint64_t swap)
{
	return far_change(at, swap_if_equal, compare, swap);
}

static const struct vb_memory_kind far_memory = {
	.access = ALL_ACCESS & ~VB_ACCESS_MW_BIND,
	.is_present = far_is_present,
	.load = far_load,
	.store = far_store,
	.fetch_add = far_fetch_add,
	.compare_swap = far_compare_swap,
};

struct scene {
	struct rig *rig;
	struct vb_qp *qp;
	struct vb_mr *mr;
};

static struct scene open_scene(void)
{
	struct scene s = { .rig = rig_open(8) };
	struct vb_mr_config config = { .memory = (void *)FAR,
		.iova = FAR,
		.length = FAR_BYTES,
		.access = far_memory.access,
		.kind = &far_memory };
	memset(far_bytes, 0xff, sizeof(far_bytes)); /* zeros */
	is_away = false;
	s.qp = rig_connected(s.rig, NULL);
	assert_int_equal(vb_mr_register(s.rig->pd, &config, &s.mr), 0);
	return s;
}

static void close_scene(struct scene *s)
{
	assert_int_equal(vb_qp_destroy(s->qp), 0);
	deregister(s->mr);
	rig_close(s->rig);
}

static void own_kind__takes_writes_and_receives(void **state)
{
	struct scene s = open_scene();
	struct vb_sge sge = { FAR + 512, 64, vb_mr_key(s.mr) };
	struct vb_packet write = { .opcode = VB_WRITE_ONLY,
		.psn = RIG_RQ_PSN,
		.va = FAR + 8,
		.rkey = vb_mr_key(s.mr),
		.dma_length = 64,
		.payload = payload,
		.payload_length = 64 };
	struct vb_packet send = {
		.opcode = VB_SEND_ONLY, .psn = RIG_RQ_PSN + 1, .payload = payload, .payload_length = 64
	};
	assert_int_equal(vb_rq_post(s.qp, &(struct vb_recv_wr){ .sges = &sge, .sge_count = 1 }), 0);
	rig_receive(s.rig, s.qp, write);
	rig_receive(s.rig, s.qp, send);
	assert_memory_equal(far_load((void *)(FAR + 8), 64), payload, 64);
	assert_memory_equal(far_load((void *)(FAR + 512), 64), payload, 64);
	close_scene(&s);
}

static void own_kind__gives_what_is_sent_and_read(void **state)
{
	struct scene s = open_scene();
	struct vb_sge sge = { FAR + 100, 64, vb_mr_key(s.mr) };
	struct vb_packet read = {
		.opcode = VB_READ_REQUEST, .psn = RIG_RQ_PSN, .va = FAR + 100, .rkey = vb_mr_key(s.mr), .dma_length = 64
	};
	far_store((void *)(FAR + 100), payload, 64, true);
	rig_post(s.qp, &(struct vb_send_wr){ .opcode = VB_WR_SEND, .sges = &sge, .sge_count = 1 });
	assert_int_equal(rig_transmit(s.rig), 1);
	assert_ptr_equal(s.rig->batch.iov[0].base, staged);
	assert_memory_equal(staged, payload, 64);
	rig_receive(s.rig, s.qp, read);
	memset(staged, 0, sizeof(staged));
	assert_int_equal(rig_transmit(s.rig), 1);
	assert_ptr_equal(s.rig->batch.iov[0].base, staged);
	assert_memory_equal(staged, payload, 64);
	close_scene(&s);
}

static void own_kind__has_atomics_of_its_own(void **state)
{
	struct scene s = open_scene();
	uint64_t before = 1;
	struct vb_packet add = { .opcode = VB_FETCH_ADD, .va = FAR + 16, .rkey = vb_mr_key(s.mr), .swap_add = 5 };
	struct vb_packet swap = {
		.opcode = VB_CMP_SWAP, .va = FAR + 16, .rkey = vb_mr_key(s.mr), .compare = 5, .swap_add = 9
	};
	s.qp->attr.access = VB_ACCESS_REMOTE_ATOMIC;
	struct vb_request requests[] = { request_of(&add), request_of(&swap) };
	assert_int_equal(vb_execute(&s.qp->target, &requests[0], &before), VB_EXECUTED);
	assert_int_equal(before, 0);
	assert_int_equal(vb_execute(&s.qp->target, &requests[1], &before), VB_EXECUTED);
	assert_int_equal(before, 5);
	memcpy(&before, far_load((void *)(FAR + 16), 8), 8);
	assert_int_equal(before, 9);
	close_scene(&s);
}

static void own_kind__that_is_away_or_grants_less_refuses(void **state)
{
	struct scene s = open_scene();
	struct vb_reach reach;
	struct vb_mr *mr;
	struct vb_mr_config config = {
		.memory = (void *)FAR, .iova = FAR, .length = 8, .access = VB_ACCESS_MW_BIND, .kind = &far_memory
	};
	assert_int_equal(vb_mr_register(s.rig->pd, &config, &mr), -EINVAL);
	assert_int_equal(vb_reach_remote(s.rig->pd, 5, vb_mr_key(s.mr), FAR, 8, VB_ACCESS_REMOTE_READ, &reach), 0);
	is_away = true;
	assert_int_equal(
		vb_reach_remote(s.rig->pd, 5, vb_mr_key(s.mr), FAR, 8, VB_ACCESS_REMOTE_READ, &reach), -EACCES);
	assert_int_equal(vb_reach_remote(s.rig->pd, 5, vb_mr_key(s.mr), FAR, 0, VB_ACCESS_REMOTE_READ, &reach), 0);
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phantom__is_checked_and_has_no_bytes),
		cmocka_unit_test(null__forgets_and_reads_zeros),
		cmocka_unit_test(own_kind__takes_writes_and_receives),
		cmocka_unit_test(own_kind__gives_what_is_sent_and_read),
		cmocka_unit_test(own_kind__has_atomics_of_its_own),
		cmocka_unit_test(own_kind__that_is_away_or_grants_less_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
