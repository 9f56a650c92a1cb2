/* A local peer's states: which may follow which, what each waits for, and that a change against the rules is found. */
#include "../unit.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "host/peers/host_peer.h"

#define NOW (1000 * VB_S)

static const char *const names[VB_PEER_STATES] = { [VB_PEER_IDLE] = "idle",
	[VB_PEER_ASKED] = "asked",
	[VB_PEER_UNWILLING] = "unwilling",
	[VB_PEER_INTRODUCED] = "introduced",
	[VB_PEER_READY] = "ready",
	[VB_PEER_CLOSING] = "closing" };

/* from, to, and what leads there */
static const struct {
	enum vb_host_peer_state from, to;
	const char *by;
} legal[] = {
	{ VB_PEER_IDLE, VB_PEER_ASKED, "wanted, or a QP connected to a peer that let go" },
	{ VB_PEER_IDLE, VB_PEER_INTRODUCED, "an introduction that the peer asked for; the lane itself" },
	{ VB_PEER_ASKED, VB_PEER_IDLE, "the broker: alone; a refusal of ours" },
	{ VB_PEER_ASKED, VB_PEER_UNWILLING, "the broker: the peer has not asked" },
	{ VB_PEER_ASKED, VB_PEER_INTRODUCED, "the introduction" },
	{ VB_PEER_UNWILLING, VB_PEER_IDLE, "the broker: alone; a refusal of ours" },
	{ VB_PEER_UNWILLING, VB_PEER_ASKED, "the broker has ended" },
	{ VB_PEER_UNWILLING, VB_PEER_INTRODUCED, "the introduction" },
	{ VB_PEER_INTRODUCED, VB_PEER_IDLE, "a refusal; no QP wants it" },
	{ VB_PEER_INTRODUCED, VB_PEER_ASKED, "the introduction was void" },
	{ VB_PEER_INTRODUCED, VB_PEER_READY, "its HELLO" },
	{ VB_PEER_READY, VB_PEER_IDLE, "either let go" },
	{ VB_PEER_READY, VB_PEER_CLOSING, "its end" },
	{ VB_PEER_CLOSING, VB_PEER_IDLE, "the deadline; a new process in its slot" },
};

static bool is_legal(unsigned from, unsigned to)
{
	for (size_t i = 0; i < sizeof(legal) / sizeof(*legal); i++)
		if (legal[i].from == from && legal[i].to == to)
			return true;
	return false;
}

static void states__follow_each_other_as_listed(void **state)
{
	for (unsigned from = 0; from < VB_PEER_STATES; from++)
		for (unsigned to = 0; to < VB_PEER_STATES; to++)
			if (vb_host_peer_may_become(from, to) != is_legal(from, to))
				fail_msg("%s -> %s", names[from], names[to]);
}

/* ---- Deadlines --------------------------------------------------------------------------------------------------- */

static vb_time lasts(enum vb_host_peer_state state, bool is_awaited)
{
	const struct vb_host_peer peer = { .state = state, .is_awaited = is_awaited, .since = NOW };
	const struct vb_deadline deadline = vb_host_peer_deadline(&peer);

	return deadline.is_set ? deadline.at - NOW : 0;
}

static void deadlines__are_the_waits_of_qps(void **state)
{
	assert_int_equal(lasts(VB_PEER_ASKED, true), 10 * VB_S);
	assert_int_equal(lasts(VB_PEER_UNWILLING, true), 3 * VB_S);
	assert_int_equal(lasts(VB_PEER_INTRODUCED, true), 10 * VB_S);
	for (unsigned waiting = VB_PEER_ASKED; waiting <= VB_PEER_INTRODUCED; waiting++)
		assert_int_equal(lasts(waiting, false), 0);
}

static void deadlines__are_of_closing_too_and_of_nothing_else(void **state)
{
	assert_int_equal(lasts(VB_PEER_CLOSING, false), 500 * VB_MS);
	assert_int_equal(lasts(VB_PEER_IDLE, false), 0);
	assert_int_equal(lasts(VB_PEER_READY, false), 0);
}

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

static struct vb_host_peers all;

static struct vb_host_peer *peer_of(uint8_t slot)
{
	vb_list_init(&all.connected);
	struct vb_host_peer *peer = vb_host_peer_get(&all, slot);
	assert_non_null(peer);
	return peer;
}

static void forget(struct vb_host_peer *peer)
{
	all.by_slot[peer->slot] = NULL;
	free(peer);
	memset(&all, 0, sizeof(all));
}

static void peer__is_made_once_and_idle(void **state)
{
	struct vb_host_peer *peer = peer_of(7);

	assert_ptr_equal(vb_host_peer_get(&all, 7), peer);
	assert_int_equal(peer->state, VB_PEER_IDLE);
	assert_false(vb_host_peer_is_connected(peer) || vb_host_peer_is_ready(peer));
	assert_int_equal(peer->bell, -1); /* a forked child may look at any time */
	assert_int_equal(peer->pidfd, -1);
	forget(peer);
}

/* As vb_host_peer_connect leaves it. */
static void connect_in_name(struct vb_host_peer *peer)
{
	peer->shm = (struct vb_shm *)&all;
	vb_list_add_tail(&all.connected, &peer->link);
	vb_host_peer_become(peer, VB_PEER_INTRODUCED);
}

static void changes__keep_count_of_waits(void **state)
{
	struct vb_host_peer *peer = peer_of(7);

	vb_host_peer_become(peer, VB_PEER_ASKED);
	vb_host_peer_await(peer, NOW);
	vb_host_peer_await(peer, NOW + VB_S); /* the first wait counts */
	assert_int_equal(all.awaited_count, 1);
	assert_int_equal(vb_host_peer_deadline(peer).at, NOW + 10 * VB_S);
	vb_host_peer_become(peer, VB_PEER_UNWILLING);
	assert_int_equal(vb_host_peer_deadline(peer).at, NOW + 3 * VB_S);
	vb_host_peer_become(peer, VB_PEER_ASKED); /* that broker has ended */
	connect_in_name(peer);
	assert_true(peer->is_awaited);
	vb_host_peer_answer(peer, &peer->engine);
	assert_int_equal(all.awaited_count, 0);
	vb_host_peer_become(peer, VB_PEER_READY);
	assert_int_equal(all.closing_count, 0);
	vb_host_peer_become(peer, VB_PEER_CLOSING);
	assert_int_equal(all.closing_count, 1);
	peer->shm = NULL;
	vb_list_remove(&peer->link);
	vb_host_peer_become(peer, VB_PEER_IDLE);
	assert_int_equal(all.closing_count, 0);
	forget(peer);
}

static void broker__is_silent_for_ten_seconds_before_it_counts(void **state)
{
	struct vb_host_peers lane = { 0 };

	assert_true(vb_host_peers_broker_is_silent(&lane, NOW));
	vb_host_peers_hear_broker(&lane, NOW);
	assert_false(vb_host_peers_broker_is_silent(&lane, NOW + 9 * VB_S));
	assert_true(vb_host_peers_broker_is_silent(&lane, NOW + 10 * VB_S));
}

/* ---- Rules that are broken --------------------------------------------------------------------------------------- */

static void skip_a_state(struct vb_host_peer *peer)
{
	vb_host_peer_become(peer, VB_PEER_READY);
}

static void connect_without_memory(struct vb_host_peer *peer)
{
	vb_host_peer_become(peer, VB_PEER_INTRODUCED);
}

static void wait_in_idle(struct vb_host_peer *peer)
{
	vb_host_peer_await(peer, NOW);
}

static void close_with_a_socket(struct vb_host_peer *peer)
{
	connect_in_name(peer);
	vb_host_peer_become(peer, VB_PEER_READY);
	peer->bell = 0;
	vb_host_peer_become(peer, VB_PEER_CLOSING);
}

static bool aborts(void (*act)(struct vb_host_peer *peer))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		act(peer_of(7));
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void rules__that_are_broken_are_found(void **state)
{
	assert_true(aborts(skip_a_state));
	assert_true(aborts(connect_without_memory));
	assert_true(aborts(wait_in_idle));
	assert_true(aborts(close_with_a_socket));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states__follow_each_other_as_listed),
		cmocka_unit_test(deadlines__are_the_waits_of_qps),
		cmocka_unit_test(deadlines__are_of_closing_too_and_of_nothing_else),
		cmocka_unit_test(peer__is_made_once_and_idle),
		cmocka_unit_test(changes__keep_count_of_waits),
		cmocka_unit_test(broker__is_silent_for_ten_seconds_before_it_counts),
		cmocka_unit_test(rules__that_are_broken_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
