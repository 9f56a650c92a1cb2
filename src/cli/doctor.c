/* verbena doctor: reports what this machine offers, the settings in use, what would stop or slow Verbena, and the
 * cure; with a host, the same about the path to it. Changes nothing: a broker that it had to start ends by itself. */
#include "cli/doctor.h"
#include "cli/cli.h"
#include "os/json.h"

#include <getopt.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* clang-format off */
const char vb_doctor_help[] =
	"usage: verbena doctor [--json]\n"
	"       verbena doctor [--json] [-4|-6] [--timeout SECONDS] HOST\n"
	"\n"
	"Without HOST it checks this machine: what it offers, what would stop or slow\n"
	"Verbena, and the cure; and it prints the settings in use.\n"
	"With HOST it checks the path: whether UDP port 4791 is open both ways, which\n"
	"implementation answers there (Verbena, Linux rxe or a NIC, or none), round trip,\n"
	"loss and MTU. HOST is a name or an address; a link-local address needs its\n"
	"interface: fe80::1%eth0.\n"
	"\n"
	"  --json               print JSON\n"
	"  -4, -6               use HOST's IPv4 or IPv6 address\n"
	"  --timeout SECONDS    how long to wait for an answer (default 1)\n"
	"\n"
	"Each line begins with ok, slow (works, but worse than it could) or stop.\n"
	"Exit status: 0 Verbena would run, 1 something stops it, 2 wrong usage.\n";
/* clang-format on */

struct doctor {
	struct vb_findings findings;
	struct vb_settings settings;
	bool is_json;
	const char *host; /* NULL: this machine */
	int family;
	unsigned timeout_ms;
};

static void unset_all(void)
{
	static const char prefix[] = "VERBENA_";
	char name[256];

	for (char **entry = environ; *entry;) {
		int length = (int)strcspn(*entry, "=");
		if (strncmp(*entry, prefix, strlen(prefix)) == 0 &&
			snprintf(name, sizeof(name), "%.*s", length, *entry) < (int)sizeof(name) && unsetenv(name) == 0)
			entry = environ; /* setenv may have moved it */
		else
			entry++;
	}
}

/* Malformed settings are a finding; the other checks then use the defaults. */
static void read_settings(struct doctor *doctor)
{
	char why[512];

	if (vb_settings_parse(&doctor->settings, environ, why, sizeof(why)) == 0)
		return;
	vb_finding_add(&doctor->findings, VB_FINDING_STOP, "settings", "%s", why);
	vb_finding_cure(&doctor->findings, "correct the variable, or unset it; what follows is with the defaults");
	unset_all();
	vb_settings_parse(&doctor->settings, environ, why, sizeof(why));
}

static void print_settings(const struct vb_settings *settings)
{
	int width = 0;

	for (int i = 0; i < VB_SETTING_COUNT; i++)
		if ((int)strlen(settings->text[i]) > width)
			width = (int)strlen(settings->text[i]);
	printf("\nSettings in use (* set in the environment):\n");
	for (int i = 0; i < VB_SETTING_COUNT; i++) {
		const struct vb_setting_row *row = &vb_setting_rows[i];
		printf("  %c VERBENA_%-9s %-*s  %s\n", settings->is_given[i] ? '*' : ' ', row->name, width,
			settings->text[i], row->meaning);
	}
}

static void print_settings_json(const struct vb_settings *settings)
{
	printf("[");
	for (int i = 0; i < VB_SETTING_COUNT; i++) {
		const struct vb_setting_row *row = &vb_setting_rows[i];
		const char *const fields[][2] = { { "value", settings->text[i] }, { "default", row->fallback },
			{ "allowed", row->allowed }, { "meaning", row->meaning } };
		printf("%s\n    {\"name\": \"VERBENA_%s\", \"given\": %s", i ? "," : "", row->name,
			settings->is_given[i] ? "true" : "false");
		for (size_t field = 0; field < sizeof(fields) / sizeof(fields[0]); field++) {
			printf(", \"%s\": ", fields[field][0]);
			vb_json_string(stdout, fields[field][1]);
		}
		printf("}");
	}
	printf("\n  ]");
}

static void print_json(const struct doctor *doctor)
{
	printf("{\n  \"version\": \"%s\",\n  \"host\": ", VB_VERSION);
	if (doctor->host)
		vb_json_string(stdout, doctor->host);
	else
		printf("null");
	printf(",\n  \"verdict\": \"%s\",\n  \"findings\": ", vb_findings_verdict(&doctor->findings));
	vb_findings_print_json(&doctor->findings, stdout);
	if (!doctor->host) {
		printf(",\n  \"settings\": ");
		print_settings_json(&doctor->settings);
	}
	printf("\n}\n");
}

static void print_verdict(const struct doctor *doctor)
{
	size_t stops = vb_findings_count(&doctor->findings, VB_FINDING_STOP);
	size_t slows = vb_findings_count(&doctor->findings, VB_FINDING_SLOW);

	if (stops)
		printf("\n%s: see the line%s with stop.\n",
			doctor->host ? "This host cannot be used as it is" : "Verbena would not run here",
			stops > 1 ? "s" : "");
	else if (slows)
		printf("\n%s; to make it better see the line%s with slow.\n",
			doctor->host ? "This host can be used" : "Verbena runs here", slows > 1 ? "s" : "");
	else
		printf("\n%s.\n", doctor->host ? "This host can be used" : "Verbena runs here");
}

static void print_text(const struct doctor *doctor)
{
	const struct passwd *user = getpwuid(geteuid());

	if (doctor->host)
		printf("Verbena %s, from here to %s:\n", VB_VERSION, doctor->host);
	else
		printf("Verbena %s on this machine, as %s:\n", VB_VERSION, user ? user->pw_name : "this user");
	vb_findings_print(&doctor->findings, stdout);
	if (!doctor->host)
		print_settings(&doctor->settings);
	print_verdict(doctor);
}

static void examine_machine(struct doctor *doctor)
{
	vb_check_files(&doctor->findings, &doctor->settings);
	vb_check_kernel(&doctor->findings, &doctor->settings);
	vb_check_local(&doctor->findings, &doctor->settings);
	vb_check_port(&doctor->findings, &doctor->settings);
	vb_check_network(&doctor->findings, &doctor->settings);
	vb_check_machine(&doctor->findings, &doctor->settings);
}

static bool parse_timeout(const char *text, unsigned *timeout_ms)
{
	char *end;

	double seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.01 && seconds <= 60))
		return false;
	*timeout_ms = (unsigned)(seconds * 1000);
	return true;
}

int vb_doctor_main(const struct vb_command *self, int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
		{ "timeout", required_argument, NULL, 't' }, { "help", no_argument, NULL, 'h' }, { 0 } };
	static struct doctor doctor = { .family = AF_UNSPEC, .timeout_ms = 1000 };
	int option;

	while ((option = getopt_long(argc, argv, "46h", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			doctor.is_json = true;
			break;
		case '4':
			doctor.family = AF_INET;
			break;
		case '6':
			doctor.family = AF_INET6;
			break;
		case 't':
			if (!parse_timeout(optarg, &doctor.timeout_ms))
				return vb_usage_error(self, "--timeout takes seconds, 0.01 to 60, not '%s'", optarg);
			break;
		case 'h':
			fputs(self->help, stdout);
			return VB_EXIT_OK;
		default:
			return vb_option_error(self);
		}
	}
	if (argc - optind > 1)
		return vb_usage_error(self, "takes one host");
	doctor.host = argv[optind];
	read_settings(&doctor);
	if (doctor.host)
		vb_check_host(&doctor.findings, &doctor.settings, doctor.host, doctor.family, doctor.timeout_ms);
	else
		examine_machine(&doctor);
	if (doctor.is_json)
		print_json(&doctor);
	else
		print_text(&doctor);
	return vb_findings_count(&doctor.findings, VB_FINDING_STOP) ? VB_EXIT_BAD_NEWS : VB_EXIT_OK;
}
