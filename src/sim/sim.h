/* The command's work: reads scenarios, runs them and reports. The command line comes in as text; output goes to
 * standard output and error. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

enum sim_exit {
	SIM_EXIT_OK,
	SIM_EXIT_BAD_NEWS,       /* flows failed, or a file could not be written */
	SIM_EXIT_USAGE,          /* the command or the scenario is wrong */
	SIM_EXIT_LOSSLESS_DROPS, /* in a lossless class */
	SIM_EXIT_NO_END,         /* deadlock, livelock, a limit, an interrupt: flows are open */
};

struct sim_setting {
	const char *key, *value;
};

/* A collective of all endpoints instead of the scenario's workloads, in a table of sizes. */
struct sim_collective {
	const char *kind;      /* NULL: there is none */
	const char *algorithm; /* NULL: the kind's first */
	const char *sizes;     /* SIZE or SIZE..SIZE, with K, M and G of 2^10; NULL: 1K..64M */
	uint64_t bytes;        /* of one row */
};

struct sim_options {
	const char *const *arguments; /* scenario files, and with is_comparison KEY=A,B,C */
	unsigned argument_count;
	struct sim_setting *settings; /* in the order given */
	unsigned setting_count;
	const char *flows, *csv, *pcap;
	const char *job;     /* a file of operations (net/job_file.h), instead of the scenario's workloads */
	const char *groups;  /* of its ranks */
	const char *trace;   /* where to write one for Perfetto */
	const char *loggops; /* parameters, under which the job runs without a network */
	struct sim_collective collective;
	unsigned progress_s; /* between two progress lines; 0: none */
	bool is_json, is_comparison, is_terminal, explains_pfc, explains_job, is_dry, skips_alone, skips_check;
	const char *exact_check; /* a check by packets takes this part of each message's bytes: "10%" */
};

/* The exit status. */
int sim_run(const struct sim_options *options);
/* All keys, for --keys. */
void sim_print_keys(void);
/* For --gpus, --models and --collectives. */
void sim_print_gpus(void);
void sim_print_models(void);
void sim_print_collectives(void);

#endif
