/* Explains a QP's death, and why a connection did not come about: which peer, why, for how long, and what to check. */
#include "base/invariant.h"
#include "host/report/explain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "host/devices/loopback.h"
#include "host/host.h"
#include "host/process.h"
#include "host/random.h"
#include "host/report/text.h"

/* Of a burst of deaths (a peer with a thousand QPs went away) the first lines are enough. */
#define LINES_A_SECOND 8
/* No path is too narrow for a packet below this. */
#define SUSPECT_BYTES     1000
#define OVERFLOWS_TO_TELL 16
#define SILENT_FOR        (3 * VB_S)

static bool is_stuck_by_size(const struct vb_cause *cause)
{
	return cause->was_heard && cause->largest_acked && cause->stuck_wire_bytes > cause->largest_acked &&
	       cause->stuck_wire_bytes >= SUSPECT_BYTES;
}

static const char *process_text(enum vb_process_state process)
{
	switch (process) {
	case VB_PROCESS_STOPPED:
		return "its process is stopped there, by a signal or a debugger";
	case VB_PROCESS_GONE:
		return "its process has ended";
	case VB_PROCESS_RUNS:
		return "its process runs there, and its broker answers; does it wait for a core, are packets lost?";
	default:
		return "has it ended or been cut off?";
	}
}

/* Why a peer that should answer does not. */
static void add_silence(struct vb_line *line, const struct vb_death *death)
{
	const struct vb_cause *cause = &death->cause;
	char span[32];

	if (!cause->was_heard) {
		vb_line_add(line, ", never heard from it; is it running, is UDP 4791 open?");
	} else if (is_stuck_by_size(cause)) {
		vb_line_add(line,
			"; packets of %u bytes vanish while %u bytes get through: does every hop carry this MTU?",
			cause->stuck_wire_bytes, cause->largest_acked);
	} else {
		vb_line_add(line, ", last heard from it %s ago; %s",
			vb_text_span(cause->silent_for, span, sizeof(span)), process_text(death->process));
	}
	if (death->has_no_carrier)
		vb_line_add(line, "; %s has no carrier", death->device);
}

static void add_overflow(struct vb_line *line, const struct vb_death *death)
{
	if (death->overflows)
		vb_line_add(line,
			"; our own receive buffer (%u bytes) overflowed %llu times: raise sysctl net.core.rmem_max",
			death->receive_buffer, (unsigned long long)death->overflows);
}

/* UCX from 1.16 on flushes its WRITEs so on every device but mlx5's, whose driver gives that key a meaning. */
static bool is_flush_of_ucx(const struct vb_cause *cause)
{
	return strcmp(cause->access.what, "READ") == 0 && cause->access.addr == 0 && cause->access.rkey == 0xff;
}

static void add_access(struct vb_line *line, const struct vb_cause *cause)
{
	vb_line_add(line, "; it was a %s of %u bytes at 0x%llx with rkey 0x%x", cause->access.what,
		cause->access.length, (unsigned long long)cause->access.addr, cause->access.rkey);
	if (is_flush_of_ucx(cause))
		vb_line_add(line, ", as UCX sends to flush its WRITEs; set UCX_FENCE_MODE=weak at both ends");
}

static bool has_tries(enum vb_cause_kind kind)
{
	return kind == VB_CAUSE_RETRY_EXCEEDED || kind == VB_CAUSE_RNR_RETRY_EXCEEDED;
}

void vb_explain(const struct vb_death *death, char *text, size_t size)
{
	struct vb_line line = { text, size, 0 };
	const struct vb_cause *cause = &death->cause;
	char span[32], peer[VB_TEXT_GID];

	vb_line_add(&line, "%s qpn 0x%x: %s", death->device, death->qpn, vb_cause_text(cause->kind));
	if (has_tries(cause->kind))
		vb_line_add(
			&line, ": %u tries in %s", cause->tries, vb_text_span(cause->stuck_for, span, sizeof(span)));
	if (death->type != VB_QP_UD && death->type != VB_QP_RAW)
		vb_line_add(&line, "%s %s qpn 0x%x", has_tries(cause->kind) ? " to" : "; peer",
			vb_text_gid(&death->peer, peer), death->dest_qpn);
	if (cause->kind == VB_CAUSE_RETRY_EXCEEDED) {
		add_silence(&line, death);
		add_overflow(&line, death);
	}
	if (cause->access.what)
		add_access(&line, cause);
}

bool vb_explain_process(const struct vb_discovery *answer, const struct vb_gid *peer, char *text, size_t size)
{
	struct vb_line line = { text, size, 0 };
	char gid[VB_TEXT_GID];

	vb_line_add(&line, "%s qpn 0x%x: ", vb_text_gid(peer, gid), answer->qpn);
	switch (answer->process) {
	case VB_PROCESS_STOPPED:
		vb_line_add(&line, "its process is stopped there, by a signal or a debugger, and answers nothing until "
				   "it goes on");
		return true;
	case VB_PROCESS_GONE:
		vb_line_add(&line, "its process has ended");
		return true;
	default:
		return false;
	}
}

void vb_explain_unasked(uint32_t qpn, const struct vb_gid *peer, int error, char *text, size_t size)
{
	struct vb_line line = { text, size, 0 };
	char gid[VB_TEXT_GID];

	vb_line_add(&line, "%s qpn 0x%x: ", vb_text_gid(peer, gid), qpn);
	if (error == -ECONNREFUSED)
		vb_line_add(&line, "UDP 4791 is closed there now: its process has ended, unless a firewall refuses");
	else
		vb_line_add(&line, "its host cannot be reached any more (%s)", strerror(-error));
}

void vb_explain_silence(const struct vb_cm_event *event, const struct vb_gid *peer, char *text, size_t size)
{
	struct vb_line line = { text, size, 0 };
	char gid[VB_TEXT_GID];

	vb_line_add(&line,
		"connection to %s port %u: asked %u times, no answer yet, still asking; is the address right, does its "
		"program run, is UDP 4791 open both ways?",
		vb_text_gid(peer, gid), (unsigned)event->service_id & 0xFFFF, event->tries);
}

void vb_explain_unreachable(const struct vb_cm_event *event, const struct vb_gid *peer, char *text, size_t size)
{
	struct vb_line line = { text, size, 0 };
	char gid[VB_TEXT_GID];

	unsigned port = (unsigned)event->service_id & 0xFFFF;
	vb_text_gid(peer, gid);
	if (event->error == -ENOBUFS) {
		vb_line_add(&line,
			"connection from %s to our port %u: given up because too many wait to be confirmed; is it a "
			"flood?",
			gid, port);
		return;
	}
	if (event->is_of_reply) {
		vb_line_add(&line,
			"connection from %s to our port %u: accepted %u times, never confirmed; has the peer ended or "
			"been cut off?",
			gid, port, event->tries);
		return;
	}
	vb_line_add(&line, "connection to %s port %u: ", gid, port);
	if (event->error == -ECONNREFUSED)
		vb_line_add(&line, "UDP 4791 is closed there; does its program run, on Verbena or rxe?");
	else if (event->error)
		vb_line_add(&line,
			"the host cannot be reached (%s); is the address right, is the host up, does a firewall refuse "
			"UDP 4791?",
			strerror(-event->error));
	else
		vb_line_add(&line, "asked %u times, never answered; does its program run, is UDP 4791 open both ways?",
			event->tries);
}

void vb_explain_mtu(const struct vb_mtu_refusal *refusal, char *text, size_t size)
{
	struct vb_line line = { text, size, 0 };
	char local[VB_TEXT_GID], remote[VB_TEXT_GID];

	vb_text_gid(&refusal->local, local);
	vb_text_gid(&refusal->remote, remote);
	if (refusal->is_ours) {
		vb_line_add(&line,
			"connection from %s to our port %u: refused, it wants path MTU %u and our %s carries %u",
			remote, refusal->port, refusal->wanted, local, refusal->carried);
	} else {
		vb_line_add(&line, "connection to %s port %u: refused, our %s has a larger path MTU", remote,
			refusal->port, local);
		if (refusal->carried)
			vb_line_add(&line, " than the %u it carries", refusal->carried);
	}
	vb_line_add(&line, "; make the interfaces' MTU equal");
}

void vb_explain_move(const struct vb_qp_account *account, const char *interface, char *line, size_t size)
{
	const struct vb_moves *moves = &account->moves;
	char from[VB_TEXT_GID], to[VB_TEXT_GID], peer[VB_TEXT_GID];

	vb_text_gid(moves->is_of_second ? &moves->second_from : &moves->from, from);
	vb_text_gid(moves->is_of_second ? &moves->second_to : &moves->to, to);
	if (moves->is_of_second)
		snprintf(line, size, "qp 0x%x: %s from %s to %s by %s%s", account->qpn,
			moves->has_second ? "sends by a second link, too," : "what it sends is lost", from, to,
			interface, moves->has_second ? "" : ", so it sends by its own link alone until that answers");
	else if (!moves->is_away)
		snprintf(
			line, size, "qp 0x%x: back on its own path, %s to %s by %s", account->qpn, from, to, interface);
	else
		snprintf(line, size, "qp 0x%x: peer %s %s, so it goes on from %s to %s by %s", account->qpn,
			vb_text_gid(&account->peer, peer),
			moves->is_with_peer ? "has left its own path" : "does not answer on its own path", from, to,
			interface);
}

/* ---- The live side ----------------------------------------------------------------------------------------------- */

/* False when enough lines were written this second; a later line tells how many were not, unless what is NULL. */
static bool may_speak(struct vb_quota *quota, const char *what, struct vb_later **unsaid)
{
	vb_time now = vb_host_now();

	if (vb_time_since(quota->second, now) > VB_S) {
		if (quota->unsaid && what)
			vb_log_later(unsaid, VB_LOG_WARN, "and %u more %s", quota->unsaid, what);
		quota->second = now;
		quota->said = quota->unsaid = 0;
	}
	if (quota->said++ < LINES_A_SECOND)
		return true;
	assert(quota->said > quota->unsaid);
	quota->unsaid++;
	return false;
}

/* The broker checks its steering with datagrams, a few at a time, that the kernel drops and counts. */
static uint64_t overflows(const struct vb_host_lane *d)
{
	uint64_t values[VB_PORT_COUNTER_COUNT];

	vb_port_counters(d->port, values);
	return values[VB_PORT_RX_OVERFLOW] >= OVERFLOWS_TO_TELL ? values[VB_PORT_RX_OVERFLOW] : 0;
}

/* A NIC answers in hardware, whatever its program does; a process of Verbena that is stopped does not. Its broker
 * knows. */
static void ask_process(struct vb_host_lane *d, const struct vb_qp_attr *attr)
{
	const struct vb_discovery question = { .version = VB_DISCOVERY_VERSION,
		.transaction_id = vb_host_random_seed(),
		.receive_buffer = d->slot.receive_buffer,
		.features = VB_FEATURE_TRAINS,
		.qpn = attr->dest_qpn };
	uint8_t mad[VB_MAD_LENGTH];

	assert(question.qpn);
	vb_discovery_encode(&question, mad);
	vb_broker_post_query(d->process->broker, &attr->av.sgid, &attr->av.dgid, mad);
}

static struct vb_fate *fate_at(struct vb_host_lane *d, uint32_t qpn)
{
	return &d->fates[(qpn ^ qpn >> 16) % VB_FATES];
}

static void note_fate(struct vb_host_lane *d, const struct vb_fate *fate)
{
	if (vb_host_lane_lock(d) < 0)
		return;
	*fate_at(d, fate->qpn) = *fate;
	vb_host_lane_unlock(d);
}

static void note_fate_of(
	struct vb_process *p, const struct vb_broker_notice *notice, uint32_t qpn, enum vb_process_state process)
{
	const struct vb_fate fate = { notice->gid, qpn, process, vb_host_now() };

	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		note_fate(p->host_lanes[i], &fate);
}

/* As a broker has said since the peer fell silent. */
static enum vb_process_state known_fate(struct vb_host_lane *d, const struct vb_qp_attr *attr, vb_time silent_for)
{
	const struct vb_fate *fate = fate_at(d, attr->dest_qpn);

	if (fate->qpn != attr->dest_qpn || !vb_gid_equal(&fate->peer, &attr->av.dgid) ||
		vb_time_since(fate->at, vb_host_now()) > silent_for)
		return VB_PROCESS_NOT_TOLD;
	return fate->process;
}

bool vb_host_explain_process(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_discovery answer;
	char line[256];

	if (!vb_discovery_decode(&answer, notice->mad))
		return false;
	if (!answer.is_response || !answer.qpn)
		return true;
	note_fate_of(p, notice, answer.qpn, answer.process);
	if (vb_explain_process(&answer, &notice->gid, line, sizeof(line)))
		vb_log(VB_LOG_WARN, "%s", line);
	return true;
}

bool vb_host_explain_unasked(struct vb_process *p, const struct vb_broker_notice *notice)
{
	struct vb_discovery question;
	char line[256];

	if (!vb_discovery_decode(&question, notice->mad))
		return false;
	if (question.is_response || !question.qpn)
		return true;
	note_fate_of(p, notice, question.qpn, notice->error == -ECONNREFUSED ? VB_PROCESS_GONE : VB_PROCESS_NOT_TOLD);
	vb_explain_unasked(question.qpn, &notice->gid, notice->error, line, sizeof(line));
	vb_log(VB_LOG_WARN, "%s", line);
	return true;
}

/* A fault of our loopback may be why the peer is silent. */
static void explain_loopback(const struct vb_gid *peer, struct vb_later **unsaid)
{
	const char *fault = vb_loopback_fault(peer);

	if (fault)
		vb_log_later(unsaid, VB_LOG_ERROR, "%s", fault);
}

void vb_host_lane_ask_after(struct vb_host_lane *d, struct vb_qp *qp)
{
	struct vb_qp_attr attr;
	struct vb_qp_config config;

	if (!vb_qp_peer_is_verbena(qp) ||
		!may_speak(&d->questions, NULL, &d->unsaid)) /* other peers do not know the question */
		return;
	vb_qp_query(qp, &attr, &config);
	if (attr.dest_qpn)
		ask_process(d, &attr);
}

void vb_host_lane_ask_after_silent(struct vb_host_lane *d)
{
	const vb_time now = vb_host_now(), since = vb_time_since(d->silence_seen_at, now);
	struct vb_qp *qp;
	uint32_t place = 0;

	assert(d->lane);
	d->silence_seen_at = now;
	while ((qp = vb_lane_next_qp(d->lane, &place))) {
		vb_time silent_for = vb_qp_silent_for(qp, now);
		if (silent_for >= SILENT_FOR && silent_for < SILENT_FOR + since)
			vb_host_lane_ask_after(d, qp);
	}
}

void vb_host_lane_explain_move(struct vb_host_lane *d, struct vb_qp *qp)
{
	struct vb_qp_account account;
	char line[256];

	if (!vb_qp_account(qp, &account))
		return;
	const struct vb_gid *from = account.moves.is_of_second ? &account.moves.second_from : &account.moves.from;
	bool is_good = account.moves.is_of_second && account.moves.has_second;
	if (!may_speak(is_good ? &d->rails : &d->moves, is_good ? NULL : "queue pairs moved", &d->unsaid))
		return;
	vb_explain_move(&account, vb_further_interface(&d->process->further, from), line, sizeof(line));
	vb_log_later(&d->unsaid, is_good ? VB_LOG_INFO : VB_LOG_WARN, "%s", line);
}

void vb_host_lane_explain_death(struct vb_host_lane *d, const struct vb_device_info *device, struct vb_qp *qp)
{
	struct vb_qp_attr attr;
	struct vb_qp_config config;
	struct vb_death death = { .device = device->name, .qpn = vb_qp_number(qp) };
	char line[512];

	if (!may_speak(&d->deaths, "queue pairs died", &d->unsaid))
		return;
	vb_qp_query(qp, &attr, &config);
	vb_qp_cause(qp, &death.cause);
	death.type = config.type;
	death.dest_qpn = attr.dest_qpn;
	death.peer = attr.av.dgid;
	death.overflows = overflows(d);
	death.receive_buffer = d->slot.receive_buffer;
	death.process = known_fate(d, &attr, death.cause.silent_for);
	death.has_no_carrier = !device->is_up;
	vb_explain(&death, line, sizeof(line));
	vb_log_later(&d->unsaid, VB_LOG_WARN, "%s", line);
	if (death.cause.kind == VB_CAUSE_RETRY_EXCEEDED && attr.dest_qpn && death.process == VB_PROCESS_NOT_TOLD)
		ask_process(d, &attr);
	if (death.cause.kind == VB_CAUSE_RETRY_EXCEEDED)
		explain_loopback(&attr.av.dgid, &d->unsaid);
}

/* Under the CM's mutex. silences: of connections that may still come about. */
static struct vb_quota failures, silences;

void vb_host_explain_connection(const struct vb_cm_event *event, struct vb_later **unsaid)
{
	const bool is_silent = event->kind == VB_CM_EVENT_SILENT;
	char line[512];

	if (!is_silent && event->kind != VB_CM_EVENT_UNREACHABLE && event->kind != VB_CM_EVENT_SIDR_TIMEOUT)
		return;
	const struct vb_gid *peer = &vb_cm_id_path(event->id)->remote;
	if (!may_speak(is_silent ? &silences : &failures,
		    is_silent ? "connections are unanswered" : "connections failed", unsaid))
		return;
	if (is_silent)
		vb_explain_silence(event, peer, line, sizeof(line));
	else
		vb_explain_unreachable(event, peer, line, sizeof(line));
	vb_log_later(unsaid, VB_LOG_WARN, "%s", line);
	if (!is_silent)
		explain_loopback(peer, unsaid);
}

void vb_host_explain_mtu(const struct vb_mtu_refusal *refusal, struct vb_later **unsaid)
{
	char line[512];

	if (!may_speak(&failures, "connections failed", unsaid))
		return;
	vb_explain_mtu(refusal, line, sizeof(line));
	vb_log_later(unsaid, VB_LOG_WARN, "%s", line);
}
