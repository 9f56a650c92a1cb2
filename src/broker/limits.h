/* The users that a broker serves, and each user's share of its resources. Pure. */
#ifndef VB_BROKER_LIMITS_H
#define VB_BROKER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct limits {
	uid_t own;      /* the broker's */
	bool is_shared; /* serves every user, though it is not root's */
};

bool limits_serves(const struct limits *limits, uid_t uid);
/* True if uid may have one more of `all` things, of which `taken` are in use, `holds` by uid. Root and the broker's own
 * user may have the last. Others may have three quarters; at the end, the rest goes only to users who have next to
 * nothing. */
bool limits_may_take(const struct limits *limits, uid_t uid, unsigned holds, unsigned taken, unsigned all);

#define LIMITS_HOLDERS 4

/* How many each user holds, the largest first; users beyond the table's size count in its last entry. */
struct holders {
	unsigned count;
	struct holder {
		uid_t uid;
		unsigned holds;
	} by_size[LIMITS_HOLDERS];
};

/* Counts one more for uid; uids come in any order. */
void holders_add(struct holders *holders, uid_t uid);
/* "uid 1000: 300, uid 0: 12" */
void holders_name(const struct holders *holders, char *text, size_t size);

#endif
