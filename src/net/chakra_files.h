/* The files of a Chakra trace: PREFIX.RANK.et or PREFIX.RANK.et.gz, ranks from 0. */
#ifndef NET_CHAKRA_FILES_H
#define NET_CHAKRA_FILES_H

#include "net/text.h"

enum { CHAKRA_PATH = 4096 };

/* Of a text that is called PREFIX, PREFIX.0.et or PREFIX.0.et.gz: how many bytes of its name are the prefix. -EINVAL
 * and why. */
int chakra_find_prefix(const struct text *text, int *length);
/* How many ranks have a file. -EINVAL and why: there is a gap between them; it says which are missing. */
int chakra_count_ranks(const struct text *text, int prefix, uint32_t *ranks);
/* Whether the rank's file is there, and its path. */
bool chakra_find_file(const char *prefix, int length, uint32_t rank, char path[CHAKRA_PATH]);

#endif
