/* The table of all keys, for people. */
#include "sim/scenario.h"

#include <stdio.h>

static const char *kind_name(const struct scenario_key *key)
{
	static const char *const names[] = {
		[VALUE_TEXT] = "text",
		[VALUE_FLAG] = "yes|no",
		[VALUE_COUNT] = "number",
		[VALUE_BYTES] = "bytes",
		[VALUE_TIME] = "time",
		[VALUE_RATE] = "rate",
		[VALUE_SHARE] = "share",
		[VALUE_REAL] = "number",
	};
	return key->words ? key->words : names[key->kind];
}

static const char *preset_text(const struct vb_cc_parameter *parameter, char *text, size_t size)
{
	switch (parameter->kind) {
	case VB_QUANTITY_TIME:
		return value_time_text((vb_time)parameter->preset, text, size);
	case VB_QUANTITY_RATE:
		return value_rate_text(parameter->preset, text, size);
	case VB_QUANTITY_BYTES:
		return value_bytes_text(parameter->preset, text, size);
	case VB_QUANTITY_COUNT:
		snprintf(text, size, "%llu", (unsigned long long)parameter->preset);
		break;
	case VB_QUANTITY_SHARE:
		snprintf(text, size, "%g%%", (double)parameter->preset / 1e4);
		break;
	case VB_QUANTITY_GAIN:
		snprintf(text, size, "%.8g", (double)parameter->preset / (double)VB_GAIN_ONE);
		break;
	}
	return text;
}

static void print_controls(FILE *out)
{
	char text[64];

	fprintf(out,
		"\n# Congestion controls, for transport.cc, and the parameters of each: NAME, PARAMETER=VALUE, ...\n");
	for (unsigned i = 0; vb_cc_algorithms[i]; i++) {
		const struct vb_cc_algorithm *algorithm = vb_cc_algorithms[i];
		fprintf(out, "# %s: %s\n", algorithm->name, algorithm->help);
		for (unsigned j = 0; j < algorithm->parameter_count; j++)
			fprintf(out, "#     %s [%s]: %s\n", algorithm->parameters[j].name,
				preset_text(&algorithm->parameters[j], text, sizeof(text)),
				algorithm->parameters[j].help);
	}
}

void scenario_keys_print(FILE *out)
{
	fprintf(out,
		"# Keys of a scenario: kind, [default] and meaning. A * is the number of a traffic class, or \"all\",\n"
		"# and of an element in a list, from 0. Each may stand in variants.NAME, too.\n"
		"#   time   800ns 1us 2.5ms      rate   100G 400Gb/s       share  1%% 0.01 50ppm\n"
		"#   bytes  4096 500kB 64KiB     number 16 0.3 30%%\n");
	for (const struct scenario_key *key = scenario_keys; key->path; key++) {
		fprintf(out, "%s\n    %s", key->path, kind_name(key));
		if (key->preset)
			fprintf(out, " [%s]", key->preset);
		fprintf(out, ": %s\n", key->help);
	}
	print_controls(out);
}
