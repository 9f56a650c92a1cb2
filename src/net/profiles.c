/* Built-in profiles of switches and NICs. Each says where its numbers come from: measured (by us), published (where) or
 * assumed. Little is published about real switches: how a buffer is shared is assumed throughout. All profiles have the
 * same classes, so a scenario need not change with the switch: 0 to 6 carry data and are alike; 7 is served before
 * them, and carries acknowledgements and notifications if these have a class of their own. */
#include <string.h>
#include "net/profile.h"

enum { KIB = 1024, MIB = 1024 * 1024, KB = 1000 };

/* For the classes of data; that of acknowledgements never drops, pauses or marks before the buffer is full. */
#define CLASSES(...)                                                                                                   \
	.class_count = FABRIC_CLASSES, .classes = { __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__,   \
		__VA_ARGS__, __VA_ARGS__, { .is_strict = true } }

static const struct {
	struct switch_profile profile;
	const char *sources;
} switches[] = {
	{ { .name = "hpcc",
		  .buffer_bytes = 32 * MIB,
		  .flow_control = FLOW_PFC,
		  .keeps = KEEPS_PORTS,
		  .reserved_bytes = 4 * KIB,
		  .resume_offset = 3 * KIB,
		  .alpha_bits_per_second = 100000000000u,
		  .marks = MARKS_LEAVING,
		  CLASSES({ .is_lossless = true,
			  .alpha = 0.125,
			  .mark_min = 400 * KB,
			  .mark_max = 1600 * KB,
			  .mark_ppm = 200000 }) },
		"A generic switch, as the HPCC paper's simulations have it.\n"
		"buffer_bytes 32 MiB, shared: published (alibaba-edu/High-Precision-Congestion-Control, as it was "
		"run)\n"
		"what is kept of each port once: published (the same, switch-mmu.cc, ConfigNPort)\n"
		"reserved_bytes 4 KiB, resume_offset 3 KiB: published (the same, switch-mmu.cc)\n"
		"alpha 1/8 at hosts' rate: published (the same, third.cc, which doubles it with the rate)\n"
		"pauses, all classes of data alike: published (the same)\n"
		"headroom_bytes of each link's own: published (the same) as thrice rate x delay; assumed: what the "
		"link needs\n"
		"marks from 400 kB, all from 1600 kB at 100 Gb/s, 20% between: published (the same, as it was run)\n"
		"marks as packets leave, by what is left: published (the same, switch-node.cc)\n"
		"latency 0, store and forward: published (the same)\n" },
	{ { .name = "ideal", .class_count = 1 },
		"Nothing is ever dropped, paused or marked.\n"
		"buffer_bytes without bound, latency 0, store and forward, no marks: assumed\n" },
	{ { .name = "tomahawk",
		  .buffer_bytes = 16 * MIB,
		  .latency = 500 * VB_NS,
		  .is_cut_through = true,
		  .flow_control = FLOW_PFC,
		  .reserved_bytes = 4 * KIB,
		  .resume_offset = 3 * KIB,
		  .alpha_bits_per_second = 100000000000u,
		  CLASSES({ .is_lossless = true,
			  .alpha = 0.125,
			  .mark_min = 150 * KB,
			  .mark_max = 1500 * KB,
			  .mark_ppm = 10000 }) },
		"Broadcom Tomahawk (BCM56960), 32 x 100 Gb/s.\n"
		"buffer_bytes 16 MiB: published (people.ucsc.edu/~warner/Bufs), there in four parts of 4 MiB; as one: "
		"assumed\n"
		"latency 500 ns: published (blog.ipspace.net 2015/12, Broadcom Tomahawk 101)\n"
		"cut-through, pauses, headroom_bytes of what each link needs: assumed\n"
		"alpha, reserved_bytes, resume_offset: assumed, those of hpcc\n"
		"marks from 150 kB, all from 1500 kB at 100 Gb/s, 1% between: assumed\n" },
	{ { .name = "spectrum",
		  .buffer_bytes = 42 * MIB,
		  .latency = 300 * VB_NS,
		  .is_cut_through = true,
		  .flow_control = FLOW_PFC,
		  .reserved_bytes = 4 * KIB,
		  .resume_offset = 3 * KIB,
		  .alpha_bits_per_second = 100000000000u,
		  CLASSES({ .is_lossless = true,
			  .alpha = 0.125,
			  .mark_min = 150 * KB,
			  .mark_max = 1500 * KB,
			  .mark_ppm = 10000 }) },
		"Mellanox Spectrum-2, 32 x 200 Gb/s.\n"
		"buffer_bytes 42 MiB, fully shared: published (of the SN3700, router-switch.com)\n"
		"latency 300 ns: published (Linley Newsletter, July 31, 2017)\n"
		"cut-through: published (the same)\n"
		"pauses, headroom_bytes of what each link needs: assumed\n"
		"alpha, reserved_bytes, resume_offset: assumed, those of hpcc\n"
		"marks from 150 kB, all from 1500 kB at 100 Gb/s, 1% between: assumed\n" },
	{ { .name = "quantum",
		  .latency = 150 * VB_NS,
		  .is_cut_through = true,
		  .flow_control = FLOW_CREDITS,
		  .credit_bytes = 64 * KIB,
		  CLASSES({ .weight = 1 }) },
		"InfiniBand, NVIDIA Quantum-2, 64 x 400 Gb/s.\n"
		"latency 150 ns: published as below that (router-switch.com, of the QM9700)\n"
		"cut-through, credits: published (InfiniBand, 7.9)\n"
		"credit_bytes 64 KiB of each port and lane, 1.3 us at 400 Gb/s: assumed\n"
		"no marks: assumed\n" },
};

static const struct {
	struct nic_profile profile;
	const char *sources;
} nics[] = {
	{ { .name = "ideal" }, "A NIC that takes no time.\n"
			       "all delays 0, PCIe without bound: assumed\n" },
	{ { .name = "connectx",
		  .send_latency = 150 * VB_NS,
		  .receive_latency = 150 * VB_NS,
		  .pcie_latency = 250 * VB_NS,
		  .pcie_bits_per_second = 400000000000,
		  .host_latency = 0 },
		"NVIDIA ConnectX, PCIe 5.0 x16.\n"
		"pcie_latency 250 ns each way, send and receive latency 150 ns: assumed, so that a small message takes "
		"0.8 us\n"
		"from memory to memory without a switch; published are 0.8 us for ib_send_lat (perftest reports)\n"
		"pcie_bits_per_second 400 Gb/s: assumed, of 504 Gb/s that PCIe 5.0 x16 has before headers: published "
		"(PCI-SIG)\n"
		"host_latency 0: assumed, as those 0.8 us have it in them\n" },
};

enum { SWITCHES = sizeof(switches) / sizeof(switches[0]), NICS = sizeof(nics) / sizeof(nics[0]) };

const struct switch_profile *switch_profile_find(const char *name)
{
	for (uint32_t i = 0; i < SWITCHES; i++)
		if (strcmp(name, switches[i].profile.name) == 0)
			return &switches[i].profile;
	return NULL;
}

const struct nic_profile *nic_profile_find(const char *name)
{
	for (uint32_t i = 0; i < NICS; i++)
		if (strcmp(name, nics[i].profile.name) == 0)
			return &nics[i].profile;
	return NULL;
}

const char *switch_profile_name(uint32_t index)
{
	return index < SWITCHES ? switches[index].profile.name : NULL;
}

const char *nic_profile_name(uint32_t index)
{
	return index < NICS ? nics[index].profile.name : NULL;
}

const char *switch_profile_sources(uint32_t index)
{
	return index < SWITCHES ? switches[index].sources : NULL;
}

const char *nic_profile_sources(uint32_t index)
{
	return index < NICS ? nics[index].sources : NULL;
}
