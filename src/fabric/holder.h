/* A network whose endpoints are somebody else's. He puts packets on their links and hears what became of each, and is
 * called when he asked for it; all of it one thing after the other, as he lets time go on. fabric_run's endpoints are
 * its own. */
#ifndef FABRIC_HOLDER_H
#define FABRIC_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include "net/network.h"

struct fabric;

/* What a packet carries is the holder's: each is handed back to him once, and may then be whatever he likes. */
struct fabric_holder {
	void *user;
	void (*on_arrival)(void *user, uint32_t endpoint, void *cargo, bool is_marked);
	void (*on_loss)(
		void *user, void *cargo); /* or there was no room for it, or the end came while it was under way */
	void *(*on_copy)(void *user, void *cargo); /* a link doubles it; NULL: it does not */
	void (*on_call)(void *user, uint32_t number);
	int day_shift; /* events are some 2^day_shift ps apart */
};

struct fabric_post {
	uint32_t from, to; /* endpoints */
	uint16_t flow;     /* with those two what switches choose among ways by */
	uint16_t wire_bytes;
	bool takes_marks;
	void *cargo; /* not NULL */
};

/* Both are borrowed until the end; faults' times may change meanwhile. -EINVAL and why, -ENOMEM. */
int fabric_open(const struct network *network, uint64_t seed, const struct fabric_holder *holder,
	struct fabric **fabric, char *why, unsigned why_size);
void fabric_close(struct fabric *fabric);
/* As soon as the link is free of what was sent on it before. */
void fabric_send(struct fabric *fabric, const struct fabric_post *post);
/* Not before now; of several for one moment the first first, and after what arrives then. */
void fabric_call(struct fabric *fabric, vb_time at, uint32_t number);
/* One thing happens, the next: 1. 0: there is none; -ENOMEM: something is missing from now on. */
int fabric_step(struct fabric *fabric);
vb_time fabric_now(const struct fabric *fabric);                        /* from 0 */
vb_time fabric_free_at(const struct fabric *fabric, uint32_t endpoint); /* its link */
uint64_t fabric_lost(const struct fabric *fabric);                      /* packets, by faults */

#endif
