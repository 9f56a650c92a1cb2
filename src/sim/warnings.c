/* Contradictions in a scenario. Values of a built-in profile are warned about if they do harm; values of the scenario
 * itself also if they have no effect. */
#include "sim/warnings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "fabric/round_trips.h"
#include "fabric/thresholds.h"
#include "net/outages.h"
#include "sim/idle_keys.h"
#include "sim/link_name.h"
#include "sim/nccl_keys.h"
#include "sim/simulation.h"
#include "sim/step.h"
#include "sim/step_keys.h"
#include "sim/traffic.h"

struct looking {
	struct simulation *simulation;
	const struct network *network;
	const struct fabric_config *config;
	uint8_t classes; /* of data that is sent: a mask */
	uint64_t kinds;  /* that were warned about */
};

enum kind { KIND_MARKS_NEVER, KIND_MARKS_AT_ONCE, KIND_MARKS_NOT_ALL, KIND_PAUSE_ALONE, KIND_PAUSE_BUSY };

__attribute__((format(printf, 2, 3))) static void warn(struct looking *looking, const char *format, ...)
{
	struct warnings *warnings = &looking->simulation->warnings;
	va_list arguments;

	if (warnings->count == WARNINGS_MOST)
		return;
	va_start(arguments, format);
	vsnprintf(warnings->texts[warnings->count++], WARNING_BYTES, format, arguments);
	va_end(arguments);
}

/* Once per class. */
static bool is_new(struct looking *looking, enum kind kind, uint32_t class)
{
	const uint64_t bit = (uint64_t)1 << (8 * kind + class);
	bool is = !(looking->kinds & bit);

	looking->kinds |= bit;
	return is;
}

static bool is_sent(const struct looking *looking, uint32_t class)
{
	const bool is_of_steps = looking->simulation->step_count > 0; /* whose messages are of class 0 */
	return looking->classes >> class & 1 || (is_of_steps && class == 0);
}

/* ---- A queue's thresholds ---------------------------------------------------------------------------------------- */

struct amounts {
	char link[64], has[32], most[32];
};

static const struct amounts *amounts_of(
	const struct looking *looking, uint32_t link, uint64_t has, uint64_t most, struct amounts *amounts)
{
	link_text(looking->network, link, amounts->link, sizeof(amounts->link));
	value_bytes_text(has, amounts->has, sizeof(amounts->has));
	value_bytes_text(most, amounts->most, sizeof(amounts->most));
	return amounts;
}

/* False: no marks are ever made. */
static bool look_at_marks(struct looking *looking, uint32_t link, uint32_t class)
{
	uint64_t min = threshold_mark_min(looking->network, link, class),
		 max = threshold_mark_max(looking->network, link, class);
	uint64_t most = threshold_queue_most(looking->config, link, class);
	struct amounts is;

	if (min > max && is_new(looking, KIND_MARKS_AT_ONCE, class)) {
		amounts_of(looking, link, min, max, &is);
		warn(looking,
			"network.switch.classes.%u.mark-min is %s before %s, above mark-max, %s: all packets are "
			"marked "
			"from mark-min on, and none below",
			class, is.has, is.link, is.most);
	}
	if (min >= most && is_new(looking, KIND_MARKS_NEVER, class)) {
		amounts_of(looking, link, min, most, &is);
		warn(looking,
			"network.switch.classes.%u.mark-min is %s before %s, and that queue never holds more than %s: "
			"nothing will be "
			"marked there. Lower mark-min, or raise buffer or alpha",
			class, is.has, is.link, is.most);
	} else if (min < most && max > most && is_new(looking, KIND_MARKS_NOT_ALL, class)) {
		amounts_of(looking, link, max, most, &is);
		warn(looking,
			"network.switch.classes.%u.mark-max is %s before %s, and that queue never holds more than %s: "
			"marks never get "
			"as likely as mark-chance, and never certain. Lower mark-max, or raise buffer or alpha",
			class, is.has, is.link, is.most);
	}
	return min < most;
}

static void look_at_pauses(struct looking *looking, uint32_t link, uint32_t class)
{
	uint64_t min = threshold_mark_min(looking->network, link, class);
	uint64_t alone = threshold_pause(looking->config, link, class, false);
	uint64_t busy = threshold_pause(looking->config, link, class, true);
	struct amounts is;

	if (min > alone && is_new(looking, KIND_PAUSE_ALONE, class)) {
		amounts_of(looking, link, min, alone, &is);
		warn(looking,
			"network.switch.classes.%u.mark-min is %s before %s, and senders to that queue are paused "
			"when it holds %s: pauses will come before marks. Lower mark-min, or raise buffer or alpha",
			class, is.has, is.link, is.most);
	} else if (min <= alone && min > busy && is_new(looking, KIND_PAUSE_BUSY, class)) {
		amounts_of(looking, link, min, busy, &is);
		warn(looking,
			"network.switch.classes.%u.mark-min is %s before %s, and when all ports of its switch are "
			"busy, senders to that queue are paused when it holds %s: pauses will come before marks then. "
			"Lower mark-min, or raise buffer or "
			"alpha",
			class, is.has, is.link, is.most);
	}
}

static void look_at_port(struct looking *looking, uint32_t link)
{
	const struct switch_profile *profile = network_profile(looking->network, looking->network->links[link].from);

	for (uint32_t class = 0; class < profile->class_count; class ++) {
		if (!is_sent(looking, class) || !profile->classes[class].mark_max)
			continue;
		if (look_at_marks(looking, link, class))
			look_at_pauses(looking, link, class);
	}
}

/* Equal ports are next to each other, and so are equal switches: one of each is enough. */
static void look_at_switch(struct looking *looking, uint32_t number)
{
	const struct network *network = looking->network;
	const struct network_switch *its = &network->switches[number], *before = number ? its - 1 : NULL;
	uint64_t rate = 0;

	if (before && before->profile == its->profile && before->port_count == its->port_count &&
		before->tier == its->tier)
		return;
	for (uint32_t i = 0; i < its->port_count; i++) {
		uint32_t link = network->ports[its->first_port + i];
		if (network->links[link].bits_per_second != rate)
			look_at_port(looking, link);
		rate = network->links[link].bits_per_second;
	}
}

/* ---- Headroom ---------------------------------------------------------------------------------------------------- */

/* For the link that lacks most. */
static void look_at_headroom(struct looking *looking)
{
	const struct network *network = looking->network;
	uint32_t worst = NETWORK_NONE;
	uint64_t lacks = 0, needs = 0;
	char name[64], has[32], wants[32];

	for (uint32_t link = 0; link < network->link_count; link++) {
		const struct switch_profile *profile = network_profile(network, network->links[link].to);
		if (!profile || !profile->headroom_bytes)
			continue;
		uint64_t needed = threshold_headroom(looking->config, link);
		if (needed <= profile->headroom_bytes + lacks)
			continue;
		lacks = needed - profile->headroom_bytes;
		needs = needed;
		worst = link;
	}
	if (worst == NETWORK_NONE)
		return;
	warn(looking,
		"network.switch.headroom is %s, and %s needs %s (twice its delay at its rate, the packet that is "
		"leaving at either "
		"end, and the PAUSE frame): lossless classes will lose packets that arrive after a pause was due. "
		"Leave it out, "
		"and each link gets what it needs",
		value_bytes_text(needs - lacks, has, sizeof(has)), link_text(network, worst, name, sizeof(name)),
		value_bytes_text(needs, wants, sizeof(wants)));
}

/* ---- The transport ----------------------------------------------------------------------------------------------- */

static bool marks_are_made(const struct looking *looking)
{
	for (uint32_t i = 0; i < looking->network->fault_count; i++)
		if (looking->network->faults[i].mark_ppm)
			return true;
	for (uint32_t i = 0; i < looking->network->profile_count; i++) {
		const struct switch_profile *profile = &looking->network->profiles[i];
		for (uint32_t class = 0; class < profile->class_count; class ++)
			if (is_sent(looking, class) && profile->classes[class].mark_max)
				return true;
	}
	return false;
}

/* Endpoints that are linked to each other have no switch to tell them anything. */
static void look_for_switches(struct looking *looking)
{
	const uint64_t flows = traffic_flows(looking->simulation);

	for (uint64_t i = 0; i < flows; i++) {
		const struct flow flow = traffic_flow(looking->simulation, i);
		if (flow.src == flow.dst || /* within a host */
			network_is_switch(looking->network->links[looking->network->endpoints[flow.src].link].to))
			continue;
		warn(looking,
			"transport.cc %s needs telemetry of switches, and between endpoints %u and %u there is none: "
			"they keep sending as they begin",
			looking->config->cc.algorithm->name, flow.src, flow.dst);
		return;
	}
}

static const char *path_parameter(const struct vb_cc_algorithm *cc)
{
	for (unsigned i = 0; i < cc->parameter_count; i++)
		if (cc->parameters[i].may_be_path)
			return cc->parameters[i].name;
	return "";
}

/* For the flow with the longest path. Scenarios such as those of HPCC's authors ignore the wire time of
 * acknowledgements; a fiftieth is not worth a warning. */
static void look_at_round_trips(struct looking *looking)
{
	const struct fabric_config *config = looking->config;
	const uint64_t flows = traffic_flows(looking->simulation);
	const struct vb_cc_algorithm *cc = config->cc.algorithm;
	const uint64_t supposed = cc->supposes ? cc->supposes(config->cc.parameters) : 0;
	struct flow longest = { 0 };
	vb_time most = 0;
	uint64_t count = 0;
	char is[32], takes[32], from[32], to[32];

	if (supposed == 0 || round_trips_are_wanted(config))
		return;
	struct routes *routes = routes_make(looking->network);
	for (uint64_t i = 0; routes && i < flows; i++) {
		const struct flow flow = traffic_flow(looking->simulation, i);
		if (flow.src == flow.dst)
			continue;
		const vb_time trip = round_trip_time(config, routes, flow.src, flow.dst);
		count += supposed < (uint64_t)trip / 50 * 49;
		if (trip <= most)
			continue;
		most = trip;
		longest = flow;
	}
	routes_free(routes);
	if (count == 0)
		return;
	warn(looking,
		"transport.cc %s assumes a round trip of %s (%s), and from %s to %s it takes %s "
		"without queueing: %" PRIu64 " of %" PRIu64
		" flows have longer paths than assumed, and stay below their links' rate. "
		"Set %s=path",
		cc->name, value_time_text((vb_time)supposed, is, sizeof(is)), path_parameter(cc),
		node_text(looking->network, longest.src, from, sizeof(from)),
		node_text(looking->network, longest.dst, to, sizeof(to)), value_time_text(most, takes, sizeof(takes)),
		count, flows, path_parameter(cc));
}

static void look_at_transport(struct looking *looking)
{
	const struct scenario *scenario = looking->simulation->scenario;
	const struct vb_cc_algorithm *cc = looking->config->cc.algorithm;
	bool are_made = marks_are_made(looking);

	if (are_made && !simulation_heeds_marks(looking->simulation) &&
		scenario_is_given(scenario, "network.switch.classes.*.mark-max"))
		warn(looking,
			"packets are marked, and the congestion control (%s) ignores marks: they will change nothing. "
			"Choose another congestion control, or mark-max 0",
			simulation_control(looking->simulation));
	if (!are_made && scenario->endpoint == FABRIC_TCP && simulation_heeds_marks(looking->simulation))
		warn(looking,
			"transport.tcp %s uses marks, and no switch makes any (mark-max): it slows down only for "
			"losses, as NewReno does",
			simulation_control(looking->simulation));
	if (!are_made && scenario->endpoint == FABRIC_ENGINE && cc->goes_by == VB_CC_BY_MARKS)
		warn(looking,
			"transport.cc %s slows down for marked packets, and no switch marks any (mark-max): all "
			"endpoints send at full rate, until pauses or drops",
			cc->name);
	if (scenario->endpoint == FABRIC_TCP && cc != &vb_cc_none)
		warn(looking,
			"transport.cc %s is for engines, and endpoints have TCP: transport.tcp chooses its congestion "
			"control",
			cc->name);
	if (scenario->endpoint == FABRIC_ENGINE && cc->goes_by == VB_CC_BY_TELEMETRY)
		look_for_switches(looking);
	if (are_made && scenario->endpoint == FABRIC_ENGINE && cc->goes_by & VB_CC_BY_SHARES &&
		!looking->config->acks_tell_marks)
		warn(looking,
			"transport.cc %s uses the share of marked packets, which CNPs do not carry: it cuts as if all "
			"were marked. Set transport.marks to acks",
			cc->name);
	if (scenario->endpoint == FABRIC_ENGINE)
		look_at_round_trips(looking);
	if (scenario->first_window && scenario->largest_window && scenario->first_window > scenario->largest_window)
		warn(looking, "transport.first-window is above largest-window: flows begin with largest-window");
}

static void look_at_trims(struct looking *looking)
{
	const struct scenario *scenario = looking->simulation->scenario;
	const struct switch_profile *profile = &scenario->topology.profile;

	if (profile->trim_bytes && scenario->endpoint == FABRIC_ENGINE &&
		!profile->classes[scenario->ack_class].is_strict)
		warn(looking,
			"network.switch.trim: what is left of packets goes ahead in class %u, and answers to it wait "
			"behind data in class %u: set transport.ack-class to %u",
			profile->class_count - 1, scenario->ack_class, profile->class_count - 1);
}

static void look_at_classes(struct looking *looking)
{
	const struct scenario *scenario = looking->simulation->scenario;
	const struct switch_profile *profile = &scenario->topology.profile;

	for (uint32_t class = profile->class_count; class < FABRIC_CLASSES; class ++)
		if (scenario->classes_given >> class & 1)
			warn(looking,
				"network.switch.classes.%u: switches have class-count %u, counted from 0: it has no "
				"effect",
				class, profile->class_count);
	if (profile->flow_control != FLOW_DROPS || !scenario_is_given(scenario, "network.switch.classes.*.lossless"))
		return;
	for (uint32_t class = 0; class < profile->class_count; class ++)
		if (is_sent(looking, class) && profile->classes[class].is_lossless)
			warn(looking,
				"network.switch.classes.%u is lossless, and flow-control is drops: no sender is "
				"paused, "
				"and packets without room are dropped in this class, too. Set flow-control to pfc",
				class);
}

static bool goes_down(const struct network_fault *fault)
{
	return fault->down_at || fault->up_at;
}

static bool has_effect(const struct scenario_fault *its)
{
	return its->bits_per_second || goes_down(&its->fault) || fault_is_of_packets(&its->fault);
}

/* The first of its kind. */
static void look_at_faults(struct looking *looking)
{
	const struct scenario *scenario = looking->simulation->scenario;

	for (uint32_t i = 0; i < scenario->fault_count; i++) {
		const struct network_fault *fault = &scenario->faults[i].fault;
		if (scenario->downs_given >> i & 1 && !goes_down(fault))
			warn(looking,
				"network.faults.%u.down is 0, and there is no up: that link never goes down. Write "
				"1ps for a link that is down from the beginning",
				i);
		else if (!has_effect(&scenario->faults[i]))
			warn(looking,
				"network.faults.%u has no effect: it neither loses, duplicates, delays nor marks "
				"packets, and the link stays up",
				i);
		else
			continue;
		return;
	}
}

/* Keys with the same missing condition are reported together. */
static void look_at_idle_keys(struct looking *looking)
{
	const struct scenario *scenario = looking->simulation->scenario;
	const struct scenario_key *key;
	const char *told[WARNINGS_MOST], *of;
	unsigned count = 0;

	for (size_t place = 0; count < WARNINGS_MOST && (key = idle_keys_next(scenario, &place, &of));) {
		char names[240], instead[40];
		const char *other;
		unsigned known = 0;
		while (known < count && strcmp(told[known], of) != 0)
			known++;
		if (known < count)
			continue;
		told[count++] = of;
		size_t used = (size_t)snprintf(names, sizeof(names), "%s", key->path);
		for (size_t next = place; used < sizeof(names) && (key = idle_keys_next(scenario, &next, &other));)
			if (strcmp(other, of) == 0)
				used += (size_t)snprintf(names + used, sizeof(names) - used, ", %s", key->path);
		const int path = (int)strcspn(of, "=");
		warn(looking, "%s: only for %.*s %s, and that is %s: no effect", names, path, of, of + path + 1,
			idle_keys_instead(scenario, of, instead, sizeof(instead)));
	}
}

static void look_at_steps(struct looking *looking)
{
	const struct scenario *scenario = looking->simulation->scenario;
	const char *path, *why;

	for (size_t place = 0; (path = step_keys_idle(looking->simulation, &place, &why));)
		warn(looking, "%s: %s: no effect", path, why);
	if (looking->simulation->step_count && scenario->mode != MODE_PACKETS && scenario->limit)
		warn(looking, "run.limit: without packets a step has no limit, only its check by packets has");
}

/* Computations of a trace that are of no operation, and operations that have no time. */
static void look_at_times(struct looking *looking)
{
	const struct simulation *simulation = looking->simulation;
	char why[400], missing[300];
	struct step step;

	for (uint32_t i = 0; simulation->step_count && i < simulation->scenario->workload_count; i++) {
		const struct compute_trace *trace = step_times_unmatched(simulation, i);
		if (trace)
			warn(looking,
				"workload.%" PRIu32 ".compute-times: %" PRIu64 " of the trace's %" PRIu64
				" computations, %.3g%% of their time, are of no operation of the model, such as %s",
				i, trace->unmatched, trace->computations,
				trace->us > 0 ? 100 * trace->unmatched_us / trace->us : 0, trace->such_as);
		if (step_open(simulation, i, &step, why, sizeof(why)) || !step.compute_times)
			continue;
		if (step_times_by_mfu(&step.plan, missing, sizeof(missing)))
			warn(looking, "workload.%" PRIu32 ".compute-times: it has no time of %s: these go by mfu", i,
				missing);
	}
}

static void look_at_nccl(struct looking *looking)
{
	const char *path, *why;

	for (size_t place = 0; (path = nccl_keys_idle(looking->simulation, &place, &why));)
		warn(looking, "%s: %s: no effect", path, why);
}

/* A congestion control uses marks, or the scenario configures them. */
static bool marks_matter(const struct simulation *simulation)
{
	return simulation_heeds_marks(simulation) ||
	       scenario_is_given(simulation->scenario, "network.switch.classes.*.mark-min") ||
	       scenario_is_given(simulation->scenario, "network.switch.classes.*.mark-max");
}

static void tell_notes(struct looking *looking)
{
	const struct flow_list *flows = &looking->simulation->flows;

	for (unsigned i = 0; i < flows->note_count; i++)
		warn(looking, "the file of flows: %s", flows->notes[i]);
	if (looking->simulation->network_note)
		warn(looking, "network.file: %s", looking->simulation->network_note);
}

/* Of packets, and their queues. */
static void look_at_packets(struct looking *looking)
{
	const struct simulation *simulation = looking->simulation;

	look_at_classes(looking);
	look_at_trims(looking);
	look_at_headroom(looking);
	for (uint32_t i = 0; marks_matter(simulation) && i < simulation->network.switch_count; i++)
		look_at_switch(looking, i);
	look_at_transport(looking);
	look_at_faults(looking);
}

void warnings_find(struct simulation *simulation)
{
	struct looking looking = { simulation, &simulation->network, &simulation->config,
		traffic_of(simulation).classes, 0 };

	tell_notes(&looking);
	if (!simulation->config.by_flows)
		look_at_packets(&looking);
	look_at_idle_keys(&looking);
	look_at_nccl(&looking);
	look_at_steps(&looking);
	look_at_times(&looking);
}
