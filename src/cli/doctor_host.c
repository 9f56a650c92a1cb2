/* verbena doctor HOST: UDP port 4791 both ways, the answering implementation, round trip, loss, MTU. Probes are
 * management datagrams from our QP1 to the host's: a discovery, which only Verbena answers, then a connection request
 * for a service that nobody has, which Linux rxe and NICs reject. Nothing is left behind at the host. */
#include "base/bytes.h"
#include "cli/doctor.h"
#include "cli/way.h"
#include "host/client/broker.h"
#include "wire/mad.h"
#include "wire/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "os/clock.h"

enum {
	PROBES = 20,
	PROBE_GAP_NS = 10 * 1000 * 1000,
	MTU_TRIES = 3,
	/* A closed port, as traceroute uses: a host that is up answers that it is closed. */
	CLOSED_PORT = 33434,
	CM_REQ = 0x10,
	CM_REJ = 0x12,
};

struct probe_run {
	int64_t sent_ns[PROBES], round_trip_ns[PROBES]; /* by probe; 0: not answered */
	uint64_t first_id;                              /* transaction id of probe 0 */
	unsigned answered;
	uint8_t answer[VB_MAD_LENGTH]; /* the last */
};

typedef void build_probe(const struct vb_way *way, uint64_t transaction_id, uint8_t mad[VB_MAD_LENGTH]);

/* The peer may remember these facts, so they are those of a real slot of ours. */
static void build_discovery(const struct vb_way *way, uint64_t transaction_id, uint8_t mad[VB_MAD_LENGTH])
{
	vb_discovery_encode(&(struct vb_discovery){ .transaction_id = transaction_id,
				    .version = VB_DISCOVERY_VERSION,
				    .receive_buffer = way->receive_buffer,
				    .features = VB_FEATURE_TRAINS },
		mad);
}

/* A complete connection request for a service without a listener. The reserved service id range begins with 0x10:
 * locally assigned, IBA vol. 1, A3.2.3.3. */
static void build_connection_request(const struct vb_way *way, uint64_t transaction_id, uint8_t mad[VB_MAD_LENGTH])
{
	uint8_t *body = mad + VB_MAD_HEADER_LENGTH;
	struct vb_mad_header header = { .base_version = 1,
		.mgmt_class = VB_MAD_CLASS_CM,
		.class_version = 2,
		.method = VB_MAD_METHOD_SEND,
		.transaction_id = transaction_id,
		.attribute_id = CM_REQ };

	memset(mad, 0, VB_MAD_LENGTH);
	vb_mad_header_encode(&header, mad);
	vb_store_be32(
		body, (uint32_t)way->slot.number << 24 | (transaction_id & 0xFFFFFF)); /* local communication id */
	vb_store_be64(body + 8, 0x1000000000000000 | (transaction_id & 0xFFFFFFFF));   /* service id */
	vb_store_be64(body + 16, 0x0200000000000001);                                  /* local CA GUID */
	vb_store_be32(body + 32, 2u << 8 | 1);  /* local QPN 2, responder resources 1 */
	vb_store_be32(body + 36, 1);            /* initiator depth 1 */
	vb_store_be32(body + 40, 20u << 3);     /* remote CM response timeout; transport RC */
	vb_store_be32(body + 44, 20u << 3 | 7); /* starting PSN 0; local CM response timeout; retries */
	vb_store_be16(body + 48, 0xFFFF);       /* P_Key */
	body[50] = 1u << 4 | 7;                 /* path MTU 256; RNR retries */
	body[51] = 15u << 4;                    /* CM retries */
	vb_store_be32(body + 52, 0xFFFFFFFF);   /* LIDs: not on this subnet */
	memcpy(body + 56, way->src.raw, 16);
	memcpy(body + 72, way->dst.raw, 16);
	body[93] = 64;       /* hop limit */
	body[95] = 17u << 3; /* local ack timeout */
}

static void take_answer(struct probe_run *run, const struct vb_answer *answer)
{
	struct vb_mad_header header;

	vb_mad_header_decode(&header, answer->mad);
	uint64_t index = header.transaction_id - run->first_id;
	if (index >= PROBES || run->sent_ns[index] == 0 || run->round_trip_ns[index] != 0 ||
		header.attribute_id == CM_REQ) /* our own request, delivered to ourselves */
		return;
	run->round_trip_ns[index] = answer->at_ns - run->sent_ns[index];
	run->answered++;
	memcpy(run->answer, answer->mad, sizeof(run->answer));
}

/* Sends PROBES probes a gap apart, reads answers meanwhile, then waits for the rest. If none of the first few was
 * answered within the timeout, the others are not sent. */
static int run_probes(const struct vb_way *way, build_probe *build, unsigned timeout_ms, struct probe_run *run)
{
	enum { FIRST_FEW = 3 };
	uint8_t mad[VB_MAD_LENGTH];
	struct vb_answer answer;

	*run = (struct probe_run){ .first_id = (uint64_t)vb_clock_ns() << 8 };
	for (unsigned i = 0; i < PROBES; i++) {
		build(way, run->first_id + i, mad);
		run->sent_ns[i] = vb_clock_ns();
		int error = vb_way_send(way, mad, sizeof(mad));
		if (error)
			return error;
		bool must_wait = i + 1 == FIRST_FEW && run->answered == 0;
		int64_t until = run->sent_ns[i] + (must_wait ? (int64_t)timeout_ms * 1000000 : PROBE_GAP_NS);
		while (vb_way_receive(way, &answer, until)) {
			take_answer(run, &answer);
			if (must_wait)
				break;
		}
		if (must_wait && run->answered == 0)
			return 0;
	}
	int64_t deadline = vb_clock_ns() + (int64_t)timeout_ms * 1000000;
	while (run->answered < PROBES && vb_way_receive(way, &answer, deadline))
		take_answer(run, &answer);
	return 0;
}

static int compare_times(const void *a, const void *b)
{
	int64_t difference = *(const int64_t *)a - *(const int64_t *)b;
	return (difference > 0) - (difference < 0);
}

static void report_times(struct vb_findings *findings, const struct probe_run *run)
{
	int64_t times[PROBES];
	unsigned count = 0;

	for (unsigned i = 0; i < PROBES; i++)
		if (run->round_trip_ns[i])
			times[count++] = run->round_trip_ns[i];
	qsort(times, count, sizeof(times[0]), compare_times);
	vb_finding_add(findings, VB_FINDING_OK, "round trip",
		"min %.3f, median %.3f, max %.3f ms, of management datagrams, "
		"which take a detour through the brokers",
		(double)times[0] / 1e6, (double)times[count / 2] / 1e6, (double)times[count - 1] / 1e6);
	if (count == PROBES) {
		vb_finding_add(findings, VB_FINDING_OK, "loss", "none of %d probes", PROBES);
		return;
	}
	vb_finding_add(findings, VB_FINDING_SLOW, "loss",
		"%u of %d probes: each loss in a transfer costs a retransmission", PROBES - count, PROBES);
	vb_finding_cure(findings, "look for drops: ip -s link, and nstat -az UdpRcvbufErrors, at both ends");
}

/* ---- MTU --------------------------------------------------------------------------------------------------------- */

/* True if a discovery padded to a full-size packet of that RoCE MTU went there and came back. */
static bool passes(const struct vb_way *way, uint32_t mtu, unsigned timeout_ms)
{
	uint8_t mad[VB_MAD_LENGTH];
	struct vb_answer answer;

	for (int i = 0; i < MTU_TRIES; i++) {
		uint64_t id = (uint64_t)vb_clock_ns() << 8;
		build_discovery(way, id, mad);
		if (vb_way_send(way, mad, mtu) != 0)
			return false;
		int64_t deadline = vb_clock_ns() + (int64_t)timeout_ms * 1000000;
		while (vb_way_receive(way, &answer, deadline))
			if (vb_load_be64(answer.mad + 8) == id && answer.length == mtu)
				return true;
	}
	return false;
}

static void check_mtu(struct vb_findings *findings, const struct vb_way *way, unsigned timeout_ms)
{
	if (passes(way, way->mtu, timeout_ms)) {
		vb_finding_add(
			findings, VB_FINDING_OK, "MTU", "full-size packets of RoCE MTU %u pass both ways", way->mtu);
		return;
	}
	for (uint32_t mtu = way->mtu / 2; mtu >= 256; mtu /= 2) {
		if (!passes(way, mtu, timeout_ms))
			continue;
		vb_finding_add(findings, VB_FINDING_STOP, "MTU",
			"packets of RoCE MTU %u, which %s offers, are lost on the way; %u passes", way->mtu,
			way->device, mtu);
		vb_finding_cure(findings,
			"make the MTU the same along the way and at both ends; until then ask programs for path "
			"MTU %u (-m %u)",
			mtu, mtu);
		return;
	}
	vb_finding_add(findings, VB_FINDING_STOP, "MTU", "only small datagrams pass");
	vb_finding_cure(findings, "compare the MTU of both interfaces: ip link");
}

/* ---- Who is there ------------------------------------------------------------------------------------------------ */

static void report_verbena(struct vb_findings *findings, const struct vb_way *way, const struct probe_run *run,
	const struct vb_discovery *peer, unsigned timeout_ms)
{
	vb_finding_add(findings, VB_FINDING_OK, "UDP port 4791", "open both ways");
	vb_finding_add(findings, VB_FINDING_OK, "who answers",
		"Verbena (exchange version %u, receive buffer %u bytes, %s, %s)", peer->version, peer->receive_buffer,
		peer->features & VB_FEATURE_TRAINS ? "takes trains" : "takes single datagrams only",
		peer->features & VB_FEATURE_HELLOS ? "recovers selectively" : "recovers by going back");
	report_times(findings, run);
	check_mtu(findings, way, timeout_ms);
}

static void report_unknown_holder(struct vb_findings *findings, const struct vb_way *way, const struct probe_run *run)
{
	struct vb_mad_header header;

	vb_mad_header_decode(&header, run->answer);
	vb_finding_add(findings, VB_FINDING_OK, "UDP port 4791", "open both ways");
	if (header.mgmt_class == VB_MAD_CLASS_CM && header.attribute_id == CM_REJ)
		vb_finding_add(findings, VB_FINDING_OK, "who answers",
			"Linux rxe or a NIC: it rejects a connection to a service that nobody has (reason %u)",
			vb_load_be16(run->answer + VB_MAD_HEADER_LENGTH + 10));
	else
		vb_finding_add(findings, VB_FINDING_OK, "who answers",
			"Linux rxe or a NIC: it answers Verbena's question with status 0x%04x, not supported",
			header.status);
	report_times(findings, run);
	vb_finding_add(findings, VB_FINDING_OK, "MTU",
		"%s offers RoCE MTU %u; whether it passes cannot be asked of this peer: compare its active_mtu",
		way->device, way->mtu);
}

static void report_unreachable(struct vb_findings *findings, const struct vb_way *way, const struct vb_knocker *knocker)
{
	vb_finding_add(findings, VB_FINDING_STOP, "who answers", "nobody: the host cannot be reached%s%s%s",
		knocker->who[0] ? " (says " : "", knocker->who, knocker->who[0] ? ")" : "");
	vb_finding_cure(findings, "is it up, is the address right? ip route get %s", way->dst_text);
}

static void report_silence(struct vb_findings *findings, const struct vb_way *way, unsigned timeout_ms)
{
	struct vb_knocker elsewhere;

	vb_knock_begin(&elsewhere, way, CLOSED_PORT);
	enum vb_knock knock = vb_knock_end(&elsewhere, way, timeout_ms);
	vb_knock_close(&elsewhere);
	if (knock == VB_KNOCK_CLOSED) {
		vb_finding_add(findings, VB_FINDING_STOP, "who answers",
			"nobody, though the host is up: UDP port 4791 is filtered");
		vb_finding_cure(findings, "allow UDP port 4791 in, there and here; for example: "
					  "sudo nft insert rule inet filter input udp dport 4791 accept");
	} else if (knock == VB_KNOCK_UNREACHABLE) {
		report_unreachable(findings, way, &elsewhere);
	} else {
		vb_finding_add(findings, VB_FINDING_STOP, "who answers",
			"nobody: the host is down, or a firewall drops what is sent");
		vb_finding_cure(findings, "ping it; allow UDP port 4791 in, there and here");
	}
}

/* No MAD was answered: report what the network's errors say. */
static void report_nobody(
	struct vb_findings *findings, const struct vb_way *way, struct vb_knocker *knocker, unsigned timeout_ms)
{
	switch (vb_knock_end(knocker, way, timeout_ms)) {
	case VB_KNOCK_CLOSED:
		vb_finding_add(
			findings, VB_FINDING_STOP, "who answers", "the host is up, nothing is on its UDP port 4791");
		vb_finding_cure(
			findings, "start a program under verbena run there, or keep the port open: verbena broker");
		break;
	case VB_KNOCK_PROHIBITED:
		vb_finding_add(findings, VB_FINDING_STOP, "who answers", "a firewall%s%s refuses UDP port 4791",
			knocker->who[0] ? " at " : "", knocker->who);
		vb_finding_cure(findings, "allow UDP port 4791 in, there and here, and out of here");
		break;
	case VB_KNOCK_UNREACHABLE:
		report_unreachable(findings, way, knocker);
		break;
	case VB_KNOCK_SILENCE:
		report_silence(findings, way, timeout_ms);
		break;
	}
}

static void report_send_error(struct vb_findings *findings, const struct vb_way *way, int error)
{
	vb_finding_add(findings, VB_FINDING_STOP, "sending", "a management datagram to %s: %s", way->dst_text,
		strerror(-error));
	if (error == -EPERM || error == -EACCES)
		vb_finding_cure(findings, "a firewall here forbids it: allow UDP port 4791 out");
}

static void ask_around(struct vb_findings *findings, const struct vb_way *way, unsigned timeout_ms)
{
	struct vb_discovery peer;
	struct vb_knocker knocker;
	struct probe_run run;

	vb_knock_begin(&knocker, way, VB_UDP_PORT);
	int error = run_probes(way, build_discovery, timeout_ms, &run);
	bool is_verbena = run.answered > 0 && vb_discovery_decode(&peer, run.answer) && peer.is_response;
	if (!error && run.answered == 0)
		error = run_probes(way, build_connection_request, timeout_ms, &run);
	if (error)
		report_send_error(findings, way, error);
	else if (run.answered == 0)
		report_nobody(findings, way, &knocker, timeout_ms);
	else if (is_verbena)
		report_verbena(findings, way, &run, &peer, timeout_ms);
	else
		report_unknown_holder(findings, way, &run);
	vb_knock_close(&knocker);
}

void vb_check_host(struct vb_findings *findings, const struct vb_settings *settings, const char *host, int family,
	unsigned timeout_ms)
{
	struct vb_way way;
	char why[512] = "";

	int error = vb_way_find(&way, host, family, why, sizeof(why));
	if (error) {
		vb_finding_add(findings, VB_FINDING_STOP, "way", "%s", why[0] ? why : strerror(-error));
		return;
	}
	vb_finding_add(findings, VB_FINDING_OK, "way", "from %s (%s, MTU %u, RoCE MTU %u) to %s", way.src_text,
		way.device, way.netdev_mtu, way.mtu, way.dst_text);
	error = vb_way_open(&way, settings, why, sizeof(why));
	if (error) {
		vb_finding_add(findings, VB_FINDING_STOP, "own port", "%s", why[0] ? why : strerror(-error));
		vb_finding_cure(findings, "verbena doctor, without a host, says more about this machine");
		return;
	}
	ask_around(findings, &way, timeout_ms);
	vb_way_close(&way);
}
