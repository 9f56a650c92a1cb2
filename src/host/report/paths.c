/* The path that every byte took, per peer, and the summary of it that VERBENA_STATS=1 prints (summary.h). Kept only
 * with that setting. */
#include "base/invariant.h"
#include "host/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/counters.h"
#include "host/call_faults.h"
#include "host/report/summary.h"
#include "host/report/text.h"

#define PATHS_MAX 256

struct path {
	struct vb_gid peer;
	uint64_t sent, received; /* payload bytes */
	bool is_by_trains;
};

struct vb_paths {
	unsigned count, last; /* last: the one used just before */
	struct path paths[PATHS_MAX];
	struct path others; /* beyond the table's size */
};

struct vb_paths *vb_paths_create(void)
{
	return calloc(1, sizeof(struct vb_paths));
}

static struct path *path_to(struct vb_paths *paths, const struct vb_gid *peer)
{
	assert(paths->count <= PATHS_MAX);
	if (paths->count && vb_gid_equal(&paths->paths[paths->last].peer, peer))
		return &paths->paths[paths->last];
	for (unsigned i = 0; i < paths->count; i++) {
		if (vb_gid_equal(&paths->paths[i].peer, peer)) {
			paths->last = i;
			return &paths->paths[i];
		}
	}
	if (paths->count == PATHS_MAX)
		return &paths->others;
	paths->last = paths->count++;
	paths->paths[paths->last].peer = *peer;
	return &paths->paths[paths->last];
}

void vb_paths_sent(struct vb_paths *paths, const struct vb_batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++) {
		const struct vb_outgoing *out = &batch->out[i];
		struct path *path = path_to(paths, &out->av->dgid);
		path->sent += vb_packet_data_length(&out->packet);
		path->is_by_trains |= out->to_trains;
	}
}

void vb_paths_received(struct vb_paths *paths, const struct vb_train *train)
{
	struct path *path = path_to(paths, &train->path.src);

	for (unsigned i = 0; i < train->count; i++)
		path->received += vb_packet_data_length(&train->packets[i]);
}

static void tell_path(
	const struct vb_summary *summary, const struct path *path, bool trains_are_refused, const char *who)
{
	char sent[32], received[32];
	bool is_by_trains = path->is_by_trains && !vb_settings_get()->trains_off && !trains_are_refused;

	vb_summary_add(summary, "wire: %s sent, %s received, peer %s (%s)",
		vb_text_bytes(path->sent, sent, sizeof(sent)),
		vb_text_bytes(path->received, received, sizeof(received)), who,
		is_by_trains         ? "Verbena, trains"
		: path->is_by_trains ? "Verbena, single datagrams"
				     : "single datagrams");
}

/* name=value of every counter that is not 0. */
static size_t put_counters(char *line, size_t size, const char *const *names, const uint64_t *values, unsigned count)
{
	size_t at = 0;

	for (unsigned i = 0; i < count && at < size; i++)
		if (values[i])
			at += (size_t)snprintf(
				line + at, size - at, " %s=%llu", names[i], (unsigned long long)values[i]);
	return at;
}

#define X(name, text, meaning) text,
static const char *const cm_names[] = { VB_CM_COUNTERS(X) };
#undef X

static void tell_connections(const struct vb_summary *summary)
{
	static const char *const fault_names[VB_FAULTS] = { "cm_faults_dropped", "cm_faults_doubled",
		"cm_faults_delayed", "cm_faults_reordered", "cm_faults_corrupted", "cm_faults_late",
		"cm_faults_bursts" };
	char line[600] = "";
	size_t at;

	if (!summary->has_connections)
		return;
	at = put_counters(line, sizeof(line), cm_names, summary->connections.cm, VB_CM_COUNTER_COUNT);
	at += put_counters(line + at, sizeof(line) - at, fault_names, summary->connections.faults, VB_FAULTS);
	if (at)
		vb_summary_add(summary, "connections:%s", line);
}

static void add_path(struct path *to, const struct path *path)
{
	to->sent += path->sent;
	to->received += path->received;
	to->is_by_trains |= path->is_by_trains;
}

static void add_paths(struct vb_paths *to, const struct vb_paths *paths)
{
	for (unsigned i = 0; i < paths->count; i++)
		add_path(path_to(to, &paths->paths[i].peer), &paths->paths[i]);
	add_path(&to->others, &paths->others);
	assert(to->last < PATHS_MAX);
}

/* The sum of several lanes. */
struct sum {
	unsigned lanes;
	struct vb_paths paths;
	uint64_t counters[VB_COUNTER_COUNT], port_counters[VB_PORT_COUNTER_COUNT];
	bool trains_are_refused;
};

static void add_host_lane(struct sum *sum, const struct vb_host_lane *d)
{
	uint64_t counters[VB_COUNTER_COUNT], port_counters[VB_PORT_COUNTER_COUNT];

	assert(d->paths);
	assert(d->lane);
	sum->lanes++;
	add_paths(&sum->paths, d->paths);
	vb_lane_counters(d->lane, counters);
	vb_port_counters(d->port, port_counters);
	for (unsigned i = 0; i < VB_COUNTER_COUNT; i++)
		sum->counters[i] += counters[i];
	for (unsigned i = 0; i < VB_PORT_COUNTER_COUNT; i++)
		sum->port_counters[i] += port_counters[i];
	sum->trains_are_refused |= d->port->trains_refused;
}

static void tell_wire(const struct vb_summary *summary, const struct sum *sum, bool has_talked_otherwise)
{
	char peer[VB_TEXT_GID];

	if (!sum->paths.count && !has_talked_otherwise)
		vb_summary_add(summary, "wire: nothing was sent or received");
	for (unsigned i = 0; i < sum->paths.count; i++)
		tell_path(summary, &sum->paths.paths[i], sum->trains_are_refused,
			vb_text_gid(&sum->paths.paths[i].peer, peer));
	if (sum->paths.others.sent || sum->paths.others.received)
		tell_path(summary, &sum->paths.others, sum->trains_are_refused, "others");
}

static void tell_counters(const struct vb_summary *summary, const struct sum *sum)
{
	char line[900] = "";

	if (sum->lanes > 1)
		vb_summary_add(
			summary, "lanes: %u, each with a slot and a thread; what follows is their sum", sum->lanes);
	put_counters(line, sizeof(line), vb_counter_name, sum->counters, VB_COUNTER_COUNT);
	vb_summary_add(summary, "lane:%s", line);
	line[0] = '\0';
	put_counters(line, sizeof(line), vb_port_counter_name, sum->port_counters, VB_PORT_COUNTER_COUNT);
	vb_summary_add(summary, "port:%s", line);
}

/* ---- As JSON ----------------------------------------------------------------------------------------------------- */

static void put_path(struct vb_json_line *json, const char *who, const struct path *path, bool is_by_trains)
{
	vb_json_line_add(json, "%s{\"peer\":\"%s\",\"path\":\"wire\",\"sent\":%llu,\"received\":%llu,\"trains\":%s}",
		json->text->bytes[json->text->length - 1] == '[' ? "" : ",", who, (unsigned long long)path->sent,
		(unsigned long long)path->received, is_by_trains ? "true" : "false");
}

static void put_peers(struct vb_json_line *json, const struct vb_process *p, unsigned lanes, const struct sum *sum)
{
	const bool may_train = !vb_settings_get()->trains_off && !sum->trains_are_refused;
	char peer[VB_TEXT_GID];

	vb_json_line_add(json, ",\"peers\":[");
	for (unsigned i = 0; i < sum->paths.count; i++) {
		const struct path *path = &sum->paths.paths[i];
		put_path(json, vb_text_gid(&path->peer, peer), path, path->is_by_trains && may_train);
	}
	if (sum->paths.others.sent || sum->paths.others.received)
		put_path(json, "others", &sum->paths.others, sum->paths.others.is_by_trains && may_train);
	vb_host_peers_put(p, lanes, json);
	vb_json_line_add(json, "]");
}

static void put_json(
	const struct vb_summary *summary, const struct vb_process *p, unsigned lanes, const struct sum *sum)
{
	struct vb_json_line *json = summary->json;

	put_peers(json, p, lanes, sum);
	vb_json_line_add(json, ",\"lanes\":%u", sum->lanes);
	vb_json_line_counters(json, "lane", vb_counter_name, sum->counters, VB_COUNTER_COUNT);
	vb_json_line_counters(json, "port", vb_port_counter_name, sum->port_counters, VB_PORT_COUNTER_COUNT);
	if (summary->has_connections)
		vb_json_line_counters(json, "connections", cm_names, summary->connections.cm, VB_CM_COUNTER_COUNT);
	vb_call_faults_put(json);
	vb_json_line_end(json);
	vb_summary_write_json(summary);
}

/* Allocates no memory: exit() may have been called in the middle of malloc(). */
void vb_paths_tell(const struct vb_process *p, unsigned lanes, const struct vb_summary *summary)
{
	static struct sum sums[VB_SUMMARY_USES];
	struct sum *sum = &sums[summary->use];

	assert(summary->use < VB_SUMMARY_USES);
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++)
		if (lanes >> i & 1)
			add_host_lane(sum, p->host_lanes[i]);
	tell_wire(summary, sum, vb_host_peers_tell(p, lanes, summary));
	if (vb_process_home(p)->slot.is_carried)
		vb_summary_add(summary, "wire: received by a forwarder of the broker, which is another user's");
	vb_accounts_tell_all(p, lanes, summary);
	tell_counters(summary, sum);
	tell_connections(summary);
	vb_call_faults_tell(summary);
	if (summary->json)
		put_json(summary, p, lanes, sum);
}
