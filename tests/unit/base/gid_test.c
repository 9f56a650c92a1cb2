#include "base/gid.h"
#include "../unit.h"

static const struct vb_gid link_local = { { 0xFE, 0x80, [15] = 1 } };
static const struct vb_gid ipv6_multicast = { { 0xFF, 0x0E, [15] = 1 } };

static void gid__ipv4_is_mapped(void **state)
{
	struct vb_gid gid = vb_gid_from_ipv4(10, 1, 2, 3);
	assert_memory_equal(gid.raw, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\x0A\x01\x02\x03", 16);
	assert_true(vb_gid_is_ipv4(&gid));
	assert_false(vb_gid_is_ipv4(&link_local));
}

static void gid__equality_is_of_all_bytes(void **state)
{
	struct vb_gid a = vb_gid_from_ipv4(10, 0, 0, 1), b = a;
	assert_true(vb_gid_equal(&a, &b));
	b.raw[0] = 1;
	assert_false(vb_gid_equal(&a, &b));
}

static void gid__zero_is_the_empty_one(void **state)
{
	struct vb_gid zero = { 0 }, ipv4_zero = vb_gid_from_ipv4(0, 0, 0, 0);
	assert_true(vb_gid_is_zero(&zero));
	assert_false(vb_gid_is_zero(&ipv4_zero));
}

static void gid__multicast_is_told_in_both_families(void **state)
{
	struct vb_gid group = vb_gid_from_ipv4(239, 77, 0, 1), host = vb_gid_from_ipv4(223, 255, 255, 255),
		      reserved = vb_gid_from_ipv4(240, 0, 0, 1);
	assert_true(vb_gid_is_multicast(&group));
	assert_false(vb_gid_is_multicast(&host));
	assert_false(vb_gid_is_multicast(&reserved));
	assert_true(vb_gid_is_multicast(&ipv6_multicast));
	assert_false(vb_gid_is_multicast(&link_local));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid__ipv4_is_mapped),
		cmocka_unit_test(gid__equality_is_of_all_bytes),
		cmocka_unit_test(gid__zero_is_the_empty_one),
		cmocka_unit_test(gid__multicast_is_told_in_both_families),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
