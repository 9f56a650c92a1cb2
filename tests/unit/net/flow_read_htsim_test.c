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

static void messages__of_a_connection_are_flows(void **state)
{
	accepted("Nodes 2\nConnections 2\nTriggers 0\n0->1 id 1 msg start 0 size 40860\n0->1 id 1 msg start 0 size "
		 "40860\n",
		2);
	is_flow(1, 0, 1, 40860, 0, FLOW_NONE);
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
	refused("1->2 size 4 start 0 prio 3\n", "f:1: prio of a flow is not supported");
	refused("1->2 size 4 start 0 recv_done_trigger 3\n", "f:1: recv_done_trigger of a flow is not supported");
	refused("1->16 size 4 start 0\n", "f:1: endpoint 16, yet the network's are 0 to 15");
	refused("trigger id 1\n", "f:1: a trigger needs an id from 1 on, and oneshot, multishot or barrier");
	refused("trigger oneshot\n", "f:1: a trigger needs an id from 1 on, and oneshot, multishot or barrier");
	refused("trigger id 1 once\n", "f:1: once of a trigger is not known");
	refused("trigger id 1 barrier count 3\n", "f:1: a barrier of 3: a flow can wait for one other alone");
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
	accepted("0->1 start 0 size 1\n", 1);
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
	refused("1->2 trigger 5 size 4\n", "f:1: nothing fires trigger 5");
	refused("1->2 start 0 size 4 send_done_trigger 5\n1->3 start 0 size 4 send_done_trigger 5\n\n1->4 trigger 5 "
		"size 4\n",
		"f:4: 2 flows fire trigger 5: a flow can wait for one other alone");
	refused("1->2 start 0 size 4 send_done_trigger 5\n2->3 trigger 5 size 4\n",
		"f:2: trigger 5 is fired by endpoint 1: a flow can wait for one of its own source alone");
	refused("1->2 trigger 6 size 4 send_done_trigger 5\n1->3 trigger 5 size 4 send_done_trigger 6\n",
		"f:1: flows that wait for each other");
	refused("1->2 trigger 5 size 4 send_done_trigger 5\n", "f:1: flows that wait for each other");
}

static void bytes__of_any_kind_are_survived(void **state)
{
	survived(serial);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flows__are_read),
		TEST(triggers__make_flows_wait),
		TEST(trigger__may_start_several_and_be_named_before_it_is_fired),
		TEST(messages__of_a_connection_are_flows),
		TEST(lines__that_are_wrong_are_named),
		TEST(counts__that_are_false_are_refused),
		TEST(ids__of_two_are_refused),
		TEST(triggers__that_a_flow_cannot_wait_for_are_refused),
		TEST(bytes__of_any_kind_are_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
