/* Which send goes to which receive, compared with a list of all that wait. */
#include <stdlib.h>
#include "base/random.h"
#include "net/graph_mail.h"
#include "../unit.h"

enum { COUNT = 4000, PEERS = 3, TAGS = 4, MANY = 200000 };

static struct graph graph;
static struct graph_mail mail;
static uint32_t *link;

static int teardown(void **state)
{
	graph_mail_close(&mail);
	graph_free(&graph);
	free(link);
	link = NULL;
	return 0;
}

static void add(uint32_t rank, enum graph_kind kind, uint32_t peer, uint32_t tag)
{
	const struct graph_operation operation = { .rank = rank, .kind = kind, .peer = peer, .tag = tag };
	assert_int_equal(graph_add(&graph, &operation), 0);
}

static void open_mail(void)
{
	link = calloc(graph.count, sizeof(*link));
	assert_non_null(link);
	assert_int_equal(graph_mail_open(&mail, &graph, link), 0);
}

static uint32_t find(uint32_t number)
{
	uint32_t other;
	assert_int_equal(graph_mail_find(&mail, 0, number, &other), 0);
	return other;
}

static bool pairs_up(uint32_t a, uint32_t b)
{
	const struct graph_operation *one = &graph.operations[a], *other = &graph.operations[b];
	const struct graph_operation *sent = one->kind == GRAPH_SEND ? one : other,
				     *receive = sent == one ? other : one;
	return one->kind != other->kind && (receive->peer == GRAPH_ANY || receive->peer == sent->rank) &&
	       (receive->tag == GRAPH_ANY || receive->tag == sent->tag);
}

/* Rank 0 receives, and ranks 1 to PEERS send. `open`: how many in a hundred receives leave the peer open, or the tag.
 */
static void play(uint64_t seed, uint32_t open)
{
	uint32_t waiting[COUNT], count = 0;
	struct vb_random random;
	vb_random_seed(&random, seed);
	graph.ranks = PEERS + 1;
	for (uint32_t i = 0; i < COUNT; i++) {
		const uint32_t peer = 1 + vb_random_below(&random, PEERS), tag = vb_random_below(&random, TAGS);
		if (vb_random_below(&random, 2))
			add(peer, GRAPH_SEND, 0, tag);
		else
			add(0, GRAPH_RECEIVE, vb_random_below(&random, 100) < open ? GRAPH_ANY : peer,
				vb_random_below(&random, 100) < open ? GRAPH_ANY : tag);
	}
	open_mail();
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t at = 0;
		while (at < count && !pairs_up(i, waiting[at]))
			at++;
		assert_int_equal(find(i), at < count ? waiting[at] : GRAPH_NONE);
		if (at == count) {
			waiting[count++] = i;
			continue;
		}
		for (count--; at < count; at++)
			waiting[at] = waiting[at + 1];
	}
	teardown(NULL);
}

static void pairs__are_those_of_a_list(void **state)
{
	const uint32_t open[] = { 0, 5, 50, 100 };
	for (uint64_t seed = 1; seed <= 10; seed++)
		for (uint32_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
			play(seed, open[i]);
}

/* Each of so many that wait is taken by the last tag first: a search through the mail would take minutes. */
static void mail_of_many__is_not_searched(void **state)
{
	graph.ranks = 2;
	for (uint32_t i = 0; i < MANY; i++)
		add(1, GRAPH_SEND, 0, i);
	for (uint32_t i = 0; i < MANY; i++)
		add(0, GRAPH_RECEIVE, GRAPH_ANY, MANY - 1 - i);
	add(0, GRAPH_RECEIVE, GRAPH_ANY, GRAPH_ANY);
	open_mail();
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(find(i), GRAPH_NONE);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(find(MANY + i), MANY - 1 - i);
	assert_int_equal(find(2 * MANY), GRAPH_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pairs__are_those_of_a_list, teardown),
		cmocka_unit_test_teardown(mail_of_many__is_not_searched, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
