/* The account of packets that were sent: sent.h.
 * Holds: what is lost has not arrived; lost_count is the number of those that are. Not here: what says so, and when it
 * is sent again (selective.c). */
#include "roce/sent.h"
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"

enum { KINDS = 7 };

/* One piece of memory: the times, and behind them the bits. */
static bool make(struct vb_sent *sent, uint32_t psns, vb_time since)
{
	uint32_t places = vb_psn_places(psns), words = places / 64;
	char *memory = calloc(1, places * sizeof(vb_time) + KINDS * words * sizeof(uint64_t));
	if (!memory)
		return false;
	uint64_t *bits = (uint64_t *)(memory + places * sizeof(vb_time));
	*sent = (struct vb_sent){ .mask = places - 1,
		.since = since,
		.sent_at = (vb_time *)memory,
		.taken = bits,
		.arrived = bits + words,
		.lost = bits + 2 * words,
		.again = bits + 3 * words,
		.told = bits + 4 * words,
		.second = bits + 5 * words,
		.repeat = bits + 6 * words };
	for (uint32_t i = 0; i < places; i++)
		sent->sent_at[i] = since;
	return true;
}

bool vb_sent_keep(struct vb_sent *sent, uint32_t una, uint32_t psns, vb_time now)
{
	assert(!vb_sent_is_kept(sent));
	if (!make(sent, psns, now))
		return false;
	sent->known_psn = una;
	return true;
}

static void copy_bit(uint64_t *to, uint32_t to_mask, const uint64_t *from, uint32_t from_mask, uint32_t psn)
{
	if (vb_psn_bit(from, from_mask, psn))
		vb_psn_set(to, to_mask, psn);
}

static bool grow(struct vb_sent *sent, uint32_t una, uint32_t psns)
{
	struct vb_sent larger;
	if (!make(&larger, psns, sent->since))
		return false;
	for (uint32_t i = 0; i <= sent->mask; i++) {
		uint32_t psn = vb_psn_add(una, i);
		larger.sent_at[psn & larger.mask] = vb_sent_at(sent, psn);
		copy_bit(larger.taken, larger.mask, sent->taken, sent->mask, psn);
		copy_bit(larger.arrived, larger.mask, sent->arrived, sent->mask, psn);
		copy_bit(larger.lost, larger.mask, sent->lost, sent->mask, psn);
		copy_bit(larger.again, larger.mask, sent->again, sent->mask, psn);
		copy_bit(larger.told, larger.mask, sent->told, sent->mask, psn);
		copy_bit(larger.second, larger.mask, sent->second, sent->mask, psn);
		copy_bit(larger.repeat, larger.mask, sent->repeat, sent->mask, psn);
	}
	larger.lost_count = sent->lost_count;
	larger.known_psn = sent->known_psn;
	free(sent->sent_at);
	*sent = larger;
	return true;
}

void vb_sent_find(struct vb_sent *sent, uint32_t psn)
{
	if (!vb_psn_bit(sent->lost, sent->mask, psn))
		return;
	vb_psn_clear(sent->lost, sent->mask, psn);
	sent->lost_count--;
}

bool vb_sent_add(struct vb_sent *sent, uint32_t una, uint32_t psn, uint32_t span, bool is_again, vb_time now)
{
	uint32_t psns = (uint32_t)vb_psn_diff(psn, una) + span;
	if (psns > sent->mask + 1 && !grow(sent, una, psns))
		return false;
	for (uint32_t i = 0; i < span; i++) {
		uint32_t at = vb_psn_add(psn, i);
		sent->sent_at[at & sent->mask] = now;
		if (!vb_psn_bit(sent->lost, sent->mask, at))
			vb_psn_clear(sent->told, sent->mask, at);
		vb_sent_find(sent, at);
		if (is_again)
			vb_psn_set(sent->again, sent->mask, at);
	}
	return true;
}

void vb_sent_repeat(struct vb_sent *sent, uint32_t psn, uint32_t span)
{
	for (uint32_t i = 0; i < span; i++)
		vb_psn_set(sent->repeat, sent->mask, vb_psn_add(psn, i));
}

void vb_sent_forget(struct vb_sent *sent)
{
	free(sent->sent_at);
	*sent = (struct vb_sent){ 0 };
}

/* From psn up to end, the first that is lost, or that is open; or end. */
static uint32_t next(const struct vb_sent *sent, uint32_t psn, uint32_t end, bool is_lost)
{
	while (vb_psn_diff(end, psn) > 0) {
		uint32_t word = (psn & sent->mask) / 64;
		uint64_t wanted = is_lost ? sent->lost[word] : ~(sent->arrived[word] | sent->lost[word]);
		wanted >>= psn & 63;
		psn = vb_psn_add(psn, wanted ? (uint32_t)__builtin_ctzll(wanted) : 64 - (psn & 63));
		if (wanted)
			break;
	}
	return vb_psn_diff(end, psn) > 0 ? psn : end;
}

uint32_t vb_sent_next_open(const struct vb_sent *sent, uint32_t psn, uint32_t end)
{
	return next(sent, psn, end, false);
}

uint32_t vb_sent_next_lost(const struct vb_sent *sent, uint32_t psn, uint32_t end)
{
	return next(sent, psn, end, true);
}

static void know(struct vb_sent *sent, uint32_t psn)
{
	if (vb_psn_diff(psn, sent->known_psn) >= 0)
		sent->known_psn = vb_psn_add(psn, 1);
}

void vb_sent_lose(struct vb_sent *sent, uint32_t psn, bool is_told)
{
	assert(!vb_sent_is_settled(sent, psn));
	vb_psn_set(sent->lost, sent->mask, psn);
	if (is_told && (!vb_psn_bit(sent->again, sent->mask, psn) || vb_psn_bit(sent->told, sent->mask, psn)))
		vb_psn_set(sent->told, sent->mask, psn);
	else
		vb_psn_clear(sent->told, sent->mask, psn);
	sent->lost_count++;
	know(sent, psn);
}

void vb_sent_arrive(struct vb_sent *sent, uint32_t psn)
{
	vb_sent_find(sent, psn);
	vb_psn_set(sent->arrived, sent->mask, psn);
	vb_psn_set(sent->taken, sent->mask, psn);
	know(sent, psn);
}

void vb_sent_pass(struct vb_sent *sent, uint32_t from, uint32_t to)
{
	uint32_t n = (to - from) & VB_PSN_MASK;
	for (uint32_t i = 0; i < n && i <= sent->mask; i++) {
		uint32_t psn = vb_psn_add(from, i);
		vb_sent_find(sent, psn);
		vb_psn_clear(sent->taken, sent->mask, psn);
		vb_psn_clear(sent->arrived, sent->mask, psn);
		vb_psn_clear(sent->again, sent->mask, psn);
		vb_psn_clear(sent->told, sent->mask, psn);
		vb_psn_clear(sent->second, sent->mask, psn);
		vb_psn_clear(sent->repeat, sent->mask, psn);
		sent->sent_at[psn & sent->mask] = sent->since;
	}
}
