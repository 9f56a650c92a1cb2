/* What is said of QPs one by one: accounts.c. */
#include <string.h>
#include "host/lanes/host_lane.h"
#include "../unit.h"

struct said {
	unsigned count;
	char lines[VB_ACCOUNTS_SAID + 2][400];
};

static void hear(void *user, const char *line)
{
	struct said *said = user;
	assert_true(said->count < VB_ACCOUNTS_SAID + 2);
	strncpy(said->lines[said->count++], line, 399);
}

static struct said told(const struct vb_qp_account *accounts, unsigned count)
{
	struct vb_accounts *all = vb_accounts_create();
	struct said said = { 0 };
	for (unsigned i = 0; i < count; i++)
		vb_accounts_add(all, &accounts[i]);
	vb_accounts_tell(all, hear, &said);
	vb_accounts_destroy(all);
	return said;
}

static struct vb_qp_account connected(uint32_t qpn)
{
	return (struct vb_qp_account){ .qpn = qpn,
		.dest_qpn = 0x20002,
		.type = VB_QP_RC,
		.peer = vb_gid_from_ipv4(10, 0, 0, 2),
		.algorithm = "dcqcn",
		.window_bytes = 65536 };
}

/* 12.5 MB in a second are 100 Mb/s. */
static struct vb_qp_account carried(uint32_t qpn, uint64_t tenths)
{
	struct vb_qp_account account = connected(qpn);
	account.acked = tenths * 1250000;
	account.acked_in = VB_S;
	return account;
}

static void qp__that_is_paced_says_its_rate_and_what_it_achieved(void **state)
{
	struct vb_qp_account account = carried(0x10002, 10);
	account.rate = 12000000;
	account.cnps_received = 3;
	account.cnps_sent = 1;
	account.sent_again = 2;
	account.probes = 26;
	struct said said = told(&account, 1);
	assert_int_equal(said.count, 1);
	assert_string_equal(said.lines[0], "qp 0x10002: RC, peer 10.0.0.2 qpn 0x20002, dcqcn, paced at 96 Mb/s, window "
					   "66 kB, 12 MB acknowledged at 100 Mb/s "
					   "on average, CNPs 3 received, 1 sent, 2 packets sent again, 26 as probes, "
					   "recovers selectively");
}

static void qp__that_has_no_rate_says_none(void **state)
{
	struct vb_qp_account account = connected(0x10002);
	account.type = VB_QP_UC;
	account.algorithm = "window";
	account.window_bytes = 0;
	struct said said = told(&account, 1);
	assert_string_equal(said.lines[0],
		"qp 0x10002: UC, peer 10.0.0.2 qpn 0x20002, window, CNPs 0 received, 0 sent, 0 packets sent again");
}

static void qp__with_paths_says_their_round_trips_and_how_many_were_left(void **state)
{
	struct vb_qp_account account = connected(0x10002);
	account.least_rtt = 16 * VB_US;
	account.rtt = 1720 * VB_US;
	account.paths =
		(struct vb_paths_account){ .count = 8, .left = 12, .least_rtt = 466 * VB_US, .most_rtt = 3030 * VB_US };
	struct said said = told(&account, 1);
	assert_non_null(strstr(said.lines[0],
		", round trip 16 us at least, 1.7 ms on average, 8 paths, of which 12 were left for a loss or a mark, "
		"their round trips 466 us to 3.0 ms, recovers selectively"));
}

static void qp__with_large_packets_says_so(void **state)
{
	struct vb_qp_account account = connected(0x10002);
	assert_null(strstr(told(&account, 1).lines[0], "sends packets"));
	account.large_mtu = 8448;
	assert_non_null(strstr(told(&account, 1).lines[0], "recovers selectively, sends packets of up to 8448 bytes"));
}

static void qp__that_goes_back_says_why(void **state)
{
	static const char *const ends[] = { [VB_RECOVERS_BY_SETTING] = "recovers by going back, as is set",
		[VB_RECOVERS_BY_TYPE] = "recovers by going back, as XRC does",
		[VB_RECOVERS_BY_PEER] = "recovers by going back, for the peer's host has not said that it does more",
		[VB_RECOVERS_BEFORE_ANSWER] = "recovers by going back, for the peer's QP has not agreed on more" };
	for (unsigned i = VB_RECOVERS_BY_SETTING; i < COUNT_OF(ends); i++) {
		struct vb_qp_account account = connected(0x10002);
		account.recovers = i;
		struct said said = told(&account, 1);
		assert_non_null(strstr(said.lines[0], ends[i]));
	}
}

static void qp__that_has_moved_says_how_often_and_where_it_is(void **state)
{
	struct vb_qp_account account = connected(0x10002);
	account.moves = (struct vb_moves){ .moved = 2,
		.followed = 1,
		.returned = 1,
		.acked = { 0, 5000000 },
		.from = vb_gid_from_ipv4(10, 1, 0, 1),
		.to = vb_gid_from_ipv4(10, 1, 0, 2) };
	struct said said = told(&account, 1);
	assert_non_null(strstr(said.lines[0], ", moved 2 times for silence and 1 with its peer, returned 1 times, "
					      "5.0 MB acknowledged elsewhere, now from 10.1.0.1 to 10.1.0.2"));
}

static void qp__with_two_links_says_how_much_went_by_the_second(void **state)
{
	struct vb_qp_account account = connected(0x10002);
	account.moves = (struct vb_moves){ .sent = 1000,
		.by_second = 480,
		.seconds_lost = 1,
		.second_from = vb_gid_from_ipv4(10, 1, 0, 1),
		.second_to = vb_gid_from_ipv4(10, 1, 0, 2) };
	struct said said = told(&account, 1);
	assert_non_null(strstr(
		said.lines[0], ", 48% of its packets by a second link, from 10.1.0.1 to 10.1.0.2, lost 1 times"));
	assert_null(strstr(said.lines[0], "moved"));
}

static void qp__by_memory_says_so_and_nothing_else(void **state)
{
	struct vb_qp_account account = connected(0x10002);
	account.is_local = true;
	struct said said = told(&account, 1);
	assert_string_equal(said.lines[0], "qp 0x10002: RC, peer 10.0.0.2 qpn 0x20002, shared memory");
}

static void nothing__is_said_of_no_qps(void **state)
{
	assert_int_equal(told(NULL, 0).count, 0);
}

/* Those that carried most by themselves, whichever came first, and the others together: here 1, 2, 3 and one that had
 * nothing to carry. */
static void qps__that_are_many_are_summed_up(void **state)
{
	struct vb_qp_account accounts[VB_ACCOUNTS_SAID + 4];
	for (unsigned i = 0; i < COUNT_OF(accounts); i++)
		accounts[i] = carried(0x10000 + i, i);
	struct said said = told(accounts, COUNT_OF(accounts));
	assert_int_equal(said.count, VB_ACCOUNTS_SAID + 1);
	assert_non_null(strstr(said.lines[0], "qp 0x10013: "));
	assert_non_null(strstr(said.lines[VB_ACCOUNTS_SAID - 1], "qp 0x10004: "));
	assert_string_equal(said.lines[VB_ACCOUNTS_SAID],
		"qps: 4 more, 7.5 MB acknowledged, at 10 Mb/s to 30 Mb/s on average, the median about 20 Mb/s");
}

/* Those that come last may have carried most. */
static void qps__however_many_are_all_counted(void **state)
{
	enum { CHURNED = 100000 };
	struct vb_accounts *all = vb_accounts_create();
	struct said said = { 0 };
	for (unsigned i = 1; i <= CHURNED; i++) {
		struct vb_qp_account account = carried(i, i);
		account.acked = 1000 * i;
		vb_accounts_add(all, &account);
	}
	vb_accounts_tell(all, hear, &said);
	vb_accounts_destroy(all);
	assert_int_equal(said.count, VB_ACCOUNTS_SAID + 1);
	assert_non_null(strstr(said.lines[0], "qp 0x186a0: ")); /* 100,000 */
	assert_non_null(strstr(said.lines[VB_ACCOUNTS_SAID - 1], "qp 0x18691: "));
	assert_string_equal(said.lines[VB_ACCOUNTS_SAID],
		"qps: 99984 more, 5.0 TB acknowledged, at 8.0 kb/s to 800 Mb/s on average, "
		"the median about 398 Mb/s");
}

static void qps__of_any_rate_are_counted(void **state)
{
	struct vb_qp_account accounts[VB_ACCOUNTS_SAID + 3];
	for (unsigned i = 0; i < COUNT_OF(accounts); i++)
		accounts[i] = carried(i, 1000);
	accounts[0].acked = accounts[1].acked = 1; /* 8 b in a thousand seconds, and in a picosecond */
	accounts[0].acked_in = 1000 * VB_S;
	accounts[1].acked_in = 1;
	accounts[2].acked = 0;
	struct said said = told(accounts, COUNT_OF(accounts));
	assert_string_equal(said.lines[VB_ACCOUNTS_SAID],
		"qps: 3 more, 2 bytes acknowledged, at 0 b/s to 8000 Gb/s on average, the median about 8000 Gb/s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp__that_is_paced_says_its_rate_and_what_it_achieved),
		cmocka_unit_test(qp__that_has_no_rate_says_none),
		cmocka_unit_test(qp__with_paths_says_their_round_trips_and_how_many_were_left),
		cmocka_unit_test(qp__with_large_packets_says_so),
		cmocka_unit_test(qp__that_goes_back_says_why),
		cmocka_unit_test(qp__that_has_moved_says_how_often_and_where_it_is),
		cmocka_unit_test(qp__with_two_links_says_how_much_went_by_the_second),
		cmocka_unit_test(qp__by_memory_says_so_and_nothing_else),
		cmocka_unit_test(nothing__is_said_of_no_qps),
		cmocka_unit_test(qps__that_are_many_are_summed_up),
		cmocka_unit_test(qps__however_many_are_all_counted),
		cmocka_unit_test(qps__of_any_rate_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
