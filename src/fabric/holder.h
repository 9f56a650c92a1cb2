/* A network whose endpoints belong to the caller, the holder. It puts packets on their links, is told what became of
 * each, and is called at times that it asks for. All of it happens in one thread, as the holder steps through time.
 * fabric_run has endpoints of its own instead. */
#ifndef FABRIC_HOLDER_H
#define FABRIC_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include "net/network.h"

struct fabric;

/* Cargo is what the holder's packets carry. Each is handed back once, and is then the holder's again. */
struct fabric_holder {
	void *user;
	void (*on_arrival)(void *user, uint32_t endpoint, void *cargo, bool is_marked);
	void (*on_loss)(void *user, void *cargo); /* lost, or dropped for lack of room, or still under way at the end */
	void *(*on_copy)(void *user, void *cargo); /* a link duplicates the packet; NULL: it does not, then */
	void (*on_call)(void *user, uint32_t number);
	int day_shift; /* events are about 2^day_shift ps apart */
};

struct fabric_post {
	uint32_t from, to; /* endpoints */
	uint16_t flow;     /* with these two, what switches choose paths by */
	uint16_t wire_bytes;
	bool takes_marks;
	void *cargo; /* not NULL */
};

/* Both are borrowed until fabric_close; the times of faults may change meanwhile. -EINVAL and why, -ENOMEM. */
int fabric_open(const struct network *network, uint64_t seed, const struct fabric_holder *holder,
	struct fabric **fabric, char *why, unsigned why_size);
void fabric_close(struct fabric *fabric);
/* Sends as soon as the link has finished with earlier packets. */
void fabric_send(struct fabric *fabric, const struct fabric_post *post);
/* Not in the past. Several calls for one moment come in the order in which they were asked for, after arrivals. */
void fabric_call(struct fabric *fabric, vb_time at, uint32_t number);
/* The next event happens: 1. 0: there is none; -ENOMEM: something is lost from now on. */
int fabric_step(struct fabric *fabric);
vb_time fabric_now(const struct fabric *fabric);                        /* from 0 */
vb_time fabric_free_at(const struct fabric *fabric, uint32_t endpoint); /* when its link is free */
uint64_t fabric_lost(const struct fabric *fabric);                      /* packets lost to faults */

#endif
