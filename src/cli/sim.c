/* verbena sim: scenarios of thousands of adapters on a simulated network. This file parses the options; src/sim does
 * the work. */
#include "cli/cli.h"
#include "sim/sim.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
const char vb_sim_help[] =
	"usage: verbena sim [OPTIONS] FILE.yaml\n"
	"       verbena sim --compare [OPTIONS] FILE.yaml... [KEY=A,B,C]...\n"
	"       verbena sim --collective KIND [--sizes A..B] [OPTIONS] FILE.yaml\n"
	"       verbena sim --loggops L=2500,o=1500,g=1000,G=6,O=0,S=65535 --job FILE [--json]\n"
	"       verbena sim --job FILE [OPTIONS] FILE.yaml\n"
	"       verbena sim --keys | --gpus | --models | --collectives\n"
	"\n"
	"Simulates a network with Verbena's own engine in each of its endpoints, in\n"
	"virtual time, and reports how long each transfer took and why. The same file and\n"
	"seed give the same result on every machine, with any number of threads.\n"
	"\n"
	"  --keys            every key of a scenario, with units and defaults\n"
	"  --gpus, --models, --collectives\n"
	"                    the GPUs that hosts may have and the models that steps may train,\n"
	"                    with the source of each number; collectives and their algorithms\n"
	"  --set KEY=VALUE   replace a value of the file, as --set transport.mtu=1024;\n"
	"                    as often as wanted\n"
	"  --seed N, --threads N, --cc NAME\n"
	"                    short for --set run.seed=N, run.threads=N, transport.cc=NAME,\n"
	"                    or the variant NAME of the scenario\n"
	"  --flows FILE      a list of flows, instead of the scenario's workloads\n"
	"  --job FILE        a job, instead of the workloads: GOAL text, AICB's workload text, or a\n"
	"                    Chakra trace, by the PREFIX of its files PREFIX.0.et, PREFIX.1.et, ...\n"
	"  --groups FILE     the groups of its ranks, as ASTRA-sim has them (JSON)\n"
	"  --trace FILE      write what each rank did when, for ui.perfetto.dev, which keeps the\n"
	"                    file in the browser, or chrome://tracing\n"
	"  --loggops L=NS,o=NS,g=NS,G=NS,O=NS,S=BYTES\n"
	"                    when each rank of the job ends under LogGOPS, as LogGOPSim has it,\n"
	"                    without a network or scenario; the values above are the defaults\n"
	"  --collective KIND allreduce, all-gather, reduce-scatter, alltoall, ... of all ranks,\n"
	"                    instead of the workloads: nccl-tests' table, and the closed form\n"
	"  --sizes A..B      of that table, each twice the one before, as 8..1G (1K..64M)\n"
	"  --algorithm NAME  one that --collectives lists; left out: its first\n"
	"  --json            one JSON object; of a table an array\n"
	"  --explain job     also tell each step of the job's critical path, and what it waited for\n"
	"  --explain pfc     also explain why PAUSE did or did not fire: where, at which threshold, for\n"
	"                    whose traffic, and which senders it stopped in the end\n"
	"  --csv FILE        a line for each flow, message or operation; of --collective for each row\n"
	"  --no-alone        of several jobs do not run each by itself, too\n"
	"  --no-check        do not run a part by packets, too (run.mode: flows,\n"
	"                    formula): results and rows of tables have no error\n"
	"  --exact-check N%  in that part each message has so much of its bytes\n"
	"  --dry-run         only say what would be run, and how much memory and time it would take\n"
	"  --pcap FILE       a pcapng capture for Wireshark of the scenario's capture.links,\n"
	"  --capture LINK    or of these: \"endpoint 3 up\", \"endpoint 3 down\", \"switch 2\n"
	"                    port 5\"; as often as wanted\n"
	"  --compare         several files, or each combination of the values of some keys,\n"
	"                    in one table; with --json an array\n"
	"  --progress, --no-progress\n"
	"                    print progress on standard error: each second, or never;\n"
	"                    by default each second on a terminal, each minute elsewhere\n"
	"\n"
	"Exit status: 0; 1 when flows failed; 2 for wrong usage or a wrong scenario; 3 when\n"
	"a lossless class lost packets; 4 when the run did not end by itself (deadlock,\n"
	"livelock, a limit, an interrupt).\n";
/* clang-format on */

enum { MAX_SETTINGS = 256, MAX_CAPTURED = 1900 };

struct parsed {
	struct sim_options options;
	struct sim_setting settings[MAX_SETTINGS];
	char captured[MAX_CAPTURED];
	void (*list)(void); /* --keys and the like: what is listed instead of a run */
};

enum {
	OPTION_SET = 256,
	OPTION_SEED,
	OPTION_THREADS,
	OPTION_CC,
	OPTION_FLOWS,
	OPTION_JOB,
	OPTION_LOGGOPS,
	OPTION_GROUPS,
	OPTION_TRACE,
	OPTION_DRY_RUN,
	OPTION_NO_ALONE,
	OPTION_NO_CHECK,
	OPTION_EXACT_CHECK,
	OPTION_GPUS,
	OPTION_MODELS,
	OPTION_COLLECTIVES,
	OPTION_COLLECTIVE,
	OPTION_SIZES,
	OPTION_ALGORITHM,
	OPTION_CSV,
	OPTION_PCAP,
	OPTION_CAPTURE,
	OPTION_EXPLAIN,
	OPTION_JSON,
	OPTION_COMPARE,
	OPTION_PROGRESS,
	OPTION_NO_PROGRESS,
	OPTION_KEYS
};

static const struct option long_options[] = {
	{ "set", required_argument, NULL, OPTION_SET },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "cc", required_argument, NULL, OPTION_CC },
	{ "flows", required_argument, NULL, OPTION_FLOWS },
	{ "job", required_argument, NULL, OPTION_JOB },
	{ "loggops", required_argument, NULL, OPTION_LOGGOPS },
	{ "groups", required_argument, NULL, OPTION_GROUPS },
	{ "trace", required_argument, NULL, OPTION_TRACE },
	{ "dry-run", no_argument, NULL, OPTION_DRY_RUN },
	{ "no-alone", no_argument, NULL, OPTION_NO_ALONE },
	{ "no-check", no_argument, NULL, OPTION_NO_CHECK },
	{ "exact-check", required_argument, NULL, OPTION_EXACT_CHECK },
	{ "gpus", no_argument, NULL, OPTION_GPUS },
	{ "models", no_argument, NULL, OPTION_MODELS },
	{ "collectives", no_argument, NULL, OPTION_COLLECTIVES },
	{ "collective", required_argument, NULL, OPTION_COLLECTIVE },
	{ "sizes", required_argument, NULL, OPTION_SIZES },
	{ "algorithm", required_argument, NULL, OPTION_ALGORITHM },
	{ "csv", required_argument, NULL, OPTION_CSV },
	{ "pcap", required_argument, NULL, OPTION_PCAP },
	{ "capture", required_argument, NULL, OPTION_CAPTURE },
	{ "explain", required_argument, NULL, OPTION_EXPLAIN },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "compare", no_argument, NULL, OPTION_COMPARE },
	{ "progress", no_argument, NULL, OPTION_PROGRESS },
	{ "no-progress", no_argument, NULL, OPTION_NO_PROGRESS },
	{ "keys", no_argument, NULL, OPTION_KEYS },
	{ NULL, 0, NULL, 0 },
};

static int add(const struct vb_command *self, struct parsed *parsed, const char *key, const char *value)
{
	if (parsed->options.setting_count == MAX_SETTINGS)
		return vb_usage_error(self, "that many settings belong in a file");
	parsed->settings[parsed->options.setting_count++] = (struct sim_setting){ key, value };
	return VB_EXIT_OK;
}

static int add_set(const struct vb_command *self, struct parsed *parsed, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals)
		return vb_usage_error(self, "--set takes KEY=VALUE, not '%s'", text);
	*equals = 0;
	return add(self, parsed, text, equals + 1);
}

static int add_link(const struct vb_command *self, struct parsed *parsed, const char *link)
{
	size_t used = strlen(parsed->captured);

	if (used + strlen(link) + 2 > sizeof(parsed->captured))
		return vb_usage_error(self, "that many links belong in a file");
	snprintf(parsed->captured + used, sizeof(parsed->captured) - used, "%s%s", used ? "," : "", link);
	return VB_EXIT_OK;
}

static int take(const struct vb_command *self, struct parsed *parsed, int option)
{
	struct sim_options *options = &parsed->options;

	switch (option) {
	case OPTION_SET:
		return add_set(self, parsed, optarg);
	case OPTION_SEED:
		return add(self, parsed, "run.seed", optarg);
	case OPTION_THREADS:
		return add(self, parsed, "run.threads", optarg);
	case OPTION_CC:
		return add(self, parsed, "transport.cc", optarg);
	case OPTION_CAPTURE:
		return add_link(self, parsed, optarg);
	case OPTION_FLOWS:
		options->flows = optarg;
		return VB_EXIT_OK;
	case OPTION_JOB:
		options->job = optarg;
		return VB_EXIT_OK;
	case OPTION_LOGGOPS:
		options->loggops = optarg;
		return VB_EXIT_OK;
	case OPTION_GROUPS:
		options->groups = optarg;
		return VB_EXIT_OK;
	case OPTION_TRACE:
		options->trace = optarg;
		return VB_EXIT_OK;
	case OPTION_DRY_RUN:
		options->is_dry = true;
		return VB_EXIT_OK;
	case OPTION_NO_ALONE:
		options->skips_alone = true;
		return VB_EXIT_OK;
	case OPTION_NO_CHECK:
		options->skips_check = true;
		return VB_EXIT_OK;
	case OPTION_EXACT_CHECK:
		options->exact_check = optarg;
		return VB_EXIT_OK;
	case OPTION_GPUS:
		parsed->list = sim_print_gpus;
		return VB_EXIT_OK;
	case OPTION_MODELS:
		parsed->list = sim_print_models;
		return VB_EXIT_OK;
	case OPTION_COLLECTIVES:
		parsed->list = sim_print_collectives;
		return VB_EXIT_OK;
	case OPTION_COLLECTIVE:
		options->collective.kind = optarg;
		return VB_EXIT_OK;
	case OPTION_SIZES:
		options->collective.sizes = optarg;
		return VB_EXIT_OK;
	case OPTION_ALGORITHM:
		options->collective.algorithm = optarg;
		return VB_EXIT_OK;
	case OPTION_CSV:
		options->csv = optarg;
		return VB_EXIT_OK;
	case OPTION_PCAP:
		options->pcap = optarg;
		return VB_EXIT_OK;
	case OPTION_EXPLAIN:
		options->explains_pfc |= strcmp(optarg, "pfc") == 0;
		options->explains_job |= strcmp(optarg, "job") == 0;
		return strcmp(optarg, "pfc") == 0 || strcmp(optarg, "job") == 0
			       ? VB_EXIT_OK
			       : vb_usage_error(self, "--explain explains pfc or job, not '%s'", optarg);
	case OPTION_JSON:
		options->is_json = true;
		return VB_EXIT_OK;
	case OPTION_COMPARE:
		options->is_comparison = true;
		return VB_EXIT_OK;
	case OPTION_PROGRESS:
	case OPTION_NO_PROGRESS:
		options->progress_s = option == OPTION_PROGRESS ? 1 : 0;
		return VB_EXIT_OK;
	case OPTION_KEYS:
		parsed->list = sim_print_keys;
		return VB_EXIT_OK;
	default:
		return vb_option_error(self);
	}
}

static int check_loggops(const struct vb_command *self, const struct sim_options *options)
{
	if (!options->job)
		return vb_usage_error(self, "--loggops needs --job FILE");
	if (options->argument_count > 0)
		return vb_usage_error(self, "--loggops has no network, and takes no scenario");
	const struct sim_collective *collective = &options->collective;
	const bool is_of_network = options->is_comparison || options->flows || options->pcap || options->explains_pfc ||
				   options->skips_alone || options->is_dry || options->setting_count > 0 ||
				   collective->kind || collective->sizes || collective->algorithm;
	if (is_of_network || options->csv || options->trace || options->groups || options->explains_job)
		return vb_usage_error(self, "--loggops takes --job and --json alone");
	return VB_EXIT_OK;
}

static int parse(const struct vb_command *self, struct parsed *parsed, int argc, char **argv)
{
	struct sim_options *options = &parsed->options;
	int option, status = VB_EXIT_OK;

	options->settings = parsed->settings;
	options->is_terminal = isatty(STDERR_FILENO);
	options->progress_s = options->is_terminal ? 1 : 60;
	while (!status && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		status = take(self, parsed, option);
	if (status || parsed->list)
		return status;
	if (*parsed->captured)
		status = add(self, parsed, "capture.links", parsed->captured);
	options->arguments = (const char *const *)argv + optind;
	options->argument_count = (unsigned)(argc - optind);
	if (!status && options->loggops)
		return check_loggops(self, options);
	if (!status && options->groups && !options->job)
		return vb_usage_error(self, "--groups is of --job");
	if (!status && (options->trace || options->explains_job) &&
		(options->flows || options->is_comparison || options->collective.kind))
		return vb_usage_error(self, "--trace and --explain job are of one job");
	if (!status && options->job && (options->flows || options->is_comparison || options->collective.kind))
		return vb_usage_error(self, "--job takes no --flows, --compare and --collective");
	if (!status && (options->argument_count < 1 || (options->argument_count > 1 && !options->is_comparison)))
		return vb_usage_error(self, "takes one scenario, or --compare and several");
	if (options->is_comparison && (options->csv || options->pcap || options->explains_pfc))
		return vb_usage_error(self, "--csv, --pcap and --explain are of one run, not of --compare");
	const struct sim_collective *collective = &options->collective;
	if (!collective->kind && (collective->sizes || collective->algorithm))
		return vb_usage_error(self, "--sizes and --algorithm are of --collective");
	if (collective->kind && (options->is_comparison || options->pcap || options->explains_pfc || options->flows))
		return vb_usage_error(self, "--collective takes no --compare, --pcap, --explain and --flows");
	if (options->is_dry && options->is_json)
		return vb_usage_error(self, "--dry-run prints text: it takes no --json");
	return status;
}

int vb_sim_main(const struct vb_command *self, int argc, char **argv)
{
	struct parsed *parsed = calloc(1, sizeof(*parsed));

	if (!parsed)
		return VB_EXIT_BAD_NEWS;
	int status = parse(self, parsed, argc, argv);
	if (!status && parsed->list)
		parsed->list();
	else if (!status)
		status = sim_run(&parsed->options);
	free(parsed);
	return status;
}
