/* The two halves of `verbena doctor`: this machine, and the way to a host. doctor.c holds options and output. */
#ifndef VB_CLI_DOCTOR_H
#define VB_CLI_DOCTOR_H

#include "cli/findings.h"
#include "host/settings.h"

/* Each group of checks adds its statements. settings are those in force, or the defaults when they are malformed. */
void vb_check_kernel(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_files(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_local(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_port(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_network(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_machine(struct vb_findings *findings, const struct vb_settings *settings);

/* What there is to say about a host, its name or address as given. timeout_ms bounds each wait for an answer. */
void vb_check_host(struct vb_findings *findings, const struct vb_settings *settings, const char *host, int family,
	unsigned timeout_ms);

#endif
