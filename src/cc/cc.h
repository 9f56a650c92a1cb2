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
/* Bounded by the sequence numbers alone: half of them, for packets that each count at least 256 bytes of a window. */
#define VB_CC_UNLIMITED (1u << 30)

enum vb_cc_event {
	VB_CC_ACKED, /* something was acknowledged */
	VB_CC_CNP,   /* a peer, or a switch that can, reports congestion */
	VB_CC_LOST,  /* packets were lost: once a round of recovery, or each time, VB_CC_BY_EACH_LOSS */
};

/* An event; fields are 0 where they are not known. */
struct vb_cc_signal {
	enum vb_cc_event event;
	bool is_marked; /* ACKED: the acknowledgement says that an acknowledged packet carried Congestion Experienced */
	uint32_t acked; /* ACKED: bytes of messages, newly */
	uint32_t lost;  /* LOST: packets, newly; 0: not known */
	bool is_overflow; /* LOST: a receive buffer was full, which says where: whatever round trips show */
	uint32_t flight;  /* bytes in flight before that, as windows count them */
	vb_time rtt;      /* ACKED: of a packet that was sent once */
	/* ACKED: the holder's own word (struct vb_packet) of the newest acknowledged packet, as its ack returns it, or
	 * of the response; telemetry.h if VB_CC_BY_TELEMETRY */
	uint64_t telemetry;
	vb_time now;
};

/* A parameter that people may set. Values are whole numbers, see quantity.h. */
struct vb_cc_parameter {
	const char *name;
	enum vb_quantity kind;
	uint64_t preset, least, most;
	const char *help; /* with its source */
	uint64_t live;    /* the default in a live process; 0: the same */
	bool may_be_path; /* may be VB_CC_PATH */
};

/* Stands for a time: the flow's own round trip without queues. The holder, which knows the path, replaces it by the
 * time before the algorithm starts. */
#define VB_CC_PATH UINT64_MAX

#define VB_CC_PARAMETERS_MAX 24

/* The signals that an algorithm needs; without all of them it does nothing useful. */
enum {
	VB_CC_BY_LOSSES = 1,
	VB_CC_BY_MARKS = 2, /* and CNPs */
	VB_CC_BY_DELAY = 4,
	VB_CC_BY_TELEMETRY = 8,
	VB_CC_BY_SHARES = 16,    /* the number of marked packets, which acknowledgements can carry and CNPs cannot */
	VB_CC_BY_EACH_LOSS = 32, /* the number of lost packets, which selective repeat tells */
};

struct vb_cc_algorithm {
	const char *name;
	const char *help;
	uint8_t goes_by;      /* a mask of these */
	uint32_t state_bytes; /* of a QP; made zeroed, see vb_cc_state */
	void (*init)(
		struct vb_cc *cc, vb_time now); /* on entry: window_bytes is the first window, no pacing, no timer */
	/* May be NULL. */
	void (*on_signal)(struct vb_cc *cc, const struct vb_cc_signal *signal);
	void (*on_send)(struct vb_cc *cc, uint32_t bytes,
		vb_time now); /* of a packet, as rates count it; also when it is sent again */
	void (*on_timer)(struct vb_cc *cc, vb_time now); /* leaves the timer unset, or later than now */
	const struct vb_cc_parameter *parameters;
	unsigned parameter_count;
	/* The round trip without queues that these parameters assume; on a longer path the line rate is never reached.
	 * 0 or NULL: none, the algorithm measures. */
	uint64_t (*supposes)(const uint64_t *values);
};

/* An algorithm and its parameters. */
struct vb_cc_config {
	const struct vb_cc_algorithm *algorithm; /* NULL: vb_cc_window */
	const void *parameters;                  /* a uint64_t for each parameter, borrowed; NULL: the defaults */
	uint32_t first_window, max_window; /* bytes; 0: the defaults. At least a packet, at most VB_CC_UNLIMITED */
	uint64_t line_rate;                /* of the outgoing link, bytes a second; 0: not known */
};

struct vb_cc {
	/* The algorithm's answer. Each packet looks at the first two, and at the algorithm. */
	uint64_t rate;         /* bytes a second, as the holder counts those of packets; 0 = not paced */
	uint32_t window_bytes; /* outstanding bytes allowed */
	uint32_t min_window;   /* set by the holder, as is max_window */
	const struct vb_cc_algorithm *algorithm; /* NULL: none is running */
	uint32_t max_window;
	/* The algorithm's own. */
	void *large_state; /* for algorithms whose state is larger than `state` */
	_Alignas(uint64_t) unsigned char state[32];
	struct vb_deadline timer; /* part of the answer: when to call on_timer */
	/* Set by the holder. */
	const void *parameters;
	uint64_t line_rate;
};

/* 0 or -ENOMEM. config must have an algorithm and a largest window. */
int vb_cc_start(struct vb_cc *cc, const struct vb_cc_config *config, uint32_t min_window, vb_time now);
void vb_cc_stop(struct vb_cc *cc); /* may be called twice */

static inline void *vb_cc_state(struct vb_cc *cc)
{
	return cc->large_state ? cc->large_state : cc->state;
}

/* number: in the algorithm's table. */
static inline uint64_t vb_cc_parameter(const struct vb_cc *cc, unsigned index)
{
	return cc->parameters ? ((const uint64_t *)cc->parameters)[index] : cc->algorithm->parameters[index].preset;
}

/* Slow start from the first to the largest window, halved on loss and on CNP, then grown by additive increase. */
extern const struct vb_cc_algorithm vb_cc_window;
/* By in-band telemetry of the switches' ports: telemetry.h. */
extern const struct vb_cc_algorithm vb_cc_hpcc;
/* By the share of packets that are marked. */
extern const struct vb_cc_algorithm vb_cc_dctcp;
/* By the gradient of the round-trip time. */
extern const struct vb_cc_algorithm vb_cc_timely;
/* By a target for the round-trip time. */
extern const struct vb_cc_algorithm vb_cc_swift;
/* By marks and the delay in queues. */
extern const struct vb_cc_algorithm vb_cc_nscc;
/* By the queue that round trips show; losses without one do not count. */
extern const struct vb_cc_algorithm vb_cc_queue;
/* The same for hosts whose processes wait for their cores, which round trips show as a queue that no smaller window
 * makes shorter: they alone cut nothing (longest=1s). */
extern const uint64_t vb_cc_queue_of_hosts[VB_CC_PARAMETERS_MAX];
/* No congestion control. */
extern const struct vb_cc_algorithm vb_cc_none;
/* A rate that CNPs, or marks in acknowledgements, cut. */
extern const struct vb_cc_algorithm vb_cc_dcqcn;

#endif
