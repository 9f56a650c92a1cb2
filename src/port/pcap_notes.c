/* Comments of a capture (pcap.c): what packets of ours say, of which Wireshark knows none, and why one was sent again.
 */
#include <stdarg.h>
#include <stdio.h>
#include "base/invariant.h"
#include "port/port.h"

struct note {
	char *text;
	size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void add(struct note *note, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int n = vsnprintf(note->text + note->at, note->size - note->at, format, arguments);
	va_end(arguments);
	if (n > 0)
		note->at = note->at + (size_t)n < note->size ? note->at + (size_t)n : note->size - 1;
	assert(note->at < note->size);
}

static void add_hello(struct note *note, const struct vb_packet *packet)
{
	add(note, "%s: recovers selectively, holds %u bytes%s",
		packet->hello & VB_HELLO_ANSWERS ? "answers a hello" : "hello", packet->hold_bytes,
		packet->hello & VB_HELLO_TAKES_PATHS ? ", goes on over further addresses" : "");
	if (packet->large_mtu)
		add(note, ", takes packets of %u bytes", packet->large_mtu);
	if (packet->payload_length)
		add(note, "; shows that such a packet comes through");
	if (packet->hello & VB_HELLO_HEARD_LARGE)
		add(note, "; such a packet has come");
}

static bool is_held(const struct vb_packet *packet, unsigned i)
{
	return i < VB_BITMAP_PSNS && packet->bits[i / 64] >> i % 64 & 1;
}

static void add_held(struct note *note, const struct vb_packet *packet)
{
	const char *before = "; holds";

	for (unsigned i = 0; i < VB_BITMAP_PSNS; i++) {
		if (!is_held(packet, i))
			continue;
		unsigned first = i;
		while (is_held(packet, i + 1))
			i++;
		add(note, "%s %u", before, vb_psn_add(packet->psn, first));
		if (i > first)
			add(note, "-%u", vb_psn_add(packet->psn, i));
		before = ",";
	}
}

static void add_bitmap(struct note *note, const struct vb_packet *packet)
{
	add(note, "bitmap: has all before PSN %u", packet->expected_psn);
	add_held(note, packet);
	if (packet->told & VB_TOLD_OVERFLOW)
		add(note, "; its receive buffer was full");
}

static void add_address(struct note *note, const struct vb_packet *packet)
{
	const uint8_t *b = packet->address.raw;

	add(note, "%s %u further addresses", packet->path_flags & VB_PATH_ANSWERS ? "answers: has" : "has",
		packet->path_number);
	if (packet->path_number == 0)
		return;
	if (vb_gid_is_ipv4(&packet->address)) {
		add(note, ", one is %u.%u.%u.%u", b[12], b[13], b[14], b[15]);
		return;
	}
	for (unsigned i = 0; i < 16; i += 2)
		add(note, "%s%x", i ? ":" : ", one is ", (unsigned)b[i] << 8 | b[i + 1]);
}

static const char *const whys[] = {
	[VB_SENT_LOST] = "sent again: it is missing",
	[VB_SENT_PROBE] = "sent again, to hear of the peer",
	[VB_SENT_BACK] = "sent again, with all that is behind it",
	[VB_SENT_ASKED] = "sent again: the peer has asked for it",
};

size_t vb_pcap_note(const struct vb_packet *packet, enum vb_sent_again again, char *text, size_t size)
{
	struct note note = { text, size, 0 };

	assert(size > 0 && again < sizeof(whys) / sizeof(whys[0]));
	text[0] = '\0';
	switch (packet->opcode) {
	case VB_ECHO_REQUEST:
		add(&note, "asks what has left the receive buffer");
		break;
	case VB_ECHO_REPLY:
		add(&note, "answers: all before has left the receive buffer");
		break;
	case VB_HELLO:
		add_hello(&note, packet);
		break;
	case VB_BITMAP:
		add_bitmap(&note, packet);
		break;
	case VB_PATH_PROBE:
		add(&note, "asks whether this path works, question %u%s", packet->path_number,
			packet->path_flags & VB_PATH_IS_USED ? "; it is the one in use" : "");
		break;
	case VB_PATH_ANSWER:
		add(&note, "answers question %u%s", packet->path_number,
			packet->path_flags & VB_PATH_IS_PROVED ? "; takes what comes by this path" : "");
		break;
	case VB_PATH_ADDRESS:
		add_address(&note, packet);
		break;
	case VB_READ_LARGE:
		add(&note, "READ request of %u bytes, to be answered in large packets", packet->dma_length);
		break;
	default:
		break;
	}
	if (again != VB_SENT_FIRST)
		add(&note, "%s%s", note.at > 0 ? "; " : "", whys[again]);
	return note.at;
}
