/* See relay.h. One thread, two devices. It sleeps until a packet comes or the first that is under way is due.
 * Not here: what becomes of a packet (channel.c), trains (cut.c, join.c). */
#include "relay.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/invariant.h"
#include "cut.h"
#include "join.h"
#include "os/clock.h"
#include "timeline.h"

enum { READ_BYTES = 65536 + 256, READS = 16 /* of a device, before packets that are due are written */ };

#define LONGEST_WAIT (20 * VB_CLOCK_MS)
#define TICK         20000 /* ns: while packets flow, all that comes in this time is handled at once */

struct relay {
	const struct link_options *options;
	const int *devices;
	struct link_report *report;
	struct link_queue lines[LINK_DIRECTIONS];
	struct link_channel channels[LINK_DIRECTIONS][LINK_PATHS_MAX];
	struct link_timeline timeline;
	struct link_train trains[LINK_DIRECTIONS]; /* of packets that are due now */
	bool takes_udp;
	uint8_t bytes[READ_BYTES];
};

static vb_time now_of_clock(void)
{
	return (vb_time)vb_clock_ns() * VB_NS;
}

/* ---- In ---------------------------------------------------------------------------------------------------------- */

static void schedule(
	struct relay *relay, const struct link_cut *cut, unsigned i, unsigned direction, unsigned path, vb_time due)
{
	struct link_packet *packet = link_timeline_new(&relay->timeline);

	if (!packet) {
		relay->report->directions[direction].had_no_memory++;
		return;
	}
	packet->direction = (uint8_t)direction;
	packet->path = (uint8_t)path;
	packet->length = (uint32_t)link_cut_length(cut, i);
	link_cut_write(cut, i, packet->bytes);
	link_timeline_schedule(&relay->timeline, packet, due);
}

static void admit(struct relay *relay, const struct link_cut *cut, unsigned i, unsigned direction, vb_time now)
{
	unsigned path = cut->source_port % relay->options->paths;
	uint32_t bytes = (uint32_t)(link_cut_length(cut, i) - sizeof(cut->header));
	vb_time due[LINK_COPIES];

	if (bytes > relay->options->mtu) {
		relay->report->directions[direction].malformed++;
		return;
	}
	unsigned copies =
		link_channel_admit(&relay->channels[direction][path], &relay->lines[direction], bytes, now, due);
	for (unsigned copy = 0; copy < copies; copy++)
		schedule(relay, cut, i, direction, path, due[copy]);
}

/* Takes what one end has sent; true: there was something. */
static bool take_from(struct relay *relay, unsigned direction)
{
	struct link_cut cut;
	unsigned reads = 0;
	vb_time now = now_of_clock();

	for (; reads < READS; reads++) {
		ssize_t length = read(relay->devices[direction], relay->bytes, sizeof(relay->bytes));
		if (length <= 0)
			break;
		if (!link_cut_begin(&cut, relay->bytes, (size_t)length)) {
			relay->report->directions[direction].malformed++;
			continue;
		}
		for (unsigned i = 0; i < cut.count; i++)
			admit(relay, &cut, i, direction, now);
	}
	relay->report->directions[direction].longest_queue = relay->lines[direction].most;
	return reads > 0;
}

/* ---- Out --------------------------------------------------------------------------------------------------------- */

static void note_lateness(struct link_report *report, vb_time late)
{
	uint64_t us = (uint64_t)(late / VB_US);

	report->late[us < LINK_LATE_STEPS ? us : LINK_LATE_STEPS]++;
	if (late / VB_NS > report->late_most_ns)
		report->late_most_ns = late / VB_NS;
}

/* Writes what has been joined. */
static void write_train(struct relay *relay, unsigned direction)
{
	struct link_train *train = &relay->trains[direction];

	if (train->count == 0)
		return;
	link_train_end(train);
	if (write(relay->devices[!direction], train->bytes, train->length) < 0)
		relay->report->directions[direction].refused += train->count;
	train->count = 0;
}

static void deliver(struct relay *relay, const struct link_packet *packet)
{
	const unsigned direction = packet->direction;
	struct link_train *train = &relay->trains[direction];
	struct link_counts *counts = &relay->report->directions[direction].paths[packet->path];

	if (!link_train_add(train, packet->bytes, packet->length, relay->takes_udp)) {
		write_train(relay, direction);
		link_train_add(train, packet->bytes, packet->length, relay->takes_udp);
	}
	counts->delivered++;
	counts->delivered_bytes += packet->length - sizeof(struct virtio_net_hdr);
}

static bool deliver_due(struct relay *relay)
{
	vb_time now = now_of_clock();
	bool was_due = false;

	for (struct link_packet *packet; (packet = link_timeline_take(&relay->timeline, now));) {
		note_lateness(relay->report, vb_time_diff(now, packet->due));
		deliver(relay, packet);
		link_timeline_return(&relay->timeline, packet);
		was_due = true;
	}
	write_train(relay, LINK_FORWARD);
	write_train(relay, LINK_BACKWARD);
	return was_due;
}

/* ---- The loop ---------------------------------------------------------------------------------------------------- */

/* False: a device is gone, as somebody has deleted it. */
static bool wait_for_work(struct relay *relay)
{
	struct pollfd fds[2] = { { relay->devices[0], POLLIN, 0 }, { relay->devices[1], POLLIN, 0 } };
	struct vb_deadline next = link_timeline_next(&relay->timeline);
	int64_t ns = LONGEST_WAIT; /* is_over may be set just before the call */

	if (next.is_set) {
		vb_time span = vb_time_diff(next.at, now_of_clock());
		ns = span <= 0 ? 0 : span / VB_NS + 1 < ns ? span / VB_NS + 1 : ns;
	}
	struct timespec timeout = { .tv_nsec = ns };
	return ppoll(fds, 2, &timeout, NULL) <= 0 || !((fds[0].revents | fds[1].revents) & POLLERR);
}

static void begin_at(struct relay *relay, vb_time at)
{
	for (unsigned direction = 0; direction < LINK_DIRECTIONS; direction++)
		for (unsigned path = 0; path < relay->options->paths; path++)
			relay->channels[direction][path].begun_at = at;
}

static void init(struct relay *relay)
{
	const struct link_options *options = relay->options;
	const vb_time not_yet = vb_time_add(now_of_clock(), VB_HORIZON);

	for (unsigned direction = 0; direction < LINK_DIRECTIONS; direction++) {
		relay->lines[direction] = (struct link_queue){ .rate = options->lines[direction].rate,
			.length = options->lines[direction].queue };
		for (unsigned path = 0; path < options->paths; path++)
			link_channel_init(&relay->channels[direction][path], &options->faults[direction][path],
				options->seed ^ (uint64_t)(direction * LINK_PATHS_MAX + path) << 32, not_yet,
				&relay->report->directions[direction].paths[path]);
	}
}

/* 0 or -errno. */
static int run(struct relay *relay, volatile int *is_over)
{
	bool is_begun = false, is_well = true;

	while (!*is_over && is_well) {
		if (!is_begun && __atomic_load_n(&relay->report->is_begun, __ATOMIC_ACQUIRE)) {
			is_begun = true;
			begin_at(relay, now_of_clock());
		}
		bool was_due = deliver_due(relay);
		bool was_forward = take_from(relay, LINK_FORWARD), was_backward = take_from(relay, LINK_BACKWARD);
		if (was_forward || was_backward || was_due)
			vb_clock_sleep(TICK);
		else
			is_well = wait_for_work(relay);
	}
	return is_well ? 0 : -ENODEV;
}

/* Packets are late by as long as others keep the relay from a core. Only a privileged user may have priority. */
static void ask_for_accuracy(void)
{
	const struct sched_param parameter = { .sched_priority = 1 };

	prctl(PR_SET_TIMERSLACK, 1000ul);
	sched_setscheduler(0, SCHED_FIFO, &parameter);
}

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

int link_relay_run(const struct link_options *options, const int devices[2], bool takes_udp, struct link_report *report,
	volatile int *is_over)
{
	struct relay *relay = calloc(1, sizeof(*relay));
	struct rusage usage;

	if (!relay)
		return -ENOMEM;
	relay->options = options;
	relay->devices = devices;
	relay->takes_udp = takes_udp;
	relay->report = report;
	if (link_timeline_init(&relay->timeline, LINK_PACKETS_HELD, options->mtu + sizeof(struct virtio_net_hdr))) {
		free(relay);
		return -ENOMEM;
	}
	ask_for_accuracy();
	init(relay);
	int64_t begun_at = vb_clock_ns();
	int error = run(relay, is_over);
	getrusage(RUSAGE_SELF, &usage);
	report->seconds = (double)(vb_clock_ns() - begun_at) / 1e9;
	report->cpu_seconds = seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
	link_timeline_deinit(&relay->timeline);
	free(relay);
	return error;
}
