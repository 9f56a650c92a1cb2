/* The limits of a step's loads (steps/loads.h): what each class sends by each link, made into links that differ. */
#ifndef SIM_STEP_LIMITS_H
#define SIM_STEP_LIMITS_H

#include "sim/simulation.h"
#include "steps/loads.h"

/* A class loads a link, or a port of a scale-up domain: these are numbered behind the links, one out and one in for
 * each GPU. */
struct load_entry {
	uint32_t link, class, weight;
};

uint32_t step_links(const struct simulation *simulation);                        /* with these ports */
uint64_t step_link_capacity(const struct simulation *simulation, uint32_t link); /* payload bytes a second */
/* Fills in the limits, and the hops of the classes; puts the entries into the order of links. -ENOMEM. */
int step_limits_make(
	const struct simulation *simulation, struct load_entry *entries, uint32_t count, struct step_loads *loads);

#endif
