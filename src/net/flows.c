/* A list of flows. */
#include <errno.h>
#include "net/flows.h"
#include "net/grow.h"

int flow_list_add(struct flow_list *list, const struct flow *flow)
{
	if (!grow_by_one(&list->flows, &list->room, list->count, sizeof(*list->flows)))
		return -ENOMEM;
	list->flows[list->count++] = *flow;
	return 0;
}

void flow_list_free(struct flow_list *list)
{
	free(list->flows);
	*list = (struct flow_list){ 0 };
}
