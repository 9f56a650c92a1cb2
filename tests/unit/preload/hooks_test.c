/* Each of libc's functions under the preload library, with which this program is started: on paths that are shown, and
 * on others, where it must be as without. "hooks_test nobody" does it as an ordinary user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLASS  "/sys/class/infiniband"
#define LO     CLASS "/vb_lo"
#define NODE   "/sys/devices/virtual/infiniband/vb_lo"
#define TYPE   LO "/node_type"
#define UVERBS "/dev/infiniband/uverbs_lo"
#define ABSENT LO "/no_such_file"

/* Those that headers hide or libc no longer lets one link. */
#define OLD(type, name, ...) type (*name)(__VA_ARGS__) = (type(*)(__VA_ARGS__))dlsym(RTLD_DEFAULT, #name)

static void expect_text(int fd, const char *wanted)
{
	char text[4096];
	assert_true(fd >= 0);
	ssize_t length = read(fd, text, sizeof(text) - 1);
	assert_true(length >= 0);
	text[length] = '\0';
	assert_string_equal(text, wanted);
	close(fd);
}

#define EXPECT_ERRNO(call, wanted)                                                                                     \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		assert_true((intptr_t)(call) == -1);                                                                   \
		assert_int_equal(errno, wanted);                                                                       \
	} while (0)

#define EXPECT_NULL_ERRNO(call, wanted)                                                                                \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		assert_null(call);                                                                                     \
		assert_int_equal(errno, wanted);                                                                       \
	} while (0)

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static void open__reads_a_shown_file(void **state)
{
	OLD(int, __open_2, const char *, int);
	OLD(int, __open64_2, const char *, int);
	OLD(int, __openat_2, int, const char *, int);
	OLD(int, __openat64_2, int, const char *, int);

	expect_text(open(TYPE, O_RDONLY), "1: CA\n");
	expect_text(open64(TYPE, O_RDONLY | O_CLOEXEC), "1: CA\n");
	expect_text(openat(AT_FDCWD, TYPE, O_RDONLY), "1: CA\n");
	expect_text(openat64(-1, TYPE, O_RDONLY), "1: CA\n");
	expect_text(__open_2(TYPE, O_RDONLY), "1: CA\n");
	expect_text(__open64_2(TYPE, O_RDONLY), "1: CA\n");
	expect_text(__openat_2(AT_FDCWD, TYPE, O_RDONLY), "1: CA\n");
	expect_text(__openat64_2(AT_FDCWD, TYPE, O_RDONLY), "1: CA\n");
	expect_text(open(LO "/ports/1/gid_attrs/ndevs/0", O_RDONLY), "lo\n");
}

static void open__refuses_what_sysfs_would(void **state)
{
	EXPECT_ERRNO(open(TYPE, O_RDWR), EACCES);
	EXPECT_ERRNO(open(TYPE, O_WRONLY | O_TRUNC), EACCES);
	EXPECT_ERRNO(open(TYPE, O_RDONLY | O_DIRECTORY), ENOTDIR);
	EXPECT_ERRNO(open(LO, O_RDONLY | O_NOFOLLOW), ELOOP);
	EXPECT_ERRNO(open(LO, O_WRONLY), EISDIR);
	EXPECT_ERRNO(open(ABSENT, O_RDONLY), ENOENT);
	EXPECT_ERRNO(open(TYPE "/below", O_RDONLY), ENOENT);
	EXPECT_NULL_ERRNO(fopen(TYPE, "w"), EACCES);
	EXPECT_NULL_ERRNO(fopen(TYPE, "r+"), EACCES);
}

static void open__keeps_errno_and_flags(void **state)
{
	errno = EXDEV;
	int fd = open(TYPE, O_RDONLY | O_CLOEXEC);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), -1);
	close(fd);
	fd = open(TYPE, O_RDONLY);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	close(fd);
}

static void fopen__reads_a_shown_file(void **state)
{
	char line[64];
	FILE *(*const functions[])(const char *, const char *) = { fopen, fopen64 };
	for (unsigned i = 0; i < 2; i++) {
		FILE *stream = functions[i](LO "/ports/1/link_layer", "re");
		assert_non_null(stream);
		assert_non_null(fgets(line, sizeof(line), stream));
		assert_string_equal(line, "Ethernet\n");
		assert_null(fgets(line, sizeof(line), stream));
		fclose(stream);
	}
}

static void character_device__can_be_opened_to_read_and_write(void **state)
{
	struct stat status;
	assert_int_equal(stat(UVERBS, &status), 0);
	assert_true(S_ISCHR(status.st_mode));
	assert_int_equal(access(UVERBS, R_OK | W_OK), 0);
	int fd = open(UVERBS, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_true(S_ISCHR(status.st_mode));
	close(fd);
}

/* ---- Status ------------------------------------------------------------------------------------------------------ */

static void stat__sees_files_directories_and_through_links(void **state)
{
	struct stat status;
	struct stat64 status64;

	assert_int_equal(stat(TYPE, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0444);
	assert_int_equal(stat(LO, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(stat64(CLASS, &status64), 0);
	assert_true(S_ISDIR(status64.st_mode));
	assert_int_equal(lstat(LO, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(lstat64(LO, &status64), 0);
	assert_true(S_ISLNK(status64.st_mode));
	assert_int_equal(lstat(LO "/", &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(fstatat(AT_FDCWD, LO, &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(fstatat64(AT_FDCWD, LO, &status64, 0), 0);
	assert_true(S_ISDIR(status64.st_mode));
	EXPECT_ERRNO(stat(ABSENT, &status), ENOENT);
	EXPECT_ERRNO(fstatat(AT_FDCWD, ABSENT, &status, 0), ENOENT);
}

static void statx__agrees_with_stat(void **state)
{
	struct statx extended;
	struct stat status;

	assert_int_equal(statx(AT_FDCWD, TYPE, 0, STATX_BASIC_STATS, &extended), 0);
	assert_int_equal(stat(TYPE, &status), 0);
	assert_int_equal(extended.stx_mode, status.st_mode);
	assert_true(extended.stx_ino == status.st_ino);
	assert_int_equal(extended.stx_size, status.st_size);
	assert_int_equal(statx(AT_FDCWD, LO, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &extended), 0);
	assert_true(S_ISLNK(extended.stx_mode));
	EXPECT_ERRNO(statx(AT_FDCWD, ABSENT, 0, STATX_BASIC_STATS, &extended), ENOENT);
}

static void xstat__serves_old_programs(void **state)
{
	OLD(int, __xstat, int, const char *, struct stat *);
	OLD(int, __xstat64, int, const char *, struct stat64 *);
	OLD(int, __lxstat, int, const char *, struct stat *);
	OLD(int, __lxstat64, int, const char *, struct stat64 *);
	OLD(int, __fxstat, int, int, struct stat *);
	OLD(int, __fxstat64, int, int, struct stat64 *);
	OLD(int, __fxstatat, int, int, const char *, struct stat *, int);
	OLD(int, __fxstatat64, int, int, const char *, struct stat64 *, int);
#if defined(__x86_64__)
	const int version = 1; /* of the structure, as glibc knows it */
#else
	const int version = 0;
#endif
	struct stat status;
	struct stat64 status64;

	assert_int_equal(__xstat(version, TYPE, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(__xstat64(version, LO, &status64), 0);
	assert_true(S_ISDIR(status64.st_mode));
	assert_int_equal(__lxstat(version, LO, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(__lxstat64(version, LO, &status64), 0);
	assert_true(S_ISLNK(status64.st_mode));
	assert_int_equal(__fxstatat(version, AT_FDCWD, UVERBS, &status, 0), 0);
	assert_true(S_ISCHR(status.st_mode));
	assert_int_equal(__fxstatat64(version, AT_FDCWD, UVERBS, &status64, 0), 0);
	assert_true(S_ISCHR(status64.st_mode));
	int fd = open(LO, O_RDONLY | O_DIRECTORY);
	assert_int_equal(__fxstat(version, fd, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(__fxstat64(version, fd, &status64), 0);
	assert_true(S_ISDIR(status64.st_mode));
	close(fd);
	EXPECT_ERRNO(__xstat(version, ABSENT, &status), ENOENT);
}

/* ---- Access, links, names ---------------------------------------------------------------------------------------- */

static void access__lets_read_and_not_write(void **state)
{
	int (*const functions[])(const char *, int) = { access, eaccess, euidaccess };
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(functions[i](TYPE, R_OK), 0);
		assert_int_equal(functions[i](TYPE, F_OK), 0);
		assert_int_equal(functions[i](LO, R_OK | X_OK), 0);
		EXPECT_ERRNO(functions[i](TYPE, W_OK), EACCES);
		EXPECT_ERRNO(functions[i](ABSENT, F_OK), ENOENT);
	}
	assert_int_equal(faccessat(AT_FDCWD, TYPE, R_OK, 0), 0);
	EXPECT_ERRNO(faccessat(AT_FDCWD, TYPE, X_OK, AT_EACCESS), EACCES);
}

static void readlink__tells_the_target(void **state)
{
	static const char target[] = "../../devices/virtual/infiniband/vb_lo";
	OLD(ssize_t, __readlink_chk, const char *, char *, size_t, size_t);
	OLD(ssize_t, __readlinkat_chk, int, const char *, char *, size_t, size_t);
	char text[PATH_MAX];

	assert_int_equal(readlink(LO, text, sizeof(text)), strlen(target));
	assert_memory_equal(text, target, strlen(target));
	assert_int_equal(readlink(LO, text, 5), 5);
	assert_int_equal(readlinkat(AT_FDCWD, LO, text, sizeof(text)), strlen(target));
	assert_int_equal(__readlink_chk(LO, text, sizeof(text), sizeof(text)), strlen(target));
	assert_int_equal(__readlinkat_chk(AT_FDCWD, LO, text, sizeof(text), sizeof(text)), strlen(target));
	EXPECT_ERRNO(readlink(TYPE, text, sizeof(text)), EINVAL);
	EXPECT_ERRNO(readlink(ABSENT, text, sizeof(text)), ENOENT);
}

static void expect_path(char *allocated, const char *wanted)
{
	assert_non_null(allocated);
	assert_string_equal(allocated, wanted);
	free(allocated);
}

static void realpath__follows_links_and_dots(void **state)
{
	OLD(char *, __realpath_chk, const char *, char *, size_t);
	char text[PATH_MAX];

	expect_path(realpath(LO, NULL), NODE);
	expect_path(canonicalize_file_name(TYPE), NODE "/node_type");
	expect_path(realpath("/sys/../sys/class/./infiniband//vb_lo/ports/../node_guid", NULL), NODE "/node_guid");
	expect_path(realpath(LO "/..", NULL), "/sys/devices/virtual/infiniband");
	assert_ptr_equal(realpath(LO "/device", text), text);
	assert_string_equal(text, "/sys/devices/virtual/pci-verbena/f000:01:00.0");
	assert_ptr_equal(__realpath_chk(LO, text, sizeof(text)), text);
	assert_string_equal(text, NODE);
	EXPECT_NULL_ERRNO(realpath(ABSENT, text), ENOENT);
	EXPECT_NULL_ERRNO(realpath(LO "/../vb_lo/../../nothing", text), ENOENT);
}

static void paths__may_lead_through_links_of_the_machine(void **state)
{
	char directory[] = "/tmp/infiniband-XXXXXX", link[64], text[PATH_MAX];

	assert_non_null(mkdtemp(directory));
	snprintf(link, sizeof(link), "%s/device", directory);
	assert_int_equal(symlink(LO, link), 0);
	ssize_t length = readlink(link, text, sizeof(text)); /* a real link */
	assert_int_equal(length, strlen(LO));
	expect_path(realpath(link, NULL), NODE);
	snprintf(text, sizeof(text), "%s/node_type", link);
	expect_text(open(text, O_RDONLY), "1: CA\n");
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(link, link), 0);
	EXPECT_ERRNO(open(link, O_RDONLY), ELOOP);
	unlink(link);
	rmdir(directory);
}

/* ---- Directories ------------------------------------------------------------------------------------------------- */

static unsigned count_of(DIR *directory, const char *name)
{
	unsigned count = 0;
	struct dirent *entry;
	while ((entry = readdir(directory)))
		count += strcmp(entry->d_name, name) == 0;
	return count;
}

static void opendir__lists_each_name_once(void **state)
{
	DIR *directory = opendir(CLASS);
	assert_non_null(directory);
	assert_int_equal(count_of(directory, "vb_lo"), 1);
	rewinddir(directory);
	assert_int_equal(count_of(directory, "."), 1);
	rewinddir(directory);
	struct dirent64 *first = readdir64(directory);
	assert_non_null(first);
	long position = telldir(directory);
	struct dirent *second = readdir(directory);
	assert_non_null(second);
	seekdir(directory, position);
	assert_string_equal(readdir(directory)->d_name, second->d_name);
	assert_int_equal(closedir(directory), 0);

	directory = opendir(LO "/ports/1/gid_attrs/types");
	assert_non_null(directory);
	assert_int_equal(count_of(directory, "0"), 1);
	closedir(directory);
	EXPECT_NULL_ERRNO(opendir(TYPE), ENOTDIR);
	EXPECT_NULL_ERRNO(opendir(ABSENT), ENOENT);
}

static void readdir_r__lists_too(void **state)
{
	OLD(int, readdir_r, DIR *, struct dirent *, struct dirent **);
	struct dirent entry, *result;
	unsigned names = 0;
	DIR *directory = opendir(LO "/ports");

	assert_non_null(directory);
	while (readdir_r(directory, &entry, &result) == 0 && result)
		names++;
	assert_int_equal(names, 3); /* ".", "..", "1" */
	closedir(directory);
}

static void directory__has_a_descriptor_for_relative_paths(void **state)
{
	struct stat status, same;
	struct statx extended;
	int fd = open(LO, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(stat(LO, &same), 0);
	assert_true(status.st_ino == same.st_ino && status.st_dev == same.st_dev);
	assert_int_equal(fstatat(fd, "", &status, AT_EMPTY_PATH), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
	assert_true(S_ISDIR(extended.stx_mode));
	expect_text(openat(fd, "node_type", O_RDONLY), "1: CA\n");
	expect_text(openat(dup(fd), "ports/1/../../node_type", O_RDONLY), "1: CA\n");
	assert_int_equal(fstatat(fd, "..", &status, 0), 0);
	assert_int_equal(faccessat(fd, "ports", R_OK, 0), 0);
	EXPECT_ERRNO(openat(fd, "etc", O_RDONLY), ENOTDIR);
	DIR *directory = fdopendir(fd);
	assert_non_null(directory);
	assert_int_equal(dirfd(directory), fd);
	assert_int_equal(count_of(directory, "ports"), 1);
	closedir(directory);
	EXPECT_ERRNO(fcntl(fd, F_GETFD), EBADF);
}

static void relative_paths__begin_where_they_should(void **state)
{
	int sys = open("/sys", O_RDONLY | O_DIRECTORY);
	if (sys < 0)
		skip();
	expect_text(openat(sys, "class/infiniband/vb_lo/node_type", O_RDONLY), "1: CA\n");
	EXPECT_ERRNO(openat(sys, "infiniband/vb_lo/node_type", O_RDONLY), ENOENT);
	close(sys);
	assert_int_equal(chdir("/sys/class"), 0);
	expect_text(open("infiniband/vb_lo/node_type", O_RDONLY), "1: CA\n");
	expect_text(open("../class/infiniband/vb_lo/node_type", O_RDONLY), "1: CA\n");
	assert_int_equal(chdir("/"), 0);
	EXPECT_ERRNO(open("infiniband/vb_lo/node_type", O_RDONLY), ENOENT);
}

/* As NCCL goes from a device to its bus and up: by the name of the last part, and of the directory above. */
static void bus__is_climbed_by_names(void **state)
{
	char *slot = realpath(LO "/device", NULL), *again, path[PATH_MAX];

	assert_non_null(slot);
	const char *name = strrchr(slot, '/') + 1;
	assert_int_equal(strlen(name), strlen("0000:00:00.0"));
	snprintf(path, sizeof(path), "/sys/class/pci_bus/%.7s/../../%s", name, name);
	again = realpath(path, NULL);
	assert_non_null(again);
	assert_string_equal(again, slot);
	static const char *const files[] = { "class", "vendor", "device", "subsystem_vendor", "subsystem_device",
		"max_link_speed", "../max_link_speed", "max_link_width", "../max_link_width", "numa_node" };
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", slot, files[i]);
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		assert_true(fgetc(file) != EOF);
		fclose(file);
	}
	free(slot);
	free(again);
}

static void expect_working(const char *path)
{
	char text[PATH_MAX];

	assert_string_equal(getcwd(text, sizeof(text)), path);
	char *whole = getcwd(NULL, 0);
	assert_string_equal(whole, path);
	free(whole);
}

static void expect_output(const char *command, const char *expected)
{
	char text[1024] = "";
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	size_t length = fread(text, 1, sizeof(text) - 1, pipe);
	assert_int_equal(pclose(pipe), 0);
	text[length] = '\0';
	assert_string_equal(text, expected);
}

static void working_directory__may_be_shown(void **state)
{
	struct stat dot, class;
	DIR *here;

	assert_int_equal(chdir(CLASS), 0);
	expect_working(CLASS);
	expect_text(open("vb_lo/node_type", O_RDONLY), "1: CA\n");
	assert_int_equal(stat(".", &dot), 0);
	assert_int_equal(stat(CLASS, &class), 0);
	assert_int_equal(dot.st_ino, class.st_ino);
	here = opendir(".");
	assert_non_null(here);
	assert_int_equal(count_of(here, "vb_lo"), 1);
	closedir(here);
	EXPECT_ERRNO(open("net", O_RDONLY), ENOENT); /* the directory above has one */
	assert_int_equal(access("../net", F_OK), access("/sys/class/net", F_OK));
	assert_int_equal(chdir("vb_lo/ports"), 0);
	expect_working(NODE "/ports");
	expect_text(open("../node_type", O_RDONLY), "1: CA\n");
	assert_int_equal(chdir(".."), 0);
	expect_working(NODE);
	EXPECT_ERRNO(chdir("node_type"), ENOTDIR);
	EXPECT_ERRNO(chdir("nothing"), ENOENT);
	EXPECT_ERRNO(chdir(CLASS "/nothing"), ENOENT);
	expect_working(NODE);
	assert_int_equal(chdir("/"), 0);
	expect_working("/");
	EXPECT_ERRNO(open("vb_lo/node_type", O_RDONLY), ENOENT);
}

/* mkdir() is not answered. */
static void working_directory__takes_nothing(void **state)
{
	const char *const shown[] = { CLASS, "/dev/infiniband" };

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(chdir(shown[i]), 0);
		assert_int_equal(mkdir("verbena-test", 0700), -1);
		expect_working(shown[i]);
	}
	assert_int_equal(chdir(".."), 0);
	expect_working("/dev");
	assert_int_equal(chdir("/"), 0);
}

static void working_directory__is_no_real_file(void **state)
{
	char path[] = "/tmp/infiniband.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	EXPECT_ERRNO(chdir(path), ENOTDIR);
	unlink(path);
	EXPECT_ERRNO(chdir(path), ENOENT);
	assert_int_equal(chdir(CLASS), 0);
	EXPECT_ERRNO(chdir("../../../proc/version"), ENOTDIR);
	expect_working(CLASS);
	assert_int_equal(chdir("../../../proc"), 0);
	expect_working("/proc");
	assert_int_equal(chdir("/"), 0);
}

static void working_directory__stays_when_it_cannot_be_kept(void **state)
{
	struct rlimit usual, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	few = usual;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	EXPECT_ERRNO(chdir(CLASS), EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	expect_working("/");
}

/* A child of vfork has its parent's memory, and a working directory of its own. */
static void working_directory__stays_where_a_borrowing_child_moves(void **state)
{
	static const char *const elsewhere[] = { "/", CLASS, NODE };
	int status;

	assert_int_equal(chdir(NODE), 0);
	for (unsigned i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		pid_t child = vfork();
		if (!child) {
			if (!chdir("/sys") && !chdir(CLASS) && !chdir(elsewhere[i]))
				execl("/bin/sh", "sh", "-c", "test \"$(/bin/pwd)\" = \"$1\"", "sh", elsewhere[i], NULL);
			_exit(1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		expect_working(NODE);
		expect_text(open("node_type", O_RDONLY), "1: CA\n");
	}
	assert_int_equal(chdir("/"), 0);
}

static void working_directory__bad_pointers_are_the_kernels_to_find(void **state)
{
	struct stat status;

	assert_int_equal(chdir(NODE), 0);
	EXPECT_ERRNO(open((const char *)8, O_RDONLY), EFAULT);
	EXPECT_ERRNO(stat((const char *)8, &status), EFAULT);
	EXPECT_ERRNO(access((const char *)8, F_OK), EFAULT);
	EXPECT_ERRNO(chdir((const char *)8), EFAULT);
	expect_working(NODE);
	assert_int_equal(chdir("/"), 0);
}

static void working_directory__is_childrens_too(void **state)
{
	int fd = open(CLASS, O_RDONLY | O_DIRECTORY);

	assert_int_equal(fchdir(fd), 0);
	close(fd);
	expect_output(
		"cat vb_lo/node_type; /bin/pwd; ls -d vb_lo net 2>/dev/null || true", "1: CA\n" CLASS "\nvb_lo\n");
	expect_output("cd / && ls -d sys; /bin/pwd", "sys\n/\n");
	assert_int_equal(chdir("/"), 0);
	expect_output("cd " CLASS " && cat */ports/1/gid_attrs/types/0 && cd vb_lo && cat node_type && /bin/pwd -P",
		"RoCE v2\n1: CA\n" NODE "\n");
	expect_output("/bin/pwd", "/\n");
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int is_visible64(const struct dirent64 *entry)
{
	return entry->d_name[0] != '.';
}

static void scandir__filters_and_sorts(void **state)
{
	struct dirent **names;
	struct dirent64 **names64;
	int count = scandir(LO, &names, is_visible, alphasort);

	assert_true(count > 5);
	for (int i = 0; i < count; i++) {
		assert_true(i == 0 || strcmp(names[i - 1]->d_name, names[i]->d_name) < 0);
		if (i)
			free(names[i - 1]);
	}
	free(names[count - 1]);
	free(names);
	assert_int_equal(scandir64(LO "/ports", &names64, is_visible64, NULL), 1);
	assert_string_equal(names64[0]->d_name, "1");
	free(names64[0]);
	free(names64);
	assert_int_equal(scandirat(AT_FDCWD, LO "/ports", &names, is_visible, alphasort), 1);
	free(names[0]);
	free(names);
	EXPECT_ERRNO(scandir(ABSENT, &names, NULL, NULL), ENOENT);
	assert_true(scandir("/etc", &names, is_visible, alphasort) > 0);
}

static void glob__matches_shown_names(void **state)
{
	glob_t found = { 0 };
	assert_int_equal(glob(CLASS "/vb_l?/ports/*/state", 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	assert_string_equal(found.gl_pathv[0], LO "/ports/1/state");
	globfree(&found);
	glob64_t found64 = { 0 };
	assert_int_equal(glob64(LO "/node_g*", 0, NULL, &found64), 0);
	assert_int_equal(found64.gl_pathc, 1);
	globfree64(&found64);
	assert_int_equal(glob(CLASS "/nobody*", 0, NULL, &found), GLOB_NOMATCH);
}

static void pci__is_there_for_libpci(void **state)
{
	DIR *directory = opendir("/sys/bus/pci/devices");
	assert_non_null(directory);
	closedir(directory);
}

/* ---- Everything else --------------------------------------------------------------------------------------------- */

static void others__are_as_they_were(void **state)
{
	struct stat status;
	char text[PATH_MAX];
	struct dirent **names;

	EXPECT_ERRNO(open("/no/such/path", O_RDONLY), ENOENT);
	EXPECT_ERRNO(open("", O_RDONLY), ENOENT);
	EXPECT_ERRNO(open("/sys/class/infinibandx", O_RDONLY), ENOENT);
	EXPECT_ERRNO(open("/tmp/infiniband/vb_lo", O_RDONLY), ENOENT);
	EXPECT_ERRNO(open("/sys/class/infiniband_mad", O_RDONLY), ENOENT);
	EXPECT_ERRNO(open((const char *)8, O_RDONLY), EFAULT);
	EXPECT_ERRNO(stat("/etc/passwd/infiniband", &status), ENOTDIR);
	EXPECT_ERRNO(access("/usr/include/infiniband/none.h", R_OK), ENOENT);
	EXPECT_ERRNO(openat(-1, "infiniband", O_RDONLY), EBADF);
	EXPECT_ERRNO(readlink("/etc", text, sizeof(text)), EINVAL);
	EXPECT_ERRNO(scandir("/no/such/path", &names, NULL, NULL), ENOENT);
	EXPECT_NULL_ERRNO(fopen("/no/such/path", "r"), ENOENT);
	EXPECT_NULL_ERRNO(opendir("/no/such/path"), ENOENT);
	EXPECT_NULL_ERRNO(realpath("/no/such/path", NULL), ENOENT);

	memset(text, 'a', sizeof(text));
	memcpy(text, "/infiniband/", 12);
	text[sizeof(text) - 1] = '\0';
	EXPECT_ERRNO(open(text, O_RDONLY), ENOENT);

	int fd = open("/dev/null", O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_true(S_ISCHR(status.st_mode));
	close(fd);
	DIR *directory = opendir("/etc");
	assert_int_equal(count_of(directory, "passwd"), 1);
	closedir(directory);
}

static void open__still_creates_files(void **state)
{
	char name[] = "/tmp/verbena-hooks-XXXXXX";
	int fd = mkstemp(name);
	struct stat status;

	assert_true(fd >= 0);
	close(fd);
	unlink(name);
	mode_t mask = umask(0);
	fd = open(name, O_CREAT | O_WRONLY | O_EXCL, 0640);
	umask(mask);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
	close(fd);
	unlink(name);
}

/* ---- Children and threads ---------------------------------------------------------------------------------------- */

static void children__see_it_too(void **state)
{
	char text[64] = "";
	FILE *pipe = popen("cat " TYPE "; ls -l " CLASS "/ 2>&1 | grep -c 'vb_lo ->'", "r");
	assert_non_null(pipe);
	size_t length = fread(text, 1, sizeof(text) - 1, pipe);
	assert_int_equal(pclose(pipe), 0);
	text[length] = '\0';
	assert_string_equal(text, "1: CA\n1\n");
}

static void *read_again_and_again(void *failed)
{
	for (int i = 0; i < 50 && !*(bool *)failed; i++) {
		int fd = open(TYPE, O_RDONLY);
		DIR *directory = opendir(CLASS);
		if (fd < 0 || !directory || count_of(directory, "vb_lo") != 1)
			*(bool *)failed = true;
		if (directory)
			closedir(directory);
		close(fd);
	}
	return NULL;
}

static void threads__do_not_disturb_each_other(void **state)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	bool failed[THREADS] = { false };

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_again_and_again, &failed[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_false(failed[i]);
	}
}

/* The device that all of this is about. */
static bool loopback_is_up(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo" };
	bool is_up = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP;
	close(fd);
	return is_up;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__reads_a_shown_file),
		cmocka_unit_test(open__refuses_what_sysfs_would),
		cmocka_unit_test(open__keeps_errno_and_flags),
		cmocka_unit_test(fopen__reads_a_shown_file),
		cmocka_unit_test(character_device__can_be_opened_to_read_and_write),
		cmocka_unit_test(stat__sees_files_directories_and_through_links),
		cmocka_unit_test(statx__agrees_with_stat),
		cmocka_unit_test(xstat__serves_old_programs),
		cmocka_unit_test(access__lets_read_and_not_write),
		cmocka_unit_test(readlink__tells_the_target),
		cmocka_unit_test(realpath__follows_links_and_dots),
		cmocka_unit_test(paths__may_lead_through_links_of_the_machine),
		cmocka_unit_test(opendir__lists_each_name_once),
		cmocka_unit_test(readdir_r__lists_too),
		cmocka_unit_test(directory__has_a_descriptor_for_relative_paths),
		cmocka_unit_test(relative_paths__begin_where_they_should),
		cmocka_unit_test(bus__is_climbed_by_names),
		cmocka_unit_test(working_directory__may_be_shown),
		cmocka_unit_test(working_directory__bad_pointers_are_the_kernels_to_find),
		cmocka_unit_test(working_directory__is_childrens_too),
		cmocka_unit_test(working_directory__takes_nothing),
		cmocka_unit_test(working_directory__is_no_real_file),
		cmocka_unit_test(working_directory__stays_when_it_cannot_be_kept),
		cmocka_unit_test(working_directory__stays_where_a_borrowing_child_moves),
		cmocka_unit_test(scandir__filters_and_sorts),
		cmocka_unit_test(glob__matches_shown_names),
		cmocka_unit_test(pci__is_there_for_libpci),
		cmocka_unit_test(others__are_as_they_were),
		cmocka_unit_test(open__still_creates_files),
		cmocka_unit_test(children__see_it_too),
		cmocka_unit_test(threads__do_not_disturb_each_other),
	};

	if (argc > 1 && geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
		return 1;
	if (getenv("LD_PRELOAD") && access(getenv("LD_PRELOAD"), R_OK) != 0) {
		printf("the build directory is out of this user's reach\n");
		return 77;
	}
	if (!loopback_is_up()) {
		printf("the loopback interface is down\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
