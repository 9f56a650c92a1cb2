/* See channel.h. A queue is kept as the time when it will be empty. */
#include "channel.h"
#include "base/invariant.h"

static vb_time time_of(uint64_t bytes, uint64_t rate)
{
	return (vb_time)((unsigned __int128)bytes * 8 * VB_S / rate);
}

bool link_queue_admit(struct link_queue *queue, uint32_t bytes, vb_time now, vb_time *leaves_at)
{
	*leaves_at = now;
	if (!queue->rate)
		return true;
	if (!queue->has_begun || vb_time_before(queue->free_at, now))
		queue->free_at = now;
	queue->has_begun = true;
	vb_time wait = vb_time_diff(queue->free_at, now);
	uint64_t queued = (uint64_t)((unsigned __int128)wait * queue->rate / 8 / VB_S);
	if (queued + bytes > queue->length)
		return false;
	queue->most = queued + bytes > queue->most ? queued + bytes : queue->most;
	queue->free_at = vb_time_add(queue->free_at, time_of(bytes, queue->rate));
	*leaves_at = queue->free_at;
	return true;
}

void link_channel_init(struct link_channel *channel, const struct link_faults *faults, uint64_t seed, vb_time begun_at,
	struct link_counts *counts)
{
	*channel = (struct link_channel){ .faults = *faults,
		.queue = { .rate = faults->rate, .length = faults->queue },
		.begun_at = begun_at,
		.counts = counts };
	vb_random_seed(&channel->random, seed);
	if (faults->burst)
		vb_bursts_init(&channel->bursts, (uint32_t)faults->loss, faults->burst);
}

struct verdict {
	bool loses, reorders, duplicates;
};

static struct verdict decide(struct link_channel *channel)
{
	const struct link_faults *faults = &channel->faults;
	struct vb_random *random = &channel->random;

	return (struct verdict){
		.loses = faults->burst ? vb_bursts_strikes(&channel->bursts, random)
				       : vb_random_chance(random, (uint32_t)faults->loss),
		.reorders = vb_random_chance(random, (uint32_t)faults->reorder),
		.duplicates = vb_random_chance(random, (uint32_t)faults->duplicate),
	};
}

static bool is_dead(const struct link_channel *channel, vb_time now)
{
	vb_time age = vb_time_diff(now, channel->begun_at); /* below 0: not begun */
	const struct link_faults *faults = &channel->faults;

	if (!faults->dead_after || age < (vb_time)faults->dead_after)
		return false;
	return !faults->alive_after || age < (vb_time)faults->alive_after;
}

/* Whether the packet gets through both queues, and when; counts why not. */
static bool get_through(
	struct link_channel *channel, struct link_queue *line, uint32_t bytes, vb_time now, vb_time *leaves_at)
{
	struct link_counts *counts = channel->counts;

	if (!link_queue_admit(line, bytes, now, leaves_at)) {
		counts->overflowed++;
		return false;
	}
	if (is_dead(channel, now)) {
		counts->dead++;
		return false;
	}
	bool has_room = link_queue_admit(&channel->queue, bytes, *leaves_at, leaves_at);
	counts->overflowed += !has_room;
	return has_room;
}

unsigned link_channel_admit(
	struct link_channel *channel, struct link_queue *line, uint32_t bytes, vb_time now, vb_time due[LINK_COPIES])
{
	struct link_counts *counts = channel->counts;
	struct verdict verdict = decide(channel);
	vb_time leaves_at;

	counts->came++;
	counts->came_bytes += bytes;
	if (!get_through(channel, line, bytes, now, &leaves_at))
		return 0;
	if (verdict.loses) {
		counts->lost++;
		return 0;
	}
	vb_time on_time = vb_time_add(leaves_at, (vb_time)channel->faults.delay);
	due[0] = verdict.reorders ? vb_time_add(on_time, (vb_time)channel->faults.reorder_by) : on_time;
	due[1] = on_time;
	counts->reordered += verdict.reorders;
	counts->duplicated += verdict.duplicates;
	unsigned copies = verdict.duplicates ? 2 : 1;
	for (unsigned i = 0; i < copies; i++)
		counts->under_way_ns += (uint64_t)(vb_time_diff(due[i], now) / VB_NS);
	return copies;
}
