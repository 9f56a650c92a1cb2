/* Time goes on: in one part event by event; in several by windows, each as long as the shortest way between two parts,
 * so that nothing sent in a window is there before its end.
 * Holds: what happens, and in which order, is the same for every number of parts. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "fabric/pfc.h"
#include "fabric/windows.h"

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

static void happen(struct part *part, const struct event *event)
{
	uint32_t number = event_number(event);
	part->now = event->at;
	part->event_count++;
	switch (event_kind(event)) {
	case EVENT_ARRIVAL:
		link_on_arrival(part, number);
		break;
	case EVENT_PORT:
		port_on_event(part, number);
		break;
	case EVENT_WIRE:
		endpoint_on_wire(part, number);
		break;
	case EVENT_TIMER:
		endpoint_on_timer(part, number);
		break;
	case EVENT_FLOW:
		endpoint_on_flow(part, number);
		break;
	case EVENT_RENEWAL:
		pfc_on_renewal(part, number);
		break;
	case EVENT_WATCH:
		pfc_on_watch(part, number);
		break;
	case EVENT_CALL:
		cargo_call(part, number);
		break;
	case EVENT_WAKE:
		endpoint_on_wake(part, number);
		break;
	}
}

static void run_part(struct part *part, vb_time until)
{
	struct event event;
	while (events_next(&part->events, until, &event)) {
		if (part->prefetched != part->events.day) {
			part->prefetched = part->events.day;
			part_prefetch(part);
		}
		happen(part, &event);
	}
}

/* ---- Several parts ----------------------------------------------------------------------------------------------- */

struct windows {
	struct fabric *fabric;
	pthread_mutex_t gate; /* held until it is known how many threads there are */
	pthread_barrier_t barrier;
	vb_time until;
	bool is_over, is_cut_short; /* cut short: there are not enough threads, so nobody waits for the others */
	uint32_t started;
	pthread_t threads[];
};

static vb_time next_of(struct part *part)
{
	vb_time at;
	return events_peek(&part->events, &at) ? at : INT64_MAX;
}

static vb_time earliest(const struct fabric *fabric)
{
	vb_time first = INT64_MAX;
	for (uint32_t i = 0; i < fabric->part_count; i++)
		if (fabric->parts[i].next_at < first)
			first = fabric->parts[i].next_at;
	return first;
}

/* The busiest part of a window is what more threads would wait for. */
static void count_window(struct fabric *fabric)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < fabric->part_count; i++)
		if (fabric->parts[i].window_ns > most)
			most = fabric->parts[i].window_ns;
	fabric->critical_ns += most;
}

static void run_windows(struct windows *windows, struct part *part)
{
	struct fabric *fabric = windows->fabric;
	const vb_time until = windows->until; /* the next may be set before all have seen that this one is over */
	for (;;) {
		uint64_t begin = thread_ns();
		link_take_letters(part);
		part->next_at = next_of(part);
		pthread_barrier_wait(&windows->barrier);
		vb_time first = earliest(fabric);
		if (first >= until)
			break;
		vb_time end = until - first > fabric->window ? first + fabric->window : until;
		run_part(part, end);
		part->window_ns = thread_ns() - begin;
		part->cpu_ns += part->window_ns;
		pthread_barrier_wait(&windows->barrier);
		if (part->index == 0)
			count_window(fabric);
	}
}

static void *follow(void *argument)
{
	struct part *part = argument;
	struct windows *windows = part->fabric->windows;
	pthread_mutex_lock(&windows->gate);
	pthread_mutex_unlock(&windows->gate);
	if (!windows->is_cut_short)
		for (pthread_barrier_wait(&windows->barrier); !windows->is_over;
			pthread_barrier_wait(&windows->barrier))
			run_windows(windows, part);
	return NULL;
}

int windows_open(struct fabric *fabric)
{
	if (fabric->part_count == 1)
		return 0;
	struct windows *windows = calloc(1, sizeof(*windows) + fabric->part_count * sizeof(windows->threads[0]));
	if (!windows)
		return -1;
	fabric->windows = windows;
	windows->fabric = fabric;
	pthread_mutex_init(&windows->gate, NULL);
	pthread_mutex_lock(&windows->gate);
	while (windows->started < fabric->part_count - 1 && !pthread_create(&windows->threads[windows->started], NULL,
								    follow, &fabric->parts[windows->started + 1]))
		windows->started++;
	windows->is_cut_short = windows->started < fabric->part_count - 1;
	pthread_barrier_init(&windows->barrier, NULL, fabric->part_count);
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

/* ---- All --------------------------------------------------------------------------------------------------------- */

bool windows_peek(struct fabric *fabric, vb_time *at)
{
	bool is_any = false;
	for (uint32_t i = 0; i < fabric->part_count; i++) {
		vb_time its;
		link_take_letters(&fabric->parts[i]);
		if (events_peek(&fabric->parts[i].events, &its) && (!is_any || its < *at)) {
			*at = its;
			is_any = true;
		}
	}
	return is_any;
}

bool windows_step(struct fabric *fabric)
{
	struct event event;
	bool is_any = events_next(&fabric->parts[0].events, INT64_MAX, &event);
	if (is_any)
		happen(&fabric->parts[0], &event);
	return is_any;
}

void windows_advance(struct fabric *fabric, vb_time until)
{
	struct windows *windows = fabric->windows;
	if (!windows) {
		uint64_t begin = thread_ns();
		run_part(&fabric->parts[0], until);
		fabric->parts[0].cpu_ns += thread_ns() - begin;
		return;
	}
	windows->until = until;
	pthread_barrier_wait(&windows->barrier);
	run_windows(windows, &fabric->parts[0]);
}
