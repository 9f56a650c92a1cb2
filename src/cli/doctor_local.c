/* verbena doctor: how processes of this host would exchange data. Whether one may read another's memory is tried
 * between two children, since a parent may read its child where it may not read other processes. */
#include "cli/doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "host/peers/calibration.h"
#include "host/peers/host_peers.h"

#define CHECK "same host"

static const char lent[] = "lent"; /* at the same address in the children */

static pid_t start_lender(void)
{
	pid_t lender = fork();

	if (lender != 0)
		return lender;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* 0, or the errno of a failed read from that process. */
static int try_in_a_child(pid_t lender)
{
	char place[sizeof(lent)];
	const struct iovec to = { place, sizeof(place) }, from = { (void *)(uintptr_t)lent, sizeof(lent) };
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(process_vm_readv(lender, &to, 1, &from, 1, 0) == sizeof(lent) ? 0 : errno);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ENOSYS;
}

static int try_to_pull(void)
{
	pid_t lender = start_lender();
	if (lender < 0)
		return errno;
	int error = try_in_a_child(lender);
	kill(lender, SIGKILL);
	waitpid(lender, NULL, 0);
	return error;
}

static int ptrace_scope(void)
{
	int scope = 0;
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%d", &scope) != 1)
		scope = 0;
	fclose(file);
	return scope;
}

static void report_two_copies(struct vb_findings *findings)
{
	int scope = ptrace_scope();

	vb_finding_add(findings, VB_FINDING_SLOW, CHECK,
		"shared memory, but long messages by two copies, for %s lets no process read another's memory",
		scope ? "kernel.yama.ptrace_scope" : "a sandbox");
	if (scope >= 3)
		vb_finding_cure(findings, "boot with kernel.yama.ptrace_scope=0: 3 is not lowered before");
	else if (scope)
		vb_finding_cure(findings, "sudo sysctl kernel.yama.ptrace_scope=0");
	else
		vb_finding_cure(
			findings, "allow process_vm_readv in its seccomp profile (docker run --cap-add SYS_PTRACE)");
}

static const char *name_of_setting(enum vb_local_reason refusal)
{
	if (refusal == VB_LOCAL_CAPTURES)
		return "VERBENA_PCAP";
	return refusal == VB_LOCAL_IS_FAULTY ? "VERBENA_FAULTS" : "VERBENA_LOCAL";
}

void vb_check_local(struct vb_findings *findings, const struct vb_settings *settings)
{
	enum vb_local_reason refusal = vb_local_refusal(settings);

	if (refusal != VB_LOCAL_IS_USED) {
		vb_finding_add(findings, VB_FINDING_SLOW, CHECK, "over the wire, as between hosts: %s",
			vb_local_reason_text(refusal));
		vb_finding_cure(findings, "unset %s, at both ends", name_of_setting(refusal));
	} else if (try_to_pull() == 0) {
		vb_finding_add(findings, VB_FINDING_OK, CHECK,
			"shared memory; within one user and pid namespace messages of %u bytes and more by one copy",
			vb_pull_pays_from());
	} else {
		report_two_copies(findings);
	}
}
