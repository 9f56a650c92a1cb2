/* The account of each packet between una_psn and next_psn while some are missing: what has arrived, what is lost and
 * to be sent again, and when each was sent last. Nothing is kept while nothing is missing: what left before the first
 * gap was seen counts as sent when it was seen, for along one path packets keep their order. [lane] */
#ifndef VB_ROCE_SENT_H
#define VB_ROCE_SENT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"
#include "roce/psn_bits.h"
#include "wire/packet.h"

struct vb_sent {
	uint32_t mask; /* places - 1; 0: nothing is missing, and nothing is kept */
	uint32_t lost_count;
	uint32_t known_psn; /* beyond the furthest of which anything is known */
	/* By PSN & mask. */
	uint64_t *taken;   /* the peer has the request */
	uint64_t *arrived; /* the same, and of one that is answered by responses: this one is here */
	uint64_t *lost;    /* to be sent again; no longer under way */
	uint64_t *again;   /* was sent more than once */
	uint64_t *told;    /* all but the newest were lost indeed: who has dropped them has told */
	uint64_t *second;  /* went by the second rail (rails.h) */
	uint64_t *repeat;  /* a response that is asked for again of a request that the peer has executed */
	vb_time *sent_at;
	vb_time since; /* of all that left before the account began, and of what it does not know */
};

static inline bool vb_sent_is_kept(const struct vb_sent *sent)
{
	return sent->mask != 0;
}

/* From una on so many PSNs, sent now. False: no memory, and nothing has changed. */
bool vb_sent_keep(struct vb_sent *sent, uint32_t una, uint32_t psns, vb_time now);
/* The packet at psn, which is of span PSNs, leaves for the first time, or again. False: no memory. */
bool vb_sent_add(struct vb_sent *sent, uint32_t una, uint32_t psn, uint32_t span, bool is_again, vb_time now);
void vb_sent_forget(struct vb_sent *sent);
/* From psn up to end, the first that has neither arrived nor is lost; or end. */
uint32_t vb_sent_next_open(const struct vb_sent *sent, uint32_t psn, uint32_t end);
uint32_t vb_sent_next_lost(const struct vb_sent *sent, uint32_t psn, uint32_t end);
void vb_sent_lose(struct vb_sent *sent, uint32_t psn, bool is_told);
void vb_sent_find(struct vb_sent *sent, uint32_t psn); /* it is not lost after all */
void vb_sent_arrive(struct vb_sent *sent, uint32_t psn);
void vb_sent_repeat(struct vb_sent *sent, uint32_t psn, uint32_t span);
/* PSNs from .. to - 1 are acknowledged. */
void vb_sent_pass(struct vb_sent *sent, uint32_t from, uint32_t to);

/* Arrived, or lost: it takes nothing of the windows. */
static inline bool vb_sent_is_settled(const struct vb_sent *sent, uint32_t psn)
{
	return vb_psn_bit(sent->arrived, sent->mask, psn) || vb_psn_bit(sent->lost, sent->mask, psn);
}

static inline vb_time vb_sent_at(const struct vb_sent *sent, uint32_t psn)
{
	return sent->sent_at[psn & sent->mask];
}

#endif
