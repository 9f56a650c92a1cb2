/* Any bytes as a scenario file, and what follows its last zero as a setting of the command line: understood, or
 * refused with a reason; never more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* KEY=VALUE. */
static int set(struct document *document, const uint8_t *bytes, size_t length, struct document_error *error)
{
	char text[200];
	int rc = 0;

	snprintf(text, sizeof(text), "%.*s", (int)(length < sizeof(text) ? length : sizeof(text) - 1),
		(const char *)bytes);
	char *equals = strchr(text, '=');
	if (equals) {
		*equals = 0;
		rc = document_set(document, text, equals + 1, error);
	}
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct document document = { 0 };
	struct document_error error = { 0 };
	const uint8_t *zero = length ? memrchr(bytes, 0, length) : NULL;
	size_t file = zero ? (size_t)(zero - bytes) : length;
	struct scenario *scenario = malloc(sizeof(*scenario));

	int rc = document_read(&document, (const char *)bytes, file, &error);
	if (!rc && zero)
		rc = set(&document, zero + 1, length - file - 1, &error);
	if (!rc)
		rc = scenario_fill(scenario, &document, "somewhere", &error);
	require(rc == 0 || (rc == -EINVAL && *error.text && memchr(error.text, 0, sizeof(error.text))));
	if (!rc) {
		const struct switch_profile *profile = &scenario->topology.profile;
		require(scenario->workload_count <= SCENARIO_WORKLOADS && scenario->fault_count <= SCENARIO_FAULTS);
		require(profile->class_count >= 1 && profile->class_count <= FABRIC_CLASSES);
		require(profile->flow_control <= FLOW_CREDITS && profile->routing <= ROUTING_ADAPTIVE);
	}
	document_free(&document);
	free(scenario);
	return 0;
}
