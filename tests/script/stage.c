/* The engine under test: one NIC, one lane. Time moves only from deadline to deadline and to the inputs of the script,
 * and whatever comes out is kept with the time at which it came, so that lateness and haste both fail.
 * Holds: an engine that sends at an input's time though no deadline asked for it was late before, and fails. */
#include <stdlib.h>
#include <string.h>
#include "engine/check.h"
#include "script.h"

struct stage stage;
static struct vb_batch batch;

const char *event_name(enum vb_event_kind kind)
{
	static const struct {
		enum vb_event_kind kind;
		const char *name;
	} names[] = { { VB_EVENT_CQ_ERR, "cq_err" }, { VB_EVENT_QP_FATAL, "qp_fatal" },
		{ VB_EVENT_QP_REQ_ERR, "qp_req_err" }, { VB_EVENT_QP_ACCESS_ERR, "qp_access_err" },
		{ VB_EVENT_COMM_EST, "comm_est" }, { VB_EVENT_SQ_DRAINED, "sq_drained" },
		{ VB_EVENT_SRQ_LIMIT_REACHED, "srq_limit" }, { VB_EVENT_QP_LAST_WQE_REACHED, "last_wqe" },
		{ VB_EVENT_COMPLETION, "completion" }, { VB_EVENT_QP_DIED, "died" } };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].kind == kind)
			return names[i].name;
	return "unknown event";
}

static void add_region(struct line *line, const char *name, uint32_t access)
{
	struct region *region = &stage.regions[stage.region_count];
	region_create(region, name, 65536, stage.region_count++);
	region->config = (struct vb_mr_config){
		.memory = region->bytes, .iova = region->iova, .length = region->size, .access = access
	};
	must(line, vb_mr_register(stage.pd, &region->config, &region->mr), "register");
	region->key = vb_mr_key(region->mr);
}

void stage_open(struct line *line)
{
	if (stage.nic)
		return;
	if (!stage.nic_config.mtu)
		stage.nic_config.mtu = 4096;
	if (!stage.lane_config.slot)
		stage.lane_config.slot = 1;
	if (!stage.budget)
		stage.budget = VB_BATCH_PACKETS;
	if (vb_gid_is_zero(&stage.local)) {
		stage.local = vb_gid_from_ipv4(10, 0, 0, 1);
		stage.peer = vb_gid_from_ipv4(10, 0, 0, 2);
	}
	stage.sent = calloc(MAX_OUTPUTS, sizeof(*stage.sent));
	must(line, vb_nic_create(&stage.nic_config, &stage.nic), "nic");
	must(line, vb_nic_set_gid(stage.nic, 0, &stage.local), "gid");
	must(line, vb_lane_create(&stage.lane_config, &stage.lane), "lane");
	must(line, vb_pd_create(stage.nic, &stage.pd), "pd");
	must(line, vb_pd_create(stage.nic, &stage.other_pd), "pd");
	must(line, vb_xrcd_create(stage.nic, &stage.xrcd), "xrcd");
	must(line, vb_xrcd_create(stage.nic, &stage.other_xrcd), "xrcd");
	struct vb_cq_config cq = { .capacity = 1024 };
	must(line, vb_cq_create(stage.nic, &cq, &stage.cqs[0].cq), "cq");
	strcpy(stage.cqs[stage.cq_count++].name, "cq");
	add_region(line, "local", VB_ACCESS_LOCAL_WRITE);
	add_region(line, "remote",
		VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC |
			VB_ACCESS_MW_BIND);
}

void stage_close(struct line *line)
{
	if (!stage.nic)
		return;
	stage_expect_nothing(line);
	for (unsigned i = 0; i < stage.actor_count; i++) {
		struct actor *actor = stage.actors[i];
		must(line, vb_qp_destroy(actor->qp), "destroy qp");
		for (unsigned k = 0; k < actor->posted_count; k++)
			free(actor->posted[k].bytes);
		free(actor);
	}
	struct vb_event event;
	while (vb_lane_next_event(stage.lane, &event))
		if (event.qp)
			fail(line, "an event of a destroyed QP: %s", event_name(event.kind));
	for (unsigned i = 0; i < stage.window_count; i++)
		must(line, vb_mw_destroy(stage.windows[i].mw), "destroy window");
	for (unsigned i = 0; i < stage.region_count; i++) {
		vb_mr_invalidate(stage.regions[i].mr);
		vb_mr_free(stage.regions[i].mr);
		region_free(&stage.regions[i]);
	}
	if (stage.srq)
		must(line, vb_srq_destroy(stage.srq), "destroy srq");
	for (unsigned i = 0; i < stage.xrc_srq_count; i++)
		if (stage.xrc_srqs[i].srq)
			must(line, vb_srq_destroy(stage.xrc_srqs[i].srq), "destroy srq");
	must(line, vb_xrcd_destroy(stage.xrcd), "destroy xrcd");
	must(line, vb_xrcd_destroy(stage.other_xrcd), "destroy xrcd");
	for (unsigned i = 0; i < stage.cq_count; i++)
		must(line, vb_cq_destroy(stage.cqs[i].cq), "destroy cq");
	must(line, vb_pd_destroy(stage.other_pd), "destroy pd");
	must(line, vb_pd_destroy(stage.pd), "destroy pd");
	vb_lane_destroy(stage.lane);
	vb_nic_destroy(stage.nic);
	free(stage.sent);
}

struct actor *stage_actor(struct line *line)
{
	const char *name = line_text(line, "qp");
	for (unsigned i = 0; i < stage.actor_count; i++)
		if (!name || strcmp(stage.actors[i]->name, name) == 0)
			return stage.actors[i];
	fail(line, "there is no such QP");
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static void keep_sent(struct line *line, struct vb_batch *out, unsigned i)
{
	struct vb_outgoing *from = &out->out[i];
	if (stage.sent_tail == MAX_OUTPUTS)
		fail(line, "the NIC sends without end; last: %s psn=%u at %s", vb_packet_row(&from->packet)->name,
			from->packet.psn, show_time(stage.now));
	struct sent *to = &stage.sent[stage.sent_tail++];
	*to = (struct sent){ .packet = from->packet, .av = *from->av, .at = stage.now, .actor = vb_qp_user(from->qp) };
	uint32_t length = 0;
	for (unsigned k = 0; k < from->iov_count; k++) {
		const struct vb_iov *iov = &out->iov[from->iov_first + k];
		if (length + iov->length > VB_MAX_MTU)
			fail(line, "scatter list longer than any packet");
		memcpy(to->payload + length, iov->base, iov->length);
		length += (uint32_t)iov->length;
	}
	if (length != from->packet.payload_length)
		fail(line, "%s psn=%u says payload %u and brings %u bytes", vb_packet_row(&from->packet)->name,
			from->packet.psn, from->packet.payload_length, length);
	out->completions[i].error = stage.send_error_after ? 0 : stage.send_error;
	if (stage.send_error_after)
		stage.send_error_after--;
	else
		stage.send_error = 0;
}

static void take_events(struct line *line)
{
	struct vb_event event;
	while (vb_lane_next_event(stage.lane, &event)) {
		if (stage.happened_tail == MAX_OUTPUTS)
			fail(line, "events without end");
		stage.happened[stage.happened_tail++] = (struct happened){ event, stage.now };
	}
}

static void take_completions(struct line *line)
{
	for (unsigned i = 0; i < stage.cq_count; i++) {
		struct vb_wc wc;
		while (!stage.cqs[i].is_unpolled && vb_cq_poll(stage.cqs[i].cq, &wc, 1) == 1) {
			if (stage.completed_tail == MAX_OUTPUTS)
				fail(line, "completions without end");
			stage.completed[stage.completed_tail++] = (struct completed){ wc, stage.now };
		}
	}
}

void stage_settle(struct line *line)
{
	unsigned n;
	while ((n = vb_lane_transmit(stage.lane, &batch, stage.budget, stage.now))) {
		if (n != batch.count)
			fail(line, "transmit returned %u and filled %u", n, batch.count);
		for (unsigned i = 0; i < n; i++)
			keep_sent(line, &batch, i);
		if (vb_lane_handed_out(stage.lane) != n)
			fail(line, "handed_out is %u of %u", vb_lane_handed_out(stage.lane), n);
		vb_lane_transmit_done(stage.lane, batch.completions, n, stage.now);
	}
	if (vb_lane_handed_out(stage.lane))
		fail(line, "handed_out is %u after transmit_done", vb_lane_handed_out(stage.lane));
	take_events(line);
	take_completions(line);
	vb_lane_check(stage.lane);
	vb_nic_check(stage.nic);
}

/* One step to the next deadline, if that is not after until. */
static bool step(struct line *line, vb_time until)
{
	struct vb_deadline deadline = vb_lane_next_deadline(stage.lane);
	if (!deadline.is_set || vb_time_before(until, deadline.at))
		return false;
	if (vb_time_before(stage.now, deadline.at))
		stage.now = deadline.at;
	vb_lane_advance(stage.lane, stage.now);
	stage_settle(line);
	return true;
}

static void run_until(struct line *line, vb_time until, const unsigned *head, const unsigned *tail)
{
	vb_time before = stage.now;
	for (unsigned spins = 0; (!head || *head == *tail) && step(line, until);) {
		spins = stage.now == before ? spins + 1 : 0;
		before = stage.now;
		if (spins > 100)
			fail(line, "next_deadline stays at %s and nothing happens", show_time(stage.now));
	}
}

void stage_expect_nothing(struct line *line)
{
	if (stage.sent_head != stage.sent_tail) {
		struct sent *sent = &stage.sent[stage.sent_head];
		fail(line, "before this, at %s: unexpected packet > %s psn=%u len=%u%s syndrome=0x%02x",
			show_time(vb_time_diff(sent->at, stage.mark)), vb_packet_row(&sent->packet)->name,
			sent->packet.psn, sent->packet.payload_length, sent->packet.ackreq ? " ackreq" : "",
			sent->packet.syndrome);
	}
	if (stage.completed_head != stage.completed_tail) {
		struct completed *done = &stage.completed[stage.completed_head];
		fail(line, "before this, at %s: unexpected completion wr=%llu status %u opcode %u",
			show_time(vb_time_diff(done->at, stage.mark)), (unsigned long long)done->wc.wr_id,
			done->wc.status, done->wc.opcode);
	}
	if (stage.happened_head != stage.happened_tail) {
		struct happened *event = &stage.happened[stage.happened_head];
		fail(line, "before this, at %s: unexpected event %s", show_time(vb_time_diff(event->at, stage.mark)),
			event_name(event->event.kind));
	}
}

void stage_input(struct line *line)
{
	stage_open(line);
	stage_expect_nothing(line);
	vb_time at = vb_time_add(stage.mark, line->earliest);
	if (line->earliest != line->latest)
		fail(line, "an input has one time");
	if (vb_time_before(at, stage.now))
		fail(line, "time runs backwards by %s", show_time(vb_time_diff(stage.now, at)));
	run_until(line, at, NULL, NULL);
	if (vb_time_before(stage.now, at)) {
		stage.now = at;
		unsigned before = stage.sent_tail;
		stage_settle(line);
		if (before != stage.sent_tail)
			fail(line, "a packet leaves now though next_deadline did not ask to be called");
	}
	stage_expect_nothing(line);
	stage.mark = at;
}

void stage_wait(struct line *line, const unsigned *head, const unsigned *tail)
{
	if (!line->has_time)
		line->latest = 0;
	run_until(line, vb_time_add(stage.mark, line->latest), head, tail);
}

void stage_stamp(struct line *line, vb_time at, const char *what)
{
	vb_time after = vb_time_diff(at, stage.mark);
	if (line->has_time && (after < line->earliest || after > line->latest))
		fail(line, "%s at %s, expected %s .. %s after the line before", what, show_time(after),
			show_time(line->earliest), show_time(line->latest));
	if (vb_time_before(stage.mark, at))
		stage.mark = at;
}

/* Nothing will ever happen again: the few wake-ups left are of timers whose deadline had moved away. */
void stage_idle(struct line *line)
{
	for (int i = 0; i < 100; i++) {
		struct vb_deadline deadline = vb_lane_next_deadline(stage.lane);
		if (!deadline.is_set)
			return;
		step(line, deadline.at);
		stage_expect_nothing(line);
	}
	fail(line, "the lane does not come to rest");
}
