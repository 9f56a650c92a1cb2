/* The carrier of a forwarder's channel: a socket pair, and a forwarder that is this test. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "port/carried.h"
#include "port/channel_carrier.h"
#include "../unit.h"

enum { SRC_PORT = 0xC777, SEGMENT = 100 };

static int ends[2];
static struct vb_carrier *carrier;
static struct vb_rx_message messages[VB_CARRIER_RX];

static void open_channel(void)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(vb_channel_carrier_open(ends[0], 0, &carrier), 0);
}

static void close_channel(void)
{
	carrier->ops->close(carrier);
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
}

static void add_cmsg(struct vb_carried *carried, int level, int type, const void *data, size_t length)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)(carried->control + carried->control_length);

	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(cmsg), data, length);
	carried->control_length += (uint32_t)CMSG_SPACE(length);
}

/* A merged train of count segments, and how many datagrams the kernel has dropped so far. */
static void forward(unsigned count, uint32_t drops)
{
	static uint8_t bytes[16 * SEGMENT];
	struct vb_carried carried = { .name_length = sizeof(struct sockaddr_in) };
	struct in_pktinfo info = { .ipi_ifindex = 3 };
	struct iovec iov[2] = { { &carried, sizeof(carried) }, { bytes, count * SEGMENT } };
	struct msghdr header = { .msg_iov = iov, .msg_iovlen = 2 };
	int segment = SEGMENT;
	uint8_t traffic_class = 0x6A;

	carried.name.ipv4 = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(SRC_PORT), .sin_addr.s_addr = htonl(0x0A000001)
	};
	info.ipi_addr.s_addr = htonl(0x0A000002);
	add_cmsg(&carried, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	add_cmsg(&carried, IPPROTO_IP, IP_TOS, &traffic_class, sizeof(traffic_class));
	add_cmsg(&carried, IPPROTO_UDP, UDP_GRO, &segment, sizeof(segment));
	add_cmsg(&carried, SOL_SOCKET, 40 /* SO_RXQ_OVFL */, &drops, sizeof(drops));
	for (unsigned i = 0; i < count * SEGMENT; i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(sendmsg(ends[1], &header, MSG_NOSIGNAL), sizeof(carried) + count * SEGMENT);
}

static void message__says_where_it_came_from(void **state)
{
	struct vb_gid src = vb_gid_from_ipv4(10, 0, 0, 1), dst = vb_gid_from_ipv4(10, 0, 0, 2);

	open_channel();
	forward(4, 0);
	assert_int_equal(carrier->ops->receive(carrier, messages), 1);
	assert_int_equal(messages[0].length, 4 * SEGMENT);
	assert_int_equal(messages[0].segment, SEGMENT);
	assert_true(vb_gid_equal(&messages[0].path.src, &src));
	assert_true(vb_gid_equal(&messages[0].path.dst, &dst));
	assert_int_equal(messages[0].path.src_port, SRC_PORT);
	assert_int_equal(messages[0].path.traffic_class, 0x6A);
	assert_int_equal(messages[0].path.ifindex, 3);
	for (unsigned i = 0; i < 4 * SEGMENT; i++)
		assert_int_equal(messages[0].bytes[i], (uint8_t)i);
	close_channel();
}

static void message__without_a_whole_header_is_of_no_use(void **state)
{
	static const uint8_t junk[sizeof(struct vb_carried)] = { 0xFF, 0xFF, 0xFF, 0xFF }; /* a name of that length */

	open_channel();
	send(ends[1], junk, 7, MSG_NOSIGNAL);
	send(ends[1], junk, sizeof(junk), MSG_NOSIGNAL);
	for (unsigned seen = 0, count; seen < 2; seen += count) {
		count = carrier->ops->receive(carrier, messages);
		assert_true(count > 0);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(messages[i].length, 0);
	}
	close_channel();
}

static void reads__grow_while_they_come_back_full(void **state)
{
	static const unsigned expected[] = { 1, 2, 4, 5, 0 };

	open_channel();
	for (unsigned i = 0; i < 12; i++)
		forward(1, 0);
	for (unsigned i = 0; i < COUNT_OF(expected); i++)
		assert_int_equal(carrier->ops->receive(carrier, messages), expected[i]);
	close_channel();
}

/* Datagrams that the forwarder's socket dropped before it was ours are not counted. */
static void drops__are_counted_from_the_first_message_on(void **state)
{
	static const uint32_t told[] = { 1000, 1000, 1007, 1003, 1010 };
	static const uint64_t expected[] = { 0, 0, 7, 7, 10 };

	open_channel();
	for (unsigned i = 0; i < COUNT_OF(told); i++) {
		forward(1, told[i]);
		assert_int_equal(carrier->ops->receive(carrier, messages), 1);
		assert_int_equal(carrier->ops->overflow(carrier), expected[i]);
	}
	close_channel();
}

static void channel__that_has_ended_is_quiet_until_another_is_there(void **state)
{
	struct pollfd wait;
	int fds[VB_CARRIER_FDS], another[2];

	open_channel();
	forward(1, 5);
	close(ends[1]);
	ends[1] = -1;
	assert_int_equal(carrier->ops->receive(carrier, messages), 1);
	unsigned version = carrier->fds_version;
	assert_int_equal(carrier->ops->receive(carrier, messages), 0);
	assert_int_equal(carrier->fds_version, version + 1);
	assert_false(carrier->is_lost);
	assert_int_equal(carrier->ops->fds(carrier, fds), 1);
	wait = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	assert_int_equal(poll(&wait, 1, 0), 0);
	assert_int_equal(carrier->ops->receive(carrier, messages), 0);
	assert_int_equal(carrier->fds_version, version + 1);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, another), 0);
	assert_true(dup3(another[0], ends[0], O_CLOEXEC) >= 0);
	close(another[0]);
	ends[1] = another[1];
	vb_channel_carrier_renew(carrier);
	assert_int_equal(carrier->fds_version, version + 2);
	forward(2, 900); /* another forwarder's socket */
	assert_int_equal(carrier->ops->receive(carrier, messages), 1);
	assert_int_equal(messages[0].length, 2 * SEGMENT);
	assert_int_equal(carrier->ops->overflow(carrier), 0);
	close_channel();
}

static void descriptor__that_is_no_socket_is_lost_once(void **state)
{
	open_channel();
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(dup3(file, ends[0], O_CLOEXEC) >= 0);
	close(file);
	assert_int_equal(carrier->ops->receive(carrier, messages), 0);
	assert_true(carrier->is_lost);
	assert_int_equal(carrier->fds_version, 1);
	assert_int_equal(carrier->ops->receive(carrier, messages), 0);
	assert_int_equal(carrier->fds_version, 1);
	close_channel();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__says_where_it_came_from),
		cmocka_unit_test(message__without_a_whole_header_is_of_no_use),
		cmocka_unit_test(reads__grow_while_they_come_back_full),
		cmocka_unit_test(drops__are_counted_from_the_first_message_on),
		cmocka_unit_test(channel__that_has_ended_is_quiet_until_another_is_there),
		cmocka_unit_test(descriptor__that_is_no_socket_is_lost_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
