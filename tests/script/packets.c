/* Packets of a script: "<" builds one, says what it does to memory, and hands it to the engine; ">" takes the oldest
 * one that left and compares it with the line and with what was posted. Payloads need not be written down: outgoing
 * ones are compared with the work request's bytes, incoming ones carry a pattern that the shadow memory then
 * expects. */
#include <stdlib.h>
#include <string.h>
#include "script.h"

static int opcode_named(struct line *line, const char *name)
{
	for (int i = 0; name && i < 256; i++)
		if (vb_opcodes[i].name && strcmp(vb_opcodes[i].name, name) == 0)
			return i;
	if (name && strncmp(name, "0x", 2) == 0)
		return (int)parse_number(line, name) & 0xFF;
	fail(line, "there is no opcode '%s'", name ? name : "");
}

static int nak_named(struct line *line, const char *name)
{
	static const char *const names[] = { "psn_sequence", "invalid_request", "remote_access", "remote_operation",
		"invalid_rd" };
	for (int i = 0; i < 5; i++)
		if (strcmp(names[i], name) == 0)
			return VB_AETH_NAK | i;
	return (int)parse_number(line, name);
}

/* nak=NAME, rnr=TIMER CODE, credits=CODE; without any of them a plain ack. */
static uint8_t read_syndrome(struct line *line)
{
	const char *nak = line_text(line, "nak");
	if (nak)
		return (uint8_t)nak_named(line, nak);
	if (line_has(line, "rnr"))
		return (uint8_t)(VB_AETH_RNR | line_number(line, "rnr", 0));
	return (uint8_t)line_number(line, "credits", VB_AETH_NO_CREDITS);
}

static struct posted *posted_at(struct actor *actor, uint32_t psn, uint32_t *index)
{
	for (unsigned i = actor->posted_count; i-- > 0;) {
		struct posted *posted = &actor->posted[i];
		int32_t d = vb_psn_diff(psn, posted->psn);
		if (d >= 0 && d < (int32_t)posted->packets) {
			*index = (uint32_t)d;
			return posted;
		}
	}
	return NULL;
}

/* ---- What an arriving packet does to memory ---------------------------------------------------------------------- */

static void land_in_receive(struct line *line, struct actor *actor, const struct vb_packet *packet)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	bool is_ud = actor->config.type == VB_QP_UD;
	if ((row->place == VB_FIRST || row->place == VB_ONLY)) {
		if (!actor->message_open) {
			struct recv_queue *queue = actor->recvs;
			if (queue->head == queue->tail)
				fail(line, "the script has no receive posted for this; say 'dropped'");
			actor->open = queue->items[queue->head++ % MAX_RECVS];
		}
		actor->message_open = true;
		actor->open_offset = is_ud ? 40 : 0;
	}
	shadow_scatter(
		actor->open.sges, actor->open.sge_count, actor->open_offset, packet->payload, packet->payload_length);
	actor->open_offset += packet->payload_length;
	if (row->place == VB_LAST || row->place == VB_ONLY) {
		actor->message_open = false;
		actor->received[actor->received_tail++ % MAX_RECVS] = (uint32_t)actor->open_offset;
	}
}

static void put_be16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

/* The 40 bytes in front of a UD payload: the IPv6 header, or 20 zero bytes and the IPv4 header with its checksum. The
 * identification is taken from memory, for a socket does not show it. */
static void land_grh(struct line *line, struct actor *actor, const struct vb_path *path, const struct vb_packet *packet)
{
	uint8_t grh[40] = { 0 }, *v4 = grh + 20;
	const struct vb_sge *sges = actor->open.sges;
	unsigned count = actor->open.sge_count;
	uint32_t udp = 8 + vb_packet_wire_length(packet);
	if (vb_gid_is_ipv4(&path->dst)) {
		struct region *region = region_at(sges[0].addr, 40);
		if (!region)
			fail(line, "the receive needs 40 bytes in its first piece");
		const uint8_t *real = region->bytes + (sges[0].addr - region->iova) + 20;
		v4[0] = 0x45;
		v4[1] = path->traffic_class;
		put_be16(v4 + 2, 20 + udp);
		memcpy(v4 + 4, real + 4, 2);
		v4[6] = 0x40;
		v4[8] = path->hop_limit;
		v4[9] = 17;
		memcpy(v4 + 12, path->src.raw + 12, 4);
		memcpy(v4 + 16, path->dst.raw + 12, 4);
		uint32_t sum = 0;
		for (int i = 0; i < 20; i += 2)
			sum += (uint32_t)v4[i] << 8 | v4[i + 1];
		while (sum >> 16)
			sum = (sum & 0xFFFF) + (sum >> 16);
		put_be16(v4 + 10, ~sum);
	} else {
		grh[0] = (uint8_t)(0x60 | path->traffic_class >> 4);
		grh[1] = (uint8_t)(path->traffic_class << 4);
		put_be16(grh + 4, udp);
		grh[6] = 17;
		grh[7] = path->hop_limit;
		memcpy(grh + 8, path->src.raw, 16);
		memcpy(grh + 24, path->dst.raw, 16);
	}
	shadow_scatter(sges, count, 0, grh, 40);
}

static void land_write(struct line *line, struct actor *actor, const struct vb_packet *packet)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	if (row->place == VB_FIRST || row->place == VB_ONLY) {
		actor->write_va = packet->va;
		actor->write_length = packet->dma_length;
	}
	uint8_t *to = shadow_at(actor->write_va, packet->payload_length);
	if (!to && packet->payload_length)
		fail(line, "the script writes outside every region; say 'dropped'");
	if (packet->payload_length)
		memcpy(to, packet->payload, packet->payload_length);
	actor->write_va += packet->payload_length;
	if (row->has_imm) {
		actor->recvs->head++;
		actor->received[actor->received_tail++ % MAX_RECVS] = actor->write_length;
	}
}

static void land_atomic(struct line *line, struct actor *actor, const struct vb_packet *packet)
{
	uint64_t old;
	uint8_t *at = shadow_at(packet->va, 8);
	if (!at)
		fail(line, "the script's atomic lies outside every region; say 'dropped'");
	memcpy(&old, at, 8);
	uint64_t new = (packet->opcode & VB_OPERATION_MASK) == VB_FETCH_ADD ? old + packet->swap_add
		       : old == packet->compare                             ? packet->swap_add
									    : old;
	memcpy(at, &new, 8);
	actor->remote[actor->remote_count++ % MAX_REMOTE] = (struct remote_op){
		.is_atomic = true, .psn = packet->psn, .packets = 1, .va = packet->va, .result = old
	};
}

static void land_atomic_write(struct line *line, struct actor *actor, const struct vb_packet *packet)
{
	uint8_t *at = shadow_at(packet->va, 8);
	if (!at)
		fail(line, "the script writes outside every region; say 'dropped'");
	memcpy(at, packet->payload, 8);
	actor->remote[actor->remote_count++ % MAX_REMOTE] = (struct remote_op){ .psn = packet->psn, .packets = 1 };
}

static void land_flush(struct actor *actor, const struct vb_packet *packet)
{
	actor->remote[actor->remote_count++ % MAX_REMOTE] = (struct remote_op){ .psn = packet->psn, .packets = 1 };
}

static void land_read(struct line *line, struct actor *actor, const struct vb_packet *packet)
{
	uint32_t mtu = actor->attr.path_mtu, packets = (packet->dma_length + mtu - 1) / mtu;
	actor->remote[actor->remote_count++ % MAX_REMOTE] = (struct remote_op){
		.psn = packet->psn, .packets = packets ? packets : 1, .va = packet->va, .length = packet->dma_length
	};
}

static void land_response(struct line *line, struct actor *actor, const struct vb_packet *packet)
{
	uint32_t index;
	struct posted *posted = posted_at(actor, packet->psn, &index);
	if (!posted)
		fail(line, "nothing posted has this PSN; say 'dropped'");
	if ((packet->opcode & VB_OPERATION_MASK) == VB_ATOMIC_ACKNOWLEDGE)
		shadow_scatter(posted->sges, posted->sge_count, 0, (const uint8_t *)&packet->atomic_result, 8);
	else
		shadow_scatter(posted->sges, posted->sge_count, (uint64_t)index * actor->attr.path_mtu, packet->payload,
			packet->payload_length);
}

static void land(struct line *line, struct actor *actor, const struct vb_path *path, const struct vb_packet *packet)
{
	switch (vb_packet_row(packet)->message) {
	case VB_MESSAGE_SEND:
		land_in_receive(line, actor, packet);
		if (actor->config.type == VB_QP_UD)
			land_grh(line, actor, path, packet);
		break;
	case VB_MESSAGE_WRITE:
		land_write(line, actor, packet);
		break;
	case VB_MESSAGE_ATOMIC:
		land_atomic(line, actor, packet);
		break;
	case VB_MESSAGE_ATOMIC_WRITE:
		land_atomic_write(line, actor, packet);
		break;
	case VB_MESSAGE_FLUSH:
		land_flush(actor, packet);
		break;
	case VB_MESSAGE_READ:
		land_read(line, actor, packet);
		break;
	case VB_MESSAGE_READ_RESPONSE:
		land_response(line, actor, packet);
		break;
	case VB_MESSAGE_ACK:
		if ((packet->opcode & VB_OPERATION_MASK) == VB_ATOMIC_ACKNOWLEDGE)
			land_response(line, actor, packet);
		break;
	default:
		break;
	}
}

/* ---- Arriving ---------------------------------------------------------------------------------------------------- */

/* Requests of ours that are complete once psn is acknowledged: the peer's MSN. */
static uint32_t messages_until(struct actor *actor, uint32_t psn)
{
	uint32_t n = 0;
	for (unsigned i = 0; i < actor->posted_count; i++) {
		struct posted *posted = &actor->posted[i];
		n += posted->packets && vb_psn_diff(vb_psn_add(posted->psn, posted->packets - 1), psn) <= 0;
	}
	return n;
}

static void read_header(struct line *line, struct actor *actor, struct vb_packet *packet, enum vb_header header)
{
	struct region *remote = &stage.regions[1];
	struct named_srq *named = NULL;
	switch (header) {
	case VB_RETH:
		packet->dma_length = (uint32_t)line_number(line, "dma", packet->payload_length);
		packet->va = read_address(line, "va", remote->iova);
		packet->rkey = read_key(line, "rkey", remote->key);
		break;
	case VB_ATOMICETH:
		packet->va = read_address(line, "va", remote->iova);
		packet->rkey = read_key(line, "rkey", remote->key);
		packet->swap_add = line_number(line, line_has(line, "add") ? "add" : "swap", 0);
		packet->compare = line_number(line, "compare", 0);
		break;
	case VB_ATOMICACKETH:
		packet->atomic_result = line_number(line, "result", 0);
		break;
	case VB_HELLOETH:
		packet->hold_bytes = (uint32_t)line_number(line, "hold", 0);
		packet->hello = line_flag(line, "answers") ? VB_HELLO_ANSWERS : 0;
		break;
	case VB_BITMAPETH:
		packet->expected_psn = (uint32_t)line_number(line, "expected", 0);
		packet->executed_ahead = (uint16_t)line_number(line, "ahead", 0);
		packet->bits[0] = line_number(line, "bits", 0);
		break;
	case VB_PATHETH:
		packet->secret = line_number(line, "secret", 0);
		packet->path_number = (uint32_t)line_number(line, "number", 0);
		break;
	case VB_ADDRESSETH:
		packet->address = vb_gid_from_ipv4(10, 0, 0, (uint8_t)line_number(line, "address", 0));
		break;
	case VB_AETH:
		packet->syndrome = read_syndrome(line);
		packet->msn = (uint32_t)line_number(line, "msn", messages_until(actor, packet->psn));
		break;
	case VB_IMMDT:
		packet->imm = __builtin_bswap32((uint32_t)line_number(line, "imm", 0));
		break;
	case VB_IETH:
		packet->inv_rkey = read_key(line, "inv", 0);
		break;
	case VB_DETH:
		packet->qkey = (uint32_t)line_number(line, "qkey", actor->attr.qkey);
		packet->src_qpn = (uint32_t)line_number(line, "src_qpn", 0x222);
		break;
	case VB_XRCETH:
		packet->xrc_srqn = read_srqn(line, &named);
		if (named)
			actor->recvs = &named->recvs;
		break;
	case VB_FETH:
		packet->flush = (uint32_t)line_number(line, "feth", VB_FLUSH_GLOBAL);
		break;
	case VB_CNP_RESERVED:
	case VB_END:
	case VB_HEADER_COUNT:
		break;
	}
}

static void read_packet(struct line *line, struct actor *actor, struct vb_packet *packet, uint8_t *payload)
{
	const char *name = line_word(line);
	packet->opcode = (uint8_t)opcode_named(line, name);
	const struct vb_opcode *row = vb_packet_row(packet);
	packet->psn = (uint32_t)line_number(line, "psn", 0) & VB_PSN_MASK;
	packet->payload_length = (uint32_t)line_number(line, "len", 0);
	packet->solicited = line_flag(line, "solicited");
	packet->ackreq = line_flag(line, "ackreq");
	packet->becn = line_flag(line, "becn") || row->message == VB_MESSAGE_CNP;
	packet->pkey = (uint16_t)line_number(line, "pkey", VB_PKEY_DEFAULT);
	packet->holder = line_number(line, "holder", 0);
	packet->dest_qpn = (uint32_t)line_number(line, "dest", vb_qp_number(actor->qp));
	for (const uint8_t *header = row->headers; *header != VB_END; header++)
		read_header(line, actor, packet, *header);
	payload_make(payload, packet->payload_length, packet->psn, (uint32_t)line_number(line, "fill", 0));
	packet->payload = payload;
}

void do_arrive(struct line *line)
{
	if (stage.arriving_count == 0 || line->latest)
		stage_input(line);
	struct actor *actor = stage_actor(line);
	struct vb_path path = { .src = read_gid(line, "from", stage.peer),
		.dst = read_gid(line, "to", stage.local),
		.src_port = 0xC123,
		.hop_limit = 64,
		.traffic_class = line_flag(line, "ce") ? 3 : 0,
		.ifindex = 1 };
	unsigned n = stage.arriving_count++;
	struct vb_packet *packet = &stage.arriving[n];
	*packet = (struct vb_packet){ 0 };
	read_packet(line, actor, packet, stage.arriving_payload[n]);
	bool is_dropped = line_flag(line, "dropped"), has_more = line_flag(line, "more");
	if (!is_dropped && !line_flag(line, "dup"))
		land(line, actor, &path, packet);
	if (line_flag(line, "takes_recv")) /* refused, but a receive went with it */
		actor->recvs->head++;
	if (has_more) {
		line->tokens[0].is_used = true;
		return;
	}
	vb_lane_receive(stage.lane, &path, stage.arriving, stage.arriving_count, stage.now);
	stage.arriving_count = 0;
	memset(stage.arriving_payload, 0xDD, sizeof(stage.arriving_payload[0]));
	stage_settle(line);
	if (!is_dropped && actor->config.type == VB_QP_UD)
		land_grh(line, actor, &path, packet); /* again, with the identification that is there now */
}

/* ---- Leaving ----------------------------------------------------------------------------------------------------- */

static void expect(struct line *line, const char *what, uint64_t expected, uint64_t seen)
{
	if (expected != seen)
		fail(line, "%s: expected %llu (0x%llx), seen %llu (0x%llx)", what, (unsigned long long)expected,
			(unsigned long long)expected, (unsigned long long)seen, (unsigned long long)seen);
}

static void check_payload(struct line *line, const struct sent *sent, const uint8_t *expected)
{
	for (uint32_t i = 0; i < sent->packet.payload_length; i++)
		if (sent->payload[i] != expected[i])
			fail(line, "payload byte %u: expected %02x, seen %02x", i, expected[i], sent->payload[i]);
}

static void check_request(struct line *line, struct actor *actor, const struct sent *sent)
{
	const struct vb_packet *packet = &sent->packet;
	const struct vb_opcode *row = vb_packet_row(packet);
	uint32_t index = 0, mtu = actor->attr.path_mtu;
	struct posted *posted = posted_at(actor, packet->psn, &index);
	if (!posted)
		fail(line, "nothing posted has PSN %u", packet->psn);
	uint64_t offset = (uint64_t)index * mtu;
	if (posted->bytes && offset + packet->payload_length > posted->length)
		fail(line, "payload beyond the message's end");
	if (posted->bytes)
		check_payload(line, sent, posted->bytes + offset);
	bool has_reth = false;
	for (unsigned i = 0; i < VB_MAX_HEADERS; i++)
		has_reth |= row->headers[i] == VB_RETH;
	if (actor->config.type == VB_QP_XRC_SEND)
		expect(line, "srqn", posted->srqn, packet->xrc_srqn);
	if (row->message == VB_MESSAGE_FLUSH) {
		expect(line, "va", posted->remote_addr, packet->va);
		expect(line, "rkey", posted->rkey, packet->rkey);
		expect(line, "dma length", posted->range, packet->dma_length);
		expect(line, "feth", posted->feth, packet->flush);
	} else if (has_reth) {
		expect(line, "va", posted->remote_addr + offset, packet->va);
		expect(line, "rkey", posted->rkey, packet->rkey);
		expect(line, "dma length", line_number(line, "dma", posted->length - offset), packet->dma_length);
		if (packet->dma_length > posted->length - offset)
			fail(line, "asks beyond the message's end");
	}
	if (row->message == VB_MESSAGE_ATOMIC) {
		bool is_swap = posted->opcode == VB_WR_ATOMIC_CMP_AND_SWP;
		expect(line, "va", posted->remote_addr, packet->va);
		expect(line, "rkey", posted->rkey, packet->rkey);
		expect(line, "swap or add", is_swap ? posted->swap : posted->compare_add, packet->swap_add);
		if (is_swap)
			expect(line, "compare", posted->compare_add, packet->compare);
	}
	if (row->has_imm)
		expect(line, "imm", posted->imm_or_inv, packet->imm);
	if (row->has_inv)
		expect(line, "inv", posted->imm_or_inv, packet->inv_rkey);
}

static void check_response(struct line *line, struct actor *actor, const struct sent *sent)
{
	const struct vb_packet *packet = &sent->packet;
	for (unsigned i = actor->remote_count; i-- > 0;) {
		struct remote_op *op = &actor->remote[i % MAX_REMOTE];
		int32_t index = vb_psn_diff(packet->psn, op->psn);
		if (index < 0 || index >= (int32_t)op->packets)
			continue;
		if (op->is_atomic) {
			expect(line, "atomic result", op->result, packet->atomic_result);
			return;
		}
		uint64_t offset = (uint64_t)index * actor->attr.path_mtu;
		if (offset + packet->payload_length > op->length)
			fail(line, "response beyond what was asked for");
		if (packet->payload_length)
			check_payload(line, sent, shadow_at(op->va + offset, packet->payload_length));
		return;
	}
	fail(line, "no READ or atomic that arrived has PSN %u", packet->psn);
}

static void check_fields(struct line *line, struct actor *actor, const struct sent *sent)
{
	const struct vb_packet *packet = &sent->packet;
	const struct vb_opcode *row = vb_packet_row(packet);
	if (line_has(line, "psn"))
		expect(line, "psn", line_number(line, "psn", 0), packet->psn);
	expect(line, "payload length", line_number(line, "len", 0), packet->payload_length);
	if (!line_flag(line, "ackreq?"))
		expect(line, "ackreq", line_flag(line, "ackreq"), packet->ackreq);
	expect(line, "solicited", line_flag(line, "solicited"), packet->solicited);
	expect(line, "pkey", VB_PKEY_DEFAULT, packet->pkey);
	expect(line, "becn", line_flag(line, "becn") || row->message == VB_MESSAGE_CNP, packet->becn);
	expect(line, "holder", line_number(line, "holder", 0), packet->holder);
	expect(line, "dest qpn", line_number(line, "dest", actor->attr.dest_qpn), packet->dest_qpn);
	struct vb_gid to = read_gid(line, "to", actor->attr.av.dgid);
	if (!vb_gid_equal(&to, &sent->av.dgid))
		fail(line, "goes to another address");
	bool has_aeth = false;
	for (unsigned i = 0; i < VB_MAX_HEADERS; i++)
		has_aeth |= row->headers[i] == VB_AETH;
	if (has_aeth)
		expect(line, "syndrome", read_syndrome(line), packet->syndrome);
	if (line_has(line, "msn"))
		expect(line, "msn", line_number(line, "msn", 0), packet->msn);
	if (line_has(line, "qkey"))
		expect(line, "qkey", line_number(line, "qkey", 0), packet->qkey);
	if (actor->config.type == VB_QP_UD)
		expect(line, "source qpn", vb_qp_number(actor->qp), packet->src_qpn);
}

void do_leave(struct line *line)
{
	stage_wait(line, &stage.sent_head, &stage.sent_tail);
	const char *name = line_word(line);
	uint8_t opcode = (uint8_t)opcode_named(line, name);
	if (stage.sent_head == stage.sent_tail)
		fail(line, "nothing leaves");
	struct sent *sent = &stage.sent[stage.sent_head++];
	const struct vb_packet *packet = &sent->packet;
	if (packet->opcode != opcode)
		fail(line, "seen %s psn=%u len=%u syndrome=0x%02x at %s", vb_packet_row(packet)->name, packet->psn,
			packet->payload_length, packet->syndrome, show_time(vb_time_diff(sent->at, stage.mark)));
	struct actor *actor = stage_actor(line);
	if (actor != sent->actor)
		fail(line, "sent by another QP");
	check_fields(line, actor, sent);
	const struct vb_opcode *row = vb_packet_row(packet);
	if (!row->is_response && row->message != VB_MESSAGE_CNP)
		check_request(line, actor, sent);
	else if (row->message == VB_MESSAGE_READ_RESPONSE || opcode == (VB_RC | VB_ATOMIC_ACKNOWLEDGE))
		check_response(line, actor, sent);
	stage_stamp(line, sent->at, "packet");
}
