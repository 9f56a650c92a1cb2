/* Reasons for people, why a description was refused. */
#ifndef NET_WHY_H
#define NET_WHY_H

#include <stdint.h>

/* Writes the text into why, as much as fits, and returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int why_not(char *why, unsigned why_size, const char *format, ...);
/* The same, and behind it "; there are A, B, C": the names from number 0 on, up to the first that is NULL. */
__attribute__((format(printf, 4, 5))) int why_not_among(
	char *why, unsigned why_size, const char *(*name_of)(uint32_t number), const char *format, ...);

#endif
