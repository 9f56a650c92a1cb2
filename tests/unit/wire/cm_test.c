#include "base/bytes.h"
#include "base/random.h"
#include "wire/cm.h"
#include "../unit.h"

#define HEADER(kind) 1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x3E, 0xB9, 0x1A, 0x4B, 0, (kind), 0, 0, 0, 0, 0, 0

static const enum vb_cm_kind kinds[] = { VB_CM_REQ, VB_CM_MRA, VB_CM_REJ, VB_CM_REP, VB_CM_RTU, VB_CM_DREQ, VB_CM_DREP,
	VB_CM_SIDR_REQ, VB_CM_SIDR_REP, VB_CM_LAP, VB_CM_APR };

/* Bytes of the body that are reserved, wholly or in part, and so come back as zero there. */
static const struct {
	enum vb_cm_kind kind;
	unsigned byte;
	uint8_t kept;
} reserved[] = {
	{ VB_CM_REQ, 4, 0 },
	{ VB_CM_REQ, 24, 0 },
	{ VB_CM_REQ, 25, 0 },
	{ VB_CM_REQ, 26, 0 },
	{ VB_CM_REQ, 27, 0 },
	{ VB_CM_REQ, 36, 0 },
	{ VB_CM_REQ, 37, 0 },
	{ VB_CM_REQ, 38, 0 },
	{ VB_CM_REQ, 40, 0 },
	{ VB_CM_REQ, 41, 0 },
	{ VB_CM_REQ, 42, 0 },
	{ VB_CM_REQ, 90, 0xF0 },
	{ VB_CM_REQ, 91, 0x3F },
	{ VB_CM_REQ, 94, 0xF8 },
	{ VB_CM_REQ, 95, 0xF8 },
	{ VB_CM_REQ, 134, 0xF0 },
	{ VB_CM_REQ, 135, 0x3F },
	{ VB_CM_REQ, 138, 0xF8 },
	{ VB_CM_REQ, 139, 0xF8 },
	{ VB_CM_MRA, 8, 0xC0 },
	{ VB_CM_MRA, 9, 0xF8 },
	{ VB_CM_REJ, 8, 0xC0 },
	{ VB_CM_REJ, 9, 0xFE },
	{ VB_CM_REP, 16, 0 },
	{ VB_CM_REP, 17, 0 },
	{ VB_CM_REP, 18, 0 },
	{ VB_CM_REP, 27, 0xF0 },
	{ VB_CM_DREQ, 11, 0 },
	{ VB_CM_SIDR_REQ, 6, 0 },
	{ VB_CM_SIDR_REQ, 7, 0 },
	{ VB_CM_SIDR_REP, 6, 0 },
	{ VB_CM_SIDR_REP, 7, 0 },
	{ VB_CM_SIDR_REP, 11, 0 },
	{ VB_CM_LAP, 8, 0 },
	{ VB_CM_LAP, 9, 0 },
	{ VB_CM_LAP, 10, 0 },
	{ VB_CM_LAP, 11, 0 },
	{ VB_CM_LAP, 15, 0xF8 },
	{ VB_CM_LAP, 16, 0 },
	{ VB_CM_LAP, 17, 0 },
	{ VB_CM_LAP, 18, 0 },
	{ VB_CM_LAP, 19, 0 },
	{ VB_CM_LAP, 58, 0xF0 },
	{ VB_CM_LAP, 61, 0x3F },
	{ VB_CM_LAP, 62, 0xF8 },
	{ VB_CM_LAP, 63, 0xF8 },
	{ VB_CM_APR, 10, 0 },
	{ VB_CM_APR, 11, 0 },
};

static void random_mad(struct vb_random *random, enum vb_cm_kind kind, uint8_t mad[VB_MAD_LENGTH])
{
	static const uint8_t head[] = { HEADER(0) };
	memcpy(mad, head, sizeof(head));
	mad[17] = (uint8_t)kind;
	if (kind == VB_CM_REQ || kind == VB_CM_REP)
		vb_store_be32(mad + 20, (uint32_t)vb_random_u64(random));
	for (size_t i = VB_MAD_HEADER_LENGTH; i < VB_MAD_LENGTH; i++)
		mad[i] = (uint8_t)vb_random_u64(random);
}

/* So no field overlaps another, none is missing, and each has a member wide enough. */
static void cm__whatever_is_read_is_written_again_but_what_is_reserved(void **state)
{
	struct vb_random random;
	vb_random_seed(&random, 7);
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		for (int round = 0; round < 200; round++) {
			uint8_t mad[VB_MAD_LENGTH], again[VB_MAD_LENGTH];
			struct vb_cm_message message, twice;
			random_mad(&random, kinds[k], mad);
			assert_true(vb_cm_decode(&message, mad));
			assert_int_equal(message.kind, kinds[k]);
			vb_cm_encode(&message, again);
			for (size_t i = 0; i < COUNT_OF(reserved); i++)
				if (reserved[i].kind == kinds[k])
					mad[VB_MAD_HEADER_LENGTH + reserved[i].byte] &= reserved[i].kept;
			assert_memory_equal(again, mad, VB_MAD_LENGTH);
			assert_true(vb_cm_decode(&twice, again));
			assert_memory_equal(&twice, &message, sizeof(message));
		}
	}
}

/* Linux's, of rping: tests/interop/captures/cm-rping.pcap. */
static const uint8_t linux_req[VB_MAD_LENGTH] = { HEADER(0x10), 0x4B, 0x1A, 0xB9, 0x3E, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x06,
	0x1C, 0x06, 0xD8, 0x0B, 0x32, 0xFF, 0xFE, 0x84, 0x97, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1D, 1, 0, 0, 0, 1,
	0, 0, 0, 0xA0, 0x8B, 0xBF, 0xC1, 0xA7, 0xFF, 0xFF, 0x57, 0xF0, 0xFF, 0xFF, 0xFF, 0xFF, [24 + 66] = 0xFF, 0xFF,
	10, 78, 0, 1, [24 + 82] = 0xFF, 0xFF, 10, 78, 0, 2, 0x25, 0xE1, 0xF0, 0, 0, 64, 0, 0x88, [24 + 141] = 0x40,
	0x96, 0xC7, [24 + 156] = 10, 78, 0, 1, [24 + 172] = 10, 78, 0, 2 };

static void req__is_read_as_linux_means_it(void **state)
{
	struct vb_cm_message message;
	const struct vb_cm_req *req = &message.req;
	struct vb_gid local = vb_gid_from_ipv4(10, 78, 0, 1), remote = vb_gid_from_ipv4(10, 78, 0, 2);
	assert_true(vb_cm_decode(&message, linux_req));
	assert_int_equal(message.kind, VB_CM_REQ);
	assert_true(message.transaction_id == 0x103EB91A4B);
	assert_int_equal(message.local_id, 0x4B1AB93E);
	assert_int_equal(message.remote_id, 0);
	assert_true(req->service_id == vb_cm_service_id(VB_CM_PS_TCP, 7174));
	assert_true(req->ca_guid == 0xD80B32FFFE849712);
	assert_int_equal(req->qpn, 0x1D);
	assert_int_equal(req->psn, 0x8BBFC1);
	assert_int_equal(req->responder_resources, 1);
	assert_int_equal(req->initiator_depth, 1);
	assert_int_equal(req->remote_timeout, 20);
	assert_int_equal(req->local_timeout, 20);
	assert_int_equal(req->transport, VB_CM_TRANSPORT_RC);
	assert_false(req->has_flow_control);
	assert_int_equal(req->retry_count, 7);
	assert_int_equal(req->rnr_retry, 7);
	assert_int_equal(req->max_cm_retries, 15);
	assert_int_equal(req->path_mtu, 5);
	assert_int_equal(req->pkey, 0xFFFF);
	assert_int_equal(req->primary.local_lid, 0xFFFF);
	assert_int_equal(req->primary.remote_lid, 0xFFFF);
	assert_true(vb_gid_equal(&req->primary.local, &local));
	assert_true(vb_gid_equal(&req->primary.remote, &remote));
	assert_int_equal(req->primary.flow_label, 0x25E1F);
	assert_int_equal(req->primary.rate, 0);
	assert_int_equal(req->primary.hop_limit, 64);
	assert_false(req->primary.is_subnet_local);
	assert_int_equal(req->primary.ack_timeout, 17);
	assert_true(vb_gid_is_zero(&req->alternate.remote));
}

static void ip_header__is_read_as_linux_means_it(void **state)
{
	struct vb_cm_ip_header header;
	uint8_t again[VB_CM_IP_HEADER_LENGTH];
	const uint8_t *bytes = linux_req + VB_MAD_HEADER_LENGTH + 140;
	struct vb_gid src = vb_gid_from_ipv4(10, 78, 0, 1), dst = vb_gid_from_ipv4(10, 78, 0, 2);
	assert_true(vb_cm_ip_header_decode(&header, bytes));
	assert_false(header.is_ipv6);
	assert_int_equal(header.src_port, 0x96C7);
	assert_true(vb_gid_equal(&header.src, &src) && vb_gid_equal(&header.dst, &dst));
	memset(again, 0xEE, sizeof(again));
	vb_cm_ip_header_encode(&header, again);
	assert_memory_equal(again, bytes, sizeof(again));
}

static void ip_header__of_ipv6_comes_back(void **state)
{
	struct vb_cm_ip_header header = { .is_ipv6 = true,
		.src_port = 0xB820,
		.src = { { 0xFD, 0x78, [15] = 1 } },
		.dst = { { 0xFE, 0x80, [15] = 2 } } },
			       seen;
	uint8_t bytes[VB_CM_IP_HEADER_LENGTH];
	vb_cm_ip_header_encode(&header, bytes);
	assert_int_equal(bytes[1], 0x60);
	assert_true(vb_cm_ip_header_decode(&seen, bytes));
	assert_true(seen.is_ipv6 && seen.src_port == header.src_port);
	assert_true(vb_gid_equal(&seen.src, &header.src) && vb_gid_equal(&seen.dst, &header.dst));
}

static void ip_header__of_another_version_is_refused(void **state)
{
	uint8_t bytes[VB_CM_IP_HEADER_LENGTH] = { 0, 0x40 };
	struct vb_cm_ip_header header;
	assert_true(vb_cm_ip_header_decode(&header, bytes));
	bytes[0] = 0x10;
	assert_false(vb_cm_ip_header_decode(&header, bytes));
	bytes[0] = 0;
	bytes[1] = 0x50;
	assert_false(vb_cm_ip_header_decode(&header, bytes));
}

/* What no capture holds, byte by byte. */
static void check_layout(const struct vb_cm_message *message, const uint8_t *expected)
{
	uint8_t mad[VB_MAD_LENGTH];
	memset(mad, 0xEE, sizeof(mad));
	vb_cm_encode(message, mad);
	assert_memory_equal(mad, expected, VB_MAD_LENGTH);
}

static void mra__layout(void **state)
{
	static const uint8_t wire[VB_MAD_LENGTH] = { HEADER(0x11), 1, 2, 3, 4, 5, 6, 7, 8, 0x40, 24 << 3, 0xAA, 0xBB };
	struct vb_cm_message message = { .kind = VB_CM_MRA,
		.transaction_id = 0x103EB91A4B,
		.local_id = 0x01020304,
		.remote_id = 0x05060708,
		.mra = { .answers = VB_CM_ANSWERS_REP, .service_timeout = 24, .private_data = { 0xAA, 0xBB } } };
	check_layout(&message, wire);
}

static void rej__layout(void **state)
{
	static const uint8_t wire[VB_MAD_LENGTH] = { HEADER(0x12), 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 8 << 1, 0, 28, 0x11,
		0x12, [24 + 84] = 0xAA, 0xBB };
	struct vb_cm_message message = { .kind = VB_CM_REJ,
		.transaction_id = 0x103EB91A4B,
		.local_id = 0x01020304,
		.remote_id = 0x05060708,
		.rej = { .answers = VB_CM_ANSWERS_OTHER,
			.reason = VB_CM_REJ_CONSUMER,
			.ari_length = 8,
			.ari = { 0x11, 0x12 },
			.private_data = { 0xAA, 0xBB } } };
	check_layout(&message, wire);
}

static void lap__layout(void **state)
{
	static const uint8_t wire[VB_MAD_LENGTH] = { HEADER(0x19), 1, 2, 3, 4, 5, 6, 7, 8, [24 + 12] = 0x11, 0x12, 0x13,
		20 << 3, [24 + 20] = 0x21, 0x22, 0x23, 0x24, [24 + 24] = 0x31, [24 + 40] = 0x41, [24 + 56] = 0x12, 0x34,
		0x50, 0x51, 0x52, 0x13, 0x68, 17 << 3, 0xAA };
	struct vb_cm_message message = { .kind = VB_CM_LAP,
		.transaction_id = 0x103EB91A4B,
		.local_id = 0x01020304,
		.remote_id = 0x05060708,
		.lap = { .remote_qpn = 0x111213,
			.remote_timeout = 20,
			.private_data = { 0xAA },
			.alternate = { .local_lid = 0x2122,
				.remote_lid = 0x2324,
				.local = { { 0x31 } },
				.remote = { { 0x41 } },
				.flow_label = 0x12345,
				.traffic_class = 0x51,
				.hop_limit = 0x52,
				.rate = 0x13,
				.sl = 6,
				.is_subnet_local = true,
				.ack_timeout = 17 } } };
	check_layout(&message, wire);
}

static void apr__layout(void **state)
{
	static const uint8_t wire[VB_MAD_LENGTH] = { HEADER(0x1A), 1, 2, 3, 4, 5, 6, 7, 8, 3, 1, 0, 0, 0x11,
		[24 + 84] = 0xAA };
	struct vb_cm_message message = { .kind = VB_CM_APR,
		.transaction_id = 0x103EB91A4B,
		.local_id = 0x01020304,
		.remote_id = 0x05060708,
		.apr = { .info_length = 3, .status = 1, .info = { 0x11 }, .private_data = { 0xAA } } };
	check_layout(&message, wire);
}

static void ece__travels_in_reserved_bytes_and_in_the_header(void **state)
{
	struct vb_cm_message message = { .kind = VB_CM_REP,
		.rep = { .vendor_id = 0x112233, .ece_options = 0x44556677 } };
	uint8_t mad[VB_MAD_LENGTH];
	vb_cm_encode(&message, mad);
	assert_int_equal(vb_load_be32(mad + 20), 0x44556677);
	assert_int_equal(mad[24 + 15], 0x11);
	assert_int_equal(mad[24 + 19], 0x22);
	assert_int_equal(mad[24 + 23], 0x33);
	message = (struct vb_cm_message){ .kind = VB_CM_REQ, .req = { .vendor_id = 0x112233, .ece_options = 1 } };
	vb_cm_encode(&message, mad);
	assert_int_equal(vb_load_be24(mad + 24 + 5), 0x112233);
	assert_int_equal(vb_load_be32(mad + 20), 1);
}

/* A value that is too wide loses its upper bits and harms no neighbour. */
static void cm__wide_values_are_cut(void **state)
{
	struct vb_cm_message message = { .kind = VB_CM_REQ,
		.req = { .qpn = 0xFF123456,
			.responder_resources = 2,
			.remote_timeout = 0xFF,
			.transport = 0xF8,
			.path_mtu = 0x35,
			.primary = { .flow_label = 0xFFF12345 } } },
			     seen;
	uint8_t mad[VB_MAD_LENGTH];
	vb_cm_encode(&message, mad);
	assert_true(vb_cm_decode(&seen, mad));
	assert_int_equal(seen.req.qpn, 0x123456);
	assert_int_equal(seen.req.responder_resources, 2);
	assert_int_equal(seen.req.remote_timeout, 31);
	assert_int_equal(seen.req.transport, 0);
	assert_false(seen.req.has_flow_control);
	assert_int_equal(seen.req.path_mtu, 5);
	assert_int_equal(seen.req.ca_guid, 0);
	assert_int_equal(seen.req.primary.flow_label, 0x12345);
}

static void cm__what_is_no_message_of_ours_is_refused(void **state)
{
	static const uint8_t telling[] = { 0, 1, 2, 3, 16 };
	struct vb_cm_message message;
	uint8_t mad[VB_MAD_LENGTH];
	for (size_t i = 0; i < COUNT_OF(telling); i++) {
		memcpy(mad, linux_req, sizeof(mad));
		mad[telling[i]] ^= 0x40;
		assert_false(vb_cm_decode(&message, mad));
	}
	memcpy(mad, linux_req, sizeof(mad));
	for (unsigned attribute = 0; attribute < 256; attribute++) {
		mad[17] = (uint8_t)attribute;
		assert_int_equal(vb_cm_decode(&message, mad), attribute >= VB_CM_REQ && attribute <= VB_CM_APR);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm__whatever_is_read_is_written_again_but_what_is_reserved),
		cmocka_unit_test(req__is_read_as_linux_means_it),
		cmocka_unit_test(ip_header__is_read_as_linux_means_it),
		cmocka_unit_test(ip_header__of_ipv6_comes_back),
		cmocka_unit_test(ip_header__of_another_version_is_refused),
		cmocka_unit_test(mra__layout),
		cmocka_unit_test(rej__layout),
		cmocka_unit_test(lap__layout),
		cmocka_unit_test(apr__layout),
		cmocka_unit_test(ece__travels_in_reserved_bytes_and_in_the_header),
		cmocka_unit_test(cm__wide_values_are_cut),
		cmocka_unit_test(cm__what_is_no_message_of_ours_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
