/* verbena doctor: what the kernel permits this process. Each check tries it on a socket of its own; the kernel's
 * version is only reported. */
#include "cli/doctor.h"
#include "os/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
	/* A full train at path MTU 1024: as much as fits one 64 KiB GSO send. */
	TRAIN_SEGMENT = 1056,
	TRAIN_BYTES = 62 * TRAIN_SEGMENT,
	TRAINS_COUNTED_MAX = 256,
};

static void check_version(struct vb_findings *findings)
{
	struct utsname name;

	if (uname(&name) == 0)
		vb_finding_add(findings, VB_FINDING_OK, "kernel", "%s %s %s", name.sysname, name.release, name.machine);
}

/* A UDP socket on loopback with a port of the kernel's choice; -1 with errno. */
static int loopback_socket(struct sockaddr_in *address, bool with_reuseport)
{
	socklen_t length = sizeof(*address);
	int one = 1;

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if ((with_reuseport && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) != 0) ||
		bind(fd, (struct sockaddr *)address, sizeof(*address)) != 0 ||
		getsockname(fd, (struct sockaddr *)address, &length) != 0) {
		int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* Programs find the broker at an abstract Unix socket. */
static void check_abstract_socket(struct vb_findings *findings)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* Binding the family alone makes the kernel choose a free abstract name. */
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address.sun_family)) == 0) {
		vb_finding_add(findings, VB_FINDING_OK, "Unix sockets", "abstract names are allowed");
	} else {
		vb_finding_add(findings, VB_FINDING_STOP, "Unix sockets", "an abstract Unix socket is refused: %s",
			strerror(errno));
		vb_finding_cure(findings,
			"a sandbox or security profile forbids it; allow AF_UNIX sockets with abstract names");
	}
	if (fd >= 0)
		close(fd);
}

/* The broker watches its clients by pidfds. */
static void check_pidfd(struct vb_findings *findings)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0) {
		close(fd);
		return;
	}
	vb_finding_add(findings, VB_FINDING_SLOW, "process watching",
		"pidfd_open: %s: the slot of a killed process that left children comes back late", strerror(errno));
	vb_finding_cure(findings, "Linux 5.3 or newer, and a sandbox that allows pidfd_open");
}

/* Several processes share the port through a reuseport group with a classic BPF program. */
static void check_steering(struct vb_findings *findings)
{
	struct sock_filter instruction = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &instruction };
	struct sockaddr_in address;
	uint32_t memory[SK_MEMINFO_VARS];
	socklen_t length = sizeof(memory);
	int one = 1;

	int fd = loopback_socket(&address, true);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) != 0 ||
		setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof(one)) != 0) {
		vb_finding_add(findings, VB_FINDING_STOP, "port sharing",
			"a BPF program on a reuseport group is refused: %s", strerror(errno));
		vb_finding_cure(findings, "%s",
			vb_loopback_is_down()
				? VB_LOOPBACK_CURE
				: "a sandbox forbids it, or the kernel is older than 4.5; this needs no privilege");
	} else if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) != 0) { /* as the broker tells (group.h) */
		vb_finding_add(findings, VB_FINDING_SLOW, "port sharing",
			"this kernel takes BPF programs and runs none, as gVisor's does: one process alone has the "
			"wire, "
			"without RDMA CM; the others reach this host's processes, by RDMA CM at 127.0.0.1");
		vb_finding_cure(findings, "a sandbox for each process that wants the wire, or no gVisor");
	} else {
		vb_finding_add(findings, VB_FINDING_OK, "port sharing", "reuseport sockets steered by BPF are allowed");
	}
	if (fd >= 0)
		close(fd);
}

/* How many trains an unread receive buffer holds: sent to ourselves until the kernel drops one. */
static unsigned count_trains(int receiver, int sender, const struct sockaddr_in *to)
{
	static const uint8_t train[TRAIN_BYTES];
	uint32_t memory[SK_MEMINFO_VARS];
	socklen_t length = sizeof(memory);
	unsigned count;

	for (count = 0; count < TRAINS_COUNTED_MAX; count++) {
		if (sendto(sender, train, sizeof(train), 0, (const struct sockaddr *)to, sizeof(*to)) != sizeof(train))
			break;
		if (getsockopt(receiver, SOL_SOCKET, SO_MEMINFO, memory, &length) != 0 || memory[SK_MEMINFO_DROPS] > 0)
			break;
	}
	return count;
}

static void report_receive_buffer(struct vb_findings *findings, uint32_t asked, uint32_t effective, unsigned trains)
{
	char holds[64] = "";

	if (trains)
		snprintf(holds, sizeof(holds), " (%s%u trains of 64 KiB)",
			trains == TRAINS_COUNTED_MAX ? "at least " : "", trains);
	/* The kernel doubles what it grants. */
	if (effective / 2 >= asked) {
		vb_finding_add(findings, VB_FINDING_OK, "receive buffer", "%u bytes a process%s", effective, holds);
		return;
	}
	vb_finding_add(findings, VB_FINDING_SLOW, "receive buffer",
		"net.core.rmem_max %u allows %u bytes a process%s; bursts of many senders overflow it", effective / 2,
		effective, holds);
	vb_finding_cure(
		findings, "sudo sysctl -w net.core.rmem_max=%u (on the host itself, outside containers)", asked);
}

static void check_trains(struct vb_findings *findings, const struct vb_settings *settings)
{
	struct sockaddr_in address, sender_address;
	int one = 1, segment = TRAIN_SEGMENT, buffer = (int)settings->receive_buffer, effective = 0, kept;
	socklen_t length = sizeof(effective), kept_length = sizeof(kept);

	int receiver = loopback_socket(&address, false), sender = loopback_socket(&sender_address, false);
	if (receiver < 0 || sender < 0) {
		vb_finding_add(findings, VB_FINDING_STOP, "UDP", "a UDP socket on loopback: %s", strerror(errno));
		vb_finding_cure(
			findings, "%s", vb_loopback_is_down() ? VB_LOOPBACK_CURE : "allow UDP sockets in the sandbox");
		goto out;
	}
	/* gVisor takes the option and forgets it. */
	bool can_send = setsockopt(sender, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0 &&
			getsockopt(sender, IPPROTO_UDP, UDP_SEGMENT, &kept, &kept_length) == 0;
	bool can_receive = setsockopt(receiver, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)) == 0;
	if (can_send && can_receive) {
		vb_finding_add(findings, VB_FINDING_OK, "trains", "UDP segmentation (GSO) and merging (GRO) work");
	} else {
		vb_finding_add(findings, VB_FINDING_SLOW, "trains", "no %s: every packet costs a system call's share",
			can_send ? "UDP_GRO" : "UDP_SEGMENT");
		vb_finding_cure(findings, "Linux 5.0 or newer");
	}
	setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	getsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &effective, &length);
	report_receive_buffer(findings, settings->receive_buffer, (uint32_t)effective,
		can_send && can_receive ? count_trains(receiver, sender, &address) : 0);
out:
	if (receiver >= 0)
		close(receiver);
	if (sender >= 0)
		close(sender);
}

void vb_check_kernel(struct vb_findings *findings, const struct vb_settings *settings)
{
	check_version(findings);
	check_abstract_socket(findings);
	check_pidfd(findings);
	check_steering(findings);
	check_trains(findings, settings);
}
