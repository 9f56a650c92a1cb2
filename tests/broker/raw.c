/* See raw.h. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"
#include "raw.h"

struct vb_gid loopback(void)
{
	return vb_gid_from_ipv4(127, 0, 0, 1);
}

uint8_t get_slot(int connection, int *socket)
{
	const struct vb_message get = { .kind = VB_MESSAGE_GET_SLOT, .request = 1, .receive_buffer = 65536 };
	struct vb_message slot;
	struct pollfd wait = { .fd = connection, .events = POLLIN };
	assert_int_equal(vb_message_send(connection, &get, NULL), 0);
	assert_true(poll(&wait, 1, PATIENCE_S * 1000) > 0);
	assert_int_equal(vb_message_receive(connection, &slot, socket), 0);
	assert_int_equal(slot.kind, VB_MESSAGE_SLOT);
	const struct vb_message open = { .kind = VB_MESSAGE_OPEN, .slot = slot.slot, .introduction.is_open = true };
	assert_int_equal(vb_message_send(connection, &open, NULL), 0);
	return slot.slot;
}

bool hears_mad(int connection, struct vb_cm_message *cm)
{
	struct vb_message message;
	int fd;
	struct pollfd wait = { .fd = connection, .events = POLLIN };
	while (poll(&wait, 1, 200) > 0) {
		assert_int_equal(vb_message_receive(connection, &message, &fd), 0);
		if (message.kind == VB_MESSAGE_MAD)
			return vb_cm_decode(cm, message.mad);
	}
	return false;
}

void post(int connection, const struct vb_cm_message *cm)
{
	struct vb_message message = {
		.kind = VB_MESSAGE_POST_MAD, .sgid = loopback(), .gid = loopback(), .length = VB_MAD_LENGTH
	};
	vb_cm_encode(cm, message.mad);
	assert_int_equal(vb_message_send(connection, &message, NULL), 0);
}

void listen_at(int connection, uint16_t port)
{
	struct vb_message message = { .kind = VB_MESSAGE_BIND,
		.request = 2,
		.binding = { .number = port, .port_space = VB_CM_PS_TCP, .port = port } };
	assert_int_equal(vb_message_send(connection, &message, NULL), 0);
	assert_int_equal(answer_of(connection), 0);
	message.kind = VB_MESSAGE_LISTEN;
	assert_int_equal(vb_message_send(connection, &message, NULL), 0);
	assert_int_equal(answer_of(connection), 0);
}

bool is_root(void)
{
	if (geteuid() == 0)
		return true;
	print_message("skipped: needs root to have several users\n");
	return false;
}

int connect_as(uid_t uid)
{
	assert_int_equal(seteuid(uid), 0);
	int fd = connect_raw();
	assert_int_equal(seteuid(0), 0);
	return fd;
}

int hello(int fd)
{
	const struct vb_message message = { .kind = VB_MESSAGE_HELLO };
	return vb_message_send(fd, &message, NULL);
}

bool is_refused(int fd, struct vb_message *refusal)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	int passed;
	return poll(&wait, 1, PATIENCE_S * 1000) > 0 && vb_message_receive(fd, refusal, &passed) == 0 &&
	       refusal->kind == VB_MESSAGE_REFUSED;
}

void assert_welcome(int fd)
{
	double begin = seconds();
	assert_int_equal(hello(fd), 0);
	assert_int_equal(answer_of(fd), 0);
	assert_true(seconds() - begin < 5); /* others hold it up for half a minute, or for ever */
}
