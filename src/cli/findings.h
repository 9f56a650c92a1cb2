/* The findings of `verbena doctor`: a list of statements, each ok, slow or stop, the bad ones with their cure. */
#ifndef VB_CLI_FINDINGS_H
#define VB_CLI_FINDINGS_H

#include <stddef.h>
#include <stdio.h>

enum vb_finding_state {
	VB_FINDING_OK,
	VB_FINDING_SLOW, /* works, but worse than it could */
	VB_FINDING_STOP, /* nothing would work */
};

struct vb_finding {
	enum vb_finding_state state;
	const char *check; /* a few words; borrowed for ever */
	char text[384];
	char cure[384]; /* empty: none is needed or known */
};

enum { VB_FINDINGS_MAX = 64 };

struct vb_findings {
	struct vb_finding list[VB_FINDINGS_MAX];
	size_t count;
};

/* Adds a statement; a full list drops it. */
__attribute__((format(printf, 4, 5))) void vb_finding_add(
	struct vb_findings *findings, enum vb_finding_state state, const char *check, const char *format, ...);
/* Sets the cure of the last statement. */
__attribute__((format(printf, 2, 3))) void vb_finding_cure(struct vb_findings *findings, const char *format, ...);

size_t vb_findings_count(const struct vb_findings *findings, enum vb_finding_state state);
void vb_findings_print(const struct vb_findings *findings, FILE *out);
/* Prints a JSON array. */
void vb_findings_print_json(const struct vb_findings *findings, FILE *out);
/* "ok", "slow" or "stop": the worst of them. */
const char *vb_findings_verdict(const struct vb_findings *findings);

#endif
