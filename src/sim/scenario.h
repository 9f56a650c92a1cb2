/* What a scenario file says, checked: a network, who sends what over it, and how a run shall be. keys.c has the table
 * of all that may stand in one; each key's presence there is enough to check it, set it and explain it. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "cc/choice.h"
#include "fabric/fabric.h"
#include "net/network.h"
#include "net/topologies.h"
#include "net/workloads.h"
#include "sim/document.h"
#include "sim/value.h"

enum { SCENARIO_WORKLOADS = 32, SCENARIO_FAULTS = 64, SCENARIO_KEYS = 256 };

struct scenario_fault {
	char link[64]; /* link.h */
	struct network_fault fault;
};

struct scenario_workload {
	char file[PATH_MAX]; /* instead of a kind */
	struct workload workload;
};

struct scenario {
	char name[128];
	char variant[64]; /* that is laid over the rest (variants.h); "": none */
	/* network */
	char topology_file[PATH_MAX]; /* instead of the topology's kind */
	struct topology topology;
	bool is_whole_ns; /* struct network */
	struct scenario_fault faults[SCENARIO_FAULTS];
	uint32_t fault_count;
	/* transport */
	enum fabric_endpoint endpoint;
	struct fabric_tcp tcp;
	char cc_text[256]; /* as written */
	struct vb_cc_choice cc;
	uint32_t first_window, largest_window;
	uint32_t mtu, data_overhead, ack_overhead, ack_every;
	uint8_t retries, ack_class;
	enum vb_cnp_scope cnp_scope;
	vb_time cnp_interval;
	enum { MARKS_BY_CNPS, MARKS_BY_ACKS } marks;
	enum { BEHIND_NIC, BEHIND_SOCKETS } behind;
	uint32_t receive_buffer;
	enum { GO_BACK_N, GO_BACK_0 } recovery;
	vb_time timeout, probe;
	/* workload */
	struct scenario_workload workloads[SCENARIO_WORKLOADS];
	uint32_t workload_count;
	/* run */
	uint64_t seed;
	uint32_t threads;
	vb_time limit, stall;
	bool tells_queues;
	/* capture */
	char captured[2000];                 /* links, parted by commas */
	uint8_t classes_given;               /* of network.switch.classes, by their numbers: a mask */
	uint64_t downs_given;                /* and of network.faults.*.down */
	uint64_t given[SCENARIO_KEYS / 64];  /* a bit for each of scenario_keys that the file or the command line has */
	uint64_t varied[SCENARIO_KEYS / 64]; /* and for those that some variant has */
};

/* One key. A star in its path stands for a number: of a fault, a workload, a traffic class ("all" for all of them). */
struct scenario_key {
	const char *path;
	enum value_kind kind;
	uint32_t offset, size; /* of the field, in struct scenario */
	uint32_t stride, most; /* of what the star numbers */
	double least, largest; /* in the field's own units */
	const char *words;     /* of VALUE_WORD and VALUE_NAME */
	const char *preset;    /* as it would be written; NULL: help says it */
	const char *help;
	const char *of; /* PATH=WORD|...: without one of these it changes nothing; NULL: it always may */
	/* What is more than a value for a field: -EINVAL and why. */
	int (*set)(struct scenario *scenario, const char *text, char *why, size_t size);
	bool is_path, is_first; /* first: it sets what others then change */
};

/* Ends with a path of NULL. */
extern const struct scenario_key scenario_keys[];

/* Of an entry's path, with the numbers in it; is_all: "all" stands for them. NULL: there is none. */
const struct scenario_key *scenario_key_find(const char *path, uint32_t *index, bool *is_all);
/* Does the scenario say it itself? Of one of the table's paths. */
bool scenario_is_given(const struct scenario *scenario, const char *path);
/* Does a variant say it, be it chosen or not? */
bool scenario_is_varied(const struct scenario *scenario, const char *path);
/* The key that one may have meant; NULL. */
const char *scenario_key_nearest(const char *path);
/* For people: every key with its unit, default and meaning. */
void scenario_keys_print(FILE *out);

/* The defaults, then all entries: the file's, those of the variant that is chosen, the command line's. Those of the
 * other variants are checked. Paths in a file are relative to its directory, those of a command line to none.
 * -EINVAL. */
int scenario_fill(struct scenario *scenario, const struct document *document, const char *directory,
	struct document_error *error);

/* As document_set, for a key of a command line. "workload.bytes" is "workload.0.bytes"; where there are several
 * workloads in the end, scenario_fill refuses it. */
int scenario_set(struct document *document, const char *path, const char *value);

/* Of a file, or of bytes. -EINVAL and what is wrong, -errno of the file. */
int scenario_read_file(struct document *document, const char *path, struct document_error *error);

#endif
