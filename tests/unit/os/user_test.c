/* Whose a process is, in a user namespace that maps all ids and in those that do not. */
#include "../unit.h"
#include "../user_namespace.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "os/user.h"

#define OVERFLOW 65534

static bool is_root(void)
{
	if (geteuid() == 0 && vb_users_read().maps_all)
		return true;
	print_message("skipped: needs root to have several users\n");
	return false;
}

/* A process of that user, of the first namespace, at the other end of a socket. */
struct other {
	pid_t pid;
	int pidfd, socket;
};

static void connect_to(const struct sockaddr_un *address, socklen_t length, uid_t uid)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setresuid(uid, uid, uid) || connect(fd, (const struct sockaddr *)address, length))
		_exit(1);
	for (;;)
		pause();
}

static struct other start_other(uid_t uid)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(sa_family_t);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0); /* a name of the kernel's choice */
	length = sizeof(address);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(listen(listener, 1), 0);
	struct other other = { .pid = fork() };
	if (other.pid == 0)
		connect_to(&address, length, uid);
	other.socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	other.pidfd = (int)syscall(SYS_pidfd_open, other.pid, 0);
	assert_true(other.socket >= 0 && other.pidfd >= 0);
	close(listener);
	return other;
}

static void end_other(struct other *other)
{
	close(other->socket);
	close(other->pidfd);
	kill(other->pid, SIGKILL);
	waitpid(other->pid, NULL, 0);
}

/* What it is to a process of user `outside`, called `inside` in a namespace that maps nobody else. */
struct seen {
	struct vb_users users;
	uid_t shown, named, unproved, present;
};

static struct seen seen_from(unsigned inside, unsigned outside, const struct other *other)
{
	struct seen seen = { 0 };
	struct ucred ids;
	int result[2];

	assert_int_equal(pipe(result), 0);
	pid_t child = fork();
	if (child == 0) {
		if (!own_user_namespace(inside, outside))
			_exit(1);
		seen.users = vb_users_read();
		seen.named = vb_user_of_peer(&seen.users, other->socket, &ids);
		seen.shown = ids.uid;
		seen.unproved = vb_user_of(&seen.users, ids.uid, -1);
		seen.present = vb_user_of_process(&seen.users, other->pidfd);
		_exit(write(result[1], &seen, sizeof(seen)) == sizeof(seen) ? 0 : 1);
	}
	close(result[1]);
	assert_int_equal(read(result[0], &seen, sizeof(seen)), sizeof(seen));
	close(result[0]);
	waitpid(child, NULL, 0);
	return seen;
}

static void user__is_as_shown_where_all_ids_are_mapped(void **state)
{
	if (!is_root())
		skip();
	const struct vb_users users = vb_users_read();
	static const uid_t uids[] = { 0, 1001, OVERFLOW };
	assert_int_equal(users.overflow, OVERFLOW);
	for (unsigned i = 0; i < 3; i++) {
		struct other other = start_other(uids[i]);
		assert_int_equal(vb_user_of(&users, uids[i], -1), uids[i]);
		assert_int_equal(vb_user_of_peer(&users, other.socket, NULL), uids[i]);
		assert_int_equal(vb_user_of_process(&users, other.pidfd), uids[i]);
		end_other(&other);
	}
}

static void user__that_is_not_mapped_is_nobody_we_know(void **state)
{
	if (!is_root())
		skip();
	struct other other = start_other(1001);
	for (unsigned inside = 0; inside <= OVERFLOW; inside += OVERFLOW) {
		const struct seen seen = seen_from(inside, 1000, &other);
		assert_false(seen.users.maps_all);
		assert_int_equal(seen.shown, OVERFLOW);
		assert_int_equal(seen.named, VB_USER_UNKNOWN);
		assert_int_equal(seen.unproved, VB_USER_UNKNOWN);
		assert_int_equal(seen.present, VB_USER_UNKNOWN);
	}
	end_other(&other);
}

static void user__that_is_mapped_is_as_shown(void **state)
{
	if (!is_root())
		skip();
	struct other other = start_other(1000);
	const struct seen seen = seen_from(7, 1000, &other);
	assert_int_equal(seen.shown, 7);
	assert_int_equal(seen.named, 7);
	assert_int_equal(seen.unproved, 7);
	assert_int_equal(seen.present, 7);
	end_other(&other);
}

/* A container's program that runs as nobody. */
static void user__that_we_are_is_proved_though_its_id_says_nothing(void **state)
{
	if (!is_root())
		skip();
	struct other other = start_other(1000);
	const struct seen seen = seen_from(OVERFLOW, 1000, &other);
	assert_int_equal(seen.shown, OVERFLOW);
	assert_int_equal(seen.named, OVERFLOW);
	assert_int_equal(seen.unproved, VB_USER_UNKNOWN);
	assert_int_equal(seen.present, OVERFLOW);
	end_other(&other);
}

static void become_another(const int *ready)
{
	char byte = 0;

	if (setresuid(1001, 1001, 1001) == 0 && write(ready[1], &byte, 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

static void user__of_a_process_is_the_present_one(void **state)
{
	const struct vb_users users = vb_users_read();
	int ready[2];
	char byte;

	if (!is_root())
		skip();
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0)
		become_another(ready);
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(vb_user_of_process(&users, pidfd), 1001);
	assert_int_equal(vb_pid_of(pidfd), child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(vb_user_of_process(&users, pidfd), VB_USER_UNKNOWN);
	assert_int_equal(vb_user_of_process(&users, -1), VB_USER_UNKNOWN);
	close(pidfd);
	close(ready[0]);
	close(ready[1]);
}

/* One who may become root again is neither. */
static void user__with_several_ids_is_not_one(void **state)
{
	const struct vb_users users = vb_users_read();

	if (!is_root())
		skip();
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	assert_int_equal(seteuid(1001), 0);
	assert_int_equal(vb_user_of_process(&users, pidfd), VB_USER_UNKNOWN);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(vb_user_of_process(&users, pidfd), 0);
	close(pidfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user__is_as_shown_where_all_ids_are_mapped),
		cmocka_unit_test(user__that_is_not_mapped_is_nobody_we_know),
		cmocka_unit_test(user__that_is_mapped_is_as_shown),
		cmocka_unit_test(user__that_we_are_is_proved_though_its_id_says_nothing),
		cmocka_unit_test(user__of_a_process_is_the_present_one),
		cmocka_unit_test(user__with_several_ids_is_not_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
