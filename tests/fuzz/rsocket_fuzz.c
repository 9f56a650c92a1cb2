/* What an rsocket's peer may say: private data, grants, lengths, and the headers of datagrams. After any of it our
 * rings hold: what is sent lies within our ring and within what was granted, what is read was received, and a ring is
 * never overdrawn. The input's last bytes are private data, those before what happens; they are tried as headers too.
 */
#include <stdlib.h>
#include <string.h>
#include "rsocket/datagram.h"
#include "rsocket/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { RING = 4096, QUEUE = 64, MOST_INLINE = 64 };

static void require(bool holds)
{
	if (!holds)
		abort();
}

static uint32_t number(const uint8_t *bytes)
{
	uint32_t value;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

struct both {
	struct vb_rs_sender sender;
	struct vb_rs_receiver receiver;
	uint32_t in_flight; /* bytes of our ring that are being sent */
};

static void send_some(struct both *both, uint32_t wanted, bool is_inline)
{
	uint32_t room = vb_rs_sender_room(&both->sender), length = wanted % (room + 1);
	uint32_t from = both->sender.put_at;
	struct vb_rs_region granted = both->sender.target[both->sender.target_index];
	if (is_inline && length > MOST_INLINE)
		length = MOST_INLINE;
	if (length == 0)
		return;
	struct vb_rs_region place = vb_rs_sender_take(&both->sender, length, is_inline);
	require(place.addr == granted.addr && place.key == granted.key && place.length <= granted.length);
	require(from + length <= RING || is_inline);
	both->in_flight += is_inline ? 0 : length;
	require(both->sender.free + both->in_flight == RING);
}

static void read_some(struct both *both, uint32_t wanted)
{
	uint32_t together = vb_rs_receiver_together(&both->receiver);
	require(both->receiver.read_at + together <= RING);
	vb_rs_receiver_consume(&both->receiver, wanted % (together + 1));
}

static void tell(struct both *both)
{
	bool has_half;
	uint32_t at;
	vb_rs_receiver_take_credits(&both->receiver, &has_half, &at);
	require(at == 0 || at == RING / 2);
	require(!has_half || !both->receiver.ready || both->receiver.granted + both->receiver.ready <= RING);
}

static void step(struct both *both, uint8_t what, uint32_t value)
{
	struct vb_rs_region region = { value * 0x100000001ull, value, value };
	uint32_t done = both->in_flight ? value % (both->in_flight + 1) : 0;
	switch (what % 7) {
	case 0:
		send_some(both, value, false);
		break;
	case 1:
		send_some(both, value, true);
		break;
	case 2:
		vb_rs_sender_free(&both->sender, done);
		both->in_flight -= done;
		break;
	case 3:
		vb_rs_sender_grant(&both->sender, &region);
		break;
	case 4:
		both->sender.limit = (uint16_t)value;
		break;
	case 5:
		vb_rs_receiver_arrive(&both->receiver, vb_rs_message_value(value));
		break;
	case 6:
		read_some(both, value);
		if (vb_rs_receiver_credits_due(&both->receiver))
			tell(both);
		break;
	}
	require(both->receiver.ready + both->receiver.granted + both->receiver.read <= RING);
}

static bool is_same(const union vb_rs_address *a, const union vb_rs_address *b)
{
	union ibv_gid first = vb_rs_address_gid(a), second = vb_rs_address_gid(b);
	return memcmp(first.raw, second.raw, sizeof(first.raw)) == 0 && a->ipv4.sin_port == b->ipv4.sin_port;
}

/* What is understood comes back when it is written and read again. An IPv4 address in IPv6 form is written in its
 * own. */
static void check_headers(const uint8_t *bytes, size_t length)
{
	struct vb_rs_udp_header udp, same;
	union vb_rs_address sender, same_sender;
	uint8_t again[VB_RS_HEADER_MAX];
	size_t used = vb_rs_udp_header_decode(&udp, bytes, length);
	require(used <= length);
	if (used) {
		size_t written = vb_rs_udp_header_encode(&udp, again);
		require(written <= used && vb_rs_udp_header_decode(&same, again, written) == written);
		require(same.is_data == udp.is_data && same.qpn == udp.qpn && is_same(&same.target, &udp.target));
	}
	used = vb_rs_ud_header_decode(&sender, bytes, length);
	require(used <= length);
	if (used) {
		size_t written = vb_rs_ud_header_encode(&sender, again);
		require(written <= used && vb_rs_ud_header_decode(&same_sender, again, written) == written);
		require(is_same(&same_sender, &sender));
		require(written < used || memcmp(again + 4, bytes + 4, used - 4) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct vb_rs_hello hello;
	struct both both = { 0 };
	check_headers(bytes, length);
	if (length < VB_RS_HELLO_LENGTH ||
		vb_rs_hello_decode(&hello, bytes + length - VB_RS_HELLO_LENGTH, VB_RS_HELLO_LENGTH))
		return 0;
	vb_rs_sender_init(&both.sender, RING, &hello);
	vb_rs_receiver_init(&both.receiver, RING, QUEUE);
	for (size_t at = 0; at + 5 <= length - VB_RS_HELLO_LENGTH; at += 5)
		step(&both, bytes[at], number(bytes + at + 1));
	return 0;
}
