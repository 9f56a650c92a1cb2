/* A copy loop of vector registers. C libraries copy some KiB by `rep movsb`, which on some processors (AMD's Zen 3)
 * falls to a twentieth of its speed where the target lies 1 to 63 bytes behind the source within a page. A loop does
 * not: it loads more than that before it stores any of it. */
#include "base/copy.h"

typedef uint8_t vector __attribute__((vector_size(16), aligned(1), may_alias));
enum { STEP = 8 * sizeof(vector) };

void vb_copy_by_vectors(uint8_t *to, const uint8_t *from, size_t length)
{
	size_t done = 0;
	for (; length - done >= STEP; done += STEP) {
		const vector *v = (const vector *)(const void *)(from + done);
		vector *w = (vector *)(void *)(to + done);
		vector a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
		__asm__ volatile("" ::: "memory"); /* else compilers turn the loop into memcpy */
		w[0] = a, w[1] = b, w[2] = c, w[3] = d, w[4] = e, w[5] = f, w[6] = g, w[7] = h;
	}
	if (done < length)
		memcpy(to + done, from + done, length - done);
}
