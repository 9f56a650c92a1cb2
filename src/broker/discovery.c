/* See discovery.h. */
#include "broker/discovery.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/bytes.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define ENTRIES	       1024
#define TRIES	       3
#define TRY_MS	       100
#define REMEMBER_MS    (10 * 60 * 1000)
#define REMEMBER_NO_MS 5000
#define READS_A_TURN   64
#define SOURCE_PORTS   0xC000 /* and above, as RoCEv2 wants them */

enum state { EMPTY, ASKING, IS_VERBENA, IS_OTHER };

struct entry {
	enum state state;
	struct vb_gid gid, sgid;
	uint32_t scope; /* interface of a link-local address, else 0 */
	uint32_t receive_buffer;
	uint64_t transaction_id;
	uint64_t due_ms; /* of the next try, or when the answer is too old */
	unsigned tries;
	uint64_t waiting[DISCOVERY_CLIENTS / 64];
};

struct discovery {
	discovery_answer *answer;
	void *user;
	uint32_t receive_buffer;
	int send4, send6;
	uint16_t port4, port6;
	uint32_t psn;
	unsigned next_victim;
	struct entry entries[ENTRIES];
};

static uint64_t random_number(void)
{
	uint64_t number = 0;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint64_t)random() << 32 | (uint64_t)random();
	return number;
}

/* ---- Sending ---------------------------------------------------------------------------------------------------- */

/* An ordinary UDP socket with a source port of the RoCEv2 range; DF set, hence identification 0. */
static int open_sender(sa_family_t family, uint16_t *port)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	int on = 1, probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE;
	if (family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6));
	} else {
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe4, sizeof(probe4));
	}
	for (unsigned attempt = 0; attempt < 32; attempt++) {
		*port = (uint16_t)(SOURCE_PORTS | (random_number() & 0x3FFF));
		struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
		struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(*port) };
		if (family == AF_INET6 ? bind(fd, (struct sockaddr *)&six, sizeof(six)) == 0
				       : bind(fd, (struct sockaddr *)&four, sizeof(four)) == 0)
			return fd;
	}
	close(fd);
	return -1;
}

/* The MAD as a UD SEND from QP1 to QP1. Returns the length of the UDP payload. */
static size_t build_datagram(struct discovery *discovery, const struct vb_flow *flow, const uint8_t mad[VB_MAD_LENGTH],
	uint8_t *out)
{
	const struct vb_packet packet = { .opcode = VB_UD_SEND_ONLY, .pkey = VB_PKEY_DEFAULT, .dest_qpn = VB_QPN_GSI,
		.psn = discovery->psn++ & VB_PSN_MASK, .qkey = VB_QKEY_GSI, .src_qpn = VB_QPN_GSI,
		.payload_length = VB_MAD_LENGTH };
	size_t headers = vb_packet_encode_headers(&packet, out);
	memcpy(out + headers, mad, VB_MAD_LENGTH);
	size_t length = headers + VB_MAD_LENGTH + VB_ICRC_LENGTH;
	uint32_t crc = vb_icrc_begin(flow, length, 0);
	crc = vb_icrc_headers(crc, out, headers);
	crc = vb_icrc_end(vb_icrc_add(crc, mad, VB_MAD_LENGTH));
	memcpy(out + headers + VB_MAD_LENGTH, &crc, VB_ICRC_LENGTH);
	return length;
}

static void send_mad(struct discovery *discovery, const struct vb_gid *from, const struct vb_gid *to, uint32_t scope,
	const uint8_t mad[VB_MAD_LENGTH])
{
	const bool is_ipv4 = vb_gid_is_ipv4(to);
	if (is_ipv4 != vb_gid_is_ipv4(from))
		return;
	const struct vb_flow flow = { .src = *from, .dst = *to, .dst_port = VB_UDP_PORT,
		.src_port = is_ipv4 ? discovery->port4 : discovery->port6 };
	uint8_t bytes[VB_MAX_HEADER_BYTES + VB_MAD_LENGTH + VB_ICRC_LENGTH];
	struct iovec io = { bytes, build_datagram(discovery, &flow, mad, bytes) };
	union {
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} control = { 0 };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(VB_UDP_PORT) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(VB_UDP_PORT), .sin6_scope_id = scope };
	struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes };
	if (is_ipv4) {
		struct in_pktinfo info = { 0 };
		memcpy(&info.ipi_spec_dst, from->raw + 12, 4);
		memcpy(&four.sin_addr, to->raw + 12, 4);
		header.msg_name = &four;
		header.msg_namelen = sizeof(four);
		header.msg_controllen = CMSG_SPACE(sizeof(info));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		*c = (struct cmsghdr){ .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof(info)) };
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	} else {
		struct in6_pktinfo info = { .ipi6_ifindex = scope };
		memcpy(&info.ipi6_addr, from->raw, 16);
		memcpy(&six.sin6_addr, to->raw, 16);
		header.msg_name = &six;
		header.msg_namelen = sizeof(six);
		header.msg_controllen = CMSG_SPACE(sizeof(info));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		*c = (struct cmsghdr){ .cmsg_level = IPPROTO_IPV6, .cmsg_type = IPV6_PKTINFO,
			.cmsg_len = CMSG_LEN(sizeof(info)) };
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	}
	sendmsg(is_ipv4 ? discovery->send4 : discovery->send6, &header, MSG_NOSIGNAL);
}

static void send_discovery(struct discovery *discovery, const struct vb_gid *from, const struct vb_gid *to,
	uint32_t scope, uint64_t transaction_id, bool is_response)
{
	uint8_t mad[VB_MAD_LENGTH];
	const struct vb_discovery facts = { .is_response = is_response, .transaction_id = transaction_id,
		.version = VB_DISCOVERY_VERSION, .receive_buffer = discovery->receive_buffer,
		.features = VB_FEATURE_TRAINS };
	vb_discovery_encode(&facts, mad);
	send_mad(discovery, from, to, scope, mad);
}

/* ---- What is known ---------------------------------------------------------------------------------------------- */

static bool is_link_local(const struct vb_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static bool address_is_gid(const struct sockaddr *address, const struct vb_gid *gid)
{
	if (!address)
		return false;
	if (address->sa_family == AF_INET)
		return vb_gid_is_ipv4(gid) &&
			memcmp(&((const struct sockaddr_in *)address)->sin_addr, gid->raw + 12, 4) == 0;
	return address->sa_family == AF_INET6 &&
		memcmp(&((const struct sockaddr_in6 *)address)->sin6_addr, gid->raw, 16) == 0;
}

/* The interface that has this address, 0: none of ours. */
static uint32_t interface_of(const struct vb_gid *gid)
{
	struct ifaddrs *all;
	uint32_t ifindex = 0;
	if (vb_gid_is_ipv4(gid) && gid->raw[12] == 127)
		return 1;
	if (getifaddrs(&all))
		return 0;
	for (struct ifaddrs *one = all; one && !ifindex; one = one->ifa_next)
		if (address_is_gid(one->ifa_addr, gid))
			ifindex = if_nametoindex(one->ifa_name);
	freeifaddrs(all);
	return ifindex;
}

static struct entry *find_entry(struct discovery *discovery, const struct vb_gid *gid, uint32_t scope)
{
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct entry *entry = &discovery->entries[i];
		if (entry->state != EMPTY && entry->scope == scope && vb_gid_equal(&entry->gid, gid))
			return entry;
	}
	return NULL;
}

/* An empty entry; when all are taken the next one that nobody waits for makes room. NULL: all are being asked. */
static struct entry *new_entry(struct discovery *discovery, const struct vb_gid *gid, uint32_t scope)
{
	struct entry *entry = NULL;
	for (unsigned i = 0; i < ENTRIES && !entry; i++)
		if (discovery->entries[i].state == EMPTY)
			entry = &discovery->entries[i];
	for (unsigned i = 0; i < ENTRIES && !entry; i++) {
		struct entry *victim = &discovery->entries[discovery->next_victim++ % ENTRIES];
		if (victim->state != ASKING)
			entry = victim;
	}
	if (entry) {
		memset(entry, 0, sizeof(*entry));
		entry->gid = *gid;
		entry->scope = scope;
	}
	return entry;
}

static void settle(struct discovery *discovery, struct entry *entry, bool is_verbena, uint32_t receive_buffer,
	uint64_t now_ms)
{
	entry->state = is_verbena ? IS_VERBENA : IS_OTHER;
	entry->receive_buffer = receive_buffer;
	entry->due_ms = now_ms + (is_verbena ? REMEMBER_MS : REMEMBER_NO_MS);
	for (unsigned client = 0; client < DISCOVERY_CLIENTS; client++)
		if (entry->waiting[client / 64] >> client % 64 & 1)
			discovery->answer(discovery->user, client, &entry->gid, is_verbena, receive_buffer);
	memset(entry->waiting, 0, sizeof(entry->waiting));
}

static void try_again(struct discovery *discovery, struct entry *entry, uint64_t now_ms)
{
	if (entry->tries == TRIES) {
		settle(discovery, entry, false, 0, now_ms);
		return;
	}
	entry->tries++;
	entry->due_ms = now_ms + TRY_MS;
	send_discovery(discovery, &entry->sgid, &entry->gid, entry->scope, entry->transaction_id, false);
}

void discovery_ask(struct discovery *discovery, uint64_t now_ms, unsigned client, const struct vb_gid *sgid,
	const struct vb_gid *dgid)
{
	if (interface_of(dgid)) {
		discovery->answer(discovery->user, client, dgid, true, discovery->receive_buffer);
		return;
	}
	if (vb_gid_is_multicast(dgid) || vb_gid_is_zero(dgid) || vb_gid_is_ipv4(sgid) != vb_gid_is_ipv4(dgid)) {
		discovery->answer(discovery->user, client, dgid, false, 0);
		return;
	}
	uint32_t scope = is_link_local(dgid) ? interface_of(sgid) : 0;
	struct entry *entry = find_entry(discovery, dgid, scope);
	if (entry && entry->state != ASKING && entry->due_ms > now_ms) {
		discovery->answer(discovery->user, client, dgid, entry->state == IS_VERBENA, entry->receive_buffer);
		return;
	}
	bool is_asked = entry && entry->state == ASKING;
	if (!entry)
		entry = new_entry(discovery, dgid, scope);
	if (!entry) {
		discovery->answer(discovery->user, client, dgid, false, 0);
		return;
	}
	entry->waiting[client / 64] |= 1ull << client % 64;
	if (is_asked)
		return;
	entry->state = ASKING;
	entry->sgid = *sgid;
	entry->tries = 0;
	entry->transaction_id = random_number();
	try_again(discovery, entry, now_ms);
}

void discovery_forget_client(struct discovery *discovery, unsigned client)
{
	for (unsigned i = 0; i < ENTRIES; i++)
		discovery->entries[i].waiting[client / 64] &= ~(1ull << client % 64);
}

int discovery_advance(struct discovery *discovery, uint64_t now_ms)
{
	uint64_t next = UINT64_MAX;
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct entry *entry = &discovery->entries[i];
		if (entry->state == ASKING && entry->due_ms <= now_ms)
			try_again(discovery, entry, now_ms);
		if (entry->state == ASKING && entry->due_ms < next)
			next = entry->due_ms;
	}
	return next == UINT64_MAX ? -1 : next > now_ms ? (int)(next - now_ms) : 0;
}

/* ---- Receiving -------------------------------------------------------------------------------------------------- */

struct arrival {
	struct vb_flow flow;
	uint32_t scope;
	size_t length;
	uint8_t bytes[VB_MAX_HEADER_BYTES + VB_MAD_LENGTH + VB_ICRC_LENGTH + 4];
};

static struct vb_gid gid_of_ipv4(const void *address)
{
	const uint8_t *b = address;
	return vb_gid_from_ipv4(b[0], b[1], b[2], b[3]);
}

/* False: nothing more. A datagram that is no MAD has length 0. */
static bool read_datagram(int fd, sa_family_t family, struct arrival *arrival)
{
	union {
		char bytes[256];
		struct cmsghdr align;
	} control;
	union {
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} from = { 0 };
	struct iovec io = { arrival->bytes, sizeof(arrival->bytes) };
	struct msghdr header = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &io, .msg_iovlen = 1,
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
	ssize_t got = recvmsg(fd, &header, MSG_DONTWAIT);
	if (got < 0)
		return errno == EINTR || errno == ECONNREFUSED;
	arrival->length = 0;
	arrival->scope = 0;
	bool has_destination = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(arrival->flow.dst.raw, &info.ipi6_addr, 16);
			arrival->scope = is_link_local(&arrival->flow.dst) ? info.ipi6_ifindex : 0;
			has_destination = true;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			arrival->flow.dst = gid_of_ipv4(&info.ipi_addr);
			has_destination = true;
		}
	}
	if (family == AF_INET6)
		memcpy(arrival->flow.src.raw, &from.six.sin6_addr, 16);
	else
		arrival->flow.src = gid_of_ipv4(&from.four.sin_addr);
	arrival->flow.src_port = ntohs(from.four.sin_port);
	arrival->flow.dst_port = VB_UDP_PORT;
	if (has_destination && !(header.msg_flags & MSG_TRUNC))
		arrival->length = (size_t)got;
	return true;
}

/* The MAD in it, or NULL: not for QP1, damaged, or not a MAD. */
static const uint8_t *find_mad(const struct arrival *arrival)
{
	struct vb_packet packet;
	uint16_t id;
	if (arrival->length == 0 || vb_packet_decode(&packet, arrival->bytes, arrival->length) != VB_DECODE_OK)
		return NULL;
	if (packet.opcode != VB_UD_SEND_ONLY || packet.dest_qpn != VB_QPN_GSI || packet.qkey != VB_QKEY_GSI ||
		packet.payload_length != VB_MAD_LENGTH)
		return NULL;
	if (!vb_icrc_verify(&arrival->flow, arrival->bytes, arrival->length, false, &id) &&
		!vb_icrc_verify(&arrival->flow, arrival->bytes, arrival->length, true, &id))
		return NULL;
	return packet.payload;
}

static void receive_discovery(struct discovery *discovery, uint64_t now_ms, const struct arrival *arrival,
	const struct vb_discovery *facts)
{
	const struct vb_gid *peer = &arrival->flow.src;
	if (facts->is_response) {
		struct entry *entry = find_entry(discovery, peer, arrival->scope);
		if (entry && entry->state == ASKING && entry->transaction_id == facts->transaction_id)
			settle(discovery, entry, true, facts->receive_buffer, now_ms);
	} else if (!vb_gid_is_multicast(&arrival->flow.dst)) {
		send_discovery(discovery, &arrival->flow.dst, peer, arrival->scope, facts->transaction_id, true);
	}
}

void discovery_receive(struct discovery *discovery, uint64_t now_ms, int socket, sa_family_t family)
{
	struct arrival arrival;
	struct vb_discovery facts;
	for (unsigned i = 0; i < READS_A_TURN && read_datagram(socket, family, &arrival); i++) {
		const uint8_t *mad = find_mad(&arrival);
		if (mad && vb_discovery_decode(&facts, mad))
			receive_discovery(discovery, now_ms, &arrival, &facts);
	}
}

struct discovery *discovery_create(discovery_answer *answer, void *user)
{
	struct discovery *discovery = calloc(1, sizeof(*discovery));
	if (!discovery)
		return NULL;
	discovery->answer = answer;
	discovery->user = user;
	discovery->send4 = open_sender(AF_INET, &discovery->port4);
	discovery->send6 = open_sender(AF_INET6, &discovery->port6);
	return discovery;
}

void discovery_destroy(struct discovery *discovery)
{
	if (discovery->send4 >= 0)
		close(discovery->send4);
	if (discovery->send6 >= 0)
		close(discovery->send6);
	free(discovery);
}

void discovery_set_receive_buffer(struct discovery *discovery, uint32_t bytes)
{
	discovery->receive_buffer = bytes;
}
