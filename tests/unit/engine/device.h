/* A device with two domains, for tests of memory. */
#ifndef VB_TESTS_DEVICE_H
#define VB_TESTS_DEVICE_H

#include <errno.h>
#include "engine/check.h"
#include "core/memory.h"
#include "../unit.h"

enum {
	ALL_REMOTE = VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_ATOMIC,
	ALL_ACCESS = ALL_REMOTE | VB_ACCESS_LOCAL_WRITE | VB_ACCESS_MW_BIND,
};

struct device {
	struct vb_nic *nic;
	struct vb_pd *pd, *other_pd;
};

static inline struct device open_device(void)
{
	struct device device;
	assert_int_equal(vb_nic_create(&(struct vb_nic_config){ .seed = 7, .mtu = 1024 }, &device.nic), 0);
	assert_int_equal(vb_pd_create(device.nic, &device.pd), 0);
	assert_int_equal(vb_pd_create(device.nic, &device.other_pd), 0);
	return device;
}

/* Fails when something was left in a domain. */
static inline void close_device(struct device *device)
{
	vb_nic_check(device->nic);
	assert_int_equal(vb_pd_destroy(device->pd), 0);
	assert_int_equal(vb_pd_destroy(device->other_pd), 0);
	vb_nic_destroy(device->nic);
}

static inline struct vb_mr_config region_of(void *memory, uint64_t length, uint32_t access)
{
	return (struct vb_mr_config){ .memory = memory, .iova = (uintptr_t)memory, .length = length, .access = access };
}

static inline struct vb_mr *registered(struct vb_pd *pd, void *memory, uint64_t length, uint32_t access)
{
	struct vb_mr *mr;
	struct vb_mr_config config = region_of(memory, length, access);
	assert_int_equal(vb_mr_register(pd, &config, &mr), 0);
	return mr;
}

static inline void deregister(struct vb_mr *mr)
{
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
}

#endif
