/* Any text as VERBENA_* settings and as a list of faults: understood, or refused with a reason; never more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "host/call_faults.h"
#include "host/settings.h"
#include "port/port.h"

#define MAX_VARIABLES 16

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void try_faults(const char *text)
{
	struct vb_faults *faults = NULL;
	char why[160] = "";
	int rc = vb_faults_parse(text, &faults, why, sizeof(why));
	require(rc == 0 || (rc == -EINVAL && why[0] && memchr(why, 0, sizeof(why))));
	if (rc == 0)
		vb_faults_free(faults);
	struct vb_call_faults of_calls;
	why[0] = '\0';
	rc = vb_call_faults_parse(text, &of_calls, why, sizeof(why));
	require(of_calls.count <= VB_CALL_FAULTS_MAX);
	require(rc == 0 || (rc == -EINVAL && why[0] && memchr(why, 0, sizeof(why))));
}

/* Lines of the input are variables; those without a name get one of ours. */
static void try_settings(char *text)
{
	char *variables[MAX_VARIABLES + 1];
	char named[MAX_VARIABLES][256];
	unsigned n = 0;
	for (char *line = strtok(text, "\n"); line && n < MAX_VARIABLES; line = strtok(NULL, "\n"), n++) {
		variables[n] = line;
		if (strncmp(line, "VERBENA_", 8) == 0 || (unsigned char)line[0] >= VB_SETTING_COUNT)
			continue;
		const char *name = vb_setting_rows[(unsigned char)line[0]].name;
		snprintf(named[n], sizeof(named[n]), "VERBENA_%s=%.200s", name, line + 1);
		variables[n] = named[n];
	}
	variables[n] = NULL;
	struct vb_settings settings;
	char why[200] = "";
	int rc = vb_settings_parse(&settings, variables, why, sizeof(why));
	require(rc == 0 || (rc == -EINVAL && why[0] && memchr(why, 0, sizeof(why))));
	for (int i = 0; rc == 0 && i < VB_SETTING_COUNT; i++)
		require(settings.text[i] != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	char *text = malloc(length + 1);
	memcpy(text, bytes, length);
	text[length] = 0;
	try_faults(text);
	try_settings(text);
	free(text);
	return 0;
}
