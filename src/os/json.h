/* The one thing about JSON that is easy to get wrong. */
#ifndef VB_OS_JSON_H
#define VB_OS_JSON_H

#include <stdbool.h>
#include <stdio.h>

/* Length of the UTF-8 character at c, in bytes; 0: there is none. */
static inline unsigned vb_json_character(const unsigned char *c)
{
	unsigned length = c[0] < 0x80 ? 1 : c[0] < 0xC2 ? 0 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : c[0] < 0xF5 ? 4 : 0;
	for (unsigned i = 1; i < length; i++)
		if ((c[i] & 0xC0) != 0x80)
			return 0;
	bool is_too_long = (c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xF0 && c[1] < 0x90);
	bool is_surrogate = c[0] == 0xED && c[1] >= 0xA0, is_too_large = c[0] == 0xF4 && c[1] >= 0x90;
	return is_too_long || is_surrogate || is_too_large ? 0 : length;
}

/* Writes a string with its quotes. Bytes that are no UTF-8, which file names may have, become U+FFFD. */
static inline void vb_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		unsigned length = vb_json_character(c);
		if (length == 0)
			fputs("\\ufffd", out);
		else if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(out, "\\u%04x", *c);
		else
			fwrite(c, 1, length, out);
		c += length ? length : 1;
	}
	fputc('"', out);
}

#endif
