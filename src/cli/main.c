/* The command `verbena`: a table of subcommands. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/words.h"

static int version_main(const struct vb_command *self, int argc, char **argv);
static int help_main(const struct vb_command *self, int argc, char **argv);

static const struct vb_command commands[] = {
	{ "run", "run a program on Verbena", vb_run_help, vb_run_main },
	{ "devices", "list the RDMA devices that programs see", vb_devices_help, vb_devices_main },
	{ "doctor", "find what would stop or slow Verbena here, or on the path to a host", vb_doctor_help,
		vb_doctor_main },
	{ "broker", "run the broker in the foreground, for all users of this machine", vb_broker_help, vb_broker_main },
	{ "sim", "simulate thousands of adapters on a network", vb_sim_help, vb_sim_main },
	{ "version", "print the version", "usage: verbena version\n", version_main },
	{ "help", "explain a command", "usage: verbena help [COMMAND]\n", help_main },
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static const struct vb_command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static void print_overview(FILE *out)
{
	fprintf(out,
		"usage: verbena COMMAND [ARGUMENTS]\n\n"
		"RDMA for machines without RDMA hardware: unmodified programs that use libibverbs run over UDP.\n\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\n`verbena COMMAND --help` explains a command; `man verbena` has the rest.\n");
}

static int version_main(const struct vb_command *self, int argc, char **argv)
{
	if (argc > 1)
		return vb_usage_error(self, "takes no arguments");
	puts("verbena " VB_VERSION);
	return VB_EXIT_OK;
}

static int help_main(const struct vb_command *self, int argc, char **argv)
{
	if (argc > 2)
		return vb_usage_error(self, "takes one command");
	if (argc < 2) {
		print_overview(stdout);
		return VB_EXIT_OK;
	}
	const struct vb_command *command = find_command(argv[1]);
	if (!command)
		return vb_usage_error(self, "there is no command '%s'", argv[1]);
	fputs(command->help, stdout);
	return VB_EXIT_OK;
}

static bool is_similar(const char *name, const char *command)
{
	return vb_word_distance(name, command) <= 2 || (*name && strncmp(name, command, strlen(name)) == 0);
}

static int unknown_command(const char *name)
{
	bool has_suggestion = false;

	fprintf(stderr, "verbena: there is no command '%s'", name);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (is_similar(name, commands[i].name)) {
			fprintf(stderr, "%s'%s'", has_suggestion ? " or " : "; did you mean ", commands[i].name);
			has_suggestion = true;
		}
	fputs(has_suggestion ? "?\n" : "\n", stderr);
	if (!has_suggestion)
		fprintf(stderr, "To run a program: verbena run -- %s\n", name);
	fputs("All commands: verbena help\n", stderr);
	return VB_EXIT_USAGE;
}

int vb_usage_error(const struct vb_command *self, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "verbena %s: ", self->name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return vb_option_error(self);
}

int vb_option_error(const struct vb_command *self)
{
	fprintf(stderr, "See: verbena %s --help\n", self->name);
	return VB_EXIT_USAGE;
}

static bool is_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(stderr);
		return VB_EXIT_USAGE;
	}
	if (is_help(argv[1])) {
		print_overview(stdout);
		return VB_EXIT_OK;
	}
	const char *name = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
	const struct vb_command *command = find_command(name);
	if (!command)
		return unknown_command(name);
	if (argc > 2 && is_help(argv[2])) {
		fputs(command->help, stdout);
		return VB_EXIT_OK;
	}
	char full_name[32];
	snprintf(full_name, sizeof(full_name), "verbena %s", command->name);
	argv[1] = full_name; /* getopt's messages begin with it */
	int status = command->main(command, argc - 1, argv + 1);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("verbena: writing the output");
		return VB_EXIT_BAD_NEWS;
	}
	return status;
}
