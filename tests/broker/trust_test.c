/* What a process may do to others through its broker. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
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
	struct vb_message send = { .kind = VB_MESSAGE_SEND_MAD,
		.request = 9,
		.sgid = loopback(),
		.gid = loopback(),
		.length = VB_MAD_LENGTH };
	vb_cm_encode(&dreq, send.mad);
	assert_int_equal(vb_message_send(connections[0], &send, NULL), 0);
	assert_int_equal(answer_of(connections[0]), EPERM);
	for (unsigned i = 0; i < 2; i++) {
		close(connections[i]);
		close(sockets[i]);
	}
}

/* Hears a request, refuses it while the broker is stopped, and exits: both come to the broker at once. */
static void refuse_and_exit(uint16_t port, int ready)
{
	int socket, connection = connect_raw();
	struct vb_cm_message req;

	get_slot(connection, &socket);
	listen_at(connection, port);
	if (write(ready, "r", 1) != 1 || !hears_mad(connection, &req))
		_exit(1);
	raise(SIGSTOP);
	post(connection, &(struct vb_cm_message){ .kind = VB_CM_REJ,
				 .transaction_id = req.transaction_id,
				 .remote_id = req.local_id,
				 .rej = { .reason = VB_CM_REJ_CONSUMER, .private_data = "why" } });
	_exit(0);
}

void mad__posted_before_its_process_died_is_sent(void **state)
{
	start_clients(1);
	int socket, connection = connect_raw(), ready[2], status;
	uint32_t id = (uint32_t)get_slot(connection, &socket) << 24 | 7;
	struct vb_cm_message cm;
	pid_t parent, worker;
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0)
		refuse_and_exit(7471, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	post(connection, &(struct vb_cm_message){ .kind = VB_CM_REQ,
				 .local_id = id,
				 .transaction_id = 5,
				 .req.service_id = vb_cm_service_id(VB_CM_PS_TCP, 7471) });
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	find_both(&parent, &worker);
	kill(worker, SIGSTOP);
	kill(child, SIGCONT);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	kill(worker, SIGCONT);
	assert_true(hears_mad(connection, &cm));
	assert_int_equal(cm.kind, VB_CM_REJ);
	assert_string_equal((const char *)cm.rej.private_data, "why"); /* the broker itself would give no reasons */
	close(ready[0]);
	close(ready[1]);
	close(connection);
	close(socket);
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
	post(connections[1], &(struct vb_cm_message){ .kind = VB_CM_REQ,
				     .local_id = ids[1],
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
