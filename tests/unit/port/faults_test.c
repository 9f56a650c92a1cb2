#include <errno.h>
#include <net/if.h>
#include "port/faults.h"
#include "port/port.h"
#include "../unit.h"

static const struct vb_path path = { .src_port = 0xC001 };

static struct vb_faults *parse(const char *text)
{
	struct vb_faults *faults = NULL;
	char why[512] = "";
	if (vb_faults_parse(text, &faults, why, sizeof(why)))
		fail_msg("%s", why);
	return faults;
}

/* ---- Parsing ----------------------------------------------------------------------------------------------------- */

static void faults__good_texts_are_taken(void **state)
{
	static const char *const good[] = { "drop=1%", "drop=0%", "drop=100%", "dup=0.1%", "corrupt=0.0001%",
		"reorder=12.5%", "delay=2ms", "delay=100us", "delay=1.5ms", "delay=10s", "delay=0us", "seed=0",
		"seed=18446744073709551615", "rate=1Gb/s",
		"rate=10G,queue=500kB,kmin=5kB,kmax=200kB,pmax=1%,delay=10us", "rate=1G,queue=64KiB,kmax=64KiB",
		"drop=1%,dup=0.1%,reorder=1%,corrupt=0.01%,delay=2ms,seed=7", "drop=1%,burst=8", "burst=1,drop=50%",
		"drop=0%,burst=1000000", "late=1%,late-by=300us", "late-by=10s,late=100%", "path=0", "path=63,drop=1%",
		"if=eth0", "if=eth0.100,path=7,late=1%,late-by=1ms" };
	for (size_t i = 0; i < COUNT_OF(good); i++)
		vb_faults_free(parse(good[i]));
}

static void faults__bad_texts_are_refused_with_what_is_allowed(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{ "", "nothing is given" },
		{ "drop=1%,", "nothing follows the last comma" },
		{ ",drop=1%", "\"\" is not a fault" },
		{ "drop", "\"drop\" needs a chance" },
		{ "drop=", "\"drop=\" needs a chance" },
		{ "drop=1", "\"drop=1\" needs a chance" },
		{ "drop=%", "needs a chance" },
		{ "drop=.%", "needs a chance" },
		{ "drop=1.%", "needs a chance" },
		{ "drop=1..5%", "needs a chance" },
		{ "drop=-1%", "needs a chance" },
		{ "drop=101%", "needs a chance" },
		{ "drop=100.0001%", "needs a chance" },
		{ "drop=0.00001%", "no finer than 0.0001%" },
		{ "drop=99999999999999999999%", "needs a chance" },
		{ "drop=1% ", "needs a chance" },
		{ " drop=1%", "is not a fault" },
		{ "Drop=1%", "is not a fault" },
		{ "loss=1%", "\"loss=1%\" is not a fault" },
		{ "drop=1%,dup=1%,lose=3%", "\"lose=3%\" is not a fault" },
		{ "delay=2", "needs a time" },
		{ "delay=2m", "needs a time" },
		{ "delay=ms", "needs a time" },
		{ "delay=11s", "needs a time up to 10s" },
		{ "delay=10.000001s", "needs a time up to 10s" },
		{ "delay=1000000000000us", "needs a time up to 10s" },
		{ "delay=-2ms", "needs a time" },
		{ "seed=", "needs a whole number" },
		{ "seed=x", "needs a whole number" },
		{ "seed=1.5", "needs a whole number" },
		{ "seed=18446744073709551616", "needs a whole number" },
		{ "rate=1", "needs a rate" },
		{ "rate=1k", "needs a rate" },
		{ "rate=2Tb/s", "needs a rate" },
		{ "queue=500kB", "need a rate" },
		{ "kmin=1,rate=1G", "need a kmax" },
		{ "rate=1G,pmax=1%", "need a kmax" },
		{ "rate=1G,pmax=0%", "need a kmax" },
		{ "rate=1G,kmin=2kB,kmax=1kB", "kmin is above kmax" },
		{ "rate=1G,queue=1kB,kmax=2kB", "kmax is above queue" },
		{ "rate=1G,queue=0", "lets nothing through" },
		{ "rate=1G,queue=1GB", "needs bytes up to 32MiB" },
		{ "burst=", "from 1 to 1000000" },
		{ "drop=1%,burst=0", "from 1 to 1000000" },
		{ "drop=1%,burst=1000001", "from 1 to 1000000" },
		{ "drop=1%,burst=1.5", "from 1 to 1000000" },
		{ "drop=51%,burst=1", "burst / (burst + 1)" },
		{ "late=1%", "late and late-by need each other" },
		{ "late-by=1ms", "late and late-by need each other" },
		{ "late=1%,late-by=0us", "late and late-by need each other" },
		{ "late=1%,late-by=11s", "needs a time up to 10s" },
		{ "late=2", "needs a chance" },
		{ "path=64", "from 0 to 63" },
		{ "path=-1", "from 0 to 63" },
		{ "path=", "from 0 to 63" },
		{ "if=", "needs the name of an interface" },
		{ "if=sixteen-letters0", "needs the name of an interface" },
	};
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct vb_faults *faults = NULL;
		char why[512] = "";
		assert_int_equal(vb_faults_parse(bad[i].text, &faults, why, sizeof(why)), -EINVAL);
		assert_null(faults);
		if (!strstr(why, bad[i].said))
			fail_msg("\"%s\": said %s", bad[i].text, why);
		assert_non_null(strstr(why, "drop=P,dup=P,reorder=P,corrupt=P,delay=TIME,seed=N"));
	}
}

static void faults__explanation_fits_where_it_is_put(void **state)
{
	struct vb_faults *faults = NULL;
	char why[16];
	memset(why, 'x', sizeof(why));
	assert_int_equal(vb_faults_parse("drop=x", &faults, why, 8), -EINVAL);
	assert_int_equal(why[7], '\0');
	assert_int_equal(why[8], 'x');
}

/* ---- What happens to packets ------------------------------------------------------------------------------------- */

/* Packets 0 .. count - 1, each its own number, one microsecond apart; what is delivered, in order. */
struct delivered {
	unsigned count, damaged;
	uint16_t number[20000];
	vb_time at[20000];
};

static void deliver(struct delivered *delivered, const uint8_t *bytes, size_t length, vb_time now)
{
	assert_int_equal(length, 64);
	assert_true(delivered->count < COUNT_OF(delivered->number));
	for (size_t i = 2; i < length; i++) {
		if (bytes[i] != 0xA5) {
			delivered->damaged++;
			break;
		}
	}
	delivered->number[delivered->count] = (uint16_t)(bytes[0] | bytes[1] << 8);
	delivered->at[delivered->count++] = now;
}

static void release_due(struct vb_faults *faults, struct delivered *delivered, vb_time now)
{
	for (struct vb_held *held; (held = vb_faults_release(faults, now));) {
		assert_int_equal(held->path.src_port, path.src_port);
		deliver(delivered, held->bytes, held->length, now);
	}
	vb_faults_check(faults);
}

/* As a port does it, then on until nothing is held any more. */
static void run_packets(struct vb_faults *faults, unsigned count, struct delivered *delivered)
{
	vb_time now = INT64_MAX - 50 * VB_US; /* through the wrap */
	memset(delivered, 0, sizeof(*delivered));
	for (unsigned i = 0; i < count; i++, now = vb_time_add(now, VB_US)) {
		uint8_t bytes[64];
		memset(bytes, 0xA5, sizeof(bytes));
		bytes[0] = (uint8_t)i;
		bytes[1] = (uint8_t)(i >> 8);
		vb_faults_recycle(faults);
		unsigned copies = vb_faults_admit(faults, &path, bytes, sizeof(bytes), now);
		for (unsigned j = 0; j < copies; j++)
			deliver(delivered, bytes, sizeof(bytes), now);
		release_due(faults, delivered, now);
	}
	unsigned waits = 0;
	for (struct vb_deadline next; (next = vb_faults_deadline(faults)).is_set; waits++) {
		assert_in_range(waits, 0, 3 * count);
		vb_faults_recycle(faults);
		now = vb_time_before(now, next.at) ? next.at : now;
		release_due(faults, delivered, now);
	}
	vb_faults_recycle(faults);
}

static unsigned count_inversions(const struct delivered *delivered)
{
	unsigned count = 0;
	for (unsigned i = 1; i < delivered->count; i++)
		count += delivered->number[i] < delivered->number[i - 1];
	return count;
}

static struct delivered seen, seen_again;

static void faults__none_leave_everything_alone(void **state)
{
	struct vb_faults *faults = parse("drop=0%");
	run_packets(faults, 1000, &seen);
	assert_int_equal(seen.count, 1000);
	assert_int_equal(seen.damaged, 0);
	assert_int_equal(count_inversions(&seen), 0);
	for (unsigned kind = 0; kind < VB_FAULTS; kind++)
		assert_int_equal(vb_faults_count(faults, kind), 0);
	vb_faults_free(faults);
}

static void faults__drop_loses_its_share(void **state)
{
	struct vb_faults *faults = parse("drop=10%,seed=3");
	run_packets(faults, 10000, &seen);
	assert_in_range(seen.count, 8800, 9200);
	assert_int_equal(vb_faults_count(faults, VB_FAULT_DROPPED), 10000 - seen.count);
	vb_faults_free(faults);
	faults = parse("drop=100%");
	run_packets(faults, 100, &seen);
	assert_int_equal(seen.count, 0);
	vb_faults_free(faults);
}

static void faults__dup_doubles_its_share(void **state)
{
	struct vb_faults *faults = parse("dup=10%");
	run_packets(faults, 10000, &seen);
	assert_in_range(seen.count, 10800, 11200);
	assert_int_equal(vb_faults_count(faults, VB_FAULT_DOUBLED), seen.count - 10000);
	for (unsigned i = 1; i < seen.count; i++)
		assert_in_range(seen.number[i] - seen.number[i - 1], 0, 1);
	vb_faults_free(faults);
}

static void faults__corrupt_flips_one_bit_of_its_share(void **state)
{
	struct vb_faults *faults = parse("corrupt=100%");
	for (int i = 0; i < 1000; i++) {
		uint8_t bytes[64] = { 0 };
		unsigned bits = 0;
		assert_int_equal(vb_faults_admit(faults, &path, bytes, sizeof(bytes), 0), 1);
		for (size_t j = 0; j < sizeof(bytes); j++)
			bits += (unsigned)__builtin_popcount(bytes[j]);
		assert_int_equal(bits, 1);
	}
	vb_faults_free(faults);
	faults = parse("corrupt=10%");
	run_packets(faults, 10000, &seen);
	assert_in_range(vb_faults_count(faults, VB_FAULT_CORRUPTED), 800, 1200);
	assert_int_equal(seen.count, 10000);
	vb_faults_free(faults);
}

/* Of what is done to a packet each kind counts; to one that was dropped nothing else is done. */
static void faults__each_kind_has_a_counter_of_its_own(void **state)
{
	struct vb_faults *faults = parse("drop=30%,dup=20%,reorder=20%,corrupt=10%");
	run_packets(faults, 10000, &seen);
	uint64_t dropped = vb_faults_count(faults, VB_FAULT_DROPPED),
		 doubled = vb_faults_count(faults, VB_FAULT_DOUBLED);
	assert_in_range(dropped, 2800, 3200);
	assert_in_range(doubled, 1300, 1500);
	assert_in_range(vb_faults_count(faults, VB_FAULT_REORDERED), 1300, 1500);
	assert_in_range(vb_faults_count(faults, VB_FAULT_CORRUPTED), 650, 750);
	assert_int_equal(vb_faults_count(faults, VB_FAULT_DELAYED), 0);
	assert_int_equal(seen.count, 10000 - dropped + doubled);
	vb_faults_free(faults);
}

static void faults__corrupt_is_loss_for_who_has_no_icrc_to_find_it(void **state)
{
	struct vb_faults *faults = parse("drop=10%,corrupt=20%");
	vb_faults_be_of_messages(faults);
	run_packets(faults, 10000, &seen);
	assert_in_range(seen.count, 6700, 7300);
	assert_int_equal(seen.damaged, 0);
	vb_faults_free(faults);
}

static void faults__reorder_lets_a_few_past_and_loses_none(void **state)
{
	static uint8_t times[10000];
	struct vb_faults *faults = parse("reorder=5%");
	run_packets(faults, 10000, &seen);
	assert_int_equal(seen.count, 10000);
	assert_in_range(count_inversions(&seen), 300, 600);
	memset(times, 0, sizeof(times));
	for (unsigned i = 0; i < seen.count; i++) {
		times[seen.number[i]]++;
		/* Others may be held as well, so a packet moves a little further than it lets pass. */
		assert_in_range(seen.number[i] + 2 * VB_FAULTS_PASSED_MAX, i, i + 4 * VB_FAULTS_PASSED_MAX);
	}
	for (unsigned i = 0; i < seen.count; i++)
		assert_int_equal(times[i], 1);
	vb_faults_free(faults);
}

static void faults__reordered_packet_goes_on_though_nobody_passes(void **state)
{
	struct vb_faults *faults = parse("reorder=100%");
	uint8_t bytes[64] = { 0 };
	assert_int_equal(vb_faults_admit(faults, &path, bytes, sizeof(bytes), 5), 0);
	assert_null(vb_faults_release(faults, 5));
	struct vb_deadline next = vb_faults_deadline(faults);
	assert_true(next.is_set && next.at == 5 + VB_FAULTS_REORDER_WAIT);
	assert_null(vb_faults_release(faults, next.at - 1));
	assert_non_null(vb_faults_release(faults, next.at));
	assert_false(vb_faults_deadline(faults).is_set);
	vb_faults_free(faults);
}

static void faults__delay_holds_every_packet_as_long_and_in_order(void **state)
{
	struct vb_faults *faults = parse("delay=2ms");
	uint8_t bytes[64] = { 0 };
	for (vb_time at = 0; at < 3 * VB_US; at += VB_US) {
		bytes[0] = (uint8_t)(at / VB_US);
		assert_int_equal(vb_faults_admit(faults, &path, bytes, sizeof(bytes), at), 0);
	}
	for (vb_time at = 0; at < 3 * VB_US; at += VB_US) {
		struct vb_deadline next = vb_faults_deadline(faults);
		assert_true(next.is_set && next.at == at + 2 * VB_MS);
		assert_null(vb_faults_release(faults, next.at - 1));
		struct vb_held *held = vb_faults_release(faults, next.at);
		assert_non_null(held);
		assert_int_equal(held->bytes[0], at / VB_US);
		assert_int_equal(held->length, sizeof(bytes));
	}
	assert_false(vb_faults_deadline(faults).is_set);
	assert_int_equal(vb_faults_count(faults, VB_FAULT_DELAYED), 3);
	vb_faults_free(faults);
}

static void faults__bottleneck_marks_by_no_chance_where_that_is_0(void **state)
{
	static const struct {
		const char *text;
		uint32_t ppm;
	} cases[] = { { "rate=1G,kmax=5kB,pmax=0%", 0 }, { "rate=1G,kmax=5kB,pmax=1%", 10000 },
		{ "rate=1G,kmax=5kB", 1000000 } };
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct vb_faults *faults = parse(cases[i].text);
		assert_int_equal(vb_faults_bottleneck(faults)->pmax_ppm, cases[i].ppm);
		vb_faults_free(faults);
	}
}

/* A packet of 1,222 bytes over UDP and IPv4 takes 10 us at 1 Gb/s. */
static void faults__bottleneck_lets_one_go_after_the_other_and_marks(void **state)
{
	struct vb_faults *faults = parse("rate=1Gb/s,queue=5kB,kmin=2kB,kmax=2kB,delay=1ms");
	struct vb_path from = path;
	uint8_t bytes[1222] = { 0 };
	from.dst = vb_gid_from_ipv4(10, 0, 0, 1);
	from.traffic_class = 2;
	for (unsigned i = 0; i < 6; i++) { /* four find room */
		bytes[0] = (uint8_t)i;
		assert_int_equal(vb_faults_admit(faults, &from, bytes, sizeof(bytes), VB_S), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		struct vb_deadline next = vb_faults_deadline(faults);
		assert_true(next.is_set && next.at == VB_S + VB_MS + (i + 1) * 10 * VB_US);
		struct vb_held *held = vb_faults_release(faults, next.at);
		assert_int_equal(held->bytes[0], i);
		assert_int_equal(held->path.traffic_class, i < 2 ? 2 : 3);
	}
	assert_false(vb_faults_deadline(faults).is_set);
	assert_int_equal(vb_faults_bottleneck(faults)->drops, 2);
	assert_int_equal(vb_faults_bottleneck(faults)->marks, 2);
	vb_faults_be_of_messages(faults);
	assert_int_equal(vb_faults_bottleneck(faults)->rate, 0); /* of MADs */
	vb_faults_free(faults);
}

static void faults__all_at_once_lose_only_what_is_dropped(void **state)
{
	struct vb_faults *faults = parse("drop=5%,dup=5%,reorder=5%,delay=200us,seed=9");
	run_packets(faults, 10000, &seen);
	assert_in_range(seen.count, 9500, 10500);
	assert_in_range(count_inversions(&seen), 200, 700);
	static uint8_t times[10000];
	unsigned lost = 0;
	memset(times, 0, sizeof(times));
	for (unsigned i = 0; i < seen.count; i++)
		times[seen.number[i]]++;
	for (unsigned i = 0; i < 10000; i++) {
		assert_in_range(times[i], 0, 2);
		lost += times[i] == 0;
	}
	assert_in_range(lost, 400, 600);
	vb_faults_free(faults);
}

static void faults__burst_drops_its_share_in_runs(void **state)
{
	struct vb_faults *faults = parse("drop=10%,burst=8,seed=5");
	unsigned dropped, runs = 0, next = 0;
	run_packets(faults, 10000, &seen);
	dropped = 10000 - seen.count;
	for (unsigned i = 0; i < seen.count; next = seen.number[i++] + 1u)
		runs += seen.number[i] != next;
	runs += next != 10000;
	assert_in_range(dropped, 700, 1300);
	assert_in_range(dropped / runs, 6, 10);
	assert_int_equal(vb_faults_count(faults, VB_FAULT_DROPPED), dropped);
	assert_int_equal(vb_faults_count(faults, VB_FAULT_BURSTS), runs);
	vb_faults_free(faults);
}

static void faults__late_ones_come_by_their_time_and_none_is_lost(void **state)
{
	static uint8_t times[10000];
	struct vb_faults *faults = parse("late=5%,late-by=300us");
	unsigned late = 0;
	memset(times, 0, sizeof(times));
	run_packets(faults, 10000, &seen);
	assert_int_equal(seen.count, 10000);
	for (unsigned i = 0; i < seen.count; i++) {
		vb_time sent_at = vb_time_add(INT64_MAX - 50 * VB_US, (vb_time)seen.number[i] * VB_US);
		vb_time by = vb_time_diff(seen.at[i], sent_at);
		assert_true(by == 0 || by == 300 * VB_US);
		late += by != 0;
		assert_int_equal(times[seen.number[i]]++, 0);
	}
	assert_in_range(late, 400, 600);
	assert_int_equal(vb_faults_count(faults, VB_FAULT_LATE), late);
	vb_faults_free(faults);
}

/* With a delay the late ones are later than that; a doubled one comes on time, too. */
static void faults__late_ones_add_to_the_delay(void **state)
{
	struct vb_faults *faults = parse("late=100%,late-by=1ms,delay=2ms,dup=100%");
	uint8_t bytes[64] = { 0 };
	assert_int_equal(vb_faults_admit(faults, &path, bytes, sizeof(bytes), 0), 0);
	assert_int_equal(vb_faults_deadline(faults).at, 2 * VB_MS);
	assert_non_null(vb_faults_release(faults, 2 * VB_MS));
	assert_null(vb_faults_release(faults, 2 * VB_MS));
	assert_int_equal(vb_faults_deadline(faults).at, 3 * VB_MS);
	assert_null(vb_faults_release(faults, 3 * VB_MS - 1));
	assert_non_null(vb_faults_release(faults, 3 * VB_MS));
	assert_false(vb_faults_deadline(faults).is_set);
	vb_faults_free(faults);
}

/* Which of 1,000 packets of a path are dropped, while each is followed by others packets of another path. */
static void drop_on_path(struct vb_faults *faults, uint16_t src_port, unsigned others, bool dropped[1000])
{
	struct vb_path of_path = { .src_port = src_port }, another = { .src_port = (uint16_t)(src_port + 1) };
	uint8_t bytes[64] = { 0 };
	for (unsigned i = 0; i < 1000; i++) {
		dropped[i] = vb_faults_admit(faults, &of_path, bytes, sizeof(bytes), 0) == 0;
		for (unsigned j = 0; j < others; j++)
			assert_int_equal(vb_faults_admit(faults, &another, bytes, sizeof(bytes), 0), 1);
	}
}

static void faults__of_a_path_strike_it_alone_and_whatever_others_do(void **state)
{
	bool alone[1000], beside[1000];
	unsigned count = 0;
	struct vb_faults *one = parse("drop=20%,path=5,seed=3"), *two = parse("drop=20%,path=5,seed=3");
	drop_on_path(one, 0xC000 + 5, 0, alone);
	drop_on_path(two, 0xC000 + 64 + 5, 3, beside);
	assert_memory_equal(alone, beside, sizeof(alone));
	for (unsigned i = 0; i < 1000; i++)
		count += alone[i];
	assert_in_range(count, 150, 250);
	vb_faults_free(one);
	vb_faults_free(two);
}

static void faults__of_an_interface_strike_what_comes_over_it(void **state)
{
	struct vb_faults *faults = parse("drop=100%,if=lo");
	struct vb_path over = { .src_port = 0xC001, .ifindex = if_nametoindex("lo") };
	uint8_t bytes[64] = { 0 };
	if (!over.ifindex)
		skip();
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vb_faults_admit(faults, &over, bytes, sizeof(bytes), 0), 0);
		assert_int_equal(vb_faults_admit(faults, &path, bytes, sizeof(bytes), 0), 1); /* over none */
	}
	over.ifindex += 16; /* where the first is kept, and no interface here */
	assert_int_equal(vb_faults_admit(faults, &over, bytes, sizeof(bytes), 0), 1);
	vb_faults_free(faults);
	faults = parse("drop=100%,if=nosuch");
	over.ifindex -= 16;
	assert_int_equal(vb_faults_admit(faults, &over, bytes, sizeof(bytes), 0), 1);
	vb_faults_free(faults);
}

static void faults__of_a_path_or_interface_strike_no_message(void **state)
{
	static const char *const texts[] = { "drop=100%,path=1", "drop=100%,if=lo" };
	uint8_t bytes[64] = { 0 };
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		struct vb_faults *faults = parse(texts[i]);
		struct vb_path from = { .src_port = 1, .ifindex = if_nametoindex("lo") };
		vb_faults_be_of_messages(faults);
		assert_int_equal(vb_faults_admit(faults, &from, bytes, sizeof(bytes), 0), 1);
		vb_faults_free(faults);
	}
}

/* Recorded before late= and burst= were there. A seed that somebody wrote down goes on giving its faults. */
static void faults__of_a_seed_are_those_of_earlier_releases(void **state)
{
	static const uint16_t first_dropped[] = { 0, 49, 51, 77, 78, 100, 113, 114 };
	struct vb_faults *faults = parse("drop=5%,dup=5%,reorder=5%,seed=9");
	uint8_t bytes[64] = { 0 };
	unsigned found = 0;
	for (uint16_t i = 0; found < COUNT_OF(first_dropped); i++) {
		uint64_t before = vb_faults_count(faults, VB_FAULT_DROPPED);
		vb_faults_admit(faults, &path, bytes, sizeof(bytes), 0);
		if (vb_faults_count(faults, VB_FAULT_DROPPED) != before)
			assert_int_equal(i, first_dropped[found++]);
	}
	vb_faults_free(faults);
}

static void faults__same_seed_gives_the_same_faults(void **state)
{
	const char *text = "drop=5%,dup=5%,reorder=5%,corrupt=5%,delay=20us,seed=11";
	struct vb_faults *one = parse(text), *two = parse(text);
	struct vb_faults *other = parse("drop=5%,dup=5%,reorder=5%,corrupt=5%,delay=20us,seed=12");
	run_packets(one, 5000, &seen);
	run_packets(two, 5000, &seen_again);
	assert_memory_equal(&seen, &seen_again, sizeof(seen));
	run_packets(other, 5000, &seen_again);
	assert_memory_not_equal(&seen, &seen_again, sizeof(seen));
	vb_faults_free(one);
	vb_faults_free(two);
	vb_faults_free(other);
}

static void faults__one_more_fault_leaves_the_others_where_they_were(void **state)
{
	struct vb_faults *few = parse("drop=5%,seed=4"), *more = parse("drop=5%,corrupt=50%,seed=4");
	run_packets(few, 5000, &seen);
	run_packets(more, 5000, &seen_again);
	assert_int_equal(seen.count, seen_again.count);
	vb_faults_free(few);
	vb_faults_free(more);
}

static void faults__what_is_held_is_bounded(void **state)
{
	struct vb_faults *faults = parse("delay=1s");
	uint8_t bytes[64] = { 0 };
	for (int i = 0; i < VB_FAULTS_HELD_MAX + 100; i++)
		vb_faults_admit(faults, &path, bytes, sizeof(bytes), 0);
	unsigned released = 0;
	while (vb_faults_release(faults, VB_S))
		released++;
	assert_int_equal(released, VB_FAULTS_HELD_MAX);
	/* Given out is still held; taken back, there is room again. */
	vb_faults_admit(faults, &path, bytes, sizeof(bytes), 0);
	assert_null(vb_faults_release(faults, VB_S));
	vb_faults_recycle(faults);
	vb_faults_admit(faults, &path, bytes, sizeof(bytes), 0);
	assert_non_null(vb_faults_release(faults, VB_S));
	vb_faults_free(faults);
}

static void faults__packets_longer_than_any_pass_untouched(void **state)
{
	static uint8_t bytes[VB_MAX_PACKET_BYTES + 1];
	struct vb_faults *faults = parse("drop=100%");
	assert_int_equal(vb_faults_admit(faults, &path, bytes, sizeof(bytes), 0), 1);
	assert_int_equal(vb_faults_admit(faults, &path, bytes, 0, 0), 0);
	vb_faults_free(faults);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults__good_texts_are_taken),
		cmocka_unit_test(faults__bad_texts_are_refused_with_what_is_allowed),
		cmocka_unit_test(faults__explanation_fits_where_it_is_put),
		cmocka_unit_test(faults__none_leave_everything_alone),
		cmocka_unit_test(faults__drop_loses_its_share),
		cmocka_unit_test(faults__dup_doubles_its_share),
		cmocka_unit_test(faults__corrupt_flips_one_bit_of_its_share),
		cmocka_unit_test(faults__each_kind_has_a_counter_of_its_own),
		cmocka_unit_test(faults__corrupt_is_loss_for_who_has_no_icrc_to_find_it),
		cmocka_unit_test(faults__bottleneck_marks_by_no_chance_where_that_is_0),
		cmocka_unit_test(faults__bottleneck_lets_one_go_after_the_other_and_marks),
		cmocka_unit_test(faults__reorder_lets_a_few_past_and_loses_none),
		cmocka_unit_test(faults__reordered_packet_goes_on_though_nobody_passes),
		cmocka_unit_test(faults__delay_holds_every_packet_as_long_and_in_order),
		cmocka_unit_test(faults__all_at_once_lose_only_what_is_dropped),
		cmocka_unit_test(faults__burst_drops_its_share_in_runs),
		cmocka_unit_test(faults__late_ones_come_by_their_time_and_none_is_lost),
		cmocka_unit_test(faults__late_ones_add_to_the_delay),
		cmocka_unit_test(faults__of_a_path_strike_it_alone_and_whatever_others_do),
		cmocka_unit_test(faults__of_an_interface_strike_what_comes_over_it),
		cmocka_unit_test(faults__of_a_path_or_interface_strike_no_message),
		cmocka_unit_test(faults__of_a_seed_are_those_of_earlier_releases),
		cmocka_unit_test(faults__same_seed_gives_the_same_faults),
		cmocka_unit_test(faults__one_more_fault_leaves_the_others_where_they_were),
		cmocka_unit_test(faults__what_is_held_is_bounded),
		cmocka_unit_test(faults__packets_longer_than_any_pass_untouched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
