/* Reads JSON (RFC 8259) from its beginning to its end, without a copy: who reads takes what it expects, and is told
 * whether it was there. Strings are taken as they are written: an escape stays an escape. */
#ifndef NET_JSON_TEXT_H
#define NET_JSON_TEXT_H

#include "net/text.h"

struct json {
	const char *at, *end;
};

/* Each: whether it was there; if not, `at` is where it should have been. Blanks before it are passed. */
bool json_take(struct json *json, char c); /* one of { } [ ] : , */
bool json_take_string(struct json *json, struct span *string);
bool json_take_number(struct json *json, uint64_t max, uint64_t *number); /* whole, not below 0 */
bool json_pass(struct json *json);                                        /* any value, nested at most 64 deep */
bool json_is_end(struct json *json);

#endif
