/* A bottleneck that flows share: bottleneck.h. */
#include "bottleneck.h"
#include <math.h>
#include <stdlib.h>
#include "../unit.h"

enum { SEGMENT = 1500, PACKET = 4096 };

#define NEVER INT64_MAX

static struct under_way *at(struct shared_flow *flow, uint64_t number)
{
	return &flow->ring[number % MOST_UNDER_WAY];
}

/* Between 0 and 1. */
static double chance(struct bottleneck *net)
{
	net->random = net->random * 6364136223846793005u + 1442695040888963407u;
	return (double)(net->random >> 11) / (double)(1ull << 53);
}

void bottleneck_init(struct bottleneck *net, uint64_t bits_a_second, uint64_t buffer)
{
	*net = (struct bottleneck){ .rate = bits_a_second / 8, .buffer = buffer, .random = 1 };
}

static void start_verbena(struct shared_flow *flow)
{
	char why[400];
	if (vb_cc_choose_live(flow->text, &flow->choice, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(vb_cc_start(&flow->cc,
				 &(struct vb_cc_config){ .algorithm = flow->choice.algorithm,
					 .parameters = flow->choice.values,
					 .max_window = flow->max_window },
				 flow->packet, flow->begins),
		0);
}

struct shared_flow *bottleneck_add(struct bottleneck *net, const char *text, vb_time base, vb_time begins)
{
	struct shared_flow *flow = calloc(1, sizeof(*flow));
	assert_true(flow && net->flow_count < MOST_FLOWS);
	*flow = (struct shared_flow){ .text = text,
		.base = base,
		.begins = begins,
		.pace_at = begins,
		.progress_at = begins,
		.packet = text ? PACKET : SEGMENT,
		.max_window = 64 << 20,
		.srtt = base };
	flow->ring = calloc(MOST_UNDER_WAY, sizeof(*flow->ring));
	assert_non_null(flow->ring);
	net->flows[net->flow_count++] = flow;
	if (text)
		start_verbena(flow);
	else
		tcp_control_init(&flow->cubic, 10 * TCP_ONE, TCP_MOST_WINDOW);
	return flow;
}

void bottleneck_free(struct bottleneck *net)
{
	for (uint32_t i = 0; i < net->flow_count; i++) {
		vb_cc_stop(&net->flows[i]->cc);
		free(net->flows[i]->ring);
		free(net->flows[i]);
	}
	net->flow_count = 0;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static uint64_t window(const struct shared_flow *flow)
{
	return flow->text ? flow->cc.window_bytes : (flow->cubic.window >> TCP_POINT) * SEGMENT;
}

static bool may_send(const struct bottleneck *net, const struct shared_flow *flow)
{
	return net->now >= flow->begins && (flow->flight == 0 || flow->flight + flow->packet <= window(flow)) &&
	       flow->next - flow->oldest < MOST_UNDER_WAY;
}

static vb_time span_of(const struct bottleneck *net, uint64_t bytes)
{
	return (vb_time)((double)bytes / (double)net->rate * 1e12);
}

/* Who sleeps takes all that is there when it wakes up. */
static vb_time late(struct bottleneck *net)
{
	return net->late ? (vb_time)(-log(1 - chance(net)) * (double)net->late) : 0;
}

/* Into the queue, or lost. */
static void enter(struct bottleneck *net, struct shared_flow *flow, struct under_way *packet)
{
	const vb_time wait = net->free_at > net->now ? net->free_at - net->now : 0;
	const uint64_t queued = (uint64_t)((double)wait * 1e-12 * (double)net->rate);
	const bool is_full = queued + flow->packet > net->buffer;
	net->queued += (double)queued;
	net->queue_samples++;
	net->most_queued = queued > net->most_queued ? queued : net->most_queued;
	net->dropped += is_full;
	packet->is_dropped = is_full || chance(net) * 1e6 < net->loss;
	packet->is_marked = net->mark_from && queued >= net->mark_from;
	if (packet->is_dropped)
		return;
	net->free_at = net->now + wait + span_of(net, flow->packet);
	packet->back_at = net->free_at + flow->base;
	if (packet->back_at > flow->wakes_at)
		flow->wakes_at = packet->back_at + late(net);
	packet->back_at = flow->wakes_at;
}

static void send_one(struct bottleneck *net, struct shared_flow *flow)
{
	struct under_way *packet = at(flow, flow->next);
	*packet = (struct under_way){ .sent_at = net->now };
	if (!flow->is_timing) {
		flow->is_timing = true;
		flow->timed = flow->next;
	}
	if (flow->flight == 0)
		flow->progress_at = net->now;
	flow->next++;
	flow->flight += flow->packet;
	enter(net, flow, packet);
}

static void send(struct bottleneck *net, struct shared_flow *flow)
{
	while (may_send(net, flow) && flow->pace_at <= net->now) {
		send_one(net, flow);
		if (flow->cc.rate)
			flow->pace_at = net->now + (vb_time)((double)flow->packet / (double)flow->cc.rate * 1e12);
	}
}

/* ---- What comes back --------------------------------------------------------------------------------------------- */

static void tell_loss(struct bottleneck *net, struct shared_flow *flow, bool is_timeout)
{
	if (flow->text)
		flow->cc.algorithm->on_signal(
			&flow->cc, &(struct vb_cc_signal){
					   .event = VB_CC_LOST, .flight = (uint32_t)flow->flight, .now = net->now });
	else
		(is_timeout ? tcp_controls[FABRIC_CUBIC].on_timeout : tcp_controls[FABRIC_CUBIC].on_loss)(
			&flow->cubic, flow->flight / SEGMENT);
}

/* Of what comes before `end` all that is lost, of which congestion control is told once a window. */
static void find_lost(struct bottleneck *net, struct shared_flow *flow, uint64_t end, bool is_timeout)
{
	bool is_news = false;
	for (; flow->oldest < end; flow->oldest++) {
		if (!at(flow, flow->oldest)->is_dropped)
			break;
		is_news = is_news || flow->oldest >= flow->told_to;
		flow->flight -= flow->packet;
		flow->lost++;
		flow->is_timing = flow->is_timing && flow->timed != flow->oldest;
	}
	if (!is_news)
		return;
	flow->told_to = flow->next;
	tell_loss(net, flow, is_timeout);
}

static void tell_cubic(struct bottleneck *net, struct shared_flow *flow, uint64_t number)
{
	tcp_controls[FABRIC_CUBIC].on_ack(
		&flow->cubic, &(struct tcp_acked){ .segments = 1,
				      .una = number,
				      .next = flow->next,
				      .may_grow = number >= flow->told_to && 2 * flow->flight >= window(flow),
				      .may_cut = true,
				      .now = net->now,
				      .rtt = flow->srtt });
}

static void take_ack(struct bottleneck *net, struct shared_flow *flow)
{
	const uint64_t number = flow->oldest;
	const struct under_way packet = *at(flow, number);
	vb_time rtt = 0;
	if (flow->is_timing && flow->timed <= number) {
		flow->is_timing = false;
		rtt = net->now - packet.sent_at;
		flow->srtt += (rtt - flow->srtt) / 8;
	}
	const struct vb_cc_signal signal = { .event = VB_CC_ACKED,
		.acked = flow->packet,
		.flight = (uint32_t)flow->flight,
		.rtt = rtt,
		.is_marked = packet.is_marked,
		.now = net->now };
	flow->oldest++;
	flow->flight -= flow->packet;
	flow->acked += flow->packet;
	flow->progress_at = net->now;
	if (flow->text)
		flow->cc.algorithm->on_signal(&flow->cc, &signal);
	else
		tell_cubic(net, flow, number);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

/* The oldest that is not dropped; next: there is none. */
static uint64_t first_to_arrive(struct shared_flow *flow)
{
	uint64_t number = flow->oldest;
	while (number < flow->next && at(flow, number)->is_dropped)
		number++;
	return number;
}

static vb_time silence(const struct shared_flow *flow)
{
	return flow->progress_at + (4 * flow->srtt > VB_MS ? 4 * flow->srtt : VB_MS);
}

static vb_time next_time(const struct bottleneck *net, struct shared_flow *flow, uint64_t *first)
{
	*first = first_to_arrive(flow);
	vb_time next = net->now < flow->begins ? flow->begins : NEVER;
	if (*first < flow->next)
		next = at(flow, *first)->back_at < next ? at(flow, *first)->back_at : next;
	else if (flow->flight > 0)
		next = silence(flow) < next ? silence(flow) : next;
	if (may_send(net, flow) && flow->pace_at < next)
		next = flow->pace_at;
	return next;
}

static void happen(struct bottleneck *net, struct shared_flow *flow, uint64_t first)
{
	if (first < flow->next && at(flow, first)->back_at <= net->now) {
		find_lost(net, flow, first, false);
		take_ack(net, flow);
	} else if (first == flow->next && flow->flight > 0 && silence(flow) <= net->now) {
		flow->progress_at = net->now;
		find_lost(net, flow, first, true);
	}
	send(net, flow);
}

void bottleneck_run(struct bottleneck *net, vb_time until)
{
	for (;;) {
		struct shared_flow *next = NULL;
		uint64_t first = 0;
		vb_time when = until;
		for (uint32_t i = 0; i < net->flow_count; i++) {
			uint64_t arrives;
			const vb_time time = next_time(net, net->flows[i], &arrives);
			if (time >= when)
				continue;
			when = time;
			next = net->flows[i];
			first = arrives;
		}
		net->now = when > net->now ? when : net->now;
		if (!next)
			return;
		happen(net, next, first);
	}
}

/* ---- What came of it --------------------------------------------------------------------------------------------- */

void bottleneck_clear(struct bottleneck *net)
{
	net->since = net->now;
	net->most_queued = net->dropped = 0;
	net->queued = net->queue_samples = 0;
	for (uint32_t i = 0; i < net->flow_count; i++)
		net->flows[i]->acked = net->flows[i]->lost = 0;
}

double bottleneck_share(const struct bottleneck *net, const struct shared_flow *flow)
{
	return (double)flow->acked / ((double)net->rate * (double)(net->now - net->since) * 1e-12);
}

double bottleneck_total(const struct bottleneck *net)
{
	double total = 0;
	for (uint32_t i = 0; i < net->flow_count; i++)
		total += bottleneck_share(net, net->flows[i]);
	return total;
}

double bottleneck_jain(const struct bottleneck *net)
{
	double sum = 0, squares = 0;
	for (uint32_t i = 0; i < net->flow_count; i++) {
		sum += (double)net->flows[i]->acked;
		squares += (double)net->flows[i]->acked * (double)net->flows[i]->acked;
	}
	return sum * sum / squares / net->flow_count;
}

double bottleneck_queue_ms(const struct bottleneck *net)
{
	return (double)net->most_queued / (double)net->rate * 1e3;
}

double bottleneck_mean_ms(const struct bottleneck *net)
{
	return net->queued / net->queue_samples / (double)net->rate * 1e3;
}
