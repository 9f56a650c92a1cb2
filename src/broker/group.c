/* See group.h. The kernel's rules that this builds on (net/core/sock_reuseport.c): bind() puts a socket at the end of
 * its group; closing one moves the last into the hole; an index past the end falls back to a hash of the addresses. */
#include "broker/group.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/invariant.h"
#include "broker/port_holder.h"
#include "port/receive_socket.h"
#include "wire/packet.h"

#define USUAL_BUFFER     4194304
#define MAX_GROUP        1024 /* limit of the search for our own socket */
#define FENCE_TIMEOUT_MS 200
#define MAX_FILLERS      64
#define MANY_PROBES      32 /* sent within some 50 us, in which even a flood brings fewer datagrams */

uint32_t group_receive_buffer(int fd)
{
	int value = 0;
	socklen_t length = sizeof(value);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &length);
	return (uint32_t)value;
}

/* Makes a socket with the group's options, not bound yet. */
static int make_socket(sa_family_t family, uint8_t slot, uint32_t receive_buffer)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	vb_set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	vb_set_option(fd, SOL_SOCKET, SO_RCVBUF, receive_buffer > INT32_MAX ? INT32_MAX : (int)receive_buffer);
	/* If only one socket receives a multicast datagram, the kernel's early demultiplexing takes a shortcut that
	 * ends at the steering program. So the broker's own socket receives all of them too; its filter drops them. */
	vb_set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, slot == 0);
	/* The kernel asks any one socket of the group whether it may merge datagrams, so all must allow it. */
	vb_set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (family == AF_INET6) {
		vb_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
		vb_set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	}
	struct sock_filter filter[STEER_FILTER_SIZE];
	steer_build_filter(filter, slot);
	struct sock_fprog program = { STEER_FILTER_SIZE, filter };
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program))) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

static int join_port_at(sa_family_t family, int fd, in_addr_t address)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(VB_UDP_PORT) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(VB_UDP_PORT), .sin_addr.s_addr = address };
	if (address != INADDR_ANY) {
		memset(six.sin6_addr.s6_addr + 10, 0xFF, 2);
		memcpy(six.sin6_addr.s6_addr + 12, &address, 4);
	}
	int rc = family == AF_INET6 ? bind(fd, (struct sockaddr *)&six, sizeof(six))
				    : bind(fd, (struct sockaddr *)&four, sizeof(four));
	return rc ? -errno : 0;
}

static int join_port(sa_family_t family, int fd)
{
	return join_port_at(family, fd, INADDR_ANY);
}

static int make_own(struct group *group)
{
	int fd = make_socket(group->family, 0, USUAL_BUFFER);
	if (fd < 0)
		return fd;
	/* A flood fills the buffer before we read; root may have a larger one than others. */
	vb_set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, USUAL_BUFFER);
	if (group->family == AF_INET6)
		vb_set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (group->family == AF_INET || !vb_counts_drops(fd))
		vb_set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
	return fd;
}

static int attach_map(struct group *group)
{
	assert(group->own >= 0);
	struct sock_filter program[STEER_MAX_PROGRAM];
	int index[STEER_SLOTS];
	for (unsigned slot = 0; slot < STEER_SLOTS; slot++)
		index[slot] = group->is_vacant[slot] ? -1 : group->index[slot];
	unsigned length = steer_build_map(program, index, group->count - 1);
	struct sock_fprog fprog = { (unsigned short)length, program };
	return setsockopt(group->own, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &fprog, sizeof(fprog)) ? -errno : 0;
}

/* ---- Probing ----------------------------------------------------------------------------------------------------- */

/* Replaces *fd by a socket of loopback at any port. */
static bool open_probe(int *fd)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return false;
	if (bind(probe, (const struct sockaddr *)&any, sizeof(any))) {
		close(probe);
		return false;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = probe;
	return true;
}

static int open_probes(struct group *group)
{
	socklen_t length = sizeof(group->fence_address);
	group->probe = group->fence = -1;
	if (!open_probe(&group->probe) || !open_probe(&group->fence) ||
		getsockname(group->fence, (struct sockaddr *)&group->fence_address, &length))
		return -errno;
	return 0;
}

static void send_probe(struct group *group, const uint8_t probe[STEER_PROBE_LENGTH])
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(VB_UDP_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	sendto(group->probe, probe, STEER_PROBE_LENGTH, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to));
}

static void probe_index(struct group *group, unsigned index, unsigned times)
{
	uint8_t probe[STEER_PROBE_LENGTH];
	steer_build_index_probe(probe, (uint16_t)index);
	for (unsigned i = 0; i < times; i++)
		send_probe(group, probe);
}

/* Returns when earlier probes have been delivered, since loopback keeps the order. False: loopback does not work. */
static bool wait_for_probes(struct group *group)
{
	uint32_t mark = (uint32_t)random(), seen;
	if (sendto(group->probe, &mark, sizeof(mark), MSG_NOSIGNAL, (struct sockaddr *)&group->fence_address,
		    sizeof(group->fence_address)) < 0)
		return false;
	for (;;) {
		while (recv(group->fence, &seen, sizeof(seen), 0) == sizeof(seen))
			if (seen == mark)
				return true;
		struct pollfd wait = { .fd = group->fence, .events = POLLIN };
		if (poll(&wait, 1, FENCE_TIMEOUT_MS) <= 0)
			return false;
	}
}

/* How many datagrams the kernel dropped at this socket, including those that its filter dropped. */
static uint32_t drops(int fd)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(memory);
	getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length);
	return memory[SK_MEMINFO_DROPS];
}

/* A flood's datagrams are dropped here too, but fewer in that moment than the probes. */
static bool arrives_at(struct group *group, int fd, unsigned index, unsigned times)
{
	uint32_t before = drops(fd);
	probe_index(group, index, times);
	if (!wait_for_probes(group))
		return false;
	uint32_t seen = drops(fd) - before;
	return seen >= times && seen < 2 * times;
}

/* Our own socket was bound last, so its index gives the size of the group. -1: not found. */
static int find_own(struct group *group)
{
	for (unsigned attempt = 0; attempt < 3; attempt++) {
		for (unsigned i = 0; i < MAX_GROUP; i++) {
			uint32_t before = drops(group->own);
			probe_index(group, i, 1);
			if (!wait_for_probes(group))
				return -1;
			if (drops(group->own) == before)
				continue;
			if (arrives_at(group, group->own, i, MANY_PROBES))
				return (int)i;
		}
	}
	return -1;
}

/* Probes index by index, for a socket that overflows meanwhile, whose drop count is no clean signal. */
static int find_slowly(struct group *group, uint8_t slot)
{
	assert(group->fd[slot] >= 0);
	for (unsigned attempt = 0; attempt < 4; attempt++)
		for (unsigned i = 0; i + 1 < group->count; i++)
			if (arrives_at(group, group->fd[slot], i, MANY_PROBES))
				return (int)i;
	return -1;
}

/* Bit by bit: each round probes the indices that have the bit set, then those that have it clear. A socket that counted
 * exactly one of the two has shown its bit. */
static void find_indices(struct group *group)
{
	assert(group->fd[0] < 0);
	uint32_t before[STEER_SLOTS];
	bool is_clean[STEER_SLOTS];
	memset(is_clean, true, sizeof(is_clean));
	for (unsigned slot = 0; slot < STEER_SLOTS; slot++)
		group->index[slot] = group->fd[slot] < 0 ? -1 : 0;

	for (unsigned bit = 0; 1u << bit < group->count; bit++) {
		uint32_t seen[2][STEER_SLOTS];
		for (unsigned value = 0; value < 2; value++) {
			for (unsigned slot = 1; slot < STEER_SLOTS; slot++)
				if (group->fd[slot] >= 0)
					before[slot] = drops(group->fd[slot]);
			for (unsigned i = 0; i < group->count; i++)
				if ((i >> bit & 1) == value)
					probe_index(group, i, 1);
			wait_for_probes(group);
			for (unsigned slot = 1; slot < STEER_SLOTS; slot++)
				if (group->fd[slot] >= 0)
					seen[value][slot] = drops(group->fd[slot]) - before[slot];
		}
		for (unsigned slot = 1; slot < STEER_SLOTS; slot++) {
			if (group->fd[slot] < 0)
				continue;
			if (seen[0][slot] + seen[1][slot] != 1)
				is_clean[slot] = false;
			else
				group->index[slot] |= (int)(seen[1][slot] << bit);
		}
	}
	for (unsigned slot = 1; slot < STEER_SLOTS; slot++)
		if (group->fd[slot] >= 0 && !is_clean[slot])
			group->index[slot] = find_slowly(group, (uint8_t)slot);
}

static bool slot_probe_arrives(struct group *group, uint8_t slot)
{
	assert(group->fd[slot] >= 0);
	uint8_t probe[STEER_PROBE_LENGTH];
	uint32_t before = drops(group->fd[slot]);
	steer_build_slot_probe(probe, slot);
	send_probe(group, probe);
	return wait_for_probes(group) && drops(group->fd[slot]) != before;
}

static bool arrives_at_own(struct group *group, uint8_t slot)
{
	uint8_t probe[STEER_PROBE_LENGTH];
	uint32_t before = drops(group->own);
	steer_build_slot_probe(probe, slot);
	send_probe(group, probe);
	return wait_for_probes(group) && drops(group->own) != before;
}

/* The old map steers datagrams without a slot to the index of the dead broker's own socket, so ours is brought to that
 * index. The index may be past the end now, since sockets that kept places are gone; then filler sockets extend the
 * group. */
void group_find_survivors(struct group *group, bool survives[STEER_SLOTS])
{
	int fillers[MAX_FILLERS];
	unsigned count = 0;
	while (!arrives_at_own(group, 0) && count < MAX_FILLERS) {
		int own = make_own(group);
		if (own < 0)
			break;
		if (join_port(group->family, own)) {
			close(own);
			break;
		}
		fillers[count++] = group->own;
		group->own = own;
	}
	const bool is_told = arrives_at_own(group, 0);
	for (unsigned slot = 1; slot < STEER_SLOTS - 1; slot++)
		survives[slot] = is_told && group->fd[slot] < 0 && !arrives_at_own(group, (uint8_t)slot);
	/* our socket is the last: it moves into each hole, and is the last again at the end */
	for (unsigned i = 0; i < count; i++)
		close(fillers[i]);
}

bool group_verify(struct group *group, uint8_t slot)
{
	if (group->is_unsteered)
		return true;
	open_probe(&group->probe); /* without a map the source port decides, so try another one */
	if (!wait_for_probes(group))
		return true; /* without loopback nothing can be probed */
	for (unsigned times = 1; times <= MANY_PROBES; times *= MANY_PROBES)
		if (arrives_at(group, group->own, group->count - 1, times) &&
			(slot == 0 || slot_probe_arrives(group, slot)))
			return true;
	return false;
}

/* ---- Without steering -------------------------------------------------------------------------------------------- */

/* The port belongs to one slot, the first; our own socket then has it at 127.0.0.1 alone, where connections of this
 * host's are made. A kernel that runs no programs prefers the socket with the exact address. */

static int take_port(struct group *group, in_addr_t address)
{
	int own = make_own(group);
	if (own < 0)
		return own;
	close(group->own);
	group->own = own;
	return join_port_at(group->family, own, address);
}

static int add_unsteered(struct group *group, uint8_t slot, int fd)
{
	assert(group->is_unsteered);
	if (!group->wire_slot) {
		int rc = take_port(group, htonl(INADDR_LOOPBACK));
		if (rc == 0)
			rc = join_port(group->family, fd);
		if (rc)
			return rc;
		group->wire_slot = slot;
	}
	group->fd[slot] = fd;
	return 0;
}

static void remove_unsteered(struct group *group, uint8_t slot)
{
	assert(group->is_unsteered);
	close(group->fd[slot]);
	group->fd[slot] = -1;
	if (group->wire_slot == slot) {
		group->wire_slot = 0;
		take_port(group, INADDR_ANY);
	}
}

/* ---- Sockets come and go ----------------------------------------------------------------------------------------- */

/* Makes our own socket the last of the group again. The former last socket takes its place. */
static int move_own_to_end(struct group *group)
{
	int fd = make_own(group);
	if (fd < 0)
		return fd;
	close(group->own);
	group->own = fd;
	return join_port(group->family, fd);
}

int group_repair(struct group *group)
{
	if (group->is_unsteered)
		return 0;
	if (!wait_for_probes(group))
		return -ENETDOWN;
	int rc = move_own_to_end(group);
	if (rc)
		return rc;
	int own = find_own(group);
	if (own <= 0) {
		/* Alone, or under a program without probes: attach one that has them, then look again. */
		group->count = 1;
		for (unsigned slot = 0; slot < STEER_SLOTS; slot++)
			group->index[slot] = -1;
		rc = attach_map(group);
		if (rc == 0)
			own = find_own(group);
		if (rc || own < 0)
			return rc ? rc : -EIO;
	}
	group->count = (unsigned)own + 1;
	find_indices(group);
	return attach_map(group);
}

unsigned group_unknown_slots(const struct group *group)
{
	unsigned known = 1;
	for (unsigned slot = 1; slot < STEER_SLOTS; slot++)
		known += group->fd[slot] >= 0;
	return group->count > known ? group->count - known : 0;
}

static void forget(struct group *group, uint8_t slot)
{
	group->fd[slot] = group->index[slot] = -1;
	group->is_vacant[slot] = false;
}

int group_open(struct group *group, char *why, size_t why_size)
{
	for (unsigned slot = 0; slot < STEER_SLOTS; slot++)
		forget(group, (uint8_t)slot);
	group->count = 1;
	int rc = open_probes(group);
	if (rc) {
		snprintf(why, why_size,
			rc == -EADDRNOTAVAIL || rc == -ENETDOWN
				? "the broker needs the loopback interface, which is down; cure: sudo ip link set lo up"
				: "cannot open UDP sockets: %s",
			strerror(-rc));
		return rc;
	}
	group->family = AF_INET6;
	group->own = make_own(group);
	rc = group->own < 0 ? group->own : join_port(group->family, group->own);
	if (rc && rc != -EADDRINUSE) {
		if (group->own >= 0)
			close(group->own);
		group->family = AF_INET;
		group->own = make_own(group);
		rc = group->own < 0 ? group->own : join_port(group->family, group->own);
	}
	if (rc == -EADDRINUSE)
		port_holder_explain(VB_UDP_PORT, why, why_size);
	else if (rc)
		snprintf(why, why_size, "cannot bind UDP port %d: %s", VB_UDP_PORT, strerror(-rc));
	if (rc)
		return rc;
	int example = make_socket(group->family, 0, USUAL_BUFFER);
	if (example >= 0) {
		group->default_buffer = group_receive_buffer(example);
		close(example);
	}
	group->is_unsteered = !vb_counts_drops(group->own);
	group->wire_slot = 0;
	if (group->is_unsteered)
		return 0;
	/* The program of a broker that died is still attached; it has probes, as ours does. */
	int own = find_own(group);
	if (own > 0)
		group->count = (unsigned)own + 1;
	else
		rc = attach_map(group);
	if (rc)
		snprintf(why, why_size, "cannot attach the steering program to UDP port %d: %s", VB_UDP_PORT,
			strerror(-rc));
	return rc;
}

uint8_t group_vacant_place(const struct group *group, uint8_t slot)
{
	assert(!group->is_vacant[slot] || group->fd[slot] >= 0);
	if (group->is_vacant[slot])
		return slot;
	for (unsigned place = 1; place < STEER_SLOTS; place++)
		if (group->is_vacant[place] && group->index[place] >= 0)
			return (uint8_t)place;
	return 0;
}

uint8_t group_last_is_vacant(const struct group *group)
{
	for (unsigned slot = 1; slot < STEER_SLOTS; slot++)
		if (group->is_vacant[slot] && group->index[slot] == (int)group->count - 2)
			return (uint8_t)slot;
	return 0;
}

int group_add(struct group *group, uint8_t slot, uint32_t receive_buffer, uint32_t *effective_buffer)
{
	if (slot == 0 || slot > STEER_SLOTS - 2 || (group->fd[slot] >= 0 && !group->is_vacant[slot]))
		return -EINVAL;
	int fd = make_socket(group->family, slot, receive_buffer);
	if (fd < 0)
		return fd;
	vb_set_option(fd, SOL_SOCKET, SO_LOCK_FILTER, 1);
	if (group->is_unsteered) {
		int rc = add_unsteered(group, slot, fd);
		*effective_buffer = group_receive_buffer(fd);
		if (rc)
			close(fd);
		return rc;
	}
	int own = make_own(group);
	if (own < 0) {
		close(fd);
		return own;
	}
	close(group->own); /* the last: nobody moves */
	group->own = own;
	int rc = join_port(group->family, fd), index = (int)group->count - 1;
	uint8_t place = rc ? 0 : group_vacant_place(group, slot);
	if (place) {
		close(group->fd[place]); /* the new socket, now the last, takes its place */
		index = group->index[place];
		forget(group, place);
		group->count--;
	}
	int own_rc = join_port(group->family, own);
	if (rc || own_rc) {
		close(fd);
		if (own_rc == 0)
			attach_map(group); /* as the only socket, ours took the program along */
		return rc ? rc : own_rc;
	}
	assert(group->fd[slot] < 0);
	group->fd[slot] = fd;
	group->index[slot] = index;
	group->count++;
	rc = attach_map(group);
	if (rc == 0 && (index < 0 || !group_verify(group, slot)))
		rc = group_repair(group);
	*effective_buffer = group_receive_buffer(fd);
	if (rc)
		group_remove(group, slot);
	return rc;
}

bool group_remove(struct group *group, uint8_t slot)
{
	if (group->fd[slot] < 0)
		return true;
	assert(slot != 0);
	if (group->is_unsteered) {
		remove_unsteered(group, slot);
		return true;
	}
	int leaver = group->fd[slot], hole = group->index[slot], keeper = -1;
	bool is_last = hole == (int)group->count - 2;
	int own = make_own(group);
	if (!is_last)
		keeper = make_socket(group->family, slot, 0);
	forget(group, slot);
	if (own < 0 || hole < 0 || (!is_last && keeper < 0)) {
		close(leaver);
		if (own >= 0)
			close(own);
		if (keeper >= 0)
			close(keeper);
		return false;
	}
	close(group->own); /* the last: nobody moves */
	group->own = own;
	if (is_last) {
		close(leaver);
		group->count--;
		assert(group->count > 0);
	} else {
		join_port(group->family, keeper);
		close(leaver); /* the place's keeper, now the last, moves into the hole */
		group->fd[slot] = keeper;
		group->index[slot] = hole;
		group->is_vacant[slot] = true;
	}
	join_port(group->family, own);
	attach_map(group);
	return group_verify(group, 0);
}

static bool is_slot_socket(sa_family_t family, uint8_t slot, int fd)
{
	static const struct {
		int name, value;
	} expected[] = { { SO_TYPE, SOCK_DGRAM }, { SO_PROTOCOL, IPPROTO_UDP }, { SO_REUSEPORT, 1 },
		{ SO_LOCK_FILTER, 1 } };
	int value;
	socklen_t length = sizeof(value);
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		if (getsockopt(fd, SOL_SOCKET, expected[i].name, &value, &length) || value != expected[i].value)
			return false;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &length) || value != family)
		return false;
	union {
		struct sockaddr_in6 six;
		struct sockaddr_in four;
	} name = { 0 };
	length = sizeof(name);
	if (getsockname(fd, (struct sockaddr *)&name, &length) || name.four.sin_port != htons(VB_UDP_PORT))
		return false;
	/* The socket's maker locked its filter, which so proves the slot. */
	struct sock_filter filter[STEER_FILTER_SIZE] = { 0 }, ours[STEER_FILTER_SIZE];
	steer_build_filter(ours, slot);
	length = STEER_FILTER_SIZE; /* the kernel counts in instructions here */
	return getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, filter, &length) == 0 && length == STEER_FILTER_SIZE &&
	       memcmp(filter, ours, sizeof(ours)) == 0;
}

int group_adopt(struct group *group, uint8_t slot, int fd)
{
	if (slot == 0 || slot > STEER_SLOTS - 2 || !is_slot_socket(group->family, slot, fd))
		return -EINVAL;
	if (group->fd[slot] >= 0)
		return -EEXIST;
	assert(!group->is_vacant[slot]);
	group->fd[slot] = fd;
	group->index[slot] = -1;
	return 0;
}

void group_adopt_vacant(struct group *group, uint8_t slot, int fd)
{
	assert(fd >= 0);
	assert(group->fd[slot] < 0);
	group->fd[slot] = fd;
	group->index[slot] = -1;
	group->is_vacant[slot] = true;
}

static uint64_t cookie(int fd)
{
	uint64_t value = 0;
	socklen_t length = sizeof(value);
	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &value, &length);
	return value;
}

bool group_is_same_socket(const struct group *group, uint8_t slot, int fd)
{
	return group->fd[slot] >= 0 && cookie(group->fd[slot]) == cookie(fd);
}
