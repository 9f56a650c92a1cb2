/* The table of all keys of a scenario. Files are checked by it, `verbena sim --keys` prints it, and verbena-sim(1) is
 * compared with it. */
#include "sim/scenario.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/why.h"

static int set_switch_profile(struct scenario *scenario, const char *text, char *why, size_t size)
{
	const struct switch_profile *profile = switch_profile_find(text);

	if (profile) {
		scenario->topology.profile = *profile;
		return 0;
	}
	return why_not_among(why, (unsigned)size, switch_profile_name, "there is no such profile of a switch");
}

static int set_nic_profile(struct scenario *scenario, const char *text, char *why, size_t size)
{
	const struct nic_profile *profile = nic_profile_find(text);

	if (profile) {
		scenario->topology.nic = *profile;
		return 0;
	}
	return why_not_among(why, (unsigned)size, nic_profile_name, "there is no such profile of a NIC");
}

static const char *gpu_name(uint32_t number)
{
	return gpu_of(number) ? gpu_of(number)->name : NULL;
}

static int set_gpu(struct scenario *scenario, const char *text, char *why, size_t size)
{
	const struct gpu *gpu = gpu_find(text);

	if (gpu) {
		scenario->gpu = gpu;
		scenario->hosts.gpus = gpu->domain;
		scenario->hosts.scale_up = (uint64_t)gpu->scale_up_gb_s * 8000000000u;
		scenario->hosts.capability = gpu->capability;
		scenario->hosts.reduces = gpu->reduces;
		return 0;
	}
	return why_not_among(why, (unsigned)size, gpu_name, "there is no such GPU");
}

static int set_dimensions(struct scenario *scenario, const char *text, char *why, size_t size)
{
	uint32_t made[3] = { 0 };
	unsigned count = 0;
	char part[16];

	for (const char *at = text;; at++) {
		while (*at == ' ')
			at++;
		size_t length = strcspn(at, ", x");
		uint64_t value;
		snprintf(part, sizeof(part), "%.*s", (int)length, at);
		if (count == 3 || length >= sizeof(part) || !value_integer(VALUE_COUNT, part, &value) || value < 1 ||
			value > 4096) {
			snprintf(why, size, "this is no list of one to three sizes; write [4, 4, 4]");
			return -EINVAL;
		}
		made[count++] = (uint32_t)value;
		at += length;
		while (*at == ' ')
			at++;
		if (!*at)
			break;
	}
	memcpy(scenario->topology.dimensions, made, sizeof(made));
	return 0;
}

static int set_rank_dimensions(struct scenario *scenario, const char *text, char *why, size_t size)
{
	return dimensions_parse(&scenario->dimensions, text, why, (unsigned)size);
}

static int set_paths(struct scenario *scenario, const char *text, char *why, size_t size)
{
	uint64_t value = VB_PATHS_ALL;
	bool is_right = strcmp(text, "all") == 0 ||
			(value_integer(VALUE_COUNT, text, &value) && value >= 1 && value <= VB_PATHS_MAX);
	if (!is_right) {
		snprintf(why, size, "write a number from 1 to %d, or all", VB_PATHS_MAX);
		return -EINVAL;
	}
	scenario->paths = (uint16_t)value;
	return 0;
}

static int set_cc(struct scenario *scenario, const char *text, char *why, size_t size)
{
	if ((size_t)snprintf(scenario->cc_text, sizeof(scenario->cc_text), "%s", text) >= sizeof(scenario->cc_text)) {
		snprintf(why, size, "this is longer than any congestion control with its parameters");
		return -EINVAL;
	}
	return vb_cc_choose(text, &scenario->cc, why, (unsigned)size);
}

#define SIZE_OF(member) sizeof(((struct scenario *)0)->member)
#define FIELD(member)   .offset = offsetof(struct scenario, member), .size = SIZE_OF(member)
#define EACH(member, array)                                                                                            \
	FIELD(array[0].member), .stride = SIZE_OF(array[0]), .most = SIZE_OF(array) / SIZE_OF(array[0])
#define CLASS(member)     EACH(member, topology.profile.classes)
#define FAULT(member)     EACH(member, faults)
#define WORKLOAD(member)  EACH(workload.member, workloads)
#define BOUNDS(low, high) .least = (low), .largest = (high)
#define TOPOLOGIES        "switch|dumbbell|leaf-spine|fat-tree|rail|torus|ring"
#define COLLECTIVES       "allreduce|all-gather|reduce-scatter|alltoall|broadcast|reduce"
#define TRANSFERS         "incast|permutation|all-to-all|poisson|" COLLECTIVES
#define SERVICES          "rl|checkpoint|input|inference"
#define WORKLOADS         TRANSFERS "|barrier|" SERVICES
#define SERVICE(member)   EACH(service.member, workloads)
#define STEP(member)      EACH(step.member, workloads)
#define PLAN(member)      EACH(step.plan.member, workloads)
#define FRONT_ENDS        "switch|leaf-spine"
#define OF_A_FRONT_END    .of = "hosts.front-end.topology=leaf-spine"
#define OF_A_STEP         .of = "workload.*.kind=step"
#define RANKS             BOUNDS(0, 1048576)
/* The condition under which a key has an effect. */
#define ON(topologies)    .of = "network.topology=" topologies
#define BY(flow_controls) .of = "network.switch.flow-control=" flow_controls
#define FROM(endpoints)   .of = "transport.endpoint=" endpoints
#define IN(kinds)         .of = "workload.*.kind=" kinds
#define ANY_BYTES         BOUNDS(0, 1e15)
#define ANY_TIME          BOUNDS(0, 8e16) /* a day */
#define ENDPOINTS         BOUNDS(0, 1e6)

/* clang-format off */
const struct scenario_key scenario_keys[] = {
	{ "name", VALUE_TEXT, FIELD(name), .help = "the scenario's name, for reports" },
	{ "variant", VALUE_TEXT, FIELD(variant),
	  .help = "the variant that overrides other keys; --cc chooses one by its name" },

	{ "network.topology", VALUE_NAME, FIELD(topology.kind), .words = TOPOLOGIES,
	  .help = "kind of network; or give file" },
	{ "network.file", VALUE_TEXT, FIELD(topology_file), .is_path = true,
	  .help = "the network's links, from a file: HPCC's (CSV or original text), htsim's .topo, SimAI's, or ASTRA-sim's .yml" },
	{ "network.endpoints", VALUE_COUNT, FIELD(topology.endpoints), ENDPOINTS, .preset = "0", ON(TOPOLOGIES),
	  .help = "number of NICs; 0: as the other numbers say" },
	{ "network.host-rate", VALUE_RATE, FIELD(topology.host_bits_per_second), BOUNDS(1e6, 1e14), .preset = "400G",
	  ON(TOPOLOGIES), .help = "rate of links between NICs and switches" },
	{ "network.fabric-rate", VALUE_RATE, FIELD(topology.fabric_bits_per_second), BOUNDS(0, 1e14), .preset = "0",
	  ON("dumbbell|leaf-spine|fat-tree|rail|torus|ring"),
	  .help = "rate of links between switches; 0: host-rate" },
	{ "network.host-delay", VALUE_TIME, FIELD(topology.host_delay), ANY_TIME, .preset = "1us", ON(TOPOLOGIES),
	  .help = "one-way delay of links between NICs and switches" },
	{ "network.fabric-delay", VALUE_TIME, FIELD(topology.fabric_delay), ANY_TIME, .preset = "1us",
	  ON("dumbbell|leaf-spine|fat-tree|rail|torus|ring"), .help = "one-way delay of links between switches" },
	{ "hosts.gpu", VALUE_TEXT, .set = set_gpu, .is_first = true,
	  .help = "each host has the GPUs of a usual machine (--gpus lists them), which are the ranks; left out: an endpoint "
		  "is a rank" },
	{ "hosts.gpus", VALUE_COUNT, FIELD(hosts.gpus), BOUNDS(0, HOSTS_MOST_GPUS), .help = "GPUs of a host" },
	{ "hosts.nics", VALUE_COUNT, FIELD(hosts.nics), BOUNDS(0, 1024), .preset = "0",
	  .help = "NICs of a host, which are consecutive endpoints; 0: one for each GPU" },
	{ "hosts.scale-up", VALUE_RATE, FIELD(hosts.scale_up), BOUNDS(0, HOSTS_MOST_SCALE_UP),
	  .help = "rate of a GPU's port, each way, to the others of its host" },
	{ "hosts.reduces", VALUE_FLAG, FIELD(hosts.reduces),
	  .help = "whether the switch of a host's GPUs reduces, as NVLS does; left out: as hosts.gpu has it, otherwise no" },
	{ "hosts.keeps-rails", VALUE_FLAG, FIELD(hosts.keeps_rails), .preset = "yes",
	  .help = "a message leaves by the NIC on its receiver's rail, as with NCCL's PXN" },
	{ "hosts.placement", VALUE_TEXT, FIELD(placement), .preset = "packed",
	  .help = "packed: ranks fill one host after the other; spread: hosts are dealt out to all leaves in turn; an "
		  "order of ranks.dimensions, the innermost first, such as tp-cp-ep-dp-pp; or the GPUs of ranks 0, 1, ...: "
		  "[8-15, 0, 2]" },
	{ "hosts.scale-up-delay", VALUE_TIME, FIELD(hosts.scale_up_time), ANY_TIME, .preset = "500ns",
	  .help = "until a transfer's first bit is at another GPU of the host" },
	{ "hosts.front-end.storage", VALUE_COUNT, FIELD(front_end.storage), ENDPOINTS, .preset = "0",
	  .help = "storage nodes of a network apart, which checkpoint and input go by: each has an endpoint there, and "
		  "is no host; 0: there is no such network" },
	{ "hosts.front-end.nics", VALUE_COUNT, FIELD(front_end.nics), BOUNDS(1, 64), .preset = "1",
	  .help = "front end: NICs of a host there, beside hosts.nics" },
	{ "hosts.front-end.topology", VALUE_NAME, FIELD(front_end.topology.kind), .words = FRONT_ENDS,
	  .preset = "switch", .help = "front end: kind of network, of the same switches and NICs; hosts are along the "
				      "leaves, then storage nodes" },
	{ "hosts.front-end.rate", VALUE_RATE, FIELD(front_end.topology.host_bits_per_second), BOUNDS(1e6, 1e14),
	  .preset = "200G", .help = "front end: rate of links between NICs, or storage nodes, and switches" },
	{ "hosts.front-end.delay", VALUE_TIME, FIELD(front_end.topology.host_delay), ANY_TIME, .preset = "1us",
	  .help = "front end: one-way delay of each of its links" },
	{ "hosts.front-end.leaves", VALUE_COUNT, FIELD(front_end.topology.leaves), BOUNDS(0, 65536), .preset = "0",
	  OF_A_FRONT_END, .help = "front end, leaf-spine: switches with endpoints, equally many at each" },
	{ "hosts.front-end.spines", VALUE_COUNT, FIELD(front_end.topology.spines), BOUNDS(0, 65536), .preset = "0",
	  OF_A_FRONT_END, .help = "front end, leaf-spine: switches that join them; 0: as oversubscription says" },
	{ "hosts.front-end.fabric-rate", VALUE_RATE, FIELD(front_end.topology.fabric_bits_per_second), BOUNDS(0, 1e14),
	  .preset = "0", OF_A_FRONT_END, .help = "front end, leaf-spine: rate of links between switches; 0: rate" },
	{ "hosts.front-end.oversubscription", VALUE_REAL, FIELD(front_end.topology.oversubscription), BOUNDS(0, 1024),
	  .preset = "0", OF_A_FRONT_END,
	  .help = "front end, leaf-spine: ratio of a leaf's downlink to uplink capacity; 0: as spines says, otherwise "
		  "1" },
	{ "ranks.dimensions", VALUE_TEXT, .set = set_rank_dimensions,
	  .help = "how a trainer splits its work, in the order in which it numbers ranks: tp=8, cp=2, dp=4, pp=2. One "
		  "may have no size: what the others leave" },
	{ "network.radix", VALUE_COUNT, FIELD(topology.radix), BOUNDS(0, 1024), .preset = "0", ON("fat-tree"),
	  .help = "fat-tree: ports per switch, k; 0: what the endpoints need" },
	{ "network.tiers", VALUE_COUNT, FIELD(topology.tiers), BOUNDS(0, 3), .preset = "3", ON("fat-tree"),
	  .help = "fat-tree: tiers of switches, 2 or 3" },
	{ "network.leaves", VALUE_COUNT, FIELD(topology.leaves), BOUNDS(0, 65536), .preset = "0",
	  ON("leaf-spine|rail|ring"), .help = "leaf-spine, rail (of each rail), ring: switches with endpoints" },
	{ "network.spines", VALUE_COUNT, FIELD(topology.spines), BOUNDS(0, 65536), .preset = "0",
	  ON("leaf-spine|rail"),
	  .help = "leaf-spine, rail: switches that join them; 0: as oversubscription says (leaf-spine), or none "
	  "(rail)" },
	{ "network.uplinks", VALUE_COUNT, FIELD(topology.uplinks), BOUNDS(0, 1024), .preset = "0",
	  ON("leaf-spine|rail|dumbbell"),
	  .help = "links from each leaf to each spine, or between a dumbbell's halves; 0: 1" },
	{ "network.oversubscription", VALUE_REAL, FIELD(topology.oversubscription), BOUNDS(0, 1024), .preset = "0",
	  ON("fat-tree|leaf-spine"),
	  .help = "fat-tree, leaf-spine: ratio of a leaf's downlink to uplink capacity; 0: as the other numbers "
	  "say, otherwise 1" },
	{ "network.machines", VALUE_COUNT, FIELD(topology.machines), ENDPOINTS, .preset = "0", ON("rail"),
	  .help = "rail: number of machines" },
	{ "network.nics-a-machine", VALUE_COUNT, FIELD(topology.nics_a_machine), BOUNDS(0, 64), .preset = "0",
	  ON("rail"), .help = "rail: NICs per machine, each on a rail of its own" },
	{ "network.dimensions", VALUE_TEXT, .set = set_dimensions, ON("torus"),
	  .help = "torus: one to three sizes, such as [4, 4, 4]" },
	{ "network.whole-ns", VALUE_FLAG, FIELD(is_whole_ns), .preset = "no",
	  .help = "round transmission times down to whole nanoseconds, as ns-3 does, for comparison with it" },

	{ "network.switch.profile", VALUE_TEXT, .set = set_switch_profile, .is_first = true, .preset = "hpcc",
	  .help = "a switch model; each key below overrides one of its values" },
	{ "network.switch.buffer", VALUE_BYTES, FIELD(topology.profile.buffer_bytes), ANY_BYTES, BY("drops|pfc"),
	  .help = "shared by all ports of a switch; 0: unlimited" },
	{ "network.switch.port-buffer", VALUE_BYTES, FIELD(topology.profile.port_bytes), ANY_BYTES,
	  .help = "a separate drop-tail buffer for each port instead; 0: the shared buffer" },
	{ "network.switch.trim", VALUE_BYTES, FIELD(topology.profile.trim_bytes), BOUNDS(0, 4096), BY("drops|pfc"),
	  .help = "a packet of data without room is cut to so many bytes on the wire (UET: at least 64) and goes on "
	  "in the highest class, which is strict and has a queue beside the buffer, its limit or 64 KiB; its "
	  "receiver knows at once that it was lost; 0: it is dropped" },
	{ "network.switch.cut-through", VALUE_FLAG, FIELD(topology.profile.is_cut_through),
	  .help = "forward a packet before all of it has arrived" },
	{ "network.switch.latency", VALUE_TIME, FIELD(topology.profile.latency), ANY_TIME,
	  .help = "from a packet's arrival until it is queued" },
	{ "network.switch.marks", VALUE_WORD, FIELD(topology.profile.marks), .words = "coming|leaving",
	  .help = "ECN marks by the queue that a packet joins, or by the queue that it leaves behind" },
	{ "network.switch.flow-control", VALUE_WORD, FIELD(topology.profile.flow_control), .words = "drops|pfc|credits",
	  .help = "a packet without room is dropped, its class is paused, or it is not sent" },
	{ "network.switch.routing", VALUE_WORD, FIELD(topology.profile.routing), .words = "ecmp|spray|adaptive",
	  .help = "among equal paths: by hash of the flow, at random for each packet, or the shortest queue" },
	{ "network.switch.hash", VALUE_WORD, FIELD(topology.profile.hash), .words = "own|ns3", .of = "network.switch.routing=ecmp",
	  .help = "for ecmp: ns3 is the hash, with addresses and ports, of the HPCC authors' simulator, for "
	  "comparison flow by flow" },
	{ "network.switch.telemetry", VALUE_WORD, FIELD(topology.profile.telemetry), .words = "exact|ns3", .of = "transport.cc=hpcc",
	  .help = "for cc hpcc: ns3 counts in steps of 128 bytes sent and 80 queued, as the headers of the HPCC "
	  "authors' simulator do" },
	{ "network.switch.class-count", VALUE_COUNT, FIELD(topology.profile.class_count), BOUNDS(1, FABRIC_CLASSES),
	  .help = "number of traffic classes, or virtual lanes, in use" },
	{ "network.switch.classes.*.lossless", VALUE_FLAG, CLASS(is_lossless),
	  .help = "with pfc: paused, never dropped" },
	{ "network.switch.classes.*.strict", VALUE_FLAG, CLASS(is_strict),
	  .help = "served before all classes that are not strict" },
	{ "network.switch.classes.*.weight", VALUE_COUNT, CLASS(weight), BOUNDS(0, 255),
	  .help = "share among classes that are not strict" },
	{ "network.switch.classes.*.mark-min", VALUE_BYTES, CLASS(mark_min), BOUNDS(0, 4e9),
	  .help = "ECN: queue length from which some packets are marked, at a port of mark-rate" },
	{ "network.switch.classes.*.mark-max", VALUE_BYTES, CLASS(mark_max), BOUNDS(0, 4e9),
	  .help = "ECN: queue length from which all packets are marked, at a port of mark-rate; 0: no marks" },
	{ "network.switch.classes.*.mark-chance", VALUE_SHARE, CLASS(mark_ppm), BOUNDS(0, 1e6),
	  .help = "ECN: probability of a mark at mark-max" },
	{ "network.switch.classes.*.alpha", VALUE_REAL, CLASS(alpha), BOUNDS(0, 1024), BY("drops|pfc"),
	  .help = "a queue's bound as a multiple of the free part of the shared buffer; 0: all of it" },
	{ "network.switch.classes.*.limit", VALUE_BYTES, CLASS(limit_bytes), ANY_BYTES,
	  .help = "hard bound of one queue or, if lossless, of the bytes from one ingress port; 0: none" },
	{ "network.switch.mark-rate", VALUE_RATE, FIELD(topology.profile.mark_bits_per_second), BOUNDS(1e6, 1e14),
		.preset = "100G",
	  .help = "the port rate that mark-min and mark-max are for; they scale with a port's rate" },
	{ "network.switch.alpha-rate", VALUE_RATE, FIELD(topology.profile.alpha_bits_per_second), BOUNDS(0, 1e14),
	  .help = "the port rate that alpha is for; it scales with a port's rate; 0: the same for all" },
	{ "network.switch.keeps", VALUE_WORD, FIELD(topology.profile.keeps), .words = "classes|ports",
	  BY("drops|pfc"),
	  .help = "pfc: set reserve and headroom aside for each class of a port, or once for each port" },
	{ "network.switch.reserved", VALUE_BYTES, FIELD(topology.profile.reserved_bytes), ANY_BYTES, BY("drops|pfc"),
	  .help = "pfc: reserve of each port and class, beside the shared buffer" },
	{ "network.switch.headroom", VALUE_BYTES, FIELD(topology.profile.headroom_bytes), ANY_BYTES, BY("pfc"),
	  .help = "pfc: headroom of each port and lossless class; 0: what its link needs" },
	{ "network.switch.resume-offset", VALUE_BYTES, FIELD(topology.profile.resume_offset), ANY_BYTES, BY("pfc"),
	  .help = "pfc: a paused sender may continue when so far below the threshold" },
	{ "network.switch.pause-time", VALUE_TIME, FIELD(topology.profile.pause_quanta), ANY_TIME, BY("pfc"),
	  .help = "pfc: how long a pause holds unless renewed; 0: until a resume" },
	{ "network.switch.watchdog", VALUE_TIME, FIELD(topology.profile.watchdog), ANY_TIME, BY("pfc"),
	  .help = "pfc: a class that is paused for so long drops its packets for as long, and ignores the pause; "
	  "0: never" },
	{ "network.switch.credits", VALUE_BYTES, FIELD(topology.profile.credit_bytes), ANY_BYTES, BY("credits"),
	  .help = "credits: room of each port and lane" },

	{ "network.nic.profile", VALUE_TEXT, .set = set_nic_profile, .is_first = true, .preset = "ideal",
	  .help = "a NIC model; each key below overrides one of its values" },
	{ "network.nic.ports", VALUE_COUNT, FIELD(topology.nic_ports), BOUNDS(1, 8), .preset = "1", ON("leaf-spine|rail"),
	  .help = "each of host-rate, at a leaf of its own (dual ToR); flows are hashed over them" },
	{ "network.nic.send-latency", VALUE_TIME, FIELD(topology.nic.send_latency), ANY_TIME,
	  .help = "the NIC's own, for each packet" },
	{ "network.nic.receive-latency", VALUE_TIME, FIELD(topology.nic.receive_latency), ANY_TIME,
	  .help = "the NIC's own, for each packet" },
	{ "network.nic.pcie-latency", VALUE_TIME, FIELD(topology.nic.pcie_latency), ANY_TIME,
	  .help = "between memory and NIC, one way" },
	{ "network.nic.pcie-rate", VALUE_RATE, FIELD(topology.nic.pcie_bits_per_second), BOUNDS(0, 1e14),
	  .help = "bound of NIC and link in each direction, for all bytes on the wire; 0: no bound" },
	{ "network.nic.host-latency", VALUE_TIME, FIELD(topology.nic.host_latency), ANY_TIME,
	  .help = "from a program's decision until its NIC learns of it, and back when a flow has ended" },
	{ "network.nic.wake-latency", VALUE_TIME, FIELD(topology.nic.wake_latency), ANY_TIME,
	  .help = "average delay until a sleeping process runs after something has arrived or is due: half of it "
	  "fixed, the rest exponential; it then takes all that has arrived. Profile ideal has none" },

	{ "network.faults.*.link", VALUE_TEXT, FAULT(link),
	  .help = "the link, both directions: \"endpoint 3\", \"switch 2 port 5\", \"link 17\"; of a front end \"front "
		  "endpoint 3\", \"front switch 0 port 5\", \"storage 2\"" },
	{ "network.faults.*.rate", VALUE_RATE, FAULT(bits_per_second), BOUNDS(0, 1e14), .preset = "0",
	  .help = "the link is this slow all the time, as one that has lost lanes; 0: it has its own rate" },
	{ "network.faults.*.loss", VALUE_SHARE, FAULT(fault.loss_ppm), BOUNDS(0, 1e6), .preset = "0",
	  .help = "share of packets that are lost" },
	{ "network.faults.*.loss-every", VALUE_COUNT, FAULT(fault.loss_every), BOUNDS(0, 4e9), .preset = "0",
	  .help = "every so-many-th packet of each direction is lost; 0: none" },
	{ "network.faults.*.bit-error-rate", VALUE_REAL, FAULT(fault.bit_error_rate), BOUNDS(0, 1), .preset = "0",
	  .help = "probability that a bit is wrong" },
	{ "network.faults.*.duplicate", VALUE_SHARE, FAULT(fault.duplicate_ppm), BOUNDS(0, 1e6), .preset = "0",
	  .help = "share of packets that arrive twice" },
	{ "network.faults.*.jitter", VALUE_TIME, FAULT(fault.jitter), ANY_TIME, .preset = "0",
	  .help = "every packet is late by up to so much, and may overtake others" },
	{ "network.faults.*.late", VALUE_SHARE, FAULT(fault.late_ppm), BOUNDS(0, 1e6), .preset = "0",
	  .help = "share of packets that are late in addition" },
	{ "network.faults.*.late-by", VALUE_TIME, FAULT(fault.late_by), ANY_TIME, .preset = "0",
	  .help = "how late these are at most" },
	{ "network.faults.*.mark", VALUE_SHARE, FAULT(fault.mark_ppm), BOUNDS(0, 1e6), .preset = "0",
	  .help = "share of ECN-capable packets that are marked" },
	{ "network.faults.*.down", VALUE_TIME, FAULT(fault.down_at), ANY_TIME, .preset = "0",
	  .help = "when the link goes down; 0 without up: never" },
	{ "network.faults.*.up", VALUE_TIME, FAULT(fault.up_at), ANY_TIME, .preset = "0",
	  .help = "when it is up again; left out: never" },
	{ "network.faults.*.flap", VALUE_TIME, FAULT(fault.flap_period), ANY_TIME, .preset = "0",
	  .help = "it goes down again after so long, which needs up; 0: once" },
	{ "network.faults.*.detection", VALUE_TIME, FAULT(fault.detection), ANY_TIME, .preset = "0",
	  .help = "how much later switches at its ends know, and choose other paths while they have any" },
	{ "network.faults.*.convergence", VALUE_TIME, FAULT(fault.convergence), ANY_TIME, .preset = "0",
	  .help = "how much later still all other switches know, and choose no path that ends there" },

	{ "transport.endpoint", VALUE_WORD, FIELD(endpoint), .words = "engine|ideal|tcp", .preset = "engine",
	  .help = "engine: the real one; ideal: not RoCE, sends at once, takes packets in any order, has no "
	  "congestion control or probes, and starts over after the timeout; tcp: for comparison, a connection per "
	  "flow" },
	{ "transport.cc", VALUE_TEXT, .set = set_cc, .preset = "none",
	  .help = "congestion control: NAME, or NAME, PARAMETER=VALUE, ...; --keys lists them" },
	{ "transport.first-window", VALUE_BYTES, FIELD(first_window), BOUNDS(0, 1u << 30), .preset = "0",
	  FROM("engine|tcp"), .help = "bytes in flight at first; 0: as the algorithm says, for tcp 10 packets" },
	{ "transport.largest-window", VALUE_BYTES, FIELD(largest_window), BOUNDS(0, 1u << 30), .preset = "0",
	  FROM("engine|tcp"), .help = "most bytes in flight; 0: only the algorithm's bound" },
	{ "transport.mtu", VALUE_BYTES, FIELD(mtu), BOUNDS(64, FABRIC_TCP_MAX_MTU), .preset = "4096",
	  .help = "payload of a packet; more than 4096 only for tcp" },
	{ "transport.data-overhead", VALUE_BYTES, FIELD(data_overhead), BOUNDS(0, 4096), .preset = "0",
	  .help = "bytes of a packet beside its payload; 0: those of RoCEv2, or TCP with time stamps, over "
	  "Ethernet" },
	{ "transport.ack-overhead", VALUE_BYTES, FIELD(ack_overhead), BOUNDS(0, 4096), .preset = "0",
	  .help = "bytes of an acknowledgement; 0: those of RoCEv2, or TCP with time stamps, over Ethernet" },
	{ "transport.ack-every", VALUE_COUNT, FIELD(ack_every), BOUNDS(0, 1e6), .preset = "0",
	  .help = "packets per acknowledgement; the last packet of a flow asks for one, too; 0: 1, for tcp 2" },
	{ "transport.timeout", VALUE_TIME, FIELD(timeout), BOUNDS(1e6, 8e16), .preset = "67ms", FROM("engine|ideal"),
	  .help = "packets are sent again after so long without an acknowledgement" },
	{ "transport.retries", VALUE_COUNT, FIELD(retries), BOUNDS(1, 7), .preset = "7", FROM("engine|ideal"),
	  .help = "retries until a flow fails" },
	{ "transport.probe", VALUE_TIME, FIELD(probe), ANY_TIME, .preset = "0",
	  .help = "silence after which the last packet is sent again, for tcp at least two round trips; 0: not "
	  "before the timeout" },
	{ "transport.ack-class", VALUE_COUNT, FIELD(ack_class), BOUNDS(0, FABRIC_CLASSES - 1), .preset = "0",
	  .help = "traffic class of acknowledgements and CNPs" },
	{ "transport.recovery", VALUE_WORD, FIELD(recovery), .words = "go-back-n|go-back-0|selective", .preset = "go-back-n",
	  .help = "what is sent again: all from the missing packet on; as early NICs did, the whole message; or what is missing "
	  "alone" },
	{ "transport.paths", VALUE_COUNT, .words = "1..256|all", .set = set_paths, .preset = "1",
	  .of = "transport.recovery=selective",
	  .help = "source ports that the packets of a connection take turns on, by which switches choose among equal "
	  "links; all: each packet one of its own" },
	{ "transport.marks", VALUE_WORD, FIELD(marks), .words = "cnps|acks", .preset = "cnps", FROM("engine"),
	  .help = "how senders learn of marks: by CNPs, or by the acknowledgements of marked packets" },
	{ "transport.cnp-interval", VALUE_TIME, FIELD(cnp_interval), BOUNDS(1, 8e13), .preset = "50us",
	  .of = "transport.marks=cnps",
	  .help = "least time between CNPs of one scope (DCQCN's paper: 50us; NVIDIA: 4us)" },
	{ "transport.cnp-scope", VALUE_WORD, FIELD(cnp_scope), .words = "qp|destination|port", .preset = "qp",
	  .of = "transport.marks=cnps", .help = "the scope is a QP, all QPs of an address, or all QPs" },

	{ "transport.behind", VALUE_WORD, FIELD(behind), .words = "nic|sockets", .preset = "nic", FROM("engine"),
	  .help = "engines as in a NIC, or as in a process behind sockets: it sends trains of packets, counts 256 "
	  "more bytes per packet in a window, probes silence and makes up for late packets; where probe, ack-every "
	  "and largest-window are 0, it has its own values" },
	{ "transport.receive-buffer", VALUE_BYTES, FIELD(receive_buffer), BOUNDS(65536, 1u << 31), .preset = "8MiB",
	  .of = "transport.behind=sockets",
	  .help = "size of those sockets' buffers, as kernels count it; all QPs of a peer together use half "
	  "(8MiB: VERBENA_RCVBUF's default)" },

	{ "transport.tcp", VALUE_WORD, FIELD(tcp.control), .words = "newreno|cubic|dctcp", .preset = "cubic",
	  FROM("tcp"), .help = "tcp: congestion control" },
	{ "transport.rto-min", VALUE_TIME, FIELD(tcp.rto_min), BOUNDS(1e6, 8e13), .preset = "200ms", FROM("tcp"),
	  .help = "tcp: the shortest retransmission timeout (200ms: Linux)" },
	{ "transport.ack-delay", VALUE_TIME, FIELD(tcp.ack_delay), BOUNDS(1e6, 8e13), .preset = "40ms", FROM("tcp"),
	  .help = "tcp: the longest delay of an acknowledgement (40ms: Linux)" },
	{ "transport.cpu-packet", VALUE_TIME, FIELD(tcp.cpu_packet), BOUNDS(0, 1e12), .preset = "0", FROM("tcp"),
	  .help = "tcp: CPU time of its host per packet, separately for packets that leave and that arrive" },
	{ "transport.cpu-byte", VALUE_TIME, FIELD(tcp.cpu_byte), BOUNDS(0, 1e9), .preset = "0", FROM("tcp"),
	  .help = "tcp: additional CPU time per byte of payload" },
	{ "transport.cpu-batch", VALUE_COUNT, FIELD(tcp.cpu_batch), BOUNDS(1, 1024), .preset = "1", FROM("tcp"),
	  .help = "tcp: consecutive packets of a flow that cost the time of one (TSO, GRO)" },

	{ "workload.*.kind", VALUE_NAME, WORKLOAD(kind), .words = WORKLOADS "|step",
	  .help = "who sends to whom, or a step of training; or give file" },
	{ "workload.*.file", VALUE_TEXT, EACH(file, workloads), .is_path = true,
	  .help = "a list of flows: HPCC's (CSV or original text) or htsim's .cm" },
	{ "workload.*.endpoints", VALUE_COUNT, WORKLOAD(endpoints), ENDPOINTS, .preset = "0", IN(TRANSFERS "|barrier|checkpoint|input"),
	  .help = "how many endpoints take part, the first ones; 0: all; checkpoint, input: ranks, on hosts without storage" },
	{ "workload.*.bytes", VALUE_BYTES, WORKLOAD(bytes), BOUNDS(1, 1.6e13), .preset = "1MB", IN(TRANSFERS "|rl|checkpoint"),
	  .help = "size of each flow; of a collective: what a rank has, or gets of an all-gather; rl, checkpoint: of all ranks, unless model says it" },
	{ "workload.*.algorithm", VALUE_NAME, WORKLOAD(algorithm),
	  .words = "ring|recursive-doubling|halving-doubling|direct|double-tree|nvls|hierarchical|pat|pairwise|chain|dissemination|nccl", IN(COLLECTIVES "|barrier"),
	  .help = "of a collective; nccl: what NCCL's tuning tables take by size, ranks and hosts; left out: the kind's first, as --collectives lists them" },
	{ "workload.*.first", VALUE_COUNT, WORKLOAD(first), ENDPOINTS, .preset = "0", IN(COLLECTIVES "|barrier|" SERVICES),
	  .help = "of a collective: the first rank that takes part, of as many as endpoints says; of others the first rank" },
	{ "workload.*.group", VALUE_TEXT, WORKLOAD(group), IN(COLLECTIVES "|barrier"),
	  .help = "of a collective: a dimension of ranks.dimensions, or several as dp-cp: all of its groups run it at once" },
	{ "workload.*.nccl.channels", VALUE_COUNT, WORKLOAD(nccl.channels), BOUNDS(0, 64), .preset = "0",
	  IN(COLLECTIVES "|barrier"),
	  .help = "NCCL_MAX_NCHANNELS: a collective uses at most so many NICs of a host at once; 0: all" },
	{ "workload.*.nccl.qps", VALUE_COUNT, WORKLOAD(nccl.qps), BOUNDS(1, 128), .preset = "1",
	  IN(COLLECTIVES "|barrier"),
	  .help = "NCCL_IB_QPS_PER_CONNECTION: QPs from a rank to another host's, each with a source port of its own; "
	  "messages take them in turn" },
	{ "workload.*.nccl.split-data", VALUE_FLAG, WORKLOAD(nccl.is_cut), .preset = "no", IN(COLLECTIVES "|barrier"),
	  .help = "NCCL_IB_SPLIT_DATA_ON_QPS: each message is cut over all QPs" },
	{ "workload.*.nccl.buffsize", VALUE_BYTES, WORKLOAD(nccl.buffer), BOUNDS(65536, 1u << 30),
	  IN(COLLECTIVES "|barrier"),
	  .help = "NCCL_BUFFSIZE: of a connection that pieces go by, eight slots of a piece each, which its receiver opens; "
	  "left out: pieces of 128 KiB, and there is always room" },
	{ "workload.*.nccl.pxn", VALUE_WORD, WORKLOAD(nccl.rails), .words = "as-hosts|yes|no", .preset = "as-hosts",
	  IN(COLLECTIVES "|barrier"),
	  .help = "NCCL_PXN_DISABLE: whether a message leaves by the NIC on its receiver's rail, or by its own GPU's; "
		  "as-hosts: as hosts.keeps-rails says" },
	{ "workload.*.start", VALUE_TIME, WORKLOAD(start), ANY_TIME, .preset = "0", IN(WORKLOADS),
	  .help = "start of the first flow" },
	{ "workload.*.spread", VALUE_TIME, WORKLOAD(spread), ANY_TIME, .preset = "0",
	  IN("incast|permutation|all-to-all"), .help = "flows start at random within so long after that" },
	{ "workload.*.senders", VALUE_COUNT, WORKLOAD(senders), ENDPOINTS, .preset = "0", IN("incast"),
	  .help = "incast: number of senders; 0: all but the target" },
	{ "workload.*.target", VALUE_COUNT, WORKLOAD(target), ENDPOINTS, .preset = "0", IN("incast"),
	  .help = "incast: the endpoint that receives" },
	{ "workload.*.at-once", VALUE_COUNT, WORKLOAD(at_once), ENDPOINTS, .preset = "0", IN("all-to-all"),
	  .help = "all-to-all: how many flows of a sender run at once; 0: all" },
	{ "workload.*.load", VALUE_REAL, WORKLOAD(load), BOUNDS(0, 1), .preset = "30%", IN("poisson"),
	  .help = "poisson: load of each endpoint's link" },
	{ "workload.*.rate", VALUE_RATE, WORKLOAD(bits_per_second), BOUNDS(0, 1e14), .preset = "0", IN("poisson"),
	  .help = "poisson: rate of that link; 0: its own" },
	{ "workload.*.duration", VALUE_TIME, WORKLOAD(duration), ANY_TIME, .preset = "1ms", IN("poisson"),
	  .help = "poisson: for how long flows start" },
	{ "workload.*.sizes", VALUE_TEXT, WORKLOAD(sizes), .is_path = true, IN("poisson"),
	  .help = "poisson: WebSearch, FB_Hadoop, AliStorage2019, or a CSV file (bytes,percent); left out: all "
	  "flows have bytes" },
	{ "workload.*.class", VALUE_COUNT, WORKLOAD(traffic_class), BOUNDS(0, FABRIC_CLASSES - 1), .preset = "0",
	  IN(WORKLOADS), .help = "traffic class of the data" },

	{ "workload.*.model", VALUE_TEXT, STEP(model), IN("step|rl|checkpoint|inference"),
	  .help = "one that --models lists; of a step the keys of its shape change it, or make another" },
	{ "workload.*.tp", VALUE_COUNT, PLAN(tp), RANKS, .preset = "1", IN("step|rl|inference"),
	  .help = "tensor parallel ranks, each with a part of every matrix; rl: of a replica; inference: of a group" },
	{ "workload.*.cp", VALUE_COUNT, PLAN(cp), RANKS, .preset = "1", OF_A_STEP,
	  .help = "step: context parallel ranks, each with a part of every sequence" },
	{ "workload.*.pp", VALUE_COUNT, PLAN(pp), RANKS, .preset = "1", OF_A_STEP,
	  .help = "step: stages of the pipeline" },
	{ "workload.*.vpp", VALUE_COUNT, PLAN(chunks), RANKS, .preset = "1", OF_A_STEP,
	  .help = "step: parts of the model in each stage, of an interleaved schedule" },
	{ "workload.*.dp", VALUE_COUNT, PLAN(dp), RANKS, .preset = "0", OF_A_STEP,
	  .help = "step: replicas; 0: as many as the network has ranks for" },
	{ "workload.*.ranks", VALUE_TEXT, STEP(ranks), OF_A_STEP,
	  .help = "step: which of the network it has, as 8 (from 8 on) or 8-15; left out: the first that are free" },
	{ "workload.*.ep", VALUE_COUNT, PLAN(ep), RANKS, .preset = "1", OF_A_STEP,
	  .help = "step: ranks that the experts of a layer are spread over" },
	{ "workload.*.micro-batch", VALUE_COUNT, PLAN(micro_batch), RANKS, .preset = "1", OF_A_STEP,
	  .help = "step: sequences of a micro-batch" },
	{ "workload.*.batch", VALUE_COUNT, PLAN(batch), BOUNDS(0, 1e9), .preset = "0", IN("step|inference"),
	  .help = "step: sequences of a step, of all replicas; 0: eight micro-batches for each; inference: requests that a group decodes at once; 0: 64" },
	{ "workload.*.sequence", VALUE_COUNT, PLAN(sequence), BOUNDS(0, 1e8), .preset = "0", OF_A_STEP,
	  .help = "step: tokens of a sequence; 0: the model's" },
	{ "workload.*.sp", VALUE_FLAG, PLAN(is_sequence_parallel), .preset = "yes", OF_A_STEP,
	  .help = "step: sequence parallelism among the tensor parallel ranks" },
	{ "workload.*.zero", VALUE_COUNT, PLAN(zero), BOUNDS(0, 3), .preset = "1", OF_A_STEP,
	  .help = "step: what replicas share out: 1 the optimizer, 2 gradients too, 3 parameters too" },
	{ "workload.*.gradient-bytes", VALUE_COUNT, PLAN(gradient_bytes), BOUNDS(2, 4), .preset = "4", OF_A_STEP,
	  .help = "step: of a parameter's gradient, 2 or 4" },
	{ "workload.*.bucket", VALUE_COUNT, PLAN(bucket), BOUNDS(0, 1e12), .preset = "0", OF_A_STEP,
	  .help = "step: parameters whose gradients leave together; 0: Megatron's, 40 M or 1 M for each replica" },
	{ "workload.*.recompute", VALUE_WORD, PLAN(recompute), .words = "none|selective|full", .preset = "selective",
	  OF_A_STEP, .help = "step: what the backward pass computes again: attention's scores, or all of a layer" },
	{ "workload.*.overlap-gradients", VALUE_FLAG, PLAN(overlaps_gradients), .preset = "no", OF_A_STEP,
	  .help = "step: gradients leave beside the last backward passes (Megatron's --overlap-grad-reduce)" },
	{ "workload.*.overlap-parameters", VALUE_FLAG, PLAN(overlaps_parameters), .preset = "no", OF_A_STEP,
	  .help = "step: parameters come beside the first forward passes (Megatron's --overlap-param-gather)" },
	{ "workload.*.dispatcher", VALUE_WORD, PLAN(dispatcher), .words = "all-to-all|all-gather",
	  .preset = "all-to-all", OF_A_STEP, .help = "step: how tokens come to their experts" },
	{ "workload.*.schedule", VALUE_WORD, PLAN(schedule), .words = "1f1b|interleaved|zero-bubble", .preset = "1f1b",
	  OF_A_STEP, .help = "step: the order of a stage's passes" },
	{ "workload.*.context", VALUE_WORD, PLAN(context), .words = "all-gather|ring", .preset = "all-gather", OF_A_STEP,
	  .help = "step: how context parallel ranks exchange keys and values" },
	{ "workload.*.order", VALUE_WORD, PLAN(order), .words = "tp-cp-dp-pp|tp-cp-pp-dp", .preset = "tp-cp-dp-pp",
	  OF_A_STEP, .help = "step: ranks that are neighbours first: Megatron's order, or Llama 3's" },
	{ "workload.*.ends-count-as-layers", VALUE_FLAG, PLAN(ends_count_as_layers), .preset = "no", OF_A_STEP,
	  .help = "step: the first and the last part of the model have a layer less, for embedding and output" },
	{ "workload.*.whole-square", VALUE_FLAG, PLAN(counts_whole_square), .preset = "no", OF_A_STEP,
	  .help = "step: attention's work counts tokens that come later, too" },
	{ "workload.*.gpu", VALUE_TEXT, STEP(gpu), IN("step|inference"),
	  .help = "one that --gpus lists, for its speed and memory; left out: hosts.gpu" },
	{ "workload.*.gpus", VALUE_TEXT, STEP(gpus), OF_A_STEP,
	  .help = "step: ranks that have other GPUs, as 0-511=H100, 512-1023=A100; the rest have gpu" },
	{ "workload.*.slow", VALUE_TEXT, STEP(slow), OF_A_STEP,
	  .help = "step: ranks whose computing takes so many times as long, as 0-7=1.2, 100=2" },
	{ "workload.*.mfu", VALUE_REAL, PLAN(mfu), BOUNDS(0.001, 1), .preset = "60%", IN("step|inference"),
	  .help = "the part of a GPU's peak that its kernels reach while they run; inference: in prefills" },
	{ "workload.*.compute-times", VALUE_TEXT, STEP(compute_times), .is_path = true, OF_A_STEP,
	  .help = "step: kernels' times in place of mfu: a CSV (operation,shape,microseconds), or a Chakra trace" },
	{ "workload.*.missing-times", VALUE_WORD, STEP(missing_times), .words = "refused|mfu", .preset = "refused", OF_A_STEP,
	  .help = "step: operations of which compute-times has no time are refused, or go by mfu" },
	{ "workload.*.memory", VALUE_WORD, STEP(memory), .words = "checked|unchecked", .preset = "checked", OF_A_STEP,
	  .help = "step: a plan that does not fit into the GPU's memory is refused, or only told" },
	{ "workload.*.steps", VALUE_COUNT, STEP(steps), BOUNDS(0, 1e9), .preset = "0", IN("step|input"),
	  .help = "step: how many a training has, to tell its time; 0: that is not told; input: how many there are" },
	{ "workload.*.layers", VALUE_COUNT, STEP(layers), BOUNDS(0, 10000), .preset = "0", OF_A_STEP,
	  .help = "step: of the model's shape; 0: the named model's" },
	{ "workload.*.hidden", VALUE_COUNT, STEP(hidden), BOUNDS(0, 1e6), .preset = "0", OF_A_STEP,
	  .help = "step: likewise, elements of a token" },
	{ "workload.*.heads", VALUE_COUNT, STEP(heads), BOUNDS(0, 1e5), .preset = "0", OF_A_STEP,
	  .help = "step: likewise, of attention" },
	{ "workload.*.kv-heads", VALUE_COUNT, STEP(kv_heads), BOUNDS(0, 1e5), .preset = "0", OF_A_STEP,
	  .help = "step: likewise, heads of keys and values; 0: as many as heads" },
	{ "workload.*.head-dim", VALUE_COUNT, STEP(head_dim), BOUNDS(0, 1e5), .preset = "0", OF_A_STEP,
	  .help = "step: likewise, elements of a head; 0: hidden over heads" },
	{ "workload.*.ffn", VALUE_COUNT, STEP(ffn), BOUNDS(0, 1e6), .preset = "0", OF_A_STEP,
	  .help = "step: likewise, width of the feed-forward network, or of an expert" },
	{ "workload.*.vocabulary", VALUE_COUNT, STEP(vocabulary), BOUNDS(0, 1e7), .preset = "0", OF_A_STEP,
	  .help = "step: likewise, words" },
	{ "workload.*.experts", VALUE_COUNT, STEP(experts), BOUNDS(0, 65536), .preset = "0", OF_A_STEP,
	  .help = "step: likewise, experts of a layer" },
	{ "workload.*.top-k", VALUE_COUNT, STEP(top_k), BOUNDS(0, 65536), .preset = "0", OF_A_STEP,
	  .help = "step: likewise, experts that a token meets" },
	{ "workload.*.trainers", VALUE_COUNT, SERVICE(trainers), RANKS, .preset = "1", IN("rl"),
	  .help = "rl: ranks that have the weights, each a part" },
	{ "workload.*.replicas", VALUE_COUNT, SERVICE(replicas), RANKS, .preset = "1", IN("rl"),
	  .help = "rl: replicas that get all of the weights, on the ranks behind the trainers" },
	{ "workload.*.piece", VALUE_BYTES, SERVICE(piece), BOUNDS(1, 4e9), .preset = "4MiB", IN("rl"),
	  .help = "rl: what a rank passes on as soon as it has it" },
	{ "workload.*.shape", VALUE_WORD, SERVICE(shape), .words = "chain|tree", .preset = "chain", IN("rl"),
	  .help = "rl: how weights go on from the first replica" },
	{ "workload.*.rollout", VALUE_BYTES, SERVICE(rollout), ANY_BYTES, .preset = "0", IN("rl"),
	  .help = "rl: what a replica sends back to trainers when it has its weights" },
	{ "workload.*.storage", VALUE_TEXT, SERVICE(storage), IN("checkpoint|input"),
	  .help = "checkpoint, input: the endpoints of storage nodes, FIRST-LAST, which are no ranks of it; with "
		  "hosts.front-end: its storage nodes, from 0; left out: all of these" },
	{ "workload.*.message", VALUE_BYTES, SERVICE(message), BOUNDS(1, 4e9), .preset = "16MiB", IN("checkpoint"),
	  .help = "checkpoint: a rank's part goes in such ones, to each storage node in turn" },
	{ "workload.*.restore", VALUE_FLAG, SERVICE(restores), .preset = "no", IN("checkpoint"),
	  .help = "checkpoint: ranks read back what they have written" },
	{ "workload.*.tokens", VALUE_COUNT, SERVICE(tokens), BOUNDS(0, 1e12), .preset = "0", IN("input"),
	  .help = "input: tokens that a rank gets in a step" },
	{ "workload.*.token-bytes", VALUE_COUNT, SERVICE(token_bytes), BOUNDS(1, 1000), .preset = "4", IN("input"),
	  .help = "input: bytes of a token" },
	{ "workload.*.step-time", VALUE_TIME, SERVICE(step_time), ANY_TIME, .preset = "1s", IN("input"),
	  .help = "input: how long a step takes" },
	{ "workload.*.prefill", VALUE_COUNT, SERVICE(prefill), RANKS, .preset = "1", IN("inference"),
	  .help = "inference: groups that prefill, one request at a time" },
	{ "workload.*.decode", VALUE_COUNT, SERVICE(decode), RANKS, .preset = "1", IN("inference"),
	  .help = "inference: groups that decode, on the ranks behind those" },
	{ "workload.*.memory-bandwidth", VALUE_BYTES, SERVICE(memory_bandwidth), BOUNDS(1e9, 1e15), .preset = "3.35TB", IN("inference"),
	  .help = "inference: bytes a second that a GPU reads of weights, keys and values (3.35TB: H100)" },
	{ "workload.*.trace", VALUE_TEXT, SERVICE(trace), .is_path = true, IN("inference"),
	  .help = "inference: a file of requests: Azure's CSV, or Mooncake's JSON lines; left out: requests at random" },
	{ "workload.*.requests", VALUE_COUNT, SERVICE(requests), BOUNDS(0, 1e6), .preset = "0", IN("inference"),
	  .help = "inference: how many there are; of a file the first ones, 0: all" },
	{ "workload.*.request-rate", VALUE_REAL, SERVICE(request_rate), BOUNDS(0, 1e9), .preset = "1", IN("inference"),
	  .help = "inference: requests a second at random, without a file" },
	{ "workload.*.input-tokens", VALUE_COUNT, SERVICE(input_tokens), BOUNDS(1, 1e8), .preset = "1024", IN("inference"),
	  .help = "inference: tokens of a request, without a file" },
	{ "workload.*.output-tokens", VALUE_COUNT, SERVICE(output_tokens), BOUNDS(1, 1e8), .preset = "128", IN("inference"),
	  .help = "inference: tokens of an answer, without a file" },
	{ "job.streams", VALUE_WORD, FIELD(job_streams), .words = "rank|group", .preset = "rank",
	  .help = "of a Chakra trace: collectives run one at a time of each rank, or of each of its groups, as with "
	  "NCCL's communicators" },
	{ "job.priorities", VALUE_FLAG, FIELD(job_heeds_priorities), .preset = "no",
	  .help = "of a Chakra trace: of the collectives that wait for one stream, that of the highest comm_priority "
	  "is the next" },

	{ "job.nccl.channels", VALUE_COUNT, FIELD(job_nccl.channels), BOUNDS(0, 64), .preset = "0",
	  .help = "as workload.*.nccl.channels, of the collectives of a job from a file, and of steps of training" },
	{ "job.nccl.qps", VALUE_COUNT, FIELD(job_nccl.qps), BOUNDS(1, 128), .preset = "1",
	  .help = "as workload.*.nccl.qps, of these collectives; sends and receives have one QP" },
	{ "job.nccl.split-data", VALUE_FLAG, FIELD(job_nccl.is_cut), .preset = "no",
	  .help = "as workload.*.nccl.split-data, of these collectives" },
	{ "job.nccl.buffsize", VALUE_BYTES, FIELD(job_nccl.buffer), BOUNDS(65536, 1u << 30),
	  .help = "as workload.*.nccl.buffsize, of these collectives; left out: pieces of 128 KiB, and there is always room" },
	{ "job.nccl.pxn", VALUE_WORD, FIELD(job_nccl.rails), .words = "as-hosts|yes|no", .preset = "as-hosts",
	  .help = "as workload.*.nccl.pxn, of all messages of a job from a file, and of steps of training" },

	{ "run.seed", VALUE_COUNT, FIELD(seed), BOUNDS(0, 9e18), .preset = "1",
	  .help = "decides everything that is random" },
	{ "run.mode", VALUE_WORD, FIELD(mode), .words = "packets|flows|formula", .preset = "packets",
	  .help = "packet by packet; messages as flows that share links max-min fairly, much sooner; or, for steps, each "
	  "collective and message takes its time without contention" },
	{ "run.threads", VALUE_COUNT, FIELD(threads), BOUNDS(1, 256), .preset = "1",
	  .help = "the result is the same with any number" },
	{ "run.limit", VALUE_TIME, FIELD(limit), BOUNDS(0, 4e18), .preset = "0",
	  .help = "limit of virtual time; 0: 50 days" },
	{ "run.stall", VALUE_TIME, FIELD(stall), BOUNDS(0, 4e18), .preset = "0",
	  .help = "the run ends if nothing arrives for so long while flows are open, and for as long as the "
	  "slowest flow may need to send again; 0: 1 s, for tcp 240 s, and at least as long as all retries take" },

	{ "run.mean-queues", VALUE_FLAG, FIELD(tells_queues), .preset = "no", .of = "run.mode=packets",
	  .help = "also report the mean queue of the busiest links, with the unsent part of a packet on the wire" },

	{ "capture.links", VALUE_TEXT, FIELD(captured),
	  .help = "the links that --pcap records: [\"endpoint 3 up\", \"endpoint 3 down\", \"switch 2 port 5\"]" },
	{ .path = NULL },
};
/* clang-format on */
_Static_assert(sizeof(scenario_keys) / sizeof(scenario_keys[0]) <= SCENARIO_KEYS, "each has a bit");
