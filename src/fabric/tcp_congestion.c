/* TCP's congestion controls in integers: they compute the same on every machine. */
#include "base/invariant.h"
#include "fabric/tcp.h"

enum { LEAST_WINDOW = 2 };

static void set_window(struct tcp_control *control, uint64_t window)
{
	control->window = window < control->largest ? window : control->largest;
}

void tcp_control_init(struct tcp_control *control, uint64_t first_window, uint64_t largest_window)
{
	*control = (struct tcp_control){ .threshold = UINT64_MAX, .largest = largest_window, .alpha = TCP_ONE };
	set_window(control, first_window);
}

/* a b / c, where a b may exceed 64 bits. */
static uint64_t share(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

/* RFC 5681, (2): an ack counts as one segment, however many it acknowledges. */
static bool start_slowly(struct tcp_control *control)
{
	if (control->window >= control->threshold)
		return false;
	set_window(control, control->window + TCP_ONE);
	return true;
}

static void cut(struct tcp_control *control, uint64_t window)
{
	set_window(control, window > LEAST_WINDOW * TCP_ONE ? window : LEAST_WINDOW * TCP_ONE);
	control->threshold = control->window;
}

/* ---- NewReno: RFC 5681 ------------------------------------------------------------------------------------------- */

static void newreno_on_ack(struct tcp_control *control, const struct tcp_acked *acked)
{
	if (acked->may_grow && !start_slowly(control))
		set_window(control, control->window + share(TCP_ONE, TCP_ONE, control->window)); /* (3) */
}

static void newreno_on_loss(struct tcp_control *control, uint64_t flight)
{
	cut(control, flight * TCP_ONE / 2); /* (4) */
}

static void newreno_on_timeout(struct tcp_control *control, uint64_t flight)
{
	newreno_on_loss(control, flight);
	control->window = TCP_ONE;
}

/* ---- CUBIC: RFC 9438 --------------------------------------------------------------------------------------------- */

/* C = 0.4 segments a second^3, in TCP_ONE and microseconds, as a fraction. */
#define C_ABOVE ((__int128)4 << TCP_POINT)
#define C_BELOW ((__int128)10000000000 * 1000000000)

enum { BETA_PERCENT = 70, LONGEST_US = 2000000000 };

/* x^(1/3), rounded down. */
static int64_t cube_root(unsigned __int128 x)
{
	uint64_t low = 0, high = (uint64_t)1 << 40; /* low^3 <= x < high^3 */
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		if ((unsigned __int128)middle * middle * middle <= x)
			low = middle;
		else
			high = middle;
	}
	return (int64_t)low;
}

/* Figure 1: W_cubic(t) = C (t - K)^3 + W_max. */
static uint64_t cubic_window(const struct tcp_control *control, vb_time since)
{
	int64_t us = since / VB_US;
	const __int128 d = (us < LONGEST_US ? us : LONGEST_US) - control->k;
	const __int128 window = (__int128)control->w_max + d * d * d * C_ABOVE / C_BELOW;
	return window > (__int128)control->largest ? control->largest : window > 0 ? (uint64_t)window : 0;
}

static void begin_epoch(struct tcp_control *control, vb_time now)
{
	control->is_in_epoch = true;
	control->epoch = now;
	control->w_est = control->window;
	control->k = 0;
	if (control->window < control->w_max)
		control->k = cube_root((unsigned __int128)(control->w_max - control->window) *
				       (unsigned __int128)C_BELOW / (unsigned __int128)C_ABOVE);
	else
		control->w_max = control->window;
}

/* Reno's window, below which CUBIC's does not fall (4.3): alpha is 3 (1 - beta) / (1 + beta) until it reaches the
 * window before the cut, then 1. */
static void estimate_reno(struct tcp_control *control, uint64_t segments)
{
	const bool is_past = control->w_est >= control->cwnd_prior;
	const uint64_t above = is_past ? 1 : 3 * (100 - BETA_PERCENT), below = is_past ? 1 : 100 + BETA_PERCENT;
	control->w_est += share(segments * TCP_ONE * above / below, TCP_ONE, control->window);
}

static void cubic_on_ack(struct tcp_control *control, const struct tcp_acked *acked)
{
	if (!acked->may_grow || start_slowly(control))
		return;
	if (!control->is_in_epoch)
		begin_epoch(control, acked->now);
	const vb_time since = acked->now - control->epoch;
	const uint64_t window = control->window, most = window + window / 2;
	uint64_t target = cubic_window(control, since + acked->rtt);
	estimate_reno(control, acked->segments);
	if (cubic_window(control, since) < control->w_est) {
		set_window(control, control->w_est > window ? control->w_est : window);
		return;
	}
	target = target < window ? window : target > most ? most : target;
	uint64_t more = share((target - window) * acked->segments, TCP_ONE, window);
	set_window(control, window + (more < target - window ? more : target - window));
}

/* Fast convergence: a flow that had to give up part of its earlier share gives up more (4.7). */
static void cubic_on_loss(struct tcp_control *control, uint64_t flight)
{
	const uint64_t window = control->window;
	control->w_max = window < control->w_max ? window * (100 + BETA_PERCENT) / 200 : window;
	control->cwnd_prior = window;
	cut(control, flight * TCP_ONE * BETA_PERCENT / 100);
	control->is_in_epoch = false;
}

static void cubic_on_timeout(struct tcp_control *control, uint64_t flight)
{
	cubic_on_loss(control, flight);
	control->w_max = 0; /* the first congestion avoidance begins at its plateau (4.8) */
	control->window = TCP_ONE;
}

/* ---- DCTCP: RFC 8257 --------------------------------------------------------------------------------------------- */

enum { GAIN_SHIFT = 4 }; /* g = 1/16 */

/* 3.3, 6 and 7: once a window of data. */
static void estimate_marks(struct tcp_control *control, const struct tcp_acked *acked)
{
	control->acked += acked->segments;
	control->marked += acked->is_echo ? acked->segments : 0;
	if (acked->una <= control->window_end || control->acked == 0)
		return;
	const uint32_t marked = (uint32_t)(control->marked * TCP_ONE / control->acked);
	control->alpha = control->alpha - (control->alpha >> GAIN_SHIFT) + (marked >> GAIN_SHIFT);
	control->acked = control->marked = 0;
	assert(control->alpha <= TCP_ONE);
	control->window_end = acked->next;
}

static void dctcp_on_ack(struct tcp_control *control, const struct tcp_acked *acked)
{
	estimate_marks(control, acked);
	if (!acked->is_echo) {
		newreno_on_ack(control, acked);
	} else if (acked->may_cut && acked->una > control->cut_end) { /* 3.3, 9, and RFC 3168: once a window of data */
		cut(control, control->window - share(control->window, control->alpha, 2 * TCP_ONE));
		control->cut_end = acked->next;
	}
}

/* A loss is answered as without marks (3.5). */
const struct tcp_control_kind tcp_controls[] = {
	[FABRIC_NEWRENO] = { "newreno", false, newreno_on_ack, newreno_on_loss, newreno_on_timeout },
	[FABRIC_CUBIC] = { "cubic", false, cubic_on_ack, cubic_on_loss, cubic_on_timeout },
	[FABRIC_DCTCP] = { "dctcp", true, dctcp_on_ack, newreno_on_loss, newreno_on_timeout },
};
