/* See weights_job.h. Holds: what is kept of a rank is written in calls for that rank alone. */
#include "net/weights_job.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/why.h"

enum {
	CHILDREN = 2,
	UNDER_WAY = 8,           /* pieces that a rank sends to another at a time */
	CHANNELS = 1024,         /* of a pair of ranks */
	MOST_MESSAGES = 1 << 30, /* of a run */
	MOST_RANKS = 1 << 20,
};

struct weights_node {
	uint32_t arrived;
	uint32_t sent[CHILDREN], ended[CHILDREN];
};

/* ---- The tag: a part, a child and a piece; of a rollout the part is the number of parts ----------------------------
 */

static uint64_t tag_of(uint32_t part, uint32_t child, uint32_t piece)
{
	return (uint64_t)part << 33 | (uint64_t)child << 32 | piece;
}

static uint32_t part_of_tag(uint64_t tag)
{
	return (uint32_t)(tag >> 33);
}

/* ---- Parts and places -------------------------------------------------------------------------------------------- */

static uint32_t parts_of(const struct weights *of)
{
	return of->trainers > of->shards ? of->trainers : of->shards;
}

/* The first bytes % count of them have one more. */
static uint64_t share(uint64_t bytes, uint32_t count, uint32_t number)
{
	return bytes / count + (number < bytes % count);
}

static uint32_t pieces_of(const struct weights *of, uint32_t part)
{
	return (uint32_t)((share(of->bytes, parts_of(of), part) + of->piece - 1) / of->piece);
}

/* Place 0 is the trainer, place r + 1 is in replica r. */
static uint32_t rank_at(const struct weights *of, uint32_t part, uint32_t place)
{
	const uint32_t parts = parts_of(of);
	if (place == 0)
		return of->first + part / (parts / of->trainers);
	return of->first + of->trainers + (place - 1) * of->shards + part / (parts / of->shards);
}

static uint32_t place_of(const struct weights *of, uint32_t rank)
{
	const uint32_t number = rank - of->first;
	return number < of->trainers ? 0 : 1 + (number - of->trainers) / of->shards;
}

/* The place of a child; 0: there is none. */
static uint32_t child_of(const struct weights *of, uint32_t place, uint32_t child)
{
	const uint32_t its = of->shape == WEIGHTS_TREE && place ? 2 * place + child : place + 1;
	const bool has = child == 0 || (of->shape == WEIGHTS_TREE && place > 0);
	return has && its <= of->replicas ? its : 0;
}

uint32_t weights_ranks(const struct weights *of)
{
	return of->trainers + of->replicas * of->shards;
}

uint64_t weights_messages(const struct weights *of)
{
	uint64_t pieces = 0;
	for (uint32_t part = 0; part < parts_of(of); part++)
		pieces += pieces_of(of, part);
	return pieces * of->replicas + (of->rollout ? (uint64_t)of->replicas * of->shards : 0);
}

int weights_check(const struct weights *of, char *why, unsigned why_size)
{
	if (!of->trainers || !of->replicas || !of->shards)
		return why_not(why, why_size, "%s: none; write 1 or more",
			!of->trainers   ? "trainers"
			: !of->replicas ? "replicas"
					: "tp");
	if (of->trainers > MOST_RANKS || of->shards > MOST_RANKS || (uint64_t)of->replicas * of->shards > MOST_RANKS)
		return why_not(why, why_size, "replicas: more ranks than a run takes; write fewer");
	const uint32_t parts = parts_of(of);
	if (parts % of->trainers || parts % of->shards)
		return why_not(why, why_size,
			"trainers: %" PRIu32 " trainers and %" PRIu32
			" ranks of a replica (tp) do not divide each other; write a multiple of the smaller number",
			of->trainers, of->shards);
	if (of->bytes < parts)
		return why_not(why, why_size, "bytes: fewer than one for each of %" PRIu32 " parts; write more", parts);
	if (of->rollout && of->rollout < of->shards)
		return why_not(why, why_size, "rollout: fewer bytes than a replica has ranks; write more, or 0");
	if (of->bytes / of->piece / parts >= MOST_MESSAGES / (uint64_t)of->replicas / parts)
		return why_not(
			why, why_size, "piece: so small ones are more messages than a run takes; write a larger one");
	return 0;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static struct weights_job *of_job(struct job *job)
{
	return (struct weights_job *)job;
}

static struct weights_node *node_at(const struct weights_job *job, uint32_t part, uint32_t place)
{
	return &job->nodes[(size_t)part * (job->of.replicas + 1) + place];
}

static void send_piece(
	const struct weights_job *job, uint32_t part, uint32_t place, uint32_t child, vb_time at, struct job_sink *sink)
{
	struct weights_node *node = node_at(job, part, place);
	const uint32_t piece = node->sent[child]++;
	const uint64_t before = piece * job->of.piece, rest = share(job->of.bytes, job->parts, part) - before;
	sink->send(sink, &(struct message){ .src = rank_at(&job->of, part, place),
				 .dst = rank_at(&job->of, part, child_of(&job->of, place, child)),
				 .bytes = rest < job->of.piece ? rest : job->of.piece,
				 .start = at,
				 .tag = tag_of(part, child, piece),
				 .channel = 1 + part % CHANNELS,
				 .part = (uint16_t)part,
				 .traffic_class = job->of.traffic_class,
				 .tells_arrival = true });
}

/* Sends what the place has and its children lack, a few pieces at a time. */
static void go_on(const struct weights_job *job, uint32_t part, uint32_t place, vb_time at, struct job_sink *sink)
{
	const struct weights_node *node = node_at(job, part, place);
	const uint32_t has = place ? node->arrived : pieces_of(&job->of, part);
	for (uint32_t child = 0; child < CHILDREN; child++)
		while (child_of(&job->of, place, child) && node->sent[child] < has &&
			node->sent[child] - node->ended[child] < UNDER_WAY)
			send_piece(job, part, place, child, at, sink);
}

static void send_rollout(const struct weights_job *job, uint32_t number, vb_time at, struct job_sink *sink)
{
	const struct weights *of = &job->of;
	sink->send(sink, &(struct message){ .src = of->first + of->trainers + number,
				 .dst = of->first + number % of->trainers,
				 .bytes = share(of->rollout, of->shards, number % of->shards),
				 .start = at,
				 .tag = tag_of(job->parts, 0, number),
				 .traffic_class = of->traffic_class,
				 .tells_arrival = true });
}

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	const struct weights *of = &of_job(job)->of;
	if (rank < of->first || rank - of->first >= of->trainers)
		return;
	const uint32_t each = of_job(job)->parts / of->trainers, first = (rank - of->first) * each;
	for (uint32_t part = first; part < first + each; part++)
		go_on(of_job(job), part, 0, of->start, sink);
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct weights_job *its = of_job(job);
	const uint32_t part = part_of_tag(tag);
	(void)carried;
	if (part == its->parts) {
		its->is_back[rank - its->of.first] = at;
		return;
	}
	const uint32_t place = place_of(&its->of, rank), number = rank - its->of.first - its->of.trainers;
	node_at(its, part, place)->arrived++;
	go_on(its, part, place, at, sink);
	if (--its->left[number] > 0)
		return;
	its->has_all[number] = at;
	if (its->of.rollout)
		send_rollout(its, number, at, sink);
}

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
	const void *carried, struct job_sink *sink)
{
	struct weights_job *its = of_job(job);
	const uint32_t part = part_of_tag(tag);
	(void)carried;
	if (part == its->parts || result->error)
		return;
	const uint32_t place = place_of(&its->of, rank);
	node_at(its, part, place)->ended[tag >> 32 & 1]++;
	go_on(its, part, place, at, sink);
}

static const struct job_kind kind = { .begin = begin, .arrived = arrived, .ended = ended, .ends_by_arrival = true };

/* ---- Opening, and the result ------------------------------------------------------------------------------------- */

int weights_job_open(struct weights_job *job, const struct weights *of)
{
	const uint32_t parts = parts_of(of), receivers = of->replicas * of->shards;
	*job = (struct weights_job){
		.job = { .kind = &kind, .operations = weights_messages(of), .ranks = of->first + weights_ranks(of) },
		.of = *of,
		.parts = parts,
		.nodes = calloc((size_t)parts * (of->replicas + 1), sizeof(*job->nodes)),
		.left = calloc(receivers, sizeof(*job->left)),
		.has_all = calloc(receivers, sizeof(*job->has_all)),
		.is_back = calloc(of->trainers, sizeof(*job->is_back))
	};
	if (!job->nodes || !job->left || !job->has_all || !job->is_back) {
		weights_job_close(job);
		return -ENOMEM;
	}
	for (uint32_t part = 0; part < parts; part++)
		for (uint32_t place = 1; place <= of->replicas; place++)
			job->left[rank_at(of, part, place) - of->first - of->trainers] += pieces_of(of, part);
	for (uint32_t i = 0; i < receivers; i++)
		job->has_all[i] = -1;
	for (uint32_t i = 0; i < of->trainers; i++)
		job->is_back[i] = -1;
	return 0;
}

vb_time weights_job_spread(const struct weights_job *job)
{
	vb_time last = -1;
	for (uint32_t i = 0; i < job->of.replicas * job->of.shards; i++) {
		if (job->has_all[i] < 0)
			return -1;
		last = job->has_all[i] > last ? job->has_all[i] : last;
	}
	return last - job->of.start;
}

vb_time weights_job_back(const struct weights_job *job)
{
	vb_time last = -1;
	for (uint32_t i = 0; i < job->of.trainers; i++)
		last = job->is_back[i] > last ? job->is_back[i] : last;
	return last < 0 ? -1 : last - job->of.start;
}

void weights_job_close(struct weights_job *job)
{
	free(job->nodes);
	free(job->left);
	free(job->has_all);
	free(job->is_back);
	*job = (struct weights_job){ 0 };
}
