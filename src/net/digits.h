/* Numbers at the beginning of a text. */
#ifndef NET_DIGITS_H
#define NET_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

/* Moves behind the digits. False, and nothing changes: there are none. A number above `most` is most + 1. */
static inline bool digits_take(const char **at, uint32_t most, uint64_t *number)
{
	const char *digit = *at;
	uint64_t value = 0;
	for (; *digit >= '0' && *digit <= '9'; digit++) {
		value = value * 10 + (uint64_t)(*digit - '0');
		if (value > most)
			value = (uint64_t)most + 1;
	}
	if (digit == *at)
		return false;
	*at = digit;
	*number = value;
	return true;
}

#endif
