/* The counters of a port under the names that the kernel's drivers give them, made of our lane's and port's: Linux's
 * rxe first, then mlx5. A counter of theirs that we do not count in the same sense is left out. */
#include "base/invariant.h"
#include "core/counters.h"
#include "host/process.h"

#define DATA_UNIT 4 /* bytes: IBA vol. 1, 16.1.3.5, PortXmitData and PortRcvData */

enum source { LANE, LANE_DATA /* bytes, shown by the unit */, PORT };

static const struct row {
	const char *name;
	enum source source;
	unsigned counter;
	int also; /* a second counter of the same source, added to the first; -1: none */
} table[] = {
	{ "counters/port_xmit_data", LANE_DATA, VB_TX_BYTES, -1 },
	{ "counters/port_rcv_data", LANE_DATA, VB_RX_BYTES, -1 },
	{ "counters/port_xmit_packets", LANE, VB_TX_PACKETS, -1 },
	{ "counters/port_rcv_packets", LANE, VB_RX_PACKETS, -1 },
	{ "counters/port_xmit_discards", PORT, VB_PORT_TX_ERRORS, -1 },
	{ "counters/port_rcv_errors", PORT, VB_PORT_RX_DROP_DECODE, VB_PORT_RX_DROP_ICRC },
	{ "hw_counters/sent_pkts", PORT, VB_PORT_TX_SEGMENTS, -1 },
	{ "hw_counters/rcvd_pkts", PORT, VB_PORT_RX_SEGMENTS, -1 },
	{ "hw_counters/duplicate_request", LANE, VB_DUPLICATES, -1 },
	{ "hw_counters/out_of_seq_request", LANE, VB_OUT_OF_ORDER, -1 },
	{ "hw_counters/rcvd_rnr_err", LANE, VB_RNR_RECEIVED, -1 },
	{ "hw_counters/send_rnr_err", LANE, VB_RNR_SENT, -1 },
	{ "hw_counters/send_err", PORT, VB_PORT_TX_ERRORS, -1 },
	{ "hw_counters/out_of_sequence", LANE, VB_OUT_OF_ORDER, -1 },
	{ "hw_counters/out_of_buffer", LANE, VB_RNR_SENT, VB_DROP_NO_RECV },
	{ "hw_counters/implied_nak_seq_err", LANE, VB_IMPLIED_NAK, -1 },
	{ "hw_counters/local_ack_timeout_err", LANE, VB_TIMEOUTS, -1 },
	{ "hw_counters/rnr_nak_retry_err", LANE, VB_RNR_RECEIVED, -1 },
	{ "hw_counters/np_ecn_marked_roce_packets", LANE, VB_CE_RECEIVED, -1 },
	{ "hw_counters/np_cnp_sent", LANE, VB_CNP_SENT, -1 },
	{ "hw_counters/rp_cnp_handled", LANE, VB_CNP_RECEIVED, -1 },
	{ "hw_counters/rx_icrc_encapsulated", PORT, VB_PORT_RX_DROP_ICRC, -1 },
};

static uint64_t value_of(const struct vb_host_lane *d, const struct row *row)
{
	uint64_t lane[VB_COUNTER_COUNT], port[VB_PORT_COUNTER_COUNT];

	vb_lane_counters(d->lane, lane);
	vb_port_counters(d->port, port);
	const uint64_t *from = row->source == PORT ? port : lane;
	assert(row->counter < (row->source == PORT ? VB_PORT_COUNTER_COUNT : VB_COUNTER_COUNT));
	return from[row->counter] + (row->also < 0 ? 0 : from[row->also]);
}

/* The unit applies to the sum: of several lanes, little is lost to rounding. */
const char *vb_process_counter(const struct vb_process *p, unsigned n, uint64_t *value)
{
	if (n >= sizeof(table) / sizeof(table[0]))
		return NULL;
	*value = 0;
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		*value += value_of(p->host_lanes[i], &table[n]);
	if (table[n].source == LANE_DATA)
		*value /= DATA_UNIT;
	return table[n].name;
}
