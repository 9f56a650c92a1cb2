/* The connection manager's messages: attributes of management class 0x07, one MAD each (IBA vol. 1, 12.6; tables 99 to
 * 121), and the header that RDMA-CM puts before the private data of REQ and SIDR_REQ (annex A11). Fields are numbers in
 * host order; times are the 5-bit codes of the wire (4.096 us * 2^code). */
#ifndef VB_WIRE_CM_H
#define VB_WIRE_CM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/gid.h"
#include "wire/mad.h"

enum vb_cm_kind { /* attribute IDs */
	VB_CM_REQ = 0x10,
	VB_CM_MRA = 0x11,
	VB_CM_REJ = 0x12,
	VB_CM_REP = 0x13,
	VB_CM_RTU = 0x14,
	VB_CM_DREQ = 0x15,
	VB_CM_DREP = 0x16,
	VB_CM_SIDR_REQ = 0x17,
	VB_CM_SIDR_REP = 0x18,
	VB_CM_LAP = 0x19,
	VB_CM_APR = 0x1A,
};

/* Bytes of private data in each message. */
enum {
	VB_CM_REQ_PRIVATE = 92,
	VB_CM_MRA_PRIVATE = 222,
	VB_CM_REJ_PRIVATE = 148,
	VB_CM_REP_PRIVATE = 196,
	VB_CM_RTU_PRIVATE = 224,
	VB_CM_DREQ_PRIVATE = 220,
	VB_CM_DREP_PRIVATE = 224,
	VB_CM_SIDR_REQ_PRIVATE = 216,
	VB_CM_SIDR_REP_PRIVATE = 136,
	VB_CM_LAP_PRIVATE = 168,
	VB_CM_APR_PRIVATE = 148,
	VB_CM_ARI_LENGTH = 72,
};

enum { VB_CM_TRANSPORT_RC = 0, VB_CM_TRANSPORT_UC = 1, VB_CM_TRANSPORT_EXTENDED = 3 };
enum { VB_CM_EXTENDED_XRC = 1 };

enum vb_cm_reject_reason { /* 12.6.7.2 */
	VB_CM_REJ_NO_QP = 1,
	VB_CM_REJ_NO_RESOURCES = 3,
	VB_CM_REJ_TIMEOUT = 4,
	VB_CM_REJ_UNSUPPORTED = 5,
	VB_CM_REJ_INVALID_COMM_ID = 6,
	VB_CM_REJ_INVALID_COMM_INSTANCE = 7,
	VB_CM_REJ_INVALID_SERVICE_ID = 8,
	VB_CM_REJ_INVALID_TRANSPORT = 9,
	VB_CM_REJ_STALE_CONNECTION = 10,
	VB_CM_REJ_INVALID_GID = 12,
	VB_CM_REJ_INVALID_MTU = 26,
	VB_CM_REJ_CONSUMER = 28,
	VB_CM_REJ_DUPLICATE_COMM_ID = 30,
};

/* The message that a REJ or MRA answers. */
enum vb_cm_answered { VB_CM_ANSWERS_REQ = 0, VB_CM_ANSWERS_REP = 1, VB_CM_ANSWERS_OTHER = 2 /* MRA: LAP */ };

enum vb_cm_sidr_status {
	VB_CM_SIDR_OK = 0,
	VB_CM_SIDR_UNSUPPORTED = 1,
	VB_CM_SIDR_REJECTED = 2,
	VB_CM_SIDR_NO_QP = 3,
	VB_CM_SIDR_REDIRECT = 4,
	VB_CM_SIDR_BAD_VERSION = 5,
};

enum { VB_CM_APR_INVALID_COMM_ID = 1, VB_CM_APR_UNSUPPORTED = 2 }; /* 12.8.2: why there is no alternate path */

struct vb_cm_way {                   /* a path as REQ and LAP describe it */
	struct vb_gid local, remote; /* as the sender of the message sees them */
	uint16_t local_lid, remote_lid;
	uint32_t flow_label;
	uint8_t rate, traffic_class, hop_limit, sl;
	bool is_subnet_local;
	uint8_t ack_timeout;
};

struct vb_cm_req {
	uint64_t service_id, ca_guid;
	uint32_t qkey, qpn;
	uint32_t psn; /* the recipient's first */
	uint16_t pkey;
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_timeout, local_timeout; /* response timeouts of the recipient's and the sender's CM */
	uint8_t transport, extended_transport;
	uint8_t retry_count, rnr_retry, max_cm_retries;
	uint8_t path_mtu; /* ibv_mtu */
	bool has_flow_control, has_srq, rdc_exists;
	uint32_t vendor_id, ece_options;     /* ECE; the options are the MAD's attribute modifier */
	struct vb_cm_way primary, alternate; /* alternate: all zero for none */
	uint8_t private_data[VB_CM_REQ_PRIVATE];
};

struct vb_cm_rep {
	uint64_t ca_guid;
	uint32_t qkey, qpn, psn;
	uint8_t responder_resources, initiator_depth, target_ack_delay, failover, rnr_retry;
	bool has_flow_control, has_srq;
	uint32_t vendor_id, ece_options; /* ECE */
	uint8_t private_data[VB_CM_REP_PRIVATE];
};

struct vb_cm_rtu {
	uint8_t private_data[VB_CM_RTU_PRIVATE];
};

struct vb_cm_rej {
	enum vb_cm_answered answers;
	uint16_t reason; /* enum vb_cm_reject_reason or another */
	uint8_t ari_length;
	uint8_t ari[VB_CM_ARI_LENGTH];
	uint8_t private_data[VB_CM_REJ_PRIVATE];
};

struct vb_cm_mra {
	enum vb_cm_answered answers;
	uint8_t service_timeout;
	uint8_t private_data[VB_CM_MRA_PRIVATE];
};

struct vb_cm_dreq {
	uint32_t remote_qpn; /* the recipient's */
	uint8_t private_data[VB_CM_DREQ_PRIVATE];
};

struct vb_cm_drep {
	uint8_t private_data[VB_CM_DREP_PRIVATE];
};

struct vb_cm_lap {
	uint32_t remote_qpn;
	uint8_t remote_timeout;
	struct vb_cm_way alternate;
	uint8_t private_data[VB_CM_LAP_PRIVATE];
};

struct vb_cm_apr {
	uint8_t info_length, status;
	uint8_t info[VB_CM_ARI_LENGTH];
	uint8_t private_data[VB_CM_APR_PRIVATE];
};

struct vb_cm_sidr_req { /* local_id of the message is the request ID */
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[VB_CM_SIDR_REQ_PRIVATE];
};

struct vb_cm_sidr_rep { /* remote_id of the message is the request ID */
	uint8_t status; /* enum vb_cm_sidr_status */
	uint8_t info_length;
	uint32_t qpn, qkey;
	uint64_t service_id;
	uint8_t info[VB_CM_ARI_LENGTH];
	uint8_t private_data[VB_CM_SIDR_REP_PRIVATE];
};

struct vb_cm_message {
	enum vb_cm_kind kind;
	uint64_t transaction_id;
	uint32_t local_id;  /* the sender's communication ID; 0 in SIDR_REP */
	uint32_t remote_id; /* the recipient's; 0 in REQ and SIDR_REQ */
	union {
		struct vb_cm_req req;
		struct vb_cm_rep rep;
		struct vb_cm_rtu rtu;
		struct vb_cm_rej rej;
		struct vb_cm_mra mra;
		struct vb_cm_dreq dreq;
		struct vb_cm_drep drep;
		struct vb_cm_lap lap;
		struct vb_cm_apr apr;
		struct vb_cm_sidr_req sidr_req;
		struct vb_cm_sidr_rep sidr_rep;
	};
};

/* False when the MAD is no CM message of a known version and attribute. Values out of range are kept: their reader
 * checks them. */
bool vb_cm_decode(struct vb_cm_message *message, const uint8_t mad[VB_MAD_LENGTH]);
/* Fills all 256 bytes; values wider than their fields are cut. */
void vb_cm_encode(const struct vb_cm_message *message, uint8_t mad[VB_MAD_LENGTH]);

/* RDMA-CM: the header before the user's private data in REQ and SIDR_REQ. */
#define VB_CM_IP_HEADER_LENGTH 36

struct vb_cm_ip_header {
	bool is_ipv6;
	uint16_t src_port;
	struct vb_gid src, dst; /* IPv4 mapped */
};

bool vb_cm_ip_header_decode(struct vb_cm_ip_header *header, const uint8_t bytes[VB_CM_IP_HEADER_LENGTH]);
void vb_cm_ip_header_encode(const struct vb_cm_ip_header *header, uint8_t bytes[VB_CM_IP_HEADER_LENGTH]);

/* The address that a REQ or SIDR_REQ is for: the one that it came to. Within one host (from equals to) its header may
 * name a loopback address, which then counts: no device need have that address, so any device of the host carries the
 * request. */
struct vb_gid vb_cm_destination(
	const struct vb_cm_message *request, const struct vb_gid *from, const struct vb_gid *to);
/* The sender's address, by the same rule. */
struct vb_gid vb_cm_origin(const struct vb_cm_message *request, const struct vb_gid *from, const struct vb_gid *to);

/* Service IDs of RDMA-CM: port space and port (A11.3). */
enum { VB_CM_PS_IPOIB = 0x0002, VB_CM_PS_TCP = 0x0106, VB_CM_PS_UDP = 0x0111, VB_CM_PS_IB = 0x013F };

static inline uint64_t vb_cm_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

#endif
