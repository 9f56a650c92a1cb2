/* The two halves of `verbena doctor`: this machine, and the path to a host. doctor.c has the options and the output. */
#ifndef VB_CLI_DOCTOR_H
#define VB_CLI_DOCTOR_H

#include "cli/findings.h"
#include "host/settings.h"

/* Each group of checks adds its findings. settings: those in force, or the defaults if these are malformed. */
void vb_check_kernel(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_files(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_local(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_port(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_network(struct vb_findings *findings, const struct vb_settings *settings);
void vb_check_machine(struct vb_findings *findings, const struct vb_settings *settings);

/* Adds the findings about a host, given by name or address. timeout_ms bounds each wait for an answer. */
void vb_check_host(struct vb_findings *findings, const struct vb_settings *settings, const char *host, int family,
	unsigned timeout_ms);

#endif
