/* The seam between an endpoint, which has a wire, a timer and flows that begin (endpoints.c), and what is in it: the engine
 * (engine_ends.c), or a source and sink without one (ideal_ends.c). Both have the same functions; a run has one of both. */
#ifndef FABRIC_ENDPOINT_H
#define FABRIC_ENDPOINT_H

#include "fabric/state.h"

#define DSCP_SHIFT 5 /* class selector n is class n */
#define ECT	   2
#define CE	   3

/* A packet, counted: its size and what answers are like are filled in. NO_PACKET: no memory, and the part says so. */
uint32_t endpoint_make_packet(struct part *part, const struct vb_packet *headers, struct packet packet);
/* Its result says already whether it failed. */
void endpoint_end_flow(struct part *part, uint32_t flow);

int engine_open(struct fabric *fabric, uint32_t endpoint);
int engine_open_flow(struct fabric *fabric, uint32_t flow);
void engines_close(struct fabric *fabric); /* and flows */
void engine_post(struct part *part, uint32_t flow);
/* What leaves next, NO_PACKET: nothing, or there is no memory. */
uint32_t engine_pull(struct part *part, const struct endpoint *endpoint, uint32_t number);
/* Of these classes nothing leaves until told otherwise, and no reply. */
void engine_hold(const struct endpoint *endpoint, uint8_t classes, bool replies);
/* Something may leave. */
bool engine_wants(const struct endpoint *endpoint, vb_time now);
/* When it wants to be told the time; may be early. */
struct vb_deadline engine_deadline(const struct endpoint *endpoint);
void engine_receive(struct part *part, const struct endpoint *endpoint, uint32_t number, uint32_t packet);
void engine_advance(struct part *part, const struct endpoint *endpoint);
/* Requests of all endpoints: what goes on though nothing gets on does not raise it. */
uint64_t engine_executed(const struct fabric *fabric);
void engine_say(const struct fabric *fabric, struct fabric_result *result);

int ideals_open(struct fabric *fabric);
void ideal_open_flow(struct fabric *fabric, uint32_t flow);
void ideals_close(struct fabric *fabric);
void ideal_post(struct part *part, uint32_t flow);
uint32_t ideal_pull(struct part *part, struct endpoint *endpoint, uint32_t number);
void ideal_hold(const struct fabric *fabric, struct endpoint *endpoint, uint8_t classes, bool replies);
bool ideal_wants(const struct endpoint *endpoint);
struct vb_deadline ideal_deadline(const struct endpoint *endpoint);
void ideal_receive(struct part *part, struct endpoint *endpoint, uint32_t packet);
void ideal_advance(struct part *part, struct endpoint *endpoint);
uint64_t ideal_executed(const struct fabric *fabric);
void ideal_say(const struct fabric *fabric, struct fabric_result *result);

#endif
