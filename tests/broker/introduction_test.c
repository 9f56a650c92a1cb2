/* Processes that are introduced to each other, and what those may do who ask for it. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "host/client/broker.h"
#include "raw.h"

static void ask(unsigned asker, const struct vb_gid *gid, uint8_t slot)
{
	client_order(&clients[asker], &(struct order){ .kind = ORDER_MEET, .gid = *gid, .slot = slot });
}

static void ask_and_wait(unsigned asker, uint8_t slot)
{
	const struct vb_gid gid = loopback();
	ask(asker, &gid, slot);
	assert_true(client_wait(&clients[asker]));
}

static const struct report *order_about(unsigned client, enum order_kind kind, uint8_t slot)
{
	client_order(&clients[client], &(struct order){ .kind = kind, .slot = slot });
	assert_true(client_wait(&clients[client]));
	return &clients[client].last;
}

static void await_introduction(unsigned client, uint8_t slot)
{
	for (double until = seconds() + PATIENCE_S; order_about(client, ORDER_MET, slot)->rc; usleep(2000))
		assert_true(seconds() < until);
}

/* One that is told of it by the broker, which has told the other already. */
static void await_one_introduction(unsigned client, uint8_t slot)
{
	for (double until = seconds() + PATIENCE_S; !order_about(client, ORDER_MET, slot)->met.introductions;
		usleep(2000))
		assert_true(seconds() < until);
	assert_int_equal(clients[client].last.met.introductions, 1);
}

static void await_alones(unsigned client, unsigned wanted)
{
	for (double until = seconds() + PATIENCE_S; order_about(client, ORDER_MET, 0)->alones < wanted; usleep(2000))
		assert_true(seconds() < until);
	assert_int_equal(clients[client].last.alones, wanted);
}

/* Each hears the other by socket and memory, and its pidfd is the other's. */
static void check_talk(unsigned a, unsigned b)
{
	const unsigned two[2] = { a, b };
	for (unsigned i = 0; i < 2; i++)
		await_introduction(two[i], clients[two[!i]].last.slot);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(order_about(two[i], ORDER_TELL, clients[two[!i]].last.slot)->rc, 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct client_process *other = &clients[two[!i]];
		const struct report *report = order_about(two[i], ORDER_HEAR, other->last.slot);
		assert_int_equal(report->rc, 0);
		assert_int_equal(report->met.told, other->pid);
		assert_int_equal(report->met.pid, other->pid);
		assert_int_equal(report->met.side, report->slot > other->last.slot);
	}
}

static void ask_all_of_all(void)
{
	const struct vb_gid gid = loopback();
	for (unsigned i = 0; i < client_count; i++)
		for (unsigned j = 0; j < client_count; j++)
			if (i != j)
				ask(i, &gid, clients[j].last.slot);
	for (unsigned i = 0; i < client_count; i++)
		for (unsigned j = 1; j < client_count; j++)
			assert_true(client_wait(&clients[i]));
}

static void check_all_talk(void)
{
	for (unsigned i = 0; i < client_count; i++)
		for (unsigned j = 0; j < i; j++)
			check_talk(i, j);
}

void introduction__lets_two_clients_talk(void **state)
{
	pid_t parent, worker;
	start_clients(2);
	find_both(&parent, &worker);
	unsigned before = count_descriptors(worker);
	ask_and_wait(0, clients[1].last.slot);
	check_talk(0, 1);
	for (unsigned i = 0; i < 2; i++)
		assert_true(clients[i].last.met.is_same_user);
	await_descriptors(worker, before);
	kill(clients[1].pid, SIGKILL); /* its end is seen by the socket */
	for (double until = seconds() + PATIENCE_S; order_about(0, ORDER_MET, clients[1].last.slot)->met.is_there;)
		assert_true(seconds() < until);
}

void introduction__of_all_with_all_at_once_comes_once_to_each(void **state)
{
	start_clients(12);
	ask_all_of_all();
	check_all_talk();
	for (unsigned i = 0; i < client_count; i++)
		for (unsigned j = 0; j < client_count; j++)
			if (i != j)
				assert_int_equal(order_about(i, ORDER_MET, clients[j].last.slot)->met.introductions, 1);
}

void introduction__asked_for_again_is_not_repeated(void **state)
{
	const struct vb_gid others[2] = { vb_gid_from_ipv4(127, 1, 2, 3), { .raw = { [15] = 1 } } };
	start_clients(2);
	for (unsigned round = 0; round < 3; round++)
		ask_and_wait(round % 2, clients[!(round % 2)].last.slot);
	for (unsigned i = 0; i < 2; i++) {
		ask(0, &others[i], clients[1].last.slot);
		assert_true(client_wait(&clients[0]));
	}
	check_talk(0, 1);
	ask_and_wait(0, clients[1].last.slot);
	for (double until = seconds() + PATIENCE_S; order_about(0, ORDER_MET, 0)->alones == 0; usleep(2000))
		assert_true(seconds() < until);
	usleep(50000);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(order_about(i, ORDER_MET, clients[!i].last.slot)->met.introductions, 1);
}

void introduction__with_nobody_is_answered(void **state)
{
	const struct vb_gid other_host = vb_gid_from_ipv4(192, 0, 2, 1);
	start_clients(2);
	const uint8_t own = clients[0].last.slot, other = clients[1].last.slot;
	ask(0, &other_host, other);
	assert_true(client_wait(&clients[0]));
	ask_and_wait(0, own);
	ask_and_wait(0, 0);
	ask_and_wait(0, 255);
	await_alones(0, 4);
	client_kill(&clients[1]);
	for (double until = seconds() + PATIENCE_S; clients[0].last.alones == 4; usleep(5000)) { /* it takes a moment */
		assert_true(seconds() < until);
		ask_and_wait(0, other);
		order_about(0, ORDER_MET, other);
	}
}

/* Goes round until `wanted` is the next slot to be given, of those that are free: taken is one that is not. */
static void bring_round(uint8_t wanted, uint8_t taken)
{
	int connection = connect_raw(), socket;
	for (uint8_t slot = 0, next = 0; next != wanted;) {
		slot = get_slot(connection, &socket);
		next = slot % VB_SLOT_MAX + 1;
		if (next == taken)
			next = next % VB_SLOT_MAX + 1;
		const struct vb_message release = { .kind = VB_MESSAGE_RELEASE_SLOT, .slot = slot };
		assert_int_equal(vb_message_send(connection, &release, NULL), 0);
		close(socket);
	}
	close(connection);
}

void introduction__of_a_slot_with_another_process_in_it_is_a_new_one(void **state)
{
	start_clients(2);
	const uint8_t slot = clients[1].last.slot;
	for (unsigned round = 1; round <= 2; round++) {
		ask_and_wait(0, slot);
		check_talk(0, client_count - 1);
		assert_int_equal(clients[0].last.met.introductions, round);
		client_kill(&clients[client_count - 1]);
		bring_round(slot, clients[0].last.slot);
		start_clients(1);
		assert_int_equal(clients[client_count - 1].last.slot, slot);
	}
}

void introduction__of_other_users_is_with_them_and_not_with_forwarders(void **state)
{
	if (!is_root())
		skip();
	start_clients(1);
	for (unsigned i = 1; i <= 2; i++) {
		client_start(&clients[client_count++], i == 1 ? NOBODY : 1001);
		assert_true(client_do(&clients[i], ORDER_SLOT));
		assert_int_equal(clients[i].last.rc, 0);
		assert_true(clients[i].last.is_carried);
	}
	ask_and_wait(0, clients[1].last.slot);
	ask_and_wait(2, clients[0].last.slot);
	ask_and_wait(1, clients[2].last.slot);
	check_all_talk();
	for (unsigned i = 0; i < 3; i++)
		assert_false(order_about(i, ORDER_MET, clients[(i + 1) % 3].last.slot)->met.is_same_user);
}

/* A process that may write no files starts the broker, and stays. */
static pid_t start_broker_without_files(bool for_good)
{
	struct rlimit none;
	int ready[2];
	char byte, why[256];
	struct vb_broker *broker;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		getrlimit(RLIMIT_FSIZE, &none);
		none = (struct rlimit){ 0, for_good ? 0 : none.rlim_max };
		if (setrlimit(RLIMIT_FSIZE, &none) || client_connect(&broker, why, sizeof(why)) ||
			write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* Memory counts as a file: the limit is raised, or nobody meets, and no worker ends by it. */
void introduction__with_a_limit_of_file_sizes_kills_no_worker(void **state)
{
	pid_t parent, worker, same;
	for (unsigned for_good = 0; for_good < 2; for_good++) {
		pid_t starter = start_broker_without_files(for_good);
		start_clients(2);
		find_both(&parent, &worker);
		ask_and_wait(0, clients[1].last.slot);
		if (for_good)
			await_alones(0, 1);
		else
			check_talk(0, 1);
		find_both(&parent, &same);
		assert_int_equal(worker, same);
		kill(starter, SIGKILL);
		waitpid(starter, NULL, 0);
		assert_int_equal(tear_down(state), 0);
	}
}

/* ---- Deaths ------------------------------------------------------------------------------------------------------ */

/* Whenever it dies, also between the two who are to hear: each pair meets in the end, and both keep the same one. */
void introduction__survives_workers_that_die(void **state)
{
	pid_t parent, worker;
	for (unsigned round = 0; round < 8; round++) {
		start_clients(6);
		find_both(&parent, &worker);
		const struct vb_gid gid = loopback();
		for (unsigned i = 0; i < client_count; i++)
			for (unsigned j = 0; j < client_count; j++)
				if (i != j && (i < j || round % 2))
					ask(i, &gid, clients[j].last.slot);
		usleep(200 * round);
		kill(worker, SIGKILL);
		find_both_without(worker, &parent, &worker);
		for (unsigned i = 0; i < client_count; i++)
			for (unsigned j = 0; j < client_count; j++)
				if (i != j && (i < j || round % 2))
					assert_true(client_wait(&clients[i]));
		check_all_talk();
		ask_all_of_all(); /* the new worker knows of none */
		check_all_talk();
		for (unsigned i = 0; i < client_count; i++)
			client_kill(&clients[i]);
		client_count = 0;
	}
}

void introduction__survives_both_that_die(void **state)
{
	start_clients(4);
	ask_and_wait(0, clients[1].last.slot);
	check_talk(0, 1);
	kill_both();
	ask_all_of_all();
	wait_for_recoveries(1);
	for (unsigned i = 0; i < client_count; i++) /* who came first may have been told that others are not there */
		for (unsigned j = 0; j < i; j++)
			ask_and_wait(i, clients[j].last.slot);
	check_all_talk();
}

/* ---- Hostile ones ------------------------------------------------------------------------------------------------ */

static struct vb_message hear_any(int connection)
{
	struct vb_message message;
	int fds[VB_MESSAGE_FDS];
	struct pollfd wait = { .fd = connection, .events = POLLIN };
	assert_true(poll(&wait, 1, PATIENCE_S * 1000) > 0);
	assert_int_equal(vb_message_receive_all(connection, &message, fds), 0);
	for (unsigned i = 0; i < VB_MESSAGE_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return message;
}

static uint8_t get_another_slot(int connection, uint32_t request)
{
	const struct vb_message get = {
		.kind = VB_MESSAGE_GET_SLOT, .request = request, .receive_buffer = 65536, .is_further = 1
	};
	assert_int_equal(vb_message_send(connection, &get, NULL), 0);
	struct vb_message slot = hear_any(connection);
	assert_int_equal(slot.kind, VB_MESSAGE_SLOT);
	const struct vb_message open = { .kind = VB_MESSAGE_OPEN, .slot = slot.slot, .introduction.is_open = true };
	assert_int_equal(vb_message_send(connection, &open, NULL), 0);
	return slot.slot;
}

static int say_meet(int connection, uint8_t own, uint8_t slot)
{
	const struct vb_message meet = {
		.kind = VB_MESSAGE_MEET, .request = 77, .slot = own, .gid = loopback(), .introduction.slot = slot
	};
	return vb_message_send(connection, &meet, NULL);
}

/* A process with several lanes is several local peers to itself. */
void introduction__of_two_slots_of_one_process_tells_it_of_both(void **state)
{
	start_clients(1);
	int connection = connect_raw(), socket;
	uint8_t slots[2] = { get_slot(connection, &socket), 0 };
	close(socket);
	slots[1] = get_another_slot(connection, 2);
	assert_int_equal(say_meet(connection, slots[0], slots[1]), 0);
	for (unsigned i = 0; i < 2; i++) { /* the asker is told last */
		struct vb_message introduction = hear_any(connection);
		assert_int_equal(introduction.kind, VB_MESSAGE_INTRODUCTION);
		assert_int_equal(introduction.slot, slots[!i]);
		assert_int_equal(introduction.introduction.slot, slots[i]);
		assert_int_equal(introduction.introduction.side, slots[!i] > slots[i]);
	}
	assert_int_equal(say_meet(connection, slots[1], slots[0]), 0);
	assert_int_equal(hear_any(connection).kind, VB_MESSAGE_ALONE); /* they have met */
	close(connection);
}

/* The kind of the answer, or what it was refused with. */
static int meet(int connection, uint8_t own, uint8_t slot)
{
	assert_int_equal(say_meet(connection, own, slot), 0);
	const struct vb_message answer = hear_any(connection);
	return answer.kind == VB_MESSAGE_REFUSED ? -answer.error : answer.kind;
}

void introduction__is_asked_for_by_a_slots_own_process_alone(void **state)
{
	start_clients(2);
	int socket, connection = connect_raw();
	const uint8_t one = clients[0].last.slot, two = clients[1].last.slot;
	assert_int_equal(meet(connection, 0, one), VB_MESSAGE_ALONE);
	assert_int_equal(meet(connection, one, two), VB_MESSAGE_ALONE);
	uint8_t own = get_slot(connection, &socket);
	assert_int_equal(meet(connection, one, two), VB_MESSAGE_ALONE);
	assert_int_equal(meet(connection, 255, two), VB_MESSAGE_ALONE);
	assert_int_equal(meet(connection, own, own), VB_MESSAGE_ALONE);
	assert_int_equal(meet(connection, own, two), VB_MESSAGE_INTRODUCTION);
	assert_int_equal(meet(connection, own, two), VB_MESSAGE_ALONE);
	assert_int_equal(order_about(0, ORDER_MET, two)->met.introductions, 0);
	assert_int_equal(order_about(1, ORDER_MET, one)->met.introductions, 0);
	await_one_introduction(1, own);
	close(connection);
	close(socket);
}

/* A slot that is carried goes to another connection of its process when that comes for it. */
void introduction__of_a_slot_that_comes_by_another_connection_is_a_new_one(void **state)
{
	if (!is_root())
		skip();
	start_clients(1);
	int channel, connections[2] = { connect_as(1001), connect_as(1001) };
	const uint8_t own = get_slot(connections[0], &channel);
	const struct vb_message adopt = { .kind = VB_MESSAGE_ADOPT, .request = 3, .slot = own };
	assert_int_equal(meet(connections[0], own, clients[0].last.slot), VB_MESSAGE_INTRODUCTION);
	assert_int_equal(vb_message_send(connections[1], &adopt, NULL), 0);
	assert_int_equal(hear_any(connections[1]).kind, VB_MESSAGE_ADOPTED);
	assert_int_equal(meet(connections[0], own, clients[0].last.slot), VB_MESSAGE_ALONE);
	assert_int_equal(meet(connections[1], own, clients[0].last.slot), VB_MESSAGE_INTRODUCTION);
	for (unsigned i = 0; i < 2; i++)
		close(connections[i]);
	close(channel);
}

void introduction__flood_of_questions_holds_up_nobody(void **state)
{
	enum { QUESTIONS = 100000 };
	pid_t parent, worker;
	start_clients(2);
	find_both(&parent, &worker);
	int socket, connection = connect_raw(), honest = connect_raw();
	const uint8_t own = get_slot(connection, &socket);
	assert_welcome(honest);
	unsigned before = count_descriptors(worker), said = 0, heard = 0, introductions = 0;
	double begin = seconds(), longest = 0;
	while (heard < QUESTIONS) {
		struct pollfd wait = { .fd = connection, .events = POLLIN | (said < QUESTIONS ? POLLOUT : 0) };
		assert_true(poll(&wait, 1, PATIENCE_S * 1000) > 0);
		for (; wait.revents & POLLIN && poll(&wait, 1, 0) > 0 && wait.revents & POLLIN; heard++)
			introductions += hear_any(connection).kind == VB_MESSAGE_INTRODUCTION;
		for (; said < QUESTIONS && said - heard < 900; said++)
			if (say_meet(connection, own, (uint8_t)(said % 256)))
				break;
		if (heard % 5000 < 50) { /* somebody else is served meanwhile */
			double asked = seconds();
			assert_welcome(honest);
			longest = seconds() - asked > longest ? seconds() - asked : longest;
		}
	}
	const double took = seconds() - begin;
	print_message(
		"%d questions: %.2f s, an honest client waited %.0f ms at most\n", QUESTIONS, took, longest * 1e3);
	assert_int_equal(introductions, 2);
	assert_true(longest < 0.5 || longest < took / 8);
	await_descriptors(worker, before);
	for (unsigned i = 0; i < 2; i++)
		await_one_introduction(i, own);
	ask_and_wait(0, clients[1].last.slot);
	check_talk(0, 1);
	close(connection);
	close(honest);
	close(socket);
}

void introduction__flood_that_is_not_read_ends_who_asks(void **state)
{
	pid_t parent, worker;
	start_clients(2);
	find_both(&parent, &worker);
	unsigned before = count_descriptors(worker);
	int socket, connection = connect_raw(), rc = 0;
	const uint8_t own = get_slot(connection, &socket);
	for (double until = seconds() + PATIENCE_S; seconds() < until && rc != -EPIPE && rc != -ECONNRESET;)
		rc = say_meet(connection, own, clients[0].last.slot);
	assert_true(rc == -EPIPE || rc == -ECONNRESET);
	close(connection);
	close(socket);
	await_descriptors(worker, before);
	check_steering();
}

/* Who comes by ever new slots fills nobody's connection, and takes none of the broker's descriptors. */
void introduction__who_does_not_read_is_introduced_to_a_few(void **state)
{
	enum { TRIES = 200, MOST = 64 };
	pid_t parent, worker;
	start_clients(1);
	find_both(&parent, &worker);
	int sockets[2], deaf = connect_raw(), hostile = connect_raw();
	const uint8_t victim = get_slot(deaf, &sockets[0]);
	unsigned before = 0, introductions = 0, put_off = 0;
	for (unsigned i = 0; i < TRIES; i++) {
		const uint8_t slot = get_slot(hostile, &sockets[1]);
		const struct vb_message release = { .kind = VB_MESSAGE_RELEASE_SLOT, .slot = slot };
		int answer = meet(hostile, slot, victim);
		assert_true(answer == VB_MESSAGE_INTRODUCTION || answer == -EAGAIN);
		introductions += answer == VB_MESSAGE_INTRODUCTION;
		put_off += answer == -EAGAIN;
		assert_int_equal(vb_message_send(hostile, &release, NULL), 0);
		close(sockets[1]);
		if (i == 0) {
			usleep(50000);
			before = count_descriptors(worker);
		}
	}
	print_message("introduced %u times, put off %u times\n", introductions, put_off);
	assert_in_range(introductions, 1, MOST);
	await_descriptors(worker, before);
	for (unsigned i = 0; i < introductions; i++)
		assert_int_equal(hear_any(deaf).kind, VB_MESSAGE_INTRODUCTION);
	assert_int_equal(meet(deaf, victim, clients[0].last.slot), VB_MESSAGE_INTRODUCTION); /* now that it reads */
	close(deaf);
	close(hostile);
	close(sockets[0]);
}
