/* How packets leave and reach a live process. A port moves packets and decides nothing: no retransmission, no window,
 * no pacing. Today one port exists, UDP sockets (udp.c); pcap.c taps it and faults.c makes it unreliable on purpose.
 * One thread at a time uses a port: the one that holds the lane. */
#ifndef VB_PORT_PORT_H
#define VB_PORT_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include "engine/nic.h"

struct vb_port;
struct vb_pcap;
struct vb_faults;

/* X(NAME, "name", "meaning") */
#define VB_PORT_COUNTERS(X)                                                                                            \
	X(RX_DATAGRAMS, "port_rx_datagrams", "reads that returned something: a datagram or a merged train")            \
	X(RX_SEGMENTS, "port_rx_segments", "packets received, trains taken apart")                                     \
	X(RX_DROP_DECODE, "port_rx_drop_decode", "not a RoCEv2 packet: length, version or opcode")                     \
	X(RX_DROP_ICRC, "port_rx_drop_icrc", "invariant CRC does not match")                                           \
	X(RX_MIS_STEERED, "port_rx_mis_steered", "packet for another process's slot")                                  \
	X(RX_OVERFLOW, "port_rx_overflow", "datagrams that the kernel dropped because the receive buffer was full")    \
	X(TX_DATAGRAMS, "port_tx_datagrams", "datagrams or trains sent")                                               \
	X(TX_SEGMENTS, "port_tx_segments", "packets sent")                                                             \
	X(TX_ERRORS, "port_tx_errors", "packets whose sending failed")                                                 \
	X(FAULTS, "port_faults", "packets that fault injection dropped, doubled, delayed, reordered or corrupted")

enum vb_port_counter {
#define X(name, text, meaning) VB_PORT_##name,
	VB_PORT_COUNTERS(X)
#undef X
	VB_PORT_COUNTER_COUNT,
};

extern const char *const vb_port_counter_name[VB_PORT_COUNTER_COUNT];

struct vb_port_config {
	int receive_fd;	 /* the slot's UDP socket, or a courier's channel; stays the caller's */
	bool is_carried; /* it is a channel: port/carried.h */
	uint8_t slot;	 /* packets whose QPN names another slot are strays */
	struct vb_pcap *pcap;	  /* or NULL */
	struct vb_faults *faults; /* or NULL */
	bool single_datagrams;	  /* never send GSO trains, even to peers that take them */
};

int vb_port_open(const struct vb_port_config *config, struct vb_port **port);
void vb_port_close(struct vb_port *port);
/* Another socket or channel has taken the place of the one before, behind the same descriptor or another; same slot.
 * A channel whose courier has died is silent until then: its descriptor stays, and is never readable. */
void vb_port_set_receive_fd(struct vb_port *port, int receive_fd);

#define VB_TRAIN_PACKETS 128

/* Packets of one path, decoded and ICRC-verified; payloads borrow from the port until the next vb_port_receive. */
struct vb_train {
	struct vb_path path;
	unsigned count;
	struct vb_packet packets[VB_TRAIN_PACKETS];
};

/* Reads what has arrived, without waiting; returns how many datagrams-or-trains (0: nothing). */
unsigned vb_port_receive(struct vb_port *port, vb_time now);
/* The next of them, decoded; false when all have been looked at. A train with nothing good in it has count 0. */
bool vb_port_next_train(struct vb_port *port, struct vb_train *train);
/* Encodes, cuts into trains, makes the ICRCs and sends. Sets error of each receipt; never blocks. */
void vb_port_send(struct vb_port *port, struct vb_batch *batch, vb_time now);
/* When fault injection holds something back that becomes due; receive or send lets it go. */
struct vb_deadline vb_port_next_deadline(const struct vb_port *port);
void vb_port_counters(const struct vb_port *port, uint64_t values[VB_PORT_COUNTER_COUNT]);
/* The errno with which the kernel last refused a train, so that the port went over to single datagrams; 0: never. */
int vb_port_trains_refused(const struct vb_port *port);
/* Closes the sockets that the port made and touches nothing else: for a forked child, whose port is its parent's. */
void vb_port_close_sockets(struct vb_port *port);

/* ---- pcap.c: what a process sends and receives, as a capture with rebuilt IP and UDP headers (LINKTYPE_RAW) ------- */
/* Truncates. -EBUSY: another process writes its capture there; any other -errno of opening. */
int vb_pcap_open(const char *file, struct vb_pcap **pcap);
void vb_pcap_close(struct vb_pcap *pcap);
/* udp_payload: whole, ICRC included. Flushes often enough that a killed process leaves a readable file. */
void vb_pcap_write(struct vb_pcap *pcap, const struct vb_gid *src, uint16_t src_port, const struct vb_gid *dst,
	uint8_t traffic_class, uint8_t hop_limit, uint16_t ipv4_id, const uint8_t *udp_payload, uint32_t length);
/* A MAD, which the broker sends or receives for the process: its packet is rebuilt, with PSN 0 and source port 49152,
 * since what the broker's had is not known here. */
void vb_pcap_write_mad(struct vb_pcap *pcap, const struct vb_gid *src, const struct vb_gid *dst, const uint8_t mad[256]);

/* ---- faults.c: VERBENA_FAULTS=drop=1%,dup=0.1%,reorder=1%,corrupt=0.01%,delay=2ms,seed=7 ------------------------- */
/* Parses text; on error returns -EINVAL and says in why (why_size bytes) what is wrong and what is allowed. */
int vb_faults_parse(const char *text, struct vb_faults **faults, char *why, unsigned why_size);
void vb_faults_free(struct vb_faults *faults);

#endif
