/* How much two words differ. */
#include "base/words.h"

#include <stddef.h>
#include <string.h>

unsigned vb_word_distance(const char *a, const char *b)
{
	size_t length_a = strlen(a), length_b = strlen(b);
	unsigned row[VB_WORDS_APART];

	if (length_a >= VB_WORDS_APART || length_b >= VB_WORDS_APART)
		return VB_WORDS_APART;
	for (unsigned j = 0; j <= length_b; j++)
		row[j] = j;
	for (unsigned i = 1; i <= length_a; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= length_b; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[length_b];
}
