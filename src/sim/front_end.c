/* See front_end.h. */
#include "sim/front_end.h"

#include <errno.h>
#include <string.h>
#include "net/why.h"
#include "sim/why_about.h"

#define SECTION "hosts.front-end"

/* A key of the front end that the scenario gives; NULL. */
static const char *given_key(const struct scenario *scenario)
{
	for (const struct scenario_key *key = scenario_keys; key->path; key++)
		if (strncmp(key->path, SECTION ".", sizeof(SECTION)) == 0 && scenario_is_given(scenario, key->path))
			return key->path;
	return NULL;
}

static int check_none(const struct scenario *scenario, char *why, size_t size)
{
	const char *key = given_key(scenario);

	if (!key || scenario_is_given(scenario, SECTION ".storage") || scenario_is_varied(scenario, SECTION ".storage"))
		return 0;
	return why_not(why, (unsigned)size,
		"%s: what a front end carries goes to storage nodes, and there are none: write " SECTION
		".storage, as 4, or leave " SECTION " out",
		key);
}

int simulation_add_front_end(struct simulation *simulation, char *why, size_t size)
{
	const struct scenario *scenario = simulation->scenario;
	struct front_end of = scenario->front_end;

	if (!of.storage)
		return check_none(scenario, why, size);
	of.topology.fabric_delay = of.topology.host_delay;
	of.topology.profile = scenario->topology.profile;
	of.topology.nic = scenario->topology.nic;
	int rc = front_end_add(&of, &simulation->network, &simulation->hosts, why, (unsigned)size);
	return rc == -EINVAL ? why_about(why, size, SECTION) : rc;
}
