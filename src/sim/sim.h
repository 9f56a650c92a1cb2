/* The command's work: scenarios read, run and told of. What the command line says comes in as text, and what a person
 * is told goes to standard output and error. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>

enum sim_exit {
	SIM_EXIT_OK,
	SIM_EXIT_BAD_NEWS,       /* flows failed, or a file could not be written */
	SIM_EXIT_USAGE,          /* of the command, or what a scenario says */
	SIM_EXIT_LOSSLESS_DROPS, /* in a class that promises none */
	SIM_EXIT_NO_END,         /* deadlock, livelock, a limit, an interrupt: flows are open */
};

struct sim_setting {
	const char *key, *value;
};

struct sim_options {
	const char *const *arguments; /* scenario files, and with is_comparison KEY=A,B,C */
	unsigned argument_count;
	struct sim_setting *settings; /* in the order given */
	unsigned setting_count;
	const char *flows, *csv, *pcap;
	unsigned progress_s; /* between two lines of how far it is; 0: none */
	bool is_json, is_comparison, is_terminal, explains_pfc;
};

/* The exit status. */
int sim_run(const struct sim_options *options);
/* All keys, for --keys. */
void sim_print_keys(void);

#endif
