/* What is lent by another process: copied by one call, and proved by it. The other one is a child that waits to be
 * killed, with the memory that this one had when it was made. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/copy.h"
#include "port/pull.h"
#include "../unit.h"

#define BYTES    1048576u
#define QPN      77u
#define NOBODY   65534
#define NONCE    0x0123456789abcdefu
#define OF_OTHER 0xfedcba9876543210u

static struct vb_epochs *epochs;
static uint8_t *lent, *place;

static void *pages(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static int make_memory(void **state)
{
	epochs = pages(sizeof(*epochs));
	lent = pages(BYTES);
	place = pages(2 * BYTES);
	epochs->nonce = NONCE;
	epochs->epochs[QPN] = 5;
	for (uint32_t i = 0; i < BYTES; i++)
		lent[i] = (uint8_t)(i * 2654435761u >> 24);
	return 0;
}

static int free_memory(void **state)
{
	munmap(epochs, sizeof(*epochs));
	munmap(lent, BYTES);
	munmap(place, 2 * BYTES);
	return 0;
}

/* ---- The other one ----------------------------------------------------------------------------------------------- */

/* It says by a pipe that it is as it shall be. */
static struct vb_puller child_that(void (*becomes)(void))
{
	struct vb_puller puller = { .nonce = NONCE, .stages = true, .epochs = (uintptr_t)epochs };
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	puller.pid = fork();
	assert_true(puller.pid >= 0);
	if (puller.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (becomes)
			becomes();
		if (write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return puller;
}

static void end_child(struct vb_puller *puller)
{
	kill(puller->pid, SIGKILL);
	assert_int_equal(waitpid(puller->pid, NULL, 0), puller->pid);
	vb_puller_close(puller);
}

static struct vb_local_pull pull_of(uint32_t offset, uint32_t length, uint8_t *to)
{
	return (struct vb_local_pull){ .lent_count = 1,
		.lent = { { (uintptr_t)lent + offset, length, 0 } },
		.length = length,
		.proof_at = (uint32_t)offsetof(struct vb_epochs, epochs[QPN]),
		.proof_bytes = sizeof(uint16_t),
		.proof = 5,
		.iov_count = 1,
		.iov = { { to, length } } };
}

static void pulls(struct vb_puller *puller, uint32_t offset, uint32_t length, uint8_t *to)
{
	const struct vb_local_pull pull = pull_of(offset, length, to);

	memset(place, 0, 2 * BYTES);
	assert_int_equal(vb_pull(puller, &pull), VB_PULLED);
	assert_memory_equal(to, lent + offset, length);
	assert_int_equal(to[length], 0); /* what proves it goes elsewhere */
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

static void pull__copies_bytes_of_any_length(void **state)
{
	static const uint32_t lengths[] = { 1, 15, 16, 4095, 4096, 4097, 65536, 65537, BYTES - 7, BYTES };
	struct vb_puller puller = child_that(NULL);

	assert_int_equal(vb_puller_try(&puller), 0);
	for (unsigned i = 0; i < COUNT_OF(lengths); i++)
		pulls(&puller, 0, lengths[i], place);
	pulls(&puller, 4001, 70000, place + 2048);
	end_child(&puller);
}

/* Where the two are nearly as far in their pages the bytes go by a place of ours; they arrive all the same. */
static void pull__copies_between_addresses_that_are_near(void **state)
{
	struct vb_puller puller = child_that(NULL);

	for (uint32_t apart = 0; apart < 2 * VB_COPY_NEAR; apart += 7) {
		pulls(&puller, 0, 8192, place + apart);
		pulls(&puller, 100, 200000, place + 100 + apart);
	}
	assert_non_null(puller.stage);
	pulls(&puller, 0, BYTES, place + 16);
	end_child(&puller);
	assert_null(puller.stage);
}

static void scattered(struct vb_puller *puller, uint32_t apart)
{
	struct vb_local_pull pull = pull_of(0, 200000, place);
	uint8_t *to = place + apart;

	memset(place, 0, 2 * BYTES);
	pull.iov_count = 4;
	pull.iov[0] = (struct vb_iov){ to, 5 };
	pull.iov[1] = (struct vb_iov){ to + 100, 65536 };
	pull.iov[2] = (struct vb_iov){ to + 70000, 1 };
	pull.iov[3] = (struct vb_iov){ to + 80000, 200000 - 5 - 65536 - 1 };
	assert_int_equal(vb_pull(puller, &pull), VB_PULLED);
	assert_memory_equal(to, lent, 5);
	assert_memory_equal(to + 100, lent + 5, 65536);
	assert_memory_equal(to + 70000, lent + 5 + 65536, 1);
	assert_memory_equal(to + 80000, lent + 5 + 65536 + 1, 200000 - 5 - 65536 - 1);
	assert_int_equal(to[5], 0);
	assert_int_equal(to[70001], 0);
	assert_int_equal(to[80000 + pull.iov[3].length], 0);
}

static void pull__scatters(void **state)
{
	struct vb_puller puller = child_that(NULL);

	scattered(&puller, 1024);
	assert_null(puller.stage);
	scattered(&puller, 16); /* staged */
	assert_non_null(puller.stage);
	end_child(&puller);
}

/* What is lent in several pieces goes on where the one before has ended, within one place or between them. */
static void joined(struct vb_puller *puller, uint32_t apart)
{
	struct vb_local_pull pull = pull_of(0, 130000, place + apart);

	memset(place, 0, 2 * BYTES);
	pull.lent_count = 3;
	pull.lent[0].length = 50000;
	pull.lent[1] = (struct vb_lent){ (uintptr_t)lent + 70001, 10000, 0 };
	pull.lent[2] = (struct vb_lent){ (uintptr_t)lent + 50000, 70000, 0 };
	pull.iov_count = 2;
	pull.iov[0].length = 50007;
	pull.iov[1] = (struct vb_iov){ place + apart + 50007, 130000 - 50007 };
	assert_int_equal(vb_pull(puller, &pull), VB_PULLED);
	assert_memory_equal(place + apart, lent, 50000);
	assert_memory_equal(place + apart + 50000, lent + 70001, 10000);
	assert_memory_equal(place + apart + 60000, lent + 50000, 70000);
	assert_int_equal(place[apart + 130000], 0);
}

static void pull__joins_what_is_lent_in_pieces(void **state)
{
	struct vb_puller puller = child_that(NULL);

	joined(&puller, 1024);
	assert_null(puller.stage);
	joined(&puller, 16); /* staged */
	assert_non_null(puller.stage);
	end_child(&puller);
}

/* ---- Proofs ------------------------------------------------------------------------------------------------------ */

static void take_back(void)
{
	epochs->epochs[QPN]++;
}

static void pull__of_what_was_taken_back_is_stale(void **state)
{
	struct vb_puller puller = child_that(take_back);

	for (uint32_t apart = 16; apart <= 1024; apart += 1008) {
		struct vb_local_pull pull = pull_of(0, 100000, place + apart);
		assert_int_equal(vb_pull(&puller, &pull), VB_PULL_STALE);
		pull.proof = 6;
		assert_int_equal(vb_pull(&puller, &pull), VB_PULLED);
	}
	end_child(&puller);
}

static void close_a_key(void)
{
	epochs->removals[3] = 1u << 24;
}

static void pull__proves_by_words_of_any_width(void **state)
{
	struct vb_puller puller = child_that(close_a_key);
	struct vb_local_pull pull = pull_of(0, 100000, place + 1024);

	pull.proof_at = (uint32_t)offsetof(struct vb_epochs, removals[3]);
	pull.proof_bytes = sizeof(uint32_t);
	pull.proof = 0;
	assert_int_equal(vb_pull(&puller, &pull), VB_PULL_STALE);
	pull.proof = 1u << 24;
	assert_int_equal(vb_pull(&puller, &pull), VB_PULLED);
	end_child(&puller);
}

static void become_another(void)
{
	epochs->nonce = OF_OTHER;
}

static void pull__of_another_process_of_that_number_is_stale(void **state)
{
	struct vb_puller puller = child_that(become_another);
	struct vb_local_pull pull = pull_of(0, 5000, place + 1024);

	assert_int_equal(vb_puller_try(&puller), -ESRCH);
	assert_int_equal(vb_pull(&puller, &pull), VB_PULL_STALE);
	end_child(&puller);
}

static void forget_epochs(void)
{
	munmap(epochs, sizeof(*epochs));
}

/* As after exec: the payload may be there, what proves it is not. */
static void pull__without_a_proof_is_stale(void **state)
{
	struct vb_puller puller = child_that(forget_epochs);
	struct vb_local_pull pull = pull_of(0, 5000, place + 1024);

	assert_int_equal(vb_puller_try(&puller), -EFAULT);
	assert_int_equal(vb_pull(&puller, &pull), VB_PULL_STALE);
	end_child(&puller);
}

/* ---- What is not there ------------------------------------------------------------------------------------------- */

static void pull__of_a_process_that_is_gone_is_stale(void **state)
{
	struct vb_puller puller = child_that(NULL);
	struct vb_local_pull pull = pull_of(0, 5000, place + 1024);

	end_child(&puller);
	assert_int_equal(vb_pull(&puller, &pull), VB_PULL_STALE);
	assert_int_equal(vb_puller_try(&puller), -ESRCH);
}

static void forget_half(void)
{
	munmap(lent + BYTES / 2, BYTES / 2);
}

static void pull__of_what_is_not_mapped_is_a_fault(void **state)
{
	struct vb_puller puller = child_that(forget_half);
	struct vb_local_pull gone = pull_of(BYTES / 2 + 100, 5000, place + 1024);
	struct vb_local_pull partly = pull_of(BYTES / 2 - 8192, 20000, place + 1024);
	struct vb_local_pull staged = pull_of(BYTES / 2 - 100000, 200000, place + BYTES / 2 - 100000 + 16);

	assert_int_equal(vb_pull(&puller, &gone), VB_PULL_FAULT);
	assert_int_equal(vb_pull(&puller, &partly), VB_PULL_FAULT);
	assert_int_equal(vb_pull(&puller, &staged), VB_PULL_FAULT);
	pulls(&puller, BYTES / 2 - 8192, 8192, place + 1024);
	end_child(&puller);
}

static void be_private(void)
{
	prctl(PR_SET_DUMPABLE, 0);
}

static void be_somebody_else(void)
{
	if (setuid(NOBODY))
		_exit(1);
}

/* Tries in a child that has given its rights up: 0, or the number of what went wrong. */
static int tries_without_rights(struct vb_puller *puller)
{
	struct vb_local_pull pull = pull_of(0, 5000, place + 1024);
	int status;

	pid_t trier = fork();
	if (trier == 0) {
		if (setuid(NOBODY))
			_exit(1);
		if (vb_puller_try(puller) != -EPERM)
			_exit(2);
		_exit(vb_pull(puller, &pull) == VB_PULL_REFUSED ? 0 : 3);
	}
	assert_int_equal(waitpid(trier, &status, 0), trier);
	return status;
}

static void pull__where_the_kernel_forbids_it_is_refused(void **state)
{
	if (geteuid() != 0)
		skip();
	struct vb_puller of_root = child_that(NULL), undumpable = child_that(be_private),
			 other = child_that(be_somebody_else);
	assert_int_equal(tries_without_rights(&of_root), 0);
	assert_int_equal(tries_without_rights(&undumpable), 0);
	assert_int_equal(vb_puller_try(&other), 0); /* root may */
	end_child(&of_root);
	end_child(&undumpable);
	end_child(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pull__copies_bytes_of_any_length),
		cmocka_unit_test(pull__copies_between_addresses_that_are_near),
		cmocka_unit_test(pull__scatters),
		cmocka_unit_test(pull__joins_what_is_lent_in_pieces),
		cmocka_unit_test(pull__of_what_was_taken_back_is_stale),
		cmocka_unit_test(pull__proves_by_words_of_any_width),
		cmocka_unit_test(pull__of_another_process_of_that_number_is_stale),
		cmocka_unit_test(pull__without_a_proof_is_stale),
		cmocka_unit_test(pull__of_a_process_that_is_gone_is_stale),
		cmocka_unit_test(pull__of_what_is_not_mapped_is_a_fault),
		cmocka_unit_test(pull__where_the_kernel_forbids_it_is_refused),
	};

	return cmocka_run_group_tests(tests, make_memory, free_memory);
}
