/* The carrier of a slot's UDP socket, and what its kernel has dropped.
 * Not here: sending (socket_send.c), reading (socket_receive.c). */
#include "port/udp_carrier.h"

#include <linux/sock_diag.h>
#include "base/invariant.h"
#include "port/receive_socket.h"
#include "port/sockets.h"

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

/* How many datagrams the kernel has dropped at this socket since it was made, whichever process held it. */
static bool kernel_drops(int fd, uint32_t *drops)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &length) < 0 || length <= SK_MEMINFO_DROPS * sizeof(info[0]))
		return false;
	*drops = info[SK_MEMINFO_DROPS];
	return true;
}

static unsigned receive(struct vb_carrier *carrier, struct vb_rx_message messages[VB_CARRIER_RX])
{
	struct vb_sockets *sockets = vb_sockets_of(carrier);

	assert(!sockets->is_cut);
	vb_sockets_read(sockets);
	vb_receiver_describe(&sockets->receiver, messages);
	return sockets->receiver.count;
}

/* The kernel tells drops with the next datagram that is received, and there may not have been one since. */
static uint64_t overflow(const struct vb_carrier *carrier)
{
	const struct vb_sockets *sockets = vb_sockets_of(carrier);
	const struct vb_receiver *receiver = &sockets->receiver;
	uint32_t drops;

	if (!kernel_drops(sockets->receive_fd, &drops))
		return receiver->overflow;
	return receiver->overflow + (drops - receiver->overflow_seen);
}

static const struct vb_carrier_ops operations = {
	.route = vb_sockets_route,
	.send = vb_sockets_send,
	.receive = receive,
	.fds = vb_sockets_fds,
	.overflow = overflow,
	.abandon = vb_sockets_abandon,
	.close = vb_sockets_close,
};

int vb_udp_carrier_open(int receive_fd, uint16_t flow_mask, struct vb_carrier **carrier)
{
	struct vb_sockets *sockets = vb_sockets_create(&operations, receive_fd, flow_mask, false);

	if (!sockets)
		return -ENOMEM;
	vb_prepare_receive_socket(receive_fd);
	sockets->receiver.knows_overflow = true;
	kernel_drops(receive_fd, &sockets->receiver.overflow_seen);
	assert(!sockets->receiver.carried);
	*carrier = &sockets->carrier;
	return 0;
}
