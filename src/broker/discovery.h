/* Discovery: which addresses belong to Verbena, and how much a slot there takes. Asks by a vendor MAD from QP1 to QP1,
 * three times in 300 ms, and remembers the answer; answers those who ask us. */
#ifndef VB_BROKER_DISCOVERY_H
#define VB_BROKER_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/gid.h"
#include "broker/qp1.h"
#include "wire/mad.h"

#define DISCOVERY_CLIENTS   512
#define DISCOVERY_QUESTIONS 1024 /* that wait for an answer, of all clients */

struct discovery;

/* Tells client (a number below DISCOVERY_CLIENTS) who is at gid. */
typedef void discovery_answer(
	void *user, unsigned client, const struct vb_gid *gid, bool is_verbena, uint32_t receive_buffer);

/* How the process of that QPN of ours is, for peers who ask. */
typedef enum vb_process_state discovery_process(void *user, uint32_t qpn);

struct discovery *discovery_create(struct qp1 *qp1, discovery_answer *answer, discovery_process *process, void *user);
void discovery_destroy(struct discovery *discovery);
/* The effective receive buffer of one of our slots, which peers are told. */
void discovery_set_receive_buffer(struct discovery *discovery, uint32_t bytes);

/* may_ask: when the answer is not known the peer is asked; else it counts as nobody for now. */
void discovery_ask(struct discovery *discovery, uint64_t now_ms, unsigned client, const struct vb_gid *sgid,
	const struct vb_gid *dgid, bool may_ask);
/* To how many peers client's questions are under way. */
unsigned discovery_questions(const struct discovery *discovery, unsigned client);
void discovery_forget_client(struct discovery *discovery, unsigned client);
/* Takes a MAD; false: it was not for discovery. */
bool discovery_receive(struct discovery *discovery, uint64_t now_ms, const struct qp1_mad *mad);
/* Asks who sent mad, with that number for a transaction ID: a Verbena broker answers, if it is there. */
void discovery_challenge(struct discovery *discovery, const struct qp1_mad *mad, uint64_t number);
/* Repeats questions and gives up. Returns milliseconds until it wants to be called again, -1: not at all. */
int discovery_advance(struct discovery *discovery, uint64_t now_ms);

#endif
