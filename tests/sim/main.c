/* sim [--seed N | --seeds A..B | --soak MINUTES] [--packets N] [--twice] [--trace | --verbose] [--incast | --local]
 *     [--recovery go-back-n | selective | agreed]
 * sim --twins [--seeds A..B] [--packets N]: each traffic by going back and by selective repeat, and what programs see.
 * Prints the seed before it runs it; a failure names it again, and `sim --seed N` replays it to the same end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "engine/check.h"
#include "sim.h"

struct world world;
bool is_traced, is_verbose;

static struct {
	uint64_t first, last, packets;
	double soak_minutes;
	bool is_twice, has_incast, is_local, has_twins;
	uint64_t cut_short;   /* of the twins */
	const char *recovery; /* NULL: by the seed */
	enum vb_recovery_kind recovery_kind;
} options = { .first = 1, .last = 1, .packets = 100000 };

void broken(const char *format, ...)
{
	va_list arguments;
	fflush(stdout);
	fprintf(stderr, "sim: seed %" PRIu64 ", packet %" PRIu64 ", %.3f ms: ", world.seed, world.packets,
		(double)world.now / (double)VB_MS);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\nreplay with: sim --seed %" PRIu64 " --packets %" PRIu64 " --trace%s%s%s\n", world.seed,
		world.packets_wanted,
		options.has_incast  ? " --incast"
		: options.has_twins ? " --twins"
		: options.is_local  ? " --local"
				    : "",
		options.recovery ? " --recovery " : "", options.recovery ? options.recovery : "");
	exit(1);
}

void trace(const char *format, ...)
{
	va_list arguments;
	if (!is_traced)
		return;
	printf("%12.3f us  ", (double)world.now / (double)VB_US);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

void note(uint64_t value)
{
	world.hash = (world.hash ^ value ^ (uint64_t)world.now) * 0x100000001B3u;
	world.hash ^= world.hash >> 32;
}

void world_open(uint64_t seed)
{
	memset(&world, 0, sizeof(world));
	world.seed = seed;
	world.hash = 0xCBF29CE484222325u;
	world.next_id = 1;
	world.packets_wanted = options.packets;
	world.is_local = options.is_local;
	world.is_twin = options.has_twins;
	world.is_recovery_given = options.recovery || options.has_twins;
	world.recovery = options.recovery_kind;
	vb_random_seed(&world.random, seed);
	if (chance(100000)) /* time wraps during the run */
		world.now = world.begin = INT64_MAX - 20 * VB_MS;
	atomic_reset();
}

void world_happen(struct event event)
{
	switch (event.kind) {
	case EVENT_LANE: {
		struct lane *lane = event.object;
		if (lane->is_scheduled && lane->wake_at == world.now) {
			if (vb_time_before(world.now, lane->paused_until)) {
				lane->is_scheduled = false;
				lane_wake(lane, lane->paused_until);
			} else {
				lane_run(lane);
			}
		}
		break;
	}
	case EVENT_APP:
		app_run(event.object);
		break;
	case EVENT_REPAIR:
		connection_repair(event.object);
		break;
	case EVENT_CONNECT:
		connection_late(event.object);
		break;
	case EVENT_SIDE:
		side_run(event.object);
		break;
	case EVENT_FATE:
		local_meet_fate(event.object);
		break;
	case EVENT_WISH:
		local_answer_wanted(event.object);
		break;
	case EVENT_REBIRTH:
		local_rebirth(event.object);
		break;
	case EVENT_CHAOS:
		chaos();
		check_progress();
		check_guards();
		for (unsigned i = 0; i < world.host_count; i++)
			vb_nic_check(world.hosts[i].nic);
		if (!world.is_stopping && !world.is_twin && world.packets >= world.packets_wanted)
			world.is_stopping = true;
		break;
	}
}

/* The network's last steps may have concerned nobody here. */
void world_close(void)
{
	world.now = vb_time_add(world.begin, fabric_now(world.fabric));
	for (unsigned i = 0; i < world.connection_count; i++)
		connection_close(&world.connections[i]);
	local_close();
	for (unsigned i = 0; i < world.host_count; i++)
		host_close(&world.hosts[i]);
	network_close();
	free(world.events);
}

static bool is_at_rest(void)
{
	for (unsigned i = 0; i < world.connection_count; i++) {
		struct connection *connection = &world.connections[i];
		if (connection->state != UP || connection->is_repair_set)
			return false;
		for (int k = 0; k < 2; k++)
			if (connection->ends[k].head != connection->ends[k].tail)
				return false;
	}
	return world.is_stopping;
}

static void check_at_rest(void)
{
	for (unsigned i = 0; i < world.host_count; i++)
		host_take_completions(&world.hosts[i]);
	for (unsigned i = 0; i < world.connection_count; i++) {
		struct connection *connection = &world.connections[i];
		for (int k = 0; k < 2; k++)
			if (connection->ends[k].inbound_head != connection->ends[k].inbound_tail)
				broken("connection %u: a message was acknowledged and never received",
					connection->index);
		check_targets(connection);
	}
	check_guards();
	check_atomics();
}

static void open_connections(void)
{
	world.connection_count = 2 + below(10);
	for (unsigned i = 0; i < world.connection_count; i++) {
		uint32_t kind = below(100);
		connection_open(&world.connections[i], i,
			kind < 75 || i == 0 ? VB_QP_RC
			: kind < 87         ? VB_QP_UC
					    : VB_QP_UD,
			kind < 20);
	}
}

static void build(void)
{
	network_choose();
	world.host_count = 2 + below(3);
	network_open();
	for (unsigned i = 0; i < world.host_count; i++)
		host_open(&world.hosts[i], i, chance(400000) ? 2 : 1);
	for (unsigned i = 0; i < world.host_count; i++)
		if (world.network.is_trained)
			host_meet(&world.hosts[i]);
	if (world.is_local)
		local_open();
	if (world.is_twin)
		twins_open();
	else
		open_connections();
	event_add(after(VB_MS), EVENT_CHAOS, NULL);
}

static uint64_t run(uint64_t seed)
{
	world_open(seed);
	build();
	while (!is_at_rest()) {
		for (int i = 0; i < 256 && network_step(); i++)
			;
	}
	check_at_rest();
	if (world.is_twin)
		twins_end();
	world_close();
	return world.hash;
}

/* False: retries ended a connection in one of the two. */
static bool run_twins(uint64_t seed)
{
	options.recovery_kind = VB_RECOVERY_GO_BACK_N;
	run(seed);
	options.recovery_kind = seed % 2 ? VB_RECOVERY_SELECTIVE : VB_RECOVERY_AGREED;
	run(seed);
	return twins_compare();
}

static void run_seed(uint64_t seed)
{
	printf("seed %" PRIu64 "\n", seed);
	fflush(stdout);
	if (options.has_twins) {
		options.cut_short += !run_twins(seed);
		return;
	}
	if (options.has_incast) {
		incast_run(seed, false);
		incast_run(seed, true);
		return;
	}
	uint64_t hash = run(seed);
	printf("  %" PRIu64 " packets, %" PRIu64 " completions, %.1f ms, %" PRIu64 " lost, %" PRIu64
	       " overflowed, %" PRIu64 " corrupted, %" PRIu64 " timeouts, %" PRIu64 " reconnects, %" PRIu64
	       " held, one overtaken by %" PRIu64 ", %" PRIu64 " moves, trace %016" PRIx64 "\n",
		world.packets, world.completions, (double)vb_time_since(world.begin, world.now) / (double)VB_MS,
		world.lost, world.overflowed, world.corrupted, world.timeouts, world.reconnects, world.held,
		world.farthest, world.moves, hash);
	if (world.is_local)
		local_report();
	if (options.is_twice && run(seed) != hash)
		broken("the same seed gave another trace: %016" PRIx64 " and %016" PRIx64, hash, world.hash);
}

static void usage(void)
{
	fprintf(stderr, "usage: sim [--seed N | --seeds A..B | --soak MINUTES] [--packets N] [--twice] [--trace | "
			"--verbose] [--incast | --local]\n"
			"           [--recovery go-back-n | selective | agreed]\n"
			"       sim --twins [--seed N | --seeds A..B] [--packets N] [--trace | --verbose]\n");
	exit(2);
}

static bool read_recovery(const char *value)
{
	static const char *const names[] = { [VB_RECOVERY_GO_BACK_N] = "go-back-n",
		[VB_RECOVERY_SELECTIVE] = "selective",
		[VB_RECOVERY_AGREED] = "agreed" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!names[i] || strcmp(names[i], value) != 0)
			continue;
		options.recovery = names[i];
		options.recovery_kind = (enum vb_recovery_kind)i;
		return true;
	}
	return false;
}

static void read_options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(argv[i], "--seed") && sscanf(value, "%" SCNu64, &options.first) == 1) {
			options.last = options.first;
			i++;
		} else if (!strcmp(argv[i], "--seeds") &&
			   sscanf(value, "%" SCNu64 "..%" SCNu64, &options.first, &options.last) == 2) {
			i++;
		} else if (!strcmp(argv[i], "--soak") && sscanf(value, "%lf", &options.soak_minutes) == 1) {
			options.first = (uint64_t)time(NULL) * 1000;
			i++;
		} else if (!strcmp(argv[i], "--packets") && sscanf(value, "%" SCNu64, &options.packets) == 1) {
			i++;
		} else if (!strcmp(argv[i], "--recovery") && read_recovery(value)) {
			i++;
		} else if (!strcmp(argv[i], "--twice")) {
			options.is_twice = true;
		} else if (!strcmp(argv[i], "--trace")) {
			is_traced = true;
		} else if (!strcmp(argv[i], "--verbose")) {
			is_traced = is_verbose = true;
		} else if (!strcmp(argv[i], "--incast")) {
			options.has_incast = true;
		} else if (!strcmp(argv[i], "--twins")) {
			options.has_twins = true;
		} else if (!strcmp(argv[i], "--local")) {
			options.is_local = true;
		} else {
			usage();
		}
	}
}

/* Few may be cut short: of those the rest was not compared. */
static int report_twins(void)
{
	uint64_t seeds = options.last - options.first + 1;
	printf("%" PRIu64 " of %" PRIu64 " seeds were cut short by retries that ran out\n", options.cut_short, seeds);
	return options.cut_short > 5 + seeds / 20;
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	if (options.soak_minutes > 0) {
		time_t end = time(NULL) + (time_t)(options.soak_minutes * 60);
		for (uint64_t seed = options.first; time(NULL) < end; seed++)
			run_seed(seed);
		return 0;
	}
	for (uint64_t seed = options.first; seed <= options.last; seed++)
		run_seed(seed);
	return options.has_twins ? report_twins() : 0;
}
