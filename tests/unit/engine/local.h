/* What tests of descriptors do again and again with a pair. */
#ifndef VB_TESTS_LOCAL_H
#define VB_TESTS_LOCAL_H

#include "pair.h"

enum { SOURCE = 0, PLACE = 400000, LENDS = VB_LOCAL_LEND_MIN, LONG = 200000 };

static inline void fill(struct pair *p, int of, uint32_t offset, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		p->side[of].memory[offset + i] = (uint8_t)(i * 7 + i / 251 + 1);
}

static inline struct pair *open_filled(uint32_t lend_from)
{
	struct pair *p = pair_open(VB_QP_RC, true, lend_from);
	fill(p, 0, SOURCE, LONG);
	return p;
}

static inline uint64_t word_at(const struct pair *p, int of, uint32_t offset)
{
	uint64_t word;
	memcpy(&word, p->side[of].memory + offset, sizeof(word));
	return word;
}

static inline void assert_nothing_more(struct pair *p)
{
	assert_true(vb_cq_is_empty(p->side[0].cq));
	assert_true(vb_cq_is_empty(p->side[1].cq));
}

static inline void assert_done(struct pair *p, enum vb_wc_opcode opcode)
{
	struct vb_wc wc = pair_completion(p, 0);
	assert_int_equal(wc.status, VB_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
}

#endif
