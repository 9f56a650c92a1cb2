/* Datagrams, with a peer that is this test: a UDP socket of the kernel's, where queue pairs are told of, and an
 * unreliable datagram queue pair. */
#include "pair.h"
#include "rsocket/datagram.h"

#include <unistd.h>

enum { RECEIVES = 384 }; /* an rsocket's */

static int udp;
static struct sockaddr_in own, theirs; /* the peer's, the rsocket's */
static uint32_t qpn;                   /* the rsocket's */

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in name;
	socklen_t length = sizeof(name);
	assert_int_equal(fd == pair_client ? rgetsockname(fd, (struct sockaddr *)&name, &length)
					   : getsockname(fd, (struct sockaddr *)&name, &length),
		0);
	return name;
}

static void start_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .qkey = VB_RS_QKEY };

	pair_verbs->left = fixture_create_qp(pair_verbs, IBV_QPT_UD, NULL);
	fixture_start_ud(pair_verbs->left);
	assert_int_equal(ibv_modify_qp(pair_verbs->left, &attr, IBV_QP_STATE | IBV_QP_QKEY), 0);
}

static int setup(void **state)
{
	struct sockaddr *any_port = loop_address("127.0.0.1", 0);
	int error = pair_setup(state);

	udp = socket(AF_INET, SOCK_DGRAM, 0);
	pair_client = rsocket(AF_INET, SOCK_DGRAM, 0);
	if (error || bind(udp, any_port, sizeof(own)) || rbind(pair_client, any_port, sizeof(own)))
		return -1;
	own = name_of(udp);
	theirs = name_of(pair_client);
	start_qp();
	return 0;
}

static int teardown(void **state)
{
	close(udp);
	return pair_teardown(state);
}

/* The rsocket's next datagram of UDP; how much was behind the header. */
static size_t take_udp(struct vb_rs_udp_header *header)
{
	uint8_t bytes[VB_RS_HEADER_MAX + VB_RS_DATAGRAM_MAX];
	struct pollfd readable = { .fd = udp, .events = POLLIN };

	assert_int_equal(poll(&readable, 1, 1000), 1);
	ssize_t length = recv(udp, bytes, sizeof(bytes), 0);
	size_t own_length = vb_rs_udp_header_decode(header, bytes, (size_t)length);
	assert_int_not_equal(own_length, 0);
	return (size_t)length - own_length;
}

/* The first datagram is for the program, and tells both of each other's queue pairs. */
static void meet(void)
{
	struct vb_rs_udp_header header = { .is_data = true, .qpn = pair_verbs->left->qp_num, .target.ipv4 = theirs };
	uint8_t bytes[VB_RS_HEADER_MAX + 5];
	size_t length = vb_rs_udp_header_encode(&header, bytes);
	struct sockaddr_in from;
	socklen_t from_length = sizeof(from);
	char text[8];

	memcpy(bytes + length, "first", 5);
	assert_int_equal(sendto(udp, bytes, length + 5, 0, (struct sockaddr *)&theirs, sizeof(theirs)), length + 5);
	assert_int_equal(rrecvfrom(pair_client, text, 8, 0, (struct sockaddr *)&from, &from_length), 5);
	assert_memory_equal(text, "first", 5);
	assert_int_equal(from.sin_port, own.sin_port);
	assert_int_equal(take_udp(&header), 0);
	assert_false(header.is_data);
	qpn = header.qpn;
}

/* From our queue pair, in the name of that address. */
static void send_as(const char *ip, uint16_t port, const char *text)
{
	union vb_rs_address sender;
	struct ibv_ah_attr attr = fixture_ah_attr();
	struct ibv_ah *ah = ibv_create_ah(pair_verbs->pd, &attr);

	memcpy(&sender, loop_address(ip, port), sizeof(sender.ipv4));
	size_t length = vb_rs_ud_header_encode(&sender, pair_verbs->buffer);
	memcpy(pair_verbs->buffer + length, text, strlen(text));
	struct ibv_sge sge = fixture_sge(pair_verbs, 0, (uint32_t)(length + strlen(text)));
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { ah, qpn, VB_RS_QKEY } };
	assert_int_equal(fixture_post(pair_verbs->left, wr), 0);
	assert_int_equal(fixture_complete(pair_verbs->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void expect_nothing(void)
{
	char byte;
	pair_assert_fails(rrecv(pair_client, &byte, 1, MSG_DONTWAIT), EAGAIN);
}

/* ---- The tests --------------------------------------------------------------------------------------------------- */

static void first__goes_through_udp_and_tells_the_queue_pair(void **state)
{
	struct vb_rs_udp_header header;
	size_t to_length = sizeof(own);

	pair_assert_fails(rsend(pair_client, "nobody", 6, 0), EDESTADDRREQ);
	assert_int_equal(rsendto(pair_client, "hello", 5, 0, (struct sockaddr *)&own, (socklen_t)to_length), 5);
	assert_int_equal(take_udp(&header), 5);
	assert_true(header.is_data);
	assert_int_not_equal(header.qpn, 0);
	assert_int_equal(header.target.ipv4.sin_addr.s_addr, own.sin_addr.s_addr);
}

static void later__go_from_queue_pair_to_queue_pair(void **state)
{
	struct ibv_sge to = fixture_sge(pair_verbs, 4096, 128);
	union vb_rs_address sender;
	struct pollfd readable = { .fd = udp, .events = POLLIN };

	meet();
	assert_int_equal(fixture_post_recv(pair_verbs->left, 3, &to), 0);
	assert_int_equal(rsendto(pair_client, "back", 4, 0, (struct sockaddr *)&own, sizeof(own)), 4);
	struct ibv_wc wc = fixture_complete(pair_verbs->cq);
	assert_int_equal(wc.byte_len, VB_RS_GRH + VB_RS_UD_HEADER_IPV4 + 4);
	const uint8_t *datagram = pair_verbs->buffer + 4096 + VB_RS_GRH;
	size_t header = vb_rs_ud_header_decode(&sender, datagram, wc.byte_len - VB_RS_GRH);
	assert_memory_equal(datagram + header, "back", 4);
	assert_int_equal(sender.ipv4.sin_port, theirs.sin_port);
	assert_int_equal(poll(&readable, 1, 0), 0);
}

/* What no packet of the path carries goes the other way. */
static void large__goes_through_udp_each_time(void **state)
{
	static char large[VB_RS_DATAGRAM_MAX];
	struct vb_rs_udp_header header;

	meet();
	assert_int_equal(rsendto(pair_client, large, 1017, 0, (struct sockaddr *)&own, sizeof(own)), 1017);
	assert_int_equal(take_udp(&header), 1017);
	pair_assert_fails(rsendto(pair_client, large, sizeof(large) - VB_RS_UD_HEADER_IPV4 + 1, 0,
				  (struct sockaddr *)&own, sizeof(own)),
		EMSGSIZE);
}

/* Whose packet it was, its GRH tells. And each that is dropped makes room for another. */
static void sender__in_anothers_name_is_not_believed(void **state)
{
	char text[8] = "";

	meet();
	for (int i = 0; i < RECEIVES + 1; i++) {
		send_as("10.9.9.9", 7, "lie");
		expect_nothing();
	}
	send_as("10.0.0.1", 7, "truth");
	assert_int_equal(rrecv(pair_client, text, sizeof(text), 0), 5);
	assert_string_equal(text, "truth");
}

static void sender__must_be_whom_we_are_connected_to(void **state)
{
	char text[8] = "";

	meet();
	assert_int_equal(rconnect(pair_client, (struct sockaddr *)&own, sizeof(own)), 0);
	send_as("127.0.0.1", (uint16_t)(ntohs(own.sin_port) + 1), "other");
	expect_nothing();
	send_as("127.0.0.1", ntohs(own.sin_port), "peer");
	assert_int_equal(rrecv(pair_client, text, sizeof(text), 0), 4);
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	assert_int_equal(rconnect(pair_client, &none, sizeof(none)), 0);
	send_as("10.0.0.1", 7, "anyone");
	assert_int_equal(rrecv(pair_client, text, sizeof(text), 0), 6);
}

static void datagram__is_whole_or_cut(void **state)
{
	char text[4] = "";
	struct iovec iov = { text, 3 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	meet();
	send_as("10.0.0.1", 7, "abcdef");
	send_as("10.0.0.1", 7, "gh");
	assert_int_equal(rrecvmsg(pair_client, &message, MSG_PEEK), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(message.msg_flags, MSG_TRUNC);
	assert_int_equal(rrecv(pair_client, text, 3, MSG_TRUNC), 6);
	assert_int_equal(rrecvmsg(pair_client, &message, 0), 2);
	assert_int_equal(message.msg_flags, 0);
	assert_memory_equal(text, "gh", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first__goes_through_udp_and_tells_the_queue_pair, setup, teardown),
		cmocka_unit_test_setup_teardown(later__go_from_queue_pair_to_queue_pair, setup, teardown),
		cmocka_unit_test_setup_teardown(large__goes_through_udp_each_time, setup, teardown),
		cmocka_unit_test_setup_teardown(sender__in_anothers_name_is_not_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(sender__must_be_whom_we_are_connected_to, setup, teardown),
		cmocka_unit_test_setup_teardown(datagram__is_whole_or_cut, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
