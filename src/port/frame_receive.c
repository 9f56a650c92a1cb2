/* Framing, receiving: takes messages of the carrier apart, verifies and decodes their packets.
 *
 * A received packet passes, in this order: fault injection, the ICRC, the slot (the kernel steers a train by its first
 * packet), decoding. A packet that fails is counted and dropped. Payloads are not copied.
 * Not here: reading messages (carrier.h), the arithmetic of the ICRC (wire/icrc.h). */
#include "port/framing.h"

#include <stdio.h>
#include "base/invariant.h"

unsigned vb_frame_receive(struct vb_port *port, vb_time now)
{
	struct vb_framing *framing = vb_framing_of(port);
	struct vb_frame_receiver *receiver = &framing->receiver;
	struct vb_faults *faults = framing->config.faults;

	framing->now = now;
	if (faults)
		vb_faults_recycle(faults);
	receiver->next = receiver->offset = receiver->next_id = 0;
	receiver->count = framing->carrier->ops->receive(framing->carrier, receiver->messages);
	vb_framing_heed_carrier(framing);
	assert(receiver->count <= VB_CARRIER_RX);
	if (receiver->count == 0)
		return faults && vb_deadline_due(vb_faults_deadline(faults), now) ? 1 : 0;
	framing->counters[VB_PORT_RX_DATAGRAMS] += receiver->count;
	return receiver->count;
}

/* ---- One packet -------------------------------------------------------------------------------------------------- */

static struct vb_df_peer *df_peer_of(struct vb_frame_receiver *receiver, const struct vb_gid *src)
{
	for (unsigned i = 0; i < VB_DF_CLEAR_PEERS; i++)
		if (receiver->df_peers[i].votes && vb_gid_equal(&receiver->df_peers[i].src, src))
			return &receiver->df_peers[i];
	return NULL;
}

/* Some peers send IPv4 with DF clear, which the ICRC covers and a socket does not show. Taking both at once would
 * weaken the check, so a peer is believed after several packets in a row, and until it proves otherwise. */
static bool verify_df_clear(struct vb_frame_receiver *receiver, const struct vb_flow *flow, const uint8_t *bytes,
	size_t length, uint16_t *id)
{
	struct vb_df_peer *peer = df_peer_of(receiver, &flow->src);

	if (!vb_gid_is_ipv4(&flow->src) || !vb_icrc_verify(flow, bytes, length, true, id))
		return false;
	if (!peer) {
		peer = &receiver->df_peers[receiver->df_peer_next++ % VB_DF_CLEAR_PEERS];
		*peer = (struct vb_df_peer){ .src = flow->src };
	}
	if (peer->votes < VB_DF_CLEAR_VOTES)
		peer->votes++;
	assert(peer->votes >= 1 && peer->votes <= VB_DF_CLEAR_VOTES);
	return peer->votes == VB_DF_CLEAR_VOTES;
}

static bool verify(struct vb_frame_receiver *receiver, const struct vb_path *path, const uint8_t *bytes, size_t length,
	uint16_t *id)
{
	struct vb_flow flow = { path->src, path->dst, path->src_port, VB_UDP_PORT };

	if (vb_icrc_verify(&flow, bytes, length, false, id)) {
		if (receiver->df_peer_next) {
			struct vb_df_peer *peer = df_peer_of(receiver, &path->src);
			if (peer)
				peer->votes = 0;
		}
		return true;
	}
	return verify_df_clear(receiver, &flow, bytes, length, id);
}

static void capture(struct vb_pcap *pcap, const struct vb_path *path, const uint8_t *bytes, uint32_t length,
	bool is_intact, uint16_t id)
{
	struct vb_packet packet;
	char note[VB_PCAP_NOTE] = "";

	if (!is_intact)
		snprintf(note, sizeof(note), "its ICRC is wrong: dropped");
	else if (vb_packet_decode(&packet, bytes, length) == VB_DECODE_OK)
		vb_pcap_note(&packet, VB_SENT_FIRST, note, sizeof(note));
	vb_pcap_write(pcap, &path->src, path->src_port, &path->dst, path->traffic_class, path->hop_limit,
		is_intact ? id : 0, bytes, length, note);
}

/* Adds the packet of these bytes to the train, if it is a good one for this slot. */
static void take_packet(struct vb_framing *framing, struct vb_train *train, const struct vb_path *path,
	const uint8_t *bytes, size_t length)
{
	uint16_t id = framing->receiver.next_id;

	if (length < VB_BTH_LENGTH + VB_ICRC_LENGTH) {
		framing->counters[VB_PORT_RX_DROP_DECODE]++;
		return;
	}
	bool is_intact = verify(&framing->receiver, path, bytes, length, &id);
	if (framing->config.pcap)
		capture(framing->config.pcap, path, bytes, (uint32_t)length, is_intact, id);
	if (!is_intact) {
		framing->counters[VB_PORT_RX_DROP_ICRC]++;
		return;
	}
	framing->receiver.next_id = id + 1;
	uint32_t qpn = vb_peek_dest_qpn(bytes);
	if (qpn >> 16 != framing->config.slot && qpn != VB_QPN_MULTICAST) {
		framing->counters[VB_PORT_RX_MIS_STEERED]++;
		return;
	}
	assert(train->count < VB_TRAIN_PACKETS);
	if (vb_packet_decode(&train->packets[train->count], bytes, length) == VB_DECODE_OK)
		train->count++;
	else
		framing->counters[VB_PORT_RX_DROP_DECODE]++;
}

static void take_segment(struct vb_framing *framing, struct vb_train *train, uint8_t *bytes, size_t length)
{
	unsigned copies = 1;

	framing->counters[VB_PORT_RX_SEGMENTS]++;
	if (framing->config.faults)
		copies = vb_faults_admit(framing->config.faults, &train->path, bytes, length, framing->now);
	assert(copies <= 2);
	while (copies--)
		take_packet(framing, train, &train->path, bytes, length);
}

/* ---- Trains ------------------------------------------------------------------------------------------------------ */

/* Most hosts that set DF number their packets 0, and a train begins with it. */
static void go_to_next_message(struct vb_frame_receiver *receiver)
{
	assert(receiver->next < receiver->count);
	receiver->next++;
	receiver->offset = 0;
	receiver->next_id = 0;
}

/* The segments of messages[next], as many as the train has room for (two each, should they be doubled). */
static void take_message(struct vb_framing *framing, struct vb_train *train)
{
	struct vb_frame_receiver *receiver = &framing->receiver;
	const struct vb_rx_message *message = &receiver->messages[receiver->next];

	assert(message->segment > 0 && receiver->offset < message->length);
	train->path = message->path;
	train->overflow = message->overflow;
	while (receiver->offset < message->length && train->count + 2 <= VB_TRAIN_PACKETS) {
		uint32_t left = message->length - receiver->offset;
		uint32_t segment = message->segment < left ? message->segment : left;
		take_segment(framing, train, message->bytes + receiver->offset, segment);
		receiver->offset += segment;
	}
	if (receiver->offset >= message->length)
		go_to_next_message(receiver);
}

/* A packet that fault injection had held back, one a train. */
static bool take_held(struct vb_framing *framing, struct vb_train *train)
{
	struct vb_faults *faults = framing->config.faults;
	struct vb_held *held = faults ? vb_faults_release(faults, framing->now) : NULL;

	if (!held)
		return false;
	train->path = held->path;
	take_packet(framing, train, &held->path, held->bytes, held->length);
	return true;
}

bool vb_frame_next_train(struct vb_port *port, struct vb_train *train)
{
	struct vb_framing *framing = vb_framing_of(port);
	struct vb_frame_receiver *receiver = &framing->receiver;

	train->count = 0;
	assert(receiver->next <= receiver->count);
	if (receiver->next == receiver->count)
		return take_held(framing, train);
	if (receiver->messages[receiver->next].length == 0) {
		framing->counters[VB_PORT_RX_DROP_DECODE]++;
		go_to_next_message(receiver);
		return true;
	}
	take_message(framing, train);
	return true;
}
