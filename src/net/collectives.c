/* The messages of each collective and algorithm. */
#include "net/collectives.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/invariant.h"
#include "net/collective_kinds.h"
#include "net/collective_slots.h"
#include "net/flow_text.h"
#include "net/why.h"

/* A rank that waits for all steps before has a bit for each. */
enum { MOST_STEPS_BEFORE = 64 };

#define MOST_MESSAGES (1ull << 40)
#define MOST_PIECES   (1u << 24)

static uint32_t log2_of(uint32_t ranks) /* rounded up */
{
	uint32_t bits = 0;
	while (ranks > 1u << bits)
		bits++;
	return bits;
}

static bool is_power_of_2(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

/* Where share number `share` begins; share n is the end. */
static uint64_t begin_of(const struct collective *of, uint32_t share)
{
	const uint64_t whole = of->bytes / of->ranks, rest = of->bytes % of->ranks;
	return whole * share + (share < rest ? share : rest);
}

/* A message without bytes has one, because it still must be waited for. */
static uint64_t bytes_of(const struct collective *of, uint32_t first, uint32_t count)
{
	const uint64_t bytes = begin_of(of, first + count) - begin_of(of, first);
	return bytes ? bytes : 1;
}

/* ---- Algorithms of one message a step ---------------------------------------------------------------------------- */

/* Rank r sends share r first, then whichever it got last. The same goes on for the second half of an allreduce. */
static struct collective_step ring(const struct collective *of, uint32_t rank, uint32_t step)
{
	const uint32_t n = of->ranks, share = (rank + n - step % n) % n;
	return (struct collective_step){ .to = (rank + 1) % n, .bytes = bytes_of(of, share, 1) };
}

static struct collective_step exchange(uint32_t rank, uint32_t bit, uint64_t bytes)
{
	return (struct collective_step){ .to = rank ^ 1u << bit, .bytes = bytes };
}

/* Allreduce: everything in each step. */
static struct collective_step double_all(const struct collective *of, uint32_t rank, uint32_t step)
{
	return exchange(rank, step, of->bytes);
}

/* All-gather: a rank has 2^step shares, from the first whose number has its upper bits. The first step is with the same
 * partner as the last halving. */
static struct collective_step double_shares(const struct collective *of, uint32_t rank, uint32_t step)
{
	return exchange(rank, step, bytes_of(of, rank >> step << step, 1u << step));
}

/* Reduce-scatter: of the shares that a rank still has, the half of the partner, of the highest bit first. */
static struct collective_step halve(const struct collective *of, uint32_t rank, uint32_t step)
{
	const uint32_t bit = log2_of(of->ranks) - 1 - step, partner = rank ^ 1u << bit;
	return exchange(rank, bit, bytes_of(of, partner >> bit << bit, 1u << bit));
}

static struct collective_step halve_and_double(const struct collective *of, uint32_t rank, uint32_t step)
{
	const uint32_t bits = log2_of(of->ranks);
	return step < bits ? halve(of, rank, step) : double_shares(of, rank, step - bits);
}

static struct collective_step disseminate(const struct collective *of, uint32_t rank, uint32_t step)
{
	return (struct collective_step){ .to = (rank + (1u << step)) % of->ranks, .bytes = 1 };
}

/* PAT, or Bruck's algorithm: a rank has its own share and those of the 2^step - 1 ranks before it. */
static uint32_t pat_shares(uint32_t n, uint32_t bit)
{
	return (1u << bit) < n - (1u << bit) ? 1u << bit : n - (1u << bit);
}

static uint64_t several(const struct collective *of, uint32_t shares)
{
	const uint64_t bytes = (uint64_t)((unsigned __int128)of->bytes * shares / of->ranks);
	return bytes ? bytes : 1;
}

static struct collective_step pat_gather(const struct collective *of, uint32_t rank, uint32_t step)
{
	return (struct collective_step){ .to = (rank + (1u << step)) % of->ranks,
		.bytes = several(of, pat_shares(of->ranks, step)) };
}

static struct collective_step pat_scatter(const struct collective *of, uint32_t rank, uint32_t step)
{
	const uint32_t bit = log2_of(of->ranks) - 1 - step;
	return (struct collective_step){ .to = (rank + of->ranks - (1u << bit)) % of->ranks,
		.bytes = several(of, pat_shares(of->ranks, bit)) };
}

/* ---- Two rings --------------------------------------------------------------------------------------------------- */

static uint32_t hosts_in(const struct collective *of)
{
	return of->ranks / of->gpus;
}

static bool is_in_host(const struct collective *of, uint32_t step)
{
	return step < of->gpus - 1 || step >= of->gpus - 1 + 2 * (hosts_in(of) - 1);
}

/* To the next GPU of the host a share of all GPUs', to the next host's GPU of the same place a share of that. */
static struct collective_step go_round_both(const struct collective *of, uint32_t rank, uint32_t step)
{
	const uint32_t gpus = of->gpus, host = rank / gpus, gpu = rank % gpus;
	if (is_in_host(of, step))
		return (struct collective_step){ host * gpus + (gpu + 1) % gpus, several(of, hosts_in(of)) };
	return (struct collective_step){ (host + 1) % hosts_in(of) * gpus + gpu, several(of, 1) };
}

/* How many messages of either ring a rank must have before it sends this step. */
struct collective_needs collective_needs(const struct collective *of, uint32_t step)
{
	const uint32_t around = of->gpus - 1, between = 2 * (hosts_in(of) - 1);
	if (step <= around)
		return (struct collective_needs){ .in_host = step };
	if (step <= around + between)
		return (struct collective_needs){ .in_host = around, .between = step - around };
	return (struct collective_needs){ .in_host = step - between, .between = between };
}

bool collective_is_in_host(const struct collective *of, uint32_t step)
{
	return is_in_host(of, step);
}

/* ---- Direct ------------------------------------------------------------------------------------------------------ */

/* The share of the receiver for a reduce-scatter, the sender's own for an all-gather. */
static struct collective_step scatter(const struct collective *of, uint32_t rank, uint32_t step)
{
	const uint32_t to = (rank + 1 + step) % of->ranks;
	return (struct collective_step){ .to = to, .bytes = bytes_of(of, to, 1) };
}

static struct collective_step spread(const struct collective *of, uint32_t rank, uint32_t step)
{
	return (struct collective_step){ .to = (rank + 1 + step) % of->ranks, .bytes = bytes_of(of, rank, 1) };
}

static struct collective_step scatter_and_spread(const struct collective *of, uint32_t rank, uint32_t step)
{
	const uint32_t others = of->ranks - 1;
	return step < others ? scatter(of, rank, step) : spread(of, rank, step - others);
}

/* ---- Which there are --------------------------------------------------------------------------------------------- */

static uint32_t once_round(uint32_t ranks)
{
	return ranks - 1;
}

static uint32_t twice_round(uint32_t ranks)
{
	return 2 * (ranks - 1);
}

static uint32_t bits_and_bits(uint32_t ranks)
{
	return 2 * log2_of(ranks);
}

static double share_twice(double n)
{
	return 2 * (n - 1) / n;
}

static double share_once(double n)
{
	return (n - 1) / n;
}

static double whole_each_time(double n)
{
	return log2_of((uint32_t)n);
}

static double nothing(double n)
{
	(void)n;
	return 0;
}

/* A rank has so many messages under way: of each but the last round it waits for the acks, too. */
static double rounds_of_places(double n)
{
	const uint32_t rounds = ((uint32_t)n - 2 + COLLECTIVE_PLACES) / COLLECTIVE_PLACES;
	return rounds ? 2.0 * rounds - 1 : 0;
}

static double whole(double n)
{
	(void)n;
	return 1;
}

#define BY_STEPS(its_name, its_steps, its_step, its_waiting, its_buffers)                                              \
	.name = (its_name), .steps = (its_steps), .step = (its_step), .waiting = (its_waiting), .buffers = (its_buffers)
#define BY_EDGES(its_name, its_edges, its_source, its_buffers)                                                         \
	.name = (its_name), .edges = (its_edges), .source = (its_source), .buffers = (its_buffers)

static const struct collective_algorithm allreduce[] = {
	{ BY_STEPS("ring", twice_round, ring, FOR_THE_LAST, share_twice), .is_by_nics = true },
	{ BY_STEPS("recursive-doubling", log2_of, double_all, FOR_ALL_BEFORE, whole_each_time), .is_by_powers_of_2 = true },
	{ BY_STEPS("halving-doubling", bits_and_bits, halve_and_double, FOR_ALL_BEFORE, share_twice), .is_by_powers_of_2 = true },
	{ BY_STEPS("direct", twice_round, scatter_and_spread, FOR_ALL_OF_A_HALF, share_twice) },
	{ .name = "hierarchical", .step = go_round_both, .waiting = FOR_BOTH_RINGS, .buffers = nothing },
	{ BY_EDGES("double-tree", collective_double_tree, collective_double_tree_source, nothing), .law = collective_double_tree_law, .is_by_nics = true },
	{ BY_EDGES("nvls", collective_nvls, collective_nvls_source, nothing), .law = collective_nvls_law, .is_by_switch = true, .is_by_nics = true },
}, all_gather[] = {
	{ BY_STEPS("ring", once_round, ring, FOR_THE_LAST, share_once), .is_by_nics = true },
	{ BY_STEPS("recursive-doubling", log2_of, double_shares, FOR_ALL_BEFORE, share_once), .is_by_powers_of_2 = true },
	{ BY_STEPS("pat", log2_of, pat_gather, FOR_ALL_BEFORE, share_once) },
	{ BY_STEPS("direct", once_round, spread, FOR_ALL_OF_A_HALF, share_once) },
}, reduce_scatter[] = {
	{ BY_STEPS("ring", once_round, ring, FOR_THE_LAST, share_once), .is_by_nics = true },
	{ BY_STEPS("halving-doubling", log2_of, halve, FOR_ALL_BEFORE, share_once), .is_by_powers_of_2 = true },
	{ BY_STEPS("pat", log2_of, pat_scatter, FOR_ALL_BEFORE, share_once) },
	{ BY_STEPS("direct", once_round, scatter, FOR_ALL_OF_A_HALF, share_once) },
}, all_to_all[] = {
	{ BY_STEPS("pairwise", once_round, scatter, FOR_A_PLACE, share_once), .alphas = rounds_of_places },
}, broadcast[] = {
	{ BY_EDGES("chain", collective_chain_down, collective_chain_down_source, whole), .law = collective_chain_law },
}, reduce[] = {
	{ BY_EDGES("chain", collective_chain_up, collective_chain_up_source, whole), .law = collective_chain_law },
}, barrier[] = {
	{ BY_STEPS("dissemination", log2_of, disseminate, FOR_ALL_BEFORE, nothing) },
};

#define ALGORITHMS(of) of, sizeof(of) / sizeof((of)[0])

static const struct kind {
	const char *name;
	const struct collective_algorithm *algorithms; /* the default first */
	uint32_t count;
	double (*busbw)(double n);
} kinds[] = {
	{ "allreduce", ALGORITHMS(allreduce), share_twice },
	{ "all-gather", ALGORITHMS(all_gather), share_once },
	{ "reduce-scatter", ALGORITHMS(reduce_scatter), share_once },
	{ "alltoall", ALGORITHMS(all_to_all),
		share_once }, /* nccl-tests' name; S is all that a rank sends, with its own */
	{ "broadcast", ALGORITHMS(broadcast), whole },
	{ "reduce", ALGORITHMS(reduce), whole },
	{ "barrier", ALGORITHMS(barrier), nothing },
};

static const struct kind *find_kind(const char *name)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

const struct collective_algorithm *collective_find(const struct collective *of)
{
	const struct kind *kind = find_kind(of->kind);
	if (!kind || !of->algorithm || !*of->algorithm)
		return kind ? kind->algorithms : NULL;
	for (uint32_t i = 0; i < kind->count; i++)
		if (strcmp(kind->algorithms[i].name, of->algorithm) == 0)
			return &kind->algorithms[i];
	return NULL;
}

bool collective_is_kind(const char *kind)
{
	return find_kind(kind) != NULL;
}

const char *collective_kind_name(const char *kind)
{
	assert(collective_is_kind(kind));
	return find_kind(kind)->name;
}

const struct collective_algorithm *collective_algorithm(const char *name, uint32_t number)
{
	const struct kind *kind = find_kind(name);
	assert(kind);
	return number < kind->count ? &kind->algorithms[number] : NULL;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

enum { PIECE_BYTES = 128 << 10 };

static uint64_t piece_of(const struct collective *of)
{
	return of->nccl.buffer ? of->nccl.buffer / COLLECTIVE_SLOTS : PIECE_BYTES;
}

uint32_t collective_pieces(const struct collective *of, uint64_t bytes)
{
	return (uint32_t)((bytes + piece_of(of) - 1) / piece_of(of));
}

uint64_t collective_piece(const struct collective *of, uint64_t bytes, uint32_t piece)
{
	const uint64_t left = bytes - piece * piece_of(of);
	assert(piece < collective_pieces(of, bytes));
	return left < piece_of(of) ? left : piece_of(of);
}

uint32_t collective_steps(const struct collective *of, const struct collective_algorithm *algorithm)
{
	if (algorithm->waiting == FOR_BOTH_RINGS)
		return 2 * (of->gpus - 1) + 2 * (hosts_in(of) - 1);
	return algorithm->steps(of->ranks);
}

uint32_t collective_sends(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place)
{
	struct collective_edge edges[COLLECTIVE_EDGES];
	uint32_t sends = 0;
	if (!algorithm->edges)
		return collective_steps(of, algorithm);
	for (uint32_t i = algorithm->edges(of, place, edges); i-- > 0;)
		sends += collective_pieces(of, edges[i].bytes) * collective_copies(of, &edges[i]);
	for (uint32_t i = 0; i < COLLECTIVE_EDGES; i++)
		sends += collective_openings(of, algorithm, place, i);
	return sends;
}

/* By steps a rank gets as many as it sends. */
uint32_t collective_receives(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place)
{
	struct collective_edge edges[COLLECTIVE_EDGES];
	uint32_t receives = 0;
	if (!algorithm->edges)
		return collective_steps(of, algorithm);
	for (uint32_t i = 0; i < COLLECTIVE_EDGES; i++) {
		const struct collective_source source = algorithm->source(of, place, i);
		receives += collective_pieces(of, source.bytes) * source.count;
	}
	for (uint32_t i = algorithm->edges(of, place, edges); i-- > 0;)
		receives += collective_opened(of, algorithm, &edges[i]);
	return receives;
}

static struct collective_step opening(
	const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place, uint32_t number)
{
	uint32_t edge = 0;
	for (uint32_t its; number >= (its = collective_openings(of, algorithm, place, edge)); edge++)
		number -= its;
	const struct collective_source source = algorithm->source(of, place, edge);
	return (struct collective_step){ source.first + number % source.count, COLLECTIVE_OPENING_BYTES };
}

/* Those that open slots are behind the pieces. */
struct collective_step collective_message(
	const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place, uint32_t number)
{
	struct collective_edge edges[COLLECTIVE_EDGES];
	if (!algorithm->edges)
		return algorithm->step(of, place, number);
	for (uint32_t i = 0, count = algorithm->edges(of, place, edges); i < count; i++) {
		const uint32_t copies = collective_copies(of, &edges[i]);
		const uint32_t its = collective_pieces(of, edges[i].bytes) * copies;
		if (number < its)
			return (struct collective_step){ edges[i].to + number % copies,
				collective_piece(of, edges[i].bytes, number / copies) };
		number -= its;
	}
	return opening(of, algorithm, place, number);
}

uint64_t collective_messages(const struct collective *of)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	uint64_t messages = 0;
	if (!algorithm->edges)
		return (uint64_t)of->ranks * collective_steps(of, algorithm);
	for (uint32_t i = 0; i < of->ranks; i++)
		messages += collective_sends(of, algorithm, i);
	return messages;
}

bool collective_opens_each(const struct collective_algorithm *algorithm)
{
	return !algorithm->edges && (algorithm->waiting == FOR_ALL_OF_A_HALF || algorithm->waiting == FOR_A_PLACE);
}

double collective_busbw(const struct collective *of)
{
	return find_kind(of->kind)->busbw(of->ranks);
}

/* ---- Parts ------------------------------------------------------------------------------------------------------- */

static bool enters_by_nics(const struct collective *of)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	return algorithm && algorithm->is_by_nics && of->gpus > 1;
}

/* A message within a host goes by no NIC. */
uint32_t collective_parts(const struct collective *of, const struct hosts *hosts)
{
	const uint32_t by_nics = hosts->nics < of->gpus ? hosts->nics : of->gpus;
	const uint32_t nics = hosts_nics_of_gpu(hosts) * (enters_by_nics(of) ? by_nics : 1);
	const uint32_t used = of->nccl.channels && of->nccl.channels < nics ? of->nccl.channels : nics;
	const uint32_t most = used * (hosts->ports ? hosts->ports : 1);
	return of->ranks > of->gpus && most > 0 && of->bytes >= most ? most : 1;
}

struct collective collective_part_of(const struct collective *of, const struct hosts *hosts, uint32_t part)
{
	const uint32_t parts = collective_parts(of, hosts);
	struct collective its = *of;
	const uint64_t bytes = of->wire ? of->wire : of->bytes;
	assert(part < parts);
	its.bytes = bytes / parts + (part < bytes % parts);
	its.wire = 0;
	its.part = part;
	its.turned = enters_by_nics(of) ? part * of->gpus / parts : 0;
	return its;
}

uint32_t collective_rank_at(const struct collective *of, uint32_t place)
{
	return of->turned ? place / of->gpus * of->gpus + (place + of->turned) % of->gpus : place;
}

uint32_t collective_place_of(const struct collective *of, uint32_t rank)
{
	return of->turned ? rank / of->gpus * of->gpus + (rank + of->gpus - of->turned) % of->gpus : rank;
}

static struct collective_law law_of(const struct collective *of, const struct collective_algorithm *algorithm)
{
	const double n = of->ranks;
	double alphas;
	if (algorithm->law)
		return algorithm->law(of);
	if (algorithm->waiting == FOR_BOTH_RINGS) { /* between hosts; what is in a host goes at another rate */
		const double hosts = hosts_in(of);
		return (struct collective_law){ .alphas = collective_steps(of, algorithm),
			.bytes = 2 * (hosts - 1) / hosts * (double)of->bytes / of->gpus };
	}
	if (algorithm->alphas)
		alphas = algorithm->alphas(n);
	else
		alphas = algorithm->waiting == FOR_ALL_OF_A_HALF ? algorithm->steps(of->ranks) / (of->ranks - 1)
								 : algorithm->steps(of->ranks);
	return (struct collective_law){ .alphas = alphas, .bytes = algorithm->buffers(n) * (double)of->bytes };
}

struct collective_law collective_law(const struct collective *given)
{
	const struct collective_algorithm *algorithm = collective_find(given);
	struct collective its = *given;
	if (its.wire)
		its.bytes = its.wire;
	struct collective_law law = law_of(&its, algorithm);
	/* Of more than one round the first waits for its acks, and then they are out of step. */
	law.full_alphas = algorithm->waiting == FOR_A_PLACE && law.alphas > 3 ? 3 : law.alphas;
	return law;
}

static int list_algorithms(const struct collective *of, char *why, unsigned why_size)
{
	char names[160];
	int length = 0;
	const struct collective_algorithm *is;
	for (uint32_t i = 0; (is = collective_algorithm(of->kind, i)); i++)
		length += snprintf(names + length, sizeof(names) - (size_t)length, "%s%s", i ? ", " : "", is->name);
	assert(length < (int)sizeof(names));
	return why_not(why, why_size, "no algorithm of %s is called %s: there is %s", of->kind, of->algorithm, names);
}

int collective_check(const struct collective *of, char *why, unsigned why_size)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	assert(collective_is_kind(of->kind));
	assert(of->ranks >= 2);
	if (!algorithm)
		return list_algorithms(of, why, why_size);
	if (of->bytes == 0 || of->bytes > FLOW_MOST_BYTES)
		return why_not(why, why_size, "a collective of %llu bytes", (unsigned long long)of->bytes);
	if (algorithm->is_by_powers_of_2 && !is_power_of_2(of->ranks))
		return why_not(why, why_size, "%s is for 2, 4, 8, ... ranks, not for %u: ring takes any number",
			algorithm->name, of->ranks);
	if (algorithm->is_by_switch && (!of->reduces || of->gpus < 2 || of->ranks % of->gpus))
		return why_not(why, why_size,
			"%s is for whole hosts whose scale-up domain reduces (hosts.reduces, or hosts.gpu: H100)",
			algorithm->name);
	if (algorithm->waiting == FOR_BOTH_RINGS && (of->gpus < 2 || of->ranks % of->gpus))
		return why_not(why, why_size, "%s is for whole hosts with several GPUs (hosts.gpu)", algorithm->name);
	assert(algorithm->edges || algorithm->waiting != FOR_ALL_BEFORE ||
		algorithm->steps(of->ranks) <= MOST_STEPS_BEFORE);
	if (collective_messages(of) > MOST_MESSAGES ||
		(algorithm->edges && collective_pieces(of, of->bytes) > MOST_PIECES))
		return why_not(
			why, why_size, "%s of %u ranks has more messages than a run takes", algorithm->name, of->ranks);
	return 0;
}
