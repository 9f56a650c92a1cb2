/* See timing.h. */
#include "steps/timing.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/timers.h"
#include "net/collectives.h"
#include "steps/ring_time.h"
#include "steps/shares.h"
#include "steps/speeds.h"

struct due {
	struct vb_timer timer; /* the first member */
	uint32_t stage, stream;
};

struct part;

/* Of a lane. */
struct stage {
	struct part *part;
	uint32_t number; /* of the part's stages */
	uint32_t lane;
	const struct step_program *program; /* that of all lanes of the stage */
	vb_time *begin, *end;               /* by operation; -1: not yet */
	uint32_t next[STEP_STREAMS];        /* the first operation of the stream that has not begun */
	uint32_t running[STEP_STREAMS];     /* STEP_NONE: none */
	struct due due[STEP_STREAMS];       /* when it ends, where that is known */
	double slowness;                    /* of its slowest rank */
	bool may_go_on;
};

/* A collective of several stages, or lanes: how many have come. All begin when the last of them does. */
struct meeting {
	uint32_t come, wanted;
	uint32_t *slots;
};

struct message {
	vb_time left, arrived; /* -1: not yet */
	uint32_t receiver;     /* a slot that waits for it; STEP_NONE */
};

/* A step. */
struct part {
	const struct step_plan *plan;
	const struct step_network *network;
	uint32_t lanes;
	uint32_t first;                /* of all stages, its first: those of one lane, then those of the next */
	struct step_program *programs; /* by stage */
	uint32_t tags;
	struct message *messages; /* by lane, then tag */
	struct meeting *ends;     /* by lane */
	struct meeting *joined;   /* by stage: lanes */
	struct meeting all;
};

struct going {
	struct part *parts;
	uint32_t part_count;
	struct stage *stages; /* of all parts, one behind the other */
	uint32_t stage_count;
	uint32_t *touched; /* stages of which something has ended */
	uint32_t touched_count;
	struct vb_timers timers;
	struct shares *shares; /* NULL: by formula */
	vb_time now;
};

/* ---- Times ------------------------------------------------------------------------------------------------------- */

/* Of a collective or a message: the bytes that a rank sends, how long these take on the slowest link, and what the
 * whole takes longer: until it has ended, or is there. at_once: what a rank sends without having heard of anything
 * before. */
struct sending {
	double bytes, takes, tail, at_once;
};

static struct sending collective_sending(const struct part *part, const struct step_operation *operation)
{
	const struct step_way *way = &part->network->ways[operation->dimension];
	const struct collective of = { .kind = operation->collective,
		.algorithm = operation->algorithm,
		.ranks = step_members(part->plan, operation->dimension),
		.bytes = operation->bytes };
	const struct collective_law law = collective_law(&of);
	const bool is_by_places = collective_opens_each(collective_find(&of)) && of.ranks > COLLECTIVE_PLACES;
	const double at_once = is_by_places ? law.bytes * COLLECTIVE_PLACES / (of.ranks - 1) : law.bytes;
	const double takes = step_transfer(&way->link, law.bytes);
	const double whole = collective_law_time(&law, way->link.alpha, takes);
	struct sending sending = { law.bytes, takes, whole - takes, at_once };
	if (strcmp(collective_find(&of)->name, "ring") == 0)
		sending.tail = ring_time(way, &law) - sending.takes;
	return sending;
}

/* Between a stage and the other one of a message. */
static const struct step_link *boundary(const struct stage *stage, uint32_t other)
{
	const struct part *part = stage->part;
	return &part->network->boundaries[(stage->number + 1) % part->plan->pp == other ? stage->number : other].link;
}

static struct sending message_sending(const struct stage *stage, const struct step_operation *operation)
{
	const struct step_link *link = boundary(stage, operation->peer);
	const double bytes = (double)operation->bytes;
	return (struct sending){ bytes, step_transfer(link, bytes), link->alpha, bytes };
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

/* A stage's stream, of which one operation runs at a time. */
static uint32_t slot_of(const struct going *going, const struct stage *stage, unsigned stream)
{
	return (uint32_t)(stage - going->stages) * STEP_STREAMS + stream;
}

static struct stage *stage_at(const struct going *going, uint32_t slot)
{
	return &going->stages[slot / STEP_STREAMS];
}

static void end_at(struct going *going, uint32_t slot, vb_time at)
{
	vb_timer_set(&going->timers, &stage_at(going, slot)->due[slot % STEP_STREAMS].timer, at);
}

static const struct step_operation *running_at(const struct going *going, uint32_t slot)
{
	const struct stage *stage = stage_at(going, slot);
	return &stage->program->operations[stage->running[slot % STEP_STREAMS]];
}

static bool has_ended(const struct stage *stage, uint32_t number)
{
	return number == STEP_NONE || stage->end[number] >= 0;
}

static struct message *message_of(const struct stage *stage, const struct step_operation *operation)
{
	return &stage->part->messages[stage->lane * stage->part->tags + operation->tag];
}

/* By flows: of what the slot runs. NULL: by formula. */
static const struct step_load *load_of(const struct going *going, uint32_t slot)
{
	if (!going->shares)
		return NULL;
	const struct stage *stage = stage_at(going, slot);
	const struct part *part = stage->part;
	const struct step_operation *operation = running_at(going, slot);
	const uint32_t lane = step_joins_lanes(operation) ? 0 : stage->lane;
	const uint32_t first = part->network->lanes ? part->network->lanes->first_class : 0;
	return shares_load(going->shares, first + (stage->number * part->lanes + lane) * STEP_CLASSES +
						  step_class_of(part->plan, stage->number, operation));
}

/* By flows a class may be slower by itself than the slowest link of the closed form: a ring whose hosts' own ports hold
 * it up. The time of these is in the closed form's tail. */
static double tail_of(const struct going *going, uint32_t slot, const struct sending *sending)
{
	const struct step_load *load = load_of(going, slot);
	if (!load || load->hop_count == 0)
		return sending->tail;
	const double tail = sending->takes + sending->tail - sending->bytes / (double)load->alone * (double)VB_S;
	return tail > 0 ? tail : 0;
}

/* The collective that the slot runs ends for all lanes that do it together. */
static void end_collective(struct going *going, uint32_t slot, vb_time at)
{
	const struct stage *stage = stage_at(going, slot);
	const struct part *part = stage->part;
	if (!step_joins_lanes(running_at(going, slot))) {
		end_at(going, slot, at);
		return;
	}
	for (uint32_t i = 0; i < part->lanes; i++)
		end_at(going,
			slot_of(going, &going->stages[part->first + i * part->plan->pp + stage->number],
				slot % STEP_STREAMS),
			at);
}

/* A collective ends later than its bytes have left; a message's sender is free then, and its receiver has it later. */
static void have_sent(struct going *going, uint32_t slot, vb_time at)
{
	const struct step_operation *operation = running_at(going, slot);
	const bool is_message = operation->kind == STEP_SEND;
	struct stage *stage = stage_at(going, slot);
	const struct sending sending =
		is_message ? message_sending(stage, operation) : collective_sending(stage->part, operation);
	const vb_time there = step_later(at, tail_of(going, slot, &sending));
	if (!is_message) {
		end_collective(going, slot, there);
		return;
	}
	end_at(going, slot, at);
	struct message *message = message_of(stage, operation);
	message->arrived = there;
	if (message->receiver != STEP_NONE)
		end_at(going, message->receiver, there);
}

/* By flows; false: it shares nothing. */
static bool share(struct going *going, uint32_t slot, const struct sending *sending)
{
	const struct step_load *load = load_of(going, slot);
	if (!load || load->hop_count == 0)
		return false;
	const uint32_t class = (uint32_t)(load - shares_load(going->shares, 0));
	shares_begin(going->shares, slot, class, sending->bytes, sending->at_once, going->now);
	return true;
}

static void begin_message(struct going *going, uint32_t slot)
{
	const struct sending sending = message_sending(stage_at(going, slot), running_at(going, slot));
	if (!share(going, slot, &sending))
		have_sent(going, slot, step_later(going->now, sending.takes));
}

static void begin_collective(struct going *going, uint32_t slot)
{
	const struct sending sending = collective_sending(stage_at(going, slot)->part, running_at(going, slot));
	if (!share(going, slot, &sending))
		end_collective(going, slot, step_later(going->now, sending.takes + sending.tail));
}

static void await_message(struct going *going, uint32_t slot)
{
	struct message *message = message_of(stage_at(going, slot), running_at(going, slot));
	if (message->arrived < 0)
		message->receiver = slot;
	else
		end_at(going, slot, message->arrived > going->now ? message->arrived : going->now);
}

static struct meeting *meeting_of(const struct stage *stage, const struct step_operation *operation)
{
	struct part *part = stage->part;
	switch (operation->dimension) {
	case STEP_ALL:
		return &part->all;
	case STEP_ENDS:
		return &part->ends[stage->lane];
	default:
		return step_joins_lanes(operation) ? &part->joined[stage->number] : NULL;
	}
}

/* Stages do each of these once in a step, and lanes one after the other. What lanes do together is done once. */
static void meet(struct going *going, struct meeting *meeting, uint32_t slot)
{
	assert(meeting->come < meeting->wanted);
	meeting->slots[meeting->come++] = slot;
	if (meeting->come < meeting->wanted)
		return;
	meeting->come = 0;
	const uint32_t begin = step_joins_lanes(running_at(going, slot)) ? 1 : meeting->wanted;
	for (uint32_t i = 0; i < meeting->wanted; i++) {
		const struct stage *stage = stage_at(going, meeting->slots[i]);
		stage->begin[stage->running[meeting->slots[i] % STEP_STREAMS]] = going->now;
	}
	for (uint32_t i = 0; i < begin; i++)
		begin_collective(going, meeting->slots[i]);
}

static void begin_one(struct going *going, struct stage *stage, unsigned stream, uint32_t number)
{
	const struct step_operation *operation = &stage->program->operations[number];
	const uint32_t slot = slot_of(going, stage, stream);
	stage->running[stream] = number;
	stage->begin[number] = going->now;
	switch ((enum step_kind)operation->kind) {
	case STEP_COMPUTE:
		end_at(going, slot, step_later(going->now, (double)speeds_slowed(operation->time, stage->slowness)));
		break;
	case STEP_SEND:
		message_of(stage, operation)->left = going->now;
		begin_message(going, slot);
		break;
	case STEP_RECEIVE:
		await_message(going, slot);
		break;
	case STEP_COLLECTIVE:
		if (meeting_of(stage, operation))
			meet(going, meeting_of(stage, operation), slot);
		else
			begin_collective(going, slot);
		break;
	}
}

static void find_next(struct stage *stage, unsigned stream)
{
	while (stage->next[stream] < stage->program->count &&
		stage->program->operations[stage->next[stream]].stream != stream)
		stage->next[stream]++;
}

static void begin_what_may(struct going *going, struct stage *stage)
{
	stage->may_go_on = false;
	for (unsigned stream = 0; stream < STEP_STREAMS; stream++) {
		find_next(stage, stream);
		const uint32_t number = stage->next[stream];
		if (stage->running[stream] != STEP_NONE || number >= stage->program->count)
			continue;
		const uint32_t *waits = stage->program->operations[number].waits;
		if (!has_ended(stage, waits[0]) || !has_ended(stage, waits[1]))
			continue;
		stage->next[stream]++;
		begin_one(going, stage, stream, number);
	}
}

static void touch(struct going *going, struct stage *stage)
{
	if (!stage->may_go_on)
		going->touched[going->touched_count++] = (uint32_t)(stage - going->stages);
	stage->may_go_on = true;
}

static void end_one(struct going *going, struct stage *stage, unsigned stream)
{
	const uint32_t number = stage->running[stream];
	assert(stage->end[number] < 0);
	stage->end[number] = going->now;
	if (stage->program->operations[number].kind == STEP_RECEIVE)
		stage->begin[number] = going->now;
	stage->running[stream] = STEP_NONE;
	touch(going, stage);
}

/* The next moment is now; false: there is none. */
static bool move_on(struct going *going)
{
	uint32_t slot;
	vb_time at = INT64_MAX, its;
	const struct vb_deadline next = vb_timers_next(&going->timers);
	if (next.is_set)
		at = next.at;
	if (going->shares && shares_next(going->shares, &its, &slot) && its < at)
		at = its;
	if (going->shares && shares_change_next(going->shares, going->now, &its) && its < at)
		at = its;
	if (at == INT64_MAX)
		return false;
	going->now = at;
	return true;
}

static void end_what_is_due(struct going *going)
{
	struct vb_timer *timer;
	vb_time at;
	uint32_t slot;
	while (going->shares && shares_next(going->shares, &at, &slot) && at == going->now) {
		shares_end(going->shares, slot);
		have_sent(going, slot, going->now);
	}
	/* Timers take what is days ahead for due. */
	while (vb_timers_next(&going->timers).is_set && vb_timers_next(&going->timers).at <= going->now &&
		(timer = vb_timers_expire(&going->timers, going->now))) {
		struct due *due = (struct due *)timer;
		end_one(going, &going->stages[due->stage], due->stream);
	}
}

static int go_on(struct going *going)
{
	for (bool goes = true; goes;) {
		for (uint32_t i = 0; i < going->touched_count; i++)
			begin_what_may(going, &going->stages[going->touched[i]]);
		going->touched_count = 0;
		if (going->shares && shares_settle(going->shares, going->now))
			return -ENOMEM;
		goes = move_on(going);
		if (goes)
			end_what_is_due(going);
		if (goes && going->shares && shares_change(going->shares, going->now))
			return -ENOMEM;
	}
	return going->shares && shares_wait(going->shares) ? -EHOSTUNREACH : 0;
}

/* ---- What was exposed -------------------------------------------------------------------------------------------- */

/* Replicas that the lane stands for. */
static uint32_t units_of(const struct part *part, uint32_t lane)
{
	return part->lanes > 1 ? part->network->lanes->sizes[lane] : 1;
}

static int account_stage(const struct stage *stage, struct step_times *times)
{
	vb_time *left = malloc((stage->program->count + 1) * sizeof(*left));
	if (!left)
		return -ENOMEM;
	for (uint32_t i = 0; i < stage->program->count; i++)
		if (stage->program->operations[i].kind == STEP_RECEIVE)
			left[i] = message_of(stage, &stage->program->operations[i])->left;
	const struct step_rank rank = { stage->program, stage->begin, stage->end, left };
	int error = account_add(stage->part->plan, &rank, units_of(stage->part, stage->lane), times);
	free(left);
	return error;
}

static int account_part(const struct going *going, const struct part *part, struct step_times *times)
{
	const struct stage *stages = &going->stages[part->first];
	const uint32_t count = part->lanes * part->plan->pp;
	uint32_t units = 0;
	int error = 0;
	*times = (struct step_times){ 0 };
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < stages[i].program->count; k++) {
			assert(stages[i].end[k] >= 0); /* schedules have no cycle */
			if (stages[i].end[k] > times->step)
				times->step = stages[i].end[k];
		}
	for (uint32_t i = 0; !error && i < count; i++) {
		error = account_stage(&stages[i], times);
		units += units_of(part, stages[i].lane);
	}
	account_mean(times, units);
	return error;
}

/* ---- A run ------------------------------------------------------------------------------------------------------- */

static int open_stage(struct going *going, struct part *part, uint32_t lane, uint32_t number)
{
	const uint32_t of_all = part->first + lane * part->plan->pp + number;
	struct stage *stage = &going->stages[of_all];
	*stage = (struct stage){ .part = part,
		.number = number,
		.lane = lane,
		.program = &part->programs[number],
		.slowness = speeds_of_stage(part->plan, number) };
	const uint32_t count = stage->program->count;
	stage->begin = malloc((count + 1) * sizeof(*stage->begin));
	stage->end = malloc((count + 1) * sizeof(*stage->end));
	if (!stage->begin || !stage->end)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		stage->begin[i] = stage->end[i] = -1;
	for (unsigned i = 0; i < STEP_STREAMS; i++) {
		stage->running[i] = STEP_NONE;
		stage->due[i] = (struct due){ .stage = of_all, .stream = i };
		vb_timer_init(&stage->due[i].timer);
	}
	touch(going, stage);
	return 0;
}

static int open_meeting(struct meeting *meeting, uint32_t wanted)
{
	*meeting = (struct meeting){ .wanted = wanted, .slots = malloc(wanted * sizeof(*meeting->slots)) };
	return meeting->slots ? 0 : -ENOMEM;
}

static int open_meetings(struct part *part)
{
	const uint32_t pp = part->plan->pp;
	part->ends = calloc(part->lanes, sizeof(*part->ends));
	part->joined = calloc(pp, sizeof(*part->joined));
	int error = part->ends && part->joined ? open_meeting(&part->all, pp * part->lanes) : -ENOMEM;
	for (uint32_t i = 0; !error && i < part->lanes; i++)
		error = open_meeting(&part->ends[i], pp == 1 ? 1 : 2);
	for (uint32_t i = 0; !error && i < pp; i++)
		error = open_meeting(&part->joined[i], part->lanes);
	return error;
}

static int open_part(struct going *going, struct part *part)
{
	const uint32_t pp = part->plan->pp;
	part->tags = program_tags(part->plan);
	part->messages = malloc((size_t)part->tags * part->lanes * sizeof(*part->messages));
	part->programs = calloc(pp, sizeof(*part->programs));
	int error = part->messages && part->programs ? open_meetings(part) : -ENOMEM;
	for (uint32_t i = 0; !error && i < part->tags * part->lanes; i++)
		part->messages[i] = (struct message){ -1, -1, STEP_NONE };
	for (uint32_t i = 0; !error && i < pp; i++)
		error = program_make(part->plan, i, &part->programs[i]);
	for (uint32_t lane = 0; lane < part->lanes; lane++)
		for (uint32_t i = 0; !error && i < pp; i++)
			error = open_stage(going, part, lane, i);
	return error;
}

static int open_run(struct going *going, const struct timing_step *steps, uint32_t count)
{
	int error = 0;
	vb_timers_init(&going->timers);
	going->parts = calloc(count, sizeof(*going->parts));
	if (!going->parts)
		return -ENOMEM;
	going->part_count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct step_lanes *lanes = steps[i].network->loads ? steps[i].network->lanes : NULL;
		going->parts[i] = (struct part){ .plan = steps[i].plan,
			.network = steps[i].network,
			.lanes = lanes ? lanes->count : 1,
			.first = going->stage_count };
		going->stage_count += steps[i].plan->pp * going->parts[i].lanes;
	}
	const uint32_t slots = going->stage_count * STEP_STREAMS;
	const struct step_loads *loads = steps[0].network->loads;
	going->stages = calloc(going->stage_count, sizeof(*going->stages));
	going->touched = malloc(going->stage_count * sizeof(*going->touched));
	if (loads)
		going->shares = shares_open(loads, slots);
	if (!going->stages || !going->touched || (loads && !going->shares) || vb_timers_reserve(&going->timers, slots))
		return -ENOMEM;
	for (uint32_t i = 0; i < count && !error; i++)
		error = open_part(going, &going->parts[i]);
	return error;
}

static void close_part(struct part *part)
{
	for (uint32_t i = 0; part->programs && i < part->plan->pp; i++)
		program_free(&part->programs[i]);
	for (uint32_t i = 0; part->ends && i < part->lanes; i++)
		free(part->ends[i].slots);
	for (uint32_t i = 0; part->joined && i < part->plan->pp; i++)
		free(part->joined[i].slots);
	free(part->programs);
	free(part->messages);
	free(part->ends);
	free(part->joined);
	free(part->all.slots);
}

static void close_run(struct going *going)
{
	for (uint32_t i = 0; going->stages && i < going->stage_count; i++) {
		free(going->stages[i].begin);
		free(going->stages[i].end);
	}
	for (uint32_t i = 0; i < going->part_count; i++)
		close_part(&going->parts[i]);
	free(going->parts);
	free(going->stages);
	free(going->touched);
	vb_timers_deinit(&going->timers);
	shares_close(going->shares);
}

int timing_run_all(struct timing_step *steps, uint32_t count)
{
	struct going going = { 0 };
	int error = open_run(&going, steps, count);
	if (!error)
		error = go_on(&going);
	for (uint32_t i = 0; i < count && !error; i++)
		error = account_part(&going, &going.parts[i], &steps[i].times);
	close_run(&going);
	return error;
}

int timing_run(const struct step_plan *plan, const struct step_network *network, struct step_times *times)
{
	struct timing_step step = { .plan = plan, .network = network };
	int error = timing_run_all(&step, 1);
	*times = step.times;
	return error;
}
