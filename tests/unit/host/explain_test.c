/* The line that explains a dead queue pair. */
#include <errno.h>
#include "../unit.h"
#include "host/report/explain.h"
#include "host/report/text.h"

static char line[512];

static struct vb_death death_of(enum vb_cause_kind kind)
{
	return (struct vb_death){ .device = "vb_eth0",
		.type = VB_QP_RC,
		.qpn = 0x10042,
		.dest_qpn = 0x1a2,
		.peer = vb_gid_from_ipv4(10, 0, 0, 2),
		.cause = { .kind = kind, .tries = 7, .stuck_for = 4100 * VB_MS } };
}

static void explain__peer_never_heard(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_RETRY_EXCEEDED);

	vb_explain(&death, line, sizeof(line));
	assert_string_equal(line,
		"vb_eth0 qpn 0x10042: retry exceeded: 7 tries in 4.1 s to 10.0.0.2 qpn 0x1a2, never heard "
		"from it; is it running, is UDP 4791 open?");
}

static void explain__peer_gone_silent(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_RETRY_EXCEEDED);

	death.cause.was_heard = true;
	death.cause.silent_for = 5 * VB_S;
	death.cause.largest_acked = 4128;
	death.cause.stuck_wire_bytes = 4128;
	vb_explain(&death, line, sizeof(line));
	assert_non_null(strstr(line, "last heard from it 5.0 s ago"));
	assert_null(strstr(line, "MTU"));
}

/* Its broker was asked when it fell silent, and has answered before the last retry. */
static void explain__death_says_how_the_peers_process_is(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_RETRY_EXCEEDED);

	death.cause.was_heard = true;
	death.cause.silent_for = 5 * VB_S;
	death.process = VB_PROCESS_STOPPED;
	vb_explain(&death, line, sizeof(line));
	assert_non_null(
		strstr(line, "last heard from it 5.0 s ago; its process is stopped there, by a signal or a debugger"));
	death.process = VB_PROCESS_GONE;
	vb_explain(&death, line, sizeof(line));
	assert_non_null(strstr(line, "last heard from it 5.0 s ago; its process has ended"));
	death.process = VB_PROCESS_NOT_TOLD;
	death.has_no_carrier = true;
	vb_explain(&death, line, sizeof(line));
	assert_non_null(strstr(line, "; has it ended or been cut off?; vb_eth0 has no carrier"));
}

static void explain__process_that_is_stopped(void **state)
{
	struct vb_discovery answer = { .is_response = true, .qpn = 0x1a2, .process = VB_PROCESS_STOPPED };
	struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 2);

	assert_true(vb_explain_process(&answer, &peer, line, sizeof(line)));
	assert_string_equal(line, "10.0.0.2 qpn 0x1a2: its process is stopped there, by a signal or a debugger, and "
				  "answers nothing until it goes on");
	answer.process = VB_PROCESS_GONE;
	assert_true(vb_explain_process(&answer, &peer, line, sizeof(line)));
	assert_string_equal(line, "10.0.0.2 qpn 0x1a2: its process has ended");
	answer.process = VB_PROCESS_RUNS;
	assert_false(vb_explain_process(&answer, &peer, line, sizeof(line)));
}

static void explain__question_that_did_not_arrive(void **state)
{
	struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 2);

	vb_explain_unasked(0x1a2, &peer, -ECONNREFUSED, line, sizeof(line));
	assert_string_equal(line, "10.0.0.2 qpn 0x1a2: UDP 4791 is closed there now: its process has ended, unless a "
				  "firewall refuses");
	vb_explain_unasked(0x1a2, &peer, -EHOSTUNREACH, line, sizeof(line));
	assert_string_equal(line, "10.0.0.2 qpn 0x1a2: its host cannot be reached any more (No route to host)");
}

static void explain__move_says_why_and_by_which_interface(void **state)
{
	struct vb_qp_account account = { .qpn = 0x10042, .peer = vb_gid_from_ipv4(10, 0, 0, 2) };

	account.moves.from = vb_gid_from_ipv4(10, 1, 0, 1);
	account.moves.to = vb_gid_from_ipv4(10, 1, 0, 2);
	account.moves.is_away = true;
	vb_explain_move(&account, "eth1", line, sizeof(line));
	assert_string_equal(line, "qp 0x10042: peer 10.0.0.2 does not answer on its own path, so it goes on from "
				  "10.1.0.1 to 10.1.0.2 by eth1");
	account.moves.is_with_peer = true;
	vb_explain_move(&account, "eth1", line, sizeof(line));
	assert_non_null(strstr(line, "peer 10.0.0.2 has left its own path, so it goes on"));
	account.moves.is_away = false;
	vb_explain_move(&account, "eth1", line, sizeof(line));
	assert_string_equal(line, "qp 0x10042: back on its own path, 10.1.0.1 to 10.1.0.2 by eth1");
}

static void explain__move_says_of_a_second_link_that_it_is_used_or_lost(void **state)
{
	struct vb_qp_account account = { .qpn = 0x10042,
		.moves = { .second_from = vb_gid_from_ipv4(10, 1, 0, 1),
			.second_to = vb_gid_from_ipv4(10, 1, 0, 2),
			.is_of_second = true } };

	vb_explain_move(&account, "eth1", line, sizeof(line));
	assert_string_equal(line, "qp 0x10042: what it sends is lost from 10.1.0.1 to 10.1.0.2 by eth1, so it sends by "
				  "its own link alone until that answers");
	account.moves.has_second = true;
	vb_explain_move(&account, "eth1", line, sizeof(line));
	assert_string_equal(line, "qp 0x10042: sends by a second link, too, from 10.1.0.1 to 10.1.0.2 by eth1");
}

static void explain__only_full_size_packets_vanish(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_RETRY_EXCEEDED);

	death.cause.was_heard = true;
	death.cause.largest_acked = 84;
	death.cause.stuck_wire_bytes = 4128;
	vb_explain(&death, line, sizeof(line));
	assert_non_null(strstr(line, "packets of 4128 bytes vanish while 84 bytes get through"));
	assert_non_null(strstr(line, "MTU"));
	assert_null(strstr(line, "rmem_max"));
}

static void explain__own_buffer_overflowed(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_RETRY_EXCEEDED);

	death.overflows = 31;
	death.receive_buffer = 425984;
	vb_explain(&death, line, sizeof(line));
	assert_non_null(strstr(line, "425984 bytes) overflowed 31 times"));
	assert_non_null(strstr(line, "net.core.rmem_max"));
}

static void explain__refusal_names_the_peer(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_NAK_REMOTE_ACCESS);

	vb_explain(&death, line, sizeof(line));
	assert_non_null(strstr(line, vb_cause_text(VB_CAUSE_NAK_REMOTE_ACCESS)));
	assert_non_null(strstr(line, "peer 10.0.0.2 qpn 0x1a2"));
	assert_null(strstr(line, "tries"));
}

static void explain__refused_access_is_described(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_REMOTE_BAD_RKEY);

	death.cause.access.what = "READ";
	death.cause.access.addr = 0x7f00dead;
	death.cause.access.rkey = 0x1234;
	death.cause.access.length = 4096;
	vb_explain(&death, line, sizeof(line));
	assert_non_null(strstr(line, "it was a READ of 4096 bytes at 0x7f00dead with rkey 0x1234"));
	assert_null(strstr(line, "UCX"));
}

static void explain__flush_of_ucx(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_NAK_REMOTE_ACCESS);

	death.cause.access.what = "READ";
	death.cause.access.rkey = 0xff;
	death.cause.access.length = 8;
	vb_explain(&death, line, sizeof(line));
	assert_non_null(strstr(line, "set UCX_FENCE_MODE=weak"));
}

static void explain__datagram_has_no_peer(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_LOCAL_SGE);

	death.type = VB_QP_UD;
	vb_explain(&death, line, sizeof(line));
	assert_null(strstr(line, "10.0.0.2"));
}

static void explain__never_beyond_its_room(void **state)
{
	struct vb_death death = death_of(VB_CAUSE_RETRY_EXCEEDED);

	for (size_t size = 1; size < 200; size++) {
		memset(line, 'x', sizeof(line));
		vb_explain(&death, line, size);
		assert_true(strlen(line) < size);
		assert_int_equal(line[size], 'x');
	}
}

static void text__numbers_and_addresses(void **state)
{
	char text[VB_TEXT_GID];
	struct vb_gid link_local = { { 0xfe, 0x80, [15] = 1 } };

	assert_string_equal(vb_text_gid(&link_local, text), "fe80::1");
	assert_string_equal(vb_text_bytes(12340000000u, text, sizeof(text)), "12 GB");
	assert_string_equal(vb_text_bytes(1234, text, sizeof(text)), "1.2 kB");
	assert_string_equal(vb_text_bytes(7, text, sizeof(text)), "7 bytes");
	assert_string_equal(vb_text_span(4100 * VB_MS, text, sizeof(text)), "4.1 s");
	assert_string_equal(vb_text_span(20 * VB_US, text, sizeof(text)), "20 us");
	assert_string_equal(vb_text_span(-1, text, sizeof(text)), "0 ns");
}

static void unreachable__says_whether_the_host_or_its_port_was_not_there(void **state)
{
	struct vb_gid peer = vb_gid_from_ipv4(10, 0, 0, 9);
	struct vb_cm_event event = {
		.kind = VB_CM_EVENT_UNREACHABLE, .tries = 16, .service_id = vb_cm_service_id(VB_CM_PS_TCP, 7471)
	};

	vb_explain_unreachable(&event, &peer, line, sizeof(line));
	assert_string_equal(line,
		"connection to 10.0.0.9 port 7471: asked 16 times, never answered; does its program run, is UDP "
		"4791 open both ways?");
	event.error = -EHOSTUNREACH;
	vb_explain_unreachable(&event, &peer, line, sizeof(line));
	assert_string_equal(line,
		"connection to 10.0.0.9 port 7471: the host cannot be reached (No route to host); is the "
		"address right, is the host up, does a firewall refuse UDP 4791?");
	event.error = -ECONNREFUSED;
	vb_explain_unreachable(&event, &peer, line, sizeof(line));
	assert_non_null(strstr(line, "UDP 4791 is closed there"));
	event.is_of_reply = true;
	vb_explain_unreachable(&event, &peer, line, sizeof(line));
	assert_non_null(strstr(line, "connection from 10.0.0.9 to our port 7471: accepted 16 times, never confirmed"));
	event.error = -ENOBUFS;
	vb_explain_unreachable(&event, &peer, line, sizeof(line));
	assert_non_null(strstr(line, "to our port 7471: given up because too many wait"));
}

static void mtu__says_who_carries_what(void **state)
{
	struct vb_mtu_refusal refusal = { .local = vb_gid_from_ipv4(10, 0, 0, 1),
		.remote = vb_gid_from_ipv4(10, 0, 0, 2),
		.port = 7471,
		.wanted = 4096,
		.carried = 1024,
		.is_ours = true };

	vb_explain_mtu(&refusal, line, sizeof(line));
	assert_string_equal(line, "connection from 10.0.0.2 to our port 7471: refused, it wants path MTU 4096 and our "
				  "10.0.0.1 carries 1024; make the interfaces' MTU equal");
	refusal.is_ours = false;
	vb_explain_mtu(&refusal, line, sizeof(line));
	assert_string_equal(line,
		"connection to 10.0.0.2 port 7471: refused, our 10.0.0.1 has a larger path MTU than the "
		"1024 it carries; make the interfaces' MTU equal");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(explain__peer_never_heard),
		cmocka_unit_test(explain__peer_gone_silent),
		cmocka_unit_test(explain__death_says_how_the_peers_process_is),
		cmocka_unit_test(explain__process_that_is_stopped),
		cmocka_unit_test(explain__question_that_did_not_arrive),
		cmocka_unit_test(explain__move_says_why_and_by_which_interface),
		cmocka_unit_test(explain__move_says_of_a_second_link_that_it_is_used_or_lost),
		cmocka_unit_test(explain__only_full_size_packets_vanish),
		cmocka_unit_test(explain__own_buffer_overflowed),
		cmocka_unit_test(explain__refusal_names_the_peer),
		cmocka_unit_test(explain__refused_access_is_described),
		cmocka_unit_test(explain__flush_of_ucx),
		cmocka_unit_test(explain__datagram_has_no_peer),
		cmocka_unit_test(explain__never_beyond_its_room),
		cmocka_unit_test(mtu__says_who_carries_what),
		cmocka_unit_test(text__numbers_and_addresses),
		cmocka_unit_test(unreachable__says_whether_the_host_or_its_port_was_not_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
