/* See services.h. */
#include "sim/services.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "net/why.h"
#include "sim/simulation.h"
#include "steps/model.h"

static const struct service_kind *const kinds[] = { &service_weights, &service_checkpoint, &service_input,
	&service_inference };

const struct service_kind *service_kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	return NULL;
}

static const char *model_name(uint32_t number)
{
	return model_of(number) ? model_of(number)->name : NULL;
}

int service_bytes(const struct simulation *simulation, uint32_t workload, uint32_t of_parameter, uint64_t *bytes,
	char *why, unsigned why_size)
{
	const struct scenario_workload *given = &simulation->scenario->workloads[workload];
	const struct model *model = model_find(given->step.model);

	if (!*given->step.model) {
		*bytes = given->workload.bytes;
		return 0;
	}
	if (!model)
		return why_not_among(
			why, why_size, model_name, "model: there is no such model; write bytes, or one of these");
	*bytes = of_parameter * model_parameters(model);
	return 0;
}

int service_check_ranks(const struct simulation *simulation, uint32_t first, uint64_t count, const char *what,
	char *why, unsigned why_size)
{
	const uint32_t ranks = simulation_ranks(simulation);

	if (first <= ranks && count <= ranks - first)
		return 0;
	return why_not(why, why_size,
		"%s: %" PRIu64 " ranks from rank %" PRIu32 " on, in a network of %" PRIu32
		"; write fewer, or a larger network",
		what, count, first, ranks);
}

void services_text(const struct simulation *simulation, FILE *out)
{
	for (uint32_t i = 0; i < simulation->service_count; i++) {
		const struct service *its = &simulation->services[i];
		its->kind->tell(its, simulation, out);
	}
}

void services_json(const struct simulation *simulation, FILE *out, const char *indent)
{
	fputc('[', out);
	for (uint32_t i = 0; i < simulation->service_count; i++) {
		const struct service *its = &simulation->services[i];
		fprintf(out, "%s\n%s    {\"workload\": %" PRIu32 ", \"kind\": \"%s\"", i ? "," : "", indent,
			its->workload, its->kind->name);
		its->kind->tell_json(its, simulation, out);
		fputc('}', out);
	}
	fputc(']', out);
}
