/* The port's tables: GIDs (all of type RoCE v2) and P_Keys (one, the default). */
#include <string.h>
#include "verbs/objects.h"

/* The private query numbers types differently from struct ibv_gid_entry. */
enum { PRIVATE_GID_TYPE_ROCE_V1 = 0, PRIVATE_GID_TYPE_ROCE_V2 = 1 };
enum { ENTRY_GID_TYPE_ROCE_V2 = 2 };

/* -1 with errno, as the old queries do. */
static int fail(int error)
{
	errno = error;
	return -1;
}

static int read_gid(struct ibv_context *context, uint32_t port, uint32_t index, struct vb_gid *gid, uint32_t *ifindex)
{
	if (port != VB_PORT || index >= VB_MAX_GIDS)
		return EINVAL;
	struct vb_device_info info;
	vb_device_query(vb_host_of(context), &info);
	*gid = index < info.gid_count ? info.gids[index].gid : (struct vb_gid){ 0 };
	*ifindex = info.ifindex;
	return 0;
}

/* An empty entry reads as the zero GID. */
VB_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	if (vb_call_fails(VB_CALL_ibv_query_gid))
		return -1;
	struct vb_gid found;
	uint32_t ifindex;
	int err = read_gid(context, port, (uint32_t)index, &found, &ifindex);
	if (err)
		return fail(err);
	memcpy(gid->raw, found.raw, sizeof(gid->raw));
	return 0;
}

/* Writes one entry of the caller's size. */
static void put_entry(void *to, size_t size, const struct ibv_gid_entry *entry)
{
	memset(to, 0, size);
	memcpy(to, entry, size < sizeof(*entry) ? size : sizeof(*entry));
}

VB_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
	uint32_t flags, size_t entry_size)
{
	if (vb_call_fails(VB_CALL_ibv_query_gid_ex))
		return errno;
	if (flags)
		return EOPNOTSUPP;
	if (entry_size == 0)
		return EINVAL;
	struct vb_gid gid;
	struct ibv_gid_entry found = { .gid_index = index, .port_num = port, .gid_type = ENTRY_GID_TYPE_ROCE_V2 };
	int err = read_gid(context, port, index, &gid, &found.ndev_ifindex);
	if (err)
		return err;
	if (vb_gid_is_zero(&gid))
		return ENODATA;
	memcpy(found.gid.raw, gid.raw, sizeof(found.gid.raw));
	put_entry(entry, entry_size, &found);
	return 0;
}

VB_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
	uint32_t flags, size_t entry_size)
{
	if (vb_call_fails(VB_CALL_ibv_query_gid_table))
		return -errno;
	if (flags)
		return -EOPNOTSUPP;
	if (entry_size == 0)
		return -EINVAL;
	struct vb_device_info info;
	vb_device_query(vb_host_of(context), &info);
	size_t count = 0;
	for (unsigned i = 0; i < info.gid_count; i++) {
		if (vb_gid_is_zero(&info.gids[i].gid))
			continue;
		if (count == max_entries)
			return -EINVAL;
		struct ibv_gid_entry found = {
			.gid_index = i,
			.port_num = VB_PORT,
			.gid_type = ENTRY_GID_TYPE_ROCE_V2,
			.ndev_ifindex = info.ifindex,
		};
		memcpy(found.gid.raw, info.gids[i].gid.raw, sizeof(found.gid.raw));
		put_entry((char *)entries + count * entry_size, entry_size, &found);
		count++;
	}
	return (ssize_t)count;
}

int vb_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	struct vb_gid gid;
	uint32_t ifindex;
	int err = read_gid(context, port, index, &gid, &ifindex);
	if (err)
		return fail(err);
	*type = vb_gid_is_zero(&gid) ? PRIVATE_GID_TYPE_ROCE_V1 : PRIVATE_GID_TYPE_ROCE_V2;
	return 0;
}

VB_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (vb_call_fails(VB_CALL_ibv_query_pkey))
		return -1;
	if (port != VB_PORT || index < 0 || index >= VB_PKEYS)
		return fail(EINVAL);
	*pkey = VB_PKEY_DEFAULT; /* the same in either byte order */
	return 0;
}

VB_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (vb_call_fails(VB_CALL_ibv_get_pkey_index))
		return -1;
	if (port != VB_PORT || pkey != VB_PKEY_DEFAULT)
		return fail(EINVAL);
	return 0;
}
