/* The progress of a run. */
#include "sim/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include "sim/value.h"

#define SLACK_S 0.5 /* a run reports about once a second */

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int number)
{
	is_interrupted = 1;
}

void progress_start(struct progress *progress)
{
	struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART };

	if (!is_interrupted)
		sigaction(SIGINT, &action, NULL);
	progress->has_line = false;
	progress->told_s = 0;
}

void progress_begin_alone(struct progress *progress, uint32_t number)
{
	progress->runs_alone = number;
	progress->of = "a job alone: ";
	progress->told_s = 0;
	progress->packets = 0; /* how many are of this job is not known */
}

void progress_begin_check(struct progress *progress)
{
	progress->of = "the check: ";
	progress->is_of_check = true;
	progress->told_s = 0;
	progress->packets = 0; /* it has a part of the bytes */
}

bool progress_is_interrupted(void)
{
	return is_interrupted;
}

/* The part that is done, of the packets to send or of the time limit; 0: unknown. */
static double part_done(const struct progress *progress, const struct fabric_progress *now)
{
	double sent = progress->packets ? (double)now->data_packets / (double)progress->packets : 0;
	double time = progress->limit ? (double)now->now / (double)progress->limit : 0;
	double done = sent > time ? sent : time;

	return done < 1 ? done : 1;
}

static void show(struct progress *progress, const struct fabric_progress *now)
{
	char time[32], rate[32], row[48] = "", left[64] = "";
	double done = part_done(progress, now);

	if (done > 0.01)
		snprintf(left, sizeof(left), ", about %.0f s left", now->wall_s * (1 - done) / done);
	if (progress->rows)
		snprintf(row, sizeof(row), "row %u of %u: ", progress->row, progress->rows);
	fprintf(stderr, "%s%s%s%s of virtual time, %" PRIu64 " of %" PRIu64 " %ss, %s hops/s%s%s",
		progress->is_terminal ? "\r" : "", row, progress->of ? progress->of : "",
		value_time_text(now->now, time, sizeof(time)), now->operations_done, now->operations, progress->unit,
		value_count_text(now->wall_s > 0 ? (double)now->packet_hops / now->wall_s : 0, rate, sizeof(rate)),
		left, progress->is_terminal ? "\033[K" : "\n");
	fflush(stderr);
	progress->has_line = true;
}

bool progress_tell(struct progress *progress, const struct fabric_progress *now)
{
	if (progress->every_s && now->wall_s - progress->told_s > progress->every_s - SLACK_S) {
		show(progress, now);
		progress->told_s = now->wall_s;
	}
	return !is_interrupted;
}

void progress_end(struct progress *progress)
{
	if (progress->has_line && progress->is_terminal)
		fputs("\r\033[K", stderr);
	progress->has_line = false;
}
