/* The connection manager's messages. Each has one table of fields, by which it is read and written: where a field lies
 * on the wire, and where in struct vb_cm_message. Bits that no table names are reserved: not read, and written as zero.
 *
 * Holds: a field lies within its message, and its member is as wide as it; only the tables say where a field is. Places
 * count from the end of the MAD's header.
 * Not here: the MAD's header (mad.c), which message follows which (cm/states.c). IBA vol. 1, 12.6; annex A11. */
#include <stddef.h>
#include "base/bytes.h"
#include "base/invariant.h"
#include "wire/cm.h"

enum { BASE_VERSION = 1, CLASS_VERSION = 2, BODY_LENGTH = VB_MAD_LENGTH - VB_MAD_HEADER_LENGTH };

/* A number of up to 64 bits, or a string of bytes, which has a member of more than 8 bytes. */
struct field {
	uint16_t bit, bits; /* the first one, counted from the most significant of byte 0; how many */
	uint16_t member, size;
	uint8_t shift; /* of a number that lies in several pieces */
};

#define MEMBER(name) .member = offsetof(struct vb_cm_message, name), .size = sizeof(((struct vb_cm_message *)0)->name)

/* clang-format off */
#define NUMBER(name, byte, length)    { (byte) * 8, (length) * 8, MEMBER(name) }
#define STRING(name, byte, length)    { (byte) * 8, (length) * 8, MEMBER(name) }
#define PIECE(name, byte, move)       { (byte) * 8, 8, MEMBER(name), .shift = (move) }
/* Bits from the named one of the byte (7 is the highest) downwards. */
#define BITS(name, byte, from, width) { (byte) * 8 + 7 - (from), (width), MEMBER(name) }
#define END                           { .bits = 0 }
/* clang-format on */

#define LOCAL_ID  NUMBER(local_id, 0, 4)
#define REMOTE_ID NUMBER(remote_id, 4, 4)

#define WAY_OF_REQ(way, byte)                                                                                          \
	NUMBER(way.local_lid, (byte), 2), NUMBER(way.remote_lid, (byte) + 2, 2), STRING(way.local, (byte) + 4, 16),    \
		STRING(way.remote, (byte) + 20, 16), BITS(way.flow_label, (byte) + 36, 7, 20),                         \
		BITS(way.rate, (byte) + 39, 5, 6), NUMBER(way.traffic_class, (byte) + 40, 1),                          \
		NUMBER(way.hop_limit, (byte) + 41, 1), BITS(way.sl, (byte) + 42, 7, 4),                                \
		BITS(way.is_subnet_local, (byte) + 42, 3, 1), BITS(way.ack_timeout, (byte) + 43, 7, 5)

static const struct field req_fields[] = {
	LOCAL_ID,
	NUMBER(req.vendor_id, 5, 3),
	NUMBER(req.service_id, 8, 8),
	NUMBER(req.ca_guid, 16, 8),
	NUMBER(req.qkey, 28, 4),
	NUMBER(req.qpn, 32, 3),
	NUMBER(req.responder_resources, 35, 1),
	NUMBER(req.initiator_depth, 39, 1),
	BITS(req.remote_timeout, 43, 7, 5),
	BITS(req.transport, 43, 2, 2),
	BITS(req.has_flow_control, 43, 0, 1),
	NUMBER(req.psn, 44, 3),
	BITS(req.local_timeout, 47, 7, 5),
	BITS(req.retry_count, 47, 2, 3),
	NUMBER(req.pkey, 48, 2),
	BITS(req.path_mtu, 50, 7, 4),
	BITS(req.rdc_exists, 50, 3, 1),
	BITS(req.rnr_retry, 50, 2, 3),
	BITS(req.max_cm_retries, 51, 7, 4),
	BITS(req.has_srq, 51, 3, 1),
	BITS(req.extended_transport, 51, 2, 3),
	WAY_OF_REQ(req.primary, 52),
	WAY_OF_REQ(req.alternate, 96),
	STRING(req.private_data, 140, VB_CM_REQ_PRIVATE),
	END,
};

static const struct field mra_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	BITS(mra.answers, 8, 7, 2),
	BITS(mra.service_timeout, 9, 7, 5),
	STRING(mra.private_data, 10, VB_CM_MRA_PRIVATE),
	END,
};

static const struct field rej_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	BITS(rej.answers, 8, 7, 2),
	BITS(rej.ari_length, 9, 7, 7),
	NUMBER(rej.reason, 10, 2),
	STRING(rej.ari, 12, VB_CM_ARI_LENGTH),
	STRING(rej.private_data, 84, VB_CM_REJ_PRIVATE),
	END,
};

static const struct field rep_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	NUMBER(rep.qkey, 8, 4),
	NUMBER(rep.qpn, 12, 3),
	PIECE(rep.vendor_id, 15, 16),
	PIECE(rep.vendor_id, 19, 8),
	NUMBER(rep.psn, 20, 3),
	PIECE(rep.vendor_id, 23, 0),
	NUMBER(rep.responder_resources, 24, 1),
	NUMBER(rep.initiator_depth, 25, 1),
	BITS(rep.target_ack_delay, 26, 7, 5),
	BITS(rep.failover, 26, 2, 2),
	BITS(rep.has_flow_control, 26, 0, 1),
	BITS(rep.rnr_retry, 27, 7, 3),
	BITS(rep.has_srq, 27, 4, 1),
	NUMBER(rep.ca_guid, 28, 8),
	STRING(rep.private_data, 36, VB_CM_REP_PRIVATE),
	END,
};

static const struct field rtu_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	STRING(rtu.private_data, 8, VB_CM_RTU_PRIVATE),
	END,
};

static const struct field dreq_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	NUMBER(dreq.remote_qpn, 8, 3),
	STRING(dreq.private_data, 12, VB_CM_DREQ_PRIVATE),
	END,
};

static const struct field drep_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	STRING(drep.private_data, 8, VB_CM_DREP_PRIVATE),
	END,
};

static const struct field sidr_req_fields[] = {
	LOCAL_ID,
	NUMBER(sidr_req.pkey, 4, 2),
	NUMBER(sidr_req.service_id, 8, 8),
	STRING(sidr_req.private_data, 16, VB_CM_SIDR_REQ_PRIVATE),
	END,
};

static const struct field sidr_rep_fields[] = {
	NUMBER(remote_id, 0, 4),
	NUMBER(sidr_rep.status, 4, 1),
	NUMBER(sidr_rep.info_length, 5, 1),
	NUMBER(sidr_rep.qpn, 8, 3),
	NUMBER(sidr_rep.service_id, 12, 8),
	NUMBER(sidr_rep.qkey, 20, 4),
	STRING(sidr_rep.info, 24, VB_CM_ARI_LENGTH),
	STRING(sidr_rep.private_data, 96, VB_CM_SIDR_REP_PRIVATE),
	END,
};

static const struct field lap_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	NUMBER(lap.remote_qpn, 12, 3),
	BITS(lap.remote_timeout, 15, 7, 5),
	NUMBER(lap.alternate.local_lid, 20, 2),
	NUMBER(lap.alternate.remote_lid, 22, 2),
	STRING(lap.alternate.local, 24, 16),
	STRING(lap.alternate.remote, 40, 16),
	BITS(lap.alternate.flow_label, 56, 7, 20),
	NUMBER(lap.alternate.traffic_class, 59, 1),
	NUMBER(lap.alternate.hop_limit, 60, 1),
	BITS(lap.alternate.rate, 61, 5, 6),
	BITS(lap.alternate.sl, 62, 7, 4),
	BITS(lap.alternate.is_subnet_local, 62, 3, 1),
	BITS(lap.alternate.ack_timeout, 63, 7, 5),
	STRING(lap.private_data, 64, VB_CM_LAP_PRIVATE),
	END,
};

static const struct field apr_fields[] = {
	LOCAL_ID,
	REMOTE_ID,
	NUMBER(apr.info_length, 8, 1),
	NUMBER(apr.status, 9, 1),
	STRING(apr.info, 12, VB_CM_ARI_LENGTH),
	STRING(apr.private_data, 84, VB_CM_APR_PRIVATE),
	END,
};

static const struct field *const fields_of[] = {
	[VB_CM_REQ] = req_fields,
	[VB_CM_MRA] = mra_fields,
	[VB_CM_REJ] = rej_fields,
	[VB_CM_REP] = rep_fields,
	[VB_CM_RTU] = rtu_fields,
	[VB_CM_DREQ] = dreq_fields,
	[VB_CM_DREP] = drep_fields,
	[VB_CM_SIDR_REQ] = sidr_req_fields,
	[VB_CM_SIDR_REP] = sidr_rep_fields,
	[VB_CM_LAP] = lap_fields,
	[VB_CM_APR] = apr_fields,
};

static const struct field *find_fields(unsigned kind)
{
	return kind < sizeof(fields_of) / sizeof(fields_of[0]) ? fields_of[kind] : NULL;
}

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

static uint64_t read_number(const uint8_t *body, const struct field *field)
{
	uint64_t value = 0;
	unsigned first = field->bit / 8, end = (field->bit + field->bits + 7u) / 8;
	for (unsigned i = first; i < end; i++)
		value = value << 8 | body[i];
	value >>= end * 8 - field->bit - field->bits;
	return field->bits < 64 ? value & ((1ull << field->bits) - 1) : value;
}

/* The body must be zero there. */
static void write_number(uint8_t *body, const struct field *field, uint64_t value)
{
	unsigned first = field->bit / 8, end = (field->bit + field->bits + 7u) / 8;
	if (field->bits < 64)
		value &= (1ull << field->bits) - 1;
	value <<= end * 8 - field->bit - field->bits;
	for (unsigned i = end; i-- > first; value >>= 8)
		body[i] |= (uint8_t)value;
}

/* The machine is little-endian (base/bytes.h): a number's low bytes come first, whatever its type. */
static uint64_t load_member(const struct vb_cm_message *message, const struct field *field)
{
	uint64_t value = 0;
	memcpy(&value, (const uint8_t *)message + field->member, field->size);
	return value;
}

static void store_member(struct vb_cm_message *message, const struct field *field, uint64_t value)
{
	memcpy((uint8_t *)message + field->member, &value, field->size);
}

static bool is_string(const struct field *field)
{
	assert(field->bit + field->bits <= BODY_LENGTH * 8);
	assert(field->size <= sizeof(uint64_t) || field->bits == field->size * 8);
	return field->size > sizeof(uint64_t);
}

static void read_field(struct vb_cm_message *message, const uint8_t *body, const struct field *field)
{
	if (is_string(field))
		memcpy((uint8_t *)message + field->member, body + field->bit / 8, field->size);
	else
		store_member(message, field, load_member(message, field) | read_number(body, field) << field->shift);
}

static void write_field(uint8_t *body, const struct vb_cm_message *message, const struct field *field)
{
	if (is_string(field))
		memcpy(body + field->bit / 8, (const uint8_t *)message + field->member, field->size);
	else
		write_number(body, field, load_member(message, field) >> field->shift);
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* ECE's options travel in the MAD's header; other messages have nothing there. */
static uint32_t *ece_options(struct vb_cm_message *message)
{
	switch (message->kind) {
	case VB_CM_REQ:
		return &message->req.ece_options;
	case VB_CM_REP:
		return &message->rep.ece_options;
	default:
		return NULL;
	}
}

bool vb_cm_decode(struct vb_cm_message *message, const uint8_t mad[VB_MAD_LENGTH])
{
	struct vb_mad_header header;
	vb_mad_header_decode(&header, mad);
	const struct field *fields = find_fields(header.attribute_id);
	if (header.base_version != BASE_VERSION || header.mgmt_class != VB_MAD_CLASS_CM ||
		header.class_version != CLASS_VERSION || header.method != VB_MAD_METHOD_SEND || !fields)
		return false;
	memset(message, 0, sizeof(*message));
	message->kind = (enum vb_cm_kind)header.attribute_id;
	message->transaction_id = header.transaction_id;
	for (; fields->bits; fields++)
		read_field(message, mad + VB_MAD_HEADER_LENGTH, fields);
	uint32_t *options = ece_options(message);
	if (options)
		*options = header.attribute_modifier;
	return true;
}

void vb_cm_encode(const struct vb_cm_message *message, uint8_t mad[VB_MAD_LENGTH])
{
	const struct field *fields = find_fields(message->kind);
	const uint32_t *options = ece_options((struct vb_cm_message *)message);
	struct vb_mad_header header = {
		.base_version = BASE_VERSION,
		.mgmt_class = VB_MAD_CLASS_CM,
		.class_version = CLASS_VERSION,
		.method = VB_MAD_METHOD_SEND,
		.transaction_id = message->transaction_id,
		.attribute_id = (uint16_t)message->kind,
		.attribute_modifier = options ? *options : 0,
	};
	assert(fields);
	memset(mad, 0, VB_MAD_LENGTH);
	vb_mad_header_encode(&header, mad);
	for (; fields->bits; fields++)
		write_field(mad + VB_MAD_HEADER_LENGTH, message, fields);
}

/* ---- RDMA-CM's header -------------------------------------------------------------------------------------------- */

enum { IP_VERSION = 1, SRC_PORT = 2, SRC = 4, DST = 20 };

static void read_address(struct vb_gid *gid, const uint8_t *bytes, bool is_ipv6)
{
	if (is_ipv6)
		memcpy(gid->raw, bytes, sizeof(gid->raw));
	else
		*gid = vb_gid_from_ipv4(bytes[12], bytes[13], bytes[14], bytes[15]);
}

static void write_address(uint8_t *bytes, const struct vb_gid *gid, bool is_ipv6)
{
	if (is_ipv6)
		memcpy(bytes, gid->raw, sizeof(gid->raw));
	else
		memcpy(bytes + 12, gid->raw + 12, 4);
}

bool vb_cm_ip_header_decode(struct vb_cm_ip_header *header, const uint8_t bytes[VB_CM_IP_HEADER_LENGTH])
{
	uint8_t ip_version = bytes[IP_VERSION] >> 4;
	if (bytes[0] != 0 || (ip_version != 4 && ip_version != 6))
		return false;
	header->is_ipv6 = ip_version == 6;
	header->src_port = vb_load_be16(bytes + SRC_PORT);
	read_address(&header->src, bytes + SRC, header->is_ipv6);
	read_address(&header->dst, bytes + DST, header->is_ipv6);
	return true;
}

void vb_cm_ip_header_encode(const struct vb_cm_ip_header *header, uint8_t bytes[VB_CM_IP_HEADER_LENGTH])
{
	memset(bytes, 0, VB_CM_IP_HEADER_LENGTH);
	bytes[IP_VERSION] = header->is_ipv6 ? 0x60 : 0x40;
	vb_store_be16(bytes + SRC_PORT, header->src_port);
	write_address(bytes + SRC, &header->src, header->is_ipv6);
	write_address(bytes + DST, &header->dst, header->is_ipv6);
}

/* False: the request does not stay within its host, or says nothing of addresses. */
static bool local_header(struct vb_cm_ip_header *header, const struct vb_cm_message *request, const struct vb_gid *from,
	const struct vb_gid *to)
{
	const uint8_t *bytes = request->kind == VB_CM_REQ ? request->req.private_data : request->sidr_req.private_data;
	return vb_gid_equal(from, to) && vb_cm_ip_header_decode(header, bytes);
}

struct vb_gid vb_cm_destination(const struct vb_cm_message *request, const struct vb_gid *from, const struct vb_gid *to)
{
	struct vb_cm_ip_header header;
	return local_header(&header, request, from, to) && vb_gid_is_loopback(&header.dst) ? header.dst : *to;
}

struct vb_gid vb_cm_origin(const struct vb_cm_message *request, const struct vb_gid *from, const struct vb_gid *to)
{
	struct vb_cm_ip_header header;
	return local_header(&header, request, from, to) && vb_gid_is_loopback(&header.src) ? header.src : *from;
}
