/* The passes of a layer for one micro-batch, and what of a layer other files count with. */
#ifndef STEPS_LAYERS_H
#define STEPS_LAYERS_H

#include "steps/building.h"

/* Tokens of a micro-batch that a rank of the tensor-parallel group and its fellows have. */
double layer_tokens(const struct step_plan *plan);
/* Their activations, bytes. */
double layer_activations(const struct step_plan *plan);
/* Of one token's work a rank has this part. */
double layer_share(const struct step_plan *plan);

/* The work of a rank's forward pass through one layer, or the output. */
double layer_work(const struct step_plan *plan, enum step_work work);
/* The same as a table of times has it; backward: of the gradients of inputs, or of those of weights. */
double layer_timed_work(const struct step_plan *plan, enum step_work work, enum step_pass pass);

/* What a column-parallel matrix needs before it, and what a row-parallel one leaves behind. */
void layer_gather(struct building *building);
void layer_scatter(struct building *building);
/* Backward through a column-parallel matrix of so much work: with passes 2 the gradients of inputs and weights, with 1
 * that of inputs alone. */
void layer_column_back(struct building *building, double work, unsigned passes);

void layer_forward(struct building *building, uint32_t layer);
void layer_backward(struct building *building, uint32_t layer, unsigned passes);
/* The work that a backward pass of one pass leaves: the gradients of weights. */
double layer_weights_work(const struct step_plan *plan, uint32_t layer);

#endif
