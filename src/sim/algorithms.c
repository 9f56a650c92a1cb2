/* Which congestion controls there are, by name. */
#include "sim/algorithms.h"

#include <stdio.h>
#include <string.h>

static const struct vb_cc_algorithm *const algorithms[] = { &vb_cc_none, &vb_cc_window };
enum { COUNT = sizeof(algorithms) / sizeof(algorithms[0]) };

/* Names that the literature has, and of which one may ask. */
static const char *const not_yet[] = { "dcqcn", "dcqcn_paper", "dcqcn_vwin", "hpcc", "dctcp", "timely", "swift" };

const struct vb_cc_algorithm *algorithm_find(const char *name)
{
	for (unsigned i = 0; i < COUNT; i++)
		if (strcmp(algorithms[i]->name, name) == 0)
			return algorithms[i];
	return NULL;
}

void algorithm_refuse(const char *name, char *why, size_t size)
{
	const char *is = "there is no such congestion control";

	for (unsigned i = 0; i < sizeof(not_yet) / sizeof(not_yet[0]); i++)
		if (strcmp(not_yet[i], name) == 0)
			is = "this congestion control is not there yet";
	size_t used = (size_t)snprintf(why, size, "%s; there are", is);
	for (unsigned i = 0; i < COUNT && used < size; i++)
		used += (size_t)snprintf(why + used, size - used, "%s %s", i ? "," : "", algorithms[i]->name);
}
