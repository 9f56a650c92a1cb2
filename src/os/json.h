/* The one thing about JSON that is easy to get wrong. */
#ifndef VB_OS_JSON_H
#define VB_OS_JSON_H

#include <stdio.h>

/* A string with its quotes. */
static inline void vb_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

#endif
