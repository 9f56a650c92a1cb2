/* See table_checks.h. */
#include "sim/table_checks.h"

#include "base/invariant.h"
#include "sim/value.h"

#define SINGLE_RUNS 4 /* whose checks together take as much as those of a table, at most */

void table_checks_begin(struct table_checks *checks, uint64_t rows)
{
	*checks = (struct table_checks){ .rows = rows, .left = SINGLE_RUNS * CHECK_HOPS };
}

double table_checks_next(struct table_checks *checks)
{
	assert(checks->rows > 0);
	const double its = checks->left / (double)checks->rows--;

	/* An estimate may be too low, so that less than nothing is left. */
	return its < 1 ? 1 : its < CHECK_HOPS ? its : CHECK_HOPS;
}

void table_checks_add(struct table_checks *checks, double bytes_part, uint64_t packet_hops)
{
	assert(bytes_part > 0 && bytes_part <= 1);
	checks->left -= (double)packet_hops;
	if (!checks->made || bytes_part < checks->least_part)
		checks->least_part = bytes_part;
	if (!checks->made || bytes_part > checks->most_part)
		checks->most_part = bytes_part;
	checks->made++;
	checks->packet_hops += packet_hops;
}

void table_checks_tell(const struct table_checks *checks, FILE *out, const char *before)
{
	char parts[64], hops[32];

	if (!checks->made)
		return;
	if (checks->least_part < checks->most_part)
		snprintf(parts, sizeof(parts), "%.3g%% to %.3g%%", 100 * checks->least_part, 100 * checks->most_part);
	else
		snprintf(parts, sizeof(parts), "%.3g%%", 100 * checks->most_part);
	fprintf(out,
		"%serror: of a piece of each row that ran by packets, too: %s of each message's bytes, %s packet-hops "
		"in all\n",
		before, parts, value_count_text((double)checks->packet_hops, hops, sizeof(hops)));
}

const char *table_error_text(bool is_known, double error, char *text, size_t size)
{
	snprintf(text, size, is_known ? "%+.2f%%" : "-", 100 * error);
	return text;
}
