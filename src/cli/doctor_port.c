/* verbena doctor: whether a program would get its share of UDP port 4791. The check tries it: it connects to the
 * broker, or starts one, asks for a slot and gives it back. If that fails, the broker finds out which process holds the
 * port. */
#include "cli/doctor.h"
#include "host/client/broker.h"
#include "host/protocol.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

/* The pid of the running broker, or 0. */
static pid_t running_broker(uid_t *uid)
{
	struct sockaddr_un address;
	struct ucred owner = { 0 };
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME), owner_length = sizeof(owner);

	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return 0;
	if (connect(fd, (struct sockaddr *)&address, length) != 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &owner_length) != 0)
		owner.pid = 0;
	close(fd);
	*uid = owner.uid;
	return owner.pid;
}

static void report_port(struct vb_findings *findings, pid_t broker, uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (broker == 0)
		vb_finding_add(findings, VB_FINDING_OK, "UDP port 4791",
			"free; the broker started for this check leaves by itself");
	else if (user)
		vb_finding_add(findings, VB_FINDING_OK, "UDP port 4791", "held by Verbena's broker, pid %d of %s",
			(int)broker, user->pw_name);
	else
		vb_finding_add(findings, VB_FINDING_OK, "UDP port 4791", "held by Verbena's broker, pid %d of uid %u",
			(int)broker, (unsigned)uid);
}

static void check_slot(struct vb_findings *findings, const struct vb_settings *settings, struct vb_broker *broker)
{
	struct vb_slot slot;
	char why[512] = "";

	int error = vb_broker_get_slot(broker, settings->receive_buffer, false, &slot, why, sizeof(why));
	if (error) {
		vb_finding_add(
			findings, VB_FINDING_STOP, "broker", "gives no slot: %s", why[0] ? why : strerror(-error));
		return;
	}
	vb_finding_add(findings, VB_FINDING_OK, "broker",
		"answers, and gave slot %u of %u with a receive buffer of %u bytes", slot.number, VB_SLOT_MAX,
		slot.receive_buffer);
	vb_broker_release_slot(broker, &slot);
	close(slot.fd);
}

void vb_check_port(struct vb_findings *findings, const struct vb_settings *settings)
{
	struct vb_broker *broker;
	char why[512] = "";
	uid_t uid = 0;

	pid_t pid = running_broker(&uid);
	const struct vb_broker_config config = { .accepts_any = settings->broker_any,
		.libexec = settings->text[VB_SETTING_LIBEXEC] };
	int error = vb_broker_connect(&config, &broker, why, sizeof(why));
	if (error) {
		vb_finding_add(findings, VB_FINDING_STOP, "UDP port 4791", "%s", why[0] ? why : strerror(-error));
		if (pid == 0 && access("/sys/module/rdma_rxe", F_OK) == 0)
			vb_finding_cure(findings, "the kernel's soft-RoCE is loaded and may be what holds the port: "
						  "sudo rdma link delete NAME, then sudo modprobe -r rdma_rxe");
		return;
	}
	report_port(findings, pid, uid);
	check_slot(findings, settings, broker);
	vb_broker_disconnect(broker);
}
