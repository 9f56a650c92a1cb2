/* Rsockets without a network: a listener at 10.0.0.1 and its connections, over the real librdmacm and libibverbs, whose
 * connection manager and packets come straight back (rdmacm/loop.h, verbs/loop_host.h). */
#ifndef VB_TESTS_RSOCKET_PAIR_H
#define VB_TESTS_RSOCKET_PAIR_H

#include "../rdmacm/loop.h"
#include "../verbs/loop_host.h"
#include "../verbs/fixture.h"
#include <rdma/rsocket.h>

enum { PAIR_PORT = 7471 };

extern struct fixture *pair_verbs;
extern int pair_listener, pair_client, pair_server; /* -1: not there; closed by pair_teardown */

int pair_setup(void **state); /* the listener alone */
int pair_teardown(void **state);
/* A new rsocket that blocks is connected with what the listener accepts. */
void pair_connect(void);
int pair_setup_connected(void **state);

void pair_assert_fails(ssize_t result, int error);
/* The option as a number. */
int pair_option(int fd, int level, int name);

#endif
