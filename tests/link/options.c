/* See options.h. A fault is a row of a table, and so an option for all paths and an item for some of them.
 * Holds: whatever the order of options, --path comes after --forward and --backward, and these after all others. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/quantity.h"

#define QUEUE     1000000 /* bytes, if there is a rate and no queue */
#define RATE_MIN  10000
#define DELAY_MAX (60 * VB_S)
#define QUEUE_MAX 1000000000
#define SPECS_MAX 256

const char link_help[] =
	"usage: link [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"\n"
	"Makes two network namespaces, near and far, joined by a link of a rate, a delay and faults, and runs COMMAND "
	"in the\n"
	"near one. When it ends, all ends and nothing is left: no namespace, no device, no process. Needs "
	"/dev/net/tun, and\n"
	"root or user namespaces.\n"
	"\n"
	"  near is 10.78.0.1 and fd78::1, far is 10.78.0.2 and fd78::2, each at the interface link0.\n"
	"  TCP's buffers may grow to 64 MB there.\n"
	"  COMMAND has in its environment $LINK_NEAR and $LINK_FAR (the IPv4 addresses), and $LINK_IN_NEAR and "
	"$LINK_IN_FAR,\n"
	"  words to put before a command that is to run there:  $LINK_IN_FAR ping $LINK_NEAR\n"
	"\n"
	"What the link does, in both directions unless said otherwise:\n"
	"  --rate RATE          bits of IP packets a second (1Gb/s, 200Mb/s); without it as fast as the machine goes\n"
	"  --queue BYTES        before the line (2MB, 500kB); 1MB if there is a rate; what finds no room is dropped\n"
	"  --delay TIME         from the end of the line to the other end (50ms, 20us)\n"
	"  --loss SHARE         of the packets (1%, 0.01%)\n"
	"  --burst N            losses come in runs of N packets on average; --loss stays their share\n"
	"  --reorder SHARE      of the packets come later than the others ...\n"
	"  --reorder-by TIME    ... by this\n"
	"  --duplicate SHARE    of the packets come twice\n"
	"  --dead-after TIME    from then on all is lost ...\n"
	"  --alive-after TIME   ... until then; both count from the start of COMMAND\n"
	"  --forward ITEMS      for what near sends: rate=1Gb/s,delay=10ms,loss=1%, names as above\n"
	"  --backward ITEMS     for what far sends\n"
	"  --seed N             of all chances; 1 if not given. The same packets then have the same fates\n"
	"\n"
	"Many paths. A packet's path is its source port (of UDP or TCP) modulo N; that of other packets is 0. All "
	"share the\n"
	"line, with --rate and --queue; behind it each path has faults of its own:\n"
	"  --paths N            up to 64\n"
	"  --path P:ITEMS       of path P, both directions: 3:loss=20%; a rate and queue here are that path's own\n"
	"  --path P:forward:ITEMS, --path P:backward:ITEMS\n"
	"\n"
	"What runs:\n"
	"  --far COMMAND        by sh -c, in the far namespace; ends when the near one does\n"
	"  --far-port PORT      COMMAND of the near end starts once the far one listens on this TCP port\n"
	"  --hold               no COMMAND: prints the words to put before commands of other terminals, waits for "
	"stdin's end\n"
	"  --mtu BYTES          1280 to 9000; 1500\n"
	"  --json FILE          what the link carried, as JSON; - is stdout\n"
	"  --quiet              does not say it on stderr\n"
	"  --help\n"
	"\n"
	"The exit status is COMMAND's. Example:\n"
	"  link --rate 1Gb/s --delay 50ms --queue 2MB --loss 0.1% --far 'iperf3 -s -1' --far-port 5201 -- iperf3 -c "
	"10.78.0.2\n";

/* ---- Items ------------------------------------------------------------------------------------------------------- */

static const struct item {
	const char *name;
	enum vb_quantity kind;
	size_t offset; /* in struct link_faults */
	uint64_t least, most;
} items[] = {
	{ "rate", VB_QUANTITY_RATE, offsetof(struct link_faults, rate), RATE_MIN, UINT64_C(1000000000000) },
	{ "queue", VB_QUANTITY_BYTES, offsetof(struct link_faults, queue), 1, QUEUE_MAX },
	{ "delay", VB_QUANTITY_TIME, offsetof(struct link_faults, delay), 0, DELAY_MAX },
	{ "loss", VB_QUANTITY_SHARE, offsetof(struct link_faults, loss), 0, 1000000 },
	{ "burst", VB_QUANTITY_COUNT, offsetof(struct link_faults, burst), 1, VB_BURSTS_RUN_MAX },
	{ "reorder", VB_QUANTITY_SHARE, offsetof(struct link_faults, reorder), 0, 1000000 },
	{ "reorder-by", VB_QUANTITY_TIME, offsetof(struct link_faults, reorder_by), 0, DELAY_MAX },
	{ "duplicate", VB_QUANTITY_SHARE, offsetof(struct link_faults, duplicate), 0, 1000000 },
	{ "dead-after", VB_QUANTITY_TIME, offsetof(struct link_faults, dead_after), 1, 3600 * VB_S },
	{ "alive-after", VB_QUANTITY_TIME, offsetof(struct link_faults, alive_after), 1, 3600 * VB_S },
};
enum { ITEMS = sizeof(items) / sizeof(items[0]), IS_OF_LINE = 2 /* rate and queue, unless of a path */ };

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == 0 && errno == 0 && *value >= least && *value <= most;
}

static const struct item *find_item(const char *name)
{
	for (unsigned i = 0; i < ITEMS; i++)
		if (strcmp(items[i].name, name) == 0)
			return &items[i];
	return NULL;
}

/* What is said, and of which packets. */
struct spec {
	const struct item *item;
	uint64_t value;
	unsigned directions; /* bits */
	int path;            /* -1: all, and the line */
	unsigned rank;       /* later ones take the place of earlier ones */
};

struct reading {
	struct link_options *options;
	struct spec specs[SPECS_MAX];
	unsigned count;
	char *why;
	unsigned why_size;
};

enum { BOTH = 1 << LINK_FORWARD | 1 << LINK_BACKWARD };

static bool complain(struct reading *reading, const char *what, const char *text)
{
	snprintf(reading->why, reading->why_size, "%s%s%s", text, *text ? ": " : "", what);
	return false;
}

static bool add_item(struct reading *reading, struct spec spec, const char *text)
{
	char what[160];

	if (reading->count == SPECS_MAX)
		return complain(reading, "too much is said", text);
	if (!vb_quantity_read(spec.item->kind, text, &spec.value) || spec.value < spec.item->least ||
		spec.value > spec.item->most) {
		snprintf(what, sizeof(what), "not a %s that a link can have; it is %s", spec.item->name,
			vb_quantity_form(spec.item->kind));
		return complain(reading, what, text);
	}
	reading->specs[reading->count++] = spec;
	return true;
}

/* "loss=1%,delay=2ms". Writes into text. */
static bool add_items(struct reading *reading, struct spec spec, char *text)
{
	for (char *rest, *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
		char *equals = strchr(item, '=');
		if (!equals)
			return complain(reading, "is no NAME=VALUE", item);
		*equals = 0;
		spec.item = find_item(item);
		if (!spec.item)
			return complain(reading, "is no fault; --help lists them", item);
		if (!add_item(reading, spec, equals + 1))
			return false;
	}
	return true;
}

static unsigned take_direction(char **text)
{
	static const char *const names[LINK_DIRECTIONS] = { "forward:", "backward:" };

	for (unsigned i = 0; i < LINK_DIRECTIONS; i++) {
		if (strncmp(*text, names[i], strlen(names[i])) == 0) {
			*text += strlen(names[i]);
			return 1u << i;
		}
	}
	return BOTH;
}

/* "3:forward:loss=20%". */
static bool add_path(struct reading *reading, char *text)
{
	char *rest = strchr(text, ':');
	uint64_t number;

	if (!rest)
		return complain(reading, "is no PATH:ITEMS", text);
	*rest++ = 0;
	if (!read_number(text, 0, LINK_PATHS_MAX - 1, &number))
		return complain(reading, "is no number of a path", text);
	struct spec spec = { .path = (int)number, .rank = 2 };
	spec.directions = take_direction(&rest);
	return add_items(reading, spec, rest);
}

/* ---- Putting together -------------------------------------------------------------------------------------------- */

static void apply_to(struct link_options *options, const struct spec *spec, unsigned direction)
{
	const unsigned which = (unsigned)(spec->item - items);

	if (spec->path < 0 && which < IS_OF_LINE) {
		uint64_t *of_line[] = { &options->lines[direction].rate, &options->lines[direction].queue };
		*of_line[which] = spec->value;
		return;
	}
	for (int path = 0; path < LINK_PATHS_MAX; path++)
		if (spec->path < 0 || spec->path == path)
			*(uint64_t *)((char *)&options->faults[direction][path] + spec->item->offset) = spec->value;
}

static void apply(struct reading *reading)
{
	for (unsigned rank = 0; rank <= 2; rank++)
		for (unsigned i = 0; i < reading->count; i++)
			for (unsigned direction = 0; direction < LINK_DIRECTIONS; direction++)
				if (reading->specs[i].rank == rank && reading->specs[i].directions & 1u << direction)
					apply_to(reading->options, &reading->specs[i], direction);
}

static const char *complain_of_faults(const struct link_faults *faults)
{
	if (faults->burst && !vb_bursts_are_possible((uint32_t)faults->loss, faults->burst))
		return "loss is above what runs of burst packets make, which is burst / (burst + 1)";
	if (faults->reorder && !faults->reorder_by)
		return "reorder needs a reorder-by";
	if (faults->alive_after && faults->alive_after <= faults->dead_after)
		return "alive-after is not behind dead-after";
	return faults->queue && !faults->rate ? "the queue of a path needs a rate of the path" : NULL;
}

static bool complete(struct reading *reading)
{
	struct link_options *options = reading->options;

	apply(reading);
	for (unsigned i = 0; i < reading->count; i++)
		if (reading->specs[i].path >= (int)options->paths)
			return complain(reading, "--path names one that --paths does not have", "");
	for (unsigned direction = 0; direction < LINK_DIRECTIONS; direction++) {
		struct link_line *line = &options->lines[direction];
		if (line->queue && !line->rate)
			return complain(reading, "needs a --rate", "--queue");
		line->queue = line->queue ? line->queue : QUEUE;
		for (unsigned path = 0; path < options->paths; path++) {
			struct link_faults *faults = &options->faults[direction][path];
			const char *complaint = complain_of_faults(faults);
			if (complaint)
				return complain(reading, complaint, "");
			faults->queue = faults->queue ? faults->queue : QUEUE;
		}
	}
	return true;
}

/* ---- The command line -------------------------------------------------------------------------------------------- */

enum { FORWARD = 1000, BACKWARD, PATH, PATHS, SEED, MTU, FAR, FAR_PORT, JSON, QUIET, HOLD, HELP };

static const struct option others[] = {
	{ "forward", required_argument, NULL, FORWARD },
	{ "backward", required_argument, NULL, BACKWARD },
	{ "path", required_argument, NULL, PATH },
	{ "paths", required_argument, NULL, PATHS },
	{ "seed", required_argument, NULL, SEED },
	{ "mtu", required_argument, NULL, MTU },
	{ "far", required_argument, NULL, FAR },
	{ "far-port", required_argument, NULL, FAR_PORT },
	{ "json", required_argument, NULL, JSON },
	{ "quiet", no_argument, NULL, QUIET },
	{ "hold", no_argument, NULL, HOLD },
	{ "help", no_argument, NULL, HELP },
};
enum { OTHERS = sizeof(others) / sizeof(others[0]) };

/* Options are those of the table of items, and the others. */
static void list_options(struct option list[ITEMS + OTHERS + 1])
{
	for (unsigned i = 0; i < ITEMS; i++)
		list[i] = (struct option){ items[i].name, required_argument, NULL, (int)i };
	memcpy(list + ITEMS, others, sizeof(others));
	list[ITEMS + OTHERS] = (struct option){ 0 };
}

static bool read_into(struct reading *reading, uint64_t least, uint64_t most, unsigned *value)
{
	uint64_t number;

	if (!read_number(optarg, least, most, &number))
		return complain(reading, "is no number that may stand here", optarg);
	*value = (unsigned)number;
	return true;
}

static bool take_text(struct link_options *options, int option)
{
	switch (option) {
	case FAR:
		options->far_command = optarg;
		return true;
	case JSON:
		options->json = optarg;
		return true;
	case QUIET:
		options->is_quiet = true;
		return true;
	case HOLD:
		options->holds = true;
		return true;
	case HELP:
		options->shows_help = true;
		return true;
	default:
		return false;
	}
}

static bool take_option(struct reading *reading, int option)
{
	struct link_options *options = reading->options;

	if (option >= 0 && option < ITEMS)
		return add_item(
			reading, (struct spec){ .item = &items[option], .directions = BOTH, .path = -1 }, optarg);
	switch (option) {
	case FORWARD:
		return add_items(
			reading, (struct spec){ .directions = 1 << LINK_FORWARD, .path = -1, .rank = 1 }, optarg);
	case BACKWARD:
		return add_items(
			reading, (struct spec){ .directions = 1 << LINK_BACKWARD, .path = -1, .rank = 1 }, optarg);
	case PATH:
		return add_path(reading, optarg);
	case PATHS:
		return read_into(reading, 1, LINK_PATHS_MAX, &options->paths);
	case MTU:
		return read_into(reading, 1280, 9000, &options->mtu);
	case FAR_PORT:
		return read_into(reading, 1, 65535, &options->far_port);
	case SEED:
		return read_number(optarg, 0, UINT64_MAX, &options->seed) || complain(reading, "is no seed", optarg);
	default:
		return take_text(options, option) ||
		       complain(reading, "--help lists the options, and which have a value", "");
	}
}

bool link_options_parse(struct link_options *options, int argc, char **argv, char *why, unsigned why_size)
{
	struct option list[ITEMS + OTHERS + 1];
	struct reading reading = { .options = options, .why = why, .why_size = why_size };

	*options = (struct link_options){ .paths = 1, .seed = 1, .mtu = 1500 };
	list_options(list);
	optind = 0;
	opterr = 0;
	for (int option; (option = getopt_long(argc, argv, "+", list, NULL)) != -1;)
		if (!take_option(&reading, option))
			return false;
	options->command = argv + optind;
	if (options->shows_help)
		return true;
	if (!options->holds && !options->command[0])
		return complain(&reading, "no COMMAND is given; --help says what may be", "");
	if (options->far_port && !options->far_command)
		return complain(&reading, "needs a --far", "--far-port");
	return complete(&reading);
}
