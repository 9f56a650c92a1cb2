/* QP1 on UDP: management datagrams in and out, as UD SENDs with Q_Key and ICRC. Their meaning is for discovery.c and
 * exchanges.c. */
#ifndef VB_BROKER_QP1_H
#define VB_BROKER_QP1_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "base/gid.h"
#include "wire/cm.h"
#include "wire/mad.h"

#define QP1_MAX_LENGTH 4096 /* of a MAD with its padding: the largest payload of a packet */

struct qp1;

struct qp1_mad {
	struct vb_gid from, to;
	uint32_t scope;       /* interface of link-local addresses, else 0 */
	const uint8_t *bytes; /* VB_MAD_LENGTH and padding; until the next qp1_receive */
	uint32_t length;
	bool is_local; /* over the loopback interface: from this host only */
	struct vb_mad_header header;
	const struct vb_cm_message *cm; /* a connection manager's message, once it is decoded */
};

struct qp1 *qp1_create(void);
void qp1_destroy(struct qp1 *qp1);
/* Pads the MAD with zero bytes to length. -errno; -EMSGSIZE: the interface does not carry it. */
int qp1_send(struct qp1 *qp1, const struct vb_gid *from, const struct vb_gid *to, uint32_t scope,
	const uint8_t mad[VB_MAD_LENGTH], uint32_t length);
/* The next MAD with a right ICRC at socket, which is in the group and of that family; false: none now. */
bool qp1_receive(struct qp1 *qp1, int socket, sa_family_t family, struct qp1_mad *mad);

/* True if MADs were read from the socket and wait to be received. */
bool qp1_has_more(const struct qp1 *qp1);

/* A MAD of ours that was not delivered, as reported by a router, the host, or the kernel. */
struct qp1_failure {
	struct vb_gid to;
	int error;            /* EHOSTUNREACH, ENETUNREACH, EACCES: the host; ECONNREFUSED: its port */
	const uint8_t *bytes; /* VB_MAD_LENGTH; until the next call */
};
bool qp1_next_failure(struct qp1 *qp1, struct qp1_failure *failure);
/* One of those errors, also of qp1_send. */
bool qp1_is_final(int error);
/* The descriptors that show POLLERR when there is a failure; -1: none of that family. */
void qp1_sockets(const struct qp1 *qp1, int fds[2]);

static inline bool qp1_is_link_local(const struct vb_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

#endif
