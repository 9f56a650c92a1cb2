/* Whose a client is, and what it may have for that. The registry has the user that it connected as, by SO_PEERCRED. A
 * process may become another user afterwards, and hand its connection on. So each message brings its sender's user
 * too, by the kernel's word at that moment (SCM_CREDENTIALS); and of two processes that are to meet, the present users
 * are looked at. */
#include <unistd.h>
#include "broker/worker_state.h"

uid_t worker_user_of(const struct worker *worker, unsigned client)
{
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

/* A process of a pid namespace that we do not see into is as it connected, and spoke. Whoever it meets looks for
 * itself. */
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
