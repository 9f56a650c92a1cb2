/* What the parts of verify share: an end of the conversation, a message, and the functions between the files. */
#ifndef VERIFY_H
#define VERIFY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SPAN = 1 << 19, /* bytes of the region that peers touch */
	SLOTS = 32,     /* a burst's messages each stay in a part of their own */
	SLOT = SPAN / SLOTS,
	GAP = 3, /* between the pieces of a scatter or gather list: nothing is aligned by chance */
	MAX_PIECES = 4,
	GRH = 40,
	BURST = 24,
	READS = 8, /* READs and atomics outstanding */
	QKEY = 0x11223344,
	WAIT_SECONDS = 60, /* an emulated machine is slow */
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

struct message {
	enum ibv_wr_opcode opcode;
	uint32_t length;
	uint32_t local, remote; /* offsets in the region of the active and of the passive end */
	unsigned local_pieces, remote_pieces;
	uint32_t immediate;
	uint64_t operand, compare;
	bool is_fenced;
};

/* What an end tells the other before its QPs are connected. */
struct address {
	uint32_t qpn, psn, rkey;
	uint64_t memory;
	union ibv_gid gid;
};

struct end {
	int socket;
	bool is_client;
	int gid_index;
	enum ibv_mtu mtu;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr, *grh_mr;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct address self, peer;
	uint8_t *memory, *expected, *other; /* other: what the far end's memory held before the step */
	uint8_t grh[BURST][GRH];
	uint64_t step, operations, bytes;
	const char *doing;
};

/* other_end.c */
__attribute__((noreturn, format(printf, 2, 3))) void fail(const struct end *end, const char *format, ...);
void tell(const struct end *end, const void *bytes, size_t length);
void hear(const struct end *end, void *bytes, size_t length);
void exchange(const struct end *end, const void *mine, void *theirs, size_t length);
/* Both ends have got this far, and mean the same step. */
void meet(const struct end *end);
/* host NULL: wait for the other end to connect. */
int connect_tcp(const char *host, const char *port);

/* step.c */
uint64_t next_random(uint64_t *state);
void fill(uint8_t *memory, uint64_t step, bool is_active);
void draw_place(struct message *message, uint64_t *state, uint32_t slot, uint32_t room);
void wait_completion(const struct end *end, struct ibv_wc *wc, const char *what);
void post_receive(struct end *end, const struct message *message, unsigned i);
void post_message(struct end *end, const struct message *message, unsigned i, uint32_t rkey);
/* The end's own memory with what it must be. */
void compare(const struct end *end);
/* Memory as both ends know it before a step, and what becomes of it. */
void prepare(struct end *end, const struct message *messages, unsigned n, bool is_active);
/* is_late: the receives are posted only after they were needed. */
void run_step(struct end *end, const struct message *messages, unsigned n, bool is_active, bool is_late);
bool is_atomic(enum ibv_wr_opcode opcode);

/* steps.c */
void run_sizes(struct end *end, enum ibv_wr_opcode opcode, uint32_t largest, bool is_active);
void run_atomics(struct end *end, bool is_active);
void run_bursts(struct end *end, const enum ibv_wr_opcode *opcodes, unsigned kinds, bool is_active);
void run_late_receive(struct end *end, bool is_active);

/* connection.c */
void connect_qp(struct end *end, enum ibv_qp_type type, int access);
void disconnect_qp(struct end *end);

/* refusals.c */
void run_window(struct end *end, bool is_active);
void run_refusals(struct end *end, bool is_active);

#endif
