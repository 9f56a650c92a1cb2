/* See backing.h.
 * Holds: a place is one segment, with as many regions as were registered inside. When the last region goes, the segment
 * is withdrawn, and its memory remains a file's. */
#include "base/invariant.h"
#include "host/memory/backing.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "host/host.h"
#include "host/process.h"

#define SMAPS "/proc/self/smaps"

/* ---- May it be replaced? ----------------------------------------------------------------------------------------- */

struct mapping {
	unsigned long first, end;
	bool is_plain;
};

static bool is_plain_name(const char *name)
{
	return *name == '\0' || strncmp(name, "[anon", 5) == 0;
}

/* If the line begins a mapping. */
static void read_header(const char *line, struct mapping *mapping)
{
	unsigned long first, end, inode;
	char rights[8], name[64] = "";

	if (sscanf(line, "%lx-%lx %7s %*s %*s %lu %63[^\n]", &first, &end, rights, &inode, name) < 4)
		return;
	bool is_private = strcmp(rights, "rw-p") == 0 && inode == 0 && is_plain_name(name);
	bool is_ours = strcmp(rights, "rw-s") == 0 && strstr(name, "memfd:" VB_MEMORY_NAME);
	*mapping = (struct mapping){ first, end, is_private || is_ours };
}

static bool asks_for_more(const char *flags)
{
	static const char *const kept[] = { " hg", " ht", " lo", " wf", " dc", " gd", " um", " uw", " mg", " io",
		" pf" };

	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strstr(flags, kept[i]))
			return true;
	return false;
}

/* Mappings come in order, each with its flags last. */
static bool are_plain(FILE *smaps, uintptr_t first, uintptr_t end)
{
	struct mapping mapping = { 0 };
	char line[512];

	while (first < end && fgets(line, sizeof(line), smaps)) {
		if (strncmp(line, "VmFlags:", 8) != 0) {
			read_header(line, &mapping);
			continue;
		}
		if (mapping.end <= first)
			continue;
		if (mapping.first > first || !mapping.is_plain || asks_for_more(line))
			return false;
		first = mapping.end;
	}
	return first >= end;
}

bool vb_backing_is_possible(const void *first, size_t length)
{
	FILE *smaps = fopen(SMAPS, "re");

	if (!smaps)
		return false;
	bool is_possible = are_plain(smaps, (uintptr_t)first, (uintptr_t)first + length);
	fclose(smaps);
	return is_possible;
}

/* ---- Replacing it ------------------------------------------------------------------------------------------------ */

/* No lane writes meanwhile. */
static bool move(struct vb_process *p, void *first, size_t length, int file)
{
	bool is_able = true;

	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		is_able &= vb_host_lane_lock_quiet(p->host_lanes[i]) == 0;
	is_able = is_able && vb_host_move_memory(first, length, file) == 0;
	vb_process_unlock(p);
	return is_able;
}

static uint32_t make_segment(struct vb_host_lane *host_lane, void *first, size_t length)
{
	int file = vb_backing_is_possible(first, length) ? vb_host_make_memory(length) : -1;
	uint32_t id = 0;

	if (file < 0)
		return 0;
	assert(length >= VB_BACKING_MIN);
	if (move(host_lane->process, first, length, file))
		id = vb_host_share_memory(host_lane, first, length, file);
	close(file);
	return id;
}

/* ---- The places -------------------------------------------------------------------------------------------------- */

static bool overlaps(const struct vb_backing *backing, unsigned i, uintptr_t first, size_t length)
{
	return backing->places[i].segment && first < backing->places[i].first + backing->places[i].length &&
	       backing->places[i].first < first + length;
}

/* Memory of which a part lies in a segment is pulled as all other memory. */
static uint32_t find_or_make(struct vb_host_lane *host_lane, struct vb_backing *backing, uintptr_t first, size_t length)
{
	int place = -1;

	for (unsigned i = 0; i < VB_SEGMENTS; i++) {
		if (overlaps(backing, i, first, length)) {
			assert(backing->places[i].regions > 0);
			bool is_inside = first >= backing->places[i].first &&
					 first + length <= backing->places[i].first + backing->places[i].length;
			backing->places[i].regions += is_inside;
			return is_inside ? backing->places[i].segment : 0;
		}
		if (!backing->places[i].segment)
			place = (int)i;
	}
	uint32_t id = place < 0 ? 0 : make_segment(host_lane, (void *)first, length);
	if (!id)
		return 0;
	assert(!backing->places[place].segment);
	backing->places[place].segment = id;
	backing->places[place].regions = 1;
	backing->places[place].first = first;
	backing->places[place].length = length;
	backing->bytes += length;
	return id;
}

uint32_t vb_host_back_registered(struct vb_host_lane *host_lane, void *memory, size_t length)
{
	struct vb_backing *backing = &host_lane->process->backing;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = ((uintptr_t)memory + page - 1) & ~(page - 1),
		  end = ((uintptr_t)memory + length) & ~(page - 1);

	if (!vb_settings_get()->map_registered || !host_lane->peers || end < first || end - first < VB_BACKING_MIN)
		return 0;
	pthread_mutex_lock(&backing->mutex);
	uint32_t id = find_or_make(host_lane, backing, first, end - first);
	pthread_mutex_unlock(&backing->mutex);
	return id;
}

void vb_host_leave_registered(struct vb_host_lane *host_lane, uint32_t segment)
{
	struct vb_backing *backing = &host_lane->process->backing;
	bool is_last = false;

	if (segment == 0)
		return;
	pthread_mutex_lock(&backing->mutex);
	for (unsigned i = 0; i < VB_SEGMENTS; i++) {
		if (backing->places[i].segment != segment)
			continue;
		assert(backing->places[i].regions > 0);
		if (--backing->places[i].regions == 0) {
			backing->places[i].segment = 0;
			is_last = true;
		}
	}
	if (is_last)
		vb_host_unshare_memory(host_lane, segment);
	pthread_mutex_unlock(&backing->mutex);
}
