/* See here.h. */
#include "base/invariant.h"
#include "host/peers/here.h"

#include <pthread.h>
#include <stdlib.h>
#include "host/devices/interfaces.h"

#define OLD VB_S

/* Not cancelled: the caller holds a mutex. */
static int read_interfaces(struct vb_interface **list, size_t *count)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	int rc = vb_interfaces_read(list, count);
	pthread_setcancelstate(cancel_state, NULL);
	return rc;
}

static void take(struct vb_here *here, const struct vb_interface *list, size_t count)
{
	unsigned total = 0;

	for (size_t i = 0; i < count; i++)
		total += list[i].address_count;
	struct vb_gid *addresses = calloc(total ? total : 1, sizeof(*addresses));
	if (!addresses)
		return;
	free(here->addresses);
	here->addresses = addresses;
	here->count = 0;
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < list[i].address_count; k++)
			addresses[here->count++] = list[i].addresses[k];
	assert(here->count == total);
	here->is_read = true;
}

void vb_here_read(struct vb_here *here, vb_time now)
{
	struct vb_interface *list;
	size_t count;

	here->read_at = now;
	if (read_interfaces(&list, &count) < 0)
		return;
	take(here, list, count);
	free(list);
}

static bool is_listed(const struct vb_here *here, const struct vb_gid *gid)
{
	for (unsigned i = 0; i < here->count; i++)
		if (vb_gid_equal(&here->addresses[i], gid))
			return true;
	return false;
}

bool vb_here_has(struct vb_here *here, const struct vb_gid *gid, vb_time now)
{
	if (vb_gid_is_loopback(gid) || is_listed(here, gid))
		return true;
	if (here->is_read && vb_time_since(here->read_at, now) < OLD)
		return false;
	vb_here_read(here, now);
	return is_listed(here, gid);
}

void vb_here_free(struct vb_here *here)
{
	free(here->addresses);
}
