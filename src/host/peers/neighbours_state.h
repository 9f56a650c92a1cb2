/* What neighbours.c and exchange.c share; nobody else looks inside. */
#ifndef VB_HOST_NEIGHBOURS_STATE_H
#define VB_HOST_NEIGHBOURS_STATE_H

#include "host/peers/here.h"
#include "host/peers/neighbours.h"
#include "host/process.h"
#include "host/peers/riddles.h"
#include "host/peers/segments.h"

#define VB_NEIGHBOUR_SLOTS 256
#define VB_NEIGHBOUR_BATCH 32

/* One that was met. */
struct vb_link {
	struct vb_list link; /* in links */
	struct vb_neighbours *all;
	struct vb_acquaintance *who;
	struct vb_neighbour engine;
	struct vb_shm *shm;
	struct vb_puller puller;
	int bell, pidfd;      /* -1: with ourselves; where there is none */
	unsigned descriptors; /* that it has, of those counted */
	bool is_ours;         /* the lane with itself */
	bool is_used;         /* since it was last looked whether it is */
	bool is_let_go;       /* by one of us, though both live */
	bool is_greeted;      /* else nothing goes there yet */
	bool is_dozing;       /* he is to wake us, or it is ours; else each turn looks */
	bool is_our_users;    /* by the broker's word and by our own look: pidfd tells the process, which we see */
	bool has_riddle;      /* it has one to read, and has not said its number */
	bool has_answered;    /* we have said the number that we read of it, and wait to hear where its memory is */
	bool awaits_room;     /* and is to when he frees something, too */
	bool lacks_room;      /* not all that was to be sent could be */
	bool reads_us;        /* it has proved that */
	uint32_t told[VB_SEGMENTS]; /* by place: the segments that he knows of */
	unsigned quiet;             /* looks that found nothing, in a row */
	unsigned untold;            /* descriptors executed since what was executed has been said */
	unsigned unrung,
		waiting; /* that has been said since he was rung for; descriptors seen that wait behind a pull */
	bool must_ring;  /* for something else than what was executed */
	struct vb_deadline rings_at; /* at the latest */
	struct vb_deadline tell_at;  /* when it is to be said at the latest */
	struct vb_deadline ends_at;  /* he is gone: when what was under way to him fails */
};

/* Whom the lane wished to know, or who came. Stays when he is gone, for the summary. */
struct vb_acquaintance {
	struct vb_link *link; /* or NULL */
	uint8_t slot;
	enum vb_local_reason reason;      /* why requests go over the wire */
	enum vb_local_reason pull_reason; /* why we pull nothing */
	bool is_mapped;                   /* something was pulled from mapped memory */
	bool is_asked;                    /* about, of the broker */
	bool is_awaited;                  /* by QPs */
	bool is_unwilling;                /* it is there, and has not asked for us */
	vb_time awaited_since;            /* or since it was seen last that he is there */
	unsigned gid_count;
	struct vb_gid *gids; /* by which the lane knows him */
	uint32_t pid;
	uint64_t sent, received; /* payload bytes, with VERBENA_STATS=1 */
};

struct vb_neighbours {
	struct vb_driver *driver;
	int epoll_fd;
	struct vb_list links;
	unsigned awake_count; /* links that each turn looks at */
	unsigned turns;
	bool has_more; /* the lane has more to say to itself */
	unsigned awaited_count, ending_count;
	struct vb_deadline in_touch_until; /* the broker has lately said something of meetings */
	struct vb_acquaintance *by_slot[VB_NEIGHBOUR_SLOTS];
	struct vb_here here;
	uint64_t *riddles;          /* by slot */
	bool is_open;               /* the broker was told that the lane takes datagrams */
	struct vb_deadline idle_at; /* when it is looked who is */
	struct vb_descriptor descriptors[VB_NEIGHBOUR_BATCH];
	struct vb_answer answers[VB_NEIGHBOUR_BATCH];
};

/* neighbours.c */
void vb_link_greeted(struct vb_link *link);          /* he is a neighbour from now on */
void vb_link_end(struct vb_link *link, vb_time now); /* he is gone: what he said before is heard */

/* Though both live: the other is told. */
void vb_link_let_go(struct vb_link *link, vb_time now);

/* introductions.c */
/* An introduction by so many descriptors is taken, which are to be given back: IS_USED, or why not. */
enum vb_local_reason vb_introduction_take(struct vb_neighbours *all, uint8_t slot, unsigned count);
void vb_introduction_give_back(unsigned count);
void vb_introduction_close_bell(
	int bell); /* elsewhere, for it may take as long as its other end likes; gives one back */
void vb_introduction_end_untaken(int bell); /* which no link has had: here, or elsewhere */
void vb_introductions_forked(void);
/* A connected QP has it for its peer. who: or NULL. */
bool vb_introduction_has_use(const struct vb_neighbours *all, const struct vb_acquaintance *who);
void vb_introductions_say_open(struct vb_neighbours *all);           /* to the broker, when that has changed */
void vb_introductions_watch(struct vb_neighbours *all, vb_time now); /* there are some, who may become idle */
void vb_introductions_let_idle_go(struct vb_neighbours *all, vb_time now);

/* greetings.c */
/* Whether the process is of our user, which the broker sees, and we see as well: it may have become another since it
 * connected there. IS_USED, or why not. */
enum vb_local_reason vb_greeting_judge(int pidfd, bool is_same_user);
void vb_greeting_say(struct vb_link *link);
/* Closes it; false: that may take long. */
bool vb_greeting_end(int bell, bool is_our_users);
void vb_greeting_part(const struct vb_link *link);
void vb_greeting_tell_segments(struct vb_link *link); /* those that he does not know of */
void vb_greeting_refuse(int bell, enum vb_local_reason reason);

/* exchange.c */
bool vb_link_receive(struct vb_link *link, vb_time now);
bool vb_link_transmit(struct vb_link *link, vb_time now);
void vb_link_settle(struct vb_link *link, vb_time now);
void vb_link_rouse(struct vb_link *link);
struct vb_deadline vb_links_next_deadline(const struct vb_neighbours *all); /* when what is held back is to be said */

#endif
