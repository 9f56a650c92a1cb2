/* sockets [exit|fork|leak|overflow]: a server and a client of sockets, a thread each, for `verbena run --rsockets`.
 * Prints "done". "exit" ends with all open, "fork" has children that call exit(); the others are bugs that a sanitizer
 * is to find. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 200000, CONNECTIONS = 3 };

static char answer[SIZE];
static int listener;

static void must(int is_right, const char *what)
{
	if (!is_right) {
		perror(what);
		exit(1);
	}
}

static void send_all(int fd, const char *bytes)
{
	for (ssize_t sent, at = 0; at < SIZE; at += sent) {
		sent = send(fd, bytes + at, SIZE - at, 0);
		must(sent > 0, "send");
	}
}

static void receive_all(int fd, char *bytes)
{
	for (ssize_t got, at = 0; at < SIZE; at += got) {
		struct pollfd readable = { .fd = fd, .events = POLLIN };
		must(poll(&readable, 1, -1) == 1, "poll");
		got = recv(fd, bytes + at, SIZE - at, 0);
		must(got > 0, "recv");
	}
}

static void check(const char *bytes, int round)
{
	for (int i = 0; i < SIZE; i++)
		must(bytes[i] == (char)round, "bytes");
}

static void *serve(void *ignored)
{
	char end;

	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = accept(listener, NULL, NULL);
		must(fd >= 0, "accept");
		receive_all(fd, answer);
		check(answer, i);
		send_all(fd, answer);
		must(recv(fd, &end, 1, 0) == 0 && close(fd) == 0, "end");
	}
	return NULL;
}

static void have_child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		exit(0);
	must(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

int main(int argc, char **argv)
{
	const char *bug = argc > 1 ? argv[1] : "";
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	pthread_t server;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(listener >= 0 && !bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 8) &&
			!getsockname(listener, (struct sockaddr *)&at, &length),
		"listen");
	must(!pthread_create(&server, NULL, serve, NULL), "pthread_create");
	char *bytes = malloc(SIZE);
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		must(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at)), "connect");
		memset(bytes, i, SIZE);
		send_all(fd, bytes);
		memset(bytes, 0xee, SIZE);
		receive_all(fd, bytes);
		check(bytes, i);
		if (strcmp(bug, "exit") == 0) {
			printf("done\n");
			exit(0);
		}
		if (strcmp(bug, "fork") == 0)
			have_child();
		must(!shutdown(fd, SHUT_RDWR) && !close(fd), "close");
	}
	pthread_join(server, NULL);
	if (strcmp(bug, "overflow") == 0)
		bytes[SIZE + argc] = 1;
	if (strcmp(bug, "leak") != 0)
		free(bytes);
	bytes = NULL;
	close(listener);
	printf("done\n");
	return 0;
}
