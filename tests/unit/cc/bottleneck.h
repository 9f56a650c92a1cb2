/* One queue that several flows share, for tests of congestion control over seconds: first come, first served, full when
 * its buffer is. Packets may be lost by chance, and whoever takes an acknowledgement may wake up late for it. What was
 * lost leaves the window when something later is acknowledged, and is sent again: selective repeat, of which these
 * flows have the signals. Beside them may be TCP's CUBIC. */
#ifndef VB_TESTS_BOTTLENECK_H
#define VB_TESTS_BOTTLENECK_H

#include "cc/choice.h"
#include "fabric/tcp.h"

enum { MOST_FLOWS = 40, MOST_UNDER_WAY = 1 << 16 };

struct bottleneck {
	/* Set by the test. */
	uint64_t rate;      /* bytes a second */
	uint64_t buffer;    /* bytes */
	uint64_t mark_from; /* bytes in the queue; 0: no marks */
	uint32_t loss;      /* of a million packets */
	vb_time late;       /* how late who sleeps wakes up for acknowledgements, on average */
	/* The model's. */
	uint32_t flow_count;
	struct shared_flow *flows[MOST_FLOWS];
	vb_time now, free_at;
	uint64_t random;
	/* Since the newest bottleneck_clear(). */
	vb_time since;
	uint64_t most_queued, dropped;
	double queued, queue_samples; /* sum at each arrival */
};

struct under_way {
	vb_time sent_at, back_at;
	bool is_dropped, is_marked;
};

struct shared_flow {
	/* Set by the test, or by bottleneck_add. */
	const char *text; /* the algorithm, as VERBENA_CC has it; NULL: CUBIC */
	vb_time base;     /* round trip without a queue */
	vb_time begins;
	uint32_t packet, max_window; /* bytes */
	/* The model's. */
	struct vb_cc_choice choice;
	struct vb_cc cc;
	struct tcp_control cubic;
	struct under_way *ring;
	uint64_t oldest, next;   /* packets by number; what lies between is under way */
	uint64_t timed, told_to; /* a number; losses of what comes before are told */
	bool is_timing;
	uint64_t flight;
	vb_time srtt, wakes_at, pace_at, progress_at;
	uint64_t acked, lost; /* bytes, packets; since bottleneck_clear() */
};

void bottleneck_init(struct bottleneck *net, uint64_t bits_a_second, uint64_t buffer);
/* Owned by the bottleneck; gives what may still be changed before it begins. */
struct shared_flow *bottleneck_add(struct bottleneck *net, const char *text, vb_time base, vb_time begins);
void bottleneck_run(struct bottleneck *net, vb_time until);
void bottleneck_clear(struct bottleneck *net); /* what is counted */
void bottleneck_free(struct bottleneck *net);

/* What the flow got of the bottleneck since bottleneck_clear(). */
double bottleneck_share(const struct bottleneck *net, const struct shared_flow *flow);
double bottleneck_total(const struct bottleneck *net);
double bottleneck_jain(const struct bottleneck *net);
double bottleneck_queue_ms(const struct bottleneck *net); /* at most */
double bottleneck_mean_ms(const struct bottleneck *net);

#endif
