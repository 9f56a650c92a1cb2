/* How a process is, of children that are made so. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../unit.h"
#include "broker/process_state.h"

static void process__is_seen_running_stopped_and_ended(void **state)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, ") T (");
		for (;;)
			pause();
	}
	assert_int_equal(process_state(pid), VB_PROCESS_RUNS);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_int_equal(process_state(pid), VB_PROCESS_STOPPED);
	kill(pid, SIGKILL);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_state(pid), VB_PROCESS_GONE); /* nobody has taken it yet */
	waitpid(pid, &status, 0);
	assert_int_equal(process_state(pid), VB_PROCESS_NOT_TOLD);
	assert_int_equal(process_state(0), VB_PROCESS_NOT_TOLD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process__is_seen_running_stopped_and_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
