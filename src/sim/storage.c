/* Workloads of the kinds checkpoint and input: traffic with storage nodes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "net/digits.h"
#include "net/text.h"
#include "net/why.h"
#include "sim/services.h"
#include "sim/simulation.h"

enum { STATE_BYTES = 2 + 12 }; /* of a parameter: the weight, and the optimizer's three numbers */

static const struct scenario_workload *given_of(const struct service *service, const struct simulation *simulation)
{
	return &simulation->scenario->workloads[service->workload];
}

/* FIRST-LAST, or one endpoint. */
static bool parse_storage(const char *text, uint32_t *first, uint32_t *last)
{
	const char *dash = strchr(text, '-');
	const struct span from = { text, dash ? (size_t)(dash - text) : strlen(text) };
	const struct span to = { dash ? dash + 1 : text, strlen(dash ? dash + 1 : text) };
	uint64_t a, b;

	if (!span_number(from, UINT32_MAX - 1, &a) || !span_number(to, UINT32_MAX - 1, &b))
		return false;
	*first = (uint32_t)a;
	*last = (uint32_t)b;
	return true;
}

static int open_sides(struct service *service, const struct simulation *simulation, char *why, unsigned why_size)
{
	const struct scenario_workload *given = given_of(service, simulation);
	const uint32_t of_front = simulation->hosts.front.storage;
	uint32_t first = 0, last = of_front - 1;
	const bool is_left_out = of_front && !*given->service.storage;

	if (!is_left_out && !parse_storage(given->service.storage, &first, &last))
		return why_not(why, why_size, "storage: '%s': write the %s as FIRST-LAST, such as %s",
			given->service.storage, of_front ? "front end's storage nodes" : "endpoints of storage nodes",
			of_front ? "0-3" : "60-63");
	return storage_sides_open(&service->sides, &simulation->hosts, simulation->network.endpoint_count, first, last,
		given->workload.first, given->workload.endpoints, why, why_size);
}

/* Bits per second, of all storage nodes' links. */
static double storage_rate(const struct service *service, const struct simulation *simulation)
{
	double rate = 0;
	for (uint32_t i = 0; i < service->sides.node_count; i++) {
		const uint32_t endpoint = hosts_endpoint_of(&simulation->hosts, service->sides.nodes[i], 0);
		const struct network_endpoint *its = &simulation->network.endpoints[endpoint];
		rate += (double)simulation->network.links[its->link].bits_per_second;
	}
	return rate;
}

/* ---- Checkpoints ------------------------------------------------------------------------------------------------- */

static int open_checkpoint(struct service *service, const struct simulation *simulation, char *why, unsigned why_size)
{
	const struct scenario_workload *given = given_of(service, simulation);
	struct checkpoint of = { .message = given->service.message,
		.restores = given->service.restores,
		.start = given->workload.start,
		.traffic_class = given->workload.traffic_class };
	int rc = open_sides(service, simulation, why, why_size);

	if (rc)
		return rc;
	rc = service_bytes(simulation, service->workload, STATE_BYTES, &of.bytes, why, why_size);
	if (!rc)
		rc = checkpoint_check(&of, &service->sides, why, why_size);
	if (!rc)
		rc = checkpoint_job_open(&service->checkpoint, &of, &service->sides);
	service->job = &service->checkpoint.job;
	if (rc)
		storage_sides_close(&service->sides);
	return rc;
}

static struct service_load load_of_checkpoint(const struct service *service)
{
	const struct checkpoint *of = &service->checkpoint.of;
	return (struct service_load){ .messages = (double)service->job->operations,
		.bytes = (double)of->bytes * (of->restores ? 2 : 1) +
			 (of->restores ? 64.0 / 3 * (double)service->job->operations : 0),
		.open = CHECKPOINT_UNDER_WAY * service->sides.rank_count,
		.from = service->sides.ranks[0],
		.to = service->sides.nodes[0] };
}

static void put_rate(FILE *out, const char *what, uint64_t bytes, vb_time time, double rate)
{
	char text[32];
	if (time <= 0) {
		fprintf(out, "%s -", what);
		return;
	}
	const double gb_s = (double)bytes / 1e9 / ((double)time / VB_S);
	fprintf(out, "%s %s (%.2f GB/s of the storage nodes' %.2f)", what, value_time_text(time, text, sizeof(text)),
		gb_s, rate / 8e9);
}

static void tell_checkpoint(const struct service *service, const struct simulation *simulation, FILE *out)
{
	const struct checkpoint *of = &service->checkpoint.of;
	const double rate = storage_rate(service, simulation);
	char bytes[32], time[32];

	fprintf(out, "checkpoint %" PRIu32 ": %s of %" PRIu32 " ranks to %" PRIu32 " storage nodes:", service->workload,
		value_bytes_text(of->bytes, bytes, sizeof(bytes)), service->sides.rank_count,
		service->sides.node_count);
	put_rate(out, " stored in", of->bytes, checkpoint_job_stored(&service->checkpoint), rate);
	const vb_time back = checkpoint_job_restored(&service->checkpoint);
	if (of->restores)
		fprintf(out, ", read back by %s", back < 0 ? "-" : value_time_text(back, time, sizeof(time)));
	fputc('\n', out);
}

static void tell_checkpoint_json(const struct service *service, const struct simulation *simulation, FILE *out)
{
	fprintf(out,
		", \"bytes\": %" PRIu64 ", \"ranks\": %" PRIu32 ", \"storage_nodes\": %" PRIu32
		", \"storage_gb_s\": %.6g, \"stored_ps\": %" PRId64 ", \"restored_ps\": %" PRId64,
		service->checkpoint.of.bytes, service->sides.rank_count, service->sides.node_count,
		storage_rate(service, simulation) / 8e9, checkpoint_job_stored(&service->checkpoint),
		checkpoint_job_restored(&service->checkpoint));
}

static void close_checkpoint(struct service *service)
{
	checkpoint_job_close(&service->checkpoint);
	storage_sides_close(&service->sides);
}

const struct service_kind service_checkpoint = { "checkpoint", open_checkpoint, load_of_checkpoint, tell_checkpoint,
	tell_checkpoint_json, close_checkpoint };

/* ---- Input ------------------------------------------------------------------------------------------------------- */

static int open_input(struct service *service, const struct simulation *simulation, char *why, unsigned why_size)
{
	const struct scenario_workload *given = given_of(service, simulation);
	const struct input of = { .bytes = given->service.tokens * given->service.token_bytes,
		.steps = given->step.steps,
		.step = given->service.step_time,
		.start = given->workload.start,
		.traffic_class = given->workload.traffic_class };
	int rc = open_sides(service, simulation, why, why_size);

	if (rc)
		return rc;
	rc = input_check(&of, &service->sides, why, why_size);
	if (!rc)
		rc = input_job_open(&service->input, &of, &service->sides);
	service->job = &service->input.job;
	if (rc)
		storage_sides_close(&service->sides);
	return rc;
}

static struct service_load load_of_input(const struct service *service)
{
	return (struct service_load){ .messages = (double)service->job->operations,
		.bytes = (double)service->job->operations * (double)service->input.of.bytes,
		.open = service->sides.rank_count,
		.from = service->sides.nodes[0],
		.to = service->sides.ranks[0] };
}

static void tell_input(const struct service *service, const struct simulation *simulation, FILE *out)
{
	const vb_time slowest = input_job_slowest(&service->input);
	char bytes[32], time[32];

	(void)simulation;
	fprintf(out,
		"input %" PRIu32 ": %s to each of %" PRIu32 " ranks in each of %" PRIu32
		" steps; the slowest took %s\n",
		service->workload, value_bytes_text(service->input.of.bytes, bytes, sizeof(bytes)),
		service->sides.rank_count, service->input.of.steps,
		slowest < 0 ? "-" : value_time_text(slowest, time, sizeof(time)));
}

static void tell_input_json(const struct service *service, const struct simulation *simulation, FILE *out)
{
	(void)simulation;
	fprintf(out,
		", \"bytes\": %" PRIu64 ", \"ranks\": %" PRIu32 ", \"steps\": %" PRIu32 ", \"slowest_ps\": %" PRId64,
		service->input.of.bytes, service->sides.rank_count, service->input.of.steps,
		input_job_slowest(&service->input));
}

static void close_input(struct service *service)
{
	input_job_close(&service->input);
	storage_sides_close(&service->sides);
}

const struct service_kind service_input = { "input", open_input, load_of_input, tell_input, tell_input_json,
	close_input };
