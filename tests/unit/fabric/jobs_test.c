/* Jobs that are told as the run goes along: what they are told and when, with every kind of endpoint and any number of
 * threads; what stays of a message when it is over; and what happens when messages fail. */
#include <stdlib.h>
#include <sys/resource.h>
#include "net/job.h"
#include "nets.h"

enum { RANKS = 8, MOST = 4096 };

static struct network network;
static struct flow_list flows;
static struct fabric_result result;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	fabric_result_free(&result);
	flow_list_free(&flows);
	network_free(&network);
	return 0;
}

static struct fabric_config config_of(enum fabric_endpoint endpoint, struct job *const *jobs, uint32_t count)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = endpoint;
	config.jobs = jobs;
	config.job_count = count;
	return config;
}

static const enum fabric_endpoint endpoints[] = { FABRIC_ENGINE, FABRIC_IDEAL, FABRIC_TCP };

/* Two leaves under one spine: several threads have something to share. */
static void make_leaves(void)
{
	char why[100];
	network = (struct network){ 0 };
	network_add_profile(&network, &ideal);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < RANKS; i++)
		network_add_endpoint(&network, i, 0);
	for (uint32_t i = 0; i < 3; i++)
		network_add_switch(&network, 0, i < 2 ? 0 : 1, i < 2 ? i : NETWORK_NONE);
	for (uint32_t i = 0; i < RANKS; i++)
		network_connect(&network, i, network_switch_node(i / (RANKS / 2)), 100 * GBPS, VB_US);
	for (uint32_t i = 0; i < 2; i++)
		network_connect(&network, network_switch_node(i), network_switch_node(2), 400 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

/* ---- A token that goes round, with a computation at each rank ---------------------------------------------------- */

/* Rank 0 sends it first; each rank computes for 3 us when it comes, and passes it on, `rounds` times in all. */
struct token {
	struct job job;
	uint32_t rounds;
	uint32_t channel;
	vb_time arrived_at[MOST], sent_at[MOST];
};

static void pass_on(struct token *token, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink)
{
	token->sent_at[tag] = at;
	sink->send(sink, &(struct message){ .src = rank,
				 .dst = (rank + 1) % RANKS,
				 .bytes = 5000,
				 .start = at,
				 .tag = tag,
				 .channel = token->channel,
				 .tells_arrival = true });
}

static void token_begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	if (rank == 0)
		pass_on((struct token *)job, 0, 0, VB_US, sink);
}

static void token_arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct token *token = (struct token *)job;
	assert_int_equal(rank, (tag + 1) % RANKS);
	token->arrived_at[tag] = at;
	sink->compute(sink, at + 3 * VB_US, tag);
}

static void token_computed(struct job *job, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink)
{
	struct token *token = (struct token *)job;
	assert_int_equal(at, token->arrived_at[tag] + 3 * VB_US);
	if (tag + 1 < token->rounds)
		pass_on(token, rank, tag + 1, at, sink);
}

static const struct job_kind token_kind = {
	.begin = token_begin, .arrived = token_arrived, .computed = token_computed, .ends_by_arrival = true
};

static struct token make_token(uint32_t rounds, uint32_t channel)
{
	return (struct token){ .job = { &token_kind, 2 * rounds, RANKS }, .rounds = rounds, .channel = channel };
}

static void token__goes_round(void **state)
{
	make_leaves();
	for (unsigned i = 0; i < 6; i++) {
		static struct token token;
		token = make_token(24, i % 2);
		struct job *const jobs[] = { &token.job };
		const struct fabric_config config = config_of(endpoints[i / 2], jobs, 1);
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_done, 48);
		assert_int_equal(result.last_flow, token.arrived_at[23] + 3 * VB_US);
		for (uint32_t k = 1; k < 24; k++) {
			assert_int_equal(token.sent_at[k], token.arrived_at[k - 1] + 3 * VB_US);
			assert_true(token.arrived_at[k] > token.sent_at[k] + 2 * VB_US);
		}
		fabric_result_free(&result);
	}
}

/* Beside a list of flows whose results are as they are alone: the token passes other links. */
static void job__runs_beside_a_list(void **state)
{
	static struct token token;
	make_leaves();
	for (unsigned i = 0; i < 2; i++) {
		add_flow(&flows, 1, 2, 100000, 0);
		add_flow(&flows, 1, 2, 3000, 50 * VB_US);
		token = make_token(8, 1);
		struct job *const jobs[] = { &token.job };
		const struct fabric_config config = config_of(endpoints[i], jobs, 1);
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_done, 2 + 16);
		for (uint32_t k = 0; k < 2; k++)
			assert_true(result.flows[k].fct > 0);
		assert_int_equal(result.flows[1].start, 50 * VB_US);
		fabric_result_free(&result);
		flow_list_free(&flows);
	}
}

/* ---- Many messages ----------------------------------------------------------------------------------------------- */

/* Every rank keeps so many messages to others under way, until it has sent all. */
struct stream {
	struct job job;
	uint32_t at_once, messages, channel;
	uint64_t bytes;
	uint32_t sent[RANKS], ended[RANKS], failed[RANKS];
	uint64_t last_tag[RANKS][RANKS];
	bool keeps_order;
};

static void send_one(struct stream *stream, uint32_t rank, vb_time at, struct job_sink *sink)
{
	if (stream->sent[rank] == stream->messages)
		return;
	const uint32_t number = stream->sent[rank]++;
	sink->send(sink, &(struct message){ .src = rank,
				 .dst = (rank + 1 + number % (RANKS - 1)) % RANKS,
				 .bytes = stream->bytes,
				 .start = at,
				 .tag = number + 1,
				 .channel = stream->channel,
				 .entropy = (uint16_t)number,
				 .tells_arrival = true });
}

static void stream_begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	struct stream *stream = (struct stream *)job;
	for (uint32_t i = 0; i < stream->at_once; i++)
		send_one(stream, rank, 0, sink);
}

static void stream_ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *is,
	const void *carried, struct job_sink *sink)
{
	struct stream *stream = (struct stream *)job;
	stream->ended[rank]++;
	stream->failed[rank] += is->error != 0;
	send_one(stream, rank, at, sink);
}

static void stream_arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct stream *stream = (struct stream *)job;
	const uint32_t src = (rank + RANKS - 1 - (uint32_t)(tag - 1) % (RANKS - 1)) % RANKS;
	if (stream->keeps_order)
		assert_true(stream->last_tag[rank][src] < tag);
	stream->last_tag[rank][src] = tag;
}

static const struct job_kind stream_kind = { .begin = stream_begin, .ended = stream_ended, .arrived = stream_arrived };

static struct stream make_stream(uint32_t at_once, uint32_t messages, uint64_t bytes, uint32_t channel)
{
	return (struct stream){ .job = { &stream_kind, (uint64_t)messages * RANKS, RANKS },
		.at_once = at_once,
		.messages = messages,
		.bytes = bytes,
		.channel = channel };
}

/* More than a send queue has room for. */
static void messages_of_a_channel__arrive_in_order(void **state)
{
	static struct stream stream;
	make_leaves();
	stream = make_stream(1000, 2000, 3000, 1);
	stream.keeps_order = true;
	struct job *const jobs[] = { &stream.job };
	const struct fabric_config config = config_of(FABRIC_ENGINE, jobs, 1);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_int_equal(stream.ended[rank], 2000);
}

static void expect_equal(const struct fabric_message *one, const struct fabric_message *other)
{
	assert_true(one->tag == other->tag && one->src == other->src && one->dst == other->dst);
	assert_true(one->start == other->start && one->end == other->end && one->error == other->error);
}

/* The same messages, in the same order. */
static void result__is_the_same_with_several_threads(void **state)
{
	static struct stream stream;
	make_leaves();
	for (unsigned i = 0; i < 6; i++) {
		uint64_t hash = 0;
		struct fabric_message *messages = NULL;
		for (uint32_t threads = 1; threads <= 4; threads *= 2) {
			stream = make_stream(4, 500, 3000, i % 2);
			struct job *const jobs[] = { &stream.job };
			struct fabric_config config = config_of(endpoints[i / 2], jobs, 1);
			config.threads = threads;
			config.tells_messages = true;
			run(&config, &result);
			assert_int_equal(result.end, FABRIC_DONE);
			assert_int_equal(result.message_count, 500 * RANKS);
			assert_int_equal(result.messages[0].bytes, 3000);
			if (threads > 1) {
				assert_int_equal(result.hash, hash);
				for (uint64_t k = 0; k < result.message_count; k++)
					expect_equal(&messages[k], &result.messages[k]);
			}
			hash = result.hash;
			free(messages);
			messages = result.messages;
			result.messages = NULL;
			fabric_result_free(&result);
		}
		free(messages);
	}
}

/* A sanitizer's own memory is beside it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MOST_KB = 1000000 };
#else
enum { MOST_KB = 12000 };
#endif

/* Eight million bytes' worth of records, if they stayed. */
static void messages_that_are_over__take_no_memory(void **state)
{
	static struct stream stream;
	struct rusage before, after;
	make_leaves();
	for (unsigned i = 0; i < 4; i++) {
		stream = make_stream(4, 100, 100, i % 2);
		struct job *const jobs[] = { &stream.job };
		struct fabric_config config = config_of(endpoints[i / 2], jobs, 1);
		run(&config, &result);
		fabric_result_free(&result);
		getrusage(RUSAGE_SELF, &before);
		stream = make_stream(4, 25000, 100, i % 2);
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_done, 25000 * RANKS);
		fabric_result_free(&result);
		getrusage(RUSAGE_SELF, &after);
		if (after.ru_maxrss - before.ru_maxrss > MOST_KB)
			fail_msg("case %u: %ld kB more", i, after.ru_maxrss - before.ru_maxrss);
	}
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

/* A rank's link is down for good: what it sends and what is sent to it fails, and is told. */
static void messages_that_fail__are_told(void **state)
{
	static struct stream stream;
	make_leaves();
	for (uint32_t i = 0; i < network.link_count; i++)
		if (network.links[i].from == 3)
			network_set_fault(&network, i, &(struct network_fault){ .down_at = 1, .up_at = 0 });
	for (unsigned i = 0; i < 2; i++) {
		stream = make_stream(2, 14, 3000, i);
		struct job *const jobs[] = { &stream.job };
		struct fabric_config config = config_of(FABRIC_ENGINE, jobs, 1);
		config.ack_timeout = 100 * VB_US;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(stream.failed[3], 14);
		assert_true(result.flows_failed >= 14 + 7 * 2);
		assert_int_equal(result.failure_count, FABRIC_FAILURES);
		for (uint32_t k = 0; k < FABRIC_FAILURES; k++) {
			assert_true(result.failures[k].src == 3 || result.failures[k].dst == 3);
			assert_int_not_equal(result.failures[k].cause, 0);
			assert_true(k == 0 || result.failures[k - 1].at <= result.failures[k].at);
		}
		fabric_result_free(&result);
	}
}

/* Beyond 32 between two endpoints the destination numbers them. */
static void connections_of_a_pair__are_as_many_as_a_job_opens(void **state)
{
	static struct stream stream;
	make_leaves();
	for (unsigned i = 0; i < 2; i++) {
		uint64_t hash = 0;
		for (uint32_t threads = 1; threads <= 4; threads *= 2) {
			stream = make_stream((RANKS - 1) * 500, (RANKS - 1) * 1000, 3000, 0);
			struct job *const jobs[] = { &stream.job };
			struct fabric_config config = config_of(FABRIC_ENGINE, jobs, 1);
			config.threads = threads;
			config.receive_buffer = i * 4194304;
			run(&config, &result);
			assert_int_equal(result.end, FABRIC_DONE);
			assert_int_equal(result.flows_done, (RANKS - 1) * 1000 * RANKS);
			assert_int_equal(result.flows_failed, 0);
			assert_true(hash == 0 || result.hash == hash);
			hash = result.hash;
			fabric_result_free(&result);
		}
	}
}

/* What is over gives its number back, behind sockets too. */
static void numbers__are_used_again(void **state)
{
	static struct stream stream;
	make_leaves();
	for (unsigned i = 0; i < 2; i++) {
		stream = make_stream(20, 10000, 100, 0);
		struct job *const jobs[] = { &stream.job };
		struct fabric_config config = config_of(FABRIC_ENGINE, jobs, 1);
		config.receive_buffer = i * 4194304;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_failed, 0);
		fabric_result_free(&result);
	}
}

/* An endpoint has 8,192 numbers for its requesters. */
static void connections_without_end__end_the_run(void **state)
{
	enum { REQUESTERS = 8192 };
	static struct stream stream;
	make_leaves();
	for (uint32_t at_once = REQUESTERS; at_once <= REQUESTERS + 1; at_once++) {
		stream = make_stream(at_once, at_once, 1000, 0);
		struct job *const jobs[] = { &stream.job };
		const struct fabric_config config = config_of(FABRIC_ENGINE, jobs, 1);
		run(&config, &result);
		assert_int_equal(result.end, at_once == REQUESTERS ? FABRIC_DONE : FABRIC_NUMBERS);
		assert_true(
			at_once == REQUESTERS ? result.out_of_numbers == NETWORK_NONE : result.out_of_numbers < RANKS);
		fabric_result_free(&result);
	}
}

/* More than a byte counts. */
static void jobs__are_as_many_as_a_scenario_has(void **state)
{
	enum { JOBS = 600 };
	static struct stream streams[JOBS];
	struct job *jobs[JOBS];
	make_leaves();
	for (uint32_t i = 0; i < JOBS; i++) {
		streams[i] = make_stream(1, 2, 3000, 1);
		jobs[i] = &streams[i].job;
	}
	const struct fabric_config config = config_of(FABRIC_ENGINE, jobs, JOBS);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	for (uint32_t i = 0; i < JOBS; i++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			assert_int_equal(streams[i].ended[rank], 2);
	fabric_result_free(&result);
}

/* Rank 3 lacks memory when the token comes: with any number of threads the run ends so, not as one that waits. */
static void forget_at_3(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	if (rank == 3)
		sink->lack_memory(sink);
	else
		token_arrived(job, rank, tag, at, carried, sink);
}

static void job_without_memory__ends_the_run(void **state)
{
	static const struct job_kind kind = {
		.begin = token_begin, .arrived = forget_at_3, .computed = token_computed
	};
	static struct token token;
	make_leaves();
	for (uint32_t threads = 1; threads <= 2; threads++) {
		token = make_token(8, 0);
		token.job.kind = &kind;
		struct job *const jobs[] = { &token.job };
		struct fabric_config config = config_of(FABRIC_ENGINE, jobs, 1);
		config.threads = threads;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_MEMORY);
		fabric_result_free(&result);
	}
}

/* ---- The order in which messages are told ------------------------------------------------------------------------ */

/* Rank 0 sends to all others at once, with one tag: the nearer to the last, the fewer bytes, so those end first. */
static void begin_alike(struct job *job, uint32_t rank, struct job_sink *sink)
{
	for (uint32_t to = 1; rank == 0 && to < RANKS; to++)
		sink->send(sink, &(struct message){ .dst = to, .bytes = (RANKS - to) * 100000, .tag = 7 });
}

static void messages_with_one_tag__are_told_by_destination(void **state)
{
	static const struct job_kind kind = { .begin = begin_alike };
	struct job job = { &kind, RANKS - 1, RANKS, RAILS_AS_HOSTS };
	struct job *const jobs[] = { &job };
	make_leaves();
	struct fabric_config config = config_of(FABRIC_ENGINE, jobs, 1);
	config.tells_messages = true;
	run(&config, &result);
	assert_int_equal(result.message_count, RANKS - 1);
	assert_true(result.messages[0].end > result.messages[RANKS - 2].end);
	for (uint32_t i = 0; i < RANKS - 1; i++)
		assert_int_equal(result.messages[i].dst, i + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			messages_that_are_over__take_no_memory, teardown), /* first: the most counts */
		cmocka_unit_test_teardown(token__goes_round, teardown),
		cmocka_unit_test_teardown(job__runs_beside_a_list, teardown),
		cmocka_unit_test_teardown(messages_of_a_channel__arrive_in_order, teardown),
		cmocka_unit_test_teardown(result__is_the_same_with_several_threads, teardown),
		cmocka_unit_test_teardown(messages_that_fail__are_told, teardown),
		cmocka_unit_test_teardown(connections_of_a_pair__are_as_many_as_a_job_opens, teardown),
		cmocka_unit_test_teardown(numbers__are_used_again, teardown),
		cmocka_unit_test_teardown(connections_without_end__end_the_run, teardown),
		cmocka_unit_test_teardown(jobs__are_as_many_as_a_scenario_has, teardown),
		cmocka_unit_test_teardown(job_without_memory__ends_the_run, teardown),
		cmocka_unit_test_teardown(messages_with_one_tag__are_told_by_destination, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
