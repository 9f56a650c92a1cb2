/* What a process may do to others through its broker. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "raw.h"

void mad__of_anothers_connection_is_not_sent(void **state)
{
	start_clients(1); /* starts the broker */
	int sockets[2], connections[2] = { connect_raw(), connect_raw() };
	struct vb_cm_message cm;
	uint32_t ids[2];
	for (unsigned i = 0; i < 2; i++)
		ids[i] = (uint32_t)get_slot(connections[i], &sockets[i]) << 24 | 7;
	const struct vb_cm_message dreq = { .kind = VB_CM_DREQ, .local_id = ids[0], .remote_id = ids[0] + 1 };
	post(connections[1], &dreq);
	assert_false(hears_mad(connections[0], &cm));
	post(connections[0], &dreq);
	assert_true(hears_mad(connections[0], &cm));
	assert_int_equal(cm.kind, VB_CM_DREQ);
	struct vb_message send = {
		.kind = VB_MESSAGE_SEND_MAD, .request = 9, .sgid = loopback(), .gid = loopback(), .length = VB_MAD_LENGTH
	};
	vb_cm_encode(&dreq, send.mad);
	assert_int_equal(vb_message_send(connections[0], &send, NULL), 0);
	assert_int_equal(answer_of(connections[0]), EPERM);
	for (unsigned i = 0; i < 2; i++) {
		close(connections[i]);
		close(sockets[i]);
	}
}

/* The answer to a request that was passed to somebody else. */
void mad__in_anothers_stead_is_not_sent(void **state)
{
	start_clients(1);
	int sockets[3], connections[3];
	uint32_t ids[3];
	struct vb_cm_message cm;
	for (unsigned i = 0; i < 3; i++) {
		connections[i] = connect_raw();
		ids[i] = (uint32_t)get_slot(connections[i], &sockets[i]) << 24 | 7;
	}
	listen_at(connections[0], 7471);
	post(connections[1], &(struct vb_cm_message){ .kind = VB_CM_REQ, .local_id = ids[1],
		.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, 7471) });
	assert_true(hears_mad(connections[0], &cm));
	assert_int_equal(cm.kind, VB_CM_REQ);
	const struct vb_cm_message rej = { .kind = VB_CM_REJ, .remote_id = ids[1], .rej.reason = VB_CM_REJ_CONSUMER };
	const struct vb_cm_message rep = { .kind = VB_CM_REP, .local_id = ids[2], .remote_id = ids[1] };
	post(connections[2], &rej);
	post(connections[2], &rep);
	assert_false(hears_mad(connections[1], &cm));
	post(connections[0], &rej);
	assert_true(hears_mad(connections[1], &cm));
	assert_int_equal(cm.kind, VB_CM_REJ);
	for (unsigned i = 0; i < 3; i++) {
		close(connections[i]);
		close(sockets[i]);
	}
}
