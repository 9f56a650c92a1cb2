/* The broker's client against a broker that the test plays: it reads late, forgets, refuses and dies when it likes. In
 * a network namespace of the test's own, for the name that brokers have; skipped where none may be made. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include "host/client/broker.h"
#include "host/connections.h"
#include "host/protocol.h"

enum { LONG_MS = 5000, MANY = 3000 };

static int listener = -1, client = -1; /* the broker's ends */
static struct vb_broker *broker;
static char why[256];
static atomic_uint backs, peers, introductions, alones, laters;
static struct vb_broker_notice met, alone; /* the last of each */

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void hear(void *user, const struct vb_broker_notice *notice)
{
	if (notice->kind == VB_BROKER_BACK)
		atomic_fetch_add(&backs, 1);
	if (notice->kind == VB_BROKER_PEER)
		atomic_fetch_add(&peers, 1);
	if (notice->kind == VB_BROKER_INTRODUCTION) {
		met = *notice;
		atomic_fetch_add(&introductions, 1);
	}
	if (notice->kind == VB_BROKER_LATER) {
		assert_int_equal(notice->own_slot, 7);
		assert_int_equal(notice->slot, 9);
		atomic_fetch_add(&laters, 1);
	}
	if (notice->kind == VB_BROKER_ALONE) {
		alone = *notice;
		atomic_fetch_add(&alones, 1);
	}
}

static void await_notices(const atomic_uint *count, unsigned wanted)
{
	for (double until = seconds() + 5; atomic_load(count) < wanted && seconds() < until;)
		usleep(1000);
	assert_int_equal(atomic_load(count), wanted);
}

/* ---- The broker -------------------------------------------------------------------------------------------------- */

static void listen_as_broker(void)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 8), 0);
}

static struct vb_message hear_any(void)
{
	struct vb_message message;
	struct pollfd wait = { .fd = client, .events = POLLIN };
	int fd;
	assert_int_equal(poll(&wait, 1, LONG_MS), 1);
	assert_int_equal(vb_message_receive(client, &message, &fd), 0);
	if (fd >= 0)
		close(fd);
	return message;
}

static struct vb_message hear_one(enum vb_message_kind kind)
{
	struct vb_message message = hear_any();
	assert_int_equal(message.kind, kind);
	return message;
}

/* Reads on until one of that kind comes. */
static struct vb_message await(enum vb_message_kind kind)
{
	struct vb_message message;
	do
		message = hear_any();
	while (message.kind != kind);
	return message;
}

static void tell(enum vb_message_kind kind, uint32_t request)
{
	const struct vb_message message = { .kind = kind, .request = request, .binding.port = 4000 };
	assert_int_equal(vb_message_send(client, &message, NULL), 0);
}

static void welcome(void)
{
	struct pollfd wait = { .fd = listener, .events = POLLIN };
	assert_int_equal(poll(&wait, 1, LONG_MS), 1);
	client = accept(listener, NULL, NULL);
	hear_one(VB_MESSAGE_HELLO);
	tell(VB_MESSAGE_WELCOME, 0);
}

static void give_slot(void)
{
	const struct vb_message request = hear_one(VB_MESSAGE_GET_SLOT);
	const struct vb_message answer = { .kind = VB_MESSAGE_SLOT, .request = request.request, .slot = 7 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(vb_message_send(client, &answer, &fd), 0);
	close(fd);
}

static void die(void)
{
	close(client);
	close(listener);
	client = listener = -1;
}

/* ---- The client, in a thread where it has to wait ---------------------------------------------------------------- */

static void *connect_it(void *result)
{
	const struct vb_broker_config config = { .hear = hear };
	*(int *)result = vb_broker_connect(&config, &broker, why, sizeof(why));
	return NULL;
}

static void *take_slot(void *slot)
{
	assert_int_equal(vb_broker_get_slot(broker, 65536, false, slot, why, sizeof(why)), 0);
	return NULL;
}

static void *bind_it(void *binding)
{
	assert_int_equal(vb_broker_bind(broker, binding, why, sizeof(why)), 0);
	return NULL;
}

static void *listen_it(void *binding)
{
	assert_int_equal(vb_broker_listen(broker, binding, why, sizeof(why)), 0);
	return NULL;
}

static pthread_t begin(void *(*what)(void *), void *argument)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, what, argument), 0);
	return thread;
}

static struct vb_slot slot;
static struct vb_binding binding;

/* Connected, with slot 7 and a listener at port 4000. */
static int set_up(void **state)
{
	int rc = -1;
	atomic_store(&backs, 0);
	atomic_store(&peers, 0);
	atomic_store(&introductions, 0);
	atomic_store(&alones, 0);
	atomic_store(&laters, 0);
	binding = (struct vb_binding){ .port_space = 0x0106, .family = 99 };
	listen_as_broker();
	pthread_t thread = begin(connect_it, &rc);
	welcome();
	pthread_join(thread, NULL);
	assert_int_equal(rc, 0);
	thread = begin(take_slot, &slot);
	give_slot();
	pthread_join(thread, NULL);
	assert_int_equal(slot.number, 7);
	thread = begin(bind_it, &binding);
	tell(VB_MESSAGE_BOUND, hear_one(VB_MESSAGE_BIND).request);
	pthread_join(thread, NULL);
	assert_int_equal(binding.port, 4000);
	thread = begin(listen_it, &binding);
	tell(VB_MESSAGE_BOUND, hear_one(VB_MESSAGE_LISTEN).request);
	pthread_join(thread, NULL);
	return 0;
}

static int tear_down(void **state)
{
	close(slot.fd);
	vb_broker_disconnect(broker);
	die();
	return 0;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void post__waits_for_nobody(void **state)
{
	const uint8_t mad[256] = { 0 };
	const struct vb_gid gid = vb_gid_from_ipv4(10, 0, 0, 1);
	double start = seconds(), longest = 0;
	for (unsigned i = 0; i < MANY; i++) { /* the broker reads nothing */
		double before = seconds();
		vb_broker_post_mad(broker, &gid, &gid, mad);
		longest = seconds() - before > longest ? seconds() - before : longest;
	}
	print_message("%d MADs posted to a broker that is stopped: %.1f ms, the longest call %.2f ms\n", MANY,
		(seconds() - start) * 1e3, longest * 1e3);
	assert_true(longest < 0.1);
	for (unsigned i = 0; i < MANY; i++) /* none was lost */
		hear_one(VB_MESSAGE_POST_MAD);
}

static void discover__is_never_lost(void **state)
{
	const uint8_t mad[256] = { 0 };
	const struct vb_gid gid = vb_gid_from_ipv4(10, 0, 0, 1);
	for (unsigned i = 0; i < MANY; i++)
		vb_broker_post_mad(broker, &gid, &gid, mad);
	assert_true(vb_broker_discover(broker, &gid, &gid)); /* there is no room for it */
	assert_false(vb_broker_discover(broker, &gid, &gid));
	struct vb_message question = await(VB_MESSAGE_DISCOVER);
	assert_true(vb_gid_equal(&question.gid, &gid));
	question.kind = VB_MESSAGE_PEER;
	question.peer_is = VB_PEER_IS_VERBENA;
	assert_int_equal(vb_message_send(client, &question, NULL), 0);
	for (double until = seconds() + 5; !atomic_load(&peers) && seconds() < until;)
		usleep(1000);
	assert_int_equal(atomic_load(&peers), 1);
}

static void discover__is_asked_again_of_who_forgot(void **state)
{
	const struct vb_gid gid = vb_gid_from_ipv4(10, 0, 0, 1);
	assert_true(vb_broker_discover(broker, &gid, &gid));
	await(VB_MESSAGE_DISCOVER);
	tell(VB_MESSAGE_RESTARTED, 0);
	await(VB_MESSAGE_DISCOVER);
}

static void worker__that_forgot_is_told_of_ports_though_it_reads_late(void **state)
{
	const uint8_t mad[256] = { 0 };
	const struct vb_gid gid = vb_gid_from_ipv4(10, 0, 0, 1);
	for (unsigned i = 0; i < MANY; i++)
		vb_broker_post_mad(broker, &gid, &gid, mad);
	tell(VB_MESSAGE_RESTARTED, 0);
	usleep(100000);
	const struct vb_message bind = await(VB_MESSAGE_BIND);
	assert_int_equal(bind.binding.port, 4000);
	assert_int_equal(bind.binding.number, await(VB_MESSAGE_LISTEN).binding.number);
}

static void worker__that_forgot_is_told_who_accepts(void **state)
{
	vb_broker_accepting(broker, &binding);
	assert_true(hear_one(VB_MESSAGE_LISTEN).binding.is_accepting);
	tell(VB_MESSAGE_RESTARTED, 0);
	hear_one(VB_MESSAGE_BIND);
	assert_true(hear_one(VB_MESSAGE_LISTEN).binding.is_accepting);
}

static void worker__that_forgot_is_told_after_any_number_of_notices(void **state)
{
	struct vb_message notice = { .kind = VB_MESSAGE_PEER };
	struct vb_binding another = { .port_space = 0x0106 };
	pthread_t thread = begin(bind_it, &another);
	const uint32_t request = hear_one(VB_MESSAGE_BIND).request;
	for (unsigned i = 0; i < 1000; i++) {
		struct pollfd room = { .fd = client, .events = POLLOUT };
		assert_int_equal(poll(&room, 1, LONG_MS), 1);
		vb_message_send(client, &notice, NULL);
	}
	tell(VB_MESSAGE_RESTARTED, 0);
	await(VB_MESSAGE_LISTEN);
	tell(VB_MESSAGE_BOUND, request);
	pthread_join(thread, NULL);
}

static void broker__that_died_is_noticed_by_who_waits_for_its_answer(void **state)
{
	struct vb_binding another = { .port_space = 0x0106, .port = 5000 };
	pthread_t thread = begin(bind_it, &another);
	hear_one(VB_MESSAGE_BIND);
	die();
	listen_as_broker();
	welcome();
	const struct vb_message adopt = hear_one(VB_MESSAGE_ADOPT);
	assert_int_equal(adopt.slot, 7);
	assert_int_equal(atomic_load(&backs), 0);
	tell(VB_MESSAGE_ADOPTED, adopt.request);
	assert_int_equal(hear_one(VB_MESSAGE_BIND).binding.port, 4000);
	hear_one(VB_MESSAGE_LISTEN);
	const struct vb_message again = hear_one(VB_MESSAGE_BIND); /* answered at last */
	assert_int_equal(again.binding.port, 5000);
	tell(VB_MESSAGE_BOUND, again.request);
	pthread_join(thread, NULL);
	for (double until = seconds() + 5; !atomic_load(&backs) && seconds() < until;)
		usleep(1000);
	assert_int_equal(atomic_load(&backs), 1);
}

static void slot__that_was_refused_is_offered_again(void **state)
{
	die();
	listen_as_broker();
	welcome();
	struct vb_message no = { .kind = VB_MESSAGE_REFUSED, .error = EEXIST, .why = "it is another's by now" };
	no.request = hear_one(VB_MESSAGE_ADOPT).request;
	assert_int_equal(vb_message_send(client, &no, NULL), 0);
	tell(VB_MESSAGE_ADOPTED, await(VB_MESSAGE_ADOPT).request);
}

/* A forked child without privilege may have it when its parent has said its own. */
static void port__that_was_refused_is_asked_for_again(void **state)
{
	die();
	listen_as_broker();
	welcome();
	struct vb_message no = { .kind = VB_MESSAGE_REFUSED, .error = EACCES, .why = "it is for root" };
	no.request = await(VB_MESSAGE_BIND).request;
	hear_one(VB_MESSAGE_LISTEN);
	assert_int_equal(vb_message_send(client, &no, NULL), 0);
	assert_int_equal(await(VB_MESSAGE_BIND).binding.port, 4000);
	assert_int_equal(await(VB_MESSAGE_LISTEN).binding.number, binding.number);
}

static void slot__that_nobody_waits_for_is_given_back(void **state)
{
	struct vb_message late = { .kind = VB_MESSAGE_SLOT, .request = 999, .slot = 9 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(vb_message_send(client, &late, &fd), 0);
	assert_int_equal(hear_one(VB_MESSAGE_RELEASE_SLOT).slot, 9);
	late.slot = 7; /* that it has */
	assert_int_equal(vb_message_send(client, &late, &fd), 0);
	close(fd);
	vb_broker_release_slot(broker, &slot);
	assert_int_equal(hear_one(VB_MESSAGE_RELEASE_SLOT).slot, 7);
}

static void *bind_in_vain(void *result)
{
	struct vb_binding in_vain = { .port_space = 0x0106, .port = 4001 };
	*(int *)result = vb_broker_bind(broker, &in_vain, why, sizeof(why));
	return NULL;
}

/* The broker was stopped, say, and binds it when it goes on. */
static void bind__that_was_given_up_is_undone(void **state)
{
	int rc = 0;
	pthread_t thread = begin(bind_in_vain, &rc);
	uint32_t number = hear_one(VB_MESSAGE_BIND).binding.number;
	pthread_join(thread, NULL);
	assert_int_equal(rc, -ETIMEDOUT);
	assert_int_equal(hear_one(VB_MESSAGE_UNBIND).binding.number, number);
}

/* What is behind its descriptor is something that the kernel passes to nobody: the rest is said, and nobody spins. */
static void slot__that_cannot_be_passed_hinders_nothing_else(void **state)
{
	struct io_uring_params parameters = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &parameters);
	if (ring < 0) {
		print_message("skipped: no io_uring\n");
		skip();
	}
	assert_int_equal(dup2(ring, slot.fd), slot.fd);
	close(ring);
	die();
	listen_as_broker();
	welcome();
	hear_one(VB_MESSAGE_BIND);
	clock_t begin = clock();
	usleep(300000);
	assert_true((clock() - begin) * 1000 / CLOCKS_PER_SEC < 100);
}

static void slot__is_given_back_to_whom_it_is_from(void **state)
{
	vb_broker_release_slot(broker, &slot);
	assert_int_equal(hear_one(VB_MESSAGE_RELEASE_SLOT).slot, 7);
	die();
	listen_as_broker();
	welcome();
	assert_int_equal(hear_one(VB_MESSAGE_BIND).binding.port, 4000); /* and no slot before it */
}

static void connect__that_is_refused_says_why(void **state)
{
	struct vb_message no = { .kind = VB_MESSAGE_REFUSED, .error = EUSERS, .why = "no room for uid 5001" };
	int rc = 0;
	listen_as_broker();
	pthread_t thread = begin(connect_it, &rc);
	client = accept(listener, NULL, NULL);
	hear_one(VB_MESSAGE_HELLO);
	assert_int_equal(vb_message_send(client, &no, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(rc, -EUSERS);
	assert_string_equal(why, no.why);
	die();
}

static void disconnect__does_not_wait_for_a_broker_that_is_gone(void **state)
{
	listen_as_broker();
	int rc = -1;
	pthread_t thread = begin(connect_it, &rc);
	welcome();
	pthread_join(thread, NULL);
	close(client); /* the listener is there and never answers */
	usleep(200000);
	double start = seconds();
	vb_broker_disconnect(broker);
	assert_true(seconds() - start < 1);
	client = -1;
	die();
}

/* ---- Introduction ------------------------------------------------------------------------------------------------ */

static const struct vb_gid here = { .raw = { [10] = 0xFF, [11] = 0xFF, 10, 0, 0, 1 } };

/* The socket's other end, which it returns, the memory (a pipe here) and no pidfd, for slot and slot 9. */
static int introduce(uint8_t to)
{
	int ends[2], pipes[2];
	const struct vb_message introduction = {
		.kind = VB_MESSAGE_INTRODUCTION, .slot = to, .introduction = { .slot = 9, .side = 1, .is_same_user = 1 }
	};
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(
		vb_pass_send(client, &introduction, sizeof(introduction), (int[]){ ends[1], pipes[0] }, 2, 0), 0);
	close(ends[1]);
	close(pipes[0]);
	close(pipes[1]);
	return ends[0];
}

static void close_introduction(int socket)
{
	close(met.socket);
	close(met.memory);
	close(socket);
}

static bool is_at_its_end(int socket)
{
	char byte;
	struct pollfd wait = { .fd = socket, .events = POLLIN };
	return poll(&wait, 1, LONG_MS) == 1 && recv(socket, &byte, 1, 0) == 0;
}

/* Whatever the client has to say before is said before. */
static void assert_says_nothing(void)
{
	const uint8_t mad[256] = { 0 };
	vb_broker_post_mad(broker, &here, &here, mad);
	hear_one(VB_MESSAGE_POST_MAD);
}

static void refuse(uint32_t request, int error)
{
	const struct vb_message no = { .kind = VB_MESSAGE_REFUSED, .request = request, .error = error };
	assert_int_equal(vb_message_send(client, &no, NULL), 0);
}

static void meet__is_asked_once_until_it_is_answered(void **state)
{
	vb_broker_meet(broker, 7, &here, 9);
	vb_broker_meet(broker, 7, &here, 9);
	struct vb_message meet = hear_one(VB_MESSAGE_MEET);
	assert_int_equal(meet.slot, 7);
	assert_int_equal(meet.introduction.slot, 9);
	assert_true(vb_gid_equal(&meet.gid, &here));
	assert_says_nothing();
	tell(VB_MESSAGE_ALONE, meet.request + 1000); /* nobody's */
	meet.kind = VB_MESSAGE_ALONE;
	assert_int_equal(vb_message_send(client, &meet, NULL), 0);
	await_notices(&alones, 1);
	assert_int_equal(alone.own_slot, 7);
	assert_int_equal(alone.slot, 9);
	assert_int_equal(alone.error, 0);
	assert_true(vb_gid_equal(&alone.gid, &here));
	vb_broker_meet(broker, 7, &here, 9);
	hear_one(VB_MESSAGE_MEET);
}

static void meet__is_asked_again_of_who_forgot(void **state)
{
	const struct vb_gid there = vb_gid_from_ipv4(10, 0, 0, 2);
	vb_broker_meet(broker, 7, &here, 9);
	vb_broker_meet(broker, 7, &there, 9);
	vb_broker_meet(broker, 7, &here, 10);
	for (unsigned i = 0; i < 3; i++)
		hear_one(VB_MESSAGE_MEET);
	tell(VB_MESSAGE_RESTARTED, 0);
	await(VB_MESSAGE_MEET);
	for (unsigned i = 0; i < 2; i++)
		hear_one(VB_MESSAGE_MEET);
	int socket = introduce(7); /* the answer at both addresses */
	await_notices(&introductions, 1);
	close_introduction(socket);
	die();
	listen_as_broker();
	welcome();
	assert_int_equal(await(VB_MESSAGE_MEET).introduction.slot, 10);
	assert_says_nothing();
}

static void meet__that_is_put_off_is_asked_again(void **state)
{
	vb_broker_meet(broker, 7, &here, 9);
	for (unsigned i = 0; i < 5; i++)
		refuse(hear_one(VB_MESSAGE_MEET).request, EAGAIN);
	await_notices(&laters, 5);
	tell(VB_MESSAGE_ALONE, hear_one(VB_MESSAGE_MEET).request);
	await_notices(&alones, 1);
	tell(VB_MESSAGE_RESTARTED, 0);
	await(VB_MESSAGE_LISTEN);
	assert_says_nothing();
	assert_int_equal(atomic_load(&introductions), 0);
}

static void meet__for_a_slot_that_is_given_back_is_forgotten(void **state)
{
	vb_broker_meet(broker, 7, &here, 9);
	hear_one(VB_MESSAGE_MEET);
	vb_broker_release_slot(broker, &slot);
	hear_one(VB_MESSAGE_RELEASE_SLOT);
	tell(VB_MESSAGE_RESTARTED, 0);
	await(VB_MESSAGE_LISTEN);
	assert_says_nothing();
	vb_broker_meet(broker, 7, &here, 9); /* it is nobody's */
	assert_says_nothing();
}

static void introduction__is_the_hearers(void **state)
{
	int socket = introduce(7), byte = 1;
	await_notices(&introductions, 1);
	assert_int_equal(met.own_slot, 7);
	assert_int_equal(met.slot, 9);
	assert_int_equal(met.side, 1);
	assert_true(met.is_same_user);
	assert_int_equal(met.pidfd, -1);
	assert_true(met.memory >= 0);
	assert_int_equal(send(met.socket, &byte, 1, 0), 1);
	assert_int_equal(recv(socket, &byte, 1, 0), 1);
	close_introduction(socket);
}

static void introduction__of_a_slot_that_it_has_not_is_void(void **state)
{
	int socket = introduce(8);
	assert_true(is_at_its_end(socket));
	assert_int_equal(atomic_load(&introductions), 0);
	close(socket);
}

/* A program that has no descriptor left keeps its broker. */
static void introduction__that_a_process_has_no_descriptors_for_is_void(void **state)
{
	struct rlimit before, none = { .rlim_max = 0 };
	int ends[2], next = dup(client);
	const struct vb_message introduction = {
		.kind = VB_MESSAGE_INTRODUCTION, .slot = 7, .introduction = { .slot = 9, .side = 1, .is_same_user = 1 }
	};
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	vb_broker_meet(broker, 7, &here, 9);
	hear_one(VB_MESSAGE_MEET);
	close(next); /* one is free */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_cur = (rlim_t)(next + 1);
	none.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(
		vb_pass_send(client, &introduction, sizeof(introduction), (int[]){ ends[1], ends[1] }, 2, 0), 0);
	close(ends[1]);
	assert_true(is_at_its_end(ends[0]));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	await_notices(&alones, 1); /* it may ask again when it likes */
	assert_int_equal(alone.error, -EMFILE);
	assert_int_equal(atomic_load(&introductions), 0);
	assert_says_nothing();
	close(ends[0]);
}

#define CONNECTED(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

size_t vb_shm_bytes(void); /* port/shm.h knows another struct vb_message */

static void introduction__has_memory_for_the_rings(void **state)
{
	assert_true(VB_INTRODUCTION_BYTES >= vb_shm_bytes());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(introduction__has_memory_for_the_rings),
		cmocka_unit_test(connect__that_is_refused_says_why),
		cmocka_unit_test(disconnect__does_not_wait_for_a_broker_that_is_gone),
		CONNECTED(post__waits_for_nobody),
		CONNECTED(discover__is_never_lost),
		CONNECTED(discover__is_asked_again_of_who_forgot),
		CONNECTED(meet__is_asked_once_until_it_is_answered),
		CONNECTED(meet__is_asked_again_of_who_forgot),
		CONNECTED(meet__that_is_put_off_is_asked_again),
		CONNECTED(meet__for_a_slot_that_is_given_back_is_forgotten),
		CONNECTED(introduction__is_the_hearers),
		CONNECTED(introduction__of_a_slot_that_it_has_not_is_void),
		CONNECTED(introduction__that_a_process_has_no_descriptors_for_is_void),
		CONNECTED(worker__that_forgot_is_told_of_ports_though_it_reads_late),
		CONNECTED(worker__that_forgot_is_told_who_accepts),
		CONNECTED(worker__that_forgot_is_told_after_any_number_of_notices),
		CONNECTED(broker__that_died_is_noticed_by_who_waits_for_its_answer),
		CONNECTED(slot__that_was_refused_is_offered_again),
		CONNECTED(port__that_was_refused_is_asked_for_again),
		CONNECTED(slot__that_nobody_waits_for_is_given_back),
		CONNECTED(bind__that_was_given_up_is_undone),
		CONNECTED(slot__that_cannot_be_passed_hinders_nothing_else),
		CONNECTED(slot__is_given_back_to_whom_it_is_from),
	};
	if (!own_namespace()) {
		print_message("skipped: no network namespace to be had\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
