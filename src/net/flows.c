/* Lists of flows, and the order among them. */
#include "net/flows.h"
#include <errno.h>
#include <string.h>
#include "base/invariant.h"
#include "net/grow.h"
#include "net/profile.h"
#include "net/why.h"

int flow_list_add(struct flow_list *list, const struct flow *flow)
{
	if (!grow_by_one(&list->flows, &list->room, list->count, sizeof(*list->flows)))
		return -ENOMEM;
	list->flows[list->count] = *flow;
	list->flows[list->count].spare = 0;
	list->flows[list->count++].waits = 0;
	return 0;
}

int flow_list_add_wait(struct flow_list *list, uint32_t flow, uint32_t before, enum flow_event event)
{
	assert(flow < list->count);
	if (!grow_by_one(&list->waits, &list->wait_room, list->wait_count, sizeof(*list->waits)))
		return -ENOMEM;
	list->waits[list->wait_count++] =
		(struct flow_wait){ .flow = flow, .before = before & INT32_MAX, .event = event };
	list->flows[flow].waits++;
	return 0;
}

void flow_list_note(struct flow_list *list, const char *note)
{
	for (unsigned i = 0; i < list->note_count; i++)
		if (strcmp(list->notes[i], note) == 0)
			return;
	assert(list->note_count < FLOW_LIST_NOTES);
	list->notes[list->note_count++] = note;
}

static void drop_wait(struct flow *flow)
{
	flow->waits--;
	if (flow->spare)
		flow->spare--;
}

void flow_list_cut(struct flow_list *list, uint32_t count)
{
	uint32_t kept = 0;
	assert(count <= list->count);
	for (uint32_t i = 0; i < list->wait_count; i++) {
		const struct flow_wait wait = list->waits[i];
		if (wait.flow >= count)
			continue;
		if (wait.before < count)
			list->waits[kept++] = wait;
		else
			drop_wait(&list->flows[wait.flow]);
	}
	list->wait_count = kept;
	list->count = count;
}

void flow_list_free(struct flow_list *list)
{
	free(list->flows);
	free(list->waits);
	*list = (struct flow_list){ 0 };
}

/* ---- Followers --------------------------------------------------------------------------------------------------- */

int flow_followers_make(struct flow_followers *followers, const struct flow_list *list)
{
	*followers = (struct flow_followers){ 0 };
	if (list->wait_count == 0)
		return 0;
	uint32_t *first = calloc((size_t)list->count + 2, sizeof(*first));
	followers->first = first;
	followers->followers = malloc(list->wait_count * sizeof(*followers->followers));
	if (!first || !followers->followers) {
		flow_followers_free(followers);
		return -ENOMEM;
	}
	/* first[i + 2] counts the waits for flow i; after the sums, first[i + 1] is where its next one is stored. */
	for (uint32_t i = 0; i < list->wait_count; i++) {
		assert(list->waits[i].before < list->count);
		first[list->waits[i].before + 2]++;
	}
	for (uint32_t i = 2; i <= list->count; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 0; i < list->wait_count; i++) {
		const struct flow_wait wait = list->waits[i];
		followers->followers[first[wait.before + 1]++] =
			(struct flow_follower){ .flow = wait.flow & INT32_MAX, .event = wait.event };
	}
	assert(first[list->count] == list->wait_count);
	return 0;
}

void flow_followers_free(struct flow_followers *followers)
{
	free(followers->first);
	free(followers->followers);
	*followers = (struct flow_followers){ 0 };
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

/* Removes the flows that can begin, until there are no more. left: for counting each flow's waits; ready: room for all
 * flows. */
static void begin_all(
	const struct flow_list *list, const struct flow_followers *followers, uint32_t *left, uint32_t *ready)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		left[i] = list->flows[i].waits - list->flows[i].spare;
		if (left[i] == 0)
			ready[count++] = i;
	}
	while (count > 0) {
		const uint32_t flow = ready[--count];
		for (uint32_t i = followers->first[flow]; i < followers->first[flow + 1]; i++) {
			const uint32_t next = followers->followers[i].flow;
			if (left[next] > 0 && --left[next] == 0)
				ready[count++] = next;
		}
	}
}

int flow_list_find_stuck(const struct flow_list *list, uint32_t *flow)
{
	struct flow_followers followers;
	int error = flow_followers_make(&followers, list);
	*flow = FLOW_NONE;
	if (error || !followers.first)
		return error;
	uint32_t *left = malloc(list->count * sizeof(*left)), *ready = malloc(list->count * sizeof(*ready));
	error = left && ready ? 0 : -ENOMEM;
	if (!error)
		begin_all(list, &followers, left, ready);
	for (uint32_t i = 0; !error && i < list->count && *flow == FLOW_NONE; i++)
		if (left[i] > 0)
			*flow = i;
	free(left);
	free(ready);
	flow_followers_free(&followers);
	return error;
}

static int check_flow(const struct flow_list *list, uint32_t i, uint32_t endpoints, char *why, unsigned why_size)
{
	const struct flow *flow = &list->flows[i];
	if (flow->src >= endpoints || flow->dst >= endpoints)
		return why_not(why, why_size, "flow %u: there is no endpoint %u", i,
			flow->src >= endpoints ? flow->src : flow->dst);
	if (flow->src == flow->dst)
		return why_not(why, why_size, "flow %u: endpoint %u sends to itself", i, flow->src);
	if (flow->bytes == 0 || flow->start < 0)
		return why_not(why, why_size, "flow %u: no bytes, or a start before 0", i);
	if (flow->spare > 0 && flow->spare >= flow->waits)
		return why_not(why, why_size, "flow %u: %u of its %u waits are spare", i, flow->spare, flow->waits);
	if (flow->traffic_class >= FABRIC_CLASSES)
		return why_not(why, why_size, "flow %u: there is no class %u", i, flow->traffic_class);
	return 0;
}

static int check_wait(const struct flow_list *list, struct flow_wait wait, char *why, unsigned why_size)
{
	if (wait.before >= list->count)
		return why_not(why, why_size, "flow %u waits for flow %u, yet the last is %u", wait.flow, wait.before,
			list->count - 1);
	if (wait.before == wait.flow)
		return why_not(why, why_size, "flow %u waits for itself", wait.flow);
	const struct flow *flow = &list->flows[wait.flow], *before = &list->flows[wait.before];
	const bool is_arrival = wait.event == FLOW_ARRIVED;
	const uint32_t heard_at = is_arrival ? before->dst : before->src;
	if (heard_at != flow->src)
		return why_not(why, why_size,
			"flow %u of endpoint %u waits for the %s of flow %u, which only endpoint %u hears of: send "
			"endpoint %u a flow, and wait for its arrival",
			wait.flow, flow->src, is_arrival ? "arrival" : "end", wait.before, heard_at, flow->src);
	return 0;
}

int flow_list_check(const struct flow_list *list, uint32_t endpoints, char *why, unsigned why_size)
{
	uint32_t stuck = FLOW_NONE;
	int error = 0;
	for (uint32_t i = 0; !error && i < list->count; i++)
		error = check_flow(list, i, endpoints, why, why_size);
	for (uint32_t i = 0; !error && i < list->wait_count; i++)
		error = check_wait(list, list->waits[i], why, why_size);
	if (!error)
		error = flow_list_find_stuck(list, &stuck);
	if (error == -ENOMEM)
		why_not(why, why_size, "there is not enough memory");
	if (stuck != FLOW_NONE)
		error = why_not(
			why, why_size, "flow %u never begins: it waits for itself, or for flows that do", stuck);
	return error;
}
