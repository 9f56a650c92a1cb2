/* The messages between two rsockets, and the arithmetic of their rings (wire.h). */
#include "rsocket/wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include "base/invariant.h"

enum {
	FLAG_BIG_ENDIAN = 1 << 0,
	FLAG_MAPPINGS = 1 << 1,
	SCALED = 1 << 7, /* the other seven bits count 256s */
	WORTH_SENDING = 32768,
};

/* ---- Private data ------------------------------------------------------------------------------------------------ */

static void put_region(uint8_t *to, const struct vb_rs_region *region, bool is_big_endian)
{
	uint64_t addr = is_big_endian ? htobe64(region->addr) : htole64(region->addr);
	uint32_t key = is_big_endian ? htobe32(region->key) : htole32(region->key);
	uint32_t length = is_big_endian ? htobe32(region->length) : htole32(region->length);

	memcpy(to, &addr, 8);
	memcpy(to + 8, &key, 4);
	memcpy(to + 12, &length, 4);
}

static struct vb_rs_region get_region(const uint8_t *from)
{
	uint64_t addr;
	uint32_t key, length;

	memcpy(&addr, from, 8);
	memcpy(&key, from + 8, 4);
	memcpy(&length, from + 12, 4);
	return (struct vb_rs_region){ be64toh(addr), be32toh(key), be32toh(length) };
}

static uint8_t scale(uint32_t count)
{
	if (count <= SCALED)
		return (uint8_t)count;
	return (uint8_t)(SCALED | ((count + 255) >> 8));
}

static uint32_t unscale(uint8_t scaled)
{
	return scaled <= SCALED ? scaled : (uint32_t)(scaled & ~SCALED) << 8;
}

uint32_t vb_rs_mappings_round(uint32_t count)
{
	return unscale(scale(count < VB_RS_MAPPINGS_MAX ? count : VB_RS_MAPPINGS_MAX));
}

void vb_rs_hello_encode(const struct vb_rs_hello *hello, uint8_t to[VB_RS_HELLO_LENGTH])
{
	memset(to, 0, VB_RS_HELLO_LENGTH);
	to[0] = VB_RS_VERSION;
	to[1] = (uint8_t)((hello->is_big_endian ? FLAG_BIG_ENDIAN : 0) | (hello->has_mappings ? FLAG_MAPPINGS : 0));
	to[2] = (uint8_t)(hello->credits >> 8);
	to[3] = (uint8_t)hello->credits;
	to[7] = scale(hello->mappings);
	put_region(to + 8, &hello->targets, true);
	put_region(to + 24, &hello->data, true);
}

int vb_rs_hello_decode(struct vb_rs_hello *hello, const void *bytes, size_t length)
{
	const uint8_t *from = bytes;

	if (!from || length < VB_RS_HELLO_LENGTH || from[0] != VB_RS_VERSION)
		return -EPROTO;
	*hello = (struct vb_rs_hello){
		.is_big_endian = from[1] & FLAG_BIG_ENDIAN,
		.has_mappings = from[1] & FLAG_MAPPINGS,
		.credits = (uint16_t)(from[2] << 8 | from[3]),
		.mappings = from[1] & FLAG_MAPPINGS ? unscale(from[7]) : 0,
		.targets = get_region(from + 8),
		.data = get_region(from + 24),
	};
	/* A table needs entries, but not absurdly many; a ring without room or credits never takes a byte. */
	if (!hello->targets.length || hello->targets.length > VB_RS_TARGETS_MAX || !hello->data.length ||
		!hello->credits)
		return -EPROTO;
	return 0;
}

void vb_rs_region_encode(const struct vb_rs_region *region, bool is_big_endian, uint8_t to[VB_RS_REGION_LENGTH])
{
	put_region(to, region, is_big_endian);
}

void vb_rs_mapping_encode(
	uint64_t offset, const struct vb_rs_region *region, bool is_big_endian, uint8_t to[VB_RS_MAPPING_LENGTH])
{
	uint64_t ordered = is_big_endian ? htobe64(offset) : htole64(offset);

	memcpy(to, &ordered, 8);
	put_region(to + 8, region, is_big_endian);
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

void vb_rs_sender_init(struct vb_rs_sender *sender, uint32_t size, const struct vb_rs_hello *peer)
{
	*sender = (struct vb_rs_sender){ .size = size, .free = size, .limit = peer->credits };
	sender->target[0] = peer->data;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t vb_rs_sender_ring_room(const struct vb_rs_sender *sender)
{
	return least(sender->free, sender->size - sender->put_at);
}

void vb_rs_sender_ring_take(struct vb_rs_sender *sender, uint32_t length)
{
	assert(length <= vb_rs_sender_ring_room(sender));
	sender->free -= length;
	sender->put_at = (sender->put_at + length) % sender->size;
}

uint32_t vb_rs_sender_room(const struct vb_rs_sender *sender)
{
	if (sender->sequence == sender->limit)
		return 0;
	uint32_t together = least(sender->size - sender->put_at, sender->target[sender->target_index].length);
	uint32_t worth = least(together, least(WORTH_SENDING, sender->size / 4));
	return sender->free < worth ? 0 : least(together, sender->free);
}

struct vb_rs_region vb_rs_sender_take(struct vb_rs_sender *sender, uint32_t length, bool is_inline)
{
	struct vb_rs_region *target = &sender->target[sender->target_index];
	struct vb_rs_region place = { target->addr, target->key, length };

	assert(length <= target->length);
	target->addr += length;
	target->length -= length;
	if (!target->length)
		sender->target_index = (sender->target_index + 1) % VB_RS_TARGETS;
	sender->sequence++;
	if (!is_inline)
		vb_rs_sender_ring_take(sender, length);
	return place;
}

void vb_rs_sender_free(struct vb_rs_sender *sender, uint32_t length)
{
	assert(length <= sender->size - sender->free);
	sender->free += length;
}

bool vb_rs_sender_grant(struct vb_rs_sender *sender, const struct vb_rs_region *target)
{
	/* The grant is for the entry in use, if that is used up, or else for the next. */
	uint32_t index = sender->target_index;
	if (sender->target[index].length)
		index = (index + 1) % VB_RS_TARGETS;
	if (sender->target[index].length)
		return false;
	sender->target[index] = *target;
	return true;
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

void vb_rs_receiver_init(struct vb_rs_receiver *receiver, uint32_t size, uint16_t queue)
{
	assert(size && size % 2 == 0 && queue);
	/* The hello grants both halves, so that the peer can send before our program reads. */
	*receiver = (struct vb_rs_receiver){ .size = size, .granted = size, .queue = queue };
}

bool vb_rs_receiver_arrive(struct vb_rs_receiver *receiver, uint32_t length)
{
	if (length > receiver->granted)
		return false;
	receiver->granted -= length;
	receiver->ready += length;
	receiver->messages++;
	return true;
}

uint32_t vb_rs_receiver_together(const struct vb_rs_receiver *receiver)
{
	return least(receiver->ready, receiver->size - receiver->read_at);
}

void vb_rs_receiver_consume(struct vb_rs_receiver *receiver, uint32_t length)
{
	assert(length <= receiver->ready);
	receiver->ready -= length;
	receiver->read += length;
	receiver->read_at = (receiver->read_at + length) % receiver->size;
}

static bool has_half(const struct vb_rs_receiver *receiver)
{
	return receiver->read >= receiver->size / 2;
}

bool vb_rs_receiver_credits_due(const struct vb_rs_receiver *receiver)
{
	uint16_t taken = (uint16_t)(receiver->messages - receiver->told);
	return has_half(receiver) || taken >= (receiver->queue + 1) / 2;
}

uint16_t vb_rs_receiver_take_credits(struct vb_rs_receiver *receiver, bool *is_half, uint32_t *at)
{
	*is_half = has_half(receiver);
	*at = receiver->grant_at;
	if (*is_half) {
		receiver->read -= receiver->size / 2;
		receiver->granted += receiver->size / 2;
		receiver->grant_at = (receiver->grant_at + receiver->size / 2) % receiver->size;
	}
	receiver->told = receiver->messages;
	return (uint16_t)(receiver->messages + receiver->queue);
}
