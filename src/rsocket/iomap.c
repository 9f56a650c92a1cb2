/* Direct placement: riomap registers a buffer and tells the peer where it is; riowrite writes into the peer's buffer.
 * Holds: the peer learns of a mapping by a message in the stream, ahead of all data sent after riomap. */
#include "rsocket/mapping.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_MAX = 32768 };

/* ---- Mapping ----------------------------------------------------------------------------------------------------- */

static bool may_tell(const struct vb_rsocket *rs)
{
	return !vb_rs_can_write(rs) ||
	       (rs->control_used < VB_RS_CONTROL_SLOTS && rs->sender.sequence != rs->sender.limit);
}

static int tell_peer(struct vb_rsocket *rs, const struct vb_rs_mapping *mapping, uint64_t offset)
{
	uint8_t entry[VB_RS_MAPPING_LENGTH];
	struct vb_rs_region region = { (uintptr_t)mapping->buf, mapping->mr->rkey, (uint32_t)mapping->length };

	int error = vb_rs_wait(rs, may_tell, false, rs->options.send_timeout_us);
	if (error)
		return error;
	if (!vb_rs_can_write(rs))
		return -EPIPE;
	vb_rs_mapping_encode(offset, &region, rs->remote.is_big_endian, entry);
	struct vb_rs_post post = {
		.op = VB_RS_MAPPING,
		.value = (uint32_t)mapping->index,
		.from = entry,
		.length = sizeof(entry),
		.remote_addr = rs->remote.targets.addr + (uint64_t)rs->remote.targets.length * VB_RS_REGION_LENGTH +
			       (uint64_t)mapping->index * VB_RS_MAPPING_LENGTH,
		.remote_key = rs->remote.targets.key,
		.is_inline = true,
	};
	rs->sender.sequence++;
	return vb_rs_stream_post(rs, &post);
}

/* With sending and lock held. The offset, or -errno. */
static int64_t map(struct vb_rsocket *rs, void *buf, size_t length, int prot, int64_t offset)
{
	int access = IBV_ACCESS_LOCAL_WRITE | (prot & PROT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);

	if (rs->type != SOCK_STREAM || !vb_rs_is_connected(rs))
		return -ENOTCONN;
	struct vb_rs_mapping *mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return -ENOMEM;
	*mapping = (struct vb_rs_mapping){ .buf = buf, .length = length, .index = -1 };
	vb_list_init(&mapping->link);
	if (offset < 0)
		offset = (int64_t)(uintptr_t)buf;
	mapping->mr = ibv_reg_mr(rs->id->pd, buf, length, access);
	int error = mapping->mr ? 0 : -errno;
	if (!error && prot & PROT_WRITE)
		error = vb_rs_mapping_take_index(rs, &mapping->index);
	if (!error && prot & PROT_WRITE)
		error = tell_peer(rs, mapping, (uint64_t)offset);
	if (error) {
		vb_rs_mapping_free(rs, mapping);
		return error;
	}
	vb_list_add_tail(&rs->mappings, &mapping->link);
	return offset;
}

VB_RS_EXPORT off_t riomap(int fd, void *buf, size_t length, int prot, int flags, off_t offset)
{
	if (!buf || !length || length > UINT32_MAX || prot & ~PROT_WRITE || flags || offset < -1)
		return vb_rs_size(-EINVAL);
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	vb_rs_lock_side(rs, &rs->sending);
	int64_t result = map(rs, buf, length, prot, offset);
	vb_rs_unlock_side(rs, &rs->sending);
	vb_rs_put(rs);
	return vb_rs_size(result);
}

VB_RS_EXPORT int riounmap(int fd, void *buf, size_t length)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	int error = -EINVAL;
	pthread_mutex_lock(&rs->lock);
	vb_list_for_each (link, &rs->mappings) {
		struct vb_rs_mapping *mapping = vb_container_of(link, struct vb_rs_mapping, link);
		if (mapping->buf != buf || mapping->length != length)
			continue;
		vb_rs_mapping_free(rs, mapping);
		error = 0;
		break;
	}
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static bool may_write(const struct vb_rsocket *rs)
{
	return !vb_rs_can_write(rs) || (rs->slots && vb_rs_sender_ring_room(&rs->sender));
}

static uint32_t least(size_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

/* One WRITE of at most left bytes; how many, or -errno. */
static ssize_t write_piece(struct vb_rsocket *rs, const uint8_t *from, size_t left, uint64_t offset, int flags)
{
	struct vb_rs_region place;
	bool is_nonblocking = rs->options.is_nonblocking || flags & MSG_DONTWAIT;

	int error = vb_rs_wait(rs, may_write, is_nonblocking, rs->options.send_timeout_us);
	if (error)
		return error;
	if (!vb_rs_can_write(rs))
		return rs->state < VB_RS_CONNECTED ? -ENOTCONN : -EPIPE;
	uint32_t length =
		least(least(left, vb_rs_mapping_find(rs, offset, &place)), vb_rs_sender_ring_room(&rs->sender));
	length = least(length, PIECE_MAX);
	if (!length)
		return -EINVAL;
	uint8_t *ring = rs->send_ring + rs->sender.put_at;
	memcpy(ring, from, length);
	vb_rs_sender_ring_take(&rs->sender, length);
	struct vb_rs_post post = {
		.op = VB_RS_WRITE,
		.freed = length,
		.from = ring,
		.length = length,
		.lkey = rs->send_mr->lkey,
		.remote_addr = place.addr,
		.remote_key = place.key,
	};
	error = vb_rs_stream_post(rs, &post);
	return error ? error : (ssize_t)length;
}

VB_RS_EXPORT size_t riowrite(int fd, const void *buf, size_t count, off_t offset, int flags)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return (size_t)-1;
	size_t written = 0;
	ssize_t piece = rs->type != SOCK_STREAM ? -EOPNOTSUPP : offset < 0 ? -EINVAL : 0;
	vb_rs_lock_side(rs, &rs->sending);
	while (piece >= 0 && written < count) {
		piece = write_piece(
			rs, (const uint8_t *)buf + written, count - written, (uint64_t)offset + written, flags);
		if (piece > 0)
			written += (size_t)piece;
	}
	vb_rs_unlock_side(rs, &rs->sending);
	vb_rs_put(rs);
	return written ? written : (size_t)vb_rs_size(piece);
}
