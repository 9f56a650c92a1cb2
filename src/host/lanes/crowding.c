/* A thread was kept away if it has not slept between two polls and has run for less than half of the time between them.
 * Once may be an accident. */
#include "host/lanes/crowding.h"

#include <sys/resource.h>
#include "base/invariant.h"
#include "host/lanes/timeouts.h"

void vb_crowding_polled(struct vb_crowding *crowding, const struct vb_presence *presence)
{
	vb_time gap = vb_time_since(crowding->last.at, presence->at);
	vb_time ran = vb_time_since(crowding->last.cpu, presence->cpu);
	bool has_slept = presence->sleeps != crowding->last.sleeps;

	assert(gap >= 0);
	crowding->last = *presence;
	if (gap < VB_POLLER_LATE)
		return;
	if (has_slept || ran >= gap / 2)
		crowding->kept_away = 0;
	else
		crowding->kept_away++;
}

/* A slice that is lost once may be an accident, too; so may the next one long after. */
static void note_slice(struct vb_crowding *crowding, bool is_lost, vb_time now)
{
	bool is_long_ago = vb_time_since(crowding->sleeps_until.at, now) > VB_POLLER_SLEEPS_MOST;

	if (!is_lost)
		crowding->sleeps_for = 0;
	else if (crowding->sleeps_for == 0 || is_long_ago)
		crowding->sleeps_for = VB_POLLER_SLEEPS_FIRST;
	else if (crowding->sleeps_for < VB_POLLER_SLEEPS_MOST)
		crowding->sleeps_for *= 2;
	crowding->sleeps_until = (struct vb_deadline){ vb_time_add(now, crowding->sleeps_for), is_lost };
	assert(crowding->sleeps_for <= VB_POLLER_SLEEPS_MOST);
}

void vb_crowding_yielded(struct vb_crowding *crowding, vb_time since, vb_time now)
{
	vb_time away = vb_time_since(since, now);

	assert(away >= 0);
	crowding->shares_until =
		(struct vb_deadline){ vb_time_add(now, VB_POLLER_SHARES_FOR), away >= VB_POLLER_YIELD_TAKEN };
	note_slice(crowding, away >= VB_POLLER_YIELD_SLICE, now);
	crowding->yield_at = vb_time_add(now, VB_POLLER_YIELD_AFTER);
}

void vb_crowding_slept(struct vb_crowding *crowding, vb_time now)
{
	crowding->sleep_at = vb_time_add(now, VB_POLLER_SLEEP_EVERY);
}

bool vb_crowding_is_kept_away(const struct vb_crowding *crowding)
{
	return crowding->kept_away > 1;
}

/* A deadline that has passed is taken back, so that it never seems to lie ahead again. One that lies further ahead than
 * any was set passed long ago, while nobody asked. */
static bool holds_until(struct vb_deadline *until, vb_time now)
{
	if (vb_deadline_due(*until, now) || vb_time_since(now, until->at) > VB_POLLER_SLEEPS_MOST)
		until->is_set = false;
	return until->is_set;
}

/* A program that polls should have its core as long as an answer may come soon, and no longer: its peer, the broker or
 * our own progress thread may need it. A thread that takes turns with others on a core waits for one of them, so the
 * others get the core at once. A core that no thread wanted is not offered again at each poll, nor does each poll
 * sleep there, for there are programs that poll between all that they do. Where there are more spinners than cores,
 * giving way to the next thread in the queue is not enough: the broker has been seen to wait for seconds with a
 * connection's messages.
 *
 * A thread that takes the core for a whole slice of the scheduler computes, or spins on memory. A poller that yields to
 * it is back milliseconds later; one that sleeps for a moment takes the core back when it wakes. So it sleeps at each
 * poll in vain, for a while. */
enum vb_rest vb_crowding_rest(struct vb_crowding *crowding, vb_time now)
{
	if (!crowding->is_idle) {
		crowding->is_idle = true;
		crowding->yield_at = vb_time_add(now, VB_POLLER_YIELD_AFTER);
		crowding->sleep_at = vb_time_add(now, VB_POLLER_SLEEP_AFTER);
	}
	if (vb_time_is_due(crowding->sleep_at, now) || holds_until(&crowding->sleeps_until, now))
		return VB_REST_SLEEP;
	if (vb_time_is_due(crowding->yield_at, now) || holds_until(&crowding->shares_until, now))
		return VB_REST_YIELD;
	return VB_REST_NOT;
}

void vb_crowding_is_of_use(struct vb_crowding *crowding)
{
	crowding->is_idle = false;
}

/* ---- The calling thread ------------------------------------------------------------------------------------------ */

struct vb_crowding *vb_crowding_of_caller(void)
{
	static _Thread_local struct vb_crowding crowding __attribute__((tls_model("initial-exec")));

	return &crowding;
}

static vb_time time_of(struct timeval value)
{
	return value.tv_sec * VB_S + value.tv_usec * VB_US;
}

/* A yield counts among the involuntary switches. */
struct vb_presence vb_presence_of_caller(vb_time now)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return (struct vb_presence){ now, vb_time_add(time_of(used.ru_utime), time_of(used.ru_stime)), used.ru_nvcsw };
}
