/* What is to be sent: messages from endpoint to endpoint, each by a connection of its own or one that it shares. */
#ifndef NET_FLOWS_H
#define NET_FLOWS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define FLOW_NONE UINT32_MAX

struct flow {
	uint32_t src, dst; /* endpoints */
	uint64_t bytes;    /* not 0 */
	vb_time start;     /* or, with `after`, how long after that */
	uint32_t after;    /* the flow whose end starts this one; of the same source, or FLOW_NONE */
	uint8_t traffic_class;
};

/* What became of it. */
struct flow_result {
	vb_time start;  /* when its program began it */
	vb_time fct;    /* until that heard that its last byte was acknowledged; -1: never */
	uint32_t error; /* enum vb_wc_status */
	uint32_t cause; /* enum vb_cause_kind */
};

struct flow_list {
	struct flow *flows;
	uint32_t count, room;
};

int flow_list_add(struct flow_list *list, const struct flow *flow); /* -ENOMEM */
void flow_list_free(struct flow_list *list);

#endif
