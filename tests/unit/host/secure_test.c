/* A set-user-ID program with another user's environment: this very program, as a copy of root's that nobody runs. It
 * obeys what is harmless, runs no other broker, writes no file of the environment's choice, and says so. Skipped
 * without root, or where set-user-ID bits are of no use. The argument is the directory of verbena-broker. */
#include "../namespace.h"
#include "../unit.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "connected.h"

#define NOBODY 65534
#define PROBE  "--probe"

static char directory[] = "/var/tmp/verbena_secure_XXXXXX";
static const char *broker_directory;
static bool is_able;

static const struct vb_device_sink sink = { NULL, on_port, on_gid_change, NULL };

/* ---- The set-user-ID program ------------------------------------------------------------------------------------- */

enum { PROBE_IS_GOOD = 0, PROBE_IS_NOT_SECURE = 10, PROBE_FAILED = 11 };

static int probe(void)
{
	struct vb_device *device;

	if (!getauxval(AT_SECURE))
		return PROBE_IS_NOT_SECURE;
	if (vb_device_open("vb_lo", &sink, &device) < 0)
		return PROBE_FAILED;
	vb_device_close(device);
	return PROBE_IS_GOOD;
}

/* ---- Who runs it ------------------------------------------------------------------------------------------------- */

static const char *path_of(const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void copy(const char *from, const char *to, mode_t mode)
{
	char bytes[65536];
	ssize_t length;
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(in >= 0 && out >= 0);
	while ((length = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)length), length);
	assert_int_equal(fchmod(out, mode), 0);
	close(in);
	close(out);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void read_file(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(text, 1, size - 1, file) : 0;

	text[length] = '\0';
	if (file)
		fclose(file);
}

/* Root's: the program and the broker beside it, and a file that nobody may write. The user's: a broker that leaves a
 * mark. */
static void lay_out(void)
{
	char script[600];

	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0755), 0);
	copy("/proc/self/exe", path_of("program"), 04755);
	snprintf(script, sizeof(script), "%s/verbena-broker", broker_directory);
	copy(script, path_of("verbena-broker"), 0755);
	write_file(path_of("precious"), "precious", 0600);
	assert_int_equal(mkdir(path_of("mine"), 0755), 0);
	snprintf(script, sizeof(script), "#!/bin/sh\nid -u >%s/mine/mark\n", directory);
	write_file(path_of("mine/verbena-broker"), script, 0755);
	assert_int_equal(chown(path_of("mine"), NOBODY, NOBODY), 0);
}

static int clean_up(void **state)
{
	static const char *const names[] = { "program", "verbena-broker", "precious", "said", "mine/mark",
		"mine/verbena-broker" };

	for (unsigned i = 0; i < COUNT_OF(names); i++)
		unlink(path_of(names[i]));
	rmdir(path_of("mine"));
	rmdir(directory);
	return 0;
}

static _Noreturn void run_as_nobody(void)
{
	char libexec[300], pcap[300];
	char *arguments[] = { (char *)"program", (char *)PROBE, NULL };
	char *environment[] = { libexec, pcap, (char *)"VERBENA_LOG=info", (char *)"VERBENA_STATS=1", NULL };
	const char *program = path_of("program");
	int said = open(path_of("said"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	snprintf(libexec, sizeof(libexec), "VERBENA_LIBEXEC=%s/mine", directory);
	snprintf(pcap, sizeof(pcap), "VERBENA_PCAP=%s/precious", directory);
	if (dup2(said, STDERR_FILENO) < 0 || setgid(NOBODY) || setuid(NOBODY))
		_exit(PROBE_FAILED);
	execve(program, arguments, environment);
	_exit(PROBE_FAILED);
}

/* Processes of the copied broker: their number. Each must have left the ids and the environment of who ran the
 * program. */
static unsigned check_brokers(void)
{
	unsigned count = 0;
	glob_t found;

	assert_int_equal(glob("/proc/[0-9]*", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[300], exe[300] = "", text[4096];
		unsigned real, effective, saved;
		snprintf(path, sizeof(path), "%s/exe", found.gl_pathv[i]);
		if (readlink(path, exe, sizeof(exe) - 1) < 0 || strcmp(exe, path_of("verbena-broker")) != 0)
			continue;
		count++;
		snprintf(path, sizeof(path), "%s/status", found.gl_pathv[i]);
		read_file(path, text, sizeof(text));
		assert_non_null(strstr(text, "\nUid:"));
		assert_int_equal(sscanf(strstr(text, "\nUid:"), "\nUid: %u %u %u", &real, &effective, &saved), 3);
		assert_true(real == 0 && effective == 0 && saved == 0);
		snprintf(path, sizeof(path), "%s/environ", found.gl_pathv[i]);
		read_file(path, text, sizeof(text));
		assert_string_equal(text, "");
	}
	globfree(&found);
	return count;
}

static void set_user_id_program__obeys_what_is_harmless_alone(void **state)
{
	char said[4096], precious[64];
	int status;
	if (!is_able)
		skip();
	lay_out();
	pid_t pid = fork();
	if (pid == 0)
		run_as_nobody();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == PROBE_IS_NOT_SECURE)
		skip(); /* nosuid, or no new privileges */

	read_file(path_of("said"), said, sizeof(said));
	read_file(path_of("precious"), precious, sizeof(precious));
	print_message("%s", said);
	assert_true(access(path_of("mine/mark"), F_OK) < 0);
	assert_string_equal(precious, "precious");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), PROBE_IS_GOOD);
	assert_true(check_brokers() > 0); /* which stay for a second */
	const char *ignored = strstr(said, "ignored: VERBENA_LIBEXEC, VERBENA_PCAP\n");
	assert_non_null(ignored);
	assert_null(strstr(ignored + 1, "ignored:"));
	assert_non_null(strstr(said, "verbena: wire:")); /* VERBENA_STATS counts */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(set_user_id_program__obeys_what_is_harmless_alone, clean_up),
	};

	if (argc > 1 && strcmp(argv[1], PROBE) == 0)
		return probe();
	broker_directory = argc > 1 ? argv[1] : NULL;
	is_able = broker_directory && geteuid() == 0 && own_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
