/* The summary that VERBENA_STATS=1 prints: of each period in which devices are open, once, however the program ends.
 * At an ordinary end the program prints it. Where the program is killed (SIGKILL, ^C, abort) or replaced (exec),
 * verbena-summary does, a small process that begins with the program's first look at devices and ends with the program.
 * It prints the newest text that a thread of ours has left in shared memory, at most VB_SUMMARY_AGE_MS old. */
#ifndef VB_HOST_SUMMARY_H
#define VB_HOST_SUMMARY_H

#include <stdbool.h>
#include "cm/cm.h"
#include "port/faults.h"
#include "port/port.h"
#include "host/report/json_line.h"

#define VB_SUMMARY_AGE_MS 50

struct vb_process;

/* Takes one line, without its end. */
typedef void vb_summary_say(void *user, const char *line);

/* The connection manager's counters; and the faults that were injected into messages that came. */
struct vb_connections_counts {
	uint64_t cm[VB_CM_COUNTER_COUNT], faults[VB_FAULTS];
};

/* Where a summary goes. Two may be made at a time, one for each use, for each use has memory for its sums. */
enum vb_summary_use { VB_SUMMARY_LAST, VB_SUMMARY_SO_FAR, VB_SUMMARY_USES };

struct vb_summary {
	enum vb_summary_use use;
	vb_summary_say *say;
	void *user;
	struct vb_json_line *json; /* the same for a program; NULL: not asked for */
	bool has_connections;
	struct vb_connections_counts connections;
};

__attribute__((format(printf, 2, 3))) void vb_summary_add(const struct vb_summary *summary, const char *format, ...);

/* To stderr, and to a capture, or NULL. Before any host lane's mutex is taken: it asks the connection manager. */
struct vb_summary vb_summary_to_print(struct vb_pcap *pcap);

/* True: the caller prints it, and no other thread does. Any thread, also in exit(); process NULL: no device is open. */
bool vb_summary_is_mine_to_say(struct vb_process *process);

/* The summary of a program that saw devices and opened none. */
void vb_summary_say_none_opened(void);
/* The summary that was made to be printed is whole: its JSON goes to its file. */
void vb_summary_write_json(const struct vb_summary *summary);

#define VB_SUMMARY_NONE_OPENED "wire: no device was opened; nothing went through Verbena"

/* With the process held (vb_process_hold). */
/* With VERBENA_STATS=1: the program has looked at devices, and its summary outlives a sudden end from now on. */
void vb_summary_begin(void);
/* Keeps the summary so far for a sudden end; nothing where there is no verbena-summary. */
void vb_summary_keep(struct vb_process *process);
/* In a forked child: all of it is the parent's. */
void vb_summary_forked(void);

#endif
