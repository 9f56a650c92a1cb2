/* Options of rsockets: what each may be, when, and what is then there. */
#include "pair.h"

#include <limits.h>
#include <netinet/tcp.h>
#include <sys/time.h>

static int set(int fd, int level, int name, int value)
{
	return rsetsockopt(fd, level, name, &value, sizeof(value));
}

static int setup_new(void **state)
{
	int error = pair_setup(state);
	pair_client = rsocket(AF_INET6, SOCK_STREAM, 0);
	return error || pair_client < 0;
}

static void number__is_set_within_its_bounds(void **state)
{
	const struct {
		int level, name, value, then;
	} of[] = {
		{ SOL_SOCKET, SO_RCVBUF, 5001, 5000 }, /* halves of it are granted */
		{ SOL_SOCKET, SO_RCVBUF, 1, 4096 },
		{ SOL_SOCKET, SO_SNDBUF, 5001, 5001 },
		{ SOL_SOCKET, SO_SNDBUF, INT_MAX, 1 << 28 },
		{ SOL_SOCKET, SO_REUSEADDR, 2, 1 },
		{ SOL_SOCKET, SO_OOBINLINE, 1, 1 },
		{ IPPROTO_TCP, TCP_NODELAY, 1, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 32767, 32767 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 5, 5 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 3, 3 },
		{ IPPROTO_IPV6, IPV6_V6ONLY, 1, 1 },
		{ SOL_RDMA, RDMA_SQSIZE, 1, 16 },
		{ SOL_RDMA, RDMA_RQSIZE, 100000, 0xFFF0 },
		{ SOL_RDMA, RDMA_INLINE, 1000, 512 },
		{ SOL_RDMA, RDMA_IOMAPSIZE, 0, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(of); i++) {
		assert_int_equal(set(pair_client, of[i].level, of[i].name, of[i].value), 0);
		assert_int_equal(pair_option(pair_client, of[i].level, of[i].name), of[i].then);
	}
}

static void number__that_makes_no_sense_is_refused(void **state)
{
	const struct {
		int level, name, value, error;
	} of[] = {
		{ IPPROTO_TCP, TCP_KEEPIDLE, 0, EINVAL },
		{ IPPROTO_TCP, TCP_KEEPCNT, 32768, EINVAL },
		{ IPPROTO_TCP, TCP_CORK, 1, ENOPROTOOPT },
		{ SOL_SOCKET, SO_BROADCAST, 1, ENOPROTOOPT },
		{ SOL_SOCKET, SO_TYPE, 1, ENOPROTOOPT },
		{ IPPROTO_IP, IP_TTL, 1, ENOPROTOOPT },
		{ SOL_RDMA, RDMA_SQSIZE, -1, EINVAL },
		{ SOL_RDMA, RDMA_IOMAPSIZE, -1, EINVAL },
		{ SOL_RDMA, RDMA_ROUTE, 1, ENOPROTOOPT },
	};

	for (size_t i = 0; i < COUNT_OF(of); i++)
		pair_assert_fails(set(pair_client, of[i].level, of[i].name, of[i].value), of[i].error);
	int value = 1;
	pair_assert_fails(rsetsockopt(pair_client, SOL_SOCKET, SO_REUSEADDR, &value, 3), EINVAL);
	pair_assert_fails(rsetsockopt(pair_client, SOL_SOCKET, SO_REUSEADDR, NULL, 4), EFAULT);
	pair_assert_fails(rgetsockopt(pair_client, SOL_SOCKET, SO_REUSEADDR, &value, NULL), EFAULT);
	pair_assert_fails(set(pair_listener, IPPROTO_IPV6, IPV6_V6ONLY, 1), ENOPROTOOPT); /* it is of IPv4 */
	pair_assert_fails(set(-1, SOL_SOCKET, SO_REUSEADDR, 1), EBADF);
}

/* What a connection was made with: as with TCP a buffer that exists stays, and what only we know is refused. */
static void size__stays_once_it_is_connected(void **state)
{
	int before = pair_option(pair_client, SOL_SOCKET, SO_RCVBUF);

	assert_int_equal(set(pair_client, SOL_SOCKET, SO_RCVBUF, before / 2), 0);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_RCVBUF), before);
	pair_assert_fails(set(pair_client, SOL_RDMA, RDMA_SQSIZE, 64), EINVAL);
	/* 1024 of the path, less what a datagram's header takes */
	assert_int_equal(pair_option(pair_client, IPPROTO_TCP, TCP_MAXSEG), 1000);
}

static void address_family__is_settled_when_it_is_bound(void **state)
{
	struct sockaddr *any = loop_address("::", 0);

	assert_int_equal(rbind(pair_client, any, sizeof(struct sockaddr_in6)), 0);
	pair_assert_fails(set(pair_client, IPPROTO_IPV6, IPV6_V6ONLY, 1), EINVAL);
}

static void timeout__is_kept_and_obeyed(void **state)
{
	struct timeval wrong = { .tv_usec = 1000000 }, little = { .tv_usec = 20000 }, got;
	socklen_t length = sizeof(got);
	char byte;

	pair_assert_fails(rsetsockopt(pair_client, SOL_SOCKET, SO_RCVTIMEO, &wrong, sizeof(wrong)), EDOM);
	pair_assert_fails(rsetsockopt(pair_client, SOL_SOCKET, SO_RCVTIMEO, &little, sizeof(little) - 1), EINVAL);
	assert_int_equal(rsetsockopt(pair_client, SOL_SOCKET, SO_RCVTIMEO, &little, sizeof(little)), 0);
	assert_int_equal(rgetsockopt(pair_client, SOL_SOCKET, SO_RCVTIMEO, &got, &length), 0);
	assert_int_equal(got.tv_sec, 0);
	assert_int_equal(got.tv_usec, 20000);
	assert_int_equal(rgetsockopt(pair_client, SOL_SOCKET, SO_SNDTIMEO, &got, &length), 0);
	assert_int_equal(got.tv_usec, 0);
	pair_assert_fails(rrecv(pair_client, &byte, 1, 0), EAGAIN);
}

static void linger__is_off_or_some_seconds(void **state)
{
	struct linger wrong = { 1, -1 }, five = { 1, 5 }, off = { 0, 9 }, got;
	socklen_t length = sizeof(got);

	pair_assert_fails(rsetsockopt(pair_client, SOL_SOCKET, SO_LINGER, &wrong, sizeof(wrong)), EINVAL);
	assert_int_equal(rsetsockopt(pair_client, SOL_SOCKET, SO_LINGER, &five, sizeof(five)), 0);
	assert_int_equal(rgetsockopt(pair_client, SOL_SOCKET, SO_LINGER, &got, &length), 0);
	assert_memory_equal(&got, &five, sizeof(got));
	assert_int_equal(rsetsockopt(pair_client, SOL_SOCKET, SO_LINGER, &off, sizeof(off)), 0);
	assert_int_equal(rgetsockopt(pair_client, SOL_SOCKET, SO_LINGER, &got, &length), 0);
	assert_int_equal(got.l_onoff, 0);
	assert_int_equal(got.l_linger, 0);
}

/* Of an answer no more is written than there is room for. */
static void state__is_told_as_of_a_socket(void **state)
{
	uint8_t bytes[4] = { 9, 9, 9, 9 };
	socklen_t length = 1;

	assert_int_equal(pair_option(pair_listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_ACCEPTCONN), 0);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_DOMAIN), AF_INET6);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	assert_int_equal(rgetsockopt(pair_client, SOL_SOCKET, SO_TYPE, bytes, &length), 0);
	assert_int_equal(length, 1);
	assert_int_equal(bytes[3], 9);
	assert_int_equal(rfcntl(pair_client, F_GETFL), O_RDWR);
	assert_int_equal(rfcntl(pair_client, F_SETFL, O_NONBLOCK | O_APPEND), 0);
	assert_int_equal(rfcntl(pair_client, F_GETFL), O_RDWR | O_NONBLOCK);
	assert_int_equal(rfcntl(pair_client, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(fcntl(pair_client, F_GETFD), FD_CLOEXEC);
	pair_assert_fails(rfcntl(pair_client, F_DUPFD), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(number__is_set_within_its_bounds, setup_new, pair_teardown),
		cmocka_unit_test_setup_teardown(number__that_makes_no_sense_is_refused, setup_new, pair_teardown),
		cmocka_unit_test_setup_teardown(size__stays_once_it_is_connected, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(address_family__is_settled_when_it_is_bound, setup_new, pair_teardown),
		cmocka_unit_test_setup_teardown(timeout__is_kept_and_obeyed, pair_setup_connected, pair_teardown),
		cmocka_unit_test_setup_teardown(linger__is_off_or_some_seconds, setup_new, pair_teardown),
		cmocka_unit_test_setup_teardown(state__is_told_as_of_a_socket, setup_new, pair_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
