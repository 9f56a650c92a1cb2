/* The port of a live process: chooses the carrier of its slot and puts framing above it.
 * Not here: what either does (framing.h, carrier.h). */
#include "port/udp.h"

#include "base/invariant.h"
#include "port/channel_carrier.h"
#include "port/framing.h"
#include "port/udp_carrier.h"

int vb_udp_open(const struct vb_udp_config *config, struct vb_port **port)
{
	struct vb_framing_config framing = { .slot = config->slot,
		.pcap = config->pcap,
		.faults = config->faults,
		.single_datagrams = config->single_datagrams,
		.takes_marks = config->takes_marks };
	struct vb_carrier *carrier = NULL;
	int rc = config->is_carried ? vb_channel_carrier_open(config->receive_fd, config->flow_mask, &carrier)
				    : vb_udp_carrier_open(config->receive_fd, config->flow_mask, &carrier);

	if (rc < 0)
		return rc;
	rc = vb_framing_open(&framing, carrier, port);
	if (rc < 0)
		carrier->ops->close(carrier);
	return rc;
}

void vb_udp_renew_channel(struct vb_port *port)
{
	struct vb_framing *framing = vb_framing_of(port);
	unsigned before = port->fds_version;

	vb_channel_carrier_renew(framing->carrier);
	vb_framing_heed_carrier(framing);
	assert(port->fds_version != before);
}
