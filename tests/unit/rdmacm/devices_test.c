/* The devices of a process: opened once, found by their addresses, and what stands for a loopback address. One device,
 * of 10.0.0.1 and fe80::1. */
#include <errno.h>
#include "../unit.h"
#include <rdma/rdma_cma.h>
#include "rdmacm/objects.h"
#include "../verbs/loop_host.h"

static int starts, start_error;
static uint32_t open_mtu, other_mtu;

int vb_connections_start(struct vb_device *device, vb_connections_handler *handler, void *context)
{
	starts += !start_error;
	return start_error;
}

void vb_connections_stop(void)
{
	starts--;
}

uint32_t vb_connections_device_mtu(struct vb_device *device, const struct vb_gid *gid)
{
	return open_mtu;
}

uint32_t vb_connections_find_mtu(const struct vb_gid *gid)
{
	return other_mtu;
}

void vb_handle_cm_event(void *context, const struct vb_cm_event *event) {}

static struct vb_gid own_gid(void)
{
	return vb_gid_from_ipv4(10, 0, 0, 1);
}

static void open__that_cannot_start_connections_can_be_tried_again(void **state)
{
	start_error = -EPERM;
	assert_int_equal(vb_devices_open(), -EPERM);
	assert_int_equal(loop_open_devices(), 0);
	assert_null(rdma_get_devices(NULL));
	assert_int_equal(errno, EPERM);
	start_error = 0;
	assert_int_equal(vb_devices_open(), 0);
	assert_int_equal(loop_open_devices(), 1);
	assert_int_equal(starts, 1);
}

static void devices__are_the_same_contexts_at_every_call(void **state)
{
	struct device_entry *device;
	struct vb_gid gid = own_gid();
	uint8_t index;
	int count;

	struct ibv_context **first = rdma_get_devices(&count), **second = rdma_get_devices(NULL);
	assert_int_equal(count, 1);
	assert_null(first[1]);
	assert_ptr_equal(first[0], second[0]);
	assert_int_equal(vb_device_of_gid(&gid, &device, &index), 0);
	assert_ptr_equal(device->verbs, first[0]);
	rdma_free_devices(first);
	rdma_free_devices(second);
	assert_int_equal(loop_open_devices(), 1);
	assert_int_equal(starts, 1);
}

static void address__is_found_with_its_index(void **state)
{
	struct vb_gid ipv6 = { { 0xfe, 0x80, [15] = 1 } }, nobodys = vb_gid_from_ipv4(10, 0, 0, 2);
	struct device_entry *device;
	uint8_t index = 9;

	assert_int_equal(vb_device_of_gid(&ipv6, &device, &index), 0);
	assert_int_equal(index, LOOP_IPV6_GID_INDEX);
	assert_int_equal(vb_device_of_gid(&nobodys, &device, &index), -ENODEV);
}

/* Another address is in its place from then on. */
static void loopback__is_the_first_devices_own_address(void **state)
{
	struct vb_gid gid = vb_gid_from_ipv4(127, 0, 0, 1), own = own_gid();
	struct device_entry *device = NULL;

	assert_int_equal(vb_device_of_loopback(&gid, &device), 0);
	assert_non_null(device);
	assert_true(vb_gid_equal(&gid, &own));
}

static void xrc__domain_is_one_for_the_device(void **state)
{
	struct vb_gid gid = own_gid();
	struct ibv_xrcd *first, *second;
	struct device_entry *device;
	uint8_t index;

	assert_int_equal(vb_device_of_gid(&gid, &device, &index), 0);
	assert_int_equal(vb_device_xrcd(device, &first), 0);
	assert_int_equal(vb_device_xrcd(device, &second), 0);
	assert_ptr_equal(first, second);
}

static void mtu__is_the_largest_that_the_way_carries(void **state)
{
	const struct {
		uint32_t bytes;
		uint8_t mtu;
	} of[] = { { 0, 0 }, { 255, 0 }, { 256, IBV_MTU_256 }, { 1023, IBV_MTU_512 }, { 1024, IBV_MTU_1024 },
		{ 4096, IBV_MTU_4096 }, { 65535, IBV_MTU_4096 } };
	struct vb_gid gid = own_gid();

	for (size_t i = 0; i < COUNT_OF(of); i++) {
		open_mtu = of[i].bytes;
		assert_int_equal(vb_gid_mtu(&gid), of[i].mtu);
	}
	open_mtu = 0; /* of no open device: the kernel knows */
	other_mtu = 2048;
	assert_int_equal(vb_gid_mtu(&gid), IBV_MTU_2048);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__that_cannot_start_connections_can_be_tried_again),
		cmocka_unit_test(devices__are_the_same_contexts_at_every_call),
		cmocka_unit_test(address__is_found_with_its_index),
		cmocka_unit_test(loopback__is_the_first_devices_own_address),
		cmocka_unit_test(xrc__domain_is_one_for_the_device),
		cmocka_unit_test(mtu__is_the_largest_that_the_way_carries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
