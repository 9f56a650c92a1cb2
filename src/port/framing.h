/* Framing: the port that makes datagrams of packets and packets of datagrams, above a carrier (carrier.h), which moves
 * them. Here are the bytes of whole datagrams, and so all that handles these: trains, headers, ICRC, captures, injected
 * faults.
 *
 * Its four files: framing.c (opening, counters, the port's table), trains.c (which packets leave as one), frame_send.c
 * (packets to bytes), frame_receive.c (bytes to packets).
 *
 * Holds: payloads are not copied, but for short ones when they are sent. The carrier is called once a batch for each of
 * its operations, never once a packet. */
#ifndef VB_PORT_FRAMING_H
#define VB_PORT_FRAMING_H

#include "port/carrier.h"
#include "port/faults.h"
#include "port/port.h"
#include "wire/icrc.h"

struct vb_framing_config {
	uint8_t slot;             /* packets whose QPN names another slot are strays */
	struct vb_pcap *pcap;     /* or NULL */
	struct vb_faults *faults; /* or NULL */
	bool single_datagrams;    /* never send trains, even to peers that take them */
	bool takes_marks; /* packets may be marked on their way: ECT(0), where the address vector says nothing of it */
};

/* The carrier is the port's from now on, and is closed with it. 0 or -ENOMEM, and then the carrier is the caller's
 * still. */
int vb_framing_open(const struct vb_framing_config *config, struct vb_carrier *carrier, struct vb_port **port);

/* ---- The inside -------------------------------------------------------------------------------------------------- */

/* Payloads up to this are copied beside their headers: one piece for the kernel, and no race of the ICRC with a program
 * that writes to memory being sent. */
#define VB_FRAME_COPY_BYTES    512
#define VB_FRAME_SCRATCH_BYTES (VB_MAX_HEADER_BYTES + VB_FRAME_COPY_BYTES + 3 + VB_ICRC_LENGTH) /* a packet's */
#define VB_REFUSED_MAX         8
#define VB_DF_CLEAR_PEERS      4
#define VB_DF_CLEAR_VOTES      3 /* packets in a row that verify only with DF clear, until a peer is believed */

/* Packets of a batch that leave as one message. */
struct vb_cut {
	uint16_t first, count;
};

struct vb_frame_sender {
	/* The change that a packet's number in its train makes in its ICRC: of the first images_count, for such a
	 * length. */
	uint32_t images[VB_CARRIER_SEGMENTS];
	uint32_t images_length, images_count;
	struct vb_gid refused[VB_REFUSED_MAX]; /* our addresses from which the carrier takes no trains */
	unsigned refused_count;

	unsigned count; /* of cuts and messages: message i carries cuts[i] */
	struct vb_cut cuts[VB_CARRIER_TX];
	struct vb_tx_message messages[VB_CARRIER_TX];
	unsigned iov_count;
	struct iovec iov[VB_BATCH_IOV + 2 * VB_BATCH_PACKETS];
	uint8_t *cursor; /* the first free byte of scratch */
	uint8_t scratch[VB_BATCH_PACKETS * VB_FRAME_SCRATCH_BYTES];
	uint8_t whole[VB_MAX_PACKET_BYTES]; /* for the capture */
};

/* A peer that sends IPv4 with DF clear. */
struct vb_df_peer {
	struct vb_gid src;
	unsigned votes;
};

struct vb_frame_receiver {
	unsigned count, next; /* messages of the last read, and the first not yet looked at */
	uint32_t offset;      /* in messages[next]: the first datagram not yet looked at */
	uint16_t next_id;     /* IPv4 identification of that datagram if they are numbered in order */
	struct vb_df_peer df_peers[VB_DF_CLEAR_PEERS];
	unsigned df_peer_next;
	struct vb_rx_message messages[VB_CARRIER_RX];
};

struct vb_framing {
	struct vb_port port;
	struct vb_carrier *carrier;
	struct vb_framing_config config;
	const struct vb_tx_completion *completions; /* of the batch that was sent and not asked for yet */
	unsigned completion_count;
	vb_time now; /* of the last receive or send */
	uint64_t counters[VB_PORT_COUNTER_COUNT];
	struct vb_frame_sender sender;
	struct vb_frame_receiver receiver;
};

static inline struct vb_framing *vb_framing_of(const struct vb_port *port)
{
	return vb_container_of((struct vb_port *)port, struct vb_framing, port);
}

/* The port says what its carrier says of its descriptors. To be called whenever the carrier may have changed. */
static inline void vb_framing_heed_carrier(struct vb_framing *framing)
{
	framing->port.fds_version = framing->carrier->fds_version;
	framing->port.is_lost = framing->carrier->is_lost;
}

static inline uint8_t vb_frame_slot(const struct vb_outgoing *out)
{
	return (uint8_t)(out->packet.dest_qpn >> 16);
}

static inline uint8_t vb_frame_hops(const struct vb_av *av)
{
	return av->hop_limit ? av->hop_limit : VB_CARRIER_HOPS;
}

/* trains.c: how many packets from first on leave as one message. May move an ack behind requests that follow it. */
unsigned vb_train_cut(const struct vb_framing *framing, struct vb_batch *batch, unsigned first);
/* The carrier took no train from this address. */
void vb_train_note_refusal(struct vb_framing *framing, const struct vb_gid *address, int error);

/* Operations of the port: frame_send.c, frame_receive.c. */
void vb_frame_send(struct vb_port *port, struct vb_batch *batch, vb_time now);
unsigned vb_frame_receive(struct vb_port *port, vb_time now);
bool vb_frame_next_train(struct vb_port *port, struct vb_train *train);

#endif
