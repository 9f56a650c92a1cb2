/* See working.h. */
#include "preload/working.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/borrower.h"
#include "preload/kernel.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define MAGIC "shown working directory "

/* An executed program looks for the descriptor in this range: shells use lower and higher ones for themselves. */
enum { FIRST_FD = 100, LAST_FD = 107, NONE = -1, UNKNOWN = -2 };

static atomic_int working_fd = UNKNOWN;
/* The content of the file: "MAGIC real\nshown". */
static bool read_file(int fd, char real[PATH_MAX], char shown[PATH_MAX])
{
	const size_t magic = strlen(MAGIC);
	char text[2 * PATH_MAX + sizeof(MAGIC)];

	if (fcntl(fd, F_GET_SEALS) != SEALS)
		return false;
	kernel_read_text(fd, text, sizeof(text));
	char *end = strchr(text, '\n');
	if (strncmp(text, MAGIC "/", magic + 1) != 0 || !end || end[1] != '/' || strlen(end + 1) >= PATH_MAX ||
		(size_t)(end - text) - magic >= PATH_MAX)
		return false;
	*end = '\0';
	strcpy(real, text + magic);
	strcpy(shown, end + 1);
	return true;
}

static int look_for_fd(void)
{
	char real[PATH_MAX], shown[PATH_MAX];

	for (int fd = FIRST_FD; fd <= LAST_FD; fd++)
		if (read_file(fd, real, shown))
			return fd;
	return NONE;
}

static bool is_kernels(const char *real)
{
	char at[PATH_MAX];

	return syscall(SYS_getcwd, at, sizeof(at)) > 0 && strcmp(at, real) == 0;
}

bool vb_working_get(char path[PATH_MAX])
{
	char real[PATH_MAX];
	int error = errno, fd = atomic_load_explicit(&working_fd, memory_order_relaxed);

	if (fd == NONE)
		return false;
	if (fd == UNKNOWN)
		atomic_store(&working_fd, fd = look_for_fd());
	bool is_shown = fd >= 0 && read_file(fd, real, path) && is_kernels(real);
	errno = error;
	return is_shown;
}

/* The kernel decides whether a pointer is invalid. */
static bool is_text(const char *path)
{
	int error = errno;
	bool is_good = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0 || errno != EFAULT;

	errno = error;
	return is_good;
}

bool vb_working_has(int base_fd, const char *path)
{
	char unused[PATH_MAX];

	return base_fd == AT_FDCWD && path && vb_working_get(unused) && is_text(path) && path[0] && path[0] != '/';
}

void vb_working_leave(void)
{
	int error = errno, fd = vb_is_borrower() ? UNKNOWN : atomic_exchange(&working_fd, NONE);
	char real[PATH_MAX], shown[PATH_MAX];

	if (fd == UNKNOWN)
		fd = look_for_fd();
	if (fd >= 0 && read_file(fd, real, shown))
		close(fd);
	errno = error;
}

/* Moves the kernel to the nearest existing directory above, whose name goes to real. Calls without a hook, such as
 * mkdir(), act there: sysfs refuses them, and so does /proc, which therefore stands for /dev. */
static int move_kernel(const char *path, char real[PATH_MAX])
{
	strcpy(real, strncmp(path, "/dev/", 5) == 0 ? "/proc/-" : path);
	while (real[0]) {
		*strrchr(real, '/') = '\0';
		if (syscall(SYS_chdir, real[0] ? real : "/") == 0)
			return syscall(SYS_getcwd, real, PATH_MAX) > 0 ? 0 : -1;
	}
	return -1;
}

/* A descriptor that an executed program finds: without CLOEXEC. */
static int make_file(void)
{
	int fd = memfd_create("verbena-cwd", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	int kept = fcntl(fd, F_DUPFD, FIRST_FD);
	int error = kept < 0 && errno == EINVAL ? EMFILE : errno; /* EINVAL: the limit is below FIRST_FD */
	close(fd);
	errno = error;
	return kept;
}

static bool write_file(int fd, const char *real, const char *shown)
{
	char text[2 * PATH_MAX + sizeof(MAGIC)];
	int length = snprintf(text, sizeof(text), MAGIC "%s\n%s", real, shown);

	return pwrite(fd, text, (size_t)length, 0) == length && fcntl(fd, F_ADD_SEALS, SEALS) == 0;
}

int vb_working_enter(const char *path)
{
	char real[PATH_MAX];
	int fd = make_file();

	if (fd < 0)
		return -1;
	bool is_moved = move_kernel(path, real) == 0;
	if (is_moved)
		vb_working_leave();
	if (!is_moved || !write_file(fd, real, path)) {
		int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	if (!vb_is_borrower())
		atomic_store(&working_fd, fd);
	return 0;
}
