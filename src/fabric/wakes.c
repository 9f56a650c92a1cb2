/* See wakes.h. */
#include "fabric/wakes.h"
#include "fabric/grow.h"

bool wakes_add(struct wakes *wakes, vb_time at)
{
	if (!grow_by_one(&wakes->heap, &wakes->room, wakes->count, sizeof(*wakes->heap)))
		return false;
	uint32_t place = wakes->count++;
	for (uint32_t up; place > 0 && at < wakes->heap[up = (place - 1) / 2]; place = up)
		wakes->heap[place] = wakes->heap[up];
	wakes->heap[place] = at;
	return true;
}

static void drop_first(struct wakes *wakes)
{
	const vb_time last = wakes->heap[--wakes->count];
	uint32_t place = 0;
	for (uint32_t child; (child = 2 * place + 1) < wakes->count; place = child) {
		if (child + 1 < wakes->count && wakes->heap[child + 1] < wakes->heap[child])
			child++;
		if (last <= wakes->heap[child])
			break;
		wakes->heap[place] = wakes->heap[child];
	}
	wakes->heap[place] = last;
}

void wakes_drop(struct wakes *wakes, vb_time now)
{
	while (wakes->count > 0 && wakes->heap[0] <= now)
		drop_first(wakes);
}
