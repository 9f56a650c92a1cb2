/* Two clients who meet, and all that can go wrong between telling one and telling the other. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "../unit.h"
#include "broker/addresses.h"
#include "broker/worker_state.h"
#include "os/clock.h"

enum { ASKER, OTHER, CLIENTS, ASKERS_SLOT = 9, OTHERS_SLOT = 4 };

static struct registry registry;
static struct worker worker;
static int ends[CLIENTS]; /* the clients' own */
static const struct vb_gid here = { .raw = { [10] = 0xFF, [11] = 0xFF, 10, 0, 0, 1 } };

/* ---- What the worker is besides ---------------------------------------------------------------------------------- */

static uint64_t now_ms;

int64_t vb_clock_ns(void)
{
	return (int64_t)now_ms * VB_CLOCK_MS;
}

uint32_t addresses_interface(const struct vb_gid *gid, uint64_t now)
{
	return vb_gid_equal(gid, &here) ? 2 : 0;
}

void worker_say(struct worker *it, unsigned client, const struct vb_message *message, const int *fd)
{
	assert_true(
		backlog_say(&it->clients[client].backlog, it->registry->clients[client].connection, message, fd, 1));
}

static bool are_of_one_user;

bool worker_are_of_one_user(const struct worker *it, unsigned one, unsigned other)
{
	assert_int_equal(one + other, ASKER + OTHER);
	return are_of_one_user;
}

void worker_refuse(struct worker *it, unsigned client, uint32_t request, int error, const char *format, ...)
{
	const struct vb_message message = { .kind = VB_MESSAGE_REFUSED, .request = request, .error = error };
	worker_say(it, client, &message, NULL);
}

static void open_slots(bool askers, bool others)
{
	worker.is_open[ASKERS_SLOT] = askers;
	worker.is_open[OTHERS_SLOT] = others;
}

static int set_up(void **state)
{
	memset(&worker, 0, sizeof(worker));
	now_ms = 1;
	registry_init(&registry, -1);
	worker.registry = &registry;
	for (int i = 0; i < CLIENTS; i++) {
		int pair[2];
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
		registry.clients[i] = (struct client){
			.is_used = true, .connection = pair[0], .pidfd = -1, .uid = (uid_t)(1000 + i)
		};
		ends[i] = pair[1];
		backlog_init(&worker.clients[i].backlog);
		registry.slots[i == ASKER ? ASKERS_SLOT : OTHERS_SLOT] =
			(struct client_slot){ .owner = i, .user = i, .fd = -1 };
	}
	open_slots(true, true);
	return 0;
}

static int tear_down(void **state)
{
	for (int i = 0; i < CLIENTS; i++) {
		backlog_discard(&worker.clients[i].backlog);
		close(registry.clients[i].connection);
		close(ends[i]);
	}
	return 0;
}

/* ---- What they say and hear -------------------------------------------------------------------------------------- */

struct heard {
	struct vb_message message; /* of kind 0: nothing */
	int fds[VB_MESSAGE_FDS];
};

static struct heard hear(int client)
{
	struct heard heard = { .fds = { -1, -1, -1 } };
	if (vb_message_receive_all(ends[client], &heard.message, heard.fds))
		heard.message.kind = 0;
	return heard;
}

static void forget(const struct heard *heard)
{
	for (unsigned i = 0; i < VB_MESSAGE_FDS; i++)
		if (heard->fds[i] >= 0)
			close(heard->fds[i]);
}

static void meet(int client)
{
	const struct vb_message message = { .kind = VB_MESSAGE_MEET,
		.request = 5,
		.slot = client == ASKER ? ASKERS_SLOT : OTHERS_SLOT,
		.gid = here,
		.introduction.slot = client == ASKER ? OTHERS_SLOT : ASKERS_SLOT };
	worker_meet(&worker, (unsigned)client, &message);
}

static void assert_hears(int client, uint16_t kind, int error)
{
	const struct heard heard = hear(client);
	assert_int_equal(heard.message.kind, kind);
	if (kind != VB_MESSAGE_INTRODUCTION && kind != 0)
		assert_int_equal(heard.message.request, 5);
	assert_int_equal(heard.message.error, error);
	forget(&heard);
}

static bool is_at_its_end(int socket)
{
	char byte;
	return recv(socket, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Until its client reads on. */
static void fill_connection(int client)
{
	const struct vb_message filler = { .kind = VB_MESSAGE_WELCOME };
	while (vb_message_send(registry.clients[client].connection, &filler, NULL) == 0)
		;
}

static void read_all(int client)
{
	struct heard heard;
	do {
		heard = hear(client);
		forget(&heard);
		backlog_flush(&worker.clients[client].backlog, registry.clients[client].connection, 1);
	} while (heard.message.kind);
}

static void assert_both_meet(void)
{
	struct heard asker = hear(ASKER), other = hear(OTHER);
	char byte = 'x';
	assert_int_equal(asker.message.kind, VB_MESSAGE_INTRODUCTION);
	assert_int_equal(other.message.kind, VB_MESSAGE_INTRODUCTION);
	assert_int_equal(asker.message.slot, ASKERS_SLOT);
	assert_int_equal(asker.message.introduction.slot, OTHERS_SLOT);
	assert_int_equal(asker.message.introduction.is_same_user, are_of_one_user);
	assert_int_equal(asker.message.introduction.side, 1);
	assert_int_equal(other.message.slot, OTHERS_SLOT);
	assert_int_equal(other.message.introduction.slot, ASKERS_SLOT);
	assert_int_equal(other.message.introduction.is_same_user, are_of_one_user);
	assert_int_equal(other.message.introduction.side, 0);
	assert_int_equal(send(asker.fds[0], &byte, 1, 0), 1);
	assert_int_equal(recv(other.fds[0], &byte, 1, 0), 1);
	forget(&asker);
	forget(&other);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void introduction__is_told_to_both_once(void **state)
{
	meet(ASKER);
	assert_both_meet();
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_ALONE, 0);
	meet(OTHER);
	assert_hears(OTHER, VB_MESSAGE_ALONE, 0);
	assert_hears(ASKER, 0, 0);
}

static void introduction__brings_a_pidfd_where_there_is_one(void **state)
{
	registry.clients[ASKER].pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	meet(ASKER);
	const struct heard asker = hear(ASKER), other = hear(OTHER);
	assert_int_equal(asker.fds[2], -1);
	assert_true(other.fds[2] >= 0);
	forget(&asker);
	forget(&other);
	close(registry.clients[ASKER].pidfd);
}

/* As when the worker dies between the two: what the other has heard is void, and the asker asks again. */
static void introduction__that_the_asker_has_not_heard_of_is_void(void **state)
{
	fill_connection(ASKER);
	meet(ASKER);
	const struct heard other = hear(OTHER);
	assert_int_equal(other.message.kind, VB_MESSAGE_INTRODUCTION);
	assert_true(is_at_its_end(other.fds[0]));
	forget(&other);
	read_all(ASKER);
	now_ms += 10;
	meet(ASKER);
	assert_both_meet();
}

static void introduction__that_the_other_cannot_hear_of_is_put_off(void **state)
{
	fill_connection(OTHER);
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_REFUSED, EAGAIN);
	read_all(OTHER);
	meet(OTHER);
	assert_both_meet();
}

/* Of what it is to be told before something waits: its slot, say. */
static void introduction__does_not_overtake(void **state)
{
	const struct vb_message before = { .kind = VB_MESSAGE_SLOT };
	fill_connection(OTHER);
	worker_say(&worker, OTHER, &before, NULL);
	while (hear(OTHER).message.kind) /* but it is not flushed */
		;
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_REFUSED, EAGAIN);
	assert_hears(OTHER, 0, 0);
}

static void introduction__of_who_does_not_read_is_put_off(void **state)
{
	struct rlimit before, few = { .rlim_cur = 8192 };
	unsigned met = 0;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	if (before.rlim_max < few.rlim_cur)
		skip();
	few.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (unsigned i = 0; i < 10; i++) { /* the asker comes by another slot */
		worker_forget_introductions(&worker, ASKERS_SLOT);
		open_slots(true, true);
		meet(ASKER);
		const struct heard heard = hear(ASKER);
		met += heard.message.kind == VB_MESSAGE_INTRODUCTION;
		forget(&heard);
	}
	assert_int_equal(met, 2);
	read_all(OTHER);
	meet(ASKER);
	assert_both_meet();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void introduction__that_cannot_be_made_is_none(void **state)
{
	struct rlimit before, none;
	int next = dup(0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned room = 0; room < 3; room++) {
		none = (struct rlimit){ (rlim_t)next + room, before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		meet(ASKER);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_hears(ASKER, VB_MESSAGE_ALONE, 0);
		assert_hears(OTHER, 0, 0);
		int free_again = dup(0);
		assert_int_equal(free_again, next);
		close(free_again);
	}
}

static void introduction__is_with_who_has_come_and_stays(void **state)
{
	registry.slots[OTHERS_SLOT].user = -1; /* its forwarder has come, and he has not */
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_ALONE, 0);
	registry.slots[OTHERS_SLOT].user = OTHER;
	worker.clients[OTHER].leaves_at = 7;
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_ALONE, 0);
	assert_hears(OTHER, 0, 0);
}

static void introduction__of_a_slot_that_was_another_s_is_a_new_one(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		meet(ASKER);
		assert_both_meet();
		worker_forget_introductions(&worker, i % 2 ? ASKERS_SLOT : OTHERS_SLOT);
		open_slots(true, true);
	}
	worker_forget_introductions(&worker, 200); /* somebody else's */
	meet(ASKER);
	assert_both_meet();
	worker_forget_introductions(&worker, 200);
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_ALONE, 0);
}

/* ---- Who wants whom ---------------------------------------------------------------------------------------------- */

static void say(int client, uint16_t kind, bool is_open)
{
	const struct vb_message message = { .kind = kind,
		.slot = client == ASKER ? ASKERS_SLOT : OTHERS_SLOT,
		.introduction = { .slot = client == ASKER ? OTHERS_SLOT : ASKERS_SLOT, .is_open = is_open } };
	if (kind == VB_MESSAGE_OPEN)
		worker_open(&worker, (unsigned)client, &message);
	else
		worker_let_part(&worker, (unsigned)client, &message);
}

static void assert_is_told_to_ask_again(int client)
{
	const struct heard heard = hear(client);
	assert_int_equal(heard.message.kind, VB_MESSAGE_WANTED);
	assert_int_equal(heard.message.slot, client == ASKER ? ASKERS_SLOT : OTHERS_SLOT);
	assert_int_equal(heard.message.introduction.slot, client == ASKER ? OTHERS_SLOT : ASKERS_SLOT);
}

static void introduction__waits_until_the_other_asks_too(void **state)
{
	open_slots(true, false); /* that the asker takes anybody is nothing to the other */
	for (unsigned i = 0; i < 3; i++) {
		meet(ASKER);
		assert_hears(ASKER, VB_MESSAGE_AWAITED, 0);
		assert_hears(OTHER, 0, 0);
	}
	open_slots(false, false);
	meet(OTHER);
	assert_both_meet();
}

static void introduction__waits_until_the_other_is_open(void **state)
{
	open_slots(false, false);
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_AWAITED, 0);
	say(OTHER, VB_MESSAGE_OPEN, false);
	assert_hears(ASKER, 0, 0);
	say(OTHER, VB_MESSAGE_OPEN, true);
	assert_is_told_to_ask_again(ASKER);
	say(OTHER, VB_MESSAGE_OPEN, true); /* once */
	assert_hears(ASKER, 0, 0);
	assert_hears(OTHER, 0, 0);
	meet(ASKER);
	assert_both_meet();
}

static void introduction__comes_again_when_both_have_parted(void **state)
{
	meet(ASKER);
	assert_both_meet();
	say(ASKER, VB_MESSAGE_PART, false);
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_AWAITED, 0);
	assert_hears(OTHER, 0, 0);
	say(OTHER, VB_MESSAGE_PART, false);
	assert_is_told_to_ask_again(ASKER);
	now_ms += 10;
	meet(ASKER);
	assert_both_meet();
}

/* Else the other greets without end. */
static void introduction__of_who_parts_over_and_over_comes_ever_later(void **state)
{
	unsigned met = 0;
	for (; now_ms < 60000; now_ms += 5) {
		meet(ASKER);
		const struct heard asker = hear(ASKER), other = hear(OTHER);
		assert_int_equal(asker.message.error, asker.message.kind == VB_MESSAGE_INTRODUCTION ? 0 : EAGAIN);
		met += asker.message.kind == VB_MESSAGE_INTRODUCTION;
		forget(&asker);
		forget(&other);
		say(ASKER, VB_MESSAGE_PART, false);
		say(OTHER, VB_MESSAGE_PART, false);
	}
	assert_in_range(met, 15, 30);
	now_ms += 10000; /* and is forgotten */
	for (unsigned i = 0; i < 2; i++, now_ms += 10) {
		meet(ASKER);
		assert_both_meet();
		say(ASKER, VB_MESSAGE_PART, false);
		say(OTHER, VB_MESSAGE_PART, false);
	}
}

/* Nobody answers a question to who is gone. */
static void introduction__with_who_goes_is_asked_for_again(void **state)
{
	open_slots(false, false);
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_AWAITED, 0);
	worker_forget_introductions(&worker, OTHERS_SLOT);
	assert_is_told_to_ask_again(ASKER);
	worker_forget_introductions(&worker, OTHERS_SLOT); /* once */
	assert_hears(ASKER, 0, 0);
	assert_hears(OTHER, 0, 0);
	registry.slots[OTHERS_SLOT].user = -1;
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_ALONE, 0);
}

static void introduction__is_opened_by_a_slots_own_process_alone(void **state)
{
	const struct vb_message open = { .kind = VB_MESSAGE_OPEN, .slot = OTHERS_SLOT, .introduction.is_open = true };
	const struct vb_message part = {
		.kind = VB_MESSAGE_PART, .slot = OTHERS_SLOT, .introduction.slot = ASKERS_SLOT
	};
	open_slots(false, false);
	worker_open(&worker, ASKER, &open);
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_AWAITED, 0);
	meet(OTHER);
	assert_both_meet();
	say(ASKER, VB_MESSAGE_PART, false);
	worker_let_part(&worker, ASKER, &part);
	meet(ASKER);
	assert_hears(ASKER, VB_MESSAGE_AWAITED, 0);
	assert_hears(OTHER, 0, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(introduction__is_told_to_both_once),
		TEST(introduction__brings_a_pidfd_where_there_is_one),
		TEST(introduction__that_the_asker_has_not_heard_of_is_void),
		TEST(introduction__that_the_other_cannot_hear_of_is_put_off),
		TEST(introduction__does_not_overtake),
		TEST(introduction__of_who_does_not_read_is_put_off),
		TEST(introduction__that_cannot_be_made_is_none),
		TEST(introduction__is_with_who_has_come_and_stays),
		TEST(introduction__of_a_slot_that_was_another_s_is_a_new_one),
		TEST(introduction__waits_until_the_other_asks_too),
		TEST(introduction__waits_until_the_other_is_open),
		TEST(introduction__comes_again_when_both_have_parted),
		TEST(introduction__of_who_parts_over_and_over_comes_ever_later),
		TEST(introduction__with_who_goes_is_asked_for_again),
		TEST(introduction__is_opened_by_a_slots_own_process_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
