#include "rsocket/objects.h"
#include "../unit.h"

#include <sys/wait.h>
#include <unistd.h>

static struct vb_rsocket parents = { .fd = 1234 }, childs;
static unsigned inherited;
static bool is_closed_meanwhile;
static pthread_t closer;

static void *close_it(void *unused)
{
	return vb_rs_remove(1234);
}

struct vb_rsocket *vb_rs_inherit(struct vb_rsocket *from)
{
	inherited++;
	if (is_closed_meanwhile && pthread_create(&closer, NULL, close_it, NULL) == 0)
		usleep(50000);
	childs = (struct vb_rsocket){ .fd = from->fd, .generation = vb_rs_generation(), .references = 1 };
	return from == &parents ? &childs : NULL;
}

static void child__takes_an_rsocket_over_with_its_first_call(void **state)
{
	int status;

	parents.references = 1;
	assert_int_equal(vb_rs_enter(&parents), 0);
	pid_t child = fork();
	if (!child) {
		bool is_taken = vb_rs_exists(1234) && !inherited && vb_rs_get(1234) == &childs && inherited == 1;
		bool is_kept = vb_rs_get(1234) == &childs && inherited == 1 && childs.references == 3;
		_exit(is_taken && is_kept && vb_rs_remove(1234) == &childs && !vb_rs_get(1234) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(vb_rs_children(), 1);
	assert_ptr_equal(vb_rs_get(1234), &parents);
	assert_int_equal(inherited, 0);
	assert_ptr_equal(vb_rs_remove(1234), &parents);
}

static void child__that_only_closes_takes_nothing_over(void **state)
{
	int status;

	assert_int_equal(vb_rs_enter(&parents), 0);
	pid_t child = fork();
	if (!child)
		_exit(vb_rs_remove(1234) == &parents && !vb_rs_is_ours(&parents) && !inherited ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_ptr_equal(vb_rs_remove(1234), &parents);
}

static void child__closes_its_own_when_another_thread_takes_it_over(void **state)
{
	int status;

	assert_int_equal(vb_rs_enter(&parents), 0);
	pid_t child = fork();
	if (!child) {
		void *closed = NULL;
		is_closed_meanwhile = true;
		bool is_taken = vb_rs_get(1234) == &childs && !pthread_join(closer, &closed);
		_exit(is_taken && closed == &childs && !vb_rs_exists(1234) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_ptr_equal(vb_rs_remove(1234), &parents);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child__takes_an_rsocket_over_with_its_first_call),
		cmocka_unit_test(child__that_only_closes_takes_nothing_over),
		cmocka_unit_test(child__closes_its_own_when_another_thread_takes_it_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
