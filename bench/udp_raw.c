/* The throughput and latency of bare UDP sockets, with the options (port/receive_socket.h), datagrams and calls of our
 * port and nothing else: no checksum of ours, no queue pair, no window but one that keeps the receive buffer from
 * running over. The wire is measured against them.
 *
 *   udp_raw serve PORT says "serving", answers until a client says that it has ended
 *   udp_raw stream ADDRESS PORT MS [BYTES] gbps=N lost=N: trains of up to 60 KiB in packets of 8,448 bytes, as large
 *   packets have over jumbo frames (roce/large.h), or of BYTES, payloads where they lie in 1 MiB
 *   udp_raw pingpong ADDRESS PORT ROUNDS p50_us=N p99_us=N, one way: 44 bytes there and back, both ends polling */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "port/receive_socket.h"

enum {
	PAYLOAD_LEAST = 1024,
	PAYLOAD_MOST = 8448,
	BEFORE = 12,
	BEHIND = 4,              /* a WRITE's Middle */
	TRAIN_BYTES = 60 * 1024, /* of whole packets */
	TRAIN_MOST = TRAIN_BYTES / PAYLOAD_LEAST,
	MEMORY = 1 << 20,
	WINDOW = 32, /* trains */
	ANSWER_EVERY = 4,
	BUFFERS = 2, /* read at once, so that they stay in the cache */
	DATAGRAM = 65536,
	PING = 44, /* BTH, RETH, 8 bytes and the ICRC, less what tells them apart */
	PATIENCE_NS = 100 * 1000 * 1000,
	RECEIVE_BUFFER = 4 << 20,
};

enum kind { STREAM = 1, PING_PONG, END }; /* first byte of every datagram */

struct answer {
	uint8_t kind;
	uint64_t trains;
};

static int fd;
static uint8_t memory[MEMORY + PAYLOAD_MOST], buffers[BUFFERS][DATAGRAM];

static void check(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "udp_raw: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void open_socket(uint16_t port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	check((fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0, "socket");
	vb_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	vb_prepare_receive_socket(fd);
	vb_set_option(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
	vb_set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER);
	check(bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0, "bind");
}

/* ---- Both ends --------------------------------------------------------------------------------------------------- */

/* What has arrived in buffers[i] has messages[i].msg_len bytes, and came from names[i]. */
static struct mmsghdr messages[BUFFERS];
static struct sockaddr_in6 names[BUFFERS];

static int read_some(unsigned most)
{
	static uint8_t control[BUFFERS][256];
	static struct iovec iov[BUFFERS];

	for (unsigned i = 0; i < most; i++) {
		iov[i] = (struct iovec){ buffers[i], DATAGRAM };
		messages[i].msg_hdr =
			(struct msghdr){ &names[i], sizeof(names[i]), &iov[i], 1, control[i], sizeof(control[i]), 0 };
	}
	if (most > 1)
		return recvmmsg(fd, messages, most, MSG_DONTWAIT, NULL);
	ssize_t length = recvmsg(fd, &messages[0].msg_hdr, MSG_DONTWAIT);
	messages[0].msg_len = (unsigned)(length < 0 ? 0 : length);
	return length < 0 ? -1 : 1;
}

static void send_to(const struct sockaddr_in6 *to, const void *bytes, size_t length)
{
	check(sendto(fd, bytes, length, 0, (const struct sockaddr *)to, sizeof(*to)) >= 0 || errno == ECONNREFUSED,
		"sendto");
}

/* ---- The server -------------------------------------------------------------------------------------------------- */

static void serve(void)
{
	struct answer answer = { STREAM, 0 };
	int count;

	for (unsigned most = 1;; most = count == (int)most ? BUFFERS : 1) {
		count = read_some(most);
		for (int i = 0; i < count; i++) {
			if (buffers[i][0] == END)
				return;
			if (buffers[i][0] == PING_PONG)
				send_to(&names[i], buffers[i], messages[i].msg_len);
			else if (++answer.trains % ANSWER_EVERY == 0)
				send_to(&names[i], &answer, sizeof(answer));
		}
	}
}

/* ---- The client -------------------------------------------------------------------------------------------------- */

static struct sockaddr_in6 server_at(const char *text, const char *port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port)) };
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	check(inet_pton(AF_INET6, mapped, &at.sin6_addr) == 1, text);
	return at;
}

static void send_train(struct sockaddr_in6 *to, size_t at, unsigned count, unsigned payload)
{
	static const uint8_t first[BEFORE] = { STREAM }, between[BEHIND + BEFORE], last[BEHIND];
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control = { .header = { CMSG_LEN(sizeof(uint16_t)), IPPROTO_UDP, UDP_SEGMENT } };
	struct iovec iov[2 * TRAIN_MOST + 1] = { { (void *)first, BEFORE } };
	struct msghdr message = { to, sizeof(*to), iov, 2 * count + 1, &control, sizeof(control.bytes), 0 };
	uint16_t segment = (uint16_t)(BEFORE + payload + BEHIND);

	memcpy(CMSG_DATA(&control.header), &segment, sizeof(segment));
	for (unsigned i = 0; i < count; i++) {
		iov[2 * i + 1] = (struct iovec){ memory + (at + i * payload) % MEMORY, payload };
		iov[2 * i + 2] = (struct iovec){ (void *)between, BEHIND + BEFORE };
	}
	iov[2 * count] = (struct iovec){ (void *)last, BEHIND };
	check(sendmsg(fd, &message, 0) >= 0, "sendmsg");
}

static void stream(struct sockaddr_in6 *to, int64_t ms, unsigned payload)
{
	const unsigned count = TRAIN_BYTES / payload;
	const size_t train = count * payload;
	uint64_t sent = 0, received = 0, lost = 0;
	int64_t begin = now_ns(), heard = begin, now;

	while ((now = now_ns()) - begin < ms * 1000000) {
		if (read_some(1) == 1 && buffers[0][0] == STREAM) {
			struct answer answer;
			memcpy(&answer, buffers[0], sizeof(answer));
			received = answer.trains;
			heard = now;
		}
		if (now - heard > PATIENCE_NS) {
			lost = sent - received;
			heard = now;
		}
		if (sent - lost - received < WINDOW)
			send_train(to, (size_t)sent++ * train, count, payload);
	}
	printf("gbps=%.3f lost=%llu\n", (double)(received * train) * 8 / (double)(now - begin),
		(unsigned long long)lost);
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

static void ping_pong(struct sockaddr_in6 *to, size_t rounds)
{
	uint8_t ping[PING] = { PING_PONG };
	double *us = calloc(rounds, sizeof(*us));

	check(us && rounds > 0, "rounds");
	for (size_t i = 0; i < rounds; i++) {
		int64_t begin = now_ns();
		send_to(to, ping, sizeof(ping));
		while (read_some(1) != 1)
			check(now_ns() - begin < 20 * (int64_t)PATIENCE_NS, "no answer");
		us[i] = (double)(now_ns() - begin) / 2e3;
	}
	qsort(us, rounds, sizeof(*us), by_value);
	printf("p50_us=%.3f p99_us=%.3f\n", us[rounds / 2], us[rounds * 99 / 100]);
	free(us);
}

int main(int count, char **words)
{
	memset(memory, 7, sizeof(memory));
	if (count == 3 && strcmp(words[1], "serve") == 0) {
		open_socket((uint16_t)atoi(words[2]));
		puts("serving");
		fflush(stdout);
		serve();
		return 0;
	}
	bool is_stream = (count == 5 || count == 6) && strcmp(words[1], "stream") == 0;
	unsigned payload = count == 6 ? (unsigned)atoi(words[5]) : PAYLOAD_MOST;
	bool is_ping_pong = count == 5 && strcmp(words[1], "pingpong") == 0;
	if ((!is_stream && !is_ping_pong) || payload < PAYLOAD_LEAST || payload > PAYLOAD_MOST) {
		fputs("usage: udp_raw serve PORT | stream ADDRESS PORT MS [1024 to 8448] | pingpong ADDRESS PORT "
		      "ROUNDS\n",
			stderr);
		return 2;
	}
	struct sockaddr_in6 to = server_at(words[2], words[3]);
	uint8_t end = END;
	open_socket(0);
	if (is_stream)
		stream(&to, atoll(words[4]), payload);
	else
		ping_pong(&to, (size_t)atoll(words[4]));
	send_to(&to, &end, sizeof(end));
	return 0;
}
