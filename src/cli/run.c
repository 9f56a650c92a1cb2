/* verbena run: puts Verbena's library in front of the system's and becomes the program. It sets LD_LIBRARY_PATH,
 * LD_PRELOAD and the VERBENA_* variables of its options, checks first what can be checked, and writes no file. The exit
 * status is the program's; its own failures are 125, 126 and 127, as with env(1) and nice(1). */
#include "cli/cli.h"
#include "cli/program.h"
#include "host/call_names.h"
#include "host/settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_OURS = 125, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* clang-format off */
const char vb_run_help[] =
	"usage: verbena run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Runs PROGRAM with Verbena's libibverbs and librdmacm in place of the system's.\n"
	"Programs that it starts get them too.\n"
	"\n"
	"  --pcap FILE      write what each process sends and receives to FILE, for\n"
	"                   Wireshark, connection management included; %p in it becomes\n"
	"                   the process id\n"
	"  --stats          print a summary of paths and counters on stderr when a process\n"
	"                   ends, however it ends\n"
	"  --stats-json FILE\n"
	"                   append that summary to FILE, a line of JSON for each process,\n"
	"                   with every counter; %p in FILE becomes the process id\n"
	"  --faults SPEC    inject faults into received packets, for example\n"
	"                   drop=1%,dup=1%,reorder=1%,corrupt=1%,delay=1ms,seed=7, also\n"
	"                   burst=8,late=1%,late-by=1ms,path=3,if=eth0; in a\n"
	"                   process that only sends, they hit the acknowledgements; or make\n"
	"                   calls, events and connections fail:\n"
	"                   verb:ibv_reg_mr:nth=3:ENOMEM,event:port_down:after=2s,cm:reject:nth=1\n"
	"  --faults list    print the names of calls, events and errors that SPEC can have\n"
	"  --rsockets       give the program rsockets instead of TCP and UDP sockets; not for\n"
	"                   servers that fork for each connection\n"
	"  --no-preload     do not set LD_PRELOAD. Programs that read /sys or /dev\n"
	"                   themselves then see no devices, and a libibverbs that comes\n"
	"                   with the program (as in Python wheels) is not replaced\n"
	"  -h, --help       print this\n"
	"\n"
	"Other settings are environment variables; verbena doctor lists them.\n"
	"\n"
	"A statically linked program loads no library and cannot be served. With a\n"
	"setuid program such as sudo, turn the order around: sudo verbena run -- PROGRAM.\n"
	"\n"
	"Exit status: PROGRAM's; 127 if it is not found, 126 if it cannot be run,\n"
	"125 if verbena run itself fails.\n";
/* clang-format on */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list arguments;

	fputs("verbena run: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static bool set_variable(const char *name, const char *value)
{
	if (setenv(name, value, 1) == 0)
		return true;
	say("cannot set %s: %s", name, strerror(errno));
	return false;
}

/* Sets NAME=first OLD VALUE, the separator between. */
static bool put_in_front(const char *name, const char *first, char separator)
{
	const char *before = getenv(name);
	char *value;

	if (!before || !*before)
		return set_variable(name, first);
	if (asprintf(&value, "%s%c%s", first, separator, before) < 0)
		return false;
	bool is_set = set_variable(name, value);
	free(value);
	return is_set;
}

/* The loader splits its lists at these characters and has no escape. */
static bool is_listable(const char *path, const char *separators)
{
	if (!path[strcspn(path, separators)])
		return true;
	say("%s: the dynamic loader cannot be given a path with a colon, semicolon or space; move Verbena elsewhere",
		path);
	return false;
}

static bool is_readable(const char *path, const struct vb_places *places)
{
	if (access(path, R_OK) == 0)
		return true;
	say("%s: %s; %s", path, strerror(errno),
		places->is_installed ? "is Verbena installed completely?" : "build it first: make");
	return false;
}

/* The libraries to preload into the program. */
struct preloads {
	bool usual, rsockets;
};

static bool set_preload(const char *path, const struct vb_places *places)
{
	return is_readable(path, places) && is_listable(path, ": ") && put_in_front("LD_PRELOAD", path, ':');
}

/* LD_LIBRARY_PATH does not replace a copy that a program brings under another name, as Python wheels do, or finds by
 * DT_RPATH. A preloaded library comes before both. */
static bool set_usual_preloads(const struct vb_places *places)
{
	static const char *const names[] = { "librdmacm.so.1", "libibverbs.so.1" };
	char library[PATH_MAX + 32];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(library, sizeof(library), "%s/%s", places->libraries, names[i]);
		if (!set_preload(library, places))
			return false;
	}
	return !VB_HAS_PRELOADS || set_preload(places->preload, places);
}

/* AddressSanitizer wants to be the first library. Ours come before it and do no harm there, for they define no function
 * that it takes over and call it by the names that it has taken. Other settings of the user's stay, and win. */
static bool set_asan(void)
{
	return put_in_front("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
}

/* ThreadSanitizer sees what our libraries copy, and not their atomics, by which they order it. */
static bool set_tsan(void)
{
	return put_in_front("TSAN_OPTIONS", "ignore_noninstrumented_modules=1", ':');
}

/* At exit our threads run and a program may leave connections open: valgrind calls that possibly lost. It runs one
 * thread at a time, and a program that polls would keep ours from their turn. */
static bool set_valgrind(const struct vb_places *places)
{
	char *value;

	if (strchr(places->libraries, ' ')) /* no option can have one there */
		return true;
	if (asprintf(&value, "--fair-sched=try --suppressions=%s/valgrind.supp", places->libraries) < 0)
		return false;
	bool is_set = put_in_front("VALGRIND_OPTS", value, ' ');
	free(value);
	return is_set;
}

static bool set_loader_paths(const struct preloads *with)
{
	struct vb_places places;
	char library[PATH_MAX + 32];

	int error = vb_places_find(&places);
	if (error) {
		say("cannot find where Verbena lies: %s", vb_places_fault(error));
		return false;
	}
	snprintf(library, sizeof(library), "%s/libibverbs.so.1", places.libraries);
	if (!is_readable(library, &places) || !is_listable(places.libraries, ":;") ||
		!put_in_front("LD_LIBRARY_PATH", places.libraries, ':'))
		return false;
	return (!with->rsockets || set_preload(places.rsockets, &places)) &&
	       (!with->usual || set_usual_preloads(&places)) && set_asan() && set_tsan() && set_valgrind(&places);
}

/* A file is relative to the user's directory, though the program may change its own. */
static bool set_file(const char *variable, const char *file)
{
	char directory[PATH_MAX], *path;

	if (file[0] == '/')
		return set_variable(variable, file);
	if (!getcwd(directory, sizeof(directory)) || asprintf(&path, "%s/%s", directory, file) < 0) {
		say("%s: %s", file, strerror(errno));
		return false;
	}
	bool is_set = set_variable(variable, path);
	free(path);
	return is_set;
}

/* A malformed setting is reported once here, not by every process of the program. */
static bool settings_are_good(void)
{
	struct vb_settings settings;
	char why[512];

	if (vb_settings_parse(&settings, environ, why, sizeof(why)) == 0)
		return true;
	say("%s", why);
	return false;
}

/* Returns 0 if the program can be run, else the exit status. */
static int check_program(const char *command)
{
	struct vb_program program;

	vb_program_inspect(command, &program);
	switch (program.kind) {
	case VB_PROGRAM_MISSING:
		say("%s: not found%s", command, strchr(command, '/') ? "" : " on PATH");
		return EXIT_NOT_FOUND;
	case VB_PROGRAM_NOT_EXECUTABLE:
		say("%s: not an executable file for this user", program.path);
		return EXIT_CANNOT_RUN;
	case VB_PROGRAM_PRIVILEGED:
		say("%s is setuid, setgid or has file capabilities: the dynamic loader would ignore Verbena.\n"
		    "With sudo and the like, turn the order around: sudo verbena run -- PROGRAM",
			program.path);
		return EXIT_CANNOT_RUN;
	case VB_PROGRAM_STATIC:
		say("warning: %s is statically linked: it cannot be served (dynamic programs that it starts can)",
			program.path);
		return 0;
	case VB_PROGRAM_FOREIGN:
		say("warning: %s is of another architecture than Verbena's library: it cannot be served", program.path);
		return 0;
	case VB_PROGRAM_DYNAMIC:
		return 0;
	}
	return 0;
}

static int run(const struct preloads *with, char **command)
{
	int status = check_program(command[0]);
	if (status)
		return status;
	if (!settings_are_good() || !set_loader_paths(with))
		return EXIT_OURS;
	execvp(command[0], command);
	say("%s: %s", command[0], strerror(errno));
	return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* The names in the words of a specification. */
static int list_faults(void)
{
#define X(name) puts("verb:" #name);
	VB_CALL_NAMES(X)
#undef X
#define X(name, type) puts("event:" #name);
	VB_EVENT_NAMES(X)
#undef X
	puts("cm:reject\ncm:timeout\ncm:disconnect");
#define X(name) puts(#name);
	VB_ERROR_NAMES(X)
#undef X
	return VB_EXIT_OK;
}

int vb_run_main(const struct vb_command *self, int argc, char **argv)
{
	enum { PCAP = 1, STATS, STATS_JSON, FAULTS, NO_PRELOAD, RSOCKETS };
	static const struct option options[] = {
		{ "pcap", required_argument, NULL, PCAP },
		{ "stats", no_argument, NULL, STATS },
		{ "stats-json", required_argument, NULL, STATS_JSON },
		{ "faults", required_argument, NULL, FAULTS },
		{ "no-preload", no_argument, NULL, NO_PRELOAD },
		{ "rsockets", no_argument, NULL, RSOCKETS },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct preloads with = { .usual = true };
	bool is_set = true;
	int option, at = 0;

	/* "+": arguments after the program's name are the program's. */
	while ((option = getopt_long(argc, argv, "+h", options, &at)) != -1) {
		if (optarg && strcmp(optarg, "--") == 0) {
			/* The value is missing, and getopt took the "--" that ends the options for it. */
			vb_usage_error(self, "--%s takes a value, and '--' is none", options[at].name);
			return EXIT_OURS;
		}
		switch (option) {
		case PCAP:
			is_set &= set_file("VERBENA_PCAP", optarg);
			break;
		case STATS:
			is_set &= set_variable("VERBENA_STATS", "1");
			break;
		case STATS_JSON:
			is_set &= set_file("VERBENA_STATS_JSON", optarg);
			break;
		case FAULTS:
			if (strcmp(optarg, "list") == 0)
				return list_faults();
			is_set &= set_variable("VERBENA_FAULTS", optarg);
			break;
		case NO_PRELOAD:
			with.usual = false;
			break;
		case RSOCKETS:
			with.rsockets = true;
			break;
		case 'h':
			fputs(self->help, stdout);
			return VB_EXIT_OK;
		default:
			vb_option_error(self);
			return EXIT_OURS;
		}
	}
	if (!is_set)
		return EXIT_OURS;
	if (optind == argc) {
		vb_usage_error(self, "which program? For example: verbena run -- ibv_devinfo");
		return EXIT_OURS;
	}
	return run(&with, argv + optind);
}
