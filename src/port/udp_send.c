/* UDP port, sending: encodes a batch of packets, cuts it into datagrams and trains, makes the ICRCs, hands it to the
 * kernel.
 *
 * A train is one send with UDP_SEGMENT: packets of equal wire size to one destination, the last may be shorter. The
 * kernel numbers the IPv4 identification of its segments from 0, and the ICRC covers that number, so ICRCs are made
 * after the cut. Checksums stay on: UDP_SEGMENT and GRO need them, and the kernel leaves them to the device or, on
 * loopback, to nobody. */
#include "port/udp_state.h"

#include <errno.h>
#include <linux/udp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/bytes.h"

#define DEFAULT_HOPS 64
#define CACHE_LINE   64
#define SEND_FLAGS   (MSG_DONTWAIT | MSG_NOSIGNAL)

static uint8_t destination_slot(const struct vb_outgoing *out)
{
	return (uint8_t)(out->packet.dest_qpn >> 16);
}

static uint8_t hops(const struct vb_av *av)
{
	return av->hop_limit ? av->hop_limit : DEFAULT_HOPS;
}

/* ---- The cut ---------------------------------------------------------------------------------------------------- */

static bool trains_refused_from(const struct sender *sender, const struct vb_gid *address)
{
	for (unsigned i = 0; i < sender->refused_count && i < REFUSED_MAX; i++)
		if (vb_gid_equal(&sender->refused[i], address))
			return true;
	return false;
}

static bool same_destination(const struct vb_outgoing *a, const struct vb_outgoing *b)
{
	if (destination_slot(a) != destination_slot(b))
		return false;
	return a->av == b->av ||
	       (vb_gid_equal(&a->av->dgid, &b->av->dgid) && vb_gid_equal(&a->av->sgid, &b->av->sgid) &&
		       a->av->traffic_class == b->av->traffic_class && hops(a->av) == hops(b->av));
}

/* A datagram or train in the making. */
struct cut {
	unsigned count, iov;
	uint32_t size, bytes; /* of all packets but the last; of all together */
	bool is_ended;        /* by a shorter one */
};

static bool joins(
	const struct vb_udp *udp, struct cut *cut, const struct vb_outgoing *head, const struct vb_outgoing *next)
{
	uint32_t size = vb_packet_wire_length(&next->packet);

	if (cut->is_ended || cut->count == TRAIN_SEGMENTS || size > cut->size ||
		cut->bytes + size > udp->port.largest_segment || cut->iov + next->iov_count + 1u > MESSAGE_IOV ||
		!next->to_trains || !same_destination(head, next))
		return false;
	cut->count++;
	cut->iov += next->iov_count + 1u;
	cut->bytes += size;
	cut->is_ended = size < cut->size;
	return true;
}

/* The packets from first on that make one datagram or train. */
static struct cut cut_from(const struct vb_udp *udp, const struct vb_batch *batch, unsigned first)
{
	const struct vb_outgoing *head = &batch->out[first];
	uint32_t size = vb_packet_wire_length(&head->packet);
	struct cut cut = { .count = 1, .iov = head->iov_count + 1u, .size = size, .bytes = size };

	if (!head->to_trains || !udp->port.largest_segment ||
		(udp->sender.refused_count && trains_refused_from(&udp->sender, &head->av->sgid))) {
		cut.is_ended = true;
		return cut;
	}
	while (first + cut.count < batch->count && joins(udp, &cut, head, &batch->out[first + cut.count]))
		;
	return cut;
}

static bool are_requests(const struct vb_batch *batch, unsigned first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (vb_packet_row(&batch->out[first + i].packet)->is_response)
			return false;
	return true;
}

static void move_behind(struct vb_batch *batch, unsigned first, unsigned count)
{
	struct vb_outgoing out = batch->out[first];
	struct vb_receipt receipt = batch->receipts[first];

	memmove(&batch->out[first], &batch->out[first + 1], count * sizeof(out));
	memmove(&batch->receipts[first], &batch->receipts[first + 1], count * sizeof(receipt));
	batch->out[first + count] = out;
	batch->receipts[first + count] = receipt;
}

/* How many. An ack is shorter than the requests that leave behind it, and in front of them would travel alone: it is
 * the last of their train, and the peer, which is one of ours, takes it first (engine/lane.c). */
static unsigned cut(const struct vb_udp *udp, struct vb_batch *batch, unsigned first)
{
	const struct vb_outgoing *ack = &batch->out[first];

	if (ack->packet.opcode == (VB_RC | VB_ACKNOWLEDGE) && first + 1 < batch->count) {
		struct cut behind = cut_from(udp, batch, first + 1);
		unsigned count = behind.count;
		if (are_requests(batch, first + 1, count) && joins(udp, &behind, &batch->out[first + 1], ack)) {
			move_behind(batch, first, count);
			return behind.count;
		}
	}
	return cut_from(udp, batch, first).count;
}

/* ---- One message: address, control, bytes ----------------------------------------------------------------------- */

static void put_cmsg(struct msghdr *message, int level, int type, const void *data, size_t length)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)((uint8_t *)message->msg_control + message->msg_controllen);

	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(cmsg), data, length);
	message->msg_controllen += CMSG_SPACE(length);
}

static void put_ipv4_address(struct msghdr *message, struct sockaddr_in *name, const struct vb_av *av)
{
	struct in_pktinfo source = { .ipi_ifindex = 0 };

	*name = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(VB_UDP_PORT) };
	memcpy(&name->sin_addr, av->dgid.raw + 12, 4);
	memcpy(&source.ipi_spec_dst, av->sgid.raw + 12, 4);
	message->msg_name = name;
	message->msg_namelen = sizeof(*name);
	put_cmsg(message, IPPROTO_IP, IP_PKTINFO, &source, sizeof(source));
}

static bool needs_scope(const struct vb_gid *gid)
{
	return gid->raw[0] == 0xff || (gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80);
}

static void put_ipv6_address(
	struct vb_udp *udp, struct msghdr *message, struct sockaddr_in6 *name, const struct vb_av *av)
{
	struct in6_pktinfo source = { .ipi6_ifindex = 0 };

	*name = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(VB_UDP_PORT) };
	memcpy(&name->sin6_addr, av->dgid.raw, 16);
	memcpy(&source.ipi6_addr, av->sgid.raw, 16);
	if (needs_scope(&av->dgid))
		name->sin6_scope_id = source.ipi6_ifindex = vb_udp_interface_of(&udp->sender, &av->sgid, udp->now);
	message->msg_name = name;
	message->msg_namelen = sizeof(*name);
	put_cmsg(message, IPPROTO_IPV6, IPV6_PKTINFO, &source, sizeof(source));
}

static uint8_t traffic_class_of(const struct vb_udp *udp, const struct vb_av *av)
{
	enum { ECN = 3, ECT_0 = 2 }; /* RFC 3168, 5 */
	return udp->config.takes_marks && !(av->traffic_class & ECN) ? av->traffic_class | ECT_0 : av->traffic_class;
}

/* Type of service and hop limit, where they differ from the socket's. */
static void put_ip_fields(const struct vb_udp *udp, struct msghdr *message, const struct vb_av *av, bool is_ipv4)
{
	int traffic_class = traffic_class_of(udp, av), limit = hops(av);

	if (traffic_class)
		put_cmsg(message, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_TOS : IPV6_TCLASS, &traffic_class,
			sizeof(traffic_class));
	if (limit != DEFAULT_HOPS)
		put_cmsg(message, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_TTL : IPV6_HOPLIMIT, &limit,
			sizeof(limit));
}

static void push_iov(struct sender *sender, struct msghdr *message, const void *base, size_t length)
{
	sender->iov[sender->iov_count++] = (struct iovec){ (void *)base, length };
	message->msg_iovlen++;
}

/* Our own bytes not yet in the scatter list: from piece to the cursor. The end of one packet and the headers of the
 * next become one piece. */
static uint8_t *push_piece(struct sender *sender, struct msghdr *message, uint8_t *piece)
{
	if (piece != sender->cursor)
		push_iov(sender, message, piece, (size_t)(sender->cursor - piece));
	return sender->cursor;
}

static uint32_t copy_payload(struct sender *sender, const struct vb_iov *iov, unsigned count, uint32_t crc)
{
	uint8_t *start = sender->cursor;

	for (unsigned i = 0; i < count; i++) {
		memcpy(sender->cursor, iov[i].base, iov[i].length);
		sender->cursor += iov[i].length;
	}
	return vb_icrc_add(crc, start, (size_t)(sender->cursor - start));
}

static uint32_t refer_payload(
	struct sender *sender, struct msghdr *message, const struct vb_iov *iov, unsigned count, uint32_t crc)
{
	for (unsigned i = 0; i < count; i++) {
		push_iov(sender, message, iov[i].base, iov[i].length);
		crc = vb_icrc_add(crc, iov[i].base, iov[i].length);
	}
	return crc;
}

/* The ICRC is the first to read a payload, which is often in no cache yet, and the hardware looks ahead within a page
 * only: so the next packet's is asked for while this one's is summed. */
static void prefetch_payload(const struct vb_batch *batch, unsigned index)
{
	if (index >= batch->count || batch->out[index].packet.payload_length <= COPY_BYTES)
		return;
	const struct vb_outgoing *out = &batch->out[index];
	for (unsigned i = 0; i < out->iov_count; i++) {
		const struct vb_iov *iov = &batch->iov[out->iov_first + i];
		for (size_t at = 0; at < iov->length; at += CACHE_LINE)
			__builtin_prefetch((const uint8_t *)iov->base + at);
	}
}

/* Appends a packet whose ICRC starts at crc and has image xored in. Returns the start of the piece still open. */
static uint8_t *put_packet(struct sender *sender, struct msghdr *message, const struct vb_batch *batch,
	const struct vb_outgoing *out, uint8_t *piece, uint32_t crc, uint32_t image)
{
	static const uint8_t zero[4];
	const struct vb_iov *iov = &batch->iov[out->iov_first];
	size_t length = vb_packet_encode_headers(&out->packet, sender->cursor);
	uint32_t pad = vb_pad(out->packet.payload_length);

	crc = vb_icrc_headers(crc, sender->cursor, length);
	sender->cursor += length;
	if (out->packet.payload_length <= COPY_BYTES) {
		crc = copy_payload(sender, iov, out->iov_count, crc);
	} else {
		push_piece(sender, message, piece);
		crc = refer_payload(sender, message, iov, out->iov_count, crc);
		piece = sender->cursor;
	}
	if (pad) {
		memcpy(sender->cursor, zero, pad);
		crc = vb_icrc_add(crc, zero, pad);
		sender->cursor += pad;
	}
	crc = vb_icrc_end(crc) ^ image;
	memcpy(sender->cursor, &crc, sizeof(crc)); /* least significant byte first */
	sender->cursor += sizeof(crc);
	return piece;
}

/* ---- The capture ------------------------------------------------------------------------------------------------ */

/* Writes the packets of a message, read back from its scatter list. */
static void capture(
	struct vb_udp *udp, const struct vb_batch *batch, const struct tx_message *m, const struct msghdr *message)
{
	uint8_t *whole = udp->sender.whole;
	size_t iov = 0, offset = 0;

	for (unsigned i = 0; i < m->count; i++) {
		const struct vb_outgoing *out = &batch->out[m->first + i];
		uint32_t length = vb_packet_wire_length(&out->packet), filled = 0;
		while (filled < length) {
			const struct iovec *v = &message->msg_iov[iov];
			size_t n = v->iov_len - offset < length - filled ? v->iov_len - offset : length - filled;
			memcpy(whole + filled, (const uint8_t *)v->iov_base + offset, n);
			filled += (uint32_t)n;
			offset += n;
			if (offset == v->iov_len) {
				iov++;
				offset = 0;
			}
		}
		vb_pcap_write(udp->config.pcap, &out->av->sgid, m->socket->port, &out->av->dgid,
			traffic_class_of(udp, out->av), hops(out->av), (uint16_t)i, whole, length);
	}
}

/* ---- Building --------------------------------------------------------------------------------------------------- */

static void fail(struct vb_udp *udp, struct vb_batch *batch, unsigned first, unsigned count, int error)
{
	for (unsigned i = 0; i < count; i++)
		batch->receipts[first + i].error = error;
	udp->counters[VB_PORT_TX_ERRORS] += count;
}

/* Of the packet of that number in a train whose packets are segment bytes long, but for its last. */
static uint32_t image_of(struct sender *sender, uint32_t length, uint32_t segment, unsigned number)
{
	if (length != segment)
		return vb_icrc_id_image(length, (uint16_t)number);
	if (length != sender->images_length) {
		sender->images_length = length;
		sender->images_count = 0;
	}
	for (; sender->images_count <= number; sender->images_count++)
		sender->images[sender->images_count] = vb_icrc_id_image(length, (uint16_t)sender->images_count);
	return sender->images[number];
}

static void put_bytes(
	struct sender *sender, struct msghdr *message, const struct vb_batch *batch, const struct tx_message *m)
{
	const struct vb_av *av = batch->out[m->first].av;
	struct vb_flow flow = {
		.src = av->sgid, .dst = av->dgid, .src_port = m->socket->port, .dst_port = VB_UDP_PORT
	};
	bool is_ipv4 = vb_gid_is_ipv4(&av->dgid);
	uint8_t *piece = sender->cursor;
	uint32_t segment = vb_packet_wire_length(&batch->out[m->first].packet), size = 0, crc = 0;

	for (unsigned i = 0; i < m->count; i++) {
		const struct vb_outgoing *out = &batch->out[m->first + i];
		uint32_t length = vb_packet_wire_length(&out->packet);
		if (length != size)
			crc = vb_icrc_begin(&flow, size = length, 0);
		prefetch_payload(batch, m->first + i + 1u);
		piece = put_packet(
			sender, message, batch, out, piece, crc, is_ipv4 ? image_of(sender, length, segment, i) : 0);
	}
	push_piece(sender, message, piece);
}

static void add_message(struct vb_udp *udp, struct vb_batch *batch, unsigned first, unsigned count)
{
	struct sender *sender = &udp->sender;
	unsigned index = sender->message_count;
	struct tx_message *m = &sender->messages[index];
	struct msghdr *message = &sender->headers[index].msg_hdr;
	const struct vb_outgoing *head = &batch->out[first];
	const struct vb_av *av = head->av;
	bool is_ipv4 = vb_gid_is_ipv4(&av->dgid);

	*m = (struct tx_message){ first, (uint16_t)count,
		vb_udp_tx_socket(sender, destination_slot(head), is_ipv4, head->flow), false };
	if (!m->socket) {
		fail(udp, batch, first, count, errno);
		return;
	}
	*message = (struct msghdr){ .msg_iov = &sender->iov[sender->iov_count], .msg_control = sender->control[index] };
	if (is_ipv4)
		put_ipv4_address(message, &sender->names[index].ipv4, av);
	else
		put_ipv6_address(udp, message, &sender->names[index].ipv6, av);
	put_ip_fields(udp, message, av, is_ipv4);
	if (count > 1) {
		uint16_t segment = (uint16_t)vb_packet_wire_length(&head->packet);
		put_cmsg(message, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	}
	put_bytes(sender, message, batch, m);
	if (udp->config.pcap)
		capture(udp, batch, m, message);
	for (unsigned i = 0; i < count; i++)
		batch->receipts[first + i].error = 0;
	sender->message_count++;
}

/* ---- To the kernel ---------------------------------------------------------------------------------------------- */

/* A device without checksum offload (EIO) or a kernel without UDP_SEGMENT (EINVAL) refuses trains. EMSGSIZE and older
 * kernels' EINVAL for it mean a packet beyond the MTU: then its single datagram fails as well. */
static bool refuses_trains(const struct tx_message *m, int error)
{
	return m->count > 1 && (error == EIO || error == EINVAL || error == EOPNOTSUPP);
}

static void note_refusal(struct vb_udp *udp, const struct vb_gid *address, int error)
{
	struct sender *sender = &udp->sender;

	if (trains_refused_from(sender, address))
		return;
	sender->refused[sender->refused_count++ % REFUSED_MAX] = *address;
	udp->port.trains_refused = error;
}

static void account_sent(struct vb_udp *udp, struct tx_message *m)
{
	m->is_sent = true;
	udp->counters[VB_PORT_TX_DATAGRAMS]++;
	udp->counters[VB_PORT_TX_SEGMENTS] += m->count;
}

/* Sends messages [first, first + count), all of one socket. Returns how many the kernel took; on 0, errno says why the
 * first was not. */
static unsigned send_some(struct sender *sender, unsigned first, unsigned count)
{
	int fd = sender->messages[first].socket->fd;
	long sent;

	do {
		if (count == 1)
			sent = syscall(SYS_sendmsg, fd, &sender->headers[first].msg_hdr, SEND_FLAGS) < 0 ? -1 : 1;
		else
			sent = syscall(SYS_sendmmsg, fd, &sender->headers[first], count, SEND_FLAGS);
	} while (sent < 0 && errno == EINTR);
	return sent > 0 ? (unsigned)sent : 0;
}

/* Sends messages of one socket. A failed one is told to its packets and passed over; a refused train is left unsent. */
static void send_run(struct vb_udp *udp, struct vb_batch *batch, unsigned first, unsigned count)
{
	struct sender *sender = &udp->sender;

	while (count) {
		unsigned sent = send_some(sender, first, count);
		for (unsigned i = 0; i < sent; i++)
			account_sent(udp, &sender->messages[first + i]);
		if (sent == 0) {
			struct tx_message *m = &sender->messages[first];
			int error = errno;
			vb_udp_note_errno(udp, error);
			fail(udp, batch, m->first, m->count, error);
			if (refuses_trains(m, error))
				note_refusal(udp, &batch->out[m->first].av->sgid, error);
			sent = 1;
		}
		first += sent;
		count -= sent;
	}
}

/* Orders messages by socket, keeping the order within each: one system call a socket. */
static void group_by_socket(struct sender *sender)
{
	for (unsigned i = 1; i < sender->message_count; i++) {
		unsigned j = i;
		while (j > 0 && sender->messages[j - 1].socket > sender->messages[i].socket)
			j--;
		if (j == i)
			continue;
		struct tx_message m = sender->messages[i];
		struct mmsghdr header = sender->headers[i];
		memmove(&sender->messages[j + 1], &sender->messages[j], (i - j) * sizeof(m));
		memmove(&sender->headers[j + 1], &sender->headers[j], (i - j) * sizeof(header));
		sender->messages[j] = m;
		sender->headers[j] = header;
	}
}

static void flush(struct vb_udp *udp, struct vb_batch *batch)
{
	struct sender *sender = &udp->sender;

	group_by_socket(sender);
	for (unsigned first = 0, end; first < sender->message_count; first = end) {
		for (end = first + 1; end < sender->message_count; end++)
			if (sender->messages[end].socket != sender->messages[first].socket)
				break;
		send_run(udp, batch, first, end - first);
	}
}

static void reset(struct sender *sender)
{
	sender->message_count = 0;
	sender->iov_count = 0;
	sender->cursor = sender->scratch;
}

/* Trains that the kernel refused go again as single datagrams, with the ICRCs of such. When these are too big as well,
 * it was not the train that displeased. */
static void send_refused_singly(struct vb_udp *udp, struct vb_batch *batch, unsigned refused_before)
{
	struct sender *sender = &udp->sender;
	struct tx_message refused[VB_BATCH_PACKETS];
	unsigned count = 0;

	for (unsigned i = 0; i < sender->message_count; i++) {
		struct tx_message *m = &sender->messages[i];
		if (!m->is_sent && refuses_trains(m, batch->receipts[m->first].error))
			refused[count++] = *m;
	}
	if (!count)
		return;
	reset(sender);
	for (unsigned i = 0; i < count; i++) {
		udp->counters[VB_PORT_TX_ERRORS] -= refused[i].count;
		for (unsigned k = 0; k < refused[i].count; k++)
			add_message(udp, batch, refused[i].first + k, 1);
	}
	flush(udp, batch);
	if (batch->receipts[refused[0].first].error == EMSGSIZE)
		sender->refused_count = refused_before;
}

void vb_udp_send(struct vb_port *port, struct vb_batch *batch, vb_time now)
{
	struct vb_udp *udp = vb_udp_of(port);
	struct sender *sender = &udp->sender;

	udp->now = now;
	reset(sender);
	for (unsigned i = 0, count; i < batch->count; i += count) {
		count = cut(udp, batch, i);
		add_message(udp, batch, i, count);
	}
	unsigned refused_before = sender->refused_count;
	flush(udp, batch);
	if (sender->refused_count != refused_before)
		send_refused_singly(udp, batch, refused_before);
	udp->receipts = batch->receipts;
	udp->receipt_count = batch->count;
}
