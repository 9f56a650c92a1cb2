/* A local user who means harm: speaks the broker's protocol (src/host/protocol.h), misuses what he is given.
 *
 *   hostile [--seconds S] [--seed N] [--peer ADDRESS]... [--id HEX:HEX:HEX]... [--only ATTACK,...]
 *     --peer  an address to or from which others have traffic; the first is this host's own
 *     --id    a connection of others: communication ID here, communication ID at the peer, the peer's QPN
 *
 * Each attack of the table below gets its turn, again and again, until the time is up. Whatever lands in a socket that
 * he was given and was not meant for his own slot, and whatever MAD of a connection that he never had, is foreign, and
 * so is anything that has talk.c's mark in it. The last line, "hostile ...", has the counts: what he was given and
 * refused, and foreign packets and bytes. Ends with 0: judging is the harness's. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/random.h"
#include "host/protocol.h"
#include "wire/cm.h"

#ifndef SO_DETACH_REUSEPORT_BPF
#define SO_DETACH_REUSEPORT_BPF 68
#endif
#define MARK "chaos-own-data!!"

enum { MAX_LINKS = 300, MAX_SILENT = 600, MAX_PEERS = 4, MAX_IDS = 64 };

/* A connection to the broker; fd is the socket of its slot, if it got one. */
struct link {
	int connection, fd;
	uint8_t slot;
	bool is_relayed; /* fd is one end of a pair, not a socket of the port: what stands before a packet is the
			    broker's */
};

static struct {
	double seconds;
	uint64_t seed;
	unsigned peer_count, id_count;
	struct vb_gid peers[MAX_PEERS];
	struct {
		uint32_t here, there, qpn;
	} ids[MAX_IDS];
	const char *only;
} options = { .seconds = 5 };

static struct link links[MAX_LINKS];
static unsigned link_count;
static int silent[MAX_SILENT];
static struct vb_random dice;
static double ends_at;

static struct {
	unsigned long slots, slots_refused, relayed, detached, connected, reuse_off, bound, filtered, mads, silent,
		low_ports, ports, adopted, met, junk, dropped, foreign_packets, foreign_bytes, marks, foreign_mads;
} count;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool is_time_up(void)
{
	return now() >= ends_at;
}

/* ---- Reading what is not his ------------------------------------------------------------------------------------- */

static bool is_own_slot(uint8_t slot)
{
	for (unsigned i = 0; i < link_count; i++)
		if (links[i].fd >= 0 && links[i].slot == slot)
			return true;
	return false;
}

/* A datagram in a slot's socket: BTH byte 5 is the slot that it was sent to. Nobody sends to his own. */
static void look_at(const struct link *link, const uint8_t *bytes, size_t length)
{
	count.marks += memmem(bytes, length, MARK, sizeof(MARK) - 1) != NULL;
	if (!link->is_relayed && (length < 12 || !is_own_slot(bytes[5]))) {
		count.foreign_packets++;
		count.foreign_bytes += length;
	}
}

static void read_slots(void)
{
	static uint8_t bytes[65536];

	for (unsigned i = 0; i < link_count; i++)
		for (ssize_t got;
			links[i].fd >= 0 && (got = recv(links[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0;)
			look_at(&links[i], bytes, (size_t)got);
}

/* He posts each MAD with a transaction ID of these, a number that counts up from a random one. */
static struct {
	uint64_t first, next;
} transactions;

/* What a peer says to a DREQ or a REP of a connection that it does not have. */
static bool is_own_answer(const struct vb_cm_message *cm)
{
	const bool is_answer = cm->kind == VB_CM_REJ || cm->kind == VB_CM_DREP;
	return is_answer && cm->transaction_id - transactions.first < transactions.next - transactions.first;
}

/* He listens nowhere and has asked for no connection: a MAD that comes to him and answers none of his is another's. */
static void read_link(struct link *link)
{
	struct vb_message message;
	int fds[VB_MESSAGE_FDS], rc;

	while (link->connection >= 0 && (rc = vb_message_receive_all(link->connection, &message, fds)) != -EAGAIN) {
		for (unsigned i = 0; i < VB_MESSAGE_FDS; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		if (rc) {
			close(link->connection);
			link->connection = -1;
			count.dropped++;
			return;
		}
		count.low_ports +=
			message.kind == VB_MESSAGE_BOUND && message.binding.port && message.binding.port < 1024;
		count.ports += message.kind == VB_MESSAGE_BOUND;
		count.adopted += message.kind == VB_MESSAGE_ADOPTED;
		count.met += message.kind == VB_MESSAGE_INTRODUCTION;
		struct vb_cm_message cm;
		if (message.kind == VB_MESSAGE_MAD && vb_cm_decode(&cm, message.mad) && !is_own_answer(&cm))
			count.foreign_mads++;
	}
}

static void read_everything(void)
{
	for (unsigned i = 0; i < link_count; i++)
		read_link(&links[i]);
	read_slots();
}

/* ---- Getting in -------------------------------------------------------------------------------------------------- */

static int connect_silently(void)
{
	struct sockaddr_un address;
	socklen_t length = vb_abstract_address(&address, VB_BROKER_NAME);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, length)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Waits for an answer of one of two kinds; false: none came within a moment. */
static bool await(int connection, unsigned a, unsigned b, struct vb_message *message, int *fd)
{
	const double until = now() + 1;

	for (*fd = -1; now() < until;) {
		struct pollfd wait = { .fd = connection, .events = POLLIN };
		int fds[VB_MESSAGE_FDS];
		poll(&wait, 1, 100);
		int rc = vb_message_receive_all(connection, message, fds);
		if (rc == -EAGAIN)
			continue;
		const bool is_answer = rc == 0 && (message->kind == a || message->kind == b);
		for (unsigned i = is_answer; i < VB_MESSAGE_FDS; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		*fd = is_answer ? fds[0] : -1;
		if (rc || is_answer)
			return rc == 0;
	}
	return false;
}

static struct link *join(void)
{
	struct vb_message message = { .kind = VB_MESSAGE_HELLO };
	struct link link = { .connection = connect_silently(), .fd = -1 };
	int fd;

	if (link.connection < 0 || link_count == MAX_LINKS)
		return NULL;
	vb_message_send(link.connection, &message, NULL);
	if (!await(link.connection, VB_MESSAGE_WELCOME, VB_MESSAGE_REFUSED, &message, &fd) ||
		message.kind != VB_MESSAGE_WELCOME) {
		close(link.connection);
		return NULL;
	}
	links[link_count] = link;
	return &links[link_count++];
}

static void take_slot(struct link *link)
{
	struct vb_message message = { .kind = VB_MESSAGE_GET_SLOT, .request = 1, .receive_buffer = 4194304 };
	int domain = 0, fd;
	socklen_t length = sizeof(domain);

	vb_message_send(link->connection, &message, NULL);
	if (!await(link->connection, VB_MESSAGE_SLOT, VB_MESSAGE_REFUSED, &message, &fd) ||
		message.kind == VB_MESSAGE_REFUSED || fd < 0) {
		count.slots_refused++;
		return;
	}
	link->slot = message.slot;
	link->fd = fd;
	count.slots++;
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
	link->is_relayed = domain == AF_UNIX;
	count.relayed += link->is_relayed;
}

static bool is_in_use(const struct link *link)
{
	return link->connection >= 0;
}

/* ---- Attacks ----------------------------------------------------------------------------------------------------- */

static void attack_slots(void)
{
	const unsigned long refused = count.slots_refused;

	while (!is_time_up() && count.slots_refused == refused && link_count < MAX_LINKS) {
		struct link *link = join();
		if (!link)
			break;
		take_slot(link);
	}
}

static void attack_detach(void)
{
	const int nothing = 0;

	for (unsigned i = 0; i < link_count; i++)
		if (links[i].fd >= 0)
			count.detached += !setsockopt(
				links[i].fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &nothing, sizeof(nothing));
	for (unsigned i = 0; i < 50 && !is_time_up(); i++, usleep(10000))
		read_everything();
}

/* A connected socket is preferred to the group's program: a scan of the ports that peers send from. */
static void attack_connect(void)
{
	for (unsigned i = 0; i < link_count && !is_time_up(); i++) {
		for (unsigned port = 0xC000; links[i].fd >= 0 && port < 0x10000 && !is_time_up(); port++) {
			const struct vb_gid *peer = &options.peers[vb_random_below(&dice, options.peer_count)];
			struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
			memcpy(&to.sin6_addr, peer->raw, 16);
			count.connected += !connect(links[i].fd, (struct sockaddr *)&to, sizeof(to));
			if (port % 64 == 0)
				read_slots();
		}
		const struct sockaddr none = { .sa_family = AF_UNSPEC };
		if (links[i].fd >= 0 && vb_random_chance(&dice, 500000))
			connect(links[i].fd, &none, sizeof(none));
		read_everything();
		if (i > 4)
			break;
	}
}

static void attack_reuse_off(void)
{
	const int off = 0;

	for (unsigned i = 0; i < link_count; i++)
		if (links[i].fd >= 0)
			count.reuse_off += !setsockopt(links[i].fd, SOL_SOCKET, SO_REUSEPORT, &off, sizeof(off));
}

static void attack_bind_device(void)
{
	struct if_nameindex *names = if_nameindex();

	for (unsigned i = 0; i < link_count && names; i++)
		for (const struct if_nameindex *name = names; links[i].fd >= 0 && name->if_index; name++)
			count.bound += !setsockopt(links[i].fd, SOL_SOCKET, SO_BINDTODEVICE, name->if_name,
				(socklen_t)strlen(name->if_name));
	if (names)
		if_freenameindex(names);
	for (unsigned i = 0; i < 30 && !is_time_up(); i++, usleep(10000))
		read_everything();
}

static void attack_filter(void)
{
	struct sock_filter all[] = { BPF_STMT(BPF_RET | BPF_K, 0xFFFFFFFF) },
			   first[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	const struct sock_fprog take = { 1, all }, steer = { 1, first };
	const int off = 0;

	for (unsigned i = 0; i < link_count; i++) {
		const int fd = links[i].fd;
		if (fd < 0)
			continue;
		count.filtered += !setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof(off));
		count.filtered += !setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off));
		count.filtered += !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &take, sizeof(take));
		count.filtered += !setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &steer, sizeof(steer));
	}
	read_everything();
}

static void post(struct link *link, const struct vb_gid *from, const struct vb_gid *to, const struct vb_cm_message *cm)
{
	struct vb_message message = {
		.kind = VB_MESSAGE_POST_MAD, .request = 9, .sgid = *from, .gid = *to, .length = VB_MAD_LENGTH
	};

	vb_cm_encode(cm, message.mad);
	if (!vb_message_send(link->connection, &message, NULL))
		count.mads++;
}

/* Ends and answers in the name of others: to the peer as if from here, to here as if from the peer, and to here from an
 * ID of his own slot, which the broker passes. */
static void attack_mads(void)
{
	static const enum vb_cm_kind kinds[] = { VB_CM_DREQ, VB_CM_REJ, VB_CM_REP, VB_CM_DREP, VB_CM_MRA };

	for (unsigned i = 0; i < link_count && !is_time_up(); i++) {
		if (!is_in_use(&links[i]))
			continue;
		for (unsigned j = 0; j < options.id_count; j++)
			for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
				struct vb_cm_message cm = { .kind = kinds[k],
					.transaction_id = transactions.next++,
					.local_id = options.ids[j].here,
					.remote_id = options.ids[j].there };
				if (kinds[k] == VB_CM_DREQ)
					cm.dreq.remote_qpn = options.ids[j].qpn;
				for (unsigned from = 0; from < options.peer_count; from++)
					for (unsigned to = 0; to < options.peer_count; to++)
						post(&links[i], &options.peers[from], &options.peers[to], &cm);
				cm.local_id = options.ids[j].there;
				cm.remote_id = options.ids[j].here;
				post(&links[i], &options.peers[0], &options.peers[0], &cm);
				cm.local_id = (uint32_t)links[i].slot << 24 | (cm.local_id & 0xFFFFFF);
				post(&links[i], &options.peers[0], &options.peers[0], &cm);
			}
		read_everything();
		if (i > 8)
			break;
	}
}

static void attack_silence(void)
{
	for (unsigned i = 0; i < MAX_SILENT; i++) {
		if (silent[i] >= 0)
			continue;
		silent[i] = connect_silently();
		count.silent += silent[i] >= 0;
	}
}

static void attack_ports(void)
{
	for (unsigned i = 0; i < link_count && i < 8; i++)
		for (unsigned port = 1; is_in_use(&links[i]) && port < 1100; port += 1 + vb_random_below(&dice, 7)) {
			struct vb_message message = { .kind = VB_MESSAGE_BIND, .request = port };
			message.binding.number = port;
			message.binding.port_space = VB_CM_PS_TCP;
			message.binding.port = (uint16_t)port;
			vb_message_send(links[i].connection, &message, NULL);
			message.kind = VB_MESSAGE_LISTEN;
			vb_message_send(links[i].connection, &message, NULL);
			read_link(&links[i]);
		}
}

static void attack_by_not_reading(void)
{
	struct link *link = join();

	for (unsigned i = 0; link && i < 20000 && !is_time_up(); i++) {
		struct vb_message message = { .kind = i & 1 ? VB_MESSAGE_DISCOVER : VB_MESSAGE_BIND, .request = i };
		message.sgid = options.peers[0];
		message.gid = options.peers[options.peer_count - 1];
		int rc = vb_message_send(link->connection, &message, NULL);
		if (rc && rc != -EAGAIN)
			break;
	}
}

/* Slots of others: handed over, given back. */
static void attack_adoption(void)
{
	for (unsigned slot = 1; slot <= VB_SLOT_MAX && !is_time_up(); slot++) {
		struct link *link = link_count < MAX_LINKS ? join() : NULL;
		if (!link)
			break;
		struct vb_message message = { .kind = slot & 1 ? VB_MESSAGE_ADOPT : VB_MESSAGE_RELEASE_SLOT,
			.request = slot,
			.slot = (uint8_t)slot };
		int fake = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
		const struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(4791) };
		setsockopt(fake, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
		if (bind(fake, (const struct sockaddr *)&any, sizeof(any)))
			count.junk++; /* another user's port: as it should be */
		int *pass = links[0].fd >= 0 && slot % 4 == 1 ? &links[0].fd : &fake;
		vb_message_send(link->connection, &message, slot & 1 ? pass : NULL);
		close(fake);
		read_link(link);
		if (link->connection >= 0)
			close(link->connection);
		link_count--;
	}
}

/* Everybody, from slots of his own and of others, as fast as it goes: half of them are never listened to. */
static void attack_introductions(void)
{
	for (unsigned i = 0; i < link_count && i < 16; i++)
		for (unsigned n = 0; is_in_use(&links[i]) && n < 1024 && !is_time_up(); n++) {
			const struct vb_message message = { .kind = VB_MESSAGE_MEET,
				.request = n,
				.slot = n % 8 ? links[i].slot : (uint8_t)vb_random_u64(&dice),
				.gid = options.peers[n % options.peer_count],
				.introduction.slot = (uint8_t)(n / options.peer_count) };
			vb_message_send(links[i].connection, &message, NULL);
			if (i % 2 && n % 64 == 0)
				read_link(&links[i]);
		}
}

static void attack_junk(void)
{
	uint8_t bytes[2 * sizeof(struct vb_message)];

	for (unsigned i = 0; i < 400 && !is_time_up(); i++) {
		int fd = connect_silently(), fds[4] = { fd, 1, 2, fd };
		if (fd < 0)
			break;
		for (unsigned j = 0; j < 1 + i % 5; j++) {
			for (size_t k = 0; k < sizeof(bytes); k++)
				bytes[k] = (uint8_t)vb_random_u64(&dice);
			if (i & 1)
				bytes[0] = (uint8_t)(bytes[0] % 24), bytes[1] = 0;
			const size_t length = i % 3 ? sizeof(struct vb_message) : vb_random_below(&dice, sizeof(bytes));
			vb_pass_send(fd, bytes, length, fds, vb_random_below(&dice, 5), MSG_DONTWAIT);
			count.junk++;
		}
		close(fd);
	}
}

static const struct attack {
	const char *name;
	void (*run)(void);
} attacks[] = { { "slots", attack_slots }, { "detach", attack_detach }, { "connect", attack_connect },
	{ "filter", attack_filter }, { "mads", attack_mads }, { "ports", attack_ports },
	{ "introductions", attack_introductions }, { "adoption", attack_adoption }, { "junk", attack_junk },
	{ "not reading", attack_by_not_reading }, { "bind-device", attack_bind_device },
	{ "reuse-off", attack_reuse_off }, { "silence", attack_silence } };
enum { ATTACKS = sizeof(attacks) / sizeof(*attacks) };

static bool is_wanted(const char *name)
{
	if (!options.only)
		return true;
	const char *found = strstr(options.only, name);
	return found && (found == options.only || found[-1] == ',') &&
	       (found[strlen(name)] == ',' || found[strlen(name)] == 0);
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static struct vb_gid parse_address(const char *text)
{
	struct vb_gid gid = { { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1 && inet_pton(AF_INET6, text, gid.raw) != 1)
		exit(2);
	return gid;
}

static void read_options(int argc, char **argv)
{
	static const struct option names[] = { { "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'n' }, { "peer", required_argument, NULL, 'p' },
		{ "id", required_argument, NULL, 'i' }, { "only", required_argument, NULL, 'o' }, { 0 } };

	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;)
		if (c == 's')
			options.seconds = atof(optarg);
		else if (c == 'n')
			options.seed = strtoull(optarg, NULL, 0);
		else if (c == 'p' && options.peer_count < MAX_PEERS)
			options.peers[options.peer_count++] = parse_address(optarg);
		else if (c == 'i' && options.id_count < MAX_IDS)
			options.id_count +=
				sscanf(optarg, "%x:%x:%x", &options.ids[options.id_count].here,
					&options.ids[options.id_count].there, &options.ids[options.id_count].qpn) == 3;
		else if (c == 'o')
			options.only = optarg;
		else
			exit(2);
	if (!options.peer_count)
		options.peers[options.peer_count++] = parse_address("127.0.0.1");
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	vb_random_seed(&dice, options.seed);
	memset(silent, -1, sizeof(silent));
	transactions.first = transactions.next = vb_random_u64(&dice);
	ends_at = now() + options.seconds;
	while (!is_time_up()) {
		for (unsigned i = 0; i < ATTACKS && !is_time_up(); i++)
			if (is_wanted(attacks[i].name)) {
				printf("attack %s at %.1f s\n", attacks[i].name, options.seconds - (ends_at - now()));
				fflush(stdout);
				attacks[i].run();
				read_everything();
			}
		usleep(100000);
	}
	printf("hostile slots=%lu slots_refused=%lu relayed=%lu detached=%lu connected=%lu reuse_off=%lu bound=%lu "
	       "filtered=%lu mads=%lu silent=%lu ports=%lu low_ports=%lu adopted=%lu met=%lu junk=%lu dropped=%lu "
	       "foreign_packets=%lu foreign_bytes=%lu marks=%lu foreign_mads=%lu\n",
		count.slots, count.slots_refused, count.relayed, count.detached, count.connected, count.reuse_off,
		count.bound, count.filtered, count.mads, count.silent, count.ports, count.low_ports, count.adopted,
		count.met, count.junk, count.dropped, count.foreign_packets, count.foreign_bytes, count.marks,
		count.foreign_mads);
	return 0;
}
