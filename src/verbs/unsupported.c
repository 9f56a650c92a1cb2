/* Public verbs that this device does not offer: sharing objects between processes by their numbers, and finding an
 * Ethernet address (what direct verbs need). Each answers as its manual page says. */
#include "verbs/objects.h"

VB_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	return vb_fail(EOPNOTSUPP);
}

VB_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	return vb_fail(EOPNOTSUPP);
}

VB_EXPORT void ibv_unimport_pd(struct ibv_pd *pd) {}

VB_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	return vb_fail(EOPNOTSUPP);
}

VB_EXPORT void ibv_unimport_mr(struct ibv_mr *mr) {}

VB_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return vb_fail(EOPNOTSUPP);
}

VB_EXPORT void ibv_unimport_dm(struct ibv_dm *dm) {}

VB_EXPORT int ibv_resolve_eth_l2_from_gid(
	struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return -EOPNOTSUPP;
}
