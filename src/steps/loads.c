/* See loads.h. */
#include "steps/loads.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

static uint32_t root_of(uint32_t *above, uint32_t number)
{
	while (above[number] != number) {
		above[number] = above[above[number]];
		number = above[number];
	}
	return number;
}

/* Classes are joined with the first class of each of their limits. */
static int find_components(struct step_loads *loads)
{
	uint32_t *first = malloc(((size_t)loads->limit_count + 1) * sizeof(*first));
	uint32_t *above = malloc(((size_t)loads->class_count + 1) * sizeof(*above));
	for (uint32_t i = 0; first && i < loads->limit_count; i++)
		first[i] = STEP_NONE;
	for (uint32_t i = 0; first && above && i < loads->class_count; i++) {
		const struct step_load *load = &loads->classes[i];
		above[i] = i;
		for (uint32_t k = 0; k < load->hop_count; k++) {
			uint32_t *of = &first[load->hops[k].link];
			if (*of == STEP_NONE)
				*of = i;
			above[root_of(above, i)] = root_of(above, *of);
		}
	}
	for (uint32_t i = 0; first && above && i < loads->class_count; i++)
		loads->classes[i].component = root_of(above, i);
	const int error = first && above ? 0 : -ENOMEM;
	free(first);
	free(above);
	return error;
}

static int find_alone(struct step_loads *loads)
{
	struct max_min *solver = max_min_open(loads->limits, loads->limit_count);
	int error = solver ? 0 : -ENOMEM;
	for (uint32_t i = 0; !error && i < loads->class_count; i++) {
		struct step_load *load = &loads->classes[i];
		struct max_min_flow flow = { .hops = load->hops, .hop_count = load->hop_count };
		if (load->hop_count == 0)
			continue;
		error = max_min_find(solver, (struct max_min_flow *[]){ &flow }, 1);
		load->alone = flow.rate;
	}
	max_min_close(solver);
	return error;
}

int step_loads_finish(struct step_loads *loads)
{
	const int error = find_components(loads);
	return error ? error : find_alone(loads);
}

void step_loads_empty(struct step_loads *loads)
{
	for (uint32_t i = 0; loads->classes && i < loads->class_count; i++)
		free(loads->classes[i].hops);
	free(loads->classes);
	free(loads->limits);
	loads->classes = NULL;
	loads->limits = NULL;
	loads->class_count = loads->limit_count = 0;
}

void step_loads_free(struct step_loads *loads)
{
	for (struct step_loads *later = loads->next, *next; later; later = next) {
		next = later->next;
		step_loads_empty(later);
		free(later);
	}
	step_loads_empty(loads);
	for (uint32_t i = 0; loads->lanes && i < loads->step_count; i++)
		free(loads->lanes[i].of);
	free(loads->lanes);
	*loads = (struct step_loads){ 0 };
}
