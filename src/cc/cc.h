/* Congestion control: one small interface, one file per algorithm. An algorithm is told what happened to one QP and
 * answers by setting the window, the rate and when it wants to be asked again. It knows nothing of packets or QPs. */
#ifndef VB_CC_CC_H
#define VB_CC_CC_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

struct vb_cc;

struct vb_cc_ack {
	uint32_t bytes;	  /* newly acknowledged */
	uint32_t flight;  /* bytes outstanding before this ack */
	vb_time rtt;	  /* 0 when not measured (ack of something sent twice) */
	bool ce;	  /* the ack itself carried Congestion Experienced */
};

struct vb_cc_algorithm {
	const char *name;
	void (*init)(struct vb_cc *cc, vb_time now);
	void (*on_send)(struct vb_cc *cc, uint32_t bytes, vb_time now);
	void (*on_ack)(struct vb_cc *cc, const struct vb_cc_ack *ack, vb_time now);
	void (*on_cnp)(struct vb_cc *cc, vb_time now);
	void (*on_loss)(struct vb_cc *cc, vb_time now); /* once a round of recovery */
	void (*on_timer)(struct vb_cc *cc, vb_time now);
};

struct vb_cc {
	const struct vb_cc_algorithm *algorithm;
	/* The algorithm's answer. */
	uint32_t window_bytes;	  /* outstanding bytes allowed; never below min_window */
	uint64_t rate;		  /* bytes a second; 0 = not paced */
	struct vb_deadline timer; /* when to call on_timer */
	/* Set by the holder. */
	uint32_t min_window, max_window;
	/* The algorithm's own. */
	uint64_t state[6];
};

/* Slow start from 64 KiB to the largest window, halved on loss and on CNP, then grown by additive increase. */
extern const struct vb_cc_algorithm vb_cc_window;

#endif
