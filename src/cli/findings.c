/* The doctor's list of statements, for people and as JSON. */
#include "cli/findings.h"
#include "cli/cli.h"
#include "os/json.h"

#include <stdarg.h>
#include <string.h>

static const char *const state_name[] = {
	[VB_FINDING_OK] = "ok",
	[VB_FINDING_SLOW] = "slow",
	[VB_FINDING_STOP] = "stop",
};

void vb_finding_add(
	struct vb_findings *findings, enum vb_finding_state state, const char *check, const char *format, ...)
{
	va_list arguments;

	if (findings->count == VB_FINDINGS_MAX)
		return;
	struct vb_finding *finding = &findings->list[findings->count++];
	finding->state = state;
	finding->check = check;
	finding->cure[0] = '\0';
	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	va_end(arguments);
}

void vb_finding_cure(struct vb_findings *findings, const char *format, ...)
{
	va_list arguments;

	struct vb_finding *finding = &findings->list[findings->count - 1];
	va_start(arguments, format);
	vsnprintf(finding->cure, sizeof(finding->cure), format, arguments);
	va_end(arguments);
}

size_t vb_findings_count(const struct vb_findings *findings, enum vb_finding_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < findings->count; i++)
		count += findings->list[i].state == state;
	return count;
}

const char *vb_findings_verdict(const struct vb_findings *findings)
{
	enum vb_finding_state worst = VB_FINDING_OK;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->list[i].state > worst)
			worst = findings->list[i].state;
	return state_name[worst];
}

void vb_findings_print(const struct vb_findings *findings, FILE *out)
{
	int width = 0;

	for (size_t i = 0; i < findings->count; i++)
		if ((int)strlen(findings->list[i].check) > width)
			width = (int)strlen(findings->list[i].check);
	for (size_t i = 0; i < findings->count; i++) {
		const struct vb_finding *finding = &findings->list[i];
		fprintf(out, "  %-4s  %-*s  %s\n", state_name[finding->state], width, finding->check, finding->text);
		if (finding->cure[0])
			fprintf(out, "        %*s  cure: %s\n", width, "", finding->cure);
	}
}

void vb_findings_print_json(const struct vb_findings *findings, FILE *out)
{
	fputc('[', out);
	for (size_t i = 0; i < findings->count; i++) {
		const struct vb_finding *finding = &findings->list[i];
		fprintf(out, "%s\n    {\"state\": \"%s\", \"check\": ", i ? "," : "", state_name[finding->state]);
		vb_json_string(out, finding->check);
		fputs(", \"text\": ", out);
		vb_json_string(out, finding->text);
		fputs(", \"cure\": ", out);
		if (finding->cure[0])
			vb_json_string(out, finding->cure);
		else
			fputs("null", out);
		fputc('}', out);
	}
	fputs(findings->count ? "\n  ]" : "]", out);
}
