/* See output.h. */
#include "sim/output.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "sim/sim.h"

int output_complain(const char *path, int error)
{
	fprintf(stderr, "verbena sim: %s: %s\n", path, strerror(-error));
	return SIM_EXIT_BAD_NEWS;
}

int output_open(const char *path, FILE **file)
{
	*file = path ? fopen(path, "we") : NULL;
	return path && !*file ? output_complain(path, -errno) : SIM_EXIT_OK;
}

int output_close(const char *path, FILE *file)
{
	if (!file)
		return SIM_EXIT_OK;
	errno = 0;
	const bool is_wrong = ferror(file);
	return fclose(file) || is_wrong ? output_complain(path, errno ? -errno : -EIO) : SIM_EXIT_OK;
}
