/* Additions of rdma-core to rsocket.h after Debian 12's (44), up to 65, under names of our own: verbs/later.h says
 * why. */
#ifndef VB_RSOCKET_LATER_H
#define VB_RSOCKET_LATER_H

#include <sys/epoll.h>

int later_repoll_create(int flags) __asm__("repoll_create");
int later_repoll_ctl(int epfd, int operation, int fd, struct epoll_event *event) __asm__("repoll_ctl");
int later_repoll_wait(int epfd, struct epoll_event *events, int max_events, int timeout_ms) __asm__("repoll_wait");

#endif
