/* Text that is shown in part. */
#include "base/utf8.h"

#include <stdbool.h>

static bool goes_on(char byte)
{
	return (byte & 0xC0) == 0x80;
}

int vb_utf8_fitting(const char *text, unsigned most)
{
	unsigned length = 0, whole;
	while (length < most && text[length])
		length++;
	for (whole = length; whole && length - whole < 3 && goes_on(text[whole]);)
		whole--;
	return (int)(goes_on(text[whole]) ? length : whole); /* text that is no UTF-8 has no characters to cut */
}
