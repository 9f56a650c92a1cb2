/* Whom a broker serves, and how much of what there is one user may have, so that nobody takes all. Pure. */
#ifndef VB_BROKER_LIMITS_H
#define VB_BROKER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct limits {
	uid_t own;      /* the broker's */
	bool is_shared; /* with every user, though it is not root's */
};

bool limits_serves(const struct limits *limits, uid_t uid);
/* Whether uid may have one more of a thing of which there are `all`, `taken` of them in use and `holds` by itself. Root
 * and the broker's own user may have the last; others three quarters, and what is left at the end only those who have
 * next to nothing. */
bool limits_may_take(const struct limits *limits, uid_t uid, unsigned holds, unsigned taken, unsigned all);

#define LIMITS_HOLDERS 4

/* Who holds how many, the greatest first; more users than there is room for count as the last. */
struct holders {
	unsigned count;
	struct holder {
		uid_t uid;
		unsigned holds;
	} by_size[LIMITS_HOLDERS];
};

/* One more of uid's; uids come in any order. */
void holders_add(struct holders *holders, uid_t uid);
/* "uid 1000: 300, uid 0: 12" */
void holders_name(const struct holders *holders, char *text, size_t size);

#endif
