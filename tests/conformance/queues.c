/* Opens COUNT completion queues, each with a channel, as libfabric does, and says what that took: the CPU time of each
 * in microseconds, and how often it had to wait.
 *
 *   queues COUNT */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { ENTRIES = 1024 };

static double cpu_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static long waits(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void open_queue(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	if (!channel || fcntl(channel->fd, F_SETFL, O_NONBLOCK)) {
		perror("ibv_create_comp_channel");
		exit(1);
	}
	struct ibv_cq *cq = ibv_create_cq(context, ENTRIES, NULL, channel, 0);
	if (!cq || ibv_req_notify_cq(cq, 0)) {
		perror("ibv_create_cq");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!context) {
		perror("ibv_open_device");
		return 1;
	}
	double began = cpu_us();
	long before = waits();
	for (int i = 0; i < count; i++)
		open_queue(context);
	printf("each=%.2f waits=%ld\n", (cpu_us() - began) / count, waits() - before);
	return ibv_close_device(context);
}
