/* See limits.h. */
#include "broker/limits.h"

#include <stdio.h>
#include "base/invariant.h"
#include "os/user.h"

bool limits_serves(const struct limits *limits, uid_t uid)
{
	/* None of these users is unknown. */
	return limits->own == 0 || limits->is_shared || uid == limits->own || uid == 0;
}

bool limits_may_take(const struct limits *limits, uid_t uid, unsigned holds, unsigned taken, unsigned all)
{
	const unsigned most = all - all / 4, reserved = all / 16, next_to_nothing = all / 64;
	assert(next_to_nothing > 0);
	if (uid == 0 || uid == limits->own)
		return taken < all;
	return taken < all && holds < most && (taken + reserved < all || holds < next_to_nothing);
}

void holders_add(struct holders *holders, uid_t uid)
{
	assert(holders->count <= LIMITS_HOLDERS);
	unsigned i = 0;
	while (i < holders->count && holders->by_size[i].uid != uid)
		i++;
	if (i == LIMITS_HOLDERS)
		i--;
	if (i == holders->count)
		holders->by_size[holders->count++] = (struct holder){ .uid = uid };
	assert(i < holders->count);
	holders->by_size[i].holds++;
	for (; i > 0 && holders->by_size[i].holds > holders->by_size[i - 1].holds; i--) {
		const struct holder less = holders->by_size[i - 1];
		holders->by_size[i - 1] = holders->by_size[i];
		holders->by_size[i] = less;
	}
	assert(holders->by_size[0].holds >= holders->by_size[i].holds);
}

void holders_name(const struct holders *holders, char *text, size_t size)
{
	assert(size > 0);
	size_t length = 0;
	text[0] = 0;
	for (unsigned i = 0; i < holders->count && length < size; i++) {
		const struct holder *one = &holders->by_size[i];
		const char *comma = i ? ", " : "";
		length +=
			(size_t)(one->uid == VB_USER_UNKNOWN ? snprintf(text + length, size - length,
								       "%susers not mapped here: %u", comma, one->holds)
							     : snprintf(text + length, size - length, "%suid %u: %u",
								       comma, one->uid, one->holds));
	}
}
