/* The lines a user reads when a QP died, or a connection did not come about, made of what the engine, the port and the
 * connection manager know. Pure, for tests. */
#ifndef VB_HOST_EXPLAIN_H
#define VB_HOST_EXPLAIN_H

#include <stddef.h>
#include "cm/cm.h"
#include "engine/nic.h"
#include "host/connections.h"
#include "wire/mad.h"

struct vb_death {
	const char *device;
	enum vb_qp_type type;
	uint32_t qpn, dest_qpn;
	struct vb_gid peer;
	struct vb_cause cause;
	uint64_t overflows;            /* datagrams that our receive buffer had no room for, while the QP was stuck */
	uint32_t receive_buffer;       /* bytes */
	enum vb_process_state process; /* the peer's, as its broker has said lately */
	bool has_no_carrier;           /* our device's interface */
};

void vb_explain(const struct vb_death *death, char *line, size_t size);
/* A QP has moved, and goes over that interface of ours now. */
void vb_explain_move(const struct vb_qp_account *account, const char *interface, char *line, size_t size);
/* The answer of a peer's broker about the process of a QP that did not answer. False: it explains nothing. */
bool vb_explain_process(const struct vb_discovery *answer, const struct vb_gid *peer, char *line, size_t size);
/* The network could not deliver the question: error is -ECONNREFUSED where the port is closed. */
void vb_explain_unasked(uint32_t qpn, const struct vb_gid *peer, int error, char *line, size_t size);
/* A request wanted a larger path MTU than its recipient has. */
void vb_explain_mtu(const struct vb_mtu_refusal *refusal, char *line, size_t size);
/* event: VB_CM_EVENT_SILENT. */
void vb_explain_silence(const struct vb_cm_event *event, const struct vb_gid *peer, char *line, size_t size);
/* event: VB_CM_EVENT_UNREACHABLE or _SIDR_TIMEOUT. */
void vb_explain_unreachable(const struct vb_cm_event *event, const struct vb_gid *peer, char *line, size_t size);

#endif
