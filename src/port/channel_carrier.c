/* The carrier of a forwarder's channel: takes apart what the forwarder has put before each datagram.
 * Holds: a channel whose forwarder has died is read no more until another one is there, and wakes nobody.
 * Not here: sending (socket_send.c), reading (socket_receive.c), the forwarder (broker/forwarder.c). */
#include "port/channel_carrier.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/invariant.h"
#include "port/sockets.h"

/* The channel has ended. Its descriptor is made one that is never readable. */
static void cut_off(struct vb_sockets *sockets)
{
	int quiet = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert(!sockets->is_cut);
	sockets->is_cut = true;
	sockets->carrier.fds_version++;
	if (quiet < 0)
		return;
	dup3(quiet, sockets->receive_fd, O_CLOEXEC);
	close(quiet);
}

/* Afterwards it looks as if the kernel had just written it here. A message that has no header is an empty datagram. */
static void unpack(struct vb_receiver *receiver, unsigned i)
{
	struct mmsghdr *header = &receiver->headers[i];
	struct vb_carried *carried = &receiver->carried[i];
	bool is_whole = header->msg_len >= sizeof(*carried) && carried->name_length <= sizeof(carried->name) &&
			carried->control_length <= sizeof(carried->control);

	header->msg_len = is_whole ? header->msg_len - (unsigned)sizeof(*carried) : 0;
	header->msg_hdr.msg_name = &carried->name;
	header->msg_hdr.msg_namelen = is_whole ? carried->name_length : 0;
	header->msg_hdr.msg_control = carried->control;
	header->msg_hdr.msg_controllen = is_whole ? carried->control_length : 0;
}

static void unpack_all(struct vb_sockets *sockets)
{
	struct vb_receiver *receiver = &sockets->receiver;

	for (unsigned i = 0; i < receiver->count; i++) {
		if (receiver->headers[i].msg_len == 0) { /* the channel's end */
			cut_off(sockets);
			receiver->count = i;
			return;
		}
		unpack(receiver, i);
		assert(receiver->headers[i].msg_len <= VB_RX_BUFFER_BYTES);
	}
}

static unsigned receive(struct vb_carrier *carrier, struct vb_rx_message messages[VB_CARRIER_RX])
{
	struct vb_sockets *sockets = vb_sockets_of(carrier);

	if (sockets->is_cut)
		return 0;
	vb_sockets_read(sockets);
	unpack_all(sockets);
	vb_receiver_describe(&sockets->receiver, messages);
	return sockets->receiver.count;
}

/* The socket is the forwarder's, which passes on with each datagram what the kernel said of drops. */
static uint64_t overflow(const struct vb_carrier *carrier)
{
	return vb_sockets_of(carrier)->receiver.overflow;
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

int vb_channel_carrier_open(int channel_fd, uint16_t flow_mask, struct vb_carrier **carrier)
{
	struct vb_sockets *sockets = vb_sockets_create(&operations, channel_fd, flow_mask, true);

	if (!sockets)
		return -ENOMEM;
	assert(sockets->receiver.carried && !sockets->is_cut);
	*carrier = &sockets->carrier; /* the socket is its forwarder's to prepare */
	return 0;
}

void vb_channel_carrier_renew(struct vb_carrier *carrier)
{
	struct vb_sockets *sockets = vb_sockets_of(carrier);

	assert(carrier->ops == &operations);
	carrier->fds_version++;
	sockets->is_cut = sockets->receiver.knows_overflow = false;
	sockets->receiver.want = 1;
}
