/* A client process's side of introductions: what a program would do with whom it is introduced to. */
#ifndef TESTS_BROKER_PLAYED_PEERS_H
#define TESTS_BROKER_PLAYED_PEERS_H

#include "client.h"
#include "host/client/broker.h"

/* Takes an introduction, unless it has a good one with that slot; counts who is alone. */
void played_peers_hear(const struct vb_broker_notice *notice);

/* Each fills in report->met and ->alones; rc is -errno where there is nobody, or he is not as he should be. */
void played_peers_look(uint8_t slot, struct report *report);
void played_peers_tell(uint8_t slot, struct report *report);
void played_peers_listen(uint8_t slot, struct report *report);

#endif
