/* See flow_mode.h. */
#include "sim/flow_mode.h"

#include <errno.h>
#include <string.h>
#include "net/outages.h"
#include "sim/traffic.h"

static bool has_faults_of_packets(const struct scenario *scenario)
{
	for (uint32_t i = 0; i < scenario->fault_count; i++)
		if (fault_is_of_packets(&scenario->faults[i].fault))
			return true;
	return false;
}

int flow_mode_check(const struct scenario *scenario, char *why, size_t size)
{
	const struct switch_profile *profile = &scenario->topology.profile;
	const struct {
		bool is_wrong;
		const char *what;
	} wrong[] = {
		{ has_faults_of_packets(scenario), "network.faults: run.mode flows sees when a link is down, and no "
						   "faults of packets; leave those out, or run.mode: packets" },
		{ scenario->endpoint == FABRIC_TCP, "transport.endpoint: TCP is not modelled in run.mode flows; engine "
						    "or ideal, or run.mode: packets" },
		{ scenario->endpoint == FABRIC_ENGINE && scenario->behind == BEHIND_SOCKETS,
			"transport.behind: sockets are not modelled in run.mode flows; nic, or run.mode: packets" },
		{ profile->routing == ROUTING_ECMP && profile->hash == HASH_NS3,
			"network.switch.hash: ns3 is for packets; own, or run.mode: packets" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (wrong[i].is_wrong) {
			snprintf(why, size, "%s", wrong[i].what);
			return -EINVAL;
		}
	return 0;
}

static bool shares_classes(const struct simulation *simulation)
{
	const uint8_t classes = traffic_of(simulation).classes;
	return (classes & (classes - 1)) != 0;
}

static bool is_unfair(const struct simulation *simulation)
{
	const char *name = simulation->scenario->cc.algorithm->name;
	return simulation->scenario->endpoint == FABRIC_ENGINE &&
	       (strcmp(name, "dcqcn") == 0 || strcmp(name, "timely") == 0);
}

const char *flow_mode_label(const struct simulation *simulation, unsigned number)
{
	const enum routing routing = simulation->scenario->topology.profile.routing;
	const struct scenario *scenario = simulation->scenario;
	const struct {
		bool is_wanted;
		const char *label;
	} labels[] = {
		{ true, "messages as flows that share links max-min fairly: no packets, queues, marks, pauses or "
			"drops" },
		{ is_unfair(simulation), "the congestion control is not max-min fair: by packets, messages that "
					 "contend may take 40% more or "
					 "less, and far longer where its parameters do not fit" },
		{ shares_classes(simulation), "traffic classes share links as one: no class goes before another" },
		{ scenario->first_window || scenario->largest_window, "windows hold no flow back" },
		{ routing != ROUTING_ECMP, "spread evenly over all shortest ways, as if NICs put packets in order: "
					   "go-back-N takes many times as long" },
	};

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (labels[i].is_wanted && number-- == 0)
			return labels[i].label;
	return NULL;
}
