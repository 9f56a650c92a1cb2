/* rdma_getaddrinfo: what names, hints and flags give. Needs no network. */
#include "loop.h"
#include <netdb.h>

static struct rdma_addrinfo *get(const char *node, const char *service, struct rdma_addrinfo hints)
{
	struct rdma_addrinfo *res = NULL;
	assert_int_equal(rdma_getaddrinfo(node, service, &hints, &res), 0);
	assert_non_null(res);
	return res;
}

static int fails(const char *node, const char *service, struct rdma_addrinfo hints)
{
	struct rdma_addrinfo *res = NULL;
	int error = rdma_getaddrinfo(node, service, &hints, &res);
	assert_null(res);
	return error;
}

static void passive__address_is_the_source(void **state)
{
	struct rdma_addrinfo *res = get(
		"10.1.2.3", "7471", (struct rdma_addrinfo){ .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP });
	assert_int_equal(res->ai_src_len, sizeof(struct sockaddr_in));
	assert_int_equal(vb_sockaddr_port(res->ai_src_addr), 7471);
	assert_int_equal(res->ai_dst_len, 0);
	assert_null(res->ai_dst_addr);
	assert_int_equal(res->ai_family, AF_INET);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	assert_true(res->ai_flags & RAI_PASSIVE);
	assert_int_equal(res->ai_route_len, 0);
	rdma_freeaddrinfo(res);
}

static void active__source_is_the_routes(void **state)
{
	struct rdma_addrinfo *res = get("127.0.0.1", "7471", (struct rdma_addrinfo){ .ai_port_space = RDMA_PS_UDP });
	assert_int_equal(res->ai_dst_len, sizeof(struct sockaddr_in));
	assert_int_equal(vb_sockaddr_port(res->ai_dst_addr), 7471);
	assert_int_equal(res->ai_qp_type, IBV_QPT_UD);
	assert_int_equal(res->ai_src_len, sizeof(struct sockaddr_in));
	assert_int_equal(vb_sockaddr_port(res->ai_src_addr), 0);
	rdma_freeaddrinfo(res);
}

static void active__hinted_source_stays(void **state)
{
	struct sockaddr *source = loop_address("10.9.9.9", 5);
	struct rdma_addrinfo *res = get("127.0.0.1", "1",
		(struct rdma_addrinfo){ .ai_src_addr = source, .ai_src_len = sizeof(struct sockaddr_in) });
	assert_memory_equal(res->ai_src_addr, source, sizeof(struct sockaddr_in));
	assert_ptr_not_equal(res->ai_src_addr, source);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	rdma_freeaddrinfo(res);
}

static void hints_alone__are_copied(void **state)
{
	struct sockaddr *target = loop_address("::1", 9);
	struct rdma_addrinfo *res = get(NULL, NULL,
		(struct rdma_addrinfo){ .ai_dst_addr = target,
			.ai_dst_len = sizeof(struct sockaddr_in6),
			.ai_port_space = RDMA_PS_IB,
			.ai_qp_type = IBV_QPT_RC });
	assert_int_equal(res->ai_family, AF_INET6);
	assert_int_equal(res->ai_port_space, RDMA_PS_IB);
	assert_memory_equal(res->ai_dst_addr, target, sizeof(struct sockaddr_in6));
	rdma_freeaddrinfo(res);
}

static void numeric_host__refuses_names(void **state)
{
	assert_int_equal(fails("localhost", "1", (struct rdma_addrinfo){ .ai_flags = RAI_NUMERICHOST }), EAI_NONAME);
}

static void family__is_obeyed_and_checked(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_FAMILY | RAI_NUMERICHOST, .ai_family = AF_INET6 };
	assert_int_not_equal(fails("10.0.0.1", "1", hints), 0);
	hints.ai_family = AF_UNIX;
	assert_int_equal(fails("10.0.0.1", "1", hints), EAI_FAMILY);
}

static void nonsense__is_refused(void **state)
{
	struct rdma_addrinfo *res;
	assert_int_equal(fails("10.0.0.1", "1", (struct rdma_addrinfo){ .ai_flags = 0x100 }), EAI_BADFLAGS);
	assert_int_equal(fails("10.0.0.1", "1",
				 (struct rdma_addrinfo){ .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_UD }),
		EAI_SOCKTYPE);
	assert_int_equal(fails("10.0.0.1", "1", (struct rdma_addrinfo){ .ai_port_space = 77 }), EAI_SERVICE);
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passive__address_is_the_source),
		cmocka_unit_test(active__source_is_the_routes),
		cmocka_unit_test(active__hinted_source_stays),
		cmocka_unit_test(hints_alone__are_copied),
		cmocka_unit_test(numeric_host__refuses_names),
		cmocka_unit_test(family__is_obeyed_and_checked),
		cmocka_unit_test(nonsense__is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
