/* See segments.h. */
#include "base/invariant.h"
#include "host/peers/segments.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "host/host.h"
#include "host/process.h"

#define YAMA "/proc/sys/kernel/yama/ptrace_scope"

struct vb_segments *vb_segments_create(void)
{
	struct vb_segments *segments = calloc(1, sizeof(*segments));

	if (segments)
		pthread_mutex_init(&segments->mutex, NULL);
	return segments;
}

void vb_segments_forked(struct vb_segments *segments)
{
	for (unsigned i = 0; i < VB_SEGMENTS; i++)
		if (segments->places[i].said.id)
			close(segments->places[i].file);
}

void vb_segments_forget(struct vb_segments *segments)
{
	pthread_mutex_lock(&segments->mutex);
	for (unsigned i = 0; i < VB_SEGMENTS; i++)
		segments->places[i].file = -1;
	pthread_mutex_unlock(&segments->mutex);
}

void vb_segments_destroy(struct vb_segments *segments)
{
	if (!segments)
		return;
	vb_segments_forked(segments);
	pthread_mutex_destroy(&segments->mutex);
	free(segments);
}

/* The next name whose place is free; 0: none. */
static uint32_t next_name(struct vb_segments *segments)
{
	for (unsigned i = 0; i < VB_SEGMENTS && segments->count < UINT32_MAX; i++) {
		uint32_t id = ++segments->count;
		if (segments->places[id % VB_SEGMENTS].said.id == 0)
			return id;
	}
	return 0;
}

uint32_t vb_segments_add(struct vb_segments *segments, const void *memory, size_t length, int file)
{
	int own = fcntl(file, F_DUPFD_CLOEXEC, 3);

	if (own < 0)
		return 0;
	pthread_mutex_lock(&segments->mutex);
	uint32_t id = next_name(segments);
	if (id) {
		assert(segments->places[id % VB_SEGMENTS].said.id == 0);
		segments->places[id % VB_SEGMENTS].file = own;
		/* a child that is forked at this moment closes the files of the segments that it finds */
		atomic_signal_fence(memory_order_release);
		segments->places[id % VB_SEGMENTS].said = (struct vb_segment){ id, (uintptr_t)memory, length };
	}
	pthread_mutex_unlock(&segments->mutex);
	if (!id)
		close(own);
	return id;
}

void vb_segments_remove(struct vb_segments *segments, uint32_t id)
{
	pthread_mutex_lock(&segments->mutex);
	assert(segments->places[id % VB_SEGMENTS].said.id == id);
	int file = segments->places[id % VB_SEGMENTS].file;
	segments->places[id % VB_SEGMENTS].said = (struct vb_segment){ 0 };
	pthread_mutex_unlock(&segments->mutex);
	close(file);
}

/* Not cancelled: mutexes are held. */
static bool yama_forbids(void)
{
	char scope = '0';
	int file = (int)syscall(SYS_openat, AT_FDCWD, YAMA, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return false;
	bool is_read = syscall(SYS_read, file, &scope, 1) == 1;
	syscall(SYS_close, file);
	return is_read && scope != '0';
}

bool vb_segments_may_be_shared(void)
{
	return prctl(PR_GET_DUMPABLE) == 1 && !yama_forbids();
}

/* ---- For verbs --------------------------------------------------------------------------------------------------- */

static void tell_all(struct vb_process *p)
{
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		if (vb_host_lane_lock(p->host_lanes[i]) < 0)
			continue;
		vb_host_peers_tell_segments(p->host_lanes[i]);
		vb_host_lane_unlock(p->host_lanes[i]);
	}
}

uint32_t vb_host_share_memory(struct vb_host_lane *host_lane, const void *memory, size_t length, int file)
{
	uint32_t id = vb_segments_add(host_lane->process->segments, memory, length, file);

	if (id)
		tell_all(host_lane->process);
	return id;
}

void vb_host_unshare_memory(struct vb_host_lane *host_lane, uint32_t id)
{
	if (id == 0)
		return;
	vb_segments_remove(host_lane->process->segments, id);
	tell_all(host_lane->process);
}
