/* The file formats that topology_read distinguishes. */
#ifndef NET_TOPOLOGY_TEXT_H
#define NET_TOPOLOGY_TEXT_H

#include "net/text.h"
#include "net/topologies.h"

/* Like topology_read, for bytes in memory; the text's name is for error messages. */
int topology_read_text(struct text *text, const struct topology *like, struct network *network, struct hosts *hosts);

/* htsim's format, and SimAI's; on an error part of the network may be left behind. */
int topology_read_htsim(struct text *text, const struct topology *like, struct network *network);
int topology_read_simai(struct text *text, const struct topology *like, struct network *network, struct hosts *hosts);

#endif
