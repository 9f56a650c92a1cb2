/* Parts that both carriers of UDP sockets have: making and ending one, and its descriptor.
 * Holds: the receive descriptor is the caller's and is never closed here; the sockets to send from are the carrier's.
 * Not here: the sockets to send from (send_pool.c), sending (socket_send.c), reading (socket_receive.c). */
#include "port/sockets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/invariant.h"

#define BUFFERS_BYTES ((size_t)VB_CARRIER_RX * VB_RX_BUFFER_BYTES)

static bool make_buffers(struct vb_receiver *receiver, bool with_channel)
{
	/* Pages of buffers that are never filled are never touched. */
	void *buffers = mmap(NULL, BUFFERS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffers == MAP_FAILED)
		return false;
	receiver->buffers = buffers;
	receiver->carried = with_channel ? calloc(VB_CARRIER_RX, sizeof(*receiver->carried)) : NULL;
	if (!with_channel || receiver->carried)
		return true;
	munmap(buffers, BUFFERS_BYTES);
	return false;
}

struct vb_sockets *vb_sockets_create(
	const struct vb_carrier_ops *ops, int receive_fd, uint16_t flow_mask, bool with_channel)
{
	struct vb_sockets *sockets = calloc(1, sizeof(*sockets));

	assert((flow_mask & (flow_mask + 1)) == 0 && flow_mask < VB_FLOWS_MAX);
	if (!sockets)
		return NULL;
	if (!make_buffers(&sockets->receiver, with_channel)) {
		free(sockets);
		return NULL;
	}
	sockets->carrier = (struct vb_carrier){ .ops = ops, .largest_train = VB_TRAIN_BYTES, .flow_mask = flow_mask };
	sockets->receive_fd = receive_fd;
	vb_receiver_init(&sockets->receiver);
	vb_send_pool_init(&sockets->sender.pool, flow_mask != 0);
	return sockets;
}

unsigned vb_sockets_fds(const struct vb_carrier *carrier, int fds[VB_CARRIER_FDS])
{
	fds[0] = vb_sockets_of(carrier)->receive_fd;
	return 1;
}

void vb_sockets_abandon(struct vb_carrier *carrier, bool closes)
{
	struct vb_sockets *sockets = vb_sockets_of(carrier);
	struct vb_send_pool *pool = &sockets->sender.pool;

	for (unsigned i = 0; closes && i < pool->count; i++)
		close(pool->sockets[i].fd);
	pool->count = 0;
	memset(pool->socket_of_key, 0, sizeof(pool->socket_of_key));
	sockets->receive_fd = -1;
	assert(pool->count == 0);
}

void vb_sockets_close(struct vb_carrier *carrier)
{
	struct vb_sockets *sockets = vb_sockets_of(carrier);

	vb_sockets_abandon(carrier, true);
	munmap(sockets->receiver.buffers, BUFFERS_BYTES);
	free(sockets->receiver.carried);
	free(sockets);
}
