/* Who was kept away has not slept between two polls and has run for less than half of the time between them. Once may
 * be an accident. */
#include "host/crowding.h"

#include <sys/resource.h>

#define A_TURN	   (10 * VB_US) /* a yield that takes longer has let somebody run */
#define REMEMBERED (5 * VB_MS)	/* those who share a core take turns in less */

void vb_crowding_polled(struct vb_crowding *crowding, const struct vb_presence *presence)
{
	vb_time gap = vb_time_since(crowding->last.at, presence->at);
	vb_time ran = vb_time_since(crowding->last.cpu, presence->cpu);
	bool has_slept = presence->sleeps != crowding->last.sleeps;

	crowding->last = *presence;
	if (gap < VB_LATE)
		return;
	if (has_slept || ran >= gap / 2)
		crowding->kept_away = 0;
	else
		crowding->kept_away++;
}

void vb_crowding_yielded(struct vb_crowding *crowding, vb_time since, vb_time now)
{
	if (vb_time_since(since, now) >= A_TURN)
		crowding->shares_until = (struct vb_deadline){ vb_time_add(now, REMEMBERED), true };
}

bool vb_crowding_is_kept_away(const struct vb_crowding *crowding)
{
	return crowding->kept_away > 1;
}

bool vb_crowding_shares(struct vb_crowding *crowding, vb_time now)
{
	if (vb_deadline_due(crowding->shares_until, now))
		crowding->shares_until.is_set = false;
	return crowding->shares_until.is_set;
}

/* ---- The calling thread ----------------------------------------------------------------------------------------- */

struct vb_crowding *vb_crowding_of_caller(void)
{
	static _Thread_local struct vb_crowding crowding __attribute__((tls_model("initial-exec")));

	return &crowding;
}

static vb_time time_of(struct timeval value)
{
	return value.tv_sec * VB_S + value.tv_usec * VB_US;
}

struct vb_presence vb_presence_of_caller(vb_time now)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	/* A yield counts among the involuntary switches. */
	return (struct vb_presence){ now, vb_time_add(time_of(used.ru_utime), time_of(used.ru_stime)), used.ru_nvcsw };
}
