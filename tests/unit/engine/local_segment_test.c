/* Memory that lies in a segment: whoever pulls it is told which. */
#include "local.h"

enum { SEGMENT = 77, OFFSET = 300000, BYTES = 100000, SHORT = VB_LOCAL_LEND_MIN, FAR = 1 << 19 };

/* A part of the second side's memory, or of the first's, once more. */
static struct vb_mr *register_part(struct pair *p, int of, uint32_t segment)
{
	struct vb_mr_config config = { .memory = p->side[of].memory + OFFSET,
		.length = BYTES,
		.segment = segment,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_MW_BIND };
	struct vb_mr *mr;
	fill(p, of, OFFSET, BYTES);
	assert_int_equal(vb_mr_register(p->side[of].pd, &config, &mr), 0);
	return mr;
}

static void unregister(struct vb_mr *mr)
{
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
}

static void write_from(struct pair *p, const struct vb_mr *mr, uint32_t length)
{
	struct vb_sge sge = { 0, length, vb_mr_key(mr) };
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE);
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_WRITE);
	assert_memory_equal(p->side[1].memory + PLACE, p->side[0].memory + OFFSET, length);
}

static void read_from(struct pair *p, uint32_t key)
{
	struct vb_sge sge = pair_sge(p, 0, PLACE, BYTES);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_READ, &sge, 0);
	wr.remote_addr = 0;
	wr.rkey = key;
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_READ);
	assert_memory_equal(p->side[0].memory + PLACE, p->side[1].memory + OFFSET, BYTES);
}

static void write__from_a_segment_names_it(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	struct vb_mr *mr = register_part(p, 0, SEGMENT);
	write_from(p, mr, BYTES);
	assert_int_equal(p->segment, SEGMENT);
	unregister(mr);
	mr = register_part(p, 0, 0);
	write_from(p, mr, BYTES);
	assert_int_equal(p->pulls, 2);
	assert_int_equal(p->segment, 0);
	unregister(mr);
	pair_close(p);
}

static void read__from_a_segment_names_it(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	struct vb_mr *mr = register_part(p, 1, SEGMENT);
	read_from(p, vb_mr_key(mr));
	assert_int_equal(p->segment, SEGMENT);
	assert_int_equal(p->side[0].other.read_bytes, BYTES);
	assert_int_equal(p->side[1].other.lent_bytes, BYTES);
	unregister(mr);
	pair_close(p);
}

static void read__through_a_window_names_its_regions_segment(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	struct vb_mr *mr = register_part(p, 1, SEGMENT);
	struct vb_mw *mw;
	assert_int_equal(vb_mw_create(p->side[1].pd, 2, &mw), 0);
	uint32_t key = vb_mw_key(mw) ^ 1;
	assert_int_equal(
		vb_mw_bind(mw, mr, p->side[1].pd, vb_qp_number(p->side[1].qp), 0, BYTES, VB_ACCESS_REMOTE_READ, key),
		0);
	read_from(p, key);
	assert_int_equal(p->segment, SEGMENT);
	assert_int_equal(vb_mw_destroy(mw), 0);
	unregister(mr);
	pair_close(p);
}

/* It costs no call of the kernel, and so pays from the first byte that may be lent. */
static void lending__begins_early_with_segments_that_are_mapped(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, FAR);
	struct vb_mr *mapped = register_part(p, 0, SEGMENT), *other = register_part(p, 0, 0);
	write_from(p, mapped, SHORT);
	assert_int_equal(p->pulls, 0);
	vb_local_peer_set_mapping(&p->side[0].other, true);
	write_from(p, other, SHORT);
	assert_int_equal(p->pulls, 0);
	write_from(p, mapped, SHORT - 1);
	assert_int_equal(p->pulls, 0);
	write_from(p, mapped, SHORT);
	assert_int_equal(p->pulls, 1);
	vb_local_peer_set_lending(&p->side[0].other, 0);
	write_from(p, mapped, SHORT);
	assert_int_equal(p->pulls, 1);
	unregister(mapped);
	unregister(other);
	pair_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__from_a_segment_names_it),
		cmocka_unit_test(read__from_a_segment_names_it),
		cmocka_unit_test(read__through_a_window_names_its_regions_segment),
		cmocka_unit_test(lending__begins_early_with_segments_that_are_mapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
