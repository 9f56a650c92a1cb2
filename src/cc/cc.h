/* Congestion control: one small interface, one file per algorithm. An algorithm is told what happened to one QP and
 * answers by setting the window, the rate and when it wants to be asked again. It knows nothing of packets or QPs. */
#ifndef VB_CC_CC_H
#define VB_CC_CC_H

#include <stdbool.h>
#include <stdint.h>
#include "base/quantity.h"
#include "base/time.h"

struct vb_cc;

#define VB_CC_START_WINDOW 65536
/* No bound but the sequence numbers': half of them, of packets that each cost a window 256 bytes at least. */
#define VB_CC_UNLIMITED (1u << 30)

enum vb_cc_event {
	VB_CC_ACKED, /* something was acknowledged */
	VB_CC_CNP,   /* the peer, or a network that can, tells of congestion */
	VB_CC_LOST,  /* packets were lost: once a round of recovery */
};

/* What happened. What is not known is 0. */
struct vb_cc_signal {
	enum vb_cc_event event;
	bool is_marked;     /* ACKED: what acknowledged it says that something of that carried Congestion Experienced */
	uint32_t acked;     /* ACKED: bytes of messages, newly */
	uint32_t flight;    /* bytes under way before that, as windows count them */
	vb_time rtt;        /* ACKED: of a packet that was sent once */
	uint64_t telemetry; /* ACKED: the holder's own word (struct vb_packet): of the newest packet that is
			       acknowledged, as its ack brings it back, or of the response; telemetry.h where
			       VB_CC_BY_TELEMETRY */
	vb_time now;
};

/* What people may set of an algorithm. Values are whole numbers, see quantity.h. */
struct vb_cc_parameter {
	const char *name;
	enum vb_quantity kind;
	uint64_t preset, least, most;
	const char *help; /* with its source */
	uint64_t live;    /* preset of a live process; 0: the same */
	bool may_be_path; /* may be VB_CC_PATH */
};

/* Instead of a time: as long as the flow's own way takes there and back when nobody waits. Who knows the way puts the
 * time in its place before the algorithm starts. */
#define VB_CC_PATH UINT64_MAX

#define VB_CC_PARAMETERS_MAX 24

/* What tells an algorithm of congestion; without all of it, it is as good as none. */
enum {
	VB_CC_BY_LOSSES = 1,
	VB_CC_BY_MARKS = 2, /* and CNPs */
	VB_CC_BY_DELAY = 4,
	VB_CC_BY_TELEMETRY = 8,
	VB_CC_BY_SHARES = 16, /* how many were marked, which acknowledgements can say and CNPs cannot */
};

struct vb_cc_algorithm {
	const char *name;
	const char *help;
	uint8_t goes_by;                             /* a mask of these */
	uint32_t state_bytes;                        /* of a QP; made zeroed, see vb_cc_state */
	void (*init)(struct vb_cc *cc, vb_time now); /* window_bytes is the first window already, not paced, no timer */
	/* NULL: does not want to know. */
	void (*on_signal)(struct vb_cc *cc, const struct vb_cc_signal *signal);
	void (*on_send)(struct vb_cc *cc, uint32_t bytes, vb_time now); /* of a packet, as rates count it; again too */
	void (*on_timer)(struct vb_cc *cc, vb_time now);                /* leaves the timer unset, or later than now */
	const struct vb_cc_parameter *parameters;
	unsigned parameter_count;
	/* The round trip that these parameters suppose when nobody waits: where it is really longer, the line is never
	 * used. 0: none, it goes by what it measures. NULL: the same. */
	uint64_t (*supposes)(const uint64_t *values);
};

/* Which algorithm, and what it shall do. */
struct vb_cc_config {
	const struct vb_cc_algorithm *algorithm; /* NULL: vb_cc_window */
	const void *parameters;            /* a uint64_t for each of the algorithm's, borrowed; NULL: its defaults */
	uint32_t first_window, max_window; /* bytes; 0: the defaults. At least a packet, at most VB_CC_UNLIMITED */
	uint64_t line_rate;                /* of the link that packets leave on, bytes a second; 0: not known */
};

struct vb_cc {
	/* The algorithm's answer, of which each packet asks the first two. */
	uint64_t rate;                   /* bytes a second, as the holder counts those of packets; 0 = not paced */
	uint32_t window_bytes;           /* outstanding bytes allowed */
	uint32_t min_window, max_window; /* set by the holder */
	const struct vb_cc_algorithm *algorithm; /* NULL: none is running */
	/* The algorithm's own. */
	void *large_state; /* what does not fit into state */
	_Alignas(uint64_t) unsigned char state[32];
	struct vb_deadline timer; /* its answer too: when to call on_timer */
	/* Set by the holder. */
	const void *parameters;
	uint64_t line_rate;
};

/* -ENOMEM. config names an algorithm and a largest window. */
int vb_cc_start(struct vb_cc *cc, const struct vb_cc_config *config, uint32_t min_window, vb_time now);
void vb_cc_stop(struct vb_cc *cc); /* may be called twice */

static inline void *vb_cc_state(struct vb_cc *cc)
{
	return cc->large_state ? cc->large_state : cc->state;
}

/* Of the algorithm's table. */
static inline uint64_t vb_cc_parameter(const struct vb_cc *cc, unsigned index)
{
	return cc->parameters ? ((const uint64_t *)cc->parameters)[index] : cc->algorithm->parameters[index].preset;
}

/* Slow start from the first to the largest window, halved on loss and on CNP, then grown by additive increase. */
extern const struct vb_cc_algorithm vb_cc_window;
/* By what the switches on the way tell of their ports: telemetry.h. */
extern const struct vb_cc_algorithm vb_cc_hpcc;
/* By the share of packets that are marked. */
extern const struct vb_cc_algorithm vb_cc_dctcp;
/* By how the round-trip time changes. */
extern const struct vb_cc_algorithm vb_cc_timely;
/* By a target for it. */
extern const struct vb_cc_algorithm vb_cc_swift;
/* Nothing: whoever bounds what is under way, it is not congestion control. */
extern const struct vb_cc_algorithm vb_cc_none;
/* A rate, cut when marks are told of. */
extern const struct vb_cc_algorithm vb_cc_dcqcn;

#endif
