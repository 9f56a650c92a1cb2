/* How a model is cut over ranks for training, and what follows before anything runs: layers of each stage, memory,
 * work.
 *
 * Ranks are tp x cp x pp x dp. Experts are spread over ep of the tp x cp x dp ranks of a stage, whole. A step has
 * `batch` sequences: dp replicas have batch / dp each, in micro-batches of `micro_batch`. */
#ifndef STEPS_PLAN_H
#define STEPS_PLAN_H

#include "steps/model.h"

enum step_recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL }; /* selective: attention's scores */
enum step_schedule { SCHEDULE_1F1B, SCHEDULE_INTERLEAVED, SCHEDULE_ZERO_BUBBLE };
enum step_dispatcher { DISPATCH_ALL_TO_ALL, DISPATCH_ALL_GATHER };
enum step_context { CONTEXT_ALL_GATHER, CONTEXT_RING };

/* Computing of a GPU: of a layer, or the output. */
enum step_work { WORK_PROJECTIONS, WORK_SCORES, WORK_FFN, WORK_EXPERTS, WORK_OUTPUT, STEP_WORKS };

enum step_order { ORDER_TP_CP_DP_PP, ORDER_TP_CP_PP_DP }; /* of ranks: the first is that of neighbours */

/* Ranks of a plan, counted from 0, whose computing takes so many times as long. */
enum { PLAN_RANGES = 64 };
struct plan_range {
	uint32_t first, last;
	double factor;
};
struct plan_ranges { /* no rank is in two */
	struct plan_range list[PLAN_RANGES];
	uint32_t count;
};

struct step_plan {
	struct model model;
	uint32_t tp, cp, pp, dp, ep;
	uint32_t first;  /* the network's rank that is its first; the others follow */
	uint32_t chunks; /* of a stage, interleaved: vpp */
	uint32_t micro_batch, batch, sequence;
	bool is_sequence_parallel;
	bool ends_count_as_layers; /* embedding and output take the place of a layer: Llama 3's 126 = 16 x 8 - 2 */
	uint8_t zero;              /* 0 to 3 */
	uint8_t gradient_bytes;    /* of a parameter: 4 or 2 */
	uint8_t recompute, schedule, dispatcher, context, order; /* of the enums above */
	uint64_t bucket;          /* parameters whose gradients are sent together; 0: Megatron's default */
	bool overlaps_gradients;  /* with the backward passes of the last micro-batch */
	bool overlaps_parameters; /* ZeRO-1: their gathering, with the forward passes of the first micro-batch */
	bool counts_whole_square; /* attention's work: of the whole square instead of its causal half */
	double bytes_part;        /* of each message, what is sent: a piece's (piece.h); 0: all */
	double tflops, mfu;       /* a GPU's peak of bf16, and which part of it its kernels reach, above 0 */
	/* By work, forward and backward: how many times as long a table has it (compute_times.h); 0: once. */
	double factors[STEP_WORKS][2];
	struct plan_ranges slow, kinds; /* kinds: ranks with another GPU than that of tflops */
};

/* After a check that passed (plan_check.h). */
uint32_t plan_ranks(const struct step_plan *plan);
uint32_t plan_micro_batches(const struct step_plan *plan); /* of a replica */
uint32_t plan_parts(const struct step_plan *plan);         /* chunks of all stages: pp x chunks */
uint32_t plan_stage_of(const struct step_plan *plan, uint32_t part);
/* The layers of a part: from `first`, so many. Parts are in the order in which a token meets them. */
struct plan_layers {
	uint32_t first, count;
};
struct plan_layers plan_layers(const struct step_plan *plan, uint32_t part);
/* The network's number of the rank that has this place among those of its stage (tp, then cp, then dp). */
uint32_t plan_rank(const struct step_plan *plan, uint32_t place, uint32_t stage);
uint32_t plan_place(const struct step_plan *plan, uint32_t rank, uint32_t *stage); /* the other way round */
uint32_t plan_expert_replicas(const struct step_plan *plan); /* ranks that have the same experts */

/* Parameters that a rank has: those that all replicas have, and experts. */
struct plan_parameters {
	double shared, experts;
};
struct plan_parameters plan_layer_parameters(const struct step_plan *plan, uint32_t layer);
/* Of the embedding, or of the output. */
struct plan_parameters plan_end_parameters(const struct step_plan *plan, bool output);
/* Of both, as far as they are in the part; and with all layers of the part. */
struct plan_parameters plan_part_ends(const struct step_plan *plan, uint32_t part);
struct plan_parameters plan_part_parameters(const struct step_plan *plan, uint32_t part);
/* Likewise of a stage. */
struct plan_parameters plan_ends_parameters(const struct step_plan *plan, uint32_t stage);
struct plan_parameters plan_stage_parameters(const struct step_plan *plan, uint32_t stage);

/* Bytes that the fullest rank needs, by the formulas of Megatron's theoretical_memory_usage.py. */
struct plan_memory {
	double state;       /* weights, gradients, optimizer */
	double activations; /* of layers */
	double ends;        /* of embedding and output */
	double sum;
};
struct plan_memory plan_memory(const struct step_plan *plan);

double plan_tokens(const struct step_plan *plan);
double plan_work(const struct step_plan *plan);   /* operations of a step, none of them done twice */
double plan_bubble(const struct step_plan *plan); /* idle over busy: (p - 1) / (v m) */

#endif
