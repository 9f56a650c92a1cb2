/* The content of a scenario file, checked: a network, its traffic, and how to run it. keys.c has the table of all keys;
 * a key in the table can be checked, set and explained without more code. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "cc/choice.h"
#include "fabric/fabric.h"
#include "net/front_end.h"
#include "net/network.h"
#include "net/topologies.h"
#include "net/dimensions.h"
#include "net/hosts.h"
#include "net/job_file.h"
#include "net/workloads.h"
#include "steps/plan.h"
#include "sim/document.h"
#include "sim/value.h"

enum { SCENARIO_WORKLOADS = 32, SCENARIO_FAULTS = 64, SCENARIO_KEYS = 256 };

struct scenario_fault {
	char link[64];            /* link.h */
	uint64_t bits_per_second; /* the link's rate; 0: its own */
	struct network_fault fault;
};

/* A step of training, as the scenario gives it: step.h completes the plan. */
struct scenario_step {
	char model[32], gpu[16];
	char compute_times[PATH_MAX]; /* step_times.h; "": kernels reach a part of the GPU's peak */
	struct step_plan plan;        /* all but the model, and the GPU's speed */
	/* The model's shape; 0: the named model's. */
	uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, experts, top_k;
	char slow[1000], gpus[1000]; /* lists of ranks (step_gpus.h) */
	char ranks[32];              /* of the network (step_place.h); "": those that are free */
	uint32_t steps;              /* of the training; 0: it is not told */
	enum { MEMORY_CHECKED, MEMORY_UNCHECKED } memory;
	enum { MISSING_REFUSED, MISSING_BY_MFU } missing_times; /* what compute_times has not */
};

/* A workload of services.h, as the scenario gives it; what it shares with others is theirs. */
struct scenario_service {
	uint32_t trainers, replicas;
	uint64_t piece, rollout; /* bytes */
	enum { SERVICE_CHAIN, SERVICE_TREE } shape;
	char storage[32]; /* FIRST-LAST */
	uint64_t message; /* bytes */
	bool restores;
	uint64_t tokens, token_bytes;
	vb_time step_time;
	uint32_t prefill, decode;  /* groups */
	uint64_t memory_bandwidth; /* bytes a second */
	char trace[PATH_MAX];
	uint32_t requests, input_tokens, output_tokens;
	double request_rate; /* a second */
};

struct scenario_workload {
	char file[PATH_MAX]; /* takes the place of a kind */
	struct workload workload;
	struct scenario_step step; /* of the kind "step" */
	struct scenario_service service;
};

struct scenario {
	char name[128];
	char variant[64]; /* the variant that is applied (variants.h); "": none */
	/* network */
	char topology_file[PATH_MAX]; /* takes the place of the topology's kind */
	struct topology topology;
	bool is_whole_ns; /* as in struct network */
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
	enum { GO_BACK_N, GO_BACK_0, SELECTIVE } recovery; /* as enum vb_recovery_kind */
	uint16_t paths;
	vb_time timeout, probe;
	/* workload */
	struct scenario_workload workloads[SCENARIO_WORKLOADS];
	uint32_t workload_count;
	/* job */
	enum job_streams job_streams;
	bool job_heeds_priorities;
	struct nccl_settings job_nccl; /* of steps of training, too */
	/* run */
	enum { MODE_PACKETS, MODE_FLOWS, MODE_FORMULA } mode;
	uint64_t seed;
	uint32_t threads;
	const struct gpu *gpu; /* hosts.gpu; NULL: none is named */
	struct front_end front_end;
	struct hosts hosts;    /* nics 0: as many as GPUs; gpu_of: filled in from the network */
	char placement[32768]; /* "packed", "spread", an order of dimensions, or a list of GPUs (placement.h) */
	struct dimensions dimensions;
	vb_time limit, stall;
	bool tells_queues;
	/* capture */
	char captured[2000];                 /* links, separated by commas */
	uint8_t classes_given;               /* of network.switch.classes: a mask of their numbers */
	uint64_t downs_given;                /* likewise of network.faults.*.down */
	uint64_t given[SCENARIO_KEYS / 64];  /* a bit for each of scenario_keys: the file or the command line has it */
	uint64_t varied[SCENARIO_KEYS / 64]; /* likewise: some variant has it */
};

/* One key. A star in its path stands for a number: of a fault, a workload, or a traffic class ("all" for every class).
 */
struct scenario_key {
	const char *path;
	enum value_kind kind;
	uint32_t offset, size; /* of the field in struct scenario */
	uint32_t stride, most; /* of the elements that the star numbers */
	double least, largest; /* in the field's own units */
	const char *words;     /* for VALUE_WORD and VALUE_NAME */
	const char *preset;    /* as one would write it; NULL: the help gives it */
	const char *help;
	const char *of; /* PATH=WORD|...: the key has an effect only with one of these; NULL: always */
	/* For keys that set more than a field: -EINVAL and why. */
	int (*set)(struct scenario *scenario, const char *text, char *why, size_t size);
	bool is_path, is_first; /* first: it sets what other keys then change */
};

/* Ends with a path of NULL. */
extern const struct scenario_key scenario_keys[];

/* For an entry's path with its numbers; is_all: "all" takes their place. NULL: no such key. */
const struct scenario_key *scenario_key_find(const char *path, uint32_t *index, bool *is_all);
/* Whether the scenario itself gives this key of the table. */
bool scenario_is_given(const struct scenario *scenario, const char *path);
/* Whether any variant gives it, chosen or not. */
bool scenario_is_varied(const struct scenario *scenario, const char *path);
/* The key that was probably meant; NULL. */
const char *scenario_key_nearest(const char *path);
/* For people: every key with its unit, default and meaning. */
void scenario_keys_print(FILE *out);

/* Applies the defaults, then all entries: the file's, those of the chosen variant, the command line's. Entries of other
 * variants are only checked. Paths in a file are relative to its directory, those on a command line to the current one.
 * -EINVAL. */
int scenario_fill(struct scenario *scenario, const struct document *document, const char *directory,
	struct document_error *error);

/* Like document_set, for a key of the command line. "workload.bytes" is "workload.0.bytes"; if there are several
 * workloads in the end, scenario_fill refuses it. */
int scenario_set(struct document *document, const char *path, const char *value, struct document_error *error);

/* The entry of this key that counts: the command line's, the variant's, or the file's; NULL: there is none. */
const struct document_entry *scenario_entry(const struct document *document, const char *variant, const char *path);

bool scenario_has_step(const struct scenario *scenario, uint32_t workload);

/* From a file, or from bytes. -EINVAL and the error, -errno of the file. */
int scenario_read_file(struct document *document, const char *path, struct document_error *error);

#endif
