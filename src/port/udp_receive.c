/* UDP port, receiving: reads datagrams and merged trains, takes trains apart, verifies and decodes their packets.
 *
 * A received packet passes, in this order: fault injection, the ICRC, the slot (the kernel steers a train by its first
 * packet), decoding. What fails is counted and dropped. Payloads are not copied. */
#include "port/udp_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udp.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_RXQ_OVFL
#define SO_RXQ_OVFL 40
#endif

/* What the kernel may write, and where. It writes the lengths of what it returned over those of what there is room for.
 * A courier's message has name and control data inside. */
static void aim(struct receiver *receiver, unsigned i)
{
	receiver->headers[i].msg_hdr = (struct msghdr){ .msg_iov = receiver->iov[i], .msg_iovlen = 2 };
	if (receiver->carried)
		return;
	receiver->headers[i].msg_hdr.msg_iov = &receiver->iov[i][1];
	receiver->headers[i].msg_hdr.msg_iovlen = 1;
	receiver->headers[i].msg_hdr.msg_name = &receiver->names[i];
	receiver->headers[i].msg_hdr.msg_namelen = sizeof(receiver->names[i]);
	receiver->headers[i].msg_hdr.msg_control = receiver->control[i];
	receiver->headers[i].msg_hdr.msg_controllen = RX_CONTROL_BYTES;
}

void vb_udp_receiver_init(struct receiver *receiver)
{
	receiver->want = 1;
	for (unsigned i = 0; i < RX_BUFFERS; i++) {
		if (receiver->carried)
			receiver->iov[i][0] = (struct iovec){ &receiver->carried[i], sizeof(receiver->carried[i]) };
		receiver->iov[i][1] =
			(struct iovec){ receiver->buffers + (size_t)i * RX_BUFFER_BYTES, RX_BUFFER_BYTES };
		aim(receiver, i);
	}
}

/* System calls of its own, here and in udp_send.c: the C library's functions are cancellation points, and a thread that
 * is cancelled here would take the lane's mutex with it. */
static long read_datagrams(struct vb_udp *udp)
{
	struct receiver *receiver = &udp->receiver;

	if (receiver->want > 1)
		return syscall(
			SYS_recvmmsg, udp->config.receive_fd, receiver->headers, receiver->want, MSG_DONTWAIT, NULL);
	long length = syscall(SYS_recvmsg, udp->config.receive_fd, &receiver->headers[0].msg_hdr, MSG_DONTWAIT);
	if (length < 0)
		return -1;
	receiver->headers[0].msg_len = (unsigned)length;
	return 1;
}

/* ---- What a courier brings --------------------------------------------------------------------------------------- */

/* Nothing comes any more, and nobody is to be woken for that. */
static void cut_off(struct vb_udp *udp)
{
	int quiet = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	udp->receiver.is_cut = true;
	udp->port.fds_version++;
	if (quiet < 0)
		return;
	dup3(quiet, udp->config.receive_fd, O_CLOEXEC);
	close(quiet);
}

/* As if the kernel had just written it there. A message that is none is an empty datagram. */
static void unpack(struct receiver *receiver, unsigned i)
{
	struct mmsghdr *header = &receiver->headers[i];
	struct vb_carried *carried = &receiver->carried[i];
	bool is_whole = header->msg_len >= sizeof(*carried) && carried->name_length <= sizeof(carried->name) &&
			carried->control_length <= sizeof(carried->control);

	header->msg_len = is_whole ? header->msg_len - (unsigned)sizeof(*carried) : 0;
	header->msg_hdr.msg_name = &carried->name;
	header->msg_hdr.msg_namelen = is_whole ? carried->name_length : 0;
	header->msg_hdr.msg_control = carried->control;
	header->msg_hdr.msg_controllen = is_whole ? carried->control_length : 0;
}

static void unpack_all(struct vb_udp *udp)
{
	struct receiver *receiver = &udp->receiver;

	for (unsigned i = 0; i < receiver->count; i++) {
		if (receiver->headers[i].msg_len == 0) { /* the channel's end */
			cut_off(udp);
			receiver->count = i;
			return;
		}
		unpack(receiver, i);
	}
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* How many datagrams like these a read may fill so that they are still in the core's cache when they are looked at. */
static unsigned how_many_stay_hot(const struct receiver *receiver)
{
	size_t bytes = 1;

	for (unsigned i = 0; i < receiver->count; i++)
		bytes += receiver->headers[i].msg_len;
	size_t many = (size_t)RX_HOT_BYTES * receiver->count / bytes;
	return many < 2 ? 2 : many < RX_BUFFERS ? (unsigned)many : RX_BUFFERS;
}

/* One at a time while little comes, for that is the fastest single read; more while reads come back full. */
static void adapt(struct receiver *receiver)
{
	if (receiver->count == 0) {
		receiver->want = 1;
		return;
	}
	unsigned most = how_many_stay_hot(receiver);
	unsigned want = receiver->count == receiver->want ? receiver->want * 2 : receiver->count;
	receiver->want = want < most ? want : most;
}

unsigned vb_udp_receive(struct vb_port *port, vb_time now)
{
	struct vb_udp *udp = vb_udp_of(port);
	struct receiver *receiver = &udp->receiver;

	for (unsigned i = 0; i < receiver->count; i++)
		aim(receiver, i);
	receiver->next = receiver->count = receiver->offset = 0;
	receiver->is_open = false;
	udp->now = now;
	if (udp->config.faults)
		vb_faults_recycle(udp->config.faults);
	long count = receiver->is_cut ? 0 : read_datagrams(udp);
	receiver->count = count > 0 ? (unsigned)count : 0; /* errors of a datagram socket pass */
	if (count < 0)
		vb_udp_note_errno(udp, errno);
	if (receiver->carried)
		unpack_all(udp);
	adapt(receiver);
	if (receiver->count == 0)
		return udp->config.faults && vb_deadline_due(vb_faults_deadline(udp->config.faults), now) ? 1 : 0;
	udp->counters[VB_PORT_RX_DATAGRAMS] += receiver->count;
	return receiver->count;
}

/* ---- Where a datagram came from --------------------------------------------------------------------------------- */

static void gid_of_ipv4(struct vb_gid *gid, const void *address)
{
	*gid = vb_gid_from_ipv4(0, 0, 0, 0);
	memcpy(gid->raw + 12, address, 4);
}

static void read_name(struct vb_path *path, const struct sockaddr_storage *name)
{
	if (name->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)name;
		memcpy(path->src.raw, &in6->sin6_addr, 16);
		path->src_port = ntohs(in6->sin6_port);
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)name;
		gid_of_ipv4(&path->src, &in->sin_addr);
		path->src_port = ntohs(in->sin_port);
	}
}

/* Type of service comes as a byte, traffic class and hop limits as an int; all are little-endian and below 256. */
static void read_ip_cmsg(struct vb_path *path, const struct cmsghdr *cmsg)
{
	const uint8_t *data = CMSG_DATA(cmsg);

	if (cmsg->cmsg_type == IP_PKTINFO) {
		struct in_pktinfo info;
		memcpy(&info, data, sizeof(info));
		gid_of_ipv4(&path->dst, &info.ipi_addr);
		path->ifindex = (uint32_t)info.ipi_ifindex;
	} else if (cmsg->cmsg_type == IP_TOS) {
		path->traffic_class = data[0];
	} else if (cmsg->cmsg_type == IP_TTL) {
		path->hop_limit = data[0];
	}
}

static void read_ipv6_cmsg(struct vb_path *path, const struct cmsghdr *cmsg)
{
	const uint8_t *data = CMSG_DATA(cmsg);

	if (cmsg->cmsg_type == IPV6_PKTINFO) {
		struct in6_pktinfo info;
		memcpy(&info, data, sizeof(info));
		memcpy(path->dst.raw, &info.ipi6_addr, 16);
		path->ifindex = info.ipi6_ifindex;
	} else if (cmsg->cmsg_type == IPV6_TCLASS) {
		path->traffic_class = data[0];
	} else if (cmsg->cmsg_type == IPV6_HOPLIMIT) {
		path->hop_limit = data[0];
	}
}

static void note_overflow(struct vb_udp *udp, const void *data)
{
	uint32_t drops;

	memcpy(&drops, data, sizeof(drops));
	/* Reads are in order, but the count may have been read ahead by vb_udp_open. */
	if (!udp->receiver.knows_overflow)
		udp->receiver.overflow_seen = drops; /* a courier's socket: what it dropped before us */
	udp->receiver.knows_overflow = true;
	if ((int32_t)(drops - udp->receiver.overflow_seen) <= 0)
		return;
	udp->counters[VB_PORT_RX_OVERFLOW] += drops - udp->receiver.overflow_seen;
	udp->receiver.overflow_seen = drops;
}

/* Path and segment size of datagrams[next]. False: of no use. */
static bool open_datagram(struct vb_udp *udp)
{
	struct receiver *receiver = &udp->receiver;
	struct mmsghdr *header = &receiver->headers[receiver->next];
	struct msghdr *message = &header->msg_hdr;

	receiver->path = (struct vb_path){ .hop_limit = 0 };
	receiver->segment = header->msg_len;
	receiver->next_id = 0; /* what most hosts give who sets DF, and what a train begins with */
	receiver->is_open = true;
	if (!message->msg_name || message->msg_namelen == 0 || message->msg_flags & MSG_TRUNC)
		return false;
	read_name(&receiver->path, message->msg_name);
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		if (cmsg->cmsg_level == IPPROTO_IPV6) {
			read_ipv6_cmsg(&receiver->path, cmsg);
		} else if (cmsg->cmsg_level == IPPROTO_IP) {
			read_ip_cmsg(&receiver->path, cmsg);
		} else if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO) {
			int segment;
			memcpy(&segment, CMSG_DATA(cmsg), sizeof(segment));
			if (segment > 0)
				receiver->segment = (uint32_t)segment;
		} else if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SO_RXQ_OVFL) {
			note_overflow(udp, CMSG_DATA(cmsg));
		}
	}
	return header->msg_len > 0;
}

/* ---- One packet ------------------------------------------------------------------------------------------------- */

static struct df_peer *df_peer_of(struct receiver *receiver, const struct vb_gid *src)
{
	for (unsigned i = 0; i < DF_CLEAR_PEERS; i++)
		if (receiver->df_peers[i].votes && vb_gid_equal(&receiver->df_peers[i].src, src))
			return &receiver->df_peers[i];
	return NULL;
}

/* Some peers send IPv4 with DF clear, which the ICRC covers and a socket does not show. Taking both at once would
 * weaken the check, so a peer is believed after several packets in a row, and until it proves otherwise. */
static bool verify_df_clear(
	struct receiver *receiver, const struct vb_flow *flow, const uint8_t *bytes, size_t length, uint16_t *id)
{
	struct df_peer *peer = df_peer_of(receiver, &flow->src);

	if (!vb_gid_is_ipv4(&flow->src) || !vb_icrc_verify(flow, bytes, length, true, id))
		return false;
	if (!peer) {
		peer = &receiver->df_peers[receiver->df_peer_next++ % DF_CLEAR_PEERS];
		*peer = (struct df_peer){ .src = flow->src };
	}
	if (peer->votes < DF_CLEAR_VOTES)
		peer->votes++;
	return peer->votes == DF_CLEAR_VOTES;
}

static bool verify(
	struct receiver *receiver, const struct vb_path *path, const uint8_t *bytes, size_t length, uint16_t *id)
{
	struct vb_flow flow = { path->src, path->dst, path->src_port, VB_UDP_PORT };

	if (vb_icrc_verify(&flow, bytes, length, false, id)) {
		if (receiver->df_peer_next) {
			struct df_peer *peer = df_peer_of(receiver, &path->src);
			if (peer)
				peer->votes = 0;
		}
		return true;
	}
	return verify_df_clear(receiver, &flow, bytes, length, id);
}

/* Adds what bytes hold to the train, if it is a good packet for this slot. */
static void take_packet(
	struct vb_udp *udp, struct vb_train *train, const struct vb_path *path, const uint8_t *bytes, size_t length)
{
	uint16_t id = udp->receiver.next_id;

	if (length < VB_BTH_LENGTH + VB_ICRC_LENGTH) {
		udp->counters[VB_PORT_RX_DROP_DECODE]++;
		return;
	}
	bool is_intact = verify(&udp->receiver, path, bytes, length, &id);
	if (udp->config.pcap)
		vb_pcap_write(udp->config.pcap, &path->src, path->src_port, &path->dst, path->traffic_class,
			path->hop_limit, is_intact ? id : 0, bytes, (uint32_t)length);
	if (!is_intact) {
		udp->counters[VB_PORT_RX_DROP_ICRC]++;
		return;
	}
	udp->receiver.next_id = id + 1;
	uint32_t qpn = vb_peek_dest_qpn(bytes);
	if (qpn >> 16 != udp->config.slot && qpn != VB_QPN_MULTICAST) {
		udp->counters[VB_PORT_RX_MIS_STEERED]++;
		return;
	}
	if (vb_packet_decode(&train->packets[train->count], bytes, length) == VB_DECODE_OK)
		train->count++;
	else
		udp->counters[VB_PORT_RX_DROP_DECODE]++;
}

static void take_segment(struct vb_udp *udp, struct vb_train *train, uint8_t *bytes, size_t length)
{
	unsigned copies = 1;

	udp->counters[VB_PORT_RX_SEGMENTS]++;
	if (udp->config.faults)
		copies = vb_faults_admit(udp->config.faults, &train->path, bytes, length, udp->now);
	while (copies--)
		take_packet(udp, train, &train->path, bytes, length);
}

/* ---- Trains ----------------------------------------------------------------------------------------------------- */

static void close_datagram(struct receiver *receiver)
{
	receiver->next++;
	receiver->offset = 0;
	receiver->is_open = false;
}

/* The segments of datagrams[next], as many as the train has room for (two each, should they be doubled). */
static void take_datagram(struct vb_udp *udp, struct vb_train *train)
{
	struct receiver *receiver = &udp->receiver;
	uint32_t length = receiver->headers[receiver->next].msg_len;
	uint8_t *bytes = receiver->iov[receiver->next][1].iov_base;

	train->path = receiver->path;
	while (receiver->offset < length && train->count + 2 <= VB_TRAIN_PACKETS) {
		uint32_t left = length - receiver->offset;
		uint32_t segment = receiver->segment < left ? receiver->segment : left;
		take_segment(udp, train, bytes + receiver->offset, segment);
		receiver->offset += segment;
	}
	if (receiver->offset >= length)
		close_datagram(receiver);
}

/* What fault injection had held back, one packet a train. */
static bool take_held(struct vb_udp *udp, struct vb_train *train)
{
	struct vb_held *held = udp->config.faults ? vb_faults_release(udp->config.faults, udp->now) : NULL;

	if (!held)
		return false;
	train->path = held->path;
	take_packet(udp, train, &held->path, held->bytes, held->length);
	return true;
}

bool vb_udp_next_train(struct vb_port *port, struct vb_train *train)
{
	struct vb_udp *udp = vb_udp_of(port);
	struct receiver *receiver = &udp->receiver;

	train->count = 0;
	if (receiver->next == receiver->count)
		return take_held(udp, train);
	if (!receiver->is_open && !open_datagram(udp)) {
		udp->counters[VB_PORT_RX_DROP_DECODE]++;
		close_datagram(receiver);
		return true;
	}
	take_datagram(udp, train);
	return true;
}
