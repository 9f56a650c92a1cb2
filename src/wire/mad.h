/* Management datagrams: 256 bytes to QP1 (IBA vol. 1, 13.4). Here are the packet around them, the common header, and
 * Verbena's own discovery, a vendor-class MAD that any other implementation ignores. The connection manager's messages
 * are cm.h's. */
#ifndef VB_WIRE_MAD_H
#define VB_WIRE_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB_MAD_LENGTH        256
#define VB_MAD_HEADER_LENGTH 24
#define VB_MAD_PACKET_BYTES  (12 + 8 + VB_MAD_LENGTH + 4) /* BTH, DETH, the MAD, ICRC: a UDP payload */

enum {
	VB_MAD_CLASS_CM = 0x07,
	VB_MAD_CLASS_VENDOR = 0x35, /* vendor range with OUI, IBA vol. 1, 13.4.4 */
	VB_MAD_METHOD_GET = 0x01,
	VB_MAD_METHOD_SEND = 0x03,
	VB_MAD_METHOD_GET_RESPONSE = 0x81,
};

struct vb_mad_header {
	uint8_t base_version, mgmt_class, class_version, method;
	uint16_t status, class_specific;
	uint64_t transaction_id;
	uint16_t attribute_id;
	uint32_t attribute_modifier;
};

/* The state of a QP's process, as its broker sees it. */
enum vb_process_state {
	VB_PROCESS_NOT_TOLD, /* not asked, or the peer does not know the question */
	VB_PROCESS_GONE,     /* no process has the QPN's slot */
	VB_PROCESS_RUNS,
	VB_PROCESS_STOPPED, /* by a signal or a debugger */
};

/* Discovery: asked with GET, answered with GET_RESPONSE; both carry the sender's own facts. */
struct vb_discovery {
	bool is_response;
	uint64_t transaction_id;
	uint16_t version;        /* of this exchange; 1 */
	uint32_t receive_buffer; /* effective SO_RCVBUF of one slot socket, bytes */
	uint32_t features;       /* VB_FEATURE_* */
	uint32_t qpn;            /* the state of its process is asked too; the answer repeats it. 0: not asked */
	enum vb_process_state process;
};

#define VB_DISCOVERY_VERSION 1
#define VB_FEATURE_TRAINS    1u /* takes trains: recovers any IPv4 identification */
#define VB_FEATURE_HELLOS    2u /* its QPs take a hello, and may recover selectively: roce/hello.c */

struct vb_flow;

/* The UDP payload that carries a MAD from QP1 to QP1: a UD SEND of length bytes with its ICRC. length is at least
 * VB_MAD_LENGTH; bytes beyond the MAD are zero. Returns the payload's length, VB_MAD_PACKET_BYTES at least. */
size_t vb_mad_packet(
	const struct vb_flow *flow, uint32_t psn, const uint8_t mad[VB_MAD_LENGTH], uint32_t length, uint8_t *out);

void vb_mad_header_decode(struct vb_mad_header *header, const uint8_t mad[VB_MAD_LENGTH]);
void vb_mad_header_encode(const struct vb_mad_header *header, uint8_t mad[VB_MAD_LENGTH]);

/* False when the MAD is no discovery of a known version. */
bool vb_discovery_decode(struct vb_discovery *discovery, const uint8_t mad[VB_MAD_LENGTH]);
/* Fills all 256 bytes. */
void vb_discovery_encode(const struct vb_discovery *discovery, uint8_t mad[VB_MAD_LENGTH]);

#endif
