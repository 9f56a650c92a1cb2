/* The peers of a datagram rsocket: the address of ours that reaches each, and its queue pair's number once it has told
 * that. */
#include "rsocket/datagram.h"

#include <stdlib.h>
#include <string.h>
#include "os/clock.h"
#include "os/route.h"

enum { PEERS_MAX = 65536 };

static struct vb_list *bucket_of(struct rs_datagram *dg, const union vb_rs_address *address)
{
	union ibv_gid gid = vb_rs_address_gid(address);
	uint32_t sum = address->ipv4.sin_port;
	for (int i = 0; i < 16; i++)
		sum = sum * 31 + gid.raw[i];
	return &dg->peers[sum % VB_RS_BUCKETS];
}

/* The address of ours that reaches it, by the kernel's routes. */
static int source_for(struct vb_rsocket *rs, const union vb_rs_address *to, union vb_rs_address *local)
{
	union vb_rs_address own;
	struct sockaddr_storage source;
	socklen_t length = sizeof(own);

	memset(&own, 0, sizeof(own));
	if (getsockname(rs->datagram->udp, &own.any, &length))
		return -errno;
	const int error = vb_route_source(&to->any, &own.any, &source);
	if (!error)
		memcpy(local, &source, sizeof(*local));
	return error;
}

static void forget_peer(struct rs_datagram *dg, struct vb_rs_peer *peer)
{
	vb_list_remove(&peer->link);
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	else
		dg->unanswered--;
	dg->peer_count--;
	free(peer);
}

void vb_rs_forget_peers(struct rs_datagram *dg)
{
	for (int i = 0; i < VB_RS_BUCKETS; i++) {
		vb_list_for_each_safe (link, &dg->peers[i])
			forget_peer(dg, vb_container_of(link, struct vb_rs_peer, link));
	}
}

static int make_peer(
	struct vb_rsocket *rs, const union vb_rs_address *address, struct vb_list *bucket, struct vb_rs_peer **made)
{
	struct rs_datagram *dg = rs->datagram;
	union vb_rs_address local;
	struct vb_rs_ud *ud;

	int error = source_for(rs, address, &local);
	if (!error)
		error = vb_rs_ud_get(rs, &dg->uds, &local, &ud);
	if (error)
		return error;
	if (dg->peer_count >= PEERS_MAX)
		vb_rs_forget_peers(dg);
	struct vb_rs_peer *peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	peer->address = *address;
	peer->ud = ud;
	vb_list_add_tail(bucket, &peer->link);
	dg->peer_count++;
	dg->unanswered++;
	*made = peer;
	return 0;
}

int vb_rs_get_peer(struct vb_rsocket *rs, const union vb_rs_address *address, struct vb_rs_peer **found)
{
	struct vb_list *bucket = bucket_of(rs->datagram, address);

	vb_list_for_each (link, bucket) {
		*found = vb_container_of(link, struct vb_rs_peer, link);
		if (vb_rs_address_equal(&(*found)->address, address, true))
			return 0;
	}
	return make_peer(rs, address, bucket, found);
}

void vb_rs_learn_qpn(struct rs_datagram *dg, struct vb_rs_peer *peer, uint32_t qpn)
{
	peer->known_us = vb_clock_us();
	peer->qpn = qpn;
	if (peer->ah)
		return;
	peer->ah = vb_rs_ud_create_ah(peer->ud, &peer->address);
	if (peer->ah)
		dg->unanswered--;
}
