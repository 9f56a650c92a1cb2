/* Graphs of operations: what is refused, and in what order operations run, on a network that takes 10 to deliver a
 * message and 20 to tell its sender. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "base/random.h"
#include "net/graph_job.h"
#include "../unit.h"

enum { MOST = 100000, MANY = 1 << 20, NO_STREAM = GRAPH_NO_STREAM };

static struct graph graph;
static struct graph_job job;

/* ---- A calendar -------------------------------------------------------------------------------------------------- */

enum what { ARRIVES, ENDS, IS_COMPUTED };

static struct happening {
	vb_time at;
	uint64_t order, tag;
	uint32_t rank;
	enum what what;
	struct graph_carried carried;
} calendar[MOST];
static uint32_t happening_count, message_count;
static uint64_t order;
static vb_time now;
static uint32_t slow_from, slow_to; /* a message from the one rank to the other takes 90 more */
static uint32_t rank_called;
enum { MOST_NICS = 64 };
static struct hosts hosts;
static uint64_t by_nic[MOST_NICS]; /* bytes, of those that have more than one */

static void note(vb_time at, uint32_t rank, enum what what, uint64_t tag, const struct graph_carried *carried)
{
	assert_true(happening_count < MOST);
	calendar[happening_count++] = (struct happening){ at, order++, tag, rank, what, { .sent = 0 } };
	if (carried)
		calendar[happening_count - 1].carried = *carried;
}

static void send(struct job_sink *sink, const struct message *message)
{
	assert_int_equal(message->src, rank_called);
	assert_int_equal(message->start, now);
	assert_true(message->bytes > 0);
	message_count++;
	const vb_time later = slow_from != slow_to && message->src == slow_from && message->dst == slow_to ? 90 : 0;
	if (message->bytes > 1 && hosts.gpus &&
		hosts_host_of(&hosts, message->src) != hosts_host_of(&hosts, message->dst))
		by_nic[hosts_sends_by(&hosts, message->src, message->dst, message->part)] += message->bytes;
	note(now + later + 10, message->dst, ARRIVES, message->tag, message->carried);
	note(now + later + 20, message->src, ENDS, message->tag, message->carried);
}

static void compute(struct job_sink *sink, vb_time until, uint64_t tag)
{
	assert_true(until > now);
	note(until, rank_called, IS_COMPUTED, tag, NULL);
}

static uint32_t lacks;

static void lack_memory(struct job_sink *sink)
{
	(void)sink;
	lacks++;
}

static struct job_sink sink = { send, compute, lack_memory };

static struct happening take_next(void)
{
	uint32_t next = 0;
	for (uint32_t i = 1; i < happening_count; i++)
		if (calendar[i].at < calendar[next].at ||
			(calendar[i].at == calendar[next].at && calendar[i].order < calendar[next].order))
			next = i;
	const struct happening is = calendar[next];
	calendar[next] = calendar[--happening_count];
	return is;
}

/* What is left undone. */
static uint32_t play(void)
{
	const struct flow_result result = { 0 };
	uint64_t happened = 0;
	uint32_t left;
	assert_int_equal(graph_job_open(&job, &graph, &hosts, &(struct nccl_settings){ 0 }), 0);
	now = 0;
	happening_count = message_count = 0;
	for (rank_called = 0; rank_called < graph.ranks; rank_called++)
		job.job.kind->begin(&job.job, rank_called, &sink);
	while (happening_count > 0) {
		const struct happening is = take_next();
		now = is.at;
		rank_called = is.rank;
		happened += is.what != ARRIVES;
		switch (is.what) {
		case ARRIVES:
			job.job.kind->arrived(&job.job, is.rank, is.tag, now, &is.carried, &sink);
			break;
		case ENDS:
			job.job.kind->ended(&job.job, is.rank, is.tag, now, &result, &is.carried, &sink);
			break;
		case IS_COMPUTED:
			job.job.kind->computed(&job.job, is.rank, is.tag, now, &sink);
			break;
		}
	}
	assert_int_equal(lacks, 0);
	const uint32_t first = graph_job_unfinished(&job, &left);
	if (first == GRAPH_NONE)
		assert_int_equal(happened, job.job.operations);
	return left;
}

static int teardown(void **state)
{
	if (job.records)
		graph_job_close(&job);
	graph_free(&graph);
	hosts = (struct hosts){ 0 };
	memset(by_nic, 0, sizeof(by_nic));
	slow_from = slow_to = 0;
	return 0;
}

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static uint32_t add(struct graph_operation operation)
{
	assert_int_equal(graph_add(&graph, &operation), 0);
	return graph.count - 1;
}

static uint32_t add_computation(uint32_t rank, vb_time time, uint8_t stream, int8_t priority)
{
	return add((struct graph_operation){
		.rank = rank, .kind = GRAPH_COMPUTE, .time = time, .stream = stream, .priority = priority });
}

static uint32_t add_message(enum graph_kind kind, uint32_t rank, uint32_t peer, uint32_t tag)
{
	return add((struct graph_operation){
		.rank = rank, .kind = (uint8_t)kind, .bytes = 100, .peer = peer, .tag = tag, .stream = NO_STREAM });
}

static uint32_t add_collective(uint32_t rank, uint32_t group, const char *kind, uint64_t bytes)
{
	struct graph_operation operation = {
		.rank = rank, .kind = GRAPH_COLLECTIVE, .bytes = bytes, .group = group, .stream = 1
	};
	assert_int_equal(graph_find_collective(&graph, kind, NULL, &operation.collective), 0);
	return add(operation);
}

static void wait_for(uint32_t operation, uint32_t before, enum graph_event event)
{
	assert_int_equal(graph_add_wait(&graph, operation, before, event), 0);
}

static void finish(void)
{
	char why[500] = "";
	if (graph_finish(&graph, NULL, why, sizeof(why)))
		fail_msg("%s", why);
}

static void expect_refused(const char *part)
{
	char why[500] = "";
	assert_int_equal(graph_finish(&graph, NULL, why, sizeof(why)), -EINVAL);
	if (!strstr(why, part))
		fail_msg("%s, without %s", why, part);
	teardown(NULL);
	graph.ranks = 2; /* of the next */
}

static void expect_times(uint32_t operation, vb_time begin, vb_time end)
{
	assert_int_equal(job.records[operation].begin, begin);
	assert_int_equal(job.records[operation].end, end);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static void operations__begin_when_their_waits_let_them(void **state)
{
	graph.ranks = 2;
	const uint32_t before = add_computation(0, 5, 0, 0), sent = add_message(GRAPH_SEND, 0, 1, 7);
	const uint32_t beside = add_computation(0, 100, 0, 0);
	const uint32_t received = add_message(GRAPH_RECEIVE, 1, 0, 7), after = add_computation(1, 3, 0, 0);
	wait_for(sent, before, GRAPH_ENDED);
	wait_for(beside, sent, GRAPH_BEGUN);
	wait_for(after, received, GRAPH_ENDED);
	finish();
	assert_int_equal(play(), 0);
	expect_times(before, 0, 5);
	expect_times(sent, 5, 25);
	expect_times(beside, 5, 105);
	expect_times(received, 0, 15);
	expect_times(after, 15, 18);
	assert_int_equal(job.records[sent].let_begin, before);
	assert_int_equal(job.records[received].let_end, sent);
	assert_int_equal(job.records[received].let_begin, GRAPH_NONE);
	assert_int_equal(graph_job_last(&job), beside);
}

/* One at a time; the highest priority first, then the first. Another stream, and none, do not wait. */
static void stream__runs_one_at_a_time(void **state)
{
	graph.ranks = 1;
	const uint32_t first = add_computation(0, 10, 0, 0), low = add_computation(0, 10, 0, -1);
	const uint32_t second = add_computation(0, 10, 0, 0), high = add_computation(0, 10, 0, 5);
	const uint32_t other = add_computation(0, 4, 3, 0), alone = add_computation(0, 6, NO_STREAM, 0);
	const uint32_t late = add_computation(0, 1, 3, 0);
	wait_for(late, alone, GRAPH_ENDED);
	finish();
	assert_int_equal(graph.streams, 4);
	assert_int_equal(play(), 0);
	expect_times(first, 0, 10);
	expect_times(high, 10, 20);
	expect_times(second, 20, 30);
	expect_times(low, 30, 40);
	expect_times(other, 0, 4);
	expect_times(alone, 0, 6);
	expect_times(late, 6, 7);
	assert_int_equal(job.records[second].let_begin, high);
	assert_int_equal(job.records[late].let_begin, alone);
}

/* A long chain that takes no time takes no stack. */
static void operations_without_time__follow_at_once(void **state)
{
	graph.ranks = 1;
	for (uint32_t i = 0; i < 50000; i++) {
		add_computation(0, 0, i % 2 ? 0 : NO_STREAM, 0);
		if (i > 0)
			wait_for(i, i - 1, GRAPH_ENDED);
	}
	finish();
	assert_int_equal(play(), 0);
	expect_times(49999, 0, 0);
}

/* The first sent goes to the first begun, whichever comes first. */
static void receives__pair_up_in_order(void **state)
{
	graph.ranks = 3;
	uint32_t sent[4], received[4];
	for (uint32_t i = 0; i < 4; i++)
		sent[i] = add_message(GRAPH_SEND, i / 2, 2, i % 2);
	const uint32_t pause = add_computation(2, 50, 0, 0);
	for (uint32_t i = 0; i < 4; i++) {
		received[i] = add_message(GRAPH_RECEIVE, 2, i / 2, i % 2);
		if (i < 2)
			wait_for(received[i], pause, GRAPH_ENDED);
	}
	finish();
	assert_int_equal(play(), 0);
	for (uint32_t i = 0; i < 4; i++)
		expect_times(received[i], i < 2 ? 50 : 0, i < 2 ? 50 : 10);
	assert_int_equal(job.records[received[2]].let_end, sent[2]);
}

static void receives__of_any_take_what_is_there(void **state)
{
	graph.ranks = 3;
	const uint32_t pause = add_computation(0, 5, 0, 0), slow = add_message(GRAPH_SEND, 0, 2, 1);
	const uint32_t fast = add_message(GRAPH_SEND, 1, 2, 9);
	const uint32_t any = add_message(GRAPH_RECEIVE, 2, GRAPH_ANY, GRAPH_ANY);
	const uint32_t tagged = add_message(GRAPH_RECEIVE, 2, GRAPH_ANY, 1);
	wait_for(slow, pause, GRAPH_ENDED);
	finish();
	assert_int_equal(play(), 0);
	assert_int_equal(job.records[any].let_end, fast);
	assert_int_equal(job.records[tagged].let_end, slow);
	expect_times(tagged, 0, 15);
}

static void receive__that_nobody_sends_to_is_left(void **state)
{
	graph.ranks = 2;
	add_message(GRAPH_SEND, 0, 1, 4);
	const uint32_t any = add_message(GRAPH_RECEIVE, 1, GRAPH_ANY, 5), after = add_computation(1, 3, 0, 0);
	wait_for(after, any, GRAPH_ENDED);
	finish();
	assert_int_equal(play(), 2);
	expect_times(after, -1, -1);
}

/* All of them in group 0. */
static void open_ranks(uint32_t ranks)
{
	graph.ranks = ranks;
	assert_int_equal(graph_add_group(&graph, NULL, ranks), 0);
}

/* Of two groups at once, one of them of all; ranks come late, and messages wait for them. */
static void collectives__end_at_each_rank_when_all_is_there(void **state)
{
	open_ranks(4);
	assert_int_equal(graph_add_group(&graph, (const uint32_t[]){ 3, 1 }, 2), 0);
	uint32_t first[4], second[4], pair[4];
	vb_time last = 0;
	for (uint32_t rank = 0; rank < 4; rank++) {
		const uint32_t late = add_computation(rank, 1 + 10 * rank, 0, 0);
		first[rank] = add_collective(rank, 0, "allreduce", 4000);
		wait_for(first[rank], late, GRAPH_ENDED);
		second[rank] = add_collective(rank, 0, "all-gather", 4000);
		wait_for(second[rank], first[rank], GRAPH_ENDED);
		if (rank % 2)
			pair[rank] = add_collective(rank, 1, "reduce-scatter", 600);
	}
	finish();
	assert_int_equal(play(), 0);
	assert_int_equal(message_count, 4 * 6 + 4 * 3 + 2 * 1);
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_true(job.records[first[rank]].end >= 31 + 3 * 10); /* the last rank's share must come round */
		assert_true(job.records[second[rank]].end >= job.records[first[rank]].end);
		last = job.records[second[rank]].end > last ? job.records[second[rank]].end : last;
	}
	assert_true(last >= job.records[first[3]].end + 10); /* the last rank has its own share still to give */
	assert_true(job.records[pair[1]].end > 0);
}

/* An allreduce of the ranks of this group, who are all there are, on four hosts: from each of a host's NICs
 * 2 (n - 1) / n S / N leave. */
static void expect_shares(const uint32_t *ranks, uint32_t gpus, uint32_t nics, const uint32_t *placed)
{
	enum { HOSTS = 4, BYTES = 1 << 20 };
	teardown(NULL);
	hosts = (struct hosts){ .gpus = gpus, .nics = nics, .keeps_rails = true, .gpu_of = placed };
	graph.ranks = HOSTS * gpus;
	assert_int_equal(graph_add_group(&graph, ranks, graph.ranks), 0);
	for (uint32_t rank = 0; rank < graph.ranks; rank++)
		add_collective(rank, 0, "allreduce", BYTES);
	finish();
	assert_int_equal(play(), 0);
	const double said = 2.0 * (graph.ranks - 1) / graph.ranks * BYTES / nics;
	for (uint32_t i = 0; i < HOSTS * nics; i++)
		if ((double)by_nic[i] < 0.99 * said || (double)by_nic[i] > 1.01 * said)
			fail_msg("NIC %u sends %llu, and should %.0f", i, (unsigned long long)by_nic[i], said);
	graph_job_close(&job);
}

/* In whatever order the group lists its ranks, and wherever these are. */
static void collectives__go_by_all_nics(void **state)
{
	static const uint32_t mixed[] = { 0, 4, 8, 12, 1, 5, 9, 13, 3, 7, 11, 15, 2, 6, 10, 14 };
	expect_shares(NULL, 4, 4, NULL);
	expect_shares(NULL, 4, 8, NULL);
	expect_shares(NULL, 4, 2, NULL);
	expect_shares(NULL, 1, 2, NULL);
	expect_shares(mixed, 4, 4, NULL);
	expect_shares(NULL, 4, 4, mixed);
}

/* A ring allreduce of four: six messages of 10, one after the other, lead from a rank's own share to the rank before
 * the one before it. Of the rank that begins 40 later they come last, so all others ended because of it. */
static void expect_to_end_by_the_late_rank(struct hosts its)
{
	teardown(NULL);
	hosts = its;
	open_ranks(4);
	uint32_t before[4], reduced[4];
	for (uint32_t rank = 0; rank < 4; rank++) {
		before[rank] = add_computation(rank, rank == 2 ? 45 : 5, 0, 0);
		reduced[rank] = add_collective(rank, 0, "allreduce", 4000);
		wait_for(reduced[rank], before[rank], GRAPH_ENDED);
	}
	finish();
	assert_int_equal(play(), 0);
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_int_equal(job.records[reduced[rank]].let_end, rank == 2 ? GRAPH_NONE : reduced[2]);
		const struct graph_chain *chain = graph_job_chain(&job, reduced[rank]);
		assert_int_equal(chain->origin, reduced[2]);
		/* Once round, and to this rank: the last rank to have all is the one before the late one. */
		expect_times(reduced[rank], rank == 2 ? 45 : 5, 45 + 10 * chain->transfers);
	}
	assert_int_equal(graph_job_chain(&job, reduced[0])->transfers, 6);
	assert_int_equal(job.records[reduced[2]].let_begin, before[2]);
	assert_null(graph_job_chain(&job, before[2]));
}

static void collective__ends_by_the_rank_that_came_late(void **state)
{
	expect_to_end_by_the_late_rank((struct hosts){ 0 });
	expect_to_end_by_the_late_rank((struct hosts){ .gpus = 2, .nics = 2 }); /* as two rings */
}

/* All begin at once; each message from rank 1 to rank 2 takes 100 instead of 10. */
static void collective__tells_the_message_that_took_longest(void **state)
{
	open_ranks(4);
	uint32_t reduced[4];
	for (uint32_t rank = 0; rank < 4; rank++)
		reduced[rank] = add_collective(rank, 0, "allreduce", 4000);
	finish();
	slow_from = 1;
	slow_to = 2;
	assert_int_equal(play(), 0);
	for (uint32_t rank = 0; rank < 4; rank++) {
		const struct graph_transfer *longest = &graph_job_chain(&job, reduced[rank])->longest;
		assert_int_equal(longest->from, 1);
		assert_int_equal(longest->to, 2);
		assert_int_equal(longest->took, 100);
	}
	/* To rank 2 the last message came over the slow way twice: 10 + ... + 100 + 10 + 10 + 10 + 100. */
	expect_times(reduced[2], 0, 2 * 100 + 4 * 10);
	assert_int_equal(graph_job_chain(&job, reduced[2])->transfers, 6);
}

/* Shares of an all-to-all that wait for a place leave when one of the rank's own has ended. */
static void collective__ends_by_its_own_messages(void **state)
{
	open_ranks(12);
	uint32_t sent[12];
	for (uint32_t rank = 0; rank < 12; rank++)
		sent[rank] = add_collective(rank, 0, "alltoall", 12000);
	finish();
	assert_int_equal(play(), 0);
	for (uint32_t rank = 0; rank < 12; rank++) {
		const struct graph_chain *chain = graph_job_chain(&job, sent[rank]);
		assert_int_equal(chain->transfers, 2); /* one whose end was waited for, and one behind it */
		assert_int_equal(chain->longest.took, 20);
		expect_times(sent[rank], 0, 30);
	}
}

static void collective__of_one_rank_takes_no_time(void **state)
{
	graph.ranks = 2;
	assert_int_equal(graph_add_group(&graph, (const uint32_t[]){ 1 }, 1), 0);
	const uint32_t alone = add_collective(1, 0, "allreduce", 4000);
	finish();
	assert_int_equal(play(), 0);
	expect_times(alone, 0, 0);
}

/* As the list of ranks says it. */
static uint32_t member_in(const struct graph_group *group, uint32_t rank)
{
	for (uint32_t i = 0; i < group->count; i++)
		if (graph_rank_of(group, i) == rank)
			return i;
	return GRAPH_NONE;
}

/* The n-th of a group at each rank is the n-th at all, in whatever order the group lists them. */
static void groups__know_their_members_and_their_collectives(void **state)
{
	enum { RANKS = 50, GROUPS = 20, ROUNDS = 3 };
	struct vb_random random;
	vb_random_seed(&random, 1);
	graph.ranks = RANKS;
	for (uint32_t i = 0; i < GROUPS; i++) {
		uint32_t ranks[RANKS], count = 1 + vb_random_below(&random, RANKS);
		for (uint32_t k = 0; k < RANKS; k++) {
			const uint32_t at = vb_random_below(&random, k + 1);
			ranks[k] = ranks[at];
			ranks[at] = k;
		}
		assert_int_equal(graph_add_group(&graph, ranks, count), 0);
	}
	for (uint32_t rank = 0; rank < RANKS; rank++)
		for (uint32_t i = 0; i < ROUNDS * GROUPS; i++)
			if (member_in(&graph.groups[i % GROUPS], rank) != GRAPH_NONE)
				add_collective(rank, i % GROUPS, "barrier", 1);
	finish();
	for (uint32_t i = 0; i < GROUPS; i++)
		for (uint32_t rank = 0; rank <= RANKS; rank++)
			assert_int_equal(graph_member(&graph.groups[i], rank), member_in(&graph.groups[i], rank));
	uint32_t seen[RANKS][GROUPS] = { 0 };
	for (uint32_t i = 0; i < graph.count; i++) {
		const struct graph_operation *its = &graph.operations[i];
		assert_int_equal(its->instance, seen[its->rank][its->group]++);
		for (uint32_t member = 0; member < graph.groups[its->group].count; member++) {
			const struct graph_operation *other = &graph.operations[graph_same_at(&graph, i, member)];
			assert_int_equal(other->rank, graph_rank_of(&graph.groups[its->group], member));
			assert_true(other->group == its->group && other->instance == its->instance);
		}
	}
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static void cycles__are_told(void **state)
{
	graph.ranks = 1;
	for (uint32_t i = 0; i < 5; i++)
		add_computation(0, 1, 0, 0);
	wait_for(1, 0, GRAPH_ENDED);
	wait_for(1, 3, GRAPH_ENDED);
	wait_for(2, 1, GRAPH_ENDED);
	wait_for(3, 2, GRAPH_BEGUN);
	wait_for(4, 3, GRAPH_ENDED);
	expect_refused("a cycle: operation 1 waits for operation 3 waits for operation 2 waits for operation 1");
}

static void what_cannot_run__is_refused(void **state)
{
	graph.ranks = 2;
	add_message(GRAPH_SEND, 0, 1, 4);
	add_message(GRAPH_SEND, 0, 1, 4);
	add_message(GRAPH_RECEIVE, 1, 0, 4);
	expect_refused("operation 1 never pairs up: rank 0 sends 2 messages with tag 4 to rank 1, which receives 1");
	add_message(GRAPH_RECEIVE, 1, 0, 4);
	expect_refused("operation 0 never pairs up: rank 0 sends 0 messages with tag 4 to rank 1, which receives 1");
	add_message(GRAPH_SEND, 0, 2, 4);
	expect_refused("there is no rank 2: there are 2");
	add_message(GRAPH_SEND, 1, 1, 4);
	expect_refused("sends to itself");
	add_computation(1, 4, 0, 0);
	add_computation(0, 4, 0, 0);
	expect_refused("comes too late");
	add_computation(0, 4, 0, 0);
	add_computation(1, 4, 0, 0);
	wait_for(1, 0, GRAPH_ENDED);
	expect_refused("operation 1 waits for operation 0, which is not of its rank");
	add_computation(0, -1, 0, 0);
	expect_refused("a time below 0");
}

static void collectives_that_differ__are_refused(void **state)
{
	open_ranks(2);
	add_collective(0, 0, "allreduce", 100);
	add_collective(0, 0, "barrier", 1);
	add_collective(1, 0, "allreduce", 100);
	add_collective(1, 0, "barrier", 2);
	expect_refused("collective 1 of group 0 is barrier of 1 bytes at rank 0 (operation 1), and barrier of 2 bytes");
	open_ranks(2);
	add_collective(0, 0, "allreduce", 100);
	expect_refused("group 0: rank 0 has 1 collectives, and rank 1 has 0");
	assert_int_equal(graph_add_group(&graph, (const uint32_t[]){ 0 }, 1), 0);
	add_collective(1, 0, "allreduce", 100);
	expect_refused("rank 1 is not in the group");
	assert_int_equal(graph_add_group(&graph, (const uint32_t[]){ 0, 0 }, 2), 0);
	expect_refused("rank 0 is there twice");
}

/* Many operations wait for one stream, and their list cannot grow. */
static void operations_without_memory__are_told(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* its own address space has no bound */
#else
	struct rlimit was, less;
	char why[500];
	graph.ranks = 1;
	for (uint32_t i = 0; i < MANY; i++)
		add((struct graph_operation){ .kind = GRAPH_COMPUTE, .time = 5 });
	assert_int_equal(graph_finish(&graph, NULL, why, sizeof(why)), 0);
	assert_int_equal(graph_job_open(&job, &graph, &hosts, &(struct nccl_settings){ 0 }), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	less = was;
	less.rlim_cur = 1;
	rank_called = 0;
	now = 0;
	happening_count = 0;
	assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
	job.job.kind->begin(&job.job, 0, &sink);
	setrlimit(RLIMIT_AS, &was);
	assert_true(lacks > 0);
	lacks = 0;
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(operations__begin_when_their_waits_let_them, teardown),
		cmocka_unit_test_teardown(stream__runs_one_at_a_time, teardown),
		cmocka_unit_test_teardown(operations_without_time__follow_at_once, teardown),
		cmocka_unit_test_teardown(receives__pair_up_in_order, teardown),
		cmocka_unit_test_teardown(receives__of_any_take_what_is_there, teardown),
		cmocka_unit_test_teardown(receive__that_nobody_sends_to_is_left, teardown),
		cmocka_unit_test_teardown(collectives__end_at_each_rank_when_all_is_there, teardown),
		cmocka_unit_test_teardown(collectives__go_by_all_nics, teardown),
		cmocka_unit_test_teardown(collective__ends_by_the_rank_that_came_late, teardown),
		cmocka_unit_test_teardown(collective__tells_the_message_that_took_longest, teardown),
		cmocka_unit_test_teardown(collective__ends_by_its_own_messages, teardown),
		cmocka_unit_test_teardown(collective__of_one_rank_takes_no_time, teardown),
		cmocka_unit_test_teardown(groups__know_their_members_and_their_collectives, teardown),
		cmocka_unit_test_teardown(cycles__are_told, teardown),
		cmocka_unit_test_teardown(what_cannot_run__is_refused, teardown),
		cmocka_unit_test_teardown(collectives_that_differ__are_refused, teardown),
		cmocka_unit_test_teardown(operations_without_memory__are_told, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
