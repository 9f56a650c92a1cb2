#include "rdmacm/rsocket_objects.h"
#include "../unit.h"

#include <sys/wait.h>
#include <unistd.h>

void vb_rs_destroy(struct rsocket *rs) {}
void vb_rs_forget_pollers(void) {}

/* What a child of ours sees: 1, rsockets are refused to it. */
static int fork_and_ask(void)
{
	int status;
	pid_t child = fork();
	if (!child)
		_exit(vb_rs_is_forked());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void child__is_refused_rsockets_only_if_its_parent_had_some(void **state)
{
	struct rsocket rs = { .fd = 1234 };

	assert_int_equal(fork_and_ask(), 0);
	assert_int_equal(vb_rs_enter(&rs), 0);
	assert_int_equal(fork_and_ask(), 1);
	assert_ptr_equal(vb_rs_remove(1234), &rs);
	assert_int_equal(fork_and_ask(), 0);
	vb_rs_note_device();
	assert_int_equal(fork_and_ask(), 1);
	assert_false(vb_rs_is_forked());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child__is_refused_rsockets_only_if_its_parent_had_some),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
