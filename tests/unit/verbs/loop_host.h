/* A host for tests: one device, vb_test0, whose packets come straight back, in a time of its own. No sockets, no
 * threads of its own: the lane runs when a verb drives it. It implements host/host.h, in front of the real engine. */
#ifndef VB_TEST_LOOP_HOST_H
#define VB_TEST_LOOP_HOST_H

#include "host/host.h"

#define LOOP_IPV4_GID_INDEX 0
#define LOOP_IPV6_GID_INDEX 1
#define LOOP_PART_ID        77
#define LOOP_SPEED_MBPS     100000
#define LOOP_FRAME_MAX      1514

/* Every verb from now on runs in what claims to be a forked child. */
void loop_set_forked(bool is_forked);
/* Packets vanish while set. */
void loop_set_blocked(bool is_blocked);
/* Tells the opener that the link came or went. */
void loop_change_port(bool is_active);
/* Tells it that an address came or went. */
void loop_change_gids(void);
/* Groups joined and not left. */
int loop_groups(void);
/* Devices opened and not closed. */
int loop_open_devices(void);
/* Whether packet sockets could be opened; frames that raw packet QPs send come back too. */
void loop_set_may_use_frames(bool may);
/* VERBENA_DMABUF=on */
void loop_set_dmabuf_on(bool is_on);
/* dma-bufs can be made; they are the files themselves, for a test to look into. */
void loop_set_backs_registered(bool does);
int loop_shared(void); /* pieces of memory that local peers may map */
void loop_set_makes_dmabufs(bool does);
/* QPs whose death was explained. */
int loop_deaths(void);
/* No route leads there. */
#define LOOP_UNROUTED ((struct vb_gid){ { [10] = 0xff, [11] = 0xff, 192, 0, 2, 1 } })
/* What was logged last, and how many lines were. */
const char *loop_logged(unsigned *lines);

extern unsigned loop_host_notified; /* so often a thread was told of an event */

#endif
