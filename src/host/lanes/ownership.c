/* See ownership.h. The table says which owner follows which by what; what the caller is to do follows from the
 * difference between two owners, and from the timer.
 *
 * Holds: a change that is not in the table is a fault of ours, and asserted. While pollers or a returner own a lane the
 * timer is set to look for them. A waiter is named exactly while one owns the lane. */
#include "host/lanes/ownership.h"

#include <stddef.h>
#include <stdint.h>
#include "base/invariant.h"

/* ---- The table --------------------------------------------------------------------------------------------------- */

enum event {
	POLLS,         /* threads have polled often enough */
	MISSED,        /* nobody has polled for too long */
	THREAD_TURN,   /* the progress thread has run a turn, and will look again before it sleeps */
	THREAD_SLEEP,  /* it has found nothing, and goes to sleep */
	WAIT,          /* a thread waits, and no other waiter owns the lane */
	WAITER_TURN,   /* the waiter that owns it has run a turn */
	WAITER_SLEEP,  /* it has found nothing, and goes to sleep */
	WAITER_LEAVES, /* it leaves to come again, most likely */
	WAITER_ENDS,   /* it leaves for good, or others wait too */
	GOES_HOME,     /* the port has changed, or pollers leave for their memory, where nobody receives for them */
	EVENTS
};

#define NOBODY   VB_OWNER_NOBODY
#define T_ASLEEP VB_OWNER_THREAD_ASLEEP
#define T_AWAKE  VB_OWNER_THREAD_AWAKE
#define POLLERS  VB_OWNER_POLLERS
#define W_ASLEEP VB_OWNER_WAITER_ASLEEP
#define W_AWAKE  VB_OWNER_WAITER_AWAKE
#define RETURNER VB_OWNER_RETURNER
#define HOME     VB_OWNERS       /* the progress thread, asleep; nobody, where there is none */
#define NEVER    (VB_OWNERS + 1) /* never happens */

/* clang-format off */
static const uint8_t next_owner[VB_OWNERS][EVENTS] = {
/*                                   THREAD_   THREAD_             WAITER_   WAITER_   WAITER_   WAITER_   GOES_
                 POLLS     MISSED    TURN      SLEEP     WAIT      TURN      SLEEP     LEAVES    ENDS      HOME */
[NOBODY]     = { NEVER,    NEVER,    NEVER,    NEVER,    W_AWAKE,  NEVER,    NEVER,    NEVER,    NEVER,    NOBODY   },
[T_ASLEEP]   = { POLLERS,  NEVER,    T_AWAKE,  T_ASLEEP, W_AWAKE,  NEVER,    NEVER,    NEVER,    NEVER,    T_ASLEEP },
[T_AWAKE]    = { POLLERS,  NEVER,    T_AWAKE,  T_ASLEEP, W_AWAKE,  NEVER,    NEVER,    NEVER,    NEVER,    T_AWAKE  },
[POLLERS]    = { NEVER,    T_AWAKE,  POLLERS,  POLLERS,  W_AWAKE,  NEVER,    NEVER,    NEVER,    NEVER,    HOME     },
[W_ASLEEP]   = { NEVER,    NEVER,    W_ASLEEP, W_ASLEEP, W_AWAKE,  W_AWAKE,  W_ASLEEP, RETURNER, HOME,     HOME     },
[W_AWAKE]    = { NEVER,    NEVER,    W_AWAKE,  W_AWAKE,  W_AWAKE,  W_AWAKE,  W_ASLEEP, RETURNER, HOME,     HOME     },
[RETURNER]   = { POLLERS,  T_AWAKE,  RETURNER, RETURNER, W_AWAKE,  NEVER,    NEVER,    NEVER,    NEVER,    HOME     },
};

/* This holds while an owner has the lane. */
static const struct {
	const char *name;
	bool thread_watches_port; /* the progress thread sleeps on the port, */
	bool thread_hears_bells;  /* on the local peers' bells, */
	bool sleeps;              /* and the owner on the lane's deadlines */
	uint8_t alike;            /* owners of the same number are one, asleep or awake */
} owners[VB_OWNERS] = {
	/*             name             port   bells  sleeps alike */
	[NOBODY]   = { "nobody",        false, false, false, 0 },
	[T_ASLEEP] = { "thread_asleep", true,  true,  true,  1 },
	[T_AWAKE]  = { "thread_awake",  true,  true,  false, 1 },
	[POLLERS]  = { "pollers",       false, true,  false, 2 },
	[W_ASLEEP] = { "waiter_asleep", false, false, true,  3 },
	[W_AWAKE]  = { "waiter_awake",  false, false, false, 3 },
	[RETURNER] = { "returner",      false, false, false, 4 },
};
/* clang-format on */

const char *vb_owner_name(enum vb_owner owner)
{
	assert(owner < VB_OWNERS);
	return owners[owner].name;
}

/* ---- The timer --------------------------------------------------------------------------------------------------- */

static unsigned set_alarm(struct vb_ownership *o, enum vb_alarm alarm, vb_time at)
{
	o->alarm = alarm;
	o->alarm_at = at;
	return VB_DO_SET_TIMER;
}

static unsigned look_after(struct vb_ownership *o, vb_time time)
{
	assert(o->has_thread && time >= VB_POLLER_LATE);
	o->look_after = time;
	return set_alarm(o, VB_ALARM_LOOK, vb_time_add(o->polled_at, time));
}

/* A returner that came back in time before is looked for later: a look takes a core, and may take its own. The alarm
 * that is set already looks for it too. */
static unsigned expect_back(struct vb_ownership *o)
{
	assert(o->look_after <= VB_POLLER_LOOK_MOST);
	if (o->alarm == VB_ALARM_LOOK)
		return 0;
	return look_after(o, o->look_after < VB_POLLER_LATE ? VB_POLLER_LATE : o->look_after);
}

static unsigned change_timer(struct vb_ownership *o, enum vb_owner from, enum vb_owner to)
{
	if (to == POLLERS)
		return look_after(o, o->patience);
	if (to == RETURNER)
		return expect_back(o);
	/* A waiter that owned the lane before is expected back by the alarm that is set; nobody else is looked for. */
	if (o->alarm == VB_ALARM_LOOK && (from == POLLERS || owners[to].thread_watches_port))
		return set_alarm(o, VB_ALARM_NONE, o->alarm_at);
	return 0;
}

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

static void check(const struct vb_ownership *o)
{
	assert(vb_ownership_owner(o) < VB_OWNERS);
	assert(vb_ownership_is_waiter(o) == (o->waiter != NULL));
	assert(!vb_ownership_is_left_to_pollers(o) || o->alarm == VB_ALARM_LOOK);
	assert(o->has_thread || vb_ownership_owner(o) == NOBODY || vb_ownership_is_waiter(o));
	assert(!o->has_thread || vb_ownership_owner(o) != NOBODY);
	(void)o;
}

static unsigned change_watch(enum vb_owner from, enum vb_owner to)
{
	unsigned actions = 0;

	if (owners[from].thread_watches_port != owners[to].thread_watches_port)
		actions |= owners[to].thread_watches_port ? VB_DO_WATCH_PORT : VB_DO_LEAVE_PORT;
	if (owners[from].thread_hears_bells != owners[to].thread_hears_bells)
		actions |= owners[to].thread_hears_bells ? VB_DO_HEAR_BELLS : VB_DO_LEAVE_BELLS;
	return actions;
}

static unsigned step(struct vb_ownership *o, enum event event)
{
	const enum vb_owner from = vb_ownership_owner(o);
	uint8_t to = next_owner[from][event];
	unsigned actions = 0;

	assert(to != NEVER);
	if (to == HOME)
		to = o->has_thread ? T_ASLEEP : NOBODY;
	if (to == from || to == NEVER)
		return 0;
	atomic_store_explicit(&o->owner, to, memory_order_release);
	if (owners[from].alike == owners[to].alike)
		return 0;
	o->polls = 0;
	if (o->has_thread)
		actions = change_watch(from, to) | change_timer(o, from, to);
	if (to == RETURNER)
		actions |= VB_DO_SEND_ACKS;
	if (to == RETURNER || to == POLLERS)
		actions |= VB_DO_ROUSE;
	return actions;
}

void vb_ownership_init(struct vb_ownership *o, bool has_thread)
{
	*o = (struct vb_ownership){ .has_thread = has_thread, .patience = VB_POLLER_LATE };
	atomic_init(&o->owner, has_thread ? T_ASLEEP : NOBODY);
	check(o);
}

/* ---- Polls ------------------------------------------------------------------------------------------------------- */

/* A poll is judged that may take the lane: the last of those in a row, and the first since pollers were missed. */
enum vb_poll vb_ownership_polled_beside(struct vb_ownership *o, vb_time now)
{
	const enum vb_owner owner = vb_ownership_owner(o);

	assert(owner != POLLERS);
	if (owner == RETURNER)
		o->polled_at = now;
	if (owner == NOBODY || vb_ownership_is_waiter(o))
		return VB_POLL_NOTED;
	if (o->misses_pollers || o->polls + 1 >= VB_POLLS_TO_OWN)
		return VB_POLL_JUDGED;
	o->polls++;
	return VB_POLL_NOTED;
}

unsigned vb_ownership_judge(struct vb_ownership *o, bool kept_away, vb_time now)
{
	const bool is_back = o->misses_pollers && kept_away;
	unsigned actions = 0;

	check(o);
	assert(o->has_thread && !vb_ownership_is_waiter(o));
	o->judged_at = now;
	o->patience = kept_away ? VB_POLLER_LATE_CROWDED : VB_POLLER_LATE;
	if (vb_ownership_owner(o) != POLLERS) {
		o->misses_pollers = false;
		if (is_back || ++o->polls >= VB_POLLS_TO_OWN) {
			o->polled_at = now;
			actions = step(o, POLLS);
		}
	}
	assert(o->polls < VB_POLLS_TO_OWN);
	check(o);
	return actions;
}

void vb_ownership_returned(struct vb_ownership *o, vb_time now)
{
	if (vb_ownership_owner(o) == RETURNER)
		o->polled_at = now;
	assert(vb_ownership_owner(o) != RETURNER || o->alarm == VB_ALARM_LOOK);
}

unsigned vb_ownership_leaves(struct vb_ownership *o)
{
	assert(vb_ownership_owner(o) == POLLERS);
	unsigned actions = step(o, GOES_HOME);
	assert(vb_ownership_owner(o) == T_ASLEEP);
	check(o);
	return actions;
}

/* ---- Threads that wait ------------------------------------------------------------------------------------------- */

unsigned vb_ownership_wait(struct vb_ownership *o, const void *waiter)
{
	assert(waiter);
	check(o);
	if (o->waiter && o->waiter != waiter) {
		o->beside++;
		return 0;
	}
	o->waiter = waiter;
	unsigned actions = step(o, WAIT);
	assert(vb_ownership_owner(o) == W_AWAKE);
	check(o);
	return actions;
}

void vb_ownership_waiter_turn(struct vb_ownership *o, const void *waiter)
{
	if (o->waiter == waiter)
		step(o, WAITER_TURN);
	check(o);
}

void vb_ownership_waiter_sleeps(struct vb_ownership *o, const void *waiter)
{
	if (o->waiter == waiter)
		step(o, WAITER_SLEEP);
	check(o);
}

static unsigned give_back(struct vb_ownership *o, enum event how)
{
	assert(vb_ownership_is_waiter(o));
	o->waiter = NULL;
	unsigned actions = step(o, how);
	check(o);
	return actions;
}

unsigned vb_ownership_leave(struct vb_ownership *o, const void *waiter, vb_time now)
{
	assert(waiter);
	if (o->waiter != waiter)
		return 0;
	if (!o->has_thread || o->beside > 0)
		return give_back(o, WAITER_ENDS);
	o->polled_at = now;
	return give_back(o, WAITER_LEAVES);
}

unsigned vb_ownership_end_wait(struct vb_ownership *o, const void *waiter)
{
	assert(waiter);
	return o->waiter == waiter ? give_back(o, WAITER_ENDS) : 0;
}

void vb_ownership_end_wait_beside(struct vb_ownership *o)
{
	assert(o->beside > 0);
	o->beside--;
}

/* ---- The progress thread ----------------------------------------------------------------------------------------- */

void vb_ownership_thread_turn(struct vb_ownership *o)
{
	assert(o->has_thread);
	step(o, THREAD_TURN);
	check(o);
}

void vb_ownership_thread_sleeps(struct vb_ownership *o)
{
	assert(o->has_thread);
	step(o, THREAD_SLEEP);
	check(o);
}

/* Twice as long each time; but a thread that has not polled just now may be about to stop. */
static unsigned look_again(struct vb_ownership *o, vb_time away, bool is_quiet, bool had_held_posts)
{
	assert(away < o->patience);
	const bool is_seldom = vb_ownership_owner(o) == POLLERS && !had_held_posts &&
			       (is_quiet || o->patience == VB_POLLER_LATE_CROWDED);
	const vb_time most = is_seldom ? VB_POLLER_LOOK_MOST : VB_POLLER_LOOK_BUSY;

	if (away > o->patience / 2)
		return look_after(o, o->patience);
	return look_after(o, 2 * o->look_after < most ? 2 * o->look_after : most);
}

static unsigned take_over(struct vb_ownership *o)
{
	assert(vb_ownership_is_left_to_pollers(o) && o->alarm == VB_ALARM_NONE);
	o->misses_pollers = vb_ownership_owner(o) == POLLERS;
	o->look_after = 0;
	unsigned actions = step(o, MISSED);
	assert(vb_ownership_owner(o) == T_AWAKE && !(actions & VB_DO_SET_TIMER));
	return actions;
}

/* It was looked for while it waited, so it had come back: it is looked for later the next time. */
static void note_back(struct vb_ownership *o)
{
	assert(vb_ownership_is_waiter(o) && o->alarm == VB_ALARM_NONE);
	o->look_after = 2 * o->look_after < VB_POLLER_LOOK_BUSY ? 2 * o->look_after : VB_POLLER_LOOK_BUSY;
}

/* The owner that has the mutex now says what follows, whatever the alarm was set for: meanwhile another may have come.
 * An alarm for the lane counts as set until a turn has served it, so that it is not set again before. */
struct vb_look vb_ownership_timer_is_up(struct vb_ownership *o, bool is_quiet, bool had_held_posts, vb_time now)
{
	const bool was_to_look = o->alarm == VB_ALARM_LOOK;
	struct vb_look look = { .must_drive = true };

	check(o);
	assert(o->has_thread);
	if (was_to_look)
		o->alarm = VB_ALARM_NONE;
	if (vb_ownership_is_left_to_pollers(o)) {
		const vb_time away = vb_time_since(o->polled_at, now);
		look.must_drive = away >= o->patience;
		look.has_looked = !look.must_drive;
		look.actions = look.has_looked ? look_again(o, away, is_quiet, had_held_posts) : take_over(o);
	} else if (was_to_look && vb_ownership_is_waiter(o)) {
		note_back(o);
		look.must_drive = false;
	}
	check(o);
	return look;
}

/* ---- The lane's deadlines ---------------------------------------------------------------------------------------- */

bool vb_ownership_needs_timer(const struct vb_ownership *o)
{
	return owners[vb_ownership_owner(o)].sleeps;
}

unsigned vb_ownership_arm(struct vb_ownership *o, struct vb_deadline next)
{
	assert(vb_ownership_needs_timer(o));
	if (!next.is_set || (o->alarm != VB_ALARM_NONE && !vb_time_before(next.at, o->alarm_at)))
		return 0;
	return set_alarm(o, VB_ALARM_LANE, next.at);
}

unsigned vb_ownership_arm_at_once(struct vb_ownership *o, vb_time now)
{
	assert(vb_ownership_needs_timer(o));
	assert(!o->has_thread);
	return set_alarm(o, VB_ALARM_LANE, now);
}

/* ---- The port ---------------------------------------------------------------------------------------------------- */

unsigned vb_ownership_port_changed(struct vb_ownership *o)
{
	o->waiter = NULL;
	unsigned actions = step(o, GOES_HOME);
	assert(vb_ownership_is_thread(o) == o->has_thread);
	check(o);
	return actions;
}

/* ---- Lingering --------------------------------------------------------------------------------------------------- */

vb_time vb_ownership_linger(vb_time linger, vb_time slept)
{
	assert(linger >= 0 && linger <= VB_LINGER_MOST);
	if (slept > VB_LINGER_MOST + VB_LINGER_WAKING)
		return linger / 2 < VB_LINGER_LEAST ? 0 : linger / 2;
	if (linger == 0)
		return VB_LINGER_LEAST;
	return 2 * linger < VB_LINGER_MOST ? 2 * linger : VB_LINGER_MOST;
}
