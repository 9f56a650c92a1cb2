/* The sockets that a carrier sends from: one a key, and what becomes of a key when there are more than sockets. */
#include <unistd.h>
#include "port/sockets.h"
#include "../unit.h"

enum { FLOW = 0xC321, IPV4 = 0x100 };

static struct vb_send_pool pool;

static void close_all(void)
{
	for (unsigned i = 0; i < pool.count; i++)
		close(pool.sockets[i].fd);
	memset(&pool, 0, sizeof(pool));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key__has_one_socket_in_the_range),
		cmocka_unit_test(longest_unused_socket__gets_the_next_key_of_its_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
