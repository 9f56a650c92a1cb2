/* Mappings of a stream (mapping.c): under the rsocket's lock. */
#ifndef VB_RSOCKET_MAPPING_H
#define VB_RSOCKET_MAPPING_H

#include "rsocket/objects.h"

struct vb_rs_mapping {
	struct vb_list link;
	struct ibv_mr *mr;
	void *buf;
	size_t length;
	int64_t index; /* of the peer's table; -1: for us alone */
};

/* A free entry of the peer's table. 0 or -errno. */
int vb_rs_mapping_take_index(struct vb_rsocket *rs, int64_t *index);
/* Gives its entry back, too. */
void vb_rs_mapping_free(struct vb_rsocket *rs, struct vb_rs_mapping *mapping);
/* By the peer's mappings: how many bytes can be written from offset on, and where. */
uint32_t vb_rs_mapping_find(const struct vb_rsocket *rs, uint64_t offset, struct vb_rs_region *place);

#endif
