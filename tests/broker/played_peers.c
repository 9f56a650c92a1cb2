/* See played_peers.h. */
#include "played_peers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "host/protocol.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum { PATIENCE_MS = 5000 };

static struct one {
	unsigned introductions;
	bool is_met;
	struct vb_broker_notice introduction; /* with its descriptors */
} all[256];

static unsigned alones;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* the broker's thread hears, the client's main obeys */

static bool is_there(const struct one *one)
{
	char byte;
	return one->is_met && recv(one->introduction.socket, &byte, 1, MSG_PEEK) != 0;
}

static void part(const struct vb_broker_notice *introduction)
{
	close(introduction->socket);
	close(introduction->memory);
	if (introduction->pidfd >= 0)
		close(introduction->pidfd);
}

void played_peers_hear(const struct vb_broker_notice *notice)
{
	pthread_mutex_lock(&mutex);
	struct one *one = &all[notice->slot];
	if (notice->kind == VB_BROKER_ALONE)
		alones++;
	if (notice->kind == VB_BROKER_INTRODUCTION) {
		one->introductions++;
		if (is_there(one)) {
			part(notice);
		} else {
			if (one->is_met)
				part(&one->introduction);
			one->is_met = true;
			one->introduction = *notice;
		}
	}
	pthread_mutex_unlock(&mutex);
}

static pid_t pid_of(int pidfd)
{
	char path[64], line[128];
	int pid = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	FILE *file = pidfd >= 0 ? fopen(path, "r") : NULL;
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	if (file)
		fclose(file);
	return pid;
}

/* What is met in slot, in one glance; false: nobody. */
static bool look(uint8_t slot, struct report *report, struct vb_broker_notice *introduction)
{
	pthread_mutex_lock(&mutex);
	const struct one *one = &all[slot];
	*introduction = one->introduction;
	report->alones = alones;
	report->met = (struct played_peer){ .introductions = one->introductions,
		.is_there = is_there(one),
		.side = introduction->side,
		.is_same_user = introduction->is_same_user,
		.pid = pid_of(one->is_met ? introduction->pidfd : -1) };
	pthread_mutex_unlock(&mutex);
	report->rc = report->met.is_there ? 0 : -ENOTCONN;
	return report->met.is_there;
}

/* Each side has a half. */
static pid_t *word_of(uint8_t *memory, uint8_t side)
{
	return (pid_t *)(void *)(memory + side * (VB_INTRODUCTION_BYTES - sizeof(pid_t)));
}

static uint8_t *map(const struct vb_broker_notice *introduction)
{
	void *memory = mmap(NULL, VB_INTRODUCTION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, introduction->memory, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static bool is_sealed(int memory)
{
	return ftruncate(memory, VB_INTRODUCTION_BYTES - 4096) < 0 && errno == EPERM &&
	       ftruncate(memory, VB_INTRODUCTION_BYTES + 4096) < 0 && errno == EPERM &&
	       lseek(memory, 0, SEEK_END) == VB_INTRODUCTION_BYTES;
}

/* Kernels that know how to forbid it pass none. */
static bool passes_descriptors(int socket)
{
	const int none = 0;
	int own = dup(socket), fds[2] = { own, own };
	if (setsockopt(own, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none)) && errno == ENOPROTOOPT)
		return false;
	bool is_passed = vb_pass_send(socket, "f", 1, fds, 2, MSG_DONTWAIT) == 0;
	close(own);
	return is_passed;
}

void played_peers_look(uint8_t slot, struct report *report)
{
	struct vb_broker_notice introduction;
	look(slot, report, &introduction);
}

void played_peers_tell(uint8_t slot, struct report *report)
{
	struct vb_broker_notice introduction;
	const pid_t own = getpid();
	if (!look(slot, report, &introduction))
		return;
	uint8_t *memory = map(&introduction);
	if (!memory || !is_sealed(introduction.memory) || passes_descriptors(introduction.socket) ||
		introduction.own_slot != report->slot) {
		report->rc = -EINVAL;
		return;
	}
	*word_of(memory, introduction.side) = own;
	munmap(memory, VB_INTRODUCTION_BYTES);
	report->rc = send(introduction.socket, &own, sizeof(own), MSG_NOSIGNAL) == sizeof(own) ? 0 : -errno;
}

void played_peers_listen(uint8_t slot, struct report *report)
{
	struct vb_broker_notice introduction;
	if (!look(slot, report, &introduction))
		return;
	struct pollfd wait = { .fd = introduction.socket, .events = POLLIN };
	uint8_t *memory = map(&introduction);
	bool is_told =
		memory && poll(&wait, 1, PATIENCE_MS) > 0 &&
		recv(introduction.socket, &report->met.told, sizeof(report->met.told), 0) == sizeof(report->met.told) &&
		*word_of(memory, !introduction.side) == report->met.told;
	report->rc = is_told ? 0 : -EPROTO;
	if (memory)
		munmap(memory, VB_INTRODUCTION_BYTES);
}
