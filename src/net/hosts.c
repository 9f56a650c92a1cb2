/* See hosts.h. */
#include "net/hosts.h"
#include <stddef.h>
#include <string.h>
#include "net/why.h"

static int check_front(const struct hosts *hosts, uint32_t endpoints, char *why, unsigned why_size)
{
	const struct hosts_front *front = &hosts->front;
	const uint32_t nics = hosts->gpus ? hosts->nics : 1, gpus = hosts->gpus ? hosts->gpus : 1;
	if (!front->storage)
		return 0;
	if (front->nics == 0 || front->first != front->hosts * nics || front->ranks != front->hosts * gpus ||
		endpoints != front->first + front->hosts * front->nics + front->storage)
		return why_not(why, why_size, "%u endpoints are not those of %u hosts with a front end", endpoints,
			front->hosts);
	return 0;
}

int hosts_check(const struct hosts *hosts, uint32_t endpoints, char *why, unsigned why_size)
{
	if (!hosts->gpus)
		return check_front(hosts, endpoints, why, why_size);
	if (hosts->nics == 0)
		return why_not(why, why_size, "hosts of %u GPUs without a NIC", hosts->gpus);
	if (hosts->gpus % hosts->nics && hosts->nics % hosts->gpus)
		return why_not(why, why_size, "%u GPUs cannot share out %u NICs evenly", hosts->gpus, hosts->nics);
	const uint32_t of_back = hosts->front.storage ? hosts->front.first : endpoints;
	if (of_back % hosts->nics)
		return why_not(
			why, why_size, "%u endpoints are no whole number of hosts with %u NICs", of_back, hosts->nics);
	if (hosts->scale_up == 0)
		return why_not(why, why_size,
			"%u GPUs of a host, and no rate between them: set hosts.scale-up, or hosts.gpu", hosts->gpus);
	if (hosts->scale_up < 1000000 || hosts->scale_up_time < 0)
		return why_not(why, why_size, "a scale-up domain slower than 1 Mb/s, or a time below 0");
	return check_front(hosts, endpoints, why, why_size);
}

/* NVLink each way is half of what data sheets give for both; the domain is that of HGX boards, of Alps' nodes (GH200),
 * and of NVL72. Switches reduce from Hopper on (NVLS). */
static const struct gpu gpus[] = {
	{ "A100", 300, 8, 200, 312, 80, 80, false,
		"NVIDIA A100 data sheet: NVLink 600 GB/s; DGX A100: 8 GPUs, 8 x 200 Gb/s" },
	{ "H100", 450, 8, 400, 989, 80, 90, true,
		"NVIDIA H100 SXM data sheet: NVLink 900 GB/s; DGX H100: 8 GPUs, 8 x 400 Gb/s" },
	{ "H800", 200, 8, 400, 989, 80, 90, true,
		"H100 with NVLink of 400 GB/s; arXiv 2412.19437 section 3.1: 8 GPUs" },
	{ "H20", 450, 8, 400, 148, 96, 90, true, "NVIDIA H20 data sheet: NVLink 900 GB/s" },
	{ "GH200", 150, 4, 200, 989, 96, 90, false, "Alps: 4 GPUs a node, 150 GB/s a pair, Slingshot of 200 Gb/s" },
	{ "B200", 900, 8, 400, 2250, 180, 100, true, "NVIDIA B200 data sheet: NVLink 1,800 GB/s; DGX B200: 8 GPUs" },
	{ "GB200", 900, 72, 400, 2500, 186, 100, true, "NVIDIA GB200 NVL72 data sheet: NVLink 1,800 GB/s, 72 GPUs" },
};

const struct gpu *gpu_of(uint32_t number)
{
	return number < sizeof(gpus) / sizeof(gpus[0]) ? &gpus[number] : NULL;
}

const struct gpu *gpu_find(const char *name)
{
	for (uint32_t i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++)
		if (strcmp(gpus[i].name, name) == 0)
			return &gpus[i];
	return NULL;
}
