/* What each QP with a peer was held to by congestion control and came to, which VERBENA_STATS=1 prints: a line for each of those
 * that carried most, and one for all the others. Kept only with that setting. */
#include "host/process.h"

#include <stdio.h>
#include <stdlib.h>
#include "host/text.h"

#define ACCOUNTS_MAX 65536

struct vb_accounts {
	struct vb_qp_account *all; /* of QPs that are gone; when it is told, of all */
	unsigned count, room;
	uint64_t uncounted; /* QPs that are not among them */
};

struct vb_accounts *vb_accounts_create(void)
{
	return calloc(1, sizeof(struct vb_accounts));
}

void vb_accounts_destroy(struct vb_accounts *accounts)
{
	if (accounts)
		free(accounts->all);
	free(accounts);
}

static bool make_room(struct vb_accounts *accounts)
{
	unsigned room = accounts->room ? 2 * accounts->room : VB_ACCOUNTS_SAID;
	if (accounts->count < accounts->room)
		return true;
	struct vb_qp_account *all = room <= ACCOUNTS_MAX ? realloc(accounts->all, room * sizeof(*all)) : NULL;
	if (!all)
		return false;
	accounts->all = all;
	accounts->room = room;
	return true;
}

bool vb_accounts_add(struct vb_accounts *accounts, const struct vb_qp_account *account)
{
	if (!make_room(accounts)) {
		accounts->uncounted++;
		return false;
	}
	accounts->all[accounts->count++] = *account;
	return true;
}

/* ---- Words ------------------------------------------------------------------------------------------------------- */

/* Bits a second. */
static double mean_rate(const struct vb_qp_account *account)
{
	return account->acked_in > 0 ? (double)account->acked * 8 * VB_S / (double)account->acked_in : 0;
}

static void add_congestion(struct vb_line *line, const struct vb_qp_account *account)
{
	char text[32];

	vb_line_add(line, ", %s", account->algorithm);
	if (account->rate)
		vb_line_add(line, ", paced at %s", vb_text_rate((double)account->rate * 8, text, sizeof(text)));
	if (account->window_bytes)
		vb_line_add(line, ", window %s", vb_text_bytes(account->window_bytes, text, sizeof(text)));
	if (account->acked)
		vb_line_add(line, ", %s acknowledged", vb_text_bytes(account->acked, text, sizeof(text)));
	if (account->acked_in > 0)
		vb_line_add(line, " at %s on average", vb_text_rate(mean_rate(account), text, sizeof(text)));
	vb_line_add(line, ", CNPs %u received, %u sent, %u packets sent again", account->cnps_received, account->cnps_sent,
		account->sent_again);
}

static const char *kind_of(enum vb_qp_type type)
{
	return type == VB_QP_RC ? "RC" : type == VB_QP_UC ? "UC" : "XRC";
}

static void tell_one(const struct vb_qp_account *account, vb_accounts_say *say, void *user)
{
	char text[400];
	struct vb_line line = { text, sizeof(text), 0 };
	char peer[VB_TEXT_GID];

	vb_line_add(&line, "qp 0x%x: %s, peer %s qpn 0x%x", account->qpn, kind_of(account->type), vb_text_gid(&account->peer, peer),
		account->dest_qpn);
	if (account->is_local)
		vb_line_add(&line, ", shared memory");
	else
		add_congestion(&line, account);
	say(user, text);
}

static int by_mean_rate(const void *a, const void *b)
{
	double x = mean_rate(a), y = mean_rate(b);

	return (x > y) - (x < y);
}

static int most_carried_first(const void *a, const void *b)
{
	const struct vb_qp_account *x = a, *y = b;

	return x->acked != y->acked ? (x->acked < y->acked) - (x->acked > y->acked) : (x->qpn > y->qpn) - (x->qpn < y->qpn);
}

static void tell_rest(struct vb_qp_account *rest, unsigned count, uint64_t uncounted, vb_accounts_say *say, void *user)
{
	char text[400];
	struct vb_line line = { text, sizeof(text), 0 };
	char carried[32], least[32], median[32], most[32];
	uint64_t acked = 0;
	unsigned rated = 0;

	qsort(rest, count, sizeof(*rest), by_mean_rate);
	for (unsigned i = 0; i < count; i++) {
		acked += rest[i].acked;
		rated += mean_rate(&rest[i]) > 0;
	}
	vb_line_add(&line, "qps: %llu more, %s acknowledged", (unsigned long long)(count + uncounted),
		vb_text_bytes(acked, carried, sizeof(carried)));
	if (rated) {
		const struct vb_qp_account *first = rest + (count - rated);
		vb_line_add(&line, ", at %s to %s on average, the median %s", vb_text_rate(mean_rate(first), least, sizeof(least)),
			vb_text_rate(mean_rate(&rest[count - 1]), most, sizeof(most)),
			vb_text_rate(mean_rate(&first[rated / 2]), median, sizeof(median)));
	}
	say(user, text);
}

void vb_accounts_tell(struct vb_accounts *accounts, vb_accounts_say *say, void *user)
{
	unsigned count = accounts->count, said = count < VB_ACCOUNTS_SAID ? count : VB_ACCOUNTS_SAID;

	if (count)
		qsort(accounts->all, count, sizeof(*accounts->all), most_carried_first);
	for (unsigned i = 0; i < said; i++)
		tell_one(&accounts->all[i], say, user);
	if (count > said || accounts->uncounted)
		tell_rest(accounts->all + said, count - said, accounts->uncounted, say, user);
}

/* ---- Live -------------------------------------------------------------------------------------------------------- */

void vb_driver_note_end(struct vb_driver *d, struct vb_qp *qp)
{
	struct vb_qp_account account;

	if (d->accounts && vb_qp_account(qp, &account))
		vb_accounts_add(d->accounts, &account);
}

static void print(void *user, const char *line)
{
	vb_log(VB_LOG_ERROR, "%s", line);
}

/* With those that are alive. What was said is not said again: a device may be closed after exit(). */
static void add_living(struct vb_accounts *to, const struct vb_driver *d)
{
	struct vb_qp_account account;
	struct vb_qp *qp;
	uint32_t place = 0;

	while ((qp = vb_lane_next_qp(d->lane, &place)))
		if (vb_qp_account(qp, &account))
			vb_accounts_add(to, &account);
}

static void move_all(struct vb_accounts *to, struct vb_accounts *from)
{
	for (unsigned i = 0; i < from->count; i++)
		vb_accounts_add(to, &from->all[i]);
	to->uncounted += from->uncounted;
	from->count = 0;
	from->uncounted = 0;
}

void vb_accounts_print(const struct vb_process *p, unsigned lanes)
{
	struct vb_accounts *sum = NULL;

	for (unsigned i = 0; i < vb_process_driver_count(p); i++) {
		const struct vb_driver *d = p->drivers[i];
		if (!(lanes >> i & 1))
			continue;
		add_living(d->accounts, d);
		if (sum)
			move_all(sum, d->accounts);
		else
			sum = d->accounts;
	}
	if (!sum)
		return;
	vb_accounts_tell(sum, print, NULL);
	sum->count = 0;
	sum->uncounted = 0;
}
