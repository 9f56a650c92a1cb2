/* What `algorithm: nccl` takes on the network of a simulation (nccl.h). */
#ifndef SIM_NCCL_CHOICE_H
#define SIM_NCCL_CHOICE_H

#include "net/nccl.h"
#include "sim/simulation.h"

/* Whether the workload of this number is a collective that leaves the choice to NCCL, and what that is. Its groups
 * are open. */
bool nccl_choice_of(const struct simulation *simulation, uint32_t workload, struct nccl_choice *choice);
/* Of a collective that leaves the choice to NCCL, the workload of this number, whose groups are open: fills in
 * algorithm, channels and the bytes of its protocol. Others stay as they are. -EINVAL and why: NCCL has nothing to
 * choose for this kind. */
int nccl_choice_apply(
	const struct simulation *simulation, uint32_t workload, struct collective *of, char *why, unsigned why_size);
/* As "NVLS tree Simple, 16 channels". */
const char *nccl_choice_text(const struct nccl_choice *choice, char *text, size_t size);

#endif
