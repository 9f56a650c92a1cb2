/* The file formats that flow_list_read distinguishes. */
#ifndef NET_FLOW_TEXT_H
#define NET_FLOW_TEXT_H

#include "net/flows.h"
#include "net/text.h"

/* Like flow_list_read, for bytes in memory; the text's name is for error messages. */
int flow_list_read_text(struct flow_list *list, struct text *text, uint32_t endpoints);

/* htsim's format; on an error some flows may be left in the list. */
int flow_list_read_htsim(struct flow_list *list, struct text *text, uint32_t endpoints);

/* Adds the flow that the last line describes, unless it is impossible. */
int flow_list_add_read(struct flow_list *list, const struct text *text, const struct flow *flow, uint32_t endpoints);

#define FLOW_MOST_BYTES ((uint64_t)1 << 44)

#endif
