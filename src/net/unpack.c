/* See unpack.h. */
#include "net/unpack.h"
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include "net/why.h"

enum { UNPACK_FIRST = 1 << 16, UNPACK_MOST = 1 << 30, GZIP_ALONE = 15 + 16 };

struct unpacking {
	z_stream stream;
	const struct text *text;
	unsigned char *bytes; /* unpacked so far */
	size_t length, room;
};

static bool is_gzip(const unsigned char *bytes, size_t length)
{
	return length >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B; /* RFC 1952, 2.3.1 */
}

static int refuse(const struct unpacking *unpacking, const char *what)
{
	return why_not(unpacking->text->why, unpacking->text->why_size, "%s: byte %lu of the gzip file: %s",
		unpacking->text->name,
		(unsigned long)((const char *)unpacking->stream.next_in - unpacking->text->owned), what);
}

static int make_room(struct unpacking *unpacking)
{
	if (unpacking->length < unpacking->room)
		return 0;
	if (unpacking->room >= UNPACK_MOST)
		return refuse(unpacking, "it unpacks to more than 1 GiB");
	const size_t room = unpacking->room ? unpacking->room * 2 : UNPACK_FIRST;
	unsigned char *larger = realloc(unpacking->bytes, room);
	if (!larger)
		return -ENOMEM;
	unpacking->bytes = larger;
	unpacking->room = room;
	return 0;
}

/* Some more. *is_end: that was all. */
static int unpack_more(struct unpacking *unpacking, bool *is_end)
{
	z_stream *stream = &unpacking->stream;
	int error = make_room(unpacking);
	if (error)
		return error;
	stream->next_out = unpacking->bytes + unpacking->length;
	stream->avail_out = (unsigned)(unpacking->room - unpacking->length);
	const int said = inflate(stream, Z_NO_FLUSH);
	unpacking->length = unpacking->room - stream->avail_out;
	if (said == Z_STREAM_END) {
		/* Several files one behind the other are one (RFC 1952, 2.2). */
		*is_end = stream->avail_in == 0;
		return *is_end || inflateReset(stream) == Z_OK ? 0 : -ENOMEM;
	}
	if (said == Z_MEM_ERROR)
		return -ENOMEM;
	if (said == Z_BUF_ERROR || (said == Z_OK && stream->avail_in == 0 && stream->avail_out > 0))
		return refuse(unpacking, "it ends early");
	return said == Z_OK ? 0 : refuse(unpacking, stream->msg ? stream->msg : "it is damaged");
}

int text_unpack(struct text *text, bool *is_packed)
{
	struct unpacking unpacking = { .text = text };
	const size_t length = (size_t)(text->end - text->owned);
	*is_packed = is_gzip((const unsigned char *)text->owned, length);
	if (!*is_packed)
		return 0;
	unpacking.stream.next_in = (unsigned char *)text->owned;
	unpacking.stream.avail_in = (unsigned)length; /* a text has at most 1 GiB */
	int error = inflateInit2(&unpacking.stream, GZIP_ALONE) == Z_OK ? 0 : -ENOMEM;
	bool is_end = false;
	while (!error && !is_end)
		error = unpack_more(&unpacking, &is_end);
	inflateEnd(&unpacking.stream);
	if (error) {
		free(unpacking.bytes);
		return error;
	}
	free(text->owned);
	text->owned = (char *)unpacking.bytes;
	text->at = text->owned;
	text->end = text->owned + unpacking.length;
	return 0;
}
