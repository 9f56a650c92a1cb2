/* How packets leave and reach a live process, in three layers:
 *
 *   a port      moves packets, and decides nothing: no retransmission, no window, no pacing. This header is all that a
 *               lane's holder knows of it. Only the code that opens a port knows which kind it is.
 *   framing     is the kind of port that makes datagrams of packets, and packets of datagrams: trains, headers, ICRC.
 *               Where there are bytes, there are captures (pcap.c) and injected faults (faults.c) too: framing.h.
 *   a carrier   moves datagrams and trains of them for the framing, and knows nothing of RoCE: UDP sockets, a
 *               forwarder's channel: carrier.h.
 *
 * udp.h opens what a live process uses: framing over one of the two carriers. A test has a port without bytes
 * (tests/unit/memory_port.h), and a carrier without sockets (tests/unit/port/array_carrier.h).
 *
 * Holds: one thread at a time uses a port, the one that holds the lane. No call blocks.
 *
 * A turn of the lane's holder:
 *
 *   if (vb_port_receive(port, now))              what has arrived
 *           while (vb_port_next_train(port, train)) ... vb_lane_receive ...
 *   vb_lane_transmit(lane, batch, port->room, now);
 *   vb_port_send(port, batch, now);              returns at once, whenever the bytes leave
 *   completions = vb_port_finished(port, &count);   now or in a later turn: vb_lane_transmit_done
 *
 * and it sleeps on vb_port_fds until vb_port_next_deadline. */
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
	X(FAULT_DROPPED, "port_faults_dropped", "received packets that fault injection dropped")                       \
	X(FAULT_DOUBLED, "port_faults_doubled", "and doubled")                                                         \
	X(FAULT_DELAYED, "port_faults_delayed", "and delayed")                                                         \
	X(FAULT_REORDERED, "port_faults_reordered", "and let others past")                                             \
	X(FAULT_CORRUPTED, "port_faults_corrupted", "and changed a bit of")                                            \
	X(FAULT_LATE, "port_faults_late", "and delivered later than the others")                                       \
	X(FAULT_BURSTS, "port_faults_bursts", "runs of received packets that fault injection dropped by burst")        \
	X(NECK_DROPS, "port_bottleneck_drops", "packets that the bottleneck of fault injection had no room for")       \
	X(NECK_MARKS, "port_bottleneck_marks", "packets that it marked")                                               \
	X(NECK_MEAN, "port_bottleneck_mean_bytes", "its queue, from the first packet to the last, on average")         \
	X(NECK_MOST, "port_bottleneck_most_bytes", "its longest queue")

enum vb_port_counter {
#define X(name, text, meaning) VB_PORT_##name,
	VB_PORT_COUNTERS(X)
#undef X
		VB_PORT_COUNTER_COUNT,
};

extern const char *const vb_port_counter_name[VB_PORT_COUNTER_COUNT];

#define VB_TRAIN_PACKETS 128

/* Packets of one path, decoded and ICRC-verified; payloads borrow from the port until the next vb_port_receive. */
struct vb_train {
	struct vb_path path;
	unsigned count;
	uint32_t overflow; /* datagrams that the receive buffer had no room for before these came; wraps */
	struct vb_packet packets[VB_TRAIN_PACKETS];
};

#define VB_PORT_FDS 4 /* at most */

struct vb_port_ops {
	unsigned (*receive)(struct vb_port *port, vb_time now);
	bool (*next_train)(struct vb_port *port, struct vb_train *train);
	void (*send)(struct vb_port *port, struct vb_batch *batch, vb_time now);
	const struct vb_tx_completion *(*finished)(struct vb_port *port, unsigned *count);
	unsigned (*fds)(const struct vb_port *port, int fds[VB_PORT_FDS]);
	struct vb_deadline (*next_deadline)(const struct vb_port *port);
	void (*counters)(const struct vb_port *port, uint64_t values[VB_PORT_COUNTER_COUNT]);
	void (*abandon)(struct vb_port *port, bool closes);
	void (*close)(struct vb_port *port);
};

/* The head of every port. It changes in receive, send and finished, or when its owner changes the port. */
struct vb_port {
	const struct vb_port_ops *ops;
	unsigned room; /* packets that send takes now; at 0 a descriptor becomes readable when there is more */
	uint32_t largest_segment; /* bytes that travel as one, in as many packets of the path's MTU; 0: packets are
				     single */
	int trains_refused;       /* the errno with which trains were last refused, so that they go singly; 0: never */
	unsigned fds_version;     /* counts up when the descriptors, or what is behind them, are others */
	bool is_lost; /* a descriptor was found to be no socket: the program closed it. Counted as another */
};

/* Reads what has arrived, without waiting; returns how many datagrams-or-trains (0: nothing). */
static inline unsigned vb_port_receive(struct vb_port *port, vb_time now)
{
	return port->ops->receive(port, now);
}

/* The next of them, decoded; false when all have been looked at. A train with nothing good in it has count 0. */
static inline bool vb_port_next_train(struct vb_port *port, struct vb_train *train)
{
	return port->ops->next_train(port, train);
}

/* Takes the batch, which has at most room packets, and keeps nothing of it but its completions and the bytes that iov
 * names. Never blocks. */
static inline void vb_port_send(struct vb_port *port, struct vb_batch *batch, vb_time now)
{
	port->ops->send(port, batch, now);
}

/* The completions of all packets that the port has become done with, in any order, with their errno; count may be 0.
 * Valid until the next call of the port, and while the batch that was last sent is left alone. */
static inline const struct vb_tx_completion *vb_port_finished(struct vb_port *port, unsigned *count)
{
	return port->ops->finished(port, count);
}

/* How many descriptors become readable when there is something to receive, or finished. */
static inline unsigned vb_port_fds(const struct vb_port *port, int fds[VB_PORT_FDS])
{
	return port->ops->fds(port, fds);
}

/* When the port has something to do though none of them is readable: receive does it. */
static inline struct vb_deadline vb_port_next_deadline(const struct vb_port *port)
{
	return port->ops->next_deadline(port);
}

static inline void vb_port_counters(const struct vb_port *port, uint64_t values[VB_PORT_COUNTER_COUNT])
{
	port->ops->counters(port, values);
}

/* Forgets the port's descriptors; nothing moves any more. With closes, those that the port made are closed: for a
 * forked child, whose port is its parent's. Without, none is closed: the program has closed them, and may have files of
 * its own under their numbers. */
static inline void vb_port_abandon(struct vb_port *port, bool closes)
{
	port->ops->abandon(port, closes);
}

static inline void vb_port_close(struct vb_port *port)
{
	port->ops->close(port);
}

/* ---- pcap.c: a capture of the packets that a process sends and receives, with rebuilt IP and UDP headers --------- */
#define VB_PCAP_NOTE                                                                                                   \
	512 /* bytes of a packet's comment, with its end: of a bitmap with more than some sixty gaps a part */
/* Truncates. -EBUSY: another process writes its capture there; any other -errno of opening. */
int vb_pcap_open(const char *file, struct vb_pcap **pcap);
void vb_pcap_close(struct vb_pcap *pcap);
/* udp_payload: whole, ICRC included. note: NULL or empty, or the packet's comment. Flushes often enough that a killed
 * process leaves a readable file. */
void vb_pcap_write(struct vb_pcap *pcap, const struct vb_gid *src, uint16_t src_port, const struct vb_gid *dst,
	uint8_t traffic_class, uint8_t hop_limit, uint16_t ipv4_id, const uint8_t *udp_payload, uint32_t length,
	const char *note);
/* A line for the comment at the end, which vb_pcap_end() writes. Allocates nothing; what is too much is left out. */
void vb_pcap_add_line(struct vb_pcap *pcap, const char *line);
void vb_pcap_end(struct vb_pcap *pcap);
/* pcap_notes.c: the comment of a packet, cut to size. Its length; 0: there is none. */
size_t vb_pcap_note(const struct vb_packet *packet, enum vb_sent_again again, char *text, size_t size);
/* A MAD, which the broker sends or receives for the process. Its packet is rebuilt, with PSN 0 and source port 49152,
 * since those of the broker's packet are not known here. */
void vb_pcap_write_mad(
	struct vb_pcap *pcap, const struct vb_gid *src, const struct vb_gid *dst, const uint8_t mad[256]);

/* ---- faults.c: VERBENA_FAULTS=drop=1%,dup=0.1%,reorder=1%,corrupt=0.01%,delay=2ms,seed=7 ------------------------- */
/* Parses text; on error returns -EINVAL and says in why (why_size bytes) what is wrong and what is allowed. */
/* The item at the start of text is about the program's calls, events or connections (host/call_faults.h). The port's
 * parser passes over it. */
bool vb_faults_is_of_program(const char *text);
/* text has an item about packets. */
bool vb_faults_are_of_packets(const char *text);
int vb_faults_parse(const char *text, struct vb_faults **faults, char *why, unsigned why_size);
void vb_faults_free(struct vb_faults *faults);

#endif
