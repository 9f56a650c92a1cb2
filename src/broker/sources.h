/* Rate limits by address: the recent requests of each address on the network, in a table of fixed size. An address is
 * known once it proved that it receives what is sent to it: it answered a question, or finished a handshake. Forged
 * addresses cannot do that, so known ones are served before a flood and never pushed out by it. Pure. */
#ifndef VB_BROKER_SOURCES_H
#define VB_BROKER_SOURCES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/gid.h"

enum {
	SOURCES_SETS = 1024,
	SOURCES_WAYS = 4,
	SOURCES_KNOWN_MS = 10 * 60 * 1000,
	SOURCES_ASK_AGAIN_MS = 20,
	/* Requests at once, and in each second after that: of one known address, one unknown address, all unknown
	 * addresses. */
	SOURCES_KNOWN_BURST = 32768,
	SOURCES_KNOWN_RATE = 10000,
	SOURCES_OTHER_BURST = 4096,
	SOURCES_OTHER_RATE = 250,
	SOURCES_OTHERS_BURST = 4096,
	SOURCES_OTHERS_RATE = 500,
	/* The same for discovery's questions, which cost only an answer. */
	SOURCES_QUESTION_BURST = 128,
	SOURCES_QUESTION_RATE = 200,
	SOURCES_QUESTIONS_BURST = 4096,
	SOURCES_QUESTIONS_RATE = 8000,
	SOURCES_PROOFS_BURST = 4096, /* our own questions that ask for a proof */
	SOURCES_PROOFS_RATE = 40000,
};

struct sources;

enum sources_verdict {
	SOURCES_PASS,
	SOURCES_WAIT, /* for a proof, which was asked for or is to be */
	SOURCES_DROP,
};

struct sources *sources_create(void);
void sources_destroy(struct sources *sources);
void sources_prove(struct sources *sources, const struct vb_gid *gid, uint64_t now);
bool sources_is_known(struct sources *sources, const struct vb_gid *gid, uint64_t now);
/* gid sends a request; must_ask: ask it for a proof, with sources_challenge. */
enum sources_verdict sources_take_request(
	struct sources *sources, const struct vb_gid *gid, uint64_t now, bool *must_ask);
/* gid sends a question of discovery: SOURCES_PASS or SOURCES_DROP. */
enum sources_verdict sources_take_question(struct sources *sources, const struct vb_gid *gid, uint64_t now);
/* A number that only a receiver at gid can know, valid for a minute or two. */
uint64_t sources_challenge(const struct sources *sources, const struct vb_gid *gid, uint64_t now);
bool sources_is_answer(const struct sources *sources, const struct vb_gid *gid, uint64_t number, uint64_t now);

#endif
