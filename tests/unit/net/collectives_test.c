/* Collectives: after the messages every rank has what it should, computed by carrying sets of contributions along. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/collective_job.h"
#include "../unit.h"

enum { MOST_RANKS = 16, GPUS = 4 };

struct sent {
	struct message is;
	uint32_t carries; /* ranks whose contribution its sender knew of */
};

/* What a collective's job sends when each message arrives after the ones before it, or before them. */
static struct sent sent[4096];
static uint32_t sent_count, knows[MOST_RANKS];
static struct collective_job job;
static struct rank_groups groups;
static uint32_t qps; /* of the next collectives */
static bool is_cut;
static uint64_t buffer;
static const struct hosts hosts_of_gpus = { .gpus = GPUS, .nics = GPUS };

static void note(struct job_sink *sink, const struct message *message)
{
	assert_true(sent_count < sizeof(sent) / sizeof(sent[0]));
	sent[sent_count++] = (struct sent){ *message, knows[message->src] };
}

static struct job_sink sink = { .send = note };
static const struct flow_result no_error;

static int teardown(void **state)
{
	collective_job_close(&job);
	rank_groups_close(&groups);
	return 0;
}

static void open_job(const struct collective *collective, uint32_t first)
{
	collective_job_close(&job);
	rank_groups_close(&groups);
	assert_int_equal(rank_groups_open(&groups, &hosts_of_gpus, first, collective->ranks), 0);
	assert_int_equal(collective_job_open(&job, collective, &groups), 0);
}

/* Messages arrive in the order in which they are sent, or the newest first, and then at the sender's next call. */
static void play(const char *kind, const char *algorithm, uint32_t ranks, uint64_t bytes, bool newest_first)
{
	static bool has_arrived[sizeof(sent) / sizeof(sent[0])];
	char why[200] = "";
	const struct collective collective = { .kind = kind,
		.algorithm = algorithm,
		.ranks = ranks,
		.bytes = bytes,
		.nccl.qps = qps,
		.nccl.is_cut = is_cut,
		.nccl.buffer = buffer,
		.start = 5,
		.gpus = GPUS,
		.reduces = true };
	assert_int_equal(collective_check(&collective, why, sizeof(why)), 0);
	open_job(&collective, 0);
	sent_count = 0;
	memset(has_arrived, 0, sizeof(has_arrived));
	for (uint32_t rank = 0; rank < ranks; rank++)
		knows[rank] = 1u << rank;
	for (uint32_t rank = 0; rank < ranks; rank++)
		job.job.kind->begin(&job.job, rank, &sink);
	for (uint32_t arrived = 0; arrived < sent_count; arrived++) {
		uint32_t next = newest_first ? sent_count - 1 : 0;
		while (has_arrived[next])
			next += newest_first ? -1u : 1;
		has_arrived[next] = true;
		knows[sent[next].is.dst] |= sent[next].carries;
		assert_true(sent[next].is.tells_arrival);
		job.job.kind->arrived(&job.job, sent[next].is.dst, sent[next].is.tag, 100, NULL, &sink);
		job.job.kind->ended(&job.job, sent[next].is.src, sent[next].is.tag, 120, &no_error, NULL, &sink);
	}
	assert_int_equal(sent_count, job.job.operations);
}

static void add(const char *kind, const char *algorithm, uint32_t ranks, uint64_t bytes)
{
	play(kind, algorithm, ranks, bytes, false);
}

static uint64_t sent_by(uint32_t rank)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < sent_count; i++)
		bytes += sent[i].is.src == rank ? sent[i].is.bytes : 0;
	return bytes;
}

/* Of 128 bytes and 8 ranks. */
static void bytes__are_the_algorithms(void **state)
{
	static const struct {
		const char *kind, *algorithm;
		uint64_t bytes; /* of each rank */
	} cases[] = {
		{ "allreduce", "ring", 2 * 7 * 16 },
		{ "allreduce", "recursive-doubling", 3 * 128 },
		{ "allreduce", "halving-doubling", 2 * 7 * 16 },
		{ "allreduce", "direct", 2 * 7 * 16 },
		{ "all-gather", "ring", 7 * 16 },
		{ "all-gather", "recursive-doubling", 7 * 16 },
		{ "all-gather", "direct", 7 * 16 },
		{ "reduce-scatter", "ring", 7 * 16 },
		{ "reduce-scatter", "halving-doubling", 7 * 16 },
		{ "reduce-scatter", "direct", 7 * 16 },
		{ "barrier", "dissemination", 3 },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		add(cases[i].kind, cases[i].algorithm, 8, 128);
		for (uint32_t rank = 0; rank < 8; rank++)
			assert_int_equal(sent_by(rank), cases[i].bytes);
	}
}

static bool runs_with(const struct collective_algorithm *is, uint32_t ranks)
{
	if (is->waiting == FOR_BOTH_RINGS || is->is_by_switch)
		return ranks % GPUS == 0;
	return !is->is_by_powers_of_2 || (ranks & (ranks - 1)) == 0;
}

static void carry_all(const char *kind, const struct collective_algorithm *is, uint32_t ranks)
{
	const bool any_order = !is->edges && is->waiting != FOR_THE_LAST && is->waiting != FOR_BOTH_RINGS;
	for (unsigned newest_first = 0; newest_first <= any_order; newest_first++) {
		play(kind, is->name, ranks, 64, newest_first);
		for (uint32_t rank = 0; rank < ranks; rank++)
			assert_int_equal(knows[rank], (1u << ranks) - 1);
	}
}

/* A message carries all that its sender knew when it began. In the end every rank must know of every rank, in whatever
 * order messages of different ranks arrive. */
static void messages__carry_every_rank_to_every_rank(void **state)
{
	static const char *const kinds[] = { "allreduce", "all-gather", "reduce-scatter", "alltoall", "barrier" };
	const struct collective_algorithm *is;
	for (unsigned k = 0; k < 5; k++)
		for (uint32_t i = 0; (is = collective_algorithm(kinds[k], i)); i++)
			for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++)
				if (runs_with(is, ranks))
					carry_all(kinds[k], is, ranks);
}

/* From rank 0 to all, and from all to rank 0; in several pieces, which come in order. */
static void chains__lead_from_and_to_the_root(void **state)
{
	for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
		add("broadcast", NULL, ranks, 300000);
		assert_int_equal(sent_count, 3 * (ranks - 1));
		for (uint32_t rank = 0; rank < ranks; rank++) {
			assert_int_equal(knows[rank] & 1, 1);
			assert_int_equal(sent_by(rank), rank + 1 < ranks ? 300000 : 0);
		}
		add("reduce", NULL, ranks, 300000);
		assert_int_equal(knows[0], (1u << ranks) - 1);
	}
}

/* Each half of the data goes once up and once down each edge of its tree. A rank sends 2S at most, and only the two
 * roots less than the leaves of one tree and inner nodes of the other. The first GPU of a host also feeds its chain. */
static void double_tree__sends_each_half_up_and_down(void **state)
{
	for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
		uint64_t all = 0;
		add("allreduce", "double-tree", ranks, 1 << 20);
		for (uint32_t rank = 0; rank < ranks; rank++) {
			assert_true(sent_by(rank) <= (ranks % GPUS ? 2 : 3) << 20);
			all += sent_by(rank);
		}
		assert_int_equal(all, (uint64_t)(ranks - 1) * (2 << 20));
	}
}

/* A sender fills no slot that its receiver has not opened: rank 1's messages never end, so it passes on eight pieces
 * and opens their slots, and rank 0 has sent eight more. Each later end lets one piece go on, and one more be sent. */
static void slots__are_filled_when_their_receiver_has_opened_them(void **state)
{
	const struct collective collective = {
		.kind = "broadcast", .ranks = 3, .bytes = 40 << 13, .nccl.buffer = 64 << 10
	};
	uint32_t pieces[2] = { 0 };
	open_job(&collective, 0);
	sent_count = 0;
	assert_int_equal(job.job.operations, 2 * 40 + 2 * 32);
	job.job.kind->begin(&job.job, 0, &sink);
	for (uint32_t i = 0; i < sent_count; i++) {
		const struct message is = sent[i].is;
		if (is.dst == 2)
			continue;
		job.job.kind->arrived(&job.job, is.dst, is.tag, 100, NULL, &sink);
		job.job.kind->ended(&job.job, is.src, is.tag, 120, &no_error, NULL, &sink);
	}
	for (uint32_t i = 0; i < sent_count; i++)
		if (sent[i].is.dst > sent[i].is.src) {
			pieces[sent[i].is.src]++;
			assert_int_equal(sent[i].is.bytes, 8 << 10);
			assert_int_equal(sent[i].is.channel, 1);
		} else {
			assert_int_equal(sent[i].is.bytes, 64);
			assert_int_equal(sent[i].is.channel, 2);
		}
	assert_int_equal(pieces[1], 8);
	assert_int_equal(pieces[0], 16);
}

/* With slots, too, all get all, and no message is left over: play counts them. */
static void slots__let_every_rank_hear_of_every_rank(void **state)
{
	static const char *const algorithms[] = { "double-tree", "nvls" };
	for (buffer = 64 << 10; buffer <= 128 << 10; buffer *= 2)
		for (unsigned i = 0; i < 2; i++)
			for (uint32_t ranks = GPUS; ranks <= MOST_RANKS; ranks += GPUS) {
				play("allreduce", algorithms[i], ranks, 400 << 10, false);
				for (uint32_t rank = 0; rank < ranks; rank++)
					assert_int_equal(knows[rank], (1u << ranks) - 1);
			}
	qps = 4;
	is_cut = true;
	play("allreduce", "double-tree", 2 * GPUS, 400 << 10, false);
	qps = 0;
	is_cut = false;
	buffer = 0;
}

static void all_to_all__has_eight_under_way(void **state)
{
	const struct collective collective = { .kind = "alltoall", .ranks = 16, .bytes = 1600 };
	open_job(&collective, 0);
	sent_count = 0;
	job.job.kind->begin(&job.job, 3, &sink);
	assert_int_equal(sent_count, 8);
	job.job.kind->arrived(&job.job, 3, 0, 10, NULL, &sink);
	assert_int_equal(sent_count, 8);
	job.job.kind->ended(&job.job, 3, 5, 20, &no_error, NULL, &sink);
	assert_int_equal(sent_count, 9);
	assert_int_equal(sent[8].is.dst, (3 + 1 + 8) % 16);
	assert_int_equal(sent[8].is.bytes, 100);
	assert_int_equal(sent[8].is.channel, 0);
}

/* A rank that sends to one other at a time keeps to one connection for each. */
static void channels__are_kept_unless_all_is_sent_at_once(void **state)
{
	add("allreduce", "ring", 4, 64);
	for (uint32_t i = 0; i < sent_count; i++)
		assert_int_equal(sent[i].is.channel, 1);
	add("allreduce", "direct", 4, 64);
	for (uint32_t i = 0; i < sent_count; i++)
		assert_int_equal(sent[i].is.channel, 0);
}

static void shares__differ_by_one_byte_and_are_never_empty(void **state)
{
	add("all-gather", "direct", 3, 8);
	assert_int_equal(sent_by(0), 2 * 3);
	assert_int_equal(sent_by(1), 2 * 3);
	assert_int_equal(sent_by(2), 2 * 2);
	add("all-gather", "ring", 4, 2);
	for (uint32_t i = 0; i < sent_count; i++)
		assert_int_equal(sent[i].is.bytes, 1);
}

static void start__is_that_of_the_first_step(void **state)
{
	add("allreduce", NULL, 4, 64);
	for (uint32_t i = 0; i < sent_count; i++)
		assert_int_equal(sent[i].is.start, sent[i].is.tag == 0 ? 5 : 100);
}

static void expect_refused(const char *algorithm, uint32_t ranks, const char *part)
{
	char why[200] = "";
	const struct collective collective = {
		.kind = "allreduce", .algorithm = algorithm, .ranks = ranks, .bytes = 64
	};
	assert_int_equal(collective_check(&collective, why, sizeof(why)), -EINVAL);
	if (!strstr(why, part))
		fail_msg("%s, without %s", why, part);
}

static void what_does_not_work__is_refused(void **state)
{
	expect_refused("tree", 8, "no algorithm of allreduce is called tree: there is ring, recursive-doubling");
	expect_refused("halving-doubling", 12, "2, 4, 8, ... ranks, not for 12");
	expect_refused("nvls", 8, "whole hosts whose scale-up domain reduces (hosts.reduces, or hosts.gpu: H100)");
	expect_refused("direct", 1 << 20, "more messages");
	expect_refused("ring", 1 << 20, "more messages");
}

/* ---- Parts ------------------------------------------------------------------------------------------------------- */

static struct collective of_hosts(const char *algorithm, uint32_t gpus)
{
	return (struct collective){
		.kind = "allreduce", .algorithm = algorithm, .ranks = 16, .bytes = 1001, .gpus = gpus
	};
}

/* So that each NIC has one of a ring's or a tree's; where a GPU has several NICs, each other algorithm has as many
 * parts. */
static void parts__are_as_many_as_nics(void **state)
{
	static const struct {
		const char *algorithm;
		uint32_t gpus, nics, in_group, parts;
	} cases[] = { { "ring", 4, 4, 4, 4 }, { "ring", 4, 2, 4, 2 }, { "ring", 4, 8, 4, 8 }, { "ring", 4, 4, 2, 2 },
		{ "ring", 4, 8, 2, 4 }, { "ring", 4, 8, 1, 2 }, { "ring", 1, 2, 1, 2 }, { "ring", 4, 4, 16, 1 },
		{ "ring", 4, 4, 0, 1 }, { "direct", 4, 4, 4, 1 }, { "direct", 4, 8, 4, 2 },
		{ "hierarchical", 4, 8, 4, 2 }, { "double-tree", 2, 8, 2, 8 }, { "nvls", 4, 2, 4, 2 },
		{ "ring", 0, 0, 1, 1 } };
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct hosts hosts = { .gpus = cases[i].gpus, .nics = cases[i].nics };
		const struct collective of = of_hosts(cases[i].algorithm, cases[i].in_group);
		uint64_t bytes = 0;
		assert_int_equal(collective_parts(&of, &hosts), cases[i].parts);
		for (uint32_t k = 0; k < cases[i].parts; k++)
			bytes += collective_part_of(&of, &hosts, k).bytes;
		assert_int_equal(bytes, 1001);
	}
	const struct hosts two_ports = { .gpus = 4, .nics = 4, .ports = 2 };
	const struct collective of = of_hosts("ring", 4);
	assert_int_equal(collective_parts(&of, &two_ports), 8); /* a flow for each port */
	struct collective tiny = of_hosts("ring", 4);
	tiny.bytes = 3;
	assert_int_equal(collective_parts(&tiny, &hosts_of_gpus), 1);
}

/* As many rings as the host has NICs, or channels; all bytes that a protocol sends are shared out. */
static void rings__share_out_what_is_sent(void **state)
{
	const struct hosts hosts = { .gpus = GPUS, .nics = GPUS };
	struct collective of = { .kind = "allreduce", .algorithm = "ring", .ranks = 8, .bytes = 1000, .gpus = GPUS };
	uint64_t bytes = 0;
	assert_int_equal(collective_parts(&of, &hosts), GPUS);
	assert_int_equal(collective_parts(&of, &(struct hosts){ .gpus = GPUS, .nics = 2 * GPUS }), 2 * GPUS);
	of.nccl.channels = 3;
	assert_int_equal(collective_parts(&of, &(struct hosts){ .gpus = GPUS, .nics = 2 * GPUS }), 3);
	of.wire = 2000;
	assert_int_equal(collective_parts(&of, &hosts), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct collective ring = collective_part_of(&of, &hosts, i);
		assert_int_equal(ring.wire, 0);
		bytes += ring.bytes;
	}
	assert_int_equal(bytes, 2000);
	assert_true(collective_law(&of).bytes == 2 * 2000 * 7.0 / 8);
}

/* Whichever part sends from a place of a host to one of the next, no two go by one NIC. */
static void expect_a_nic_each(const char *algorithm, uint32_t nics, uint32_t from_place, uint32_t to_place)
{
	const struct hosts hosts = { .gpus = 4, .nics = nics, .keeps_rails = true };
	const struct collective of = of_hosts(algorithm, 4);
	uint32_t leaves_by = 0;
	for (uint32_t k = 0; k < nics; k++) {
		const struct collective part = collective_part_of(&of, &hosts, k);
		const uint32_t from = collective_rank_at(&part, from_place), to = collective_rank_at(&part, to_place);
		assert_int_equal(collective_place_of(&part, from), from_place);
		const uint32_t nic = hosts_sends_by(&hosts, from, to, k);
		assert_int_equal(hosts_receives_by(&hosts, from, to, k), nics + nic);
		leaves_by |= 1u << nic;
	}
	assert_int_equal(leaves_by, (1u << nics) - 1);
}

/* A ring leaves by the last place of a host, a tree by the first. */
static void parts__leave_by_a_nic_each(void **state)
{
	for (uint32_t nics = 2; nics <= 8; nics *= 2) {
		expect_a_nic_each("ring", nics, 3, 4);
		expect_a_nic_each("double-tree", nics, 0, 4);
		expect_a_nic_each("nvls", nics, 0, 4);
	}
}

/* ---- QPs --------------------------------------------------------------------------------------------------------- */

static bool is_in_host(const struct message *is)
{
	return is->src / GPUS == is->dst / GPUS;
}

static void carry_all_by(uint32_t count, bool cut)
{
	static const char *const kinds[] = { "allreduce", "all-gather", "reduce-scatter", "alltoall", "broadcast" };
	const struct collective_algorithm *is;
	qps = count;
	is_cut = cut;
	for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (uint32_t i = 0; (is = collective_algorithm(kinds[k], i)); i++)
			for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++)
				if (runs_with(is, ranks) && strcmp(kinds[k], "broadcast") != 0)
					carry_all(kinds[k], is, ranks);
	qps = 0;
	is_cut = false;
}

/* Whole or cut: a rank passes on what has come by all QPs, and all is sent that is said to be. */
static void requests__carry_all_by_several_qps(void **state)
{
	carry_all_by(4, false);
	carry_all_by(4, true);
}

/* A ring's requests to the next host: whole by each QP in turn, each QP with a source port of its own. */
static void requests__go_whole_to_each_qp_in_turn(void **state)
{
	qps = 4;
	add("allreduce", "ring", 8, 8000);
	qps = 0;
	assert_int_equal(sent_count, 8 * 14);
	for (uint32_t i = 0; i < sent_count; i++) {
		const struct message *is = &sent[i].is;
		const uint32_t qp = is_in_host(is) ? 0 : (uint32_t)is->tag % 4;
		assert_int_equal(is->bytes, 1000);
		assert_int_equal(is->channel, 1 + qp);
		assert_int_equal(is->entropy, qp);
	}
}

/* Of 1000 bytes three QPs have 256, and the last has the rest. Within a host nothing is cut. */
static void requests__are_cut_over_all_qps(void **state)
{
	uint64_t by_qp[4] = { 0 }, in_host = 0;
	qps = 4;
	is_cut = true;
	add("allreduce", "ring", 8, 8000);
	qps = 0;
	is_cut = false;
	assert_int_equal(sent_count, 6 * 14 + 2 * 14 * 4);
	for (uint32_t i = 0; i < sent_count; i++)
		if (is_in_host(&sent[i].is))
			in_host += sent[i].is.bytes;
		else
			by_qp[sent[i].is.channel - 1] += sent[i].is.bytes;
	assert_int_equal(in_host, 6 * 14 * 1000);
	for (uint32_t qp = 0; qp < 4; qp++)
		assert_int_equal(by_qp[qp], 2 * 14 * (qp < 3 ? 256 : 1000 - 3 * 256));
}

/* A request is there when its part has come by each QP; the parts of requests with one tag may overtake each other from
 * QP to QP. */
static void request__is_there_with_its_last_part(void **state)
{
	static const struct {
		uint32_t qp, is_last;
	} parts[] = { { 2, 0 }, { 0, 0 }, { 0, 0 }, { 2, 0 }, { 1, 1 }, { 2, 0 }, { 1, 1 }, { 0, 0 }, { 1, 1 },
		{ 1, 0 }, { 2, 0 }, { 0, 1 } };
	struct number_map came = { 0 };
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		assert_int_equal(collective_cut_came(&came, 7, 3, parts[i].qp), parts[i].is_last);
		if (i == 4)
			assert_int_equal(collective_cut_came(&came, 8, 3, 1), 0); /* another tag */
	}
	assert_int_equal(came.count, 1); /* only what is under way is remembered */
	number_map_free(&came);
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

/* Several groups at once, each among its own ranks. */
static void groups__keep_to_themselves(void **state)
{
	static const uint32_t lists[] = { 0, 2, 4, 6, 9, 3, 5, 7 };
	const struct collective collective = { .kind = "allreduce", .ranks = 4, .bytes = 64, .start = 5 };
	collective_job_close(&job);
	rank_groups_close(&groups);
	assert_int_equal(rank_groups_open_lists(&groups, &(struct hosts){ 0 }, lists, 2, 4), 0);
	assert_int_equal(collective_job_open(&job, &collective, &groups), 0);
	assert_int_equal(job.job.ranks, 10);
	assert_int_equal(job.job.operations, 2 * 4 * 6);
	sent_count = 0;
	for (uint32_t rank = 0; rank < job.job.ranks; rank++)
		job.job.kind->begin(&job.job, rank, &sink);
	assert_int_equal(sent_count, 8);
	for (uint32_t i = 0; i < sent_count; i++)
		for (uint32_t k = 0; k < 8; k++)
			if (lists[k] == sent[i].is.src)
				assert_int_equal(sent[i].is.dst, lists[k / 4 * 4 + (k + 1) % 4]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(bytes__are_the_algorithms, teardown),
		cmocka_unit_test_teardown(messages__carry_every_rank_to_every_rank, teardown),
		cmocka_unit_test(parts__are_as_many_as_nics),
		cmocka_unit_test(parts__leave_by_a_nic_each),
		cmocka_unit_test_teardown(requests__carry_all_by_several_qps, teardown),
		cmocka_unit_test_teardown(requests__go_whole_to_each_qp_in_turn, teardown),
		cmocka_unit_test_teardown(requests__are_cut_over_all_qps, teardown),
		cmocka_unit_test(request__is_there_with_its_last_part),
		cmocka_unit_test_teardown(groups__keep_to_themselves, teardown),
		cmocka_unit_test_teardown(channels__are_kept_unless_all_is_sent_at_once, teardown),
		cmocka_unit_test_teardown(chains__lead_from_and_to_the_root, teardown),
		cmocka_unit_test_teardown(double_tree__sends_each_half_up_and_down, teardown),
		cmocka_unit_test_teardown(slots__are_filled_when_their_receiver_has_opened_them, teardown),
		cmocka_unit_test_teardown(slots__let_every_rank_hear_of_every_rank, teardown),
		cmocka_unit_test_teardown(all_to_all__has_eight_under_way, teardown),
		cmocka_unit_test_teardown(shares__differ_by_one_byte_and_are_never_empty, teardown),
		cmocka_unit_test(rings__share_out_what_is_sent),
		cmocka_unit_test_teardown(start__is_that_of_the_first_step, teardown),
		cmocka_unit_test_teardown(what_does_not_work__is_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
