/* The queue pairs of a datagram rsocket: one for each of our addresses, with the buffers of its receives and sends.
 * Not here: peers, and when to send (datagram_io.c). */
#include "rsocket/datagram.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/gid.h"
#include "base/invariant.h"

#define IS_RECEIVE (1ull << 63)

enum {
	SLOT = VB_RS_DATAGRAM_MAX + 64, /* a receive begins with the GRH */
	POLL_AT_ONCE = 16,
	PORT = 1,
	HOP_LIMIT = 64,
	RESOLVE_MS = 1000,
};

static uint8_t *send_slot(struct vb_rs_ud *ud, uint32_t index)
{
	return ud->memory + (size_t)(ud->receives + index) * SLOT;
}

uint8_t *vb_rs_ud_received(struct vb_rs_ud *ud, uint32_t index)
{
	return ud->memory + (size_t)index * SLOT;
}

/* ---- Making one -------------------------------------------------------------------------------------------------- */

static int open_memory(struct vb_rs_ud *ud)
{
	ud->room = (size_t)(ud->receives + ud->sends) * SLOT;
	void *pages = mmap(NULL, ud->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -errno;
	ud->memory = pages;
	ud->mr = ibv_reg_mr(ud->id->pd, ud->memory, ud->room, IBV_ACCESS_LOCAL_WRITE);
	if (!ud->mr)
		return -errno;
	ud->free_sends = calloc(ud->sends, sizeof(*ud->free_sends));
	if (!ud->free_sends)
		return -ENOMEM;
	for (uint32_t i = 0; i < ud->sends; i++)
		ud->free_sends[i] = i;
	ud->free_count = ud->sends;
	return 0;
}

static int open_completions(struct vb_rs_ud *ud)
{
	ud->completions = ibv_create_comp_channel(ud->id->verbs);
	if (!ud->completions)
		return -errno;
	int flags = fcntl(ud->completions->fd, F_GETFL);
	if (flags < 0 || fcntl(ud->completions->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	ud->cq = ibv_create_cq(ud->id->verbs, (int)(ud->receives + ud->sends), ud, ud->completions, 0);
	return ud->cq ? 0 : -errno;
}

static int open_qp(struct vb_rs_ud *ud)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = ud,
		.send_cq = ud->cq,
		.recv_cq = ud->cq,
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = ud->sends, .max_recv_wr = ud->receives, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	return rdma_create_qp(ud->id, NULL, &attr) ? -errno : 0;
}

/* Finds the MTU and the index of the address. The device has replaced a loopback address by one of its own. */
static int find_port(struct vb_rs_ud *ud)
{
	struct ibv_port_attr port;
	union ibv_gid gid, wanted = ud->id->route.addr.addr.ibaddr.sgid;

	if (ibv_query_port(ud->id->verbs, PORT, &port))
		return -errno;
	ud->mtu = 128u << port.active_mtu;
	for (int i = 0; i < port.gid_tbl_len && i < 256; i++) {
		if (ibv_query_gid(ud->id->verbs, PORT, i, &gid) || memcmp(&gid, &wanted, sizeof(gid)))
			continue;
		ud->gid_index = (uint8_t)i;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

int vb_rs_ud_give_back(struct vb_rs_ud *ud, uint32_t index)
{
	struct ibv_sge sge = { (uintptr_t)vb_rs_ud_received(ud, index), VB_RS_GRH + VB_RS_DATAGRAM_MAX, ud->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = IS_RECEIVE | index, .sg_list = &sge, .num_sge = 1 };
	return -ibv_post_recv(ud->id->qp, &wr, &bad);
}
_Static_assert(VB_RS_GRH + VB_RS_DATAGRAM_MAX <= SLOT, "a receive fits into its slot");

/* The address is resolved to itself, so that a loopback address gets a device, too: rdma_bind_addr would leave it
 * without one. The answer is there at once. */
static int open_id(struct vb_rs_ud *ud)
{
	if (rdma_create_id(NULL, &ud->id, ud, RDMA_PS_UDP))
		return -errno;
	return rdma_resolve_addr(ud->id, &ud->local.any, &ud->local.any, RESOLVE_MS) ? -errno : 0;
}

static int open_ud(struct vb_rs_ud *ud, const struct vb_rs_options *options)
{
	ud->receives = options->receive_queue;
	ud->sends = options->send_queue;
	int error = open_id(ud);
	if (!error)
		error = find_port(ud);
	if (!error)
		error = open_completions(ud);
	if (!error)
		error = open_qp(ud);
	if (!error)
		error = open_memory(ud);
	for (uint32_t i = 0; !error && i < ud->receives; i++)
		error = vb_rs_ud_give_back(ud, i);
	return error;
}

void vb_rs_ud_close(struct vb_rs_ud *ud)
{
	vb_list_remove(&ud->link);
	if (ud->id && ud->id->qp)
		rdma_destroy_qp(ud->id);
	if (ud->cq)
		ibv_destroy_cq(ud->cq);
	if (ud->completions)
		ibv_destroy_comp_channel(ud->completions);
	if (ud->mr)
		ibv_dereg_mr(ud->mr);
	if (ud->memory)
		munmap(ud->memory, ud->room);
	if (ud->id)
		rdma_destroy_id(ud->id);
	free(ud->free_sends);
	free(ud);
}

static struct vb_rs_ud *find(struct vb_list *uds, const union vb_rs_address *local)
{
	vb_list_for_each (link, uds) {
		struct vb_rs_ud *ud = vb_container_of(link, struct vb_rs_ud, link);
		if (vb_rs_address_equal(&ud->local, local, false))
			return ud;
	}
	return NULL;
}

int vb_rs_ud_get(struct vb_rsocket *rs, struct vb_list *uds, const union vb_rs_address *local, struct vb_rs_ud **found)
{
	*found = find(uds, local);
	if (*found)
		return 0;
	struct vb_rs_ud *ud = calloc(1, sizeof(*ud));
	if (!ud)
		return -ENOMEM;
	vb_list_init(&ud->link);
	ud->local = *local;
	ud->local.ipv4.sin_port = 0;
	int error = open_ud(ud, &rs->options);
	if (!error)
		error = vb_rs_watch(rs, ud->completions->fd);
	if (error) {
		vb_rs_ud_close(ud);
		return error;
	}
	vb_list_add_tail(uds, &ud->link);
	*found = ud;
	return 0;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

struct ibv_ah *vb_rs_ud_create_ah(struct vb_rs_ud *ud, const union vb_rs_address *to)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = PORT,
		.grh = { .dgid = vb_rs_address_gid(to), .sgid_index = ud->gid_index, .hop_limit = HOP_LIMIT },
	};
	struct vb_gid peer;

	memcpy(peer.raw, attr.grh.dgid.raw, sizeof(peer.raw));
	if (vb_gid_is_loopback(&peer)) /* this host: its devices need not have that address */
		attr.grh.dgid = ud->id->route.addr.addr.ibaddr.sgid;
	return ibv_create_ah(ud->id->pd, &attr);
}

int vb_rs_ud_send(struct vb_rs_ud *ud, struct ibv_ah *ah, uint32_t qpn, const uint8_t *header, size_t header_length,
	const struct iovec *iov, size_t count, size_t length)
{
	if (!ud->free_count)
		return -EAGAIN;
	uint32_t index = ud->free_sends[ud->free_count - 1];
	uint8_t *to = send_slot(ud, index);
	struct ibv_sge sge = { (uintptr_t)to, (uint32_t)(header_length + length), ud->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = index,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = VB_RS_QKEY },
	};

	memcpy(to, header, header_length);
	to += header_length;
	for (size_t i = 0; i < count; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	int error = ibv_post_send(ud->id->qp, &wr, &bad);
	if (!error)
		ud->free_count--;
	return -error;
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

/* An error may lose a datagram; it stops the queue pair, which is not used again. */
static void complete(struct vb_rsocket *rs, struct vb_rs_ud *ud, const struct ibv_wc *wc, vb_rs_ud_arrive *arrive)
{
	bool is_receive = wc->wr_id & IS_RECEIVE;

	if (wc->status != IBV_WC_SUCCESS)
		ud->is_broken = true;
	assert(is_receive || ud->free_count < ud->sends);
	if (!is_receive)
		ud->free_sends[ud->free_count++] = (uint32_t)wc->wr_id;
	else if (wc->status == IBV_WC_SUCCESS && wc->byte_len > VB_RS_GRH)
		arrive(rs, ud, (uint32_t)wc->wr_id, wc->byte_len - VB_RS_GRH);
	else if (wc->status == IBV_WC_SUCCESS)
		vb_rs_ud_give_back(ud, (uint32_t)wc->wr_id);
}

void vb_rs_ud_poll(struct vb_rsocket *rs, struct vb_rs_ud *ud, vb_rs_ud_arrive *arrive)
{
	struct ibv_wc wc[POLL_AT_ONCE];
	int n;

	do {
		n = ibv_poll_cq(ud->cq, POLL_AT_ONCE, wc);
		for (int i = 0; i < n; i++)
			complete(rs, ud, &wc[i], arrive);
	} while (n == POLL_AT_ONCE);
}

bool vb_rs_ud_take_events(struct vb_rs_ud *ud)
{
	struct ibv_cq *cq;
	void *context;
	bool was_any = false;

	while (ibv_get_cq_event(ud->completions, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		ud->is_armed = false;
		was_any = true;
	}
	return was_any;
}

bool vb_rs_ud_arm(struct vb_rs_ud *ud)
{
	if (ud->is_armed || ibv_req_notify_cq(ud->cq, 0))
		return false;
	return ud->is_armed = true;
}
