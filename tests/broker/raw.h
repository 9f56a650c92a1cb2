/* Clients that speak the broker's protocol by hand, for what the library would never say. */
#ifndef TESTS_BROKER_RAW_H
#define TESTS_BROKER_RAW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "host/protocol.h"
#include "wire/cm.h"

struct vb_gid loopback(void);
/* Takes a slot; *socket is its receive socket. */
uint8_t get_slot(int connection, int *socket);
/* What it says of a MAD within a moment; false: nothing. */
bool hears_mad(int connection, struct vb_cm_message *cm);
void post(int connection, const struct vb_cm_message *cm);
void listen_at(int connection, uint16_t port);
bool is_root(void);
int connect_as(uid_t uid);
int hello(int fd);
/* The refusal that it holds; false: it says something else, or nothing within two seconds. */
bool is_refused(int fd, struct vb_message *refusal);
void assert_welcome(int fd);

#endif
