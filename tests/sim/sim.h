/* Deterministic simulation: a few hosts, real engines, a hostile network, random verbs traffic, invariants checked all
 * the while. One seed decides everything; a run that fails prints it, and replays from it. Time and the network are the
 * fabric's (fabric/holder.h), whose links lose, double, delay, reorder and mark packets.
 *
 *   events.c      what happens in hosts by themselves             traffic.c     what the programs post
 *   network.c     what the network is like; corruption, sockets   check_*.c     one file per invariant
 *   host.c        a host's lanes, driven as a live holder would   incast.c      sixteen to one, and a stopped receiver
 *   connection.c  QPs made, broken, cleaned up, made again        twins.c       the same traffic by two recoveries
 *   main.c        seeds and options
 *   local.h       lanes that share memory, besides the network
 *
 * Holds: nothing here reads a clock, an address or any randomness but the seed's, so that a trace replays bit for
 * bit. */
#ifndef VB_TESTS_SIM_H
#define VB_TESTS_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/random.h"
#include "core/counters.h"
#include "engine/nic.h"
#include "fabric/holder.h"
#include "../paced.h"

#define MAX_HOSTS      20
#define MAX_LANES      2
#define MAX_CONNS      24
#define SLOTS          16
#define MAX_QUEUE      64
#define RECVS          16
#define SEND_MAX       16384   /* longest SEND, and the size of a receive */
#define SLOT_BYTES     16384   /* room for one WRITE or READ */
#define BIG_SLOT_BYTES 1048576 /* of the one connection that moves long messages, which has BIG_SLOTS */
#define BIG_SLOTS      4
#define CELLS          8 /* of atomics, per host: the first half is added to, the second compared and swapped */
#define GUARD          256
#define SECRET         0x5E /* what lies in memory that is no longer to be read */
#define SHARED_RECVS   32
#define RETRIES        7    /* of a connection: the timeout after these is its end */
#define MAX_OWED       1024 /* packets that a port has at once */
#define POOLS          3    /* of shared receives, per host: an ordinary SRQ's, and those of two XRC SRQs */

/* ---- World ------------------------------------------------------------------------------------------------------- */

enum event_kind {
	EVENT_LANE,
	EVENT_APP,
	EVENT_REPAIR,
	EVENT_CHAOS,
	EVENT_CONNECT,
	EVENT_SIDE,
	EVENT_FATE,
	EVENT_WISH,
	EVENT_REBIRTH
};

struct event {
	enum event_kind kind;
	uint32_t next_free;
	void *object;
};

/* A packet under way, or in a socket. */
struct frame {
	struct frame *next;
	vb_time arrived_at; /* in the socket */
	struct vb_packet packet;
	struct vb_path path;
	bool is_phantom;
	uint32_t sender; /* a lane's number, and this packet's among those that it has sent */
	uint64_t number;
	uint8_t payload[VB_MAX_PAYLOAD + 4];
};

/* Bytes between guards, registered. */
struct block {
	uint8_t *bytes;  /* NULL: none */
	uint8_t *shadow; /* what they must be, where that is known all the time; else NULL */
	uint64_t size, iova;
	struct vb_mr *mr;
	uint32_t key;
	uint32_t access;
	uint32_t segment; /* that it is, by a name that is never given again; or 0 */
	bool is_revoked;  /* and its bytes are nobody's business */
};

struct side;

struct lane {
	struct host *host;
	struct vb_lane *lane;
	uint8_t slot;
	struct frame *rx_head, **rx_tail;
	uint64_t rx_bytes;
	unsigned rx_count;
	struct vb_batch *batch;
	struct vb_tx_completion owed[MAX_OWED]; /* of what the port still has */
	unsigned owed_count;
	bool is_scheduled;
	vb_time wake_at, busy_until, paused_until;
	vb_time paused_for; /* ever, up to paused_until */
	unsigned idle_runs;
	vb_time last_run;
	struct side *copier; /* who has the lane, in the middle of a piece */
};

struct pool {
	struct vb_srq *srq;
	struct block recvs;
	bool posted[SHARED_RECVS];
};

struct host {
	unsigned index;
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_gid gid, further; /* a link each */
	struct lane lanes[MAX_LANES];
	unsigned lane_count;
	struct vb_cq *cq; /* of all QPs of the host: its lanes share it */
	struct vb_xrcd *xrcd;
	struct pool pools[POOLS];
	struct block cells;
	struct vb_epochs *epochs; /* NULL: nobody shares memory with it */
	bool is_dead;             /* and soon there is another in its place */
};

enum wr_kind { WR_SEND, WR_WRITE, WR_READ, WR_ATOMIC, WR_BIND, WR_INVALIDATE };

struct wr {
	uint64_t id;
	enum wr_kind kind;
	enum vb_wr_opcode opcode;
	bool is_signalled, takes_recv, is_seen; /* is_seen: verified at the receiver before the sender knew */
	uint32_t length, imm, inv_key;
	int slot;         /* of ours, and of the peer's target; -1: none */
	int from_slot;    /* READ: of the peer's, if it is another one */
	uint64_t content; /* what the bytes are made from */
	uint32_t offset;  /* within the slot */
	struct vb_sge sges[4];
	unsigned sge_count;
	unsigned cell;
	uint64_t compare, swap_add;
	bool uses_window; /* of the peer */
	unsigned pool;    /* XRC: of the peer, whose SRQ the request names */
	unsigned way;     /* 0: as packets; else by which pairing of the two lanes */
	uint64_t heard;   /* the newest message of the peer that had been received */
	vb_time posted_at;
};

/* A message that the peer sent and that is to take a receive of ours. */
struct inbound {
	uint64_t id, content;
	uint32_t length, imm, inv_key;
	bool has_imm, has_inv, is_write;
	unsigned pool, way;
	uint64_t heard;
};

enum window_state { WINDOW_UNBOUND, WINDOW_BINDING, WINDOW_BOUND, WINDOW_DYING };

struct endpoint {
	struct connection *connection;
	struct endpoint *peer; /* NULL for UD */
	struct host *host;
	struct lane *lane;
	enum vb_qp_type type;
	struct vb_qp *qp;
	uint32_t qpn;
	struct vb_qp_attr attr; /* of the connection */
	bool has_srq, is_dead;
	bool is_short; /* the next receive that it posts */
	bool is_late;  /* not connected yet, while the peer is */
	uint64_t heard_id;
	bool is_target; /* XRC: posts nothing */
	struct block local, target, recvs;
	uint8_t slot_users[SLOTS]; /* requests that use our slot or the peer's of that number */
	struct wr posted[MAX_QUEUE];
	unsigned head, tail;
	unsigned depth; /* of the send queue: its places come back when a completion of theirs or a later one is polled
			 */
	unsigned unsignalled;
	bool recv_posted[RECVS];
	unsigned recv_waiting;
	struct inbound inbound[MAX_QUEUE];
	unsigned inbound_head, inbound_tail;
	struct vb_mw *window;
	enum window_state window_state;
	uint32_t window_key, window_users; /* requests of the peer under way that use it */
	uint64_t completed;
	vb_time app_pause;
	uint64_t last_sum[CELLS]; /* the last value an addition to the peer's cells returned, plus one */
	vb_time progress_at;      /* of its lane's running time: something was acknowledged, or the queue became busy */
	vb_time peer_progress_at; /* and of its peer's lane's */
	uint32_t oldest_psn;      /* as it was then */
	unsigned heard, refused;  /* answers since: those that told nothing new, and RNR NAKs */
	uint64_t request_count;   /* ever posted */
};

struct connection {
	unsigned index;
	enum vb_qp_type type;
	bool is_xrc; /* type is RC, whose rules hold; but the first end is a requester alone, the second a responder */
	uint32_t mtu;
	struct endpoint ends[2];
	unsigned end_count;
	uint32_t slot_bytes, slots;
	uint8_t timeout; /* code; 0: by chance */
	vb_time ack_timeout;
	enum { UP, BROKEN, FLUSHING, ENDING } state; /* ENDING: nothing is posted any more */
	bool may_break;   /* a fault was injected: errors are to be expected until it is repaired */
	bool is_silenced; /* one end has vanished: only a timeout tells */
	bool lost_lender; /* UC: bytes that were not a message's any more may have been copied before that was seen */
	bool is_repair_set;
	vb_time repair_at;
	unsigned generation;
};

/* What the seed chose. */
struct conditions {
	uint32_t drop_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm, ce_ppm;
	uint32_t burst_ppm, burst_run; /* packets that are lost in runs of so many; 0: none are */
	vb_time delay, jitter, reorder_delay;
	uint64_t bytes_per_second;
	uint64_t receive_buffer; /* bytes a lane's socket holds; 0: no limit */
	vb_time packet_cost;     /* of a lane's processing */
	vb_time ack_delay, patience;
	enum vb_recovery_kind recovery; /* of every lane */
	bool takes_hellos;              /* all hosts, or every other one alone */
	uint32_t hold_bytes;
	bool fails_over;    /* and links die for a while */
	uint32_t large_mtu; /* of every NIC; 0: no more than the path MTU */
	uint32_t carried;   /* a longer payload is lost on any way; 0: none is */
	uint16_t paths;
	uint8_t flowlet;        /* packets of each path in a row */
	struct vb_cc_config cc; /* of every lane */
	struct paced paced;
	uint32_t unknown_peer_allowance;
	bool is_of_nics; /* and what they do otherwise: */
	struct vb_ack_policy acks;
	struct vb_cnp_policy cnps;
	uint32_t packet_overhead;
	bool never_probes, replies_first;
	uint32_t chaos_ppm; /* of disasters, per chaos event */
	bool has_pauses, has_restarts, has_dead_keys, is_ipv6, is_trained;
	vb_time excused_until; /* a lane stood still or all was lost: retries may run out */
	bool may_exhaust;      /* so many losses that they may run out at any time */
};

struct world {
	uint64_t seed;
	struct vb_random random;
	vb_time begin, now;   /* the fabric's time is 0 at the beginning */
	struct event *events; /* [1 .. event_count] */
	uint32_t event_count, event_room, free_event;
	struct conditions network;
	struct network topology;
	struct fabric *fabric;
	struct host hosts[MAX_HOSTS];
	unsigned host_count;
	struct connection connections[MAX_CONNS];
	unsigned connection_count;
	uint64_t next_id;
	uint32_t last_segment;
	uint64_t packets, packets_wanted;
	bool is_recovery_given;
	enum vb_recovery_kind recovery; /* if it is */
	uint64_t held;                  /* packets that came before their turn */
	uint64_t hash;
	bool is_twin;         /* what is posted depends on the seed alone */
	bool is_stopping;     /* nothing new is posted; what is out must finish */
	bool is_quiet;        /* incast: no random traffic */
	bool is_local;        /* lanes share memory */
	struct frame *frames; /* spare ones */
	uint64_t lost, overflowed, corrupted, completions, reconnects, timeouts, deaths, moves;
	uint64_t farthest; /* so many packets of one sender have overtaken one */
};

extern struct world world;
extern bool is_traced, is_verbose;

__attribute__((format(printf, 1, 2), noreturn)) void broken(const char *format, ...); /* an invariant does not hold */
__attribute__((format(printf, 1, 2))) void trace(const char *format, ...);
void note(uint64_t value); /* into the trace's hash */
static inline uint32_t below(uint32_t n)
{
	return vb_random_below(&world.random, n);
}
static inline bool chance(uint32_t ppm)
{
	return vb_random_chance(&world.random, ppm);
}
static inline vb_time after(vb_time span)
{
	return vb_time_add(world.now, span);
}

/* Among the ends of all connections. */
static inline unsigned endpoint_number(const struct endpoint *end)
{
	return end->connection->index * 2 + (end == &end->connection->ends[1]);
}

/* events.c */
void event_add(vb_time at, enum event_kind kind, void *object);
struct event event_take(uint32_t number);
/* network.c */
void network_choose(void);
void network_open(void);                                       /* between the hosts that there will be */
bool network_step(void);                                       /* what is next happens; false: nothing is left */
vb_time network_free_at(const struct lane *lane);              /* its link */
void network_black_out(const struct lane *lane, vb_time span); /* what it sends is lost until then; NULL: everything */
void network_send(struct lane *from, const struct vb_outgoing *out, const struct vb_batch *batch);
void trace_packet(const char *verb, uint32_t qpn, const struct vb_packet *packet);
void frame_put(struct frame *frame);
void network_close(void);
/* host.c */
void host_open(struct host *host, unsigned index, unsigned lanes);
void host_meet(struct host *host);
void host_close(struct host *host);
void host_replace_srq(struct host *host, unsigned index); /* with all its receives */
void lane_wake(struct lane *lane, vb_time at);
void lane_run(struct lane *lane);
void lane_pause(struct lane *lane, vb_time span);                 /* instead of the pause that it is in */
vb_time lane_running_time(const struct lane *lane);               /* without its pauses */
void lane_look_around(struct lane *lane, bool takes_completions); /* what there is to tell, and when to be called */
vb_time lane_lag(const struct lane *lane); /* how long the oldest packet in its socket has been there */
unsigned host_take_completions(struct host *host);
void block_open(struct host *host, struct block *block, uint64_t size, uint32_t access, bool has_shadow);
void block_close(struct block *block);
const struct block *block_of_segment(const struct host *host, uint32_t segment); /* NULL: it is not there */
/* connection.c */
void connection_open(struct connection *connection, unsigned index, enum vb_qp_type type, bool is_xrc);
void connection_start(struct connection *connection);
void connection_broke(struct connection *connection);
void connection_repair(struct connection *connection);
void connection_close(struct connection *connection);
void connection_late(struct connection *connection);
void connection_may_break(struct connection *connection);
void connection_revoke(struct block *block, struct connection *connection);
void connection_give_up(struct endpoint *end); /* its program does, and uses the memory for something else */
void connection_silence(struct connection *connection);
void connection_end_vanish(struct endpoint *end);
void chaos(void);
/* traffic.c */
void app_run(struct endpoint *end);
bool request_post(struct endpoint *end);
bool request_post_last(struct endpoint *end); /* so that what is unsignalled ends */
void recv_refill(struct endpoint *end, unsigned most);
void recv_refill_shared(struct host *host, unsigned most);
void pattern_fill(uint8_t *bytes, uint32_t length, uint64_t content, uint32_t from);
bool pattern_check(const uint8_t *bytes, uint32_t length, uint64_t content, uint32_t from);
uint8_t addressed_byte(uint64_t address);
/* check_completion.c: every work request completes exactly once, in order, with a status that has a reason */
void check_completion(struct host *host, const struct vb_wc *wc);
void check_death(struct endpoint *end);
void check_all_completed(struct connection *connection);
/* check_data.c: bytes arrive intact, in order */
void check_sent(struct endpoint *end, struct wr *wr);
void check_received(struct endpoint *end, const struct vb_wc *wc, const uint8_t *bytes);
void check_targets(struct connection *connection);
/* check_guard.c: nothing outside a region is touched */
void guard_write(uint8_t *bytes, uint64_t size);
void check_guard(const struct block *block);
void check_guards(void);
/* check_atomic.c: atomics are one order of events */
void atomic_choose(struct endpoint *end, struct wr *wr);
void atomic_done(struct endpoint *end, struct wr *wr, uint64_t result);
void atomic_unknown(struct endpoint *end, struct wr *wr);
void check_atomics(void);
void atomic_reset(void);
/* check_progress.c: nothing waits for ever */
void progress_made(struct endpoint *end);
void progress_heard(const struct vb_packet *packet); /* which has been received */
void check_progress(void);
void progress_answered(struct endpoint *end, bool is_refusal); /* NULL: nobody's */
/* check_answers.c: no answer to a message before its completion */
void answer_posted(struct endpoint *end, struct wr *wr);
void check_answer(struct endpoint *end, const struct inbound *in);
/* turns.c */
void side_run(struct side *side);
void local_hear_wanted(struct lane *lane);
void local_answer_wanted(struct side *side);
void local_look(struct lane *lane, const struct side *but); /* it may have something to say to others */
void local_let_go(struct host *host);                       /* before its lanes are called for anything else */
/* pairings.c */
void local_open(void);
void local_close(void);
void local_report(void);
void local_part(void);
void local_kill(struct host *host);
void local_rebirth(struct host *host);
void local_meet_fate(struct side *side);
bool local_excuses(const struct endpoint *end); /* retries that run out */
/* twins.c */
void twins_open(void);
bool twins_post(struct endpoint *end);
void twins_completed(struct endpoint *end, const struct vb_wc *wc);
unsigned twins_cell(const struct endpoint *end);        /* that it has to itself, of either kind */
void twins_note(struct endpoint *end, uint64_t result); /* of an atomic */
void twins_end(void);                                   /* what memory holds at the end of a run */
bool twins_compare(void);                               /* both runs; false: retries ended one of them early */
/* incast.c */
void incast_run(uint64_t seed, bool has_stop);
/* main.c */
void world_open(uint64_t seed);
void world_happen(struct event event);
void world_close(void);

#endif
