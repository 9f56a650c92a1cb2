/* Packet scripts: a text file is the timeline of one NIC with one lane; "<" lines are packets that arrive, ">" lines
 * are packets that must leave, in this order and at this time. The language is in README.md beside this file.
 *
 *   line.c     one line as words and options        stage.c    the engine under test and its outputs, by time
 *   memory.c   regions, guards, and what they must hold        operands.c what options name
 *   scene.c, verbs.c, outcomes.c, packets.c   what the lines do            runner.c   the command table
 *
 * Every check that fails ends the process with the script's line, what was expected and what was seen. */
#ifndef VB_TESTS_SCRIPT_H
#define VB_TESTS_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/counters.h"
#include "engine/nic.h"

/* ---- line.c ------------------------------------------------------------------------------------------------------ */

#define MAX_TOKENS 64

struct token {
	char *key, *value; /* a bare word has no value */
	bool is_used;
};

struct line {
	const char *file;
	int number;
	char text[1024];   /* as written, for messages */
	char buffer[1024]; /* cut into tokens */
	bool has_time;
	vb_time earliest, latest; /* after the line before */
	struct token tokens[MAX_TOKENS];
	int token_count;
};

void line_parse(struct line *line, const char *text);
const char *line_word(struct line *line);                  /* the next bare word; NULL when none is left */
bool line_flag(struct line *line, const char *word);       /* is this bare word there */
const char *line_text(struct line *line, const char *key); /* NULL when not there */
bool line_has(const struct line *line, const char *key);
uint64_t line_number(struct line *line, const char *key, uint64_t fallback);
vb_time line_time(struct line *line, const char *key, vb_time fallback);
void line_end(struct line *line); /* fails on words and options that nobody asked for */
uint64_t parse_number(struct line *line, const char *text);
vb_time parse_time(struct line *line, const char *text, char **end);
__attribute__((format(printf, 2, 3), noreturn)) void fail(const struct line *line, const char *format, ...);
const char *show_time(vb_time time); /* "12.5us"; a few static buffers in turn */

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

#define MAX_REGIONS 8
#define GUARD       4096

struct region {
	char name[16];
	uint64_t iova, size;
	uint8_t *bytes;  /* real memory, between two guards */
	uint8_t *shadow; /* what bytes must be */
	struct vb_mr *mr;
	uint32_t key;
	struct vb_mr_config config;
};

void region_create(struct region *region, const char *name, uint64_t size, unsigned index);
void region_free(struct region *region);
/* The region that holds [iova, iova + length), or NULL. */
struct region *region_at(uint64_t iova, uint64_t length);
uint8_t *shadow_at(uint64_t iova, uint64_t length); /* NULL when outside every region */
void shadow_scatter(const struct vb_sge *sges, unsigned count, uint64_t offset, const uint8_t *bytes, uint64_t length);
void shadow_gather(const struct vb_sge *sges, unsigned count, uint8_t *bytes);
void memory_check(const struct line *line); /* every byte, guards included, is as it should be */
/* The payload of the packet with this PSN as the peer sends it; fill tells several of the same PSN apart. */
void payload_make(uint8_t *bytes, uint32_t length, uint32_t psn, uint32_t fill);

/* ---- stage.c ----------------------------------------------------------------------------------------------------- */

#define MAX_NAMED   8
#define MAX_POSTED  512
#define MAX_RECVS   256
#define MAX_REMOTE  256
#define MAX_OUTPUTS 4096

struct posted { /* a send work request that was accepted */
	uint64_t wr_id;
	enum vb_wr_opcode opcode;
	uint32_t flags;
	uint32_t psn, packets; /* packets 0: nothing travels */
	uint64_t length;
	uint8_t *bytes; /* as they were when posted; NULL for READ and atomics */
	struct vb_sge sges[VB_MAX_SGE];
	uint32_t sge_count;
	uint32_t imm_or_inv, rkey, srqn;
	uint64_t remote_addr, compare_add, swap;
	uint32_t range, feth; /* of a FLUSH */
};

struct recv { /* a receive work request */
	uint64_t wr_id;
	struct vb_sge sges[VB_MAX_SGE];
	uint32_t sge_count;
};

struct recv_queue {
	struct recv items[MAX_RECVS];
	unsigned head, tail;
};

struct remote_op { /* a READ or atomic that arrived */
	bool is_atomic;
	uint32_t psn, packets;
	uint64_t va, length, result;
};

struct actor { /* a QP and what the script knows of it */
	char name[16];
	struct vb_qp *qp;
	struct vb_qp_config config;
	struct vb_qp_attr attr;
	struct recv_queue own, *recvs;
	struct posted posted[MAX_POSTED];
	unsigned posted_count;
	uint32_t next_psn;
	struct remote_op remote[MAX_REMOTE];
	unsigned remote_count;
	bool message_open; /* a SEND is arriving into open */
	struct recv open;
	uint64_t open_offset;
	uint64_t write_va; /* a WRITE is arriving to here */
	uint32_t write_length;
	uint32_t received[MAX_RECVS]; /* bytes of the messages that landed, in completion order */
	unsigned received_head, received_tail;
};

struct named_cq {
	char name[16];
	struct vb_cq *cq;
	bool is_unpolled;
};

struct named_srq { /* an XRC SRQ */
	char name[16];
	struct vb_srq *srq; /* NULL: destroyed */
	uint32_t number;
	struct recv_queue recvs;
};

struct sent {
	struct vb_packet packet;
	uint8_t payload[VB_MAX_MTU];
	struct actor *actor;
	struct vb_av av;
	vb_time at;
};

struct completed {
	struct vb_wc wc;
	vb_time at;
};

struct happened {
	struct vb_event event;
	vb_time at;
};

struct stage {
	struct vb_nic_config nic_config;
	struct vb_lane_config lane_config;
	unsigned budget; /* of packets at a time */
	struct vb_nic *nic;
	struct vb_lane *lane;
	struct vb_pd *pd, *other_pd;
	struct region regions[MAX_REGIONS];
	unsigned region_count;
	struct named_cq cqs[MAX_NAMED];
	unsigned cq_count;
	struct vb_srq *srq;
	struct recv_queue srq_recvs;
	struct vb_xrcd *xrcd, *other_xrcd;
	struct named_srq xrc_srqs[MAX_NAMED];
	unsigned xrc_srq_count;
	struct {
		char name[16];
		struct vb_mw *mw;
		int type;
	} windows[MAX_NAMED];
	unsigned window_count;
	struct actor *actors[MAX_NAMED];
	unsigned actor_count;
	struct vb_gid local, peer;
	vb_time now, mark; /* mark: when the line before happened */
	struct sent *sent;
	unsigned sent_head, sent_tail;
	struct completed completed[MAX_OUTPUTS];
	unsigned completed_head, completed_tail;
	struct happened happened[MAX_OUTPUTS];
	unsigned happened_head, happened_tail;
	int send_error;            /* errno of the next packet handed out */
	unsigned send_error_after; /* so many packets */
	struct vb_packet arriving[64];
	uint8_t arriving_payload[64][VB_MAX_MTU + 64];
	unsigned arriving_count;
};

extern struct stage stage;

void stage_open(struct line *line); /* nic, lane, default region, CQ: at the first line that needs them */
void stage_close(struct line *line);
struct actor *stage_actor(struct line *line); /* option qp=, or the first */
/* Runs the engine to an input at now + the line's time; nothing may come out that the script did not expect. */
void stage_input(struct line *line);
/* Runs until something is in the queue (head != tail) or the line's latest time has passed. */
void stage_wait(struct line *line, const unsigned *head, const unsigned *tail);
void stage_settle(struct line *line);
/* The time of an output against the line's; moves the mark. */
void stage_stamp(struct line *line, vb_time at, const char *what);
void stage_expect_nothing(struct line *line);
void stage_idle(struct line *line);
const char *event_name(enum vb_event_kind kind);

/* ---- operands.c -------------------------------------------------------------------------------------------------- */

void must(struct line *line, int rc, const char *what);    /* fails unless rc is 0 */
bool refused(struct line *line, int rc, const char *what); /* rc is what fails= says, or 0; whether it says anything */
uint32_t read_access(struct line *line, const char *key, uint32_t fallback);
struct region *region_named(const char *name, size_t length);
int window_named(const char *name, size_t length);                            /* an index, or -1 */
uint64_t read_address(struct line *line, const char *key, uint64_t fallback); /* local+0x10, remote, 0x1234 */
uint32_t read_key(struct line *line, const char *key, uint32_t fallback); /* a region, a window, w.next, bad, number */
struct vb_gid read_gid(struct line *line, const char *key, struct vb_gid fallback); /* 10.0.0.7 or v6:7 */
enum vb_wc_status read_status(struct line *line, const char *word);

/* ---- scene.c ----------------------------------------------------------------------------------------------------- */

void do_nic(struct line *line);
void do_lane(struct line *line);
void do_peer(struct line *line);
void do_mr(struct line *line);
void do_mw(struct line *line);
void do_cq(struct line *line);
void do_srq(struct line *line);
void do_xrc_srq(struct line *line);
void do_qp(struct line *line);
void do_srq_limit(struct line *line);
void do_destroy_srq(struct line *line);
struct named_cq *find_cq(struct line *line, const char *key);
uint32_t attributes_of(enum vb_qp_type type, enum vb_qp_state to);
enum vb_qp_state read_state(struct line *line, const char *word);
void read_attributes(struct line *line, struct vb_qp_attr *attr);
/* srqn=red, red+0x10000, 0x1234: a number, and the XRC SRQ whose name it begins with. */
uint32_t read_srqn(struct line *line, struct named_srq **srq);

/* ---- verbs.c ----------------------------------------------------------------------------------------------------- */

void do_post(struct line *line);
void do_recv(struct line *line);
void do_modify(struct line *line);
void do_arm(struct line *line);
void do_invalidate(struct line *line);
void do_mcast(struct line *line);
void do_send_error(struct line *line);
void do_flush_acks(struct line *line);
bool is_atomic(enum vb_wr_opcode opcode);
void do_store(struct line *line);

/* ---- outcomes.c -------------------------------------------------------------------------------------------------- */

void do_poll(struct line *line);
void do_complete(struct line *line);
void do_event(struct line *line);
void do_state(struct line *line);
void do_counter(struct line *line);
void do_deadline(struct line *line);
void do_idle(struct line *line);
void do_quiet(struct line *line);

/* ---- packets.c --------------------------------------------------------------------------------------------------- */

void do_arrive(struct line *line);
void do_leave(struct line *line);

#endif
