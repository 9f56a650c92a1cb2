/* See cpus.h. */
#include "host/lanes/cpus.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX 65536 /* eight times what kernels are built for */

/* The kernel's list, as in "0-3,8-11". 0: /sys is not there. The C library makes a count of CPUs of it, which is
 * smaller than the highest number where there are gaps. */
static unsigned listed(void)
{
	char text[256], *number = text;
	int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	for (char *at; (at = strpbrk(number, "-,"));)
		number = at + 1;
	unsigned long highest = strtoul(number, &number, 10);
	return *number == '\n' && highest < CPUS_MAX ? (unsigned)highest + 1 : 0;
}

/* Of the CPUs that this thread may run on. A container whose /proc counts fewer has the host's numbers there. */
static unsigned allowed(void)
{
	cpu_set_t sets[CPUS_MAX / CPU_SETSIZE];

	if (sched_getaffinity(0, sizeof(sets), sets) < 0)
		return 0;
	for (unsigned cpu = CPUS_MAX; cpu > 0; cpu--) {
		if (CPU_ISSET_S(cpu - 1, sizeof(sets), sets))
			return cpu;
	}
	return 0;
}

unsigned vb_cpus_possible(void)
{
	unsigned count = listed();

	if (count)
		return count;
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	if (configured > 0 && configured < CPUS_MAX)
		count = (unsigned)configured;
	if (count < allowed())
		count = allowed();
	return count ? count : 1;
}
