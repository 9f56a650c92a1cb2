/* Framing: opening and closing, counters, and the table of a port.
 * Not here: packets to bytes (frame_send.c), bytes to packets (frame_receive.c), moving them (carrier.h). */
#include "port/framing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"

static_assert(VB_CARRIER_FDS <= VB_PORT_FDS, "a port lists its carrier's descriptors");

const char *const vb_port_counter_name[VB_PORT_COUNTER_COUNT] = {
#define X(name, text, meaning) text,
	VB_PORT_COUNTERS(X)
#undef X
};

static void abandon(struct vb_port *port, bool closes)
{
	struct vb_framing *framing = vb_framing_of(port);

	framing->carrier->ops->abandon(framing->carrier, closes);
	framing->config.pcap = NULL;
	port->room = 0;
}

static void close_port(struct vb_port *port)
{
	struct vb_framing *framing = vb_framing_of(port);

	framing->carrier->ops->close(framing->carrier);
	free(framing);
}

static unsigned list_fds(const struct vb_port *port, int fds[VB_PORT_FDS])
{
	const struct vb_carrier *carrier = vb_framing_of(port)->carrier;

	return carrier->ops->fds(carrier, fds);
}

static const struct vb_tx_completion *take_completions(struct vb_port *port, unsigned *count)
{
	struct vb_framing *framing = vb_framing_of(port);

	assert(framing->completion_count <= VB_BATCH_PACKETS);
	*count = framing->completion_count;
	framing->completion_count = 0;
	return framing->completions;
}

static struct vb_deadline next_deadline(const struct vb_port *port)
{
	const struct vb_faults *faults = vb_framing_of(port)->config.faults;

	return faults ? vb_faults_deadline(faults) : (struct vb_deadline){ 0 };
}

static_assert(VB_PORT_FAULT_BURSTS - VB_PORT_FAULT_DROPPED == VB_FAULT_BURSTS, "one counter for each kind");

static void count_faults(const struct vb_faults *faults, uint64_t values[VB_PORT_COUNTER_COUNT])
{
	const struct vb_bottleneck *neck = vb_faults_bottleneck(faults);

	for (unsigned kind = 0; kind < VB_FAULTS; kind++)
		values[VB_PORT_FAULT_DROPPED + kind] = vb_faults_count(faults, kind);
	values[VB_PORT_NECK_DROPS] = neck->drops;
	values[VB_PORT_NECK_MARKS] = neck->marks;
	values[VB_PORT_NECK_MEAN] = vb_bottleneck_mean(neck);
	values[VB_PORT_NECK_MOST] = neck->most;
}

static void get_counters(const struct vb_port *port, uint64_t values[VB_PORT_COUNTER_COUNT])
{
	const struct vb_framing *framing = vb_framing_of(port);

	memcpy(values, framing->counters, sizeof(framing->counters));
	values[VB_PORT_RX_OVERFLOW] = framing->carrier->ops->overflow(framing->carrier);
	if (framing->config.faults)
		count_faults(framing->config.faults, values);
}

static const struct vb_port_ops operations = {
	.receive = vb_frame_receive,
	.next_train = vb_frame_next_train,
	.send = vb_frame_send,
	.finished = take_completions,
	.fds = list_fds,
	.next_deadline = next_deadline,
	.counters = get_counters,
	.abandon = abandon,
	.close = close_port,
};

int vb_framing_open(const struct vb_framing_config *config, struct vb_carrier *carrier, struct vb_port **port)
{
	struct vb_framing *framing = calloc(1, sizeof(*framing));

	assert(carrier && carrier->ops);
	if (!framing)
		return -ENOMEM;
	framing->port = (struct vb_port){ .ops = &operations,
		.room = VB_BATCH_PACKETS,
		.largest_segment = config->single_datagrams ? 0 : carrier->largest_train };
	framing->config = *config;
	framing->carrier = carrier;
	vb_framing_heed_carrier(framing);
	*port = &framing->port;
	return 0;
}
