/* The two classic BPF programs of the broker. Steering: attached to the reuseport group, the map from a datagram's slot
 * (the high byte of its destination QPN) to the index of a socket in the group. Filter: attached to each socket and
 * locked, it admits only datagrams for the socket's slot or for a multicast group. So even with a wrong map no process
 * reads another's datagrams. It drops probes, so that the kernel's drop count shows where they went.
 *
 * A probe is a datagram sent over loopback to find out which socket is where: by an index of the group, or by slot like
 * ordinary ones. No socket ever receives one. Pure: no system calls. */
#ifndef VB_BROKER_STEER_H
#define VB_BROKER_STEER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#define STEER_SLOTS        256
#define STEER_MAX_PROGRAM  (24 + 5 * STEER_SLOTS)
#define STEER_FILTER_SIZE  16
#define STEER_PROBE_LENGTH 32

/* index[slot] is the index in the group, or -1: such datagrams, and those too short to have a QPN, go to own_index.
 * Returns the number of instructions written to program. */
unsigned steer_build_map(
	struct sock_filter program[STEER_MAX_PROGRAM], const int index[STEER_SLOTS], unsigned own_index);

void steer_build_filter(struct sock_filter filter[STEER_FILTER_SIZE], uint8_t slot);

void steer_build_index_probe(uint8_t probe[STEER_PROBE_LENGTH], uint16_t index);
void steer_build_slot_probe(uint8_t probe[STEER_PROBE_LENGTH], uint8_t slot);

#endif
