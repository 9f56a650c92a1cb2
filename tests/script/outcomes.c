/* What must come of it: completions, events, states, counters, deadlines. */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "script.h"

static uint32_t wc_opcode_of(enum vb_wr_opcode opcode)
{
	static const uint32_t opcodes[] = { [VB_WR_RDMA_WRITE] = VB_WC_RDMA_WRITE,
		[VB_WR_RDMA_WRITE_WITH_IMM] = VB_WC_RDMA_WRITE,
		[VB_WR_SEND] = VB_WC_SEND,
		[VB_WR_SEND_WITH_IMM] = VB_WC_SEND,
		[VB_WR_RDMA_READ] = VB_WC_RDMA_READ,
		[VB_WR_ATOMIC_CMP_AND_SWP] = VB_WC_COMP_SWAP,
		[VB_WR_ATOMIC_FETCH_AND_ADD] = VB_WC_FETCH_ADD,
		[VB_WR_ATOMIC_WRITE] = VB_WC_ATOMIC_WRITE,
		[VB_WR_FLUSH] = VB_WC_FLUSH,
		[VB_WR_LOCAL_INV] = VB_WC_LOCAL_INV,
		[VB_WR_BIND_MW] = VB_WC_BIND_MW,
		[VB_WR_SEND_WITH_INV] = VB_WC_SEND };
	return opcodes[opcode];
}

static void expect(struct line *line, const char *what, uint64_t expected, uint64_t seen)
{
	if (expected != seen)
		fail(line, "completion's %s: expected %llu (0x%llx), seen %llu (0x%llx)", what,
			(unsigned long long)expected, (unsigned long long)expected, (unsigned long long)seen,
			(unsigned long long)seen);
}

static void check_sent_completion(struct line *line, struct actor *actor, const struct vb_wc *wc)
{
	for (unsigned i = actor->posted_count; i-- > 0;) {
		struct posted *posted = &actor->posted[i];
		if (posted->wr_id != wc->wr_id)
			continue;
		expect(line, "opcode", wc_opcode_of(posted->opcode), wc->opcode);
		if (posted->opcode == VB_WR_RDMA_READ || is_atomic(posted->opcode))
			expect(line, "byte_len", posted->length, wc->byte_len);
		return;
	}
	fail(line, "nothing was posted with this wr");
}

static void check_received(struct line *line, struct actor *actor, const struct vb_wc *wc)
{
	if (actor->received_head == actor->received_tail)
		fail(line, "no message has landed");
	expect(line, "byte_len", actor->received[actor->received_head++ % MAX_RECVS], wc->byte_len);
	if (line_has(line, "len"))
		expect(line, "byte_len", line_number(line, "len", 0), wc->byte_len);
	uint32_t flags = (line_has(line, "imm") ? VB_WC_WITH_IMM : 0) | (line_has(line, "inv") ? VB_WC_WITH_INV : 0) |
			 (actor->config.type == VB_QP_UD ? VB_WC_GRH : 0);
	expect(line, "flags", flags, wc->flags);
	expect(line, "opcode", line_flag(line, "write_imm") ? VB_WC_RECV_RDMA_WITH_IMM : VB_WC_RECV, wc->opcode);
	if (line_has(line, "imm"))
		expect(line, "imm", line_number(line, "imm", 0), __builtin_bswap32(wc->imm_or_inv));
	if (line_has(line, "inv"))
		expect(line, "inv", read_key(line, "inv", 0), wc->imm_or_inv);
	if (line_has(line, "src_qpn"))
		expect(line, "src_qpn", line_number(line, "src_qpn", 0), wc->src_qpn);
	if (line_has(line, "sl"))
		expect(line, "sl", line_number(line, "sl", 0), wc->sl);
}

static void check_completion(struct line *line, struct vb_wc *wc)
{
	struct actor *actor = stage_actor(line);
	bool is_recv = line_flag(line, "recv");
	expect(line, "wr", line_number(line, "wr", 0), wc->wr_id);
	expect(line, "qpn", vb_qp_number(actor->qp), wc->qpn);
	bool is_write_imm = line_flag(line, "write_imm");
	(void)is_write_imm;
	const char *status = NULL;
	for (const char *word; (word = line_word(line));)
		if (strcmp(word, "recv") && strcmp(word, "write_imm"))
			status = word;
	expect(line, "status", read_status(line, status), wc->status);
	if (wc->qp_user != actor)
		fail(line, "completion does not carry the QP's user pointer");
	if (wc->status)
		return;
	if (is_recv)
		check_received(line, actor, wc);
	else
		check_sent_completion(line, actor, wc);
}

void do_complete(struct line *line)
{
	stage_wait(line, &stage.completed_head, &stage.completed_tail);
	if (stage.completed_head == stage.completed_tail)
		fail(line, "no completion");
	struct completed *done = &stage.completed[stage.completed_head++];
	check_completion(line, &done->wc);
	stage_stamp(line, done->at, "completion");
}

/* poll cq=small: of a CQ that is left alone otherwise. overrun: it must say so. empty: nothing in it. */
void do_poll(struct line *line)
{
	struct vb_wc wc;
	stage_input(line);
	int n = vb_cq_poll(find_cq(line, "cq")->cq, &wc, 1);
	int expected = line_flag(line, "overrun") ? -EIO : line_flag(line, "empty") ? 0 : 1;
	if (n != expected)
		fail(line, "poll returned %d, expected %d", n, expected);
	if (n == 1)
		check_completion(line, &wc);
}

void do_event(struct line *line)
{
	stage_wait(line, &stage.happened_head, &stage.happened_tail);
	if (stage.happened_head == stage.happened_tail)
		fail(line, "no event");
	struct happened *event = &stage.happened[stage.happened_head++];
	const char *name = line_word(line);
	if (!name || strcmp(name, event_name(event->event.kind)) != 0)
		fail(line, "seen event %s", event_name(event->event.kind));
	if (event->event.qp && event->event.qp != stage_actor(line)->qp)
		fail(line, "event of another QP");
	stage_stamp(line, event->at, "event");
}

/* access=READ len=8: what was asked of memory that was refused. */
static void check_access(struct line *line, const struct vb_cause *cause)
{
	const char *what = line_text(line, "access");
	if (what && (!cause->access.what || strcasecmp(what, cause->access.what) != 0))
		fail(line, "access seen: %s", cause->access.what ? cause->access.what : "none");
	if (line_has(line, "len") && line_number(line, "len", 0) != cause->access.length)
		fail(line, "length of the access seen: %u", cause->access.length);
	if (line_has(line, "va") && line_number(line, "va", 0) != cause->access.addr)
		fail(line, "address of the access seen: 0x%llx", (unsigned long long)cause->access.addr);
}

static void check_cause(struct line *line, struct actor *actor, const char *name)
{
	static const char *const names[] = {
#define X(NAME, text) #NAME,
		VB_CAUSES(X)
#undef X
	};
	struct vb_cause cause;
	vb_qp_cause(actor->qp, &cause);
	if (strcasecmp(names[cause.kind], name) != 0)
		fail(line, "cause seen: %s (%s)", names[cause.kind], vb_cause_text(cause.kind));
	if (line_has(line, "tries") && line_number(line, "tries", 0) != cause.tries)
		fail(line, "tries seen: %u", cause.tries);
	if (line_has(line, "psn") && line_number(line, "psn", 0) != cause.psn)
		fail(line, "psn of the cause seen: %u", cause.psn);
	if (line_flag(line, "never_heard") && cause.was_heard)
		fail(line, "the cause says that the peer was heard");
	if (line_flag(line, "heard") && !cause.was_heard)
		fail(line, "the cause says that the peer was never heard");
	check_access(line, &cause);
}

/* state err cause=nak_remote_access: the QP died by itself, and says why. */
void do_state(struct line *line)
{
	struct actor *actor = stage_actor(line);
	const char *cause = line_text(line, "cause");
	enum vb_qp_state expected = read_state(line, line_word(line));
	if (cause) {
		stage_wait(line, &stage.happened_head, &stage.happened_tail);
		if (stage.happened_head == stage.happened_tail)
			fail(line, "the QP did not die; it is in state %d", vb_qp_state(actor->qp));
		struct happened *event = &stage.happened[stage.happened_head++];
		if (event->event.kind != VB_EVENT_QP_DIED || event->event.qp != actor->qp)
			fail(line, "seen event %s", event_name(event->event.kind));
		stage_stamp(line, event->at, "death");
		check_cause(line, actor, cause);
	} else {
		stage_input(line);
	}
	if (vb_qp_state(actor->qp) != expected)
		fail(line, "state seen: %d", vb_qp_state(actor->qp));
}

void do_counter(struct line *line)
{
	uint64_t values[VB_COUNTER_COUNT];
	stage_input(line);
	vb_lane_counters(stage.lane, values);
	for (const char *name; (name = line_word(line));)
		fail(line, "counter NAME=VALUE, not '%s'", name);
	for (int t = 1; t < line->token_count; t++) {
		const char *key = line->tokens[t].key;
		uint64_t expected = line_number(line, key, 0);
		int i = 0;
		while (i < VB_COUNTER_COUNT && strcmp(vb_counter_name[i], key) != 0)
			i++;
		if (i == VB_COUNTER_COUNT)
			fail(line, "there is no counter '%s'", key);
		if (values[i] != expected)
			fail(line, "%s: expected %llu, seen %llu", key, (unsigned long long)expected,
				(unsigned long long)values[i]);
	}
}

/* deadline at=10us: the lane wants to be called then, or a little before; deadline none: it does not. */
void do_deadline(struct line *line)
{
	stage_input(line);
	struct vb_deadline deadline = vb_lane_next_deadline(stage.lane);
	if (line_flag(line, "none")) {
		if (deadline.is_set)
			fail(line, "deadline in %s", show_time(vb_time_diff(deadline.at, stage.now)));
		return;
	}
	vb_time at = line_time(line, "at", 0);
	if (!deadline.is_set || vb_time_diff(deadline.at, stage.now) > at)
		fail(line, "deadline %s",
			deadline.is_set ? show_time(vb_time_diff(deadline.at, stage.now)) : "not set");
}

void do_idle(struct line *line)
{
	stage_input(line);
	stage_idle(line);
	stage.mark = stage.now;
}

/* +10ms quiet: nothing comes out until then. */
void do_quiet(struct line *line)
{
	stage_input(line);
}
