#include "flow_reading.h"

static const char serial[] = "Nodes 16\nConnections 4\nTriggers 2\n"
			     "2->11 id 1 start 0 size 2000000 send_done_trigger 1\n"
			     "2->4 id 2 trigger 1 size 2000000 send_done_trigger 2\n"
			     "# the other way\n"
			     "5->6 start 40 size 250000\n"
			     "2->8 id 3 trigger 2 size 2000000\n"
			     "trigger id 1 oneshot\ntrigger id 2 multishot";

static void flows__are_read(void **state)
{
	accepted("Nodes 16\nConnections 2\n0->13 start 0 size 2000000\n13->0 id 7 start 12 size 5\n\n", 2);
	is_flow(0, 0, 13, 2000000, 0, FLOW_NONE);
	is_flow(1, 13, 0, 5, 12, FLOW_NONE);
	accepted("3->4 start 0 size 5\n", 1); /* nor is a head needed */
}

static void triggers__make_flows_wait(void **state)
{
	accepted("0->1 start 0 size 1\n", 1); /* numbers of flows begin behind those that were there */
	accepted(serial, 4);
	is_flow(1, 2, 11, 2000000, 0, FLOW_NONE);
	is_flow(2, 2, 4, 2000000, 0, 1);
	is_flow(3, 5, 6, 250000, 40, FLOW_NONE);
	is_flow(4, 2, 8, 2000000, 0, 2);
}

static void trigger__may_start_several_and_be_named_before_it_is_fired(void **state)
{
	accepted(
		"1->2 id 1 trigger 9 size 5\n1->3 id 2 trigger 9 size 6\n1->4 id 3 start 7 size 8 send_done_trigger 9\n"
		"trigger id 9 barrier count 1\n",
		3);
	is_flow(0, 1, 2, 5, 0, 2);
	is_flow(1, 1, 3, 6, 0, 2);
}

static void waits(uint32_t flow, uint32_t before, enum flow_event event)
{
	for (uint32_t i = 0; i < list.wait_count; i++)
		if (list.waits[i].flow == flow && list.waits[i].before == before && list.waits[i].event == event)
			return;
	fail_msg("flow %u does not wait for flow %u", flow, before);
}

static bool is_noted(const char *part)
{
	for (unsigned i = 0; i < list.note_count; i++)
		if (strstr(list.notes[i], part))
			return true;
	return false;
}

static void trigger__is_heard_of_by_the_receiver(void **state)
{
	accepted("1->2 start 0 size 5 recv_done_trigger 1\n2->3 trigger 1 size 5\ntrigger id 1 oneshot\n", 2);
	waits(1, 0, FLOW_ARRIVED);
	assert_int_equal(list.note_count, 0);
	accepted("1->2 start 0 size 5 send_done_trigger 1\n2->3 trigger 1 size 5\ntrigger id 1 oneshot\n", 2);
	waits(3, 2, FLOW_ARRIVED);
	assert_true(is_noted("send_done_trigger begins when the message is there, before its sender knows"));
	accepted("1->2 start 0 size 5 recv_done_trigger 1\n1->3 trigger 1 size 5\ntrigger id 1 oneshot\n", 2);
	waits(5, 4, FLOW_ENDED);
	assert_true(is_noted("recv_done_trigger begins when the acknowledgement is there"));
}

static void barrier__is_waited_for_by_all(void **state)
{
	accepted("1->0 start 0 size 5 recv_done_trigger 3\n2->0 start 9 size 5 recv_done_trigger 3\n"
		 "0->4 start 0 size 5 send_done_trigger 3\n0->1 trigger 3 size 6\n0->2 trigger 3 size 7\n"
		 "trigger id 3 barrier count 3\n",
		5);
	for (uint32_t flow = 3; flow < 5; flow++) {
		assert_int_equal(list.flows[flow].waits, 3);
		assert_int_equal(list.flows[flow].spare, 0);
		waits(flow, 0, FLOW_ARRIVED);
		waits(flow, 1, FLOW_ARRIVED);
		waits(flow, 2, FLOW_ENDED);
	}
}

/* As gen_serialn_alltoall.py of htsim writes it: so many flows of a source are under way. */
static void multishot__begins_one_flow_each_time(void **state)
{
	accepted("1->0 start 0 size 5 send_done_trigger 3\n1->2 start 0 size 5 send_done_trigger 3\n"
		 "1->4 start 0 size 5 send_done_trigger 3\n1->5 trigger 3 size 6 prio 2\n1->6 trigger 3 size 7\n"
		 "trigger id 3 multishot\n",
		5);
	for (uint32_t flow = 3; flow < 5; flow++) {
		assert_int_equal(list.flows[flow].waits, 3);
		assert_int_equal(list.flows[flow].spare, 5 - flow);
	}
	assert_true(is_noted("prio is ignored"));
	assert_int_equal(list.note_count, 1);
	/* Each but the first is begun by the one before, with one trigger. */
	accepted("1->0 start 0 size 5 send_done_trigger 3\n1->2 trigger 3 size 5 send_done_trigger 3\n"
		 "1->4 trigger 3 size 5 send_done_trigger 3\ntrigger id 3 multishot\n",
		3);
	assert_int_equal(list.flows[6].waits, 2);
	assert_int_equal(list.flows[6].spare, 1);
	assert_int_equal(list.flows[7].waits, 2);
	assert_int_equal(list.flows[7].spare, 0);
	assert_int_equal(flow_list_check(&list, 16, why, sizeof(why)), 0);
}

/* gen_allreduce.py of htsim: from each of its ranks a message goes round, 2 n - 1 times. */
static void ring__of_an_allreduce_is_read(void **state)
{
	enum { RANKS = 4, STEPS = 2 * RANKS - 1 };
	char text[4000];
	int length =
		sprintf(text, "Nodes %d\nConnections %d\nTriggers %d\n", RANKS, RANKS * STEPS, RANKS * (STEPS - 1));
	for (int i = 0, trigger = 0; i < RANKS * STEPS; i++) {
		const int at = i / STEPS + i % STEPS;
		length += sprintf(text + length, "%d->%d id %d ", at % RANKS, (at + 1) % RANKS, i + 1);
		length += i % STEPS ? sprintf(text + length, "trigger %d", trigger) : sprintf(text + length, "start 0");
		length += sprintf(text + length, " size 2000000");
		if (i % STEPS < STEPS - 1)
			length += sprintf(text + length, " send_done_trigger %d", ++trigger);
		length += sprintf(text + length, "\n");
	}
	for (int i = 1; i <= RANKS * (STEPS - 1); i++)
		length += sprintf(text + length, "trigger id %d oneshot\n", i);
	accepted(text, RANKS * STEPS);
	assert_int_equal(list.wait_count, RANKS * (STEPS - 1));
	waits(1, 0, FLOW_ARRIVED);
	waits(27, 26, FLOW_ARRIVED);
	assert_int_equal(flow_list_check(&list, RANKS, why, sizeof(why)), 0);
}

static void messages__of_a_connection_are_flows(void **state)
{
	accepted("Nodes 2\nConnections 2\nTriggers 0\n0->1 id 1 msg start 0 size 40860\n0->1 id 1 msg start 0 size "
		 "40860\n",
		2);
	is_flow(1, 0, 1, 40860, 0, FLOW_NONE);
	accepted("0->1 id 1 msg 4 start 0 size 5\n0->1 id 1 msg 5 start 0 size 6\n", 2);
	is_flow(3, 0, 1, 6, 0, FLOW_NONE);
	refused("0->1 id 1 msg 0 start 0 size 5\n", "f:1: msg needs a number from 1 on, or none");
}

static void lines__that_are_wrong_are_named(void **state)
{
	refused("Knots 16\n", "f:1: Knots is no flow: expected src->dst");
	refused("Nodes x\n", "f:1: expected a name and a number");
	refused("Nodes 16\n1-2 start 0 size 1\n", "f:2: 1-2 is no flow: expected src->dst");
	refused("Nodes 16\n1- start 0 size 1\n", "f:2: 1- is no flow: expected src->dst");
	refused("1->2\n", "f:1: a flow needs a size, and either a start or a trigger");
	refused("1->2 size 4\n", "f:1: a flow needs a size, and either a start or a trigger");
	refused("1->2 size 4 start 0 trigger 1\n", "f:1: a flow needs a size, and either a start or a trigger");
	refused("1->2 size 4 size 4\n", "f:1: size twice");
	refused("1->2 size 0 start 0\n", "f:1: size needs a number from 1 on");
	refused("1->2 size 4 start\n", "f:1: start needs a number from 0 on");
	refused("1->2 size 4 start -1\n", "f:1: start needs a number from 0 on");
	refused("1->2 size 4 start 0 prio x\n", "f:1: prio needs a number from 0 on");
	refused("1->2 size 4 start 0 addon\n", "f:1: addon of a flow is not supported");
	refused("1->2 size 4 start 0 recv_done_trigger 0\n", "f:1: recv_done_trigger needs a number from 1 on");
	refused("failure switch_type TOR switch_id 1 link_id 2\n",
		"f:1: a failed link is no flow: the network has it, in network.faults");
	refused("1->16 size 4 start 0\n", "f:1: endpoint 16, yet the network's are 0 to 15");
	refused("trigger id 1\n", "f:1: a trigger needs an id from 1 on, and oneshot, multishot or barrier");
	refused("trigger oneshot\n", "f:1: a trigger needs an id from 1 on, and oneshot, multishot or barrier");
	refused("trigger id 1 once\n", "f:1: once of a trigger is not known");
	refused("trigger id 1 barrier\n", "f:1: a barrier needs a count from 1 on, and other triggers have none");
	refused("trigger id 1 barrier count 0\n",
		"f:1: a barrier needs a count from 1 on, and other triggers have none");
	refused("trigger id 1 oneshot count 2\n",
		"f:1: a barrier needs a count from 1 on, and other triggers have none");
}

/* A file whose head and lines differ was cut short, or joined from two. */
static void counts__that_are_false_are_refused(void **state)
{
	refused("Nodes 16\nConnections 2\n0->13 start 0 size 2\n", "f:2: Connections 2, yet there are 1");
	refused("Connections 1\n0->13 start 0 size 2\n1->13 start 0 size 2\n", "f:1: Connections 1, yet there are 2");
	refused("Triggers 2\n0->1 id 1 start 0 size 1 send_done_trigger 1\n0->2 id 2 trigger 1 size 1\ntrigger id 1 "
		"oneshot\n",
		"f:1: Triggers 2, yet there are 1");
	refused("Nodes 17\n0->1 start 0 size 1\n", "f:1: 17 nodes, yet the network has 16 endpoints");
	refused("Nodes 4\n0->4 start 0 size 1\n", "f:1: Nodes 4, yet a flow names node 4, counted from 0");
	refused("Nodes 4\nNodes 4\n0->1 start 0 size 1\n", "f:2: Nodes twice");
	refused("Nodes 4\nFailures 2\n0->1 start 0 size 1\n", "f:2: Failures 2, yet there are 0");
	accepted("Failures 0\n0->1 start 0 size 1\n", 1);
	accepted("Connections 1\n0->1 start 0 size 1\n", 1); /* others are in the list already */
}

static void ids__of_two_are_refused(void **state)
{
	refused("0->1 id 3 start 0 size 1\n0->2 id 4 start 0 size 1\n\n0->3 id 3 start 0 size 1\n",
		"f:4: id 3 is that of the flow in line 1, too");
	refused("0->1 id 3 msg start 0 size 1\n0->2 id 3 msg start 0 size 1\n",
		"f:2: id 3 is that of the flow in line 1, too");
	refused("0->1 id 3 msg start 0 size 1\n0->1 id 3 start 0 size 1\n",
		"f:2: id 3 is that of the flow in line 1, too");
	refused("0->1 id 1 start 0 size 1 send_done_trigger 3\n0->1 id 3 trigger 3 size 1\ntrigger id 3 "
		"oneshot\ntrigger id 3 "
		"oneshot\n",
		"f:4: id 3 is that of the trigger in line 3, too");
}

static void triggers__that_a_flow_cannot_wait_for_are_refused(void **state)
{
	static const char two[] = "1->2 start 0 size 4 send_done_trigger 5\n1->3 start 0 size 4 send_done_trigger 5\n"
				  "1->4 trigger 5 size 4\n1->4 trigger 5 size 4\n1->4 trigger 5 size 4\n";
	char text[400];
	refused("1->2 trigger 5 size 4\n", "f:1: no line says what trigger 5 is");
	refused("1->2 start 0 size 4 recv_done_trigger 5\n", "f:1: no line says what trigger 5 is");
	refused("1->2 trigger 5 size 4\ntrigger id 5 oneshot\n", "f:1: nothing fires trigger 5");
	sprintf(text, "%strigger id 5 oneshot\n", two);
	refused(text, "f:3: 2 flows fire trigger 5, which is a oneshot");
	sprintf(text, "%strigger id 5 barrier count 3\n", two);
	refused(text, "f:3: 2 flows fire trigger 5, which is a barrier of 3");
	sprintf(text, "%strigger id 5 multishot\n", two);
	refused(text, "f:3: 2 flows fire trigger 5, a multishot, and 3 wait for it: one each");
	refused("1->2 start 0 size 4 send_done_trigger 5\n3->2 trigger 5 size 4\ntrigger id 5 oneshot\n",
		"f:2: trigger 5 of flow 1->2 lets a flow of endpoint 3 begin: news of it would have to cross the "
		"network "
		"(htsim's does so in no time)");
	refused("1->2 trigger 6 size 4 send_done_trigger 5\n1->3 trigger 5 size 4 send_done_trigger 6\n"
		"trigger id 5 oneshot\ntrigger id 6 oneshot\n",
		"f:1: flows that wait for each other");
	refused("1->2 trigger 5 size 4 send_done_trigger 5\ntrigger id 5 oneshot\n",
		"f:1: flows that wait for each other");
	refused("1->2 trigger 5 size 4 send_done_trigger 5\ntrigger id 5 multishot\n",
		"f:1: trigger 5 fires 0 times before this flow, which is number 1");
}

static void bytes__of_any_kind_are_survived(void **state)
{
	survived(serial);
	survived("1->0 start 0 size 5 send_done_trigger 3\n1->2 start 0 size 5 recv_done_trigger 3\n"
		 "1->5 trigger 3 size 6 prio 2\n1->6 trigger 3 size 7\ntrigger id 3 multishot\n"
		 "trigger id 4 barrier count 1\nFailures 0\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flows__are_read),
		TEST(triggers__make_flows_wait),
		TEST(trigger__may_start_several_and_be_named_before_it_is_fired),
		TEST(trigger__is_heard_of_by_the_receiver),
		TEST(barrier__is_waited_for_by_all),
		TEST(multishot__begins_one_flow_each_time),
		TEST(ring__of_an_allreduce_is_read),
		TEST(messages__of_a_connection_are_flows),
		TEST(lines__that_are_wrong_are_named),
		TEST(counts__that_are_false_are_refused),
		TEST(ids__of_two_are_refused),
		TEST(triggers__that_a_flow_cannot_wait_for_are_refused),
		TEST(bytes__of_any_kind_are_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
