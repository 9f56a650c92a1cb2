/* verbena broker: the broker in the foreground. Programs start one by themselves; started by root beforehand it serves
 * the programs of all users of the machine. Here only the way to the executable. */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
const char vb_broker_help[] =
	"usage: verbena broker\n"
	"\n"
	"Runs the broker of this network namespace in the foreground, until it is\n"
	"interrupted. The broker holds UDP port 4791 and shares it among processes; it\n"
	"does not touch their data. A program starts one by itself when there is none,\n"
	"and that one leaves after its last client.\n"
	"\n"
	"Programs accept a broker of their own user or of root. For several users on one\n"
	"machine run this as root, for example as a service. Users who share a broker\n"
	"trust each other with availability.\n";
/* clang-format on */

int vb_broker_main(const struct vb_command *self, int argc, char **argv)
{
	char *const arguments[] = { "verbena-broker", "--foreground", NULL };
	struct vb_places places;

	if (argc > 1)
		return vb_usage_error(self, "takes no arguments");
	int error = vb_places_find(&places);
	if (error) {
		fprintf(stderr, "verbena broker: cannot find where Verbena lies: %s\n", strerror(-error));
		return VB_EXIT_BAD_NEWS;
	}
	execv(places.broker, arguments);
	fprintf(stderr, "verbena broker: %s: %s\n", places.broker, strerror(errno));
	return VB_EXIT_BAD_NEWS;
}
