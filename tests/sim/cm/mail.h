/* What carries the MADs of the connection managers to each other, and time: a fabric of one switch whose links lose,
 * double, reorder and delay. */
#ifndef VB_TESTS_CM_MAIL_H
#define VB_TESTS_CM_MAIL_H

#include <stdbool.h>
#include <stdint.h>
#include "cm/cm.h"

struct mail_conditions {
	uint64_t seed;
	unsigned hosts;
	uint32_t drop, twice, late; /* parts in a million */
	vb_time delay;              /* to twice of it */
};

struct mail_user {
	void (*on_mad)(unsigned host, const struct vb_cm_outgoing *mad);
	void (*on_call)(uint32_t number);
};

/* False, and why was said: there is none. Time begins at 0. */
bool mail_open(const struct mail_conditions *conditions, const struct mail_user *user);
void mail_close(void);
void mail_send(unsigned from, unsigned to, const struct vb_cm_outgoing *mad);
void mail_call(vb_time at, uint32_t number); /* on_call, then */
bool mail_step(void);                        /* one MAD, or one call; false: there is neither */
vb_time mail_now(void);
unsigned mail_under_way(void);

#endif
