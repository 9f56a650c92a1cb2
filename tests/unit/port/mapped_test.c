/* Segments of a peer's memory that are mapped here. The peer is this process, but the puller believes that it is
 * another, which nobody can read otherwise. */
#include "../unit.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "port/pull.h"

enum { NOBODY = INT32_MAX, NONCE = 4711, BYTES = 1 << 16, AT = 0x10000000, EPOCHS_AT = 0x20000000, KEY = 0x12345678 };

static int file_of(size_t bytes, int seals)
{
	int file = memfd_create("mapped_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, (off_t)bytes), 0);
	assert_int_equal(fcntl(file, F_ADD_SEALS, seals), 0);
	return file;
}

static void *map(int file, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

/* The peer's memory: its epochs, and one segment more. */
struct peer {
	int epochs_file, file;
	struct vb_epochs *epochs;
	uint8_t *bytes;
	struct vb_puller puller;
};

static struct peer peer_open(void)
{
	struct peer peer = { .epochs_file = file_of(sizeof(struct vb_epochs), F_SEAL_SHRINK),
		.file = file_of(BYTES, F_SEAL_SHRINK),
		.puller = { .pid = NOBODY, .nonce = NONCE, .epochs = EPOCHS_AT } };

	peer.epochs = map(peer.epochs_file, sizeof(*peer.epochs));
	peer.bytes = map(peer.file, BYTES);
	peer.epochs->nonce = NONCE;
	for (unsigned i = 0; i < BYTES; i++)
		peer.bytes[i] = (uint8_t)(i * 7 + i / 251);
	return peer;
}

static void share_epochs(struct peer *peer)
{
	const struct vb_segment epochs = { 1, EPOCHS_AT, sizeof(struct vb_epochs) };

	assert_int_equal(vb_mapped_take(&peer->puller.mapped, &epochs, peer->epochs_file), 0);
}

static void share(struct peer *peer, uint32_t id)
{
	const struct vb_segment segment = { id, AT, BYTES };

	assert_int_equal(vb_mapped_take(&peer->puller.mapped, &segment, peer->file), 0);
}

static void peer_close(struct peer *peer)
{
	vb_puller_close(&peer->puller);
	munmap(peer->epochs, sizeof(*peer->epochs));
	munmap(peer->bytes, BYTES);
	close(peer->epochs_file);
	close(peer->file);
}

static uint8_t place[BYTES];

static struct vb_local_pull pull_of(uint32_t segment, uint64_t offset, uint32_t length)
{
	struct vb_local_pull pull = { .lent_count = 1,
		.lent = { { AT + offset, length, segment } },
		.length = length,
		.iov_count = 2,
		.iov = { { place, 1000 }, { place + 1000, length - 1000 } },
		.proof_at = offsetof(struct vb_epochs, removals) + 4 * vb_epochs_place(KEY),
		.proof_bytes = 4 };

	memset(place, 0, sizeof(place));
	return pull;
}

static void pull__copies_what_is_mapped(void **state)
{
	struct peer peer = peer_open();
	struct vb_local_pull pull = pull_of(2, 5, BYTES - 5);

	share_epochs(&peer);
	share(&peer, 2);
	assert_int_equal(vb_pull(&peer.puller, &pull), VB_PULLED);
	assert_memory_equal(place, peer.bytes + 5, BYTES - 5);
	assert_true(peer.puller.has_mapped);
	peer_close(&peer);
}

static void pull__joins_what_is_lent_in_pieces(void **state)
{
	struct peer peer = peer_open();
	struct vb_local_pull pull = pull_of(2, 3000, 1500);

	share_epochs(&peer);
	share(&peer, 2);
	pull.lent_count = 2;
	pull.lent[0].length = 700;
	pull.lent[1] = (struct vb_lent){ AT + 5, 800, 2 };
	assert_int_equal(vb_pull(&peer.puller, &pull), VB_PULLED);
	assert_memory_equal(place, peer.bytes + 3000, 700);
	assert_memory_equal(place + 700, peer.bytes + 5, 800);
	assert_int_equal(place[1500], 0);
	peer_close(&peer);
}

static void pull__is_stale_when_the_proof_is_another(void **state)
{
	struct peer peer = peer_open();
	struct vb_local_pull pull = pull_of(2, 0, 5000);

	share_epochs(&peer);
	share(&peer, 2);
	atomic_fetch_add(&peer.epochs->removals[vb_epochs_place(KEY)], 1);
	assert_int_equal(vb_pull(&peer.puller, &pull), VB_PULL_STALE);
	pull.proof = 1;
	assert_int_equal(vb_pull(&peer.puller, &pull), VB_PULLED);
	peer_close(&peer);
}

static bool is_mapped(struct peer *peer, uint32_t segment, uint64_t offset, uint32_t length)
{
	struct vb_local_pull pull = pull_of(segment, offset, length);
	enum vb_local_outcome outcome;

	return vb_mapped_pull(peer->puller.mapped, peer->puller.epochs, peer->puller.nonce, &pull, &outcome);
}

static void pull__elsewhere_is_the_kernels(void **state)
{
	struct peer peer = peer_open();

	share(&peer, 2);
	assert_false(is_mapped(&peer, 2, 0, 5000)); /* nothing proves it */
	share_epochs(&peer);
	assert_true(is_mapped(&peer, 2, 0, 5000));
	assert_true(is_mapped(&peer, 2, BYTES - 5000, 5000));
	assert_false(is_mapped(&peer, 2, BYTES - 4999, 5000));
	assert_false(is_mapped(&peer, 2, BYTES, 5000));
	assert_false(is_mapped(&peer, 2, (uint64_t)-1, 5000));
	assert_false(is_mapped(&peer, 2 + VB_SEGMENTS, 0, 5000));
	assert_false(is_mapped(&peer, 3, 0, 5000));
	assert_false(is_mapped(&peer, 0, 0, 5000));
	peer.puller.nonce++;
	assert_false(is_mapped(&peer, 2, 0, 5000)); /* it is another's */
	peer_close(&peer);
}

static void drop__is_of_that_name_alone(void **state)
{
	struct peer peer = peer_open();

	share_epochs(&peer);
	share(&peer, 2);
	vb_mapped_drop(peer.puller.mapped, 2 + VB_SEGMENTS);
	assert_true(is_mapped(&peer, 2, 0, 5000));
	vb_mapped_drop(peer.puller.mapped, 2);
	assert_false(is_mapped(&peer, 2, 0, 5000));
	share(&peer, 2 + VB_SEGMENTS);
	assert_true(is_mapped(&peer, 2 + VB_SEGMENTS, 0, 5000));
	peer_close(&peer);
}

static void assert_is_refused(const struct vb_segment *segment, int file)
{
	struct vb_mapped *mapped = NULL;

	assert_int_equal(vb_mapped_take(&mapped, segment, file), -EINVAL);
	vb_mapped_close(mapped);
}

/* Who may take the bytes from under us again could kill us. */
static void take__refuses_what_is_not_safe_to_read(void **state)
{
	const struct vb_segment good = { 1, AT, BYTES }, nameless = { 0, AT, BYTES }, longer = { 1, AT, BYTES + 1 },
				empty = { 1, AT, 0 }, wrapping = { 1, UINT64_MAX - 10, BYTES };
	int sealed = file_of(BYTES, F_SEAL_SHRINK), unsealed = file_of(BYTES, F_SEAL_GROW), ends[2];
	int ordinary = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(pipe(ends), 0);
	assert_is_refused(&nameless, sealed);
	assert_is_refused(&longer, sealed);
	assert_is_refused(&empty, sealed);
	assert_is_refused(&wrapping, sealed);
	assert_is_refused(&good, unsealed);
	assert_is_refused(&good, ordinary);
	assert_is_refused(&good, ends[0]);
	assert_is_refused(&good, -1);
	for (unsigned i = 0; i < 2; i++)
		close(ends[i]);
	close(ordinary);
	close(sealed);
	close(unsealed);
}

static void take__refuses_a_place_that_is_taken(void **state)
{
	struct peer peer = peer_open();
	const struct vb_segment again = { 2 + VB_SEGMENTS, AT, BYTES };

	share(&peer, 2);
	assert_int_equal(vb_mapped_take(&peer.puller.mapped, &again, peer.file), -EINVAL);
	peer_close(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pull__copies_what_is_mapped),
		cmocka_unit_test(pull__joins_what_is_lent_in_pieces),
		cmocka_unit_test(pull__is_stale_when_the_proof_is_another),
		cmocka_unit_test(pull__elsewhere_is_the_kernels),
		cmocka_unit_test(drop__is_of_that_name_alone),
		cmocka_unit_test(take__refuses_what_is_not_safe_to_read),
		cmocka_unit_test(take__refuses_a_place_that_is_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
