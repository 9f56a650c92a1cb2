/* See report.h. */
#include "report.h"

#include <inttypes.h>
#include <stddef.h>

static const char *const direction_names[LINK_DIRECTIONS] = { "forward", "backward" };

static const struct {
	const char *name;
	size_t offset; /* in struct link_counts */
} counts[] = {
	{ "came", offsetof(struct link_counts, came) },
	{ "came_bytes", offsetof(struct link_counts, came_bytes) },
	{ "delivered", offsetof(struct link_counts, delivered) },
	{ "delivered_bytes", offsetof(struct link_counts, delivered_bytes) },
	{ "overflowed", offsetof(struct link_counts, overflowed) },
	{ "lost", offsetof(struct link_counts, lost) },
	{ "dead", offsetof(struct link_counts, dead) },
	{ "reordered", offsetof(struct link_counts, reordered) },
	{ "duplicated", offsetof(struct link_counts, duplicated) },
	{ "under_way_ns", offsetof(struct link_counts, under_way_ns) },
};
enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static uint64_t *count_of(const struct link_counts *of, unsigned i)
{
	return (uint64_t *)((char *)of + counts[i].offset);
}

static struct link_counts add_up(const struct link_direction_report *report, unsigned paths)
{
	struct link_counts sum = { 0 };

	for (unsigned path = 0; path < paths; path++)
		for (unsigned i = 0; i < COUNTS; i++)
			*count_of(&sum, i) += *count_of(&report->paths[path], i);
	return sum;
}

unsigned link_report_late_us(const struct link_report *report, double share)
{
	uint64_t all = 0, seen = 0;

	for (unsigned us = 0; us <= LINK_LATE_STEPS; us++)
		all += report->late[us];
	for (unsigned us = 0; us < LINK_LATE_STEPS; us++) {
		seen += report->late[us];
		if ((double)seen >= share * (double)all)
			return us;
	}
	return LINK_LATE_STEPS;
}

/* ---- For people -------------------------------------------------------------------------------------------------- */

static void print_if(FILE *out, uint64_t count, const char *what)
{
	if (count)
		fprintf(out, ", %" PRIu64 " %s", count, what);
}

static void print_counts(FILE *out, const struct link_counts *sum)
{
	fprintf(out, "%" PRIu64 " packets (%.1f MB) came, %" PRIu64 " were delivered after %.3f ms on average",
		sum->came, (double)sum->came_bytes / 1e6, sum->delivered,
		sum->delivered ? (double)sum->under_way_ns / (double)sum->delivered / 1e6 : 0);
	print_if(out, sum->lost, "lost");
	print_if(out, sum->overflowed, "dropped by a full queue");
	print_if(out, sum->dead, "lost on a dead path");
	print_if(out, sum->reordered, "reordered");
	print_if(out, sum->duplicated, "doubled");
}

static void print_direction(
	const struct link_report *report, const struct link_options *options, unsigned direction, FILE *out)
{
	const struct link_direction_report *of = &report->directions[direction];
	struct link_counts sum = add_up(of, options->paths);

	fprintf(out, "link: %s: ", direction_names[direction]);
	print_counts(out, &sum);
	if (options->lines[direction].rate)
		fprintf(out, "; the queue had %" PRIu64 " bytes at most", of->longest_queue);
	print_if(out, report->dropped_before[direction], "dropped before the link, which did not get the core in time");
	print_if(out, of->refused, "refused by the device of the other end");
	print_if(out, of->malformed, "no IP packets, or too long");
	print_if(out, of->had_no_memory, "dropped because too many were under way");
	fputc('\n', out);
	for (unsigned path = 0; options->paths > 1 && path < options->paths; path++) {
		if (!of->paths[path].came)
			continue;
		fprintf(out, "link:   path %u: ", path);
		print_counts(out, &of->paths[path]);
		fputc('\n', out);
	}
}

void link_report_print(const struct link_report *report, const struct link_options *options, FILE *out)
{
	for (unsigned direction = 0; direction < LINK_DIRECTIONS; direction++)
		print_direction(report, options, direction, out);
	fprintf(out,
		"link: %.1f s, %.2f of a core; packets were late by %u us (half of them), %u us (99%%), %.0f us at "
		"most\n",
		report->seconds, report->seconds > 0 ? report->cpu_seconds / report->seconds : 0,
		link_report_late_us(report, 0.5), link_report_late_us(report, 0.99),
		(double)report->late_most_ns / 1e3);
}

/* ---- For programs ------------------------------------------------------------------------------------------------ */

static void print_json_counts(FILE *out, const struct link_counts *of)
{
	for (unsigned i = 0; i < COUNTS; i++)
		fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", counts[i].name, *count_of(of, i));
}

static void print_json_direction(
	const struct link_report *report, const struct link_options *options, unsigned direction, FILE *out)
{
	const struct link_direction_report *of = &report->directions[direction];
	struct link_counts sum = add_up(of, options->paths);

	fprintf(out, "  \"%s\": {", direction_names[direction]);
	print_json_counts(out, &sum);
	fprintf(out,
		", \"longest_queue_bytes\": %" PRIu64 ", \"dropped_before\": %" PRIu64 ", \"refused\": %" PRIu64
		", \"malformed\": %" PRIu64 ", \"had_no_memory\": %" PRIu64 ",\n    \"paths\": [",
		of->longest_queue, report->dropped_before[direction], of->refused, of->malformed, of->had_no_memory);
	for (unsigned path = 0; path < options->paths; path++) {
		fprintf(out, "%s{", path ? ",\n      " : "");
		print_json_counts(out, &of->paths[path]);
		fputc('}', out);
	}
	fputs("]},\n", out);
}

void link_report_print_json(const struct link_report *report, const struct link_options *options, FILE *out)
{
	fputs("{\n", out);
	for (unsigned direction = 0; direction < LINK_DIRECTIONS; direction++)
		print_json_direction(report, options, direction, out);
	fprintf(out,
		"  \"late_us\": {\"half\": %u, \"of_99_percent\": %u, \"most\": %.1f},\n"
		"  \"seed\": %" PRIu64 ", \"seconds\": %.3f, \"cpu_seconds\": %.3f\n}\n",
		link_report_late_us(report, 0.5), link_report_late_us(report, 0.99), (double)report->late_most_ns / 1e3,
		options->seed, report->seconds, report->cpu_seconds);
}
