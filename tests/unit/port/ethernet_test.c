/* Packet sockets over the loopback interface of a network namespace of the test's own, where one may be made. */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "port/ethernet.h"
#include "../namespace.h"
#include "../unit.h"

#define PATIENCE_MS 2000

static uint8_t buffer[VB_FRAME_MAX + 512];
static uint32_t lo;

static int setup(void **state)
{
	if (!own_namespace())
		return 0;
	lo = if_nametoindex("lo");
	return 0;
}

static void need_namespace(void)
{
	if (!lo)
		skip();
}

/* A frame of the local experimental Ethernet type, which the kernel passes to nobody else. */
static void fill(uint8_t *frame, uint32_t length, uint8_t seed)
{
	static const uint8_t header[] = { 0x01, 0x50, 0x56, 1, 2, 3, 2, 0, 0, 0, 0, 9, 0x88, 0xb5 };
	for (uint32_t i = 0; i < length; i++)
		frame[i] = (uint8_t)(i * 7 + seed);
	memcpy(frame, header, sizeof(header));
}

/* The next frame of our own kind. */
static bool next(int fd, struct vb_ethernet_frame *frame)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	while (poll(&readable, 1, PATIENCE_MS) > 0) {
		if (vb_ethernet_receive(fd, buffer, sizeof(buffer), frame) && frame->length > 14 &&
			frame->bytes[6] == 2 && frame->bytes[11] == 9)
			return true;
	}
	return false;
}

static void send_two_parts(int fd, uint8_t *frame, uint32_t length)
{
	struct vb_iov iov[] = { { frame, 14 }, { frame + 14, length - 14 } };
	assert_int_equal(vb_ethernet_send(fd, lo, iov, 2), 0);
}

static void frame__goes_out_and_comes_in_as_it_was(void **state)
{
	static const uint32_t lengths[] = { 60, 1514, 9000, 65550 };
	static uint8_t frame[VB_FRAME_MAX];
	need_namespace();
	int sender = vb_ethernet_open_sender(), receiver = vb_ethernet_open_receiver(lo);
	assert_true(sender >= 0 && receiver >= 0);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		struct vb_ethernet_frame seen;
		fill(frame, lengths[i], (uint8_t)i);
		send_two_parts(sender, frame, lengths[i]);
		for (int outgoing = 1; outgoing >= 0; outgoing--) { /* the loopback interface shows both ways */
			assert_true(next(receiver, &seen));
			assert_int_equal(seen.is_outgoing, outgoing);
			assert_int_equal(seen.length, lengths[i]);
			assert_memory_equal(seen.bytes, frame, lengths[i]);
		}
	}
	close(sender);
	close(receiver);
}

static void frame__vlan_tag_is_put_back(void **state)
{
	uint8_t frame[100];
	struct vb_ethernet_frame seen;
	need_namespace();
	int sender = vb_ethernet_open_sender(), receiver = vb_ethernet_open_receiver(lo);
	fill(frame, sizeof(frame), 3);
	memcpy(frame + 12, ((uint8_t[]){ 0x81, 0x00, 0x20, 0x07, 0x88, 0xb5 }), 6);
	send_two_parts(sender, frame, sizeof(frame));
	for (int i = 0; i < 2; i++) {
		assert_true(next(receiver, &seen));
		assert_int_equal(seen.length, sizeof(frame));
		assert_memory_equal(seen.bytes, frame, sizeof(frame));
	}
	close(sender);
	close(receiver);
}

static void frame__too_long_or_too_short_is_refused_by_the_kernel(void **state)
{
	static uint8_t frame[70000];
	need_namespace();
	int sender = vb_ethernet_open_sender();
	fill(frame, sizeof(frame), 0);
	struct vb_iov iov = { frame, sizeof(frame) };
	assert_int_equal(vb_ethernet_send(sender, lo, &iov, 1), EMSGSIZE);
	iov.length = 13;
	assert_int_equal(vb_ethernet_send(sender, lo, &iov, 1), EINVAL);
	iov = (struct vb_iov){ (void *)8, 100 };
	assert_int_equal(vb_ethernet_send(sender, lo, &iov, 1), EFAULT);
	close(sender);
}

static void listen__every_interest_can_be_had_and_given_up(void **state)
{
	need_namespace();
	int receiver = vb_ethernet_open_receiver(lo);
	for (int interest = VB_ETHERNET_OWN; interest <= VB_ETHERNET_EVERYTHING; interest++) {
		struct vb_ethernet_filter filter = { (enum vb_ethernet_interest)interest,
			{ 0x01, 0x50, 0x56, 1, 2, 3 } };
		assert_int_equal(vb_ethernet_listen(receiver, lo, &filter), 0);
		vb_ethernet_ignore(receiver, lo, &filter);
	}
	close(receiver);
}

static void open__says_what_the_kernel_says(void **state)
{
	need_namespace();
	assert_int_equal(vb_ethernet_open_receiver(4711), -ENODEV);
	struct rlimit before, none;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int fd = vb_ethernet_open_sender();
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(fd, -EMFILE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__goes_out_and_comes_in_as_it_was),
		cmocka_unit_test(frame__vlan_tag_is_put_back),
		cmocka_unit_test(frame__too_long_or_too_short_is_refused_by_the_kernel),
		cmocka_unit_test(listen__every_interest_can_be_had_and_given_up),
		cmocka_unit_test(open__says_what_the_kernel_says),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
