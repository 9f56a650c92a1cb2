/* Discovery by itself: what it would send is kept here, and who has which address is said here. */
#include "broker/addresses.h"
#include "broker/discovery.h"
#include "../unit.h"

enum { OUR_BUFFER = 1 << 20, THEIR_BUFFER = 5000000, US = 3, ANOTHER = 200, TRY_MS = 100, MANY = DISCOVERY_QUESTIONS };

static struct discovery *discovery;
static const struct vb_gid ours = { { [10] = 0xff, 0xff, 10, 0, 0, 1 } };

static struct {
	unsigned count; /* since it was looked at */
	struct vb_gid from, to;
	struct vb_discovery facts;
	uint32_t length;
} sent;

static struct {
	unsigned count, client;
	struct vb_gid gid;
	bool is_verbena;
	uint32_t receive_buffer;
} told;

int qp1_send(struct qp1 *qp1, const struct vb_gid *from, const struct vb_gid *to, uint32_t scope,
	const uint8_t mad[VB_MAD_LENGTH], uint32_t length)
{
	sent.count++;
	sent.from = *from;
	sent.to = *to;
	sent.length = length;
	assert_true(vb_discovery_decode(&sent.facts, mad));
	return 0;
}

uint32_t addresses_interface(const struct vb_gid *gid, uint64_t now)
{
	return vb_gid_equal(gid, &ours) ? 2 : 0;
}

static void answer(void *user, unsigned client, const struct vb_gid *gid, const struct discovery_facts *facts)
{
	told.count++;
	told.client = client;
	told.gid = *gid;
	told.is_verbena = facts->is_verbena;
	told.receive_buffer = facts->receive_buffer;
}

static enum vb_process_state process(void *user, uint32_t qpn)
{
	return qpn == 5 ? VB_PROCESS_STOPPED : VB_PROCESS_GONE;
}

static int begin(void **state)
{
	memset(&sent, 0, sizeof(sent));
	memset(&told, 0, sizeof(told));
	discovery = discovery_create(NULL, answer, process, NULL);
	discovery_set_receive_buffer(discovery, OUR_BUFFER);
	return 0;
}

static int end(void **state)
{
	discovery_destroy(discovery);
	return 0;
}

static struct vb_gid host(unsigned number)
{
	return vb_gid_from_ipv4(10, 1, (uint8_t)(number >> 8), (uint8_t)number);
}

static void ask(unsigned client, struct vb_gid gid, uint64_t now)
{
	discovery_ask(discovery, now, client, &ours, &gid, true);
}

static void expect_sent(unsigned count)
{
	assert_int_equal(sent.count, count);
	sent.count = 0;
}

static void expect_told(unsigned count, bool is_verbena)
{
	assert_int_equal(told.count, count);
	assert_int_equal(told.is_verbena, is_verbena);
	told.count = 0;
}

/* From there comes an answer to what was asked last, or something like it. */
static bool hear(struct vb_gid from, uint64_t transaction_id, uint64_t now)
{
	struct vb_discovery facts = { .version = VB_DISCOVERY_VERSION,
		.is_response = true,
		.transaction_id = transaction_id,
		.receive_buffer = THEIR_BUFFER };
	uint8_t bytes[VB_MAD_LENGTH];
	vb_discovery_encode(&facts, bytes);
	return discovery_receive(
		discovery, now, &(struct qp1_mad){ .from = from, .to = ours, .bytes = bytes, .length = VB_MAD_LENGTH });
}

static void peer__is_asked_thrice_and_then_nobody_for_a_while(void **state)
{
	ask(US, host(1), 0);
	expect_sent(1);
	uint64_t transaction = sent.facts.transaction_id;
	assert_int_equal(discovery_advance(discovery, 0), TRY_MS);
	assert_int_equal(discovery_advance(discovery, TRY_MS - 1), 1);
	expect_sent(0);
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(discovery_advance(discovery, i * TRY_MS), TRY_MS);
		expect_sent(1);
		assert_true(sent.facts.transaction_id == transaction);
	}
	expect_told(0, false);
	assert_int_equal(discovery_advance(discovery, 3 * TRY_MS), -1);
	expect_sent(0);
	expect_told(1, false);
	ask(US, host(1), 1000);
	expect_told(1, false);
	expect_sent(0);
	ask(US, host(1), 10000);
	expect_sent(1);
}

static void answer__is_told_to_all_who_asked_and_remembered(void **state)
{
	ask(US, host(1), 0);
	ask(ANOTHER, host(1), 1);
	expect_sent(1);
	assert_int_equal(discovery_questions(discovery, US), 1);
	assert_int_equal(discovery_questions(discovery, ANOTHER), 0); /* it is another's question */
	assert_true(hear(host(1), sent.facts.transaction_id, 2));
	expect_told(2, true);
	assert_int_equal(told.receive_buffer, THEIR_BUFFER);
	assert_int_equal(discovery_questions(discovery, US), 0);
	ask(US, host(1), 60 * 1000);
	expect_told(1, true);
	expect_sent(0);
	assert_int_equal(discovery_advance(discovery, 60 * 1000), -1);
}

static void answer__that_nobody_asked_for_changes_nothing(void **state)
{
	ask(US, host(1), 0);
	uint64_t transaction = sent.facts.transaction_id;
	assert_false(hear(host(1), transaction + 1, 1));
	assert_false(hear(host(2), transaction, 1));
	expect_told(0, false);
	assert_true(hear(host(1), transaction, 1));
	assert_false(hear(host(1), transaction, 2));
	expect_told(1, true);
}

static void client__that_is_gone_is_told_nothing(void **state)
{
	ask(US, host(1), 0);
	discovery_forget_client(discovery, US);
	assert_int_equal(discovery_questions(discovery, US), 0);
	assert_true(hear(host(1), sent.facts.transaction_id, 1));
	expect_told(0, false);
	assert_int_equal(discovery_questions(discovery, US), 0);
}

static void address__of_our_own_or_of_no_host_is_not_asked(void **state)
{
	struct vb_gid ipv6 = { { 0x20, 1, [15] = 1 } }, many = vb_gid_from_ipv4(224, 0, 0, 5), zero = { { 0 } };
	ask(US, ours, 0);
	expect_told(1, true);
	assert_int_equal(told.receive_buffer, OUR_BUFFER);
	ask(US, ipv6, 0);
	expect_told(1, false);
	ask(US, many, 0);
	expect_told(1, false);
	ask(US, zero, 0);
	expect_told(1, false);
	discovery_ask(discovery, 0, US, &ours, &(struct vb_gid){ { [10] = 0xff, 0xff, 10, 1, 0, 1 } }, false);
	expect_told(1, false); /* known or not, but not asked */
	expect_sent(0);
}

static void questions__are_bounded_and_old_answers_make_room(void **state)
{
	for (unsigned i = 0; i < MANY; i++)
		ask(US, host(i), 0);
	expect_sent(MANY);
	ask(US, host(MANY), 0);
	expect_sent(0);
	expect_told(1, false);
	for (unsigned tries = 1; tries <= 3; tries++)
		discovery_advance(discovery, tries * TRY_MS);
	expect_told(MANY, false);
	assert_int_equal(discovery_questions(discovery, US), 0);
	sent.count = 0;
	ask(US, host(MANY), 3 * TRY_MS);
	expect_sent(1);
}

static void question__is_answered_at_its_length_but_not_a_multicast_one(void **state)
{
	struct vb_discovery question = { .version = VB_DISCOVERY_VERSION, .transaction_id = 77, .qpn = 5 };
	uint8_t bytes[VB_MAD_LENGTH];
	struct qp1_mad mad = { .from = host(9), .to = ours, .bytes = bytes, .length = 1024 };
	vb_discovery_encode(&question, bytes);
	assert_true(discovery_receive(discovery, 0, &mad));
	expect_sent(1);
	assert_true(sent.facts.is_response && sent.facts.transaction_id == 77);
	assert_int_equal(sent.facts.process, VB_PROCESS_STOPPED);
	assert_int_equal(sent.facts.receive_buffer, OUR_BUFFER);
	assert_int_equal(sent.length, 1024);
	assert_true(vb_gid_equal(&sent.to, &mad.from) && vb_gid_equal(&sent.from, &ours));
	mad.to = vb_gid_from_ipv4(224, 0, 0, 5);
	assert_true(discovery_receive(discovery, 0, &mad));
	expect_sent(0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(peer__is_asked_thrice_and_then_nobody_for_a_while),
		TEST(answer__is_told_to_all_who_asked_and_remembered),
		TEST(answer__that_nobody_asked_for_changes_nothing),
		TEST(client__that_is_gone_is_told_nothing),
		TEST(address__of_our_own_or_of_no_host_is_not_asked),
		TEST(questions__are_bounded_and_old_answers_make_room),
		TEST(question__is_answered_at_its_length_but_not_a_multicast_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
