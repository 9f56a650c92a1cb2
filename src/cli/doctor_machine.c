/* verbena doctor: Verbena's own files, the processors, and the machine's RDMA and PCI entries in /sys. */
#include "cli/cli.h"
#include "cli/doctor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_file(struct vb_findings *findings, const char *path, int mode, bool is_installed)
{
	if (access(path, mode) == 0)
		return;
	bool is_forbidden = errno == EACCES && access(path, F_OK) == 0;
	vb_finding_add(findings, VB_FINDING_STOP, "files", "%s: %s", path, strerror(errno));
	vb_finding_cure(findings, "%s",
		is_forbidden   ? "give this user permission; a file system mounted noexec does not do"
		: is_installed ? "install Verbena completely"
			       : "build it: make");
}

/* The libraries that a program loads without verbena run. */
static void check_plain_loader(struct vb_findings *findings, const char *ours)
{
	struct link_map *map;

	void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!library)
		vb_finding_add(findings, VB_FINDING_OK, "library", "%s; other libibverbs: none here", ours);
	else if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
		char *path = realpath(map->l_name, NULL), *our_path = realpath(ours, NULL);
		if (path && our_path && strcmp(path, our_path) == 0)
			vb_finding_add(findings, VB_FINDING_OK, "library",
				"%s, which programs load even without verbena run", ours);
		else
			vb_finding_add(findings, VB_FINDING_OK, "library", "%s; without verbena run programs load %s",
				ours, map->l_name);
		free(path);
		free(our_path);
	}
	if (library)
		dlclose(library);
}

void vb_check_files(struct vb_findings *findings, const struct vb_settings *settings)
{
	struct vb_places places;
	char library[PATH_MAX + 32], broker[PATH_MAX + 32];

	int error = vb_places_find(&places);
	if (error) {
		vb_finding_add(
			findings, VB_FINDING_STOP, "files", "cannot find where Verbena lies: %s", strerror(-error));
		vb_finding_cure(findings, "mount -t proc proc /proc");
		return;
	}
	snprintf(library, sizeof(library), "%s/libibverbs.so.1", places.libraries);
	snprintf(broker, sizeof(broker), "%s", places.broker);
	if (settings->text[VB_SETTING_LIBEXEC][0])
		snprintf(broker, sizeof(broker), "%s/verbena-broker", settings->text[VB_SETTING_LIBEXEC]);
	size_t before = findings->count;
	check_file(findings, library, R_OK, places.is_installed);
	check_file(findings, places.preload, R_OK, places.is_installed);
	check_file(findings, broker, X_OK, places.is_installed);
	if (findings->count == before)
		check_plain_loader(findings, library);
}

/* CPUs that this process's control group may use, from cpu.max of it and its parents; 0: no limit. */
static double cgroup_cpus(void)
{
	char line[512], path[1024];
	double least = 0;

	FILE *file = fopen("/proc/self/cgroup", "re");
	if (!file)
		return 0;
	bool is_unified = fgets(line, sizeof(line), file) && strncmp(line, "0::/", 4) == 0;
	fclose(file);
	if (!is_unified)
		return 0;
	line[strcspn(line, "\n")] = '\0';
	for (char *group = line + 3; *group; *strrchr(group, '/') = '\0') {
		double quota, period;
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%lf %lf", &quota, &period) == 2 && period > 0 &&
			(least == 0 || quota / period < least))
			least = quota / period;
		fclose(file);
	}
	return least;
}

static void check_processors(struct vb_findings *findings)
{
	cpu_set_t allowed;
	int count = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed)
									 : (int)sysconf(_SC_NPROCESSORS_ONLN);
	double limit = cgroup_cpus();

	if (limit > 0 && limit < 1.0) {
		vb_finding_add(findings, VB_FINDING_SLOW, "processors",
			"the control group allows %.2f of a processor: "
			"polling programs are stopped for the rest of each period",
			limit);
		vb_finding_cure(findings, "give the container at least 2 CPUs");
	} else if (count == 1) {
		vb_finding_add(findings, VB_FINDING_SLOW, "processors",
			"1: two polling programs on this machine take turns on it, and latency is that of the "
			"scheduler");
		vb_finding_cure(
			findings, "2 or more processors; wider CPU affinity (taskset) if that is what limits it");
	} else {
		vb_finding_add(findings, VB_FINDING_OK, "processors", "%d", count);
	}
}

static void check_pci(struct vb_findings *findings)
{
	if (access("/sys/bus/pci/devices", F_OK) == 0)
		vb_finding_add(findings, VB_FINDING_OK, "PCI tree", "there");
	else
		vb_finding_add(findings, VB_FINDING_OK, "PCI tree",
			"none; verbena run shows an empty one to programs that insist on it (perftest)");
}

/* The kernel's own RDMA devices: harmless, but worth knowing. */
static void check_kernel_rdma(struct vb_findings *findings)
{
	char names[256] = "";
	size_t length = 0;
	struct dirent *entry;

	DIR *directory = opendir("/sys/class/infiniband");
	while (directory && length < sizeof(names) && (entry = readdir(directory)) != NULL)
		if (entry->d_name[0] != '.')
			length += (size_t)snprintf(names + length, sizeof(names) - length, " %s", entry->d_name);
	if (directory)
		closedir(directory);
	if (names[0])
		vb_finding_add(findings, VB_FINDING_OK, "kernel RDMA",
			"devices%s: programs under verbena run do not see them", names);
	else
		vb_finding_add(findings, VB_FINDING_OK, "kernel RDMA", "no devices");
}

void vb_check_machine(struct vb_findings *findings, const struct vb_settings *settings)
{
	check_processors(findings);
	check_pci(findings);
	check_kernel_rdma(findings);
}
