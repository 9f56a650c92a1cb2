/* Which introductions are taken, how many, and for how long. Whoever has a slot of this host can ask for one with us,
 * and each takes descriptors and address space of this process.
 *
 * Holds: an introduction is taken for a QP that wants that peer: a connected one whose peer it is, from RTR on, or a
 * UD QP that receives. All together have a share of the process's descriptors, and no more than MOST_DESCRIPTORS. What
 * no connected QP wants, and is not used, is let go. */
#include "host/peers/neighbours_state.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/thread.h"

#define MOST_DESCRIPTORS 64u
#define SHARE            16u /* one of so many that the process may have */
#define IDLE             (5 * VB_S)

/* Of all lanes, and of bells that are being closed. */
static atomic_uint descriptors;

static unsigned most_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / SHARE > MOST_DESCRIPTORS)
		return MOST_DESCRIPTORS;
	return (unsigned)(files.rlim_cur / SHARE);
}

static bool take_descriptors(unsigned count)
{
	if (atomic_fetch_add(&descriptors, count) + count <= most_descriptors())
		return true;
	vb_introduction_give_back(count);
	return false;
}

void vb_introduction_give_back(unsigned count)
{
	atomic_fetch_sub(&descriptors, count);
}

void vb_introductions_forked(void)
{
	atomic_store(&descriptors, 0);
}

/* ---- Whom we want ----------------------------------------------------------------------------------------------- */

bool vb_introduction_has_use(const struct vb_neighbours *all, const struct vb_acquaintance *who)
{
	for (unsigned i = 0; who && i < who->gid_count; i++)
		if (vb_lane_has_use_for(all->driver->lane, &who->gids[i], who->slot))
			return true;
	return false;
}

void vb_introductions_say_open(struct vb_neighbours *all)
{
	const struct vb_driver *d = all->driver;

	if (all->is_open == vb_lane_takes_datagrams(d->lane))
		return;
	all->is_open = !all->is_open;
	vb_broker_open(d->process->broker, d->slot.number, all->is_open);
}

/* No QP is connected to it, nor waits for it. Addresses come and go, and QPs stay connected. */
static bool is_dispensable(const struct vb_link *link)
{
	return !link->is_ours && !link->ends_at.is_set && !link->who->is_awaited &&
	       vb_list_empty(&link->engine.users) && !vb_introduction_has_use(link->all, link->who);
}

/* As many go as is needed. Who has a connection comes before those that may send datagrams. */
static bool make_room(struct vb_neighbours *all, bool for_connection, unsigned count)
{
	vb_list_for_each_safe (node, &all->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		if (!is_dispensable(link) || (!for_connection && link->is_used))
			continue;
		vb_link_let_go(link, vb_host_now());
		if (take_descriptors(count))
			return true;
	}
	return false;
}

enum vb_local_reason vb_introduction_take(struct vb_neighbours *all, uint8_t slot, unsigned count)
{
	const bool for_connection = vb_introduction_has_use(all, all->by_slot[slot]);

	if (!for_connection && !vb_lane_takes_datagrams(all->driver->lane))
		return VB_LOCAL_UNWANTED;
	return take_descriptors(count) || make_room(all, for_connection, count) ? VB_LOCAL_IS_USED : VB_LOCAL_FULL;
}

/* ---- Whom we want no more --------------------------------------------------------------------------------------- */

void vb_introductions_let_idle_go(struct vb_neighbours *all, vb_time now)
{
	vb_list_for_each_safe (node, &all->links) {
		struct vb_link *link = vb_container_of(node, struct vb_link, link);
		if (!link->is_used && is_dispensable(link))
			vb_link_let_go(link, now);
		else
			link->is_used = false;
	}
	all->idle_at.is_set = false;
	if (!vb_list_empty(&all->links))
		vb_introductions_watch(all, now);
}

void vb_introductions_watch(struct vb_neighbours *all, vb_time now)
{
	if (!all->idle_at.is_set)
		all->idle_at = (struct vb_deadline){ vb_time_add(now, IDLE), true };
}

/* ---- Bells that may not be closed here -------------------------------------------------------------------------- */

static void *close_bell(void *argument)
{
	syscall(SYS_close, (int)(intptr_t)argument);
	vb_introduction_give_back(1);
	return NULL;
}

/* Counted until it is closed. Where no thread can be had it stays open, and counted. */
void vb_introduction_close_bell(int bell)
{
	pthread_t thread;

	if (vb_thread_start(&thread, close_bell, (void *)(intptr_t)bell) == 0)
		pthread_detach(thread);
}

void vb_introduction_end_untaken(int bell)
{
	if (vb_greeting_end(bell, false))
		return;
	atomic_fetch_add(&descriptors, 1);
	vb_introduction_close_bell(bell);
}
