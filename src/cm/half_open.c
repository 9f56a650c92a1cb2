/* Requests that are not connections yet, by source address. At the limit, a new request takes the place of the oldest
 * one from a source that has more requests than its own. So a flood from a few addresses displaces only itself; a flood
 * from ever new addresses displaces the requests that have waited longest, and an honest one seldom waits long.
 * Holds: a source has at least one request, and is in the row for their number; each half-open id is in the list of its
 * source, the oldest first, or in none if memory was short. */
#include <stdlib.h>
#include "base/invariant.h"
#include "cm/id.h"

int vb_cm_half_open_init(struct vb_cm_half_open *half_open, uint32_t limit)
{
	for (unsigned i = 0; i < VB_CM_ROWS; i++)
		vb_list_init(&half_open->rows[i]);
	half_open->limit = limit;
	return vb_cm_table_init(&half_open->by_source);
}

void vb_cm_half_open_deinit(struct vb_cm_half_open *half_open)
{
	vb_cm_table_deinit(&half_open->by_source);
}

/* 0: none, 1: one, 2: two or three, 3: four to seven. */
static unsigned row_of(uint32_t count)
{
	return count ? 32 - (unsigned)__builtin_clz(count) : 0;
}

static struct vb_cm_source *find(struct vb_cm *cm, const struct vb_gid *gid)
{
	struct vb_cm_node *node = vb_cm_table_find(&cm->half_open.by_source, vb_cm_hash(cm, 0, 0, gid));
	for (; node; node = vb_cm_table_next(node)) {
		struct vb_cm_source *source = vb_container_of(node, struct vb_cm_source, by_gid);
		if (vb_gid_equal(&source->gid, gid))
			return source;
	}
	return NULL;
}

static struct vb_cm_source *create(struct vb_cm *cm, const struct vb_gid *gid)
{
	struct vb_cm_source *source = calloc(1, sizeof(*source));
	if (!source)
		return NULL;
	source->gid = *gid;
	vb_list_init(&source->row);
	vb_list_init(&source->ids);
	vb_cm_table_add(&cm->half_open.by_source, &source->by_gid, vb_cm_hash(cm, 0, 0, gid));
	return source;
}

static void set_count(struct vb_cm *cm, struct vb_cm_source *source, uint32_t count)
{
	unsigned row = row_of(count);
	if (row != row_of(source->count)) {
		vb_list_remove(&source->row);
		vb_list_add_tail(&cm->half_open.rows[row], &source->row);
	}
	source->count = count;
	assert(vb_list_linked(&source->row));
}

void vb_cm_half_open_add(struct vb_cm_id *id)
{
	struct vb_cm_source *source = find(id->cm, &id->path.remote);
	assert(!vb_list_linked(&id->of_source));
	id->cm->half_open.count++;
	if (!source)
		source = create(id->cm, &id->path.remote);
	if (!source)
		return;
	vb_list_add_tail(&source->ids, &id->of_source);
	set_count(id->cm, source, source->count + 1);
}

void vb_cm_half_open_remove(struct vb_cm_id *id)
{
	struct vb_cm_source *source = find(id->cm, &id->path.remote);
	assert(id->cm->half_open.count > 0);
	id->cm->half_open.count--;
	if (!vb_list_linked(&id->of_source))
		return;
	vb_list_remove(&id->of_source);
	assert(source && source->count > 0);
	if (source->count > 1) {
		set_count(id->cm, source, source->count - 1);
		return;
	}
	assert(vb_list_empty(&source->ids));
	vb_list_remove(&source->row);
	vb_cm_table_remove(&id->cm->half_open.by_source, &source->by_gid);
	free(source);
}

/* The victim's source is in a higher row than the newcomer's, so that sources with about as many requests do not
 * displace each other. */
struct vb_cm_id *vb_cm_half_open_victim(struct vb_cm *cm, const struct vb_gid *newcomer)
{
	const struct vb_cm_source *own = find(cm, newcomer);
	unsigned lowest = row_of(own ? own->count : 0);
	for (unsigned row = VB_CM_ROWS - 1; row > lowest; row--) {
		if (vb_list_empty(&cm->half_open.rows[row]))
			continue;
		struct vb_cm_source *source = vb_container_of(cm->half_open.rows[row].next, struct vb_cm_source, row);
		assert(!vb_list_empty(&source->ids));
		return vb_container_of(source->ids.next, struct vb_cm_id, of_source);
	}
	return NULL;
}
