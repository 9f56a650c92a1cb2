/* verbena broker: the broker in the foreground. Programs start a broker by themselves. One that root started beforehand
 * serves the programs of all users of the machine. This file only finds and executes it. */
#include "cli/cli.h"
#include "host/settings.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
const char vb_broker_help[] =
	"usage: verbena broker [--share] [--trust USER]...\n"
	"\n"
	"Runs the broker of this network namespace in the foreground, until it is\n"
	"interrupted. The broker holds UDP port 4791 and shares it among processes; it\n"
	"does not touch their data. A program starts a broker by itself if there is none,\n"
	"and that broker ends after its last client.\n"
	"\n"
	"Programs accept a broker of their own user or of root. For several users on one\n"
	"machine run this as root, for example as a service. A forwarder process forwards\n"
	"each datagram to processes of other users, so that they cannot disturb each other.\n"
	"\n"
	"With VERBENA_LOG=info it reports each process that comes or goes.\n"
	"\n"
	"  --share        for a user who is not root: serve the programs of all users that\n"
	"                 set VERBENA_BROKER=any, not only those of this user and root\n"
	"  --trust USER   a name or number: give the processes of USER sockets of the port,\n"
	"                 which saves a copy; each of them can then disturb all others\n";
/* clang-format on */

/* The broker reads VERBENA_LOG and VERBENA_BROKER too. */
static bool settings_are_good(void)
{
	struct vb_settings settings;
	char why[512];

	if (vb_settings_parse(&settings, environ, why, sizeof(why)) == 0)
		return true;
	fprintf(stderr, "verbena broker: %s\n", why);
	return false;
}

int vb_broker_main(const struct vb_command *self, int argc, char **argv)
{
	enum { MOST = 64 };
	char *arguments[MOST + 2] = { "verbena-broker", "--foreground" };
	struct vb_places places;

	if (argc > MOST)
		return vb_usage_error(self, "that many users? trust none, or run programs as one");

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--share") != 0 && (strcmp(argv[i], "--trust") != 0 || ++i == argc))
			return vb_usage_error(self, "takes --share and --trust USER alone");
	if (!settings_are_good())
		return VB_EXIT_BAD_NEWS;
	memcpy(arguments + 2, argv + 1, (size_t)argc * sizeof(*arguments)); /* with the NULL at the end */
	int error = vb_places_find(&places);
	if (error) {
		fprintf(stderr, "verbena broker: cannot find where Verbena lies: %s\n", vb_places_fault(error));
		return VB_EXIT_BAD_NEWS;
	}
	execv(places.broker, arguments);
	fprintf(stderr, "verbena broker: %s: %s\n", places.broker, strerror(errno));
	return VB_EXIT_BAD_NEWS;
}
