/* The formats of files that flow_list_read tells apart. */
#ifndef NET_FLOW_TEXT_H
#define NET_FLOW_TEXT_H

#include "net/flows.h"
#include "net/text.h"

/* As flow_list_read, of bytes in memory; the name is for complaints. */
int flow_list_read_text(struct flow_list *list, struct text *text, uint32_t endpoints);

/* htsim's; may leave some of the flows behind where it fails. */
int flow_list_read_htsim(struct flow_list *list, struct text *text, uint32_t endpoints);

/* Adds a flow of the line read last, unless it cannot be one. */
int flow_list_add_read(struct flow_list *list, const struct text *text, const struct flow *flow, uint32_t endpoints);

#define FLOW_MOST_BYTES ((uint64_t)1 << 44)

#endif
