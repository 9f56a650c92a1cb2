/* From a scenario file to a result. Errors are reported on standard error. */
#ifndef SIM_SESSION_H
#define SIM_SESSION_H

#include "sim/capture.h"
#include "sim/document.h"
#include "sim/explain.h"
#include "sim/progress.h"
#include "sim/sim.h"
#include "sim/simulation.h"
#include "sim/summary.h"

struct session {
	struct document document; /* as read, for the places of its keys */
	struct scenario *scenario;
	struct simulation simulation;
	struct summary summary;
	struct explanation explanation; /* if options->explains_pfc */
	struct progress progress;
	unsigned row, rows;      /* of a table, the caller's (progress.h) */
	struct capture *capture; /* belongs to the caller; NULL: none */
};

/* Reads the file, applies the command line's settings, then these, and prepares the simulation. An exit status; close
 * the session in every case. */
int session_open(struct session *session, const char *file, const struct sim_options *options,
	const struct sim_setting *settings, unsigned count);
void session_warn(const struct session *session); /* of what was found when it was opened */
/* Says what is wrong with the scenario of this file: at the place of the key that why begins with. An exit status. */
int session_refuse(const struct session *session, const char *file, int error, const char *why);
int session_run(struct session *session, const struct sim_options *options);
/* Tells of the progress of what runs next, and lets an interrupt end it; to be ended by progress_end. */
void session_watch(struct session *session, const struct sim_options *options, const char *unit);
int session_status(const struct session *session);
void session_close(struct session *session);

#endif
