/* Devices, ports, GIDs, P_Keys: what a program learns before it makes anything. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "fixture.h"
#include "loop_host.h"
#include "verbs/objects.h"

#undef ibv_query_port

static void device__is_the_same_object_in_every_list(void **state)
{
	int count;
	struct ibv_device **one = ibv_get_device_list(&count), **two = ibv_get_device_list(NULL);
	assert_int_equal(count, 1);
	assert_null(one[1]);
	assert_ptr_equal(one[0], two[0]);
	assert_string_equal(ibv_get_device_name(one[0]), "vb_test0");
	assert_string_equal(one[0]->dev_name, "uverbs_test0");
	assert_string_equal(one[0]->ibdev_path, "/sys/class/infiniband/vb_test0");
	assert_int_equal(one[0]->node_type, IBV_NODE_CA);
	assert_int_equal(one[0]->transport_type, IBV_TRANSPORT_IB);
	assert_true(ibv_get_device_guid(one[0]) == 0x1122334455667788);
	assert_int_equal(ibv_get_device_index(one[0]), -1);
	/* Direct-verbs libraries read the pointer behind the structure and must not find their own. */
	assert_null(*(void **)((char *)one[0] + 664));
	ibv_free_device_list(one);
	ibv_free_device_list(two);
}

static void device__outlives_its_list_when_opened(void **state)
{
	struct fixture *f = *state;
	assert_string_equal(f->context->device->name, "vb_test0");
}

static void context__is_laid_out_for_inline_code(void **state)
{
	struct fixture *f = *state;
	assert_ptr_equal(f->context->abi_compat, (void *)UINTPTR_MAX);
	struct verbs_context *verbs = verbs_get_ctx(f->context);
	assert_ptr_equal((char *)f->context - 320, verbs);
	assert_int_equal(verbs->sz, sizeof(*verbs));
	assert_non_null(verbs_get_ctx_op(f->context, query_port));
	assert_null(verbs_get_ctx_op(f->context, create_flow_action_esp));
	assert_true(f->context->num_comp_vectors >= 1);
	assert_true(fcntl(f->context->cmd_fd, F_GETFD) >= 0);
}

/* Faults of calls that nobody asks for cost posting and polling not an instruction. */
static void context__without_faults_has_the_plain_operations(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &(struct ibv_cq_init_attr_ex){ .cqe = 4 });

	assert_ptr_equal(f->context->ops.post_send, vb_qp_ops_post_send);
	assert_ptr_equal(f->context->ops.post_recv, vb_qp_ops_post_recv);
	assert_ptr_equal(f->context->ops.post_srq_recv, vb_srq_ops_post_recv);
	assert_ptr_equal(f->context->ops.poll_cq, vb_cq_ops_poll);
	assert_ptr_equal(f->context->ops.req_notify_cq, vb_cq_ops_req_notify);
	assert_non_null(cq);
	assert_ptr_equal(cq->start_poll, vb_cq_ex_start_poll);
	assert_ptr_equal(cq->next_poll, vb_cq_ex_next_poll);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void device__reports_what_it_grants(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr attr;
	assert_int_equal(ibv_query_device(f->context, &attr), 0);
	assert_int_equal(attr.vendor_part_id, LOOP_PART_ID);
	assert_true(attr.vendor_id != 0 && attr.vendor_id != 0x1d0f && attr.vendor_id != 0x15b3 &&
		    attr.vendor_id != 0x02c9 && attr.vendor_id != 0x8086);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(attr.max_sge, VB_MAX_SGE);
	assert_int_equal(attr.max_cqe, VB_MAX_CQE);
	assert_true(attr.node_guid != 0 && attr.sys_image_guid != 0);
	assert_non_null(memchr(attr.fw_ver, 0, sizeof(attr.fw_ver)));

	struct ibv_device_attr_ex ex;
	assert_int_equal(ibv_query_device_ex(f->context, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
	assert_true(ex.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(ex.hca_core_clock, 1000000);
	assert_true(ex.tm_caps.max_num_tags >= 1 && ex.tm_caps.max_ops >= 1);
	assert_int_equal(ex.tm_caps.max_rndv_hdr_size, 32);
}

static void device__query_writes_no_more_than_the_caller_has(void **state)
{
	struct fixture *f = *state;
	uint8_t room[1024];
	memset(room, 0xAB, sizeof(room));
	assert_int_equal(ibv_query_device(f->context, (struct ibv_device_attr *)room), 0);
	assert_int_equal(room[232], 0xAB);
	memset(room, 0xAB, sizeof(room));
	assert_int_equal(ibv_query_port(f->context, 1, (struct _compat_ibv_port_attr *)room), 0);
	assert_int_equal(room[47], 0); /* flags */
	assert_int_equal(room[48], 0xAB);
	/* A newer program's structure is longer: the rest reads as zero. */
	memset(room, 0xAB, sizeof(room));
	assert_int_equal(verbs_get_ctx(f->context)->query_port(f->context, 1, (struct ibv_port_attr *)room, 56), 0);
	assert_int_equal(room[55], 0);
	assert_int_equal(room[56], 0xAB);
	memset(room, 0xAB, sizeof(room));
	assert_int_equal(
		verbs_get_ctx(f->context)->query_device_ex(f->context, NULL, (struct ibv_device_attr_ex *)room, 416),
		0);
	assert_int_equal(room[415], 0);
	assert_int_equal(room[416], 0xAB);
}

static void port__is_an_active_ethernet_port(void **state)
{
	struct fixture *f = *state;
	struct ibv_port_attr attr;
	assert_int_equal(___ibv_query_port(f->context, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.active_mtu, IBV_MTU_1024);
	assert_int_equal(attr.max_mtu, IBV_MTU_4096);
	assert_int_equal(attr.lid, 0);
	assert_int_equal(attr.phys_state, 5);
	assert_int_equal(attr.pkey_tbl_len, 1);
	assert_true(attr.max_msg_sz >= 1u << 30);
	/* 100 Gb/s: four lanes of 25 */
	assert_int_equal(attr.active_width, 2);
	assert_int_equal(attr.active_speed, 32);
	assert_int_equal(___ibv_query_port(f->context, 0, &attr), EINVAL);
	assert_int_equal(___ibv_query_port(f->context, 2, &attr), EINVAL);
}

static void gid__table_reads_as_the_manual_says(void **state)
{
	struct fixture *f = *state;
	struct ibv_gid_entry entry, table[8];
	union ibv_gid gid, zero = { { 0 } };
	struct vb_gid ipv4 = vb_gid_from_ipv4(10, 0, 0, 1);
	assert_int_equal(ibv_query_gid(f->context, 1, 0, &gid), 0);
	assert_memory_equal(gid.raw, ipv4.raw, 16);
	assert_int_equal(ibv_query_gid(f->context, 1, 5, &gid), 0);
	assert_memory_equal(gid.raw, zero.raw, 16);
	assert_int_equal(ibv_query_gid(f->context, 1, VB_MAX_GIDS, &gid), -1);
	assert_int_equal(ibv_query_gid(f->context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(f->context, 2, 0, &gid), -1);

	assert_int_equal(ibv_query_gid_ex(f->context, 1, 1, &entry, 0), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.gid_index, 1);
	assert_int_equal(entry.port_num, 1);
	assert_int_equal(entry.ndev_ifindex, 7);
	assert_int_equal(ibv_query_gid_ex(f->context, 1, 5, &entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(f->context, 1, VB_MAX_GIDS, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(f->context, 1, 0, &entry, 1), EOPNOTSUPP);

	assert_int_equal(ibv_query_gid_table(f->context, table, 8, 0), 2);
	assert_int_equal(table[1].gid_index, 1);
	assert_int_equal(ibv_query_gid_table(f->context, table, 1, 0), -EINVAL);
	/* A caller whose entries are longer: the stride is his. */
	uint8_t wide[2][48];
	memset(wide, 0xAB, sizeof(wide));
	assert_int_equal(_ibv_query_gid_table(f->context, (struct ibv_gid_entry *)wide, 2, 0, 48), 2);
	assert_memory_equal(wide[1], &table[1], sizeof(table[1]));
	assert_int_equal(wide[0][47], 0);

	int type = -1;
	assert_int_equal(vb_query_gid_type(f->context, 1, 0, &type), 0);
	assert_int_equal(type, 1);
}

static void pkey__table_has_the_default_alone(void **state)
{
	struct fixture *f = *state;
	__be16 pkey;
	assert_int_equal(ibv_query_pkey(f->context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(f->context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(f->context, 1, 0xffff), 0);
	assert_int_equal(ibv_get_pkey_index(f->context, 1, 0x1234), -1);
}

static void unbuilt__verbs_say_so(void **state)
{
	struct fixture *f = *state;
	assert_null(ibv_import_device(3));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(f->pd, 0, 4096, 0, -1, 0));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void ece__has_no_options(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = fixture_create_qp(f, IBV_QPT_RC, NULL);
	struct ibv_ece ece = { .vendor_id = 1, .options = 7, .comp_mask = 9 };
	assert_int_equal(ibv_query_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 0);
	assert_int_equal(ece.comp_mask, 0);
	assert_int_not_equal(ece.vendor_id, 0);
	ece.options = 0xFF; /* what a peer of ours claims to have */
	assert_int_equal(ibv_set_ece(qp, &ece), 0);
	assert_int_equal(ece.options, 0);
	ece.comp_mask = 1;
	assert_int_equal(ibv_set_ece(qp, &ece), EINVAL);
	assert_int_equal(ibv_set_ece(qp, &(struct ibv_ece){ .vendor_id = 0x15b3 }), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void forked_child__is_refused(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq = f->cq;
	struct ibv_wc wc;
	loop_set_forked(true);
	errno = 0;
	assert_null(ibv_alloc_pd(f->context));
	assert_int_equal(errno, EPERM);
	assert_null(ibv_reg_mr(f->pd, f->buffer, 64, 0));
	assert_int_equal(ibv_dereg_mr(f->mr), EPERM);
	assert_true(ibv_poll_cq(cq, 1, &wc) < 0);
	assert_int_equal(ibv_destroy_cq(cq), EPERM);
	loop_set_forked(false);
}

static void close__takes_what_was_left(void **state)
{
	fixture_connect_rc(state);
	struct fixture *f = *state;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_ah_attr ah = fixture_ah_attr();
	assert_non_null(ibv_create_srq(f->pd, &srq));
	assert_non_null(ibv_create_ah(f->pd, &ah));
	assert_non_null(ibv_alloc_mw(f->pd, IBV_MW_TYPE_1));
	assert_int_equal(ibv_close_device(f->context), 0);
	assert_int_equal(loop_open_devices(), 0);
	free(f);
}

static void text__is_what_programs_print(void **state)
{
	assert_string_equal(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)99), "unknown");
	assert_string_equal(ibv_event_type_str(IBV_EVENT_WQ_FATAL), "WQ fatal");
	assert_string_equal(ibv_event_type_str((enum ibv_event_type)99), "unknown");
	assert_string_equal(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
	assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
	for (int status = 0; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++)
		assert_string_not_equal(ibv_wc_status_str((enum ibv_wc_status)status), "unknown");
}

static void rate__converts_both_ways(void **state)
{
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_40_GBPS), 16);
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_100_GBPS), -1);
	assert_int_equal(mult_to_ibv_rate(480), IBV_RATE_1200_GBPS);
	assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
	for (int rate = IBV_RATE_2_5_GBPS; rate <= IBV_RATE_1200_GBPS; rate++)
		assert_int_equal(mbps_to_ibv_rate(ibv_rate_to_mbps((enum ibv_rate)rate)), rate);
}

int main(void)
{
#define WITH_DEVICE(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device__is_the_same_object_in_every_list),
		WITH_DEVICE(device__outlives_its_list_when_opened),
		WITH_DEVICE(context__is_laid_out_for_inline_code),
		WITH_DEVICE(context__without_faults_has_the_plain_operations),
		WITH_DEVICE(device__reports_what_it_grants),
		WITH_DEVICE(device__query_writes_no_more_than_the_caller_has),
		WITH_DEVICE(port__is_an_active_ethernet_port),
		WITH_DEVICE(gid__table_reads_as_the_manual_says),
		WITH_DEVICE(pkey__table_has_the_default_alone),
		WITH_DEVICE(unbuilt__verbs_say_so),
		WITH_DEVICE(ece__has_no_options),
		WITH_DEVICE(forked_child__is_refused),
		cmocka_unit_test(close__takes_what_was_left),
		cmocka_unit_test(text__is_what_programs_print),
		cmocka_unit_test(rate__converts_both_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
