/* Requests that come again because their answer was late, and the listener has come or gone in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "raw.h"

enum { SERVERS_PORT = 7471, TRIES = 25 };

struct process {
	int connection, socket;
	uint32_t id;
};

static struct process start(void)
{
	struct process process = { .connection = connect_raw() };
	process.id = (uint32_t)get_slot(process.connection, &process.socket) << 24 | 7;
	return process;
}

static void end(struct process process)
{
	close(process.connection);
	close(process.socket);
}

static void ask(struct process asker, uint64_t transaction_id)
{
	post(asker.connection, &(struct vb_cm_message){ .kind = VB_CM_REQ,
				       .local_id = asker.id,
				       .transaction_id = transaction_id,
				       .req.service_id = vb_cm_service_id(VB_CM_PS_TCP, SERVERS_PORT) });
}

static void expect(struct process who, enum vb_cm_kind kind)
{
	struct vb_cm_message cm = { 0 };
	bool is_heard = false;
	for (unsigned i = 0; i < TRIES && !is_heard; i++)
		is_heard = hears_mad(who.connection, &cm);
	assert_true(is_heard);
	assert_int_equal(cm.kind, kind);
}

static void expect_nothing(struct process who)
{
	struct vb_cm_message cm;
	assert_false(hears_mad(who.connection, &cm));
}

static void stop_listening(struct process who)
{
	const struct vb_message unbind = { .kind = VB_MESSAGE_UNBIND, .binding.number = SERVERS_PORT };
	assert_int_equal(vb_message_send(who.connection, &unbind, NULL), 0);
}

/* Who was told "no" has given up: whoever accepts the copy accepts nobody. */
void request__refused_is_refused_again_though_somebody_listens_now(void **state)
{
	start_clients(1); /* starts the broker */
	struct process asker = start(), server = start();
	ask(asker, 1);
	expect(asker, VB_CM_REJ);
	listen_at(server.connection, SERVERS_PORT);
	ask(asker, 1);
	expect(asker, VB_CM_REJ);
	expect_nothing(server);
	ask(asker, 2);
	expect(server, VB_CM_REQ);
	end(asker);
	end(server);
}

/* A server that takes one connection closes its listener, and its answer may be lost: it is the one to say so again. */
void request__answered_is_for_who_answered_it_though_another_listens_now(void **state)
{
	start_clients(1);
	struct process asker = start(), server = start(), other = start();
	listen_at(server.connection, SERVERS_PORT);
	ask(asker, 1);
	expect(server, VB_CM_REQ);
	stop_listening(server);
	ask(asker, 1);
	expect(server, VB_CM_REQ); /* it may still be about to answer */
	post(server.connection,
		&(struct vb_cm_message){
			.kind = VB_CM_REP, .local_id = server.id, .remote_id = asker.id, .transaction_id = 1 });
	expect(asker, VB_CM_REP);
	listen_at(other.connection, SERVERS_PORT);
	ask(asker, 1);
	expect(server, VB_CM_REQ);
	expect_nothing(other);
	expect_nothing(asker);
	end(asker);
	end(server);
	end(other);
}

/* In its name the asker is told "no", and whoever takes its place hears nothing of what it was asked. */
void request__of_a_process_that_died_is_refused_again(void **state)
{
	start_clients(1);
	struct process asker = start(), server = start(), next = start();
	listen_at(server.connection, SERVERS_PORT);
	ask(asker, 1);
	expect(server, VB_CM_REQ);
	end(server);
	expect(asker, VB_CM_REJ);
	listen_at(next.connection, SERVERS_PORT);
	ask(asker, 1);
	expect(asker, VB_CM_REJ);
	expect_nothing(next);
	end(asker);
	end(next);
}
