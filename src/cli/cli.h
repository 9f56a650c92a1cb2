/* The command `verbena`: shared by its subcommands. main.c holds the table of subcommands; each has a file of its own.
 * Exit status: 0 done, 1 the answer is bad news (doctor), 2 wrong usage; run and sim have their own, see run.c and
 * sim.c. */
#ifndef VB_CLI_CLI_H
#define VB_CLI_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

enum { VB_EXIT_OK = 0, VB_EXIT_BAD_NEWS = 1, VB_EXIT_USAGE = 2 };

struct vb_command {
	const char *name;
	const char *summary; /* one line, for `verbena help` */
	const char *help;    /* all of `verbena NAME --help` */
	int (*main)(const struct vb_command *self, int argc, char **argv);
};

int vb_run_main(const struct vb_command *self, int argc, char **argv);
int vb_devices_main(const struct vb_command *self, int argc, char **argv);
int vb_doctor_main(const struct vb_command *self, int argc, char **argv);
int vb_broker_main(const struct vb_command *self, int argc, char **argv);
int vb_sim_main(const struct vb_command *self, int argc, char **argv);

extern const char vb_run_help[], vb_devices_help[], vb_doctor_help[], vb_broker_help[], vb_sim_help[];

/* Prints "verbena NAME: MESSAGE" and how to get help on stderr; returns VB_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int vb_usage_error(const struct vb_command *self, const char *format, ...);
/* As above, for an option that getopt has already complained of. */
int vb_option_error(const struct vb_command *self);

/* Paths of Verbena's files, found from this executable: in the build tree or an installed prefix. */
struct vb_places {
	bool is_installed;
	char libraries[PATH_MAX]; /* directory of libibverbs.so.1 */
	char preload[PATH_MAX];   /* libverbena-preload.so */
	char rsockets[PATH_MAX];  /* librspreload.so */
	char broker[PATH_MAX];    /* verbena-broker, unless VERBENA_LIBEXEC says otherwise */
};

/* -errno when /proc/self/exe cannot be read. Does not check that the files exist. */
int vb_places_find(struct vb_places *places);
/* The text for vb_places_find's -errno. */
const char *vb_places_fault(int error);

#endif
