/* See early.h. */
#include "broker/early.h"

#include <string.h>
#include "base/invariant.h"

bool early_hold(struct early *early, const struct qp1_mad *mad, uint64_t now, unsigned most)
{
	assert(early->count <= EARLY_MAX);
	assert(mad->cm);
	if (early->count >= most || early->count == EARLY_MAX)
		return false;
	unsigned i = early->count++;
	early->held[i].until = now + EARLY_MS;
	early->held[i].mad = *mad;
	early->held[i].mad.length = VB_MAD_LENGTH;
	memcpy(early->held[i].bytes, mad->bytes, VB_MAD_LENGTH);
	early->held[i].cm = *mad->cm;
	return true;
}

const struct qp1_mad *early_look(struct early *early, unsigned i, uint64_t now, bool *is_due)
{
	if (i >= early->count)
		return NULL;
	*is_due = now >= early->held[i].until;
	early->held[i].mad.bytes = early->held[i].bytes; /* the array is compacted when others leave */
	early->held[i].mad.cm = &early->held[i].cm;
	return &early->held[i].mad;
}

void early_forget(struct early *early, unsigned i)
{
	assert(i < early->count);
	early->count--;
	memmove(&early->held[i], &early->held[i + 1], (early->count - i) * sizeof(early->held[0]));
}
