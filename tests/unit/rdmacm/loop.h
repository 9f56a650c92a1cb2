/* librdmacm without a NIC: one connection manager whose messages come back to it, one device of two addresses, no
 * broker. Time stands still unless the test moves it. */
#ifndef VB_TESTS_RDMACM_LOOP_H
#define VB_TESTS_RDMACM_LOOP_H

#include "../unit.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include "rdmacm/objects.h"

int loop_setup(void **state);
int loop_teardown(void **state);

/* The device's verbs and domain, where a test has real ones (verbs/fixture.h); after loop_setup. */
void loop_set_verbs(struct ibv_context *verbs, struct ibv_pd *pd);
/* Messages are lost from now on. */
void loop_lose(bool is_lossy);
/* Requests for connections say from now on that they come from there, with port 7; NULL: the truth. */
void loop_claim(const char *ip);
/* Time passes, and what is due happens. */
void loop_pass(vb_time span);
/* Ports bound and not given back. */
unsigned loop_bound(void);
/* The next call of vb_connections_* finds itself in a forked child. */
void loop_fork(bool is_child);
/* An address of this host that no device has. */
#define LOOP_NO_DEVICES "10.0.0.7"

struct sockaddr *loop_address(const char *ip, uint16_t port);
/* Is an event waiting, as poll() sees it? */
bool loop_is_readable(struct rdma_event_channel *channel);
/* The next event, which must be of that type and is acknowledged; its id. */
struct rdma_cm_id *loop_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status);

#endif
