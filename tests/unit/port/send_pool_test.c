/* The sockets that a carrier sends from: one a key, and what becomes of a key when there are more than sockets. */
#include <unistd.h>
#include <sys/resource.h>
#include "port/sockets.h"
#include "../unit.h"

enum { FLOW = 0xC321, IPV4 = 0x100 };

static struct vb_send_pool pool;

static void close_all(void)
{
	for (unsigned i = 0; i < pool.count; i++)
		close(pool.sockets[i].fd);
	memset(&pool, 0, sizeof(pool));
	vb_send_pool_init(&pool, false);
}

static struct vb_send_socket *get(uint16_t key)
{
	struct vb_send_socket *socket = vb_send_pool_get(&pool, key, key & IPV4, FLOW);

	assert_non_null(socket);
	vb_send_pool_check(&pool);
	return socket;
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
	return ntohs(((struct sockaddr_in *)&name)->sin_port); /* IPv6's port is at the same place */
}

static void key__has_one_socket_in_the_range(void **state)
{
	static const uint16_t keys[] = { IPV4 | 1, IPV4 | 2, 1, IPV4 | 1 | 1 << 9, IPV4 | 255 | 7 << 9 };
	struct vb_send_socket *sockets[COUNT_OF(keys)];

	for (unsigned i = 0; i < COUNT_OF(keys); i++) {
		sockets[i] = get(keys[i]);
		assert_int_equal(bound_port(sockets[i]->fd), sockets[i]->port);
		assert_in_range(sockets[i]->port, 0xC000, 0xFFFF);
		for (unsigned k = 0; k < i; k++)
			assert_ptr_not_equal(sockets[i], sockets[k]);
	}
	for (unsigned i = 0; i < COUNT_OF(keys); i++)
		assert_ptr_equal(get(keys[i]), sockets[i]);
	assert_int_equal(pool.count, COUNT_OF(keys));
	close_all();
}

static void longest_unused_socket__gets_the_next_key_of_its_version(void **state)
{
	struct vb_send_socket *first = get(IPV4 | 1), *second = get(IPV4 | 2), *other = get(3);

	for (uint16_t i = 4; i <= VB_SEND_SOCKETS; i++)
		get(IPV4 | i);
	assert_int_equal(pool.count, VB_SEND_SOCKETS);
	get(IPV4 | 1); /* used lately */
	assert_ptr_equal(get(IPV4 | 200), second);
	assert_ptr_equal(get(201), other);
	assert_ptr_equal(get(IPV4 | 1), first);
	assert_int_equal(pool.socket_of_key[IPV4 | 2], 0);
	assert_int_equal(pool.count, VB_SEND_SOCKETS);
	close_all();
}

static void flows__may_have_more_sockets_within_a_share_of_the_descriptors(void **state)
{
	struct vb_send_pool small = { 0 }, large = { 0 };
	struct rlimit before, few;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 800;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	vb_send_pool_init(&large, true);
	vb_send_pool_init(&small, false);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(large.most, 100);
	assert_int_equal(small.most, VB_SEND_SOCKETS);
}

int main(void)
{
	vb_send_pool_init(&pool, false);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key__has_one_socket_in_the_range),
		cmocka_unit_test(flows__may_have_more_sockets_within_a_share_of_the_descriptors),
		cmocka_unit_test(longest_unused_socket__gets_the_next_key_of_its_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
