/* Discovery: which addresses run Verbena, and the receive buffer of a slot there. Asks by a vendor MAD from QP1 to QP1,
 * three times in 300 ms, and caches the answer. Answers the same question of others. */
#ifndef VB_BROKER_DISCOVERY_H
#define VB_BROKER_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/gid.h"
#include "broker/qp1.h"
#include "wire/mad.h"

#define DISCOVERY_CLIENTS   512
#define DISCOVERY_QUESTIONS 1024 /* unanswered questions, of all clients */

struct discovery;

/* All 0: nobody of ours answers there. */
struct discovery_facts {
	bool is_verbena, takes_hellos;
	uint32_t receive_buffer;
};

/* Tells client (a number below DISCOVERY_CLIENTS) the facts about gid. */
typedef void discovery_answer(
	void *user, unsigned client, const struct vb_gid *gid, const struct discovery_facts *facts);

/* The state of the process with that QPN of ours, for peers that ask. */
typedef enum vb_process_state discovery_process(void *user, uint32_t qpn);

struct discovery *discovery_create(struct qp1 *qp1, discovery_answer *answer, discovery_process *process, void *user);
void discovery_destroy(struct discovery *discovery);
/* Sets the effective receive buffer of our slots, which answers carry. */
void discovery_set_receive_buffer(struct discovery *discovery, uint32_t bytes);

/* may_ask: ask the peer if the answer is not known; else it counts as no Verbena for now. */
void discovery_ask(struct discovery *discovery, uint64_t now_ms, unsigned client, const struct vb_gid *sgid,
	const struct vb_gid *dgid, bool may_ask);
/* The number of client's unanswered questions. */
unsigned discovery_questions(const struct discovery *discovery, unsigned client);
void discovery_forget_client(struct discovery *discovery, unsigned client);
/* Takes a MAD; false: it is not a discovery. */
bool discovery_receive(struct discovery *discovery, uint64_t now_ms, const struct qp1_mad *mad);
/* Asks mad's sender, with number as the transaction ID. A Verbena broker answers, if it is really there. */
void discovery_challenge(struct discovery *discovery, const struct qp1_mad *mad, uint64_t number);
/* Repeats questions, and gives up. Returns the milliseconds until the next call is due, -1: none. */
int discovery_advance(struct discovery *discovery, uint64_t now_ms);

#endif
