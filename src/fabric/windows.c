/* Time goes on: with one shard event by event, with several in windows. A window is as long as the shortest way between
 * two shards, so nothing sent in it arrives before its end.
 * Holds: the same events happen in the same order with every number of shards. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "base/invariant.h"
#include "fabric/flow_ends.h"
#include "fabric/operations.h"
#include "fabric/pfc.h"
#include "fabric/windows.h"
#include "fabric/scale_up.h"

enum { EVENTS_A_LOOK = 1 << 16 }; /* some milliseconds */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t thread_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

double windows_wall_s(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) * 1e-9;
}

double windows_cpu_s(void)
{
	return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

static void happen(struct shard *shard, const struct event *event)
{
	uint32_t number = event_number(event);
	assert(event->at >= shard->now);
	shard->now = event->at;
	shard->event_count++;
	switch (event_kind(event)) {
	case EVENT_ARRIVAL:
		link_on_arrival(shard, number);
		break;
	case EVENT_PORT:
		port_on_event(shard, number);
		break;
	case EVENT_WIRE:
		endpoint_on_wire(shard, number);
		break;
	case EVENT_TIMER:
		endpoint_on_timer(shard, number);
		break;
	case EVENT_FLOW:
		operations_on_start(shard, number);
		break;
	case EVENT_SCALE_UP:
		scale_up_on_event(shard, number);
		break;
	case EVENT_STAGE:
		flow_ends_on_stage(shard, number, event_turn(event));
		break;
	case EVENT_FLUIDS:
		flow_ends_on_fluids(shard);
		break;
	case EVENT_OUTAGE:
		flow_ends_on_outage(shard, number);
		break;
	case EVENT_RENEWAL:
		pfc_on_renewal(shard, number);
		break;
	case EVENT_WATCH:
		pfc_on_watch(shard, number);
		break;
	case EVENT_CALL:
		cargo_call(shard, number);
		break;
	case EVENT_WAKE:
		endpoint_on_wake(shard, number);
		break;
	}
}

/* watch: NULL where others watch. False: it stopped the run. */
static bool run_shard(struct shard *shard, vb_time until, const struct watch *watch)
{
	struct event event;
	while (events_next(&shard->events, until, &event)) {
		if (shard->prefetched != shard->events.day) {
			shard->prefetched = shard->events.day;
			shard_prefetch(shard);
		}
		happen(shard, &event);
		if (watch && shard->event_count % EVENTS_A_LOOK == 0 && watch->stops(watch->user))
			return false;
	}
	return true;
}

/* ---- Several shards ---------------------------------------------------------------------------------------------- */

struct windows {
	struct fabric *fabric;
	pthread_mutex_t gate; /* held until the number of threads is known */
	pthread_barrier_t barrier;
	vb_time until;
	const struct watch *watch; /* asked by the first shard while the others take their mail */
	bool is_over, is_stopped,
		is_cut_short; /* is_cut_short: too few threads could be made, so none waits for the others */
	uint32_t started;
	pthread_t threads[];
};

static vb_time next_of(struct shard *shard)
{
	vb_time at;
	return events_peek(&shard->events, &at) ? at : INT64_MAX;
}

static vb_time earliest(const struct fabric *fabric)
{
	vb_time first = INT64_MAX;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		if (fabric->shards[i].next_at < first)
			first = fabric->shards[i].next_at;
	return first;
}

/* More threads would wait for the busiest shard of each window. */
static void count_window(struct fabric *fabric)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		if (fabric->shards[i].window_ns > most)
			most = fabric->shards[i].window_ns;
	fabric->critical_ns += most;
}

static void run_windows(struct windows *windows, struct shard *shard)
{
	struct fabric *fabric = windows->fabric;
	const vb_time until =
		windows->until; /* the next may be set before all threads have seen that this one is over */
	for (;;) {
		uint64_t begin = thread_ns();
		link_take_mail(shard);
		shard->next_at = next_of(shard);
		if (shard->index == 0)
			windows->is_stopped = windows->watch && windows->watch->stops(windows->watch->user);
		pthread_barrier_wait(&windows->barrier);
		vb_time first = earliest(fabric);
		if (first >= until || windows->is_stopped)
			break;
		vb_time end = until - first > fabric->window ? first + fabric->window : until;
		assert(shard->now < end);
		run_shard(shard, end, NULL);
		shard->window_ns = thread_ns() - begin;
		shard->cpu_ns += shard->window_ns;
		pthread_barrier_wait(&windows->barrier);
		if (shard->index == 0)
			count_window(fabric);
	}
}

static void *follow(void *argument)
{
	struct shard *shard = argument;
	struct windows *windows = shard->fabric->windows;
	pthread_mutex_lock(&windows->gate);
	pthread_mutex_unlock(&windows->gate);
	if (!windows->is_cut_short)
		for (pthread_barrier_wait(&windows->barrier); !windows->is_over;
			pthread_barrier_wait(&windows->barrier))
			run_windows(windows, shard);
	return NULL;
}

int windows_open(struct fabric *fabric)
{
	if (fabric->shard_count == 1)
		return 0;
	struct windows *windows = calloc(1, sizeof(*windows) + fabric->shard_count * sizeof(windows->threads[0]));
	assert(fabric->window > 0);
	if (!windows)
		return -1;
	fabric->windows = windows;
	windows->fabric = fabric;
	pthread_mutex_init(&windows->gate, NULL);
	pthread_mutex_lock(&windows->gate);
	while (windows->started < fabric->shard_count - 1 && !pthread_create(&windows->threads[windows->started], NULL,
								     follow, &fabric->shards[windows->started + 1]))
		windows->started++;
	windows->is_cut_short = windows->started < fabric->shard_count - 1;
	pthread_barrier_init(&windows->barrier, NULL, fabric->shard_count);
	pthread_mutex_unlock(&windows->gate);
	return windows->is_cut_short;
}

void windows_close(struct fabric *fabric)
{
	struct windows *windows = fabric->windows;
	if (!windows)
		return;
	windows->is_over = true;
	if (!windows->is_cut_short)
		pthread_barrier_wait(&windows->barrier);
	for (uint32_t i = 0; i < windows->started; i++)
		pthread_join(windows->threads[i], NULL);
	pthread_barrier_destroy(&windows->barrier);
	pthread_mutex_destroy(&windows->gate);
	free(windows);
	fabric->windows = NULL;
}

/* ---- Time goes on ------------------------------------------------------------------------------------------------ */

bool windows_peek(struct fabric *fabric, vb_time *at)
{
	bool is_any = false;
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		vb_time its;
		link_take_mail(&fabric->shards[i]);
		if (events_peek(&fabric->shards[i].events, &its) && (!is_any || its < *at)) {
			*at = its;
			is_any = true;
		}
	}
	return is_any;
}

bool windows_step(struct fabric *fabric)
{
	assert(fabric->shard_count == 1);
	struct event event;
	bool is_any = events_next(&fabric->shards[0].events, INT64_MAX, &event);
	if (is_any)
		happen(&fabric->shards[0], &event);
	return is_any;
}

bool windows_advance(struct fabric *fabric, vb_time until, const struct watch *watch)
{
	struct windows *windows = fabric->windows;
	if (!windows) {
		uint64_t begin = thread_ns();
		const bool goes_on = run_shard(&fabric->shards[0], until, watch);
		fabric->shards[0].cpu_ns += thread_ns() - begin;
		return goes_on;
	}
	windows->until = until;
	windows->watch = watch;
	pthread_barrier_wait(&windows->barrier);
	run_windows(windows, &fabric->shards[0]);
	return !windows->is_stopped;
}
