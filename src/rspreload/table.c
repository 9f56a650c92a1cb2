/* The table of the program's descriptors that are rsockets. */
#include "rspreload/rspreload.h"

#include <stdatomic.h>

enum { FDS = 1 << 20 };

static atomic_int rsocket_behind[FDS]; /* its number + 1 */
static atomic_int references[FDS];     /* of an rsocket: the program's descriptors */
static atomic_ushort told[FDS];
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

void vb_told(int rsocket, short events)
{
	told[rsocket] |= (unsigned short)events;
}

bool vb_take_told(int rsocket, short events)
{
	unsigned short bits = (unsigned short)events;
	return told[rsocket] & bits && atomic_fetch_and(&told[rsocket], (unsigned short)~bits) & bits;
}
