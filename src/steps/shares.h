/* Communication that is under way, by flows: operations share the limits of the network (loads.h) max-min fairly. Each
 * has a slot, the caller's number for it. One that meets a link which is down waits (net/stalls.h). */
#ifndef STEPS_SHARES_H
#define STEPS_SHARES_H

#include "steps/loads.h"

struct shares;

/* loads: borrowed. NULL: no memory. */
struct shares *shares_open(const struct step_loads *loads, uint32_t slots);
void shares_close(struct shares *shares);
/* bytes: that each rank of the class sends; at_once: of these, what it sends without having heard of what is before. */
void shares_begin(struct shares *shares, uint32_t slot, uint32_t class, double bytes, double at_once, vb_time now);
/* Rates, after all that begins or ends in this moment. -ENOMEM. */
int shares_settle(struct shares *shares, vb_time now);
/* When the next slot has sent all; false: nothing is under way. */
bool shares_next(const struct shares *shares, vb_time *at, uint32_t *slot);
void shares_end(struct shares *shares, uint32_t slot);
/* Where links go down: the next moment after which loads or waiting slots are others; false: there is none, or nothing
 * is under way. */
bool shares_change_next(const struct shares *shares, vb_time now, vb_time *at);
/* At that moment, before rates are settled. -ENOMEM. */
int shares_change(struct shares *shares, vb_time now);
/* At the end of all moments: something waits for a link that stays down too long. */
bool shares_wait(const struct shares *shares);
const struct step_load *shares_load(const struct shares *shares, uint32_t class);

#endif
