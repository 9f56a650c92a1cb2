/* Which of the program's descriptors are rsockets. */
#include "rspreload/rspreload.h"

#include <stdatomic.h>

enum { FDS = 1 << 20 };

static atomic_int rsocket_behind[FDS]; /* its number + 1 */
static atomic_int references[FDS];     /* of an rsocket: the program's descriptors */
static atomic_bool is_blocked[FDS];    /* an rsocket that could not send all */
static _Thread_local int depth;

void vb_enter(void)
{
	depth++;
}

void vb_leave(void)
{
	depth--;
}

bool vb_is_inside(void)
{
	return depth > 0;
}

int vb_rsocket_of(int fd)
{
	return depth || fd < 0 || fd >= FDS ? -1 : rsocket_behind[fd] - 1;
}

void vb_table_add(int fd, int rsocket)
{
	if (fd >= FDS || rsocket >= FDS)
		return;
	references[rsocket]++;
	rsocket_behind[fd] = rsocket + 1;
}

bool vb_table_remove(int fd)
{
	int rsocket = atomic_exchange(&rsocket_behind[fd], 0) - 1;
	return rsocket >= 0 && --references[rsocket] == 0;
}

void vb_note_blocked(int rsocket, ssize_t sent, size_t wanted)
{
	if (sent < 0 || (size_t)sent < wanted)
		is_blocked[rsocket] = true;
}

bool vb_take_blocked(int rsocket)
{
	return atomic_exchange(&is_blocked[rsocket], false);
}
