/* Whoever dies: clients, the worker, the parent, both, in any order; and the broker's own beginning and end. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "host/client/broker.h"
#include "host/protocol.h"

void client__its_death_frees_the_slot_and_disturbs_nobody(void **state)
{
	start_clients_in_order(8);
	uint8_t dead[3] = { clients[0].last.slot, clients[3].last.slot, clients[7].last.slot };
	client_kill(&clients[0]);
	client_kill(&clients[3]);
	client_kill(&clients[7]);
	await_sockets(8); /* two places are kept, for those behind them */
	check_steering();
	start_clients(2);
	await_sockets(8);
	for (unsigned i = 0; i < 3; i++) /* not used again soon */
		assert_true(clients[8].last.slot != dead[i] && clients[9].last.slot != dead[i]);
	check_steering();
}

void worker__killed_is_replaced_and_clients_go_on(void **state)
{
	pid_t parent, worker, next_parent, next_worker;
	start_clients(5);
	for (unsigned i = 0; i < 5; i++) {
		find_both(&parent, &worker);
		kill(worker, SIGKILL);
		check_steering();
		find_both_without(worker, &next_parent, &next_worker);
		assert_int_equal(parent, next_parent);
	}
	start_clients(2);
	check_steering();
	for (unsigned i = 0; i < client_count; i++)
		assert_int_equal(clients[i].last.recoveries, 0);
}

void worker__killed_together_with_clients(void **state)
{
	pid_t parent, worker;
	start_clients(6);
	find_both(&parent, &worker);
	kill(worker, SIGKILL);
	client_kill(&clients[1]);
	client_kill(&clients[4]);
	start_clients(1);
	assert_in_range(count_sockets(), 6, 8); /* two places may be kept, or not even be free yet */
	check_steering();
}

void parent__killed_is_replaced_and_clients_go_on(void **state)
{
	pid_t parent, worker;
	start_clients(5);
	for (unsigned i = 0; i < 5; i++) {
		find_both(&parent, &worker);
		kill(parent, SIGKILL);
		check_steering();
		pid_t killed = parent;
		find_both_without(killed, &parent, &worker);
	}
	start_clients(2);
	check_steering();
	client_kill(&clients[2]);
	check_steering();
	for (unsigned i = 0; i < client_count; i++)
		assert_int_equal(clients[i].last.recoveries, 0);
}

void both__killed_at_once_leave_the_slots_right(void **state)
{
	start_clients_in_order(6);
	client_kill(&clients[5]);
	client_kill(&clients[0]);
	await_sockets(6);
	start_clients(1); /* in the place of the first, so that indices are not those of the first day */
	for (unsigned round = 1; round <= 3; round++) {
		for (unsigned i = 0; i < client_count; i++) /* stopped: nobody recovers yet */
			if (clients[i].pid)
				kill(clients[i].pid, SIGSTOP);
		kill_both();
		assert_true(wait_for_brokers(0, PATIENCE_S));
		await_sockets(5);
		send_to_all(); /* the sockets that are left are where they were */
		for (unsigned i = 0; i < client_count; i++)
			if (clients[i].pid)
				kill(clients[i].pid, SIGCONT);
		collect_all(true);
		wait_for_recoveries(round);
		check_steering();
	}
	start_clients(3);
	check_steering();
}

/* The broker's death opens the place that it kept; whoever moves there is found again. */
void both__killed_with_a_place_kept(void **state)
{
	start_clients_in_order(6);
	client_kill(&clients[1]);
	client_kill(&clients[5]);
	await_sockets(6);
	kill_both();
	wait_for_recoveries(1);
	check_steering();
	start_clients(2);
	check_steering();
}

/* The worker's death does not, for the parent holds it too. */
void worker__killed_with_a_place_kept(void **state)
{
	pid_t parent, worker;
	start_clients_in_order(6);
	client_kill(&clients[1]);
	client_kill(&clients[5]);
	await_sockets(6);
	find_both(&parent, &worker);
	kill(parent, SIGSTOP);
	kill(worker, SIGKILL);
	await_sockets(5);
	send_to_all();
	kill(parent, SIGCONT);
	collect_all(true);
	find_both_without(worker, &parent, &worker);
	start_clients(1);
	check_steering();
	await_sockets(6);
}

void both__killed_with_a_client(void **state)
{
	start_clients(8);
	kill_both();
	client_kill(&clients[0]);
	client_kill(&clients[2]);
	client_kill(&clients[5]);
	double begin = seconds();
	wait_for_recoveries(1);
	print_message("recovered in %.0f ms\n", (seconds() - begin) * 1e3);
	check_steering();
	start_clients(4);
	check_steering();
}

void both__killed_while_a_client_is_stopped(void **state)
{
	start_clients(4);
	kill(clients[1].pid, SIGSTOP);
	kill_both();
	for (unsigned i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		do {
			assert_true(client_do(&clients[i], ORDER_COLLECT));
		} while (clients[i].last.recoveries != 1);
	}
	start_clients(1);
	kill(clients[1].pid, SIGCONT);
	do {
		assert_true(client_do(&clients[1], ORDER_COLLECT));
	} while (clients[1].last.recoveries != 1);
	check_steering();
}

/* Others may come in the meantime, as many as there is room for. */
void both__killed_while_a_client_is_stopped_keep_its_slot(void **state)
{
	char why[256];
	struct vb_broker *broker;
	static struct vb_slot slots[VB_SLOT_MAX];
	unsigned taken = 0;
	start_clients(2);
	kill(clients[1].pid, SIGSTOP);
	kill_both();
	do
		assert_true(client_do(&clients[0], ORDER_COLLECT));
	while (clients[0].last.recoveries != 1);
	assert_int_equal(client_connect(&broker, why, sizeof(why)), 0);
	while (taken < VB_SLOT_MAX && vb_broker_get_slot(broker, 65536, false, &slots[taken], why, sizeof(why)) == 0)
		assert_int_not_equal(slots[taken++].number, clients[1].last.slot);
	assert_int_equal(taken, VB_SLOT_MAX - 2);
	kill(clients[1].pid, SIGCONT);
	for (double until = seconds() + PATIENCE_S; clients[1].last.recoveries != 1; assert_true(seconds() < until))
		assert_true(client_do(&clients[1], ORDER_COLLECT));
	check_steering();
	for (unsigned i = 0; i < taken; i++)
		close(slots[i].fd);
	vb_broker_disconnect(broker);
}

/* Steering is right within a second of the last death: a datagram of a moment ago may have gone astray. */
static void wait_for_right_steering(void)
{
	for (double until = seconds() + PATIENCE_S;; usleep(20000)) {
		bool all = true;
		send_to_all();
		for (unsigned i = 0; i < client_count; i++) {
			if (!clients[i].pid)
				continue;
			assert_true(client_do(&clients[i], ORDER_COLLECT));
			all = all && clients[i].last.good == 2 * ROUNDS && clients[i].last.strays == 0;
		}
		if (all)
			break;
		assert_true(seconds() < until);
	}
	check_steering();
}

void chaos__whoever_dies_the_rest_is_put_right(void **state)
{
	const char *given = getenv("BROKER_TEST_SEED"), *steps_given = getenv("BROKER_TEST_STEPS");
	unsigned seed = given ? (unsigned)atoi(given) : (unsigned)getpid();
	unsigned steps = steps_given ? (unsigned)atoi(steps_given) : 60;
	print_message("BROKER_TEST_SEED=%u\n", seed);
	srandom(seed);
	start_clients(12);
	for (unsigned step = 0; step < steps; step++) {
		pid_t parent, worker;
		unsigned victim = (unsigned)random() % 12;
		find_brokers(&parent, &worker);
		switch (random() % 5) {
		case 0:
			if (worker)
				kill(worker, SIGKILL);
			break;
		case 1:
			if (parent)
				kill(parent, SIGKILL);
			break;
		case 2:
			if (parent) {
				kill(worker, SIGSTOP);
				kill(parent, SIGKILL);
				kill(worker, SIGKILL);
			}
			break;
		default:
			client_kill(&clients[victim]);
			client_start(&clients[victim], 0);
			client_order(&clients[victim], &(struct order){ .kind = ORDER_SLOT });
			assert_true(client_wait(&clients[victim]));
			if (clients[victim].last.rc)
				print_error("step %u: %s\n", step, clients[victim].last.why);
			assert_int_equal(clients[victim].last.rc, 0);
		}
		usleep((useconds_t)random() % 4000);
		if (step % 8 == 7)
			wait_for_right_steering();
	}
	wait_for_right_steering();
	for (double until = seconds() + PATIENCE_S; count_sockets() < 13 && seconds() < until;)
		usleep(2000); /* both brokers may have been the last to die: the next is on its way */
	assert_in_range(count_sockets(), 13, 25); /* places are used again */
}

void broker__leaves_when_nobody_needs_it(void **state)
{
	start_clients(2);
	double begin = seconds();
	client_kill(&clients[0]);
	client_kill(&clients[1]);
	usleep(300000);
	bool is_there = wait_for_brokers(2, 0.1);
	assert_true(is_there ||
		    seconds() > begin + 0.9); /* it is to stay a second, of which others may have had the most */
	assert_true(wait_for_brokers(0, PATIENCE_S));
	await_sockets(0);
}

void broker__twenty_that_start_at_once_share_one(void **state)
{
	for (unsigned round = 0; round < 3; round++) {
		pid_t parent, worker;
		start_clients(20);
		assert_true(wait_for_brokers(2, PATIENCE_S));
		check_steering();
		assert_int_equal(find_brokers(&parent, &worker), 2);
		assert_int_equal(tear_down(state), 0);
	}
}
