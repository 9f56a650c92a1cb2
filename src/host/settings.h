/* Every setting is one environment variable VERBENA_*; this is the one table of them. `verbena doctor` prints it, and
 * docs/settings.md is checked against it. An unknown VERBENA_* name or a malformed value is an error that says what is
 * allowed. In secure execution (AT_SECURE: a set-user-ID program, or one with capabilities) the environment is another
 * user's: only settings that run no program, name no file and weaken nothing count there. */
#ifndef VB_HOST_SETTINGS_H
#define VB_HOST_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include "cc/choice.h"

/* X(NAME, "allowed values", "default", "what it does") */
/* clang-format off */
#define VB_SETTINGS(X)                                                                                                 \
	X(DEVICES, "comma-separated interface or device names", "all", "which devices exist, in this order")           \
	X(LOCAL, "auto|off", "auto", "off forces the wire path between processes of one host")                         \
	X(MAP, "off|registered", "off", "registered lets local peers map large registered memory, at some risk") \
	X(LANES, "number, 1 .. 8", "", "lanes of this process; else as its threads need them, up to the cores") \
	X(PCAP, "file name; %p becomes the process id", "", "writes what the process sends and receives as a capture") \
	X(CC, "auto, NAME, or NAME,PARAMETER=VALUE,...", "auto", "congestion control of what goes over the wire") \
	X(RECOVERY, "auto|go-back-n", "auto", "go-back-n sends again all behind a loss, to any peer") \
	X(PATHS, "auto, or a number, 1 .. 64", "auto", \
		"source ports of a connection to a Verbena peer; auto: 1; 1: no failover; more: by two links") \
	X(LARGE_PACKETS, "auto|off", "auto", "off: no packet to a Verbena peer carries more than the path MTU") \
	X(FAULTS, "drop=P,dup=P,reorder=P,corrupt=P,delay=TIME,seed=N,rate=RATE,queue=BYTES,kmin=BYTES,kmax=BYTES,pmax=P,burst=N,late=P,late-by=TIME,path=N,if=NAME; verb:NAME:nth=N:ERRNO,event:NAME:after=TIME,cm:reject:nth=N,cm:timeout:nth=N,cm:disconnect:nth=N", "", \
		"injects faults into received packets, or puts them through a bottleneck; makes calls, events and connections fail") \
	X(STATS, "0|1", "0", "prints a summary of paths and counters on stderr at the end")                               \
	X(STATS_JSON, "file name; %p becomes the process id", "", "appends that summary to the file, a line of JSON a process") \
	X(TRAINS, "auto|off", "auto", "off sends single datagrams only, never GSO trains")                             \
	X(RCVBUF, "bytes, 65536 .. 1073741824", "4194304", "receive buffer asked for each slot's socket")              \
	X(PART_ID, "number, 0 .. 4294967295", "1", "vendor_part_id that the devices report")                           \
	X(BROKER, "own|any", "own", "any accepts a broker that another user (not root) started")                       \
	X(LOG, "error|warn|info|debug", "warn", "what is said on stderr")                                              \
	X(DMABUF, "auto|on", "auto", "on tells programs that probe that dma-bufs can be registered")                   \
	X(LIBEXEC, "directory", "", "where verbena-broker lies, if not beside the library")                            \
	X(PROGRESS, "thread|off", "thread", "off: nothing proceeds unless the program polls (for tests)")
/* clang-format on */

enum vb_setting {
#define X(name, allowed, fallback, meaning) VB_SETTING_##name,
	VB_SETTINGS(X)
#undef X
		VB_SETTING_COUNT,
};

enum vb_log_level { VB_LOG_ERROR, VB_LOG_WARN, VB_LOG_INFO, VB_LOG_DEBUG };

struct vb_settings {
	const char *text[VB_SETTING_COUNT]; /* as given, or the default */
	bool is_given[VB_SETTING_COUNT];
	bool local_off, go_back_n, large_off, map_registered, stats, trains_off, broker_any, dmabuf_on, progress_off;
	bool fails_over;    /* RC connections go on over another interface */
	bool packet_faults; /* of FAULTS, some are about packets */
	uint32_t receive_buffer, part_id, paths;
	uint32_t lanes; /* 0: not given */
	enum vb_log_level log;
	struct vb_cc_choice cc;
};

struct vb_setting_row {
	const char *name, *allowed, *fallback, *meaning; /* name without VERBENA_ */
};
extern const struct vb_setting_row vb_setting_rows[VB_SETTING_COUNT];

/* A summary is told. */
static inline bool vb_settings_want_summary(const struct vb_settings *settings)
{
	return settings->stats || *settings->text[VB_SETTING_STATS_JSON];
}

/* Paths and accounts are kept: for a summary, which a capture has, too. */
static inline bool vb_settings_want_accounts(const struct vb_settings *settings)
{
	return vb_settings_want_summary(settings) || *settings->text[VB_SETTING_PCAP];
}

/* Reads environ-style "NAME=value" strings; -EINVAL with the reason in why. Pure: tests and the fuzzer call it. */
int vb_settings_parse(struct vb_settings *settings, char *const *environment, char *why, size_t why_size);
/* The same in secure execution. ignored: the names that do not count there, separated by ", "; or empty. */
int vb_settings_parse_secure(struct vb_settings *settings, char *const *environment, char *ignored, size_t ignored_size,
	char *why, size_t why_size);
/* The process's settings, read once. NULL when they are malformed (explained on stderr the first time). */
const struct vb_settings *vb_settings_get(void);
/* This process is in secure execution. */
static inline bool vb_settings_are_secure(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* "verbena: ..." on stderr when level is enabled; one write, newline added. */
__attribute__((format(printf, 2, 3))) void vb_log(enum vb_log_level level, const char *format, ...);

#endif
