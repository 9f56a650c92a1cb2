/* The formats of files that topology_read tells apart. */
#ifndef NET_TOPOLOGY_TEXT_H
#define NET_TOPOLOGY_TEXT_H

#include "net/text.h"
#include "net/topologies.h"

/* As topology_read, of bytes in memory; the name is for complaints. */
int topology_read_text(struct text *text, const struct topology *like, struct network *network);

/* htsim's; may leave a part of the network behind where it fails. */
int topology_read_htsim(struct text *text, const struct topology *like, struct network *network);

#endif
