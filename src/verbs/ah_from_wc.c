/* Addressing the sender of a received datagram: from the 40 bytes in front of it, which hold an IPv6 header, or 20
 * undefined bytes and an IPv4 header. RoCEv2 annex A17.4.5.2. */
#include <endian.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>
#include "verbs/objects.h"

/* The congestion bits are the packet's, not the reply's. */
#define DSCP_MASK 0xFC

static bool checksum_is_right(const struct iphdr *header)
{
	const uint8_t *bytes = (const uint8_t *)header;
	uint32_t sum = 0;
	for (unsigned i = 0; i < sizeof(*header); i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return sum == 0xFFFF;
}

/* 4, 6, or 0 for neither. If the undefined bytes look like IPv6, the IPv4 checksum decides. */
static int ip_version(const struct ibv_grh *grh, const struct iphdr *ipv4)
{
	if (be32toh(grh->version_tclass_flow) >> 28 != 6)
		return ipv4->version == 4 ? 4 : 0;
	return ipv4->version == 4 && ipv4->ihl == 5 && checksum_is_right(ipv4) ? 4 : 6;
}

static void map_ipv4(uint32_t address, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &address, sizeof(address));
}

/* The index of our address that the datagram came to; -1: it came to none, but to a multicast group. */
static int find_gid_index(struct ibv_context *context, const union ibv_gid *gid)
{
	struct vb_device_info info;
	vb_device_query(vb_host_of(context), &info);
	for (unsigned i = 0; i < info.gid_count; i++) {
		if (memcmp(info.gids[i].gid.raw, gid->raw, sizeof(gid->raw)) == 0)
			return (int)i;
	}
	return -1;
}

VB_EXPORT int ibv_init_ah_from_wc(
	struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_init_ah_from_wc))
		return -1;
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;

	struct iphdr ipv4;
	memcpy(&ipv4, (const char *)grh + sizeof(*grh) - sizeof(ipv4), sizeof(ipv4));
	uint32_t first_word = be32toh(grh->version_tclass_flow);
	union ibv_gid local;
	int version = ip_version(grh, &ipv4);
	if (version == 4) {
		map_ipv4(ipv4.daddr, &local);
		map_ipv4(ipv4.saddr, &attr->grh.dgid);
		attr->grh.hop_limit = ipv4.ttl;
		attr->grh.traffic_class = ipv4.tos & DSCP_MASK;
	} else if (version == 6) {
		local = grh->dgid;
		attr->grh.dgid = grh->sgid;
		attr->grh.flow_label = first_word & 0xFFFFF;
		attr->grh.hop_limit = grh->hop_limit;
		attr->grh.traffic_class = first_word >> 20 & DSCP_MASK;
	} else {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	int index = find_gid_index(context, &local);
	if (index < 0) {
		errno = EINVAL;
		return -1;
	}
	attr->is_global = 1;
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

VB_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	if (vb_call_fails(VB_CALL_ibv_create_ah_from_wc))
		return NULL;
	struct ibv_ah_attr attr;
	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
