/* The congestion control of each QP with a peer, and what the QP carried, which VERBENA_STATS=1 prints: a line for each
 * QP that carried most, and one for all the others. Kept only with that setting or a capture, and in
 * memory that does not grow with their number: it is printed at exit, which a signal handler may have called in the
 * middle of malloc(). */
#include "base/invariant.h"
#include "host/process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "host/report/summary.h"
#include "host/report/text.h"

/* Rates of the others, from 1 b/s on: each doubling in so many steps. */
#define STEPS     32u
#define DOUBLINGS 44u

struct vb_accounts {
	/* the one that carried most first; when it is printed, of all that there are */
	struct vb_qp_account most[VB_ACCOUNTS_SAID];
	unsigned count;
	struct others {
		uint64_t count, acked; /* bytes */
		uint64_t rated;        /* had a mean rate */
		double least, largest; /* bits a second */
		uint32_t rates[DOUBLINGS * STEPS];
	} others;
};

struct vb_accounts *vb_accounts_create(void)
{
	return calloc(1, sizeof(struct vb_accounts));
}

void vb_accounts_destroy(struct vb_accounts *accounts)
{
	free(accounts);
}

/* Bits a second. */
static double mean_rate(const struct vb_qp_account *account)
{
	return account->acked_in > 0 ? (double)account->acked * 8 * VB_S / (double)account->acked_in : 0;
}

/* ---- The others -------------------------------------------------------------------------------------------------- */

static unsigned step_of(double rate)
{
	int doubling;
	const double part = 2 * frexp(rate, &doubling) - 1; /* from 0 to 1, of the doubling before the next */

	if (doubling < 1)
		return 0;
	assert(part >= 0);
	const unsigned step = (unsigned)(doubling - 1) * STEPS + (unsigned)(part * STEPS);
	return step < DOUBLINGS * STEPS ? step : DOUBLINGS * STEPS - 1;
}

/* The middle of a step. */
static double rate_of(unsigned step)
{
	return ldexp(1 + (step % STEPS + 0.5) / STEPS, (int)(step / STEPS));
}

static void add_rate(struct others *others, double rate)
{
	others->least = others->rated && others->least < rate ? others->least : rate;
	others->largest = others->largest > rate ? others->largest : rate;
	others->rated++;
	assert(others->least <= others->largest);
	others->rates[step_of(rate)]++;
}

static double median_rate(const struct others *others)
{
	uint64_t below = 0;
	unsigned step = 0;

	assert(others->rated > 0);
	while ((below += others->rates[step]) <= others->rated / 2)
		step++;
	assert(step < DOUBLINGS * STEPS);
	const double rate = rate_of(step);
	return rate < others->least ? others->least : rate > others->largest ? others->largest : rate;
}

static void add_other(struct others *others, const struct vb_qp_account *account)
{
	others->count++;
	others->acked += account->acked;
	assert(others->rated < others->count);
	if (mean_rate(account) > 0)
		add_rate(others, mean_rate(account));
}

static void add_others(struct others *to, const struct others *from)
{
	to->count += from->count;
	to->acked += from->acked;
	if (!from->rated)
		return;
	to->least = to->rated && to->least < from->least ? to->least : from->least;
	to->largest = to->largest > from->largest ? to->largest : from->largest;
	to->rated += from->rated;
	for (unsigned i = 0; i < DOUBLINGS * STEPS; i++)
		to->rates[i] += from->rates[i];
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

static bool carried_more(const struct vb_qp_account *a, const struct vb_qp_account *b)
{
	return a->acked != b->acked ? a->acked > b->acked : a->qpn < b->qpn;
}

void vb_accounts_add(struct vb_accounts *accounts, const struct vb_qp_account *account)
{
	unsigned place = accounts->count;

	assert(place <= VB_ACCOUNTS_SAID);
	while (place > 0 && carried_more(account, &accounts->most[place - 1]))
		place--;
	if (place == VB_ACCOUNTS_SAID) {
		add_other(&accounts->others, account);
		return;
	}
	if (accounts->count == VB_ACCOUNTS_SAID)
		add_other(&accounts->others, &accounts->most[--accounts->count]);
	memmove(&accounts->most[place + 1], &accounts->most[place], (accounts->count - place) * sizeof(*account));
	accounts->most[place] = *account;
	accounts->count++;
	assert(accounts->count <= VB_ACCOUNTS_SAID);
}

/* ---- Words ------------------------------------------------------------------------------------------------------- */

static const char *const recovers[] = {
	[VB_RECOVERS_SELECTIVELY] = "selectively",
	[VB_RECOVERS_BY_SETTING] = "by going back, as is set",
	[VB_RECOVERS_BY_TYPE] = "by going back, as XRC does",
	[VB_RECOVERS_BY_PEER] = "by going back, for the peer's host has not said that it does more",
	[VB_RECOVERS_BEFORE_ANSWER] = "by going back, for the peer's QP has not agreed on more",
};

static void add_ways(struct vb_line *line, const struct vb_qp_account *account)
{
	const struct vb_paths_account *paths = &account->paths;
	char least[32], other[32];

	if (account->rtt)
		vb_line_add(line, ", round trip %s at least, %s on average",
			vb_text_span(account->least_rtt, least, sizeof(least)),
			vb_text_span(account->rtt, other, sizeof(other)));
	if (paths->count == VB_PATHS_ALL)
		vb_line_add(line, ", a path for each packet");
	else if (paths->count)
		vb_line_add(line, ", %u paths, of which %u were left for a loss or a mark", paths->count, paths->left);
	if (paths->most_rtt)
		vb_line_add(line, ", their round trips %s to %s", vb_text_span(paths->least_rtt, least, sizeof(least)),
			vb_text_span(paths->most_rtt, other, sizeof(other)));
	if (account->type != VB_QP_UC)
		vb_line_add(line, ", recovers %s", recovers[account->recovers]);
	if (account->large_mtu)
		vb_line_add(line, ", sends packets of up to %u bytes", account->large_mtu);
}

static void add_congestion(struct vb_line *line, const struct vb_qp_account *account)
{
	char text[32];

	vb_line_add(line, ", %s", account->algorithm);
	if (account->rate)
		vb_line_add(line, ", paced at %s", vb_text_rate((double)account->rate * 8, text, sizeof(text)));
	if (account->window_bytes)
		vb_line_add(line, ", window %s", vb_text_bytes(account->window_bytes, text, sizeof(text)));
	if (account->acked)
		vb_line_add(line, ", %s acknowledged", vb_text_bytes(account->acked, text, sizeof(text)));
	if (account->acked_in > 0)
		vb_line_add(line, " at %s on average", vb_text_rate(mean_rate(account), text, sizeof(text)));
	vb_line_add(line, ", CNPs %u received, %u sent, %u packets sent again", account->cnps_received,
		account->cnps_sent, account->sent_again);
	if (account->probes)
		vb_line_add(line, ", %u as probes", account->probes);
	add_ways(line, account);
}

/* Of a QP that has two links, or has moved: how much went by which, how often it moved and why. */
static void add_moves(struct vb_line *line, const struct vb_qp_account *account)
{
	const struct vb_moves *moves = &account->moves;
	char from[VB_TEXT_GID], to[VB_TEXT_GID], elsewhere[32];

	if (moves->sent)
		vb_line_add(line, ", %u%% of its packets by a second link, from %s to %s, lost %u times",
			(unsigned)(100 * moves->by_second / moves->sent), vb_text_gid(&moves->second_from, from),
			vb_text_gid(&moves->second_to, to), moves->seconds_lost);
	if (!moves->moved && !moves->followed)
		return;
	vb_line_add(line, ", moved %u times for silence and %u with its peer, returned %u times", moves->moved,
		moves->followed, moves->returned);
	if (moves->acked[1])
		vb_line_add(line, ", %s acknowledged elsewhere",
			vb_text_bytes(moves->acked[1], elsewhere, sizeof(elsewhere)));
	vb_line_add(line, ", now from %s to %s", vb_text_gid(&moves->from, from), vb_text_gid(&moves->to, to));
}

static const char *kind_of(enum vb_qp_type type)
{
	return type == VB_QP_RC ? "RC" : type == VB_QP_UC ? "UC" : "XRC";
}

static void tell_one(const struct vb_qp_account *account, vb_summary_say *say, void *user)
{
	char text[900];
	struct vb_line line = { text, sizeof(text), 0 };
	char peer[VB_TEXT_GID];

	vb_line_add(&line, "qp 0x%x: %s, peer %s qpn 0x%x", account->qpn, kind_of(account->type),
		vb_text_gid(&account->peer, peer), account->dest_qpn);
	if (account->is_local)
		vb_line_add(&line, ", shared memory");
	else
		add_congestion(&line, account);
	add_moves(&line, account);
	say(user, text);
}

static void tell_others(const struct others *others, vb_summary_say *say, void *user)
{
	char text[400];
	struct vb_line line = { text, sizeof(text), 0 };
	char carried[32], least[32], median[32], most[32];

	vb_line_add(&line, "qps: %llu more, %s acknowledged", (unsigned long long)others->count,
		vb_text_bytes(others->acked, carried, sizeof(carried)));
	if (others->rated)
		vb_line_add(&line, ", at %s to %s on average, the median about %s",
			vb_text_rate(others->least, least, sizeof(least)),
			vb_text_rate(others->largest, most, sizeof(most)),
			vb_text_rate(median_rate(others), median, sizeof(median)));
	say(user, text);
}

void vb_accounts_tell(const struct vb_accounts *accounts, vb_summary_say *say, void *user)
{
	for (unsigned i = 0; i < accounts->count; i++)
		tell_one(&accounts->most[i], say, user);
	if (accounts->others.count)
		tell_others(&accounts->others, say, user);
}

/* ---- Live -------------------------------------------------------------------------------------------------------- */

void vb_host_lane_note_end(struct vb_host_lane *d, struct vb_qp *qp)
{
	struct vb_qp_account account;

	if (d->accounts && vb_qp_account(qp, &account))
		vb_accounts_add(d->accounts, &account);
}

/* QPs that have ended, and those that are alive. */
static void add_all(struct vb_accounts *to, const struct vb_host_lane *d)
{
	struct vb_qp_account account;
	struct vb_qp *qp;
	uint32_t place = 0;

	assert(d->accounts);
	for (unsigned i = 0; i < d->accounts->count; i++)
		vb_accounts_add(to, &d->accounts->most[i]);
	add_others(&to->others, &d->accounts->others);
	while ((qp = vb_lane_next_qp(d->lane, &place)))
		if (vb_qp_account(qp, &account))
			vb_accounts_add(to, &account);
}

void vb_accounts_tell_all(const struct vb_process *p, unsigned lanes, const struct vb_summary *summary)
{
	static struct vb_accounts sums[VB_SUMMARY_USES];
	struct vb_accounts *sum = &sums[summary->use];

	assert(summary->use < VB_SUMMARY_USES);
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		if (lanes >> i & 1)
			add_all(sum, p->host_lanes[i]);
	vb_accounts_tell(sum, summary->say, summary->user);
}
