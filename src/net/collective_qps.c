/* See collective_qps.h. */
#include "net/collective_qps.h"
#include <errno.h>
#include "base/invariant.h"

/* As ncclIbMultiSend aligns it, for LL128. */
enum { ALIGNMENT = 128, QP_BITS = 8 };

static bool is_in_host(const struct collective *of, uint32_t place, uint32_t to)
{
	return of->gpus > 1 && place / of->gpus == to / of->gpus;
}

uint32_t collective_qps(const struct collective *of, uint32_t place, uint32_t to)
{
	return of->nccl.qps > 1 && !is_in_host(of, place, to) ? of->nccl.qps : 1;
}

uint32_t collective_cuts(const struct collective *of, uint32_t place, uint32_t to)
{
	return of->nccl.is_cut ? collective_qps(of, place, to) : 1;
}

uint64_t collective_cut(uint64_t bytes, uint32_t cuts, uint32_t qp)
{
	const uint64_t each = ((bytes + cuts - 1) / cuts + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	const uint64_t left = bytes > each * qp ? bytes - each * qp : 1;
	if (cuts == 1)
		return bytes;
	return left < each ? left : each;
}

static void send_one(const struct collective_sent *request, uint32_t qp, uint32_t cut, uint64_t bytes,
	const struct collective_out *out)
{
	struct collective_sent sent = *request;
	sent.qp = qp;
	sent.cut = cut;
	sent.bytes = bytes;
	out->send(out, &sent);
}

void collective_send(const struct collective *of, uint32_t place, const struct collective_sent *request,
	const struct collective_out *out)
{
	const uint32_t qps = collective_qps(of, place, request->to);
	const uint32_t cuts = request->opens ? 1 : collective_cuts(of, place, request->to);
	assert(request->bytes > 0);
	if (cuts == 1)
		send_one(request, request->opens ? qps : request->turn % qps, 0, request->bytes, out);
	for (uint32_t qp = 0; cuts > 1 && qp < cuts; qp++)
		send_one(request, qp, qp + 1, collective_cut(request->bytes, cuts, qp), out);
}

/* Of the messages of a place, those that leave its host. */
static uint64_t leaving_by_steps(
	const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place)
{
	const uint32_t steps = collective_steps(of, algorithm), others = of->ranks - 1;
	const uint32_t gpus = of->gpus > 1 ? of->gpus : 1, rest = of->ranks - place / gpus * gpus;
	const uint32_t in_host = (rest < gpus ? rest : gpus) - 1;
	uint64_t leaving = 0;
	switch (algorithm->waiting) {
	case FOR_THE_LAST: /* all go to one place */
		return is_in_host(of, place, algorithm->step(of, place, 0).to) ? 0 : steps;
	case FOR_ALL_OF_A_HALF: /* to each other place equally often */
	case FOR_A_PLACE:
		return (uint64_t)steps / others * (others - in_host);
	case FOR_ALL_BEFORE:
	case FOR_BOTH_RINGS:
		break;
	}
	for (uint32_t i = 0; i < steps; i++)
		leaving += !is_in_host(of, place, algorithm->step(of, place, i).to);
	return leaving;
}

static uint64_t leaving_by_edges(
	const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place)
{
	struct collective_edge edges[COLLECTIVE_EDGES];
	uint64_t leaving = 0;
	for (uint32_t i = algorithm->edges(of, place, edges); i-- > 0;)
		if (!is_in_host(of, place, edges[i].to))
			leaving += (uint64_t)collective_pieces(of, edges[i].bytes) * collective_copies(of, &edges[i]);
	return leaving;
}

uint64_t collective_cut_sends(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place)
{
	const uint64_t sends = collective_sends(of, algorithm, place);
	if (!of->nccl.is_cut || of->nccl.qps < 2)
		return sends;
	return sends + (uint64_t)(of->nccl.qps - 1) * (algorithm->edges ? leaving_by_edges(of, algorithm, place)
									: leaving_by_steps(of, algorithm, place));
}

/* By steps all hosts send what the first does. */
uint64_t collective_cut_messages(const struct collective *of, const struct collective_algorithm *algorithm)
{
	const uint32_t of_host = of->gpus > 1 ? of->gpus : 1;
	const uint32_t alike = algorithm->edges || of->ranks % of_host ? of->ranks : of_host;
	uint64_t messages = 0;
	if (!of->nccl.is_cut || of->nccl.qps < 2)
		return collective_messages(of);
	for (uint32_t place = 0; place < alike; place++)
		messages += collective_cut_sends(of, algorithm, place);
	return messages * (of->ranks / alike);
}

static uint64_t key_of(uint32_t tag, uint32_t qp)
{
	return (uint64_t)tag << QP_BITS | qp;
}

int collective_cut_came(struct number_map *came, uint32_t tag, uint32_t cuts, uint32_t qp)
{
	uint32_t *its = number_map_make(came, key_of(tag, qp));
	assert(qp < cuts && cuts <= COLLECTIVE_MOST_QPS);
	if (!its)
		return -ENOMEM;
	const uint32_t nth = ++*its;
	bool is_even = true;
	for (uint32_t i = 0; i < cuts; i++) {
		const uint32_t *other = number_map_find(came, key_of(tag, i));
		if (!other || *other < nth)
			return 0;
		is_even &= *other == nth;
	}
	for (uint32_t i = 0; is_even && i < cuts; i++)
		number_map_remove(came, key_of(tag, i));
	return 1;
}
