/* Why PAUSE did or did not fire in a run, from what the fabric has recorded (fabric_result.pauses_told). */
#ifndef SIM_EXPLAIN_H
#define SIM_EXPLAIN_H

#include <stdio.h>
#include "sim/simulation.h"

enum { EXPLAIN_MOST = 5, EXPLAIN_VICTIMS = 4 };

/* One of the links that were paused for longest. */
struct explained {
	const struct fabric_pauses *told;
	uint32_t root;     /* the link whose queue was not stopped itself; NETWORK_NONE: the pauses form a ring */
	bool *are_stopped; /* endpoints, in the end */
	uint32_t stopped_count;
	/* Flows of these endpoints, at that time, of which none passes that queue; the first few. */
	uint32_t victims[EXPLAIN_VICTIMS], victim_count;
};

struct explanation {
	const char *off; /* why no pause is possible; NULL */
	uint32_t paused_links;
	uint64_t pauses;
	vb_time lasted;
	struct explained worst[EXPLAIN_MOST];
	unsigned worst_count;
	const struct fabric_pauses *nearest; /* to its threshold, of all; NULL: nothing arrived in a lossless class */
	uint32_t longest_queue;              /* the switch's link with the longest queue */
};

int explanation_make(struct explanation *explanation, const struct simulation *simulation); /* -ENOMEM */
void explanation_free(struct explanation *explanation);
void explanation_print(FILE *out, const struct explanation *explanation, const struct simulation *simulation);
void explanation_json(
	FILE *out, const char *indent, const struct explanation *explanation, const struct simulation *simulation);

/* The link with whose queue the pauses of this link began; NETWORK_NONE: it is not known, or they form a ring. */
uint32_t explain_stopper(const struct fabric_result *result, uint32_t link, uint8_t traffic_class);
/* "0-15, 20". */
const char *endpoints_text(const bool *are_in, uint32_t count, char *text, size_t size);

#endif
