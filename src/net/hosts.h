/* Hosts with several GPUs. A rank is a GPU; ranks are numbered host by host. A host has so many NICs, which are
 * consecutive endpoints of the network, and its GPUs share them out evenly: with fewer NICs than GPUs several use one,
 * with more a GPU uses its own in turn, by channel. GPUs of a host reach each other by the scale-up domain (NVLink),
 * which is not cut into packets: each GPU has a port of the domain's rate each way. */
#ifndef NET_HOSTS_H
#define NET_HOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define HOSTS_MOST_GPUS     1024
#define HOSTS_MOST_SCALE_UP ((uint64_t)1000000000000000)

struct hosts {
	uint32_t gpus, nics;   /* of a host; gpus 0: each endpoint is a rank, and a host of its own */
	uint64_t scale_up;     /* bits per second, each way, of a GPU */
	vb_time scale_up_time; /* until the first bit of a transfer is there */
	/* A message to another host leaves by the NIC that is to its receiver's as this host is to that: NCCL's PXN, by
	 * which all traffic stays on rails. The way through the host's other GPU takes no time and no bandwidth here.
	 */
	bool keeps_rails;
	/* Where hosts are: 0: one behind the other. Otherwise dealt out in turn to so many places, which have equally
	 * many of the `count` hosts, one behind the other: so consecutive ranks are behind different switches. */
	uint32_t places, count;
	bool reduces;        /* the domain's switch reduces, and makes copies (NVLS) */
	uint32_t capability; /* of the GPU: 80 (Ampere), 90 (Hopper), 100 (Blackwell); 0: not known */
};

static inline uint32_t hosts_ranks(const struct hosts *hosts, uint32_t endpoints)
{
	return hosts->gpus ? endpoints / hosts->nics * hosts->gpus : endpoints;
}

static inline uint32_t hosts_host_of(const struct hosts *hosts, uint32_t rank)
{
	return hosts->gpus ? rank / hosts->gpus : rank;
}

/* Where this host is, counted in hosts of the network. */
static inline uint32_t hosts_place_of(const struct hosts *hosts, uint32_t host)
{
	return hosts->places ? host % hosts->places * (hosts->count / hosts->places) + host / hosts->places : host;
}

/* How many NICs a GPU uses. */
static inline uint32_t hosts_nics_of_gpu(const struct hosts *hosts)
{
	return hosts->gpus && hosts->nics > hosts->gpus ? hosts->nics / hosts->gpus : 1;
}

/* Which of its host's NICs this rank uses for a message of this channel. */
static inline uint32_t hosts_nic_of(const struct hosts *hosts, uint32_t rank, uint32_t channel)
{
	if (!hosts->gpus)
		return 0;
	const uint32_t gpu = rank % hosts->gpus, of_gpu = hosts_nics_of_gpu(hosts);
	const uint32_t first = of_gpu > 1 ? gpu * of_gpu : (uint32_t)((uint64_t)gpu * hosts->nics / hosts->gpus);
	return first + channel % of_gpu;
}

/* That NIC's endpoint. */
static inline uint32_t hosts_endpoint_of(const struct hosts *hosts, uint32_t rank, uint32_t channel)
{
	const uint32_t nics = hosts->gpus ? hosts->nics : 1;
	return hosts_place_of(hosts, hosts_host_of(hosts, rank)) * nics + hosts_nic_of(hosts, rank, channel);
}

/* The NIC by which a message of this channel leaves. */
static inline uint32_t hosts_sends_by(const struct hosts *hosts, uint32_t from, uint32_t to, uint32_t channel)
{
	if (!hosts->gpus || !hosts->keeps_rails)
		return hosts_endpoint_of(hosts, from, channel);
	return hosts_place_of(hosts, hosts_host_of(hosts, from)) * hosts->nics + hosts_nic_of(hosts, to, channel);
}

/* 0; -EINVAL and why: NICs and GPUs that do not divide, or endpoints that are no whole number of hosts. */
int hosts_check(const struct hosts *hosts, uint32_t endpoints, char *why, unsigned why_size);

/* A GPU, from its maker's data sheets. */
struct gpu {
	const char *name;
	uint32_t scale_up_gb_s; /* NVLink, each way */
	uint32_t domain;        /* GPUs that it joins in the usual machine */
	uint32_t nic_gb_s;      /* gigabits, the usual NIC of a GPU */
	uint32_t tflops;        /* dense bf16 */
	uint32_t memory_gb;
	uint32_t capability; /* as in struct hosts */
	bool reduces;
	const char *source;
};

const struct gpu *gpu_of(uint32_t number); /* from 0; NULL: there are no more */
const struct gpu *gpu_find(const char *name);

#endif
