/* The user of a client, and its rights. The registry has the user that connected, by SO_PEERCRED. The process may
 * change its user afterwards, or hand its connection on. So each message also carries its sender's user, as the kernel
 * sees it at that moment (SCM_CREDENTIALS). Before two processes are introduced, their present users are read. */
#include <unistd.h>
#include "base/invariant.h"
#include "broker/worker_state.h"

uid_t worker_user_of(const struct worker *worker, unsigned client)
{
	assert(worker->registry->clients[client].is_used);
	const uid_t uid = worker->registry->clients[client].uid;
	return worker->clients[client].speaker == uid ? uid : VB_USER_UNKNOWN;
}

bool worker_trusts(const struct worker *worker, unsigned client)
{
	const uid_t uid = worker_user_of(worker, client);
	if (uid == VB_USER_UNKNOWN)
		return false;
	if (uid == 0 || uid == geteuid())
		return true;
	for (unsigned i = 0; i < worker->trusted->count; i++)
		if (worker->trusted->uids[i] == uid)
			return true;
	return false;
}

/* For a process of a pid namespace that we cannot see, the connection's and the last message's user count. A process
 * that is introduced to it checks for itself. */
static bool is_of(const struct worker *worker, unsigned client, uid_t uid)
{
	const struct client *process = &worker->registry->clients[client];
	if (worker_user_of(worker, client) != uid || vb_user_of_peer(&worker->users, process->connection, NULL) != uid)
		return false;
	return vb_pid_of(process->pidfd) == 0 || vb_user_of_process(&worker->users, process->pidfd) == uid;
}

bool worker_are_of_one_user(const struct worker *worker, unsigned one, unsigned other)
{
	const uid_t uid = worker_user_of(worker, one);
	return uid != VB_USER_UNKNOWN && is_of(worker, one, uid) && is_of(worker, other, uid);
}
