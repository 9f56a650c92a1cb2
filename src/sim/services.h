/* Workloads that are neither a collective nor a step of training: weights for inference, checkpoints, input, and
 * inference itself. Each is a job of a kind of its own, that runs by packets and by flows alike. */
#ifndef SIM_SERVICES_H
#define SIM_SERVICES_H

#include <stdio.h>
#include "net/checkpoint_job.h"
#include "net/inference_job.h"
#include "net/input_job.h"
#include "net/weights_job.h"

struct simulation;
struct service;

/* The traffic of one, for estimates before a run. */
struct service_load {
	double messages, bytes;
	uint32_t open;     /* messages under way at a time, about */
	uint32_t from, to; /* ranks, for a usual way */
};

struct service_kind {
	const char *name;
	/* 0; -EINVAL and why, which begins with the key behind workload.*; -ENOMEM. Then nothing is open. */
	int (*open)(struct service *service, const struct simulation *simulation, char *why, unsigned why_size);
	struct service_load (*load)(const struct service *service);
	/* One or more lines; the members of an object, the first with a comma before it. */
	void (*tell)(const struct service *service, const struct simulation *simulation, FILE *out);
	void (*tell_json)(const struct service *service, const struct simulation *simulation, FILE *out);
	void (*close)(struct service *service);
};

struct service {
	const struct service_kind *kind;
	uint32_t workload;
	struct job *job;
	struct storage_sides sides;         /* of checkpoints and input */
	struct inference_requests requests; /* of inference */
	union {
		struct weights_job weights;
		struct checkpoint_job checkpoint;
		struct input_job input;
		struct inference_job inference;
	};
};

/* NULL: a workload of this name is no service. */
const struct service_kind *service_kind_of(const char *name);
void services_text(const struct simulation *simulation, FILE *out);
void services_json(const struct simulation *simulation, FILE *out, const char *indent); /* a list */

/* For kinds: the bytes of a workload's model, so many of each parameter, or of the key `bytes` where no model is named.
 * -EINVAL and why. */
int service_bytes(const struct simulation *simulation, uint32_t workload, uint32_t of_parameter, uint64_t *bytes,
	char *why, unsigned why_size);
/* -EINVAL and why, if the run has fewer ranks. */
int service_check_ranks(const struct simulation *simulation, uint32_t first, uint64_t count, const char *what,
	char *why, unsigned why_size);

extern const struct service_kind service_weights, service_checkpoint, service_input, service_inference;

#endif
