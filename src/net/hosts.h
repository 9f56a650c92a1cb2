/* Hosts with several GPUs. A rank is a GPU; ranks are numbered host by host, unless they are placed. A host has so many
 * NICs, which are consecutive endpoints of the network, and its GPUs share them out evenly: with fewer NICs than GPUs
 * several use one, with more a GPU uses its own in turn. GPUs of a host reach each other by the scale-up
 * domain (NVLink), which is not cut into packets: each GPU has a port of the domain's rate each way.
 *
 * With a front end (front_end.h) each host has further NICs, on a network apart, and what goes to and from storage
 * nodes goes by these. Storage nodes are ranks, too, behind all others: they run no collective, and each is a host of
 * its own. */
#ifndef NET_HOSTS_H
#define NET_HOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define HOSTS_MOST_GPUS     1024
#define HOSTS_MOST_SCALE_UP ((uint64_t)1000000000000000)

/* Whether the messages of a job keep their rails. */
enum hosts_rails { RAILS_AS_HOSTS, RAILS_KEPT, RAILS_LEFT };

/* Its endpoints are behind those of the back end: the NICs of hosts, host by host, then one for each storage node. */
struct hosts_front {
	uint32_t nics;         /* of a host */
	uint32_t storage;      /* nodes; 0: there is no front end */
	uint32_t first;        /* endpoint */
	uint32_t hosts, ranks; /* that are no storage nodes */
};

struct hosts {
	uint32_t ports;        /* of each NIC; 0: 1 */
	uint32_t gpus, nics;   /* of a host; gpus 0: each endpoint is a rank, and a host of its own */
	uint64_t scale_up;     /* bits per second, each way, of a GPU */
	vb_time scale_up_time; /* until the first bit of a transfer is there */
	/* A message to another host leaves by the NIC that is to its receiver's as this host is to that: NCCL's PXN, by
	 * which all traffic stays on rails. The way through the host's other GPU takes no time and no bandwidth here.
	 */
	bool keeps_rails;
	/* By rank: the GPU that it runs on, counted host by host (without GPUs: the endpoint). Each is there once.
	 * NULL: the rank's own number. Borrowed (placement.h). */
	const uint32_t *gpu_of;
	struct hosts_front front;
	bool reduces;        /* the domain's switch reduces, and makes copies (NVLS) */
	uint32_t capability; /* of the GPU: 80 (Ampere), 90 (Hopper), 100 (Blackwell); 0: not known */
};

/* As they are to messages of such a job. */
static inline struct hosts hosts_to(const struct hosts *hosts, enum hosts_rails rails)
{
	struct hosts its = *hosts;
	if (rails != RAILS_AS_HOSTS)
		its.keeps_rails = hosts->gpus && rails == RAILS_KEPT;
	return its;
}

/* Of a network with so many endpoints: hosts, and the ranks that they have. */
static inline uint32_t hosts_count(const struct hosts *hosts, uint32_t endpoints)
{
	if (hosts->front.storage)
		return hosts->front.hosts;
	return hosts->gpus ? endpoints / hosts->nics : endpoints;
}

static inline uint32_t hosts_ranks(const struct hosts *hosts, uint32_t endpoints)
{
	return hosts_count(hosts, endpoints) * (hosts->gpus ? hosts->gpus : 1);
}

/* And with storage nodes of the front end. */
static inline uint32_t hosts_all_ranks(const struct hosts *hosts, uint32_t endpoints)
{
	return hosts_ranks(hosts, endpoints) + hosts->front.storage;
}

static inline bool hosts_is_storage(const struct hosts *hosts, uint32_t rank)
{
	return hosts->front.storage && rank >= hosts->front.ranks;
}

/* Counted over all hosts. */
static inline uint32_t hosts_gpu_of(const struct hosts *hosts, uint32_t rank)
{
	return hosts->gpu_of && !hosts_is_storage(hosts, rank) ? hosts->gpu_of[rank] : rank;
}

static inline uint32_t hosts_host_of(const struct hosts *hosts, uint32_t rank)
{
	if (hosts_is_storage(hosts, rank))
		return hosts->front.hosts + (rank - hosts->front.ranks);
	const uint32_t gpu = hosts_gpu_of(hosts, rank);
	return hosts->gpus ? gpu / hosts->gpus : gpu;
}

/* Which of its host's GPUs it is. */
static inline uint32_t hosts_gpu_in_host(const struct hosts *hosts, uint32_t rank)
{
	return hosts->gpus ? hosts_gpu_of(hosts, rank) % hosts->gpus : 0;
}

/* How many NICs a GPU uses. */
static inline uint32_t hosts_nics_of_gpu(const struct hosts *hosts)
{
	return hosts->gpus && hosts->nics > hosts->gpus ? hosts->nics / hosts->gpus : 1;
}

/* Which of its host's NICs is the `turn`th that this rank uses. */
static inline uint32_t hosts_nic_of(const struct hosts *hosts, uint32_t rank, uint32_t turn)
{
	if (!hosts->gpus)
		return 0;
	const uint32_t gpu = hosts_gpu_in_host(hosts, rank), of_gpu = hosts_nics_of_gpu(hosts);
	const uint32_t first = of_gpu > 1 ? gpu * of_gpu : (uint32_t)((uint64_t)gpu * hosts->nics / hosts->gpus);
	return first + turn % of_gpu;
}

/* By which the rank reaches storage nodes, and they reach it. */
static inline uint32_t hosts_front_endpoint_of(const struct hosts *hosts, uint32_t rank)
{
	const struct hosts_front *front = &hosts->front;
	if (hosts_is_storage(hosts, rank))
		return front->first + front->hosts * front->nics + (rank - front->ranks);
	return front->first + hosts_host_of(hosts, rank) * front->nics + hosts_gpu_in_host(hosts, rank) % front->nics;
}

/* That NIC's endpoint. */
static inline uint32_t hosts_endpoint_of(const struct hosts *hosts, uint32_t rank, uint32_t turn)
{
	if (hosts_is_storage(hosts, rank))
		return hosts_front_endpoint_of(hosts, rank);
	const uint32_t nics = hosts->gpus ? hosts->nics : 1;
	return hosts_host_of(hosts, rank) * nics + hosts_nic_of(hosts, rank, turn);
}

/* A GPU that has several NICs takes them in turn: by the parts of a collective, by its peer's host, and beside the
 * other GPUs of its host. Both ends take the NIC of one turn, so a message stays on its rail. */
static inline uint32_t hosts_turn_of(const struct hosts *hosts, uint32_t from, uint32_t to, uint32_t part)
{
	return part + hosts_gpu_of(hosts, from) + hosts_host_of(hosts, to);
}

static inline bool hosts_go_by_front(const struct hosts *hosts, uint32_t from, uint32_t to)
{
	return hosts_is_storage(hosts, from) || hosts_is_storage(hosts, to);
}

/* The endpoints by which a message of this part leaves and arrives (struct message). */
static inline uint32_t hosts_sends_by(const struct hosts *hosts, uint32_t from, uint32_t to, uint32_t part)
{
	if (hosts_go_by_front(hosts, from, to))
		return hosts_front_endpoint_of(hosts, from);
	const uint32_t turn = hosts_turn_of(hosts, from, to, part);
	if (!hosts->gpus || !hosts->keeps_rails)
		return hosts_endpoint_of(hosts, from, turn);
	return hosts_host_of(hosts, from) * hosts->nics + hosts_nic_of(hosts, to, turn);
}

static inline uint32_t hosts_receives_by(const struct hosts *hosts, uint32_t from, uint32_t to, uint32_t part)
{
	if (hosts_go_by_front(hosts, from, to))
		return hosts_front_endpoint_of(hosts, to);
	return hosts_endpoint_of(hosts, to, hosts_turn_of(hosts, from, to, part));
}

/* 0; -EINVAL and why: NICs and GPUs that do not divide, or endpoints that are no whole number of hosts, or not those
 * that a front end wants. */
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
