/* Framing, sending: makes messages of a batch of packets, with headers, pads and ICRCs, and hands them to the carrier.
 *
 * Holds: an ICRC is made after the cut and the route, since it covers the source port and, over IPv4, the number of a
 * packet in its train. Each packet of the batch has its completion's error afterwards.
 * Not here: the cut (trains.c), the network (carrier.h). */
#include "port/framing.h"

#include <errno.h>
#include <string.h>
#include "base/bytes.h"
#include "base/invariant.h"

#define CACHE_LINE 64

static uint8_t traffic_class_of(const struct vb_framing *framing, const struct vb_av *av)
{
	enum { ECN = 3, ECT_0 = 2 }; /* RFC 3168, 5 */
	return framing->config.takes_marks && !(av->traffic_class & ECN) ? av->traffic_class | ECT_0
									 : av->traffic_class;
}

/* ---- The bytes of one message ------------------------------------------------------------------------------------ */

static void push_iov(struct vb_frame_sender *sender, struct vb_tx_message *message, const void *base, size_t length)
{
	assert(sender->iov_count < sizeof(sender->iov) / sizeof(sender->iov[0]));
	sender->iov[sender->iov_count++] = (struct iovec){ (void *)base, length };
	message->iov_count++;
}

/* Our own bytes not yet in the scatter list: from piece to the cursor. The end of one packet and the headers of the
 * next become one piece. */
static void push_piece(struct vb_frame_sender *sender, struct vb_tx_message *message, uint8_t *piece)
{
	if (piece != sender->cursor)
		push_iov(sender, message, piece, (size_t)(sender->cursor - piece));
}

static uint32_t copy_payload(struct vb_frame_sender *sender, const struct vb_iov *iov, unsigned count, uint32_t crc)
{
	uint8_t *start = sender->cursor;

	for (unsigned i = 0; i < count; i++) {
		memcpy(sender->cursor, iov[i].base, iov[i].length);
		sender->cursor += iov[i].length;
	}
	return vb_icrc_add(crc, start, (size_t)(sender->cursor - start));
}

static uint32_t refer_payload(struct vb_frame_sender *sender, struct vb_tx_message *message, const struct vb_iov *iov,
	unsigned count, uint32_t crc)
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
	if (index >= batch->count || batch->out[index].packet.payload_length <= VB_FRAME_COPY_BYTES)
		return;
	const struct vb_outgoing *out = &batch->out[index];
	for (unsigned i = 0; i < out->iov_count; i++) {
		const struct vb_iov *iov = &batch->iov[out->iov_first + i];
		for (size_t at = 0; at < iov->length; at += CACHE_LINE)
			__builtin_prefetch((const uint8_t *)iov->base + at);
	}
}

/* Appends a packet whose ICRC starts at crc and has image xored in. Returns the start of the piece still open. */
static uint8_t *put_packet(struct vb_frame_sender *sender, struct vb_tx_message *message, const struct vb_batch *batch,
	const struct vb_outgoing *out, uint8_t *piece, uint32_t crc, uint32_t image)
{
	static const uint8_t zero[4];
	const struct vb_iov *iov = &batch->iov[out->iov_first];
	size_t length = vb_packet_encode_headers(&out->packet, sender->cursor);
	uint32_t pad = vb_pad(out->packet.payload_length);

	crc = vb_icrc_headers(crc, sender->cursor, length);
	sender->cursor += length;
	if (out->packet.payload_length <= VB_FRAME_COPY_BYTES) {
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

/* The image for packet number of a train, whose packets are segment bytes long, but for its last. */
static uint32_t image_of(struct vb_frame_sender *sender, uint32_t length, uint32_t segment, unsigned number)
{
	assert(number < VB_CARRIER_SEGMENTS);
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

static void put_bytes(struct vb_frame_sender *sender, struct vb_tx_message *message, const struct vb_batch *batch,
	const struct vb_cut *cut)
{
	struct vb_flow flow = {
		.src = *message->src, .dst = *message->dst, .src_port = message->src_port, .dst_port = VB_UDP_PORT
	};
	bool is_ipv4 = vb_gid_is_ipv4(message->dst);
	uint8_t *piece = sender->cursor;
	uint32_t segment = vb_packet_wire_length(&batch->out[cut->first].packet), size = 0, crc = 0;

	message->iov = &sender->iov[sender->iov_count];
	for (unsigned i = 0; i < cut->count; i++) {
		const struct vb_outgoing *out = &batch->out[cut->first + i];
		uint32_t length = vb_packet_wire_length(&out->packet);
		if (length != size)
			crc = vb_icrc_begin(&flow, size = length, 0);
		prefetch_payload(batch, cut->first + i + 1u);
		piece = put_packet(
			sender, message, batch, out, piece, crc, is_ipv4 ? image_of(sender, length, segment, i) : 0);
	}
	push_piece(sender, message, piece);
	assert(message->iov_count > 0 && message->iov_count <= VB_CARRIER_IOV);
	assert(sender->cursor <= sender->scratch + sizeof(sender->scratch));
}

/* ---- The capture ------------------------------------------------------------------------------------------------- */

/* Writes the packets of a message, read back from its scatter list. */
static void capture(struct vb_framing *framing, const struct vb_batch *batch, const struct vb_cut *cut,
	const struct vb_tx_message *message)
{
	uint8_t *whole = framing->sender.whole;
	size_t iov = 0, offset = 0;

	for (unsigned i = 0; i < cut->count; i++) {
		uint32_t length = vb_packet_wire_length(&batch->out[cut->first + i].packet), filled = 0;
		while (filled < length) {
			const struct iovec *v = &message->iov[iov];
			size_t n = v->iov_len - offset < length - filled ? v->iov_len - offset : length - filled;
			memcpy(whole + filled, (const uint8_t *)v->iov_base + offset, n);
			filled += (uint32_t)n;
			offset += n;
			if (offset == v->iov_len) {
				iov++;
				offset = 0;
			}
		}
		char note[VB_PCAP_NOTE];
		vb_pcap_note(&batch->out[cut->first + i].packet, batch->out[cut->first + i].again, note, sizeof(note));
		vb_pcap_write(framing->config.pcap, message->src, message->src_port, message->dst,
			message->traffic_class, message->hop_limit, (uint16_t)i, whole, length, note);
	}
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static void fail(struct vb_framing *framing, struct vb_batch *batch, const struct vb_cut *cut, int error)
{
	assert(error > 0 && cut->first + cut->count <= batch->count);
	for (unsigned i = 0; i < cut->count; i++)
		batch->completions[cut->first + i].error = error;
	framing->counters[VB_PORT_TX_ERRORS] += cut->count;
}

static void add_message(struct vb_framing *framing, const struct vb_batch *batch, unsigned first, unsigned count)
{
	struct vb_frame_sender *sender = &framing->sender;
	const struct vb_outgoing *head = &batch->out[first];

	assert(count > 0 && sender->count < VB_CARRIER_TX);
	sender->cuts[sender->count] = (struct vb_cut){ (uint16_t)first, (uint16_t)count };
	sender->messages[sender->count++] = (struct vb_tx_message){ .src = &head->av->sgid,
		.dst = &head->av->dgid,
		.segment = count > 1 ? (uint16_t)vb_packet_wire_length(&head->packet) : 0,
		.flow = head->flow,
		.steering = vb_frame_slot(head),
		.traffic_class = traffic_class_of(framing, head->av),
		.hop_limit = vb_frame_hops(head->av) };
}

static void begin(struct vb_frame_sender *sender)
{
	sender->count = 0;
	sender->iov_count = 0;
	sender->cursor = sender->scratch;
}

/* Writes the bytes of all messages that have a route, and sends them. */
static void send_messages(struct vb_framing *framing, struct vb_batch *batch)
{
	struct vb_frame_sender *sender = &framing->sender;
	struct vb_carrier *carrier = framing->carrier;

	carrier->ops->route(carrier, sender->messages, sender->count);
	for (unsigned i = 0; i < sender->count; i++) {
		if (sender->messages[i].error)
			continue;
		assert(sender->messages[i].src_port);
		put_bytes(sender, &sender->messages[i], batch, &sender->cuts[i]);
		if (framing->config.pcap)
			capture(framing, batch, &sender->cuts[i], &sender->messages[i]);
	}
	carrier->ops->send(carrier, sender->messages, sender->count, framing->now);
	vb_framing_heed_carrier(framing);
}

/* A device without checksum offload (EIO) or a kernel without UDP_SEGMENT (EINVAL) refuses trains. EMSGSIZE and older
 * kernels' EINVAL for it mean a packet beyond the MTU: then its single datagram fails as well. A train without a source
 * port had no route. */
static bool refuses_trains(const struct vb_tx_message *message)
{
	return message->segment && message->src_port &&
	       (message->error == EIO || message->error == EINVAL || message->error == EOPNOTSUPP);
}

static void account(struct vb_framing *framing, struct vb_batch *batch)
{
	struct vb_frame_sender *sender = &framing->sender;

	for (unsigned i = 0; i < sender->count; i++) {
		const struct vb_cut *cut = &sender->cuts[i];
		if (sender->messages[i].error) {
			fail(framing, batch, cut, sender->messages[i].error);
			if (refuses_trains(&sender->messages[i]))
				vb_train_note_refusal(framing, sender->messages[i].src, sender->messages[i].error);
			continue;
		}
		for (unsigned k = 0; k < cut->count; k++)
			batch->completions[cut->first + k].error = 0;
		framing->counters[VB_PORT_TX_DATAGRAMS]++;
		framing->counters[VB_PORT_TX_SEGMENTS] += cut->count;
	}
}

/* ---- A batch ----------------------------------------------------------------------------------------------------- */

/* Trains that the carrier refused go again as single datagrams, with the ICRCs of such. When these are too big as well,
 * it was not the train that was refused. */
static void send_refused_singly(struct vb_framing *framing, struct vb_batch *batch, unsigned refused_before)
{
	struct vb_frame_sender *sender = &framing->sender;
	struct vb_cut refused[VB_CARRIER_TX];
	unsigned count = 0;

	for (unsigned i = 0; i < sender->count; i++)
		if (refuses_trains(&sender->messages[i]))
			refused[count++] = sender->cuts[i];
	assert(count > 0 && sender->refused_count > refused_before);
	begin(sender);
	for (unsigned i = 0; i < count; i++) {
		framing->counters[VB_PORT_TX_ERRORS] -= refused[i].count;
		for (unsigned k = 0; k < refused[i].count; k++)
			add_message(framing, batch, refused[i].first + k, 1);
	}
	send_messages(framing, batch);
	account(framing, batch);
	if (batch->completions[refused[0].first].error == EMSGSIZE)
		sender->refused_count = refused_before;
}

void vb_frame_send(struct vb_port *port, struct vb_batch *batch, vb_time now)
{
	struct vb_framing *framing = vb_framing_of(port);
	struct vb_frame_sender *sender = &framing->sender;
	unsigned refused_before = sender->refused_count;

	assert(batch->count <= VB_BATCH_PACKETS);
	framing->now = now;
	begin(sender);
	for (unsigned i = 0, count; i < batch->count; i += count) {
		count = vb_train_cut(framing, batch, i);
		add_message(framing, batch, i, count);
	}
	send_messages(framing, batch);
	account(framing, batch);
	if (sender->refused_count != refused_before)
		send_refused_singly(framing, batch, refused_before);
	framing->completions = batch->completions;
	framing->completion_count = batch->count;
}
