/* Fault injection as the framing uses it, and host/ for the MADs that the broker hands it (parsing is in port.h).
 * Faults apply to what is received, packet by packet, trains already taken apart and the ICRC not yet looked at:
 *
 *   vb_faults_recycle(faults);                                    before any more
 *   copies = vb_faults_admit(faults, &path, bytes, length, now);  each segment: deliver it 0, 1 or 2 times
 *   while ((held = vb_faults_release(faults, now)))               afterwards: packets that were held back and go on now
 *           ... held->path, held->bytes, held->length: deliver once, without another vb_faults_admit ...
 *
 * The same seed and the same packets give the same faults. One vb_faults belongs to one receiver: it is not locked. */
#ifndef VB_PORT_FAULTS_H
#define VB_PORT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/list.h"
#include "base/time.h"
#include "engine/nic.h"
#include "port/bottleneck.h"
#include "wire/packet.h"

struct vb_faults;

#define VB_FAULTS_HELD_MAX     16384       /* packets held back at once; beyond it a packet to be held is dropped */
#define VB_FAULTS_PASSED_MAX   8           /* a reordered packet lets 1 .. this many others past */
#define VB_FAULTS_REORDER_WAIT (1 * VB_MS) /* and goes on after this long even if none passed */
#define VB_FAULTS_DELAY_MAX    (10 * VB_S)
#define VB_FAULTS_PATHS        64 /* a packet's path is its UDP source port modulo this */

/* A packet held back. */
struct vb_held {
	struct vb_list node;
	struct vb_path path;
	vb_time due;
	unsigned to_pass; /* reordered: how many others go first */
	bool is_reordered;
	uint32_t length;
	uint8_t bytes[VB_MAX_PACKET_BYTES];
};

/* Decides what happens to a received UDP payload and returns how many times to deliver it now: 0 when it was dropped or
 * held back, 1, or 2. May flip one bit of bytes. length is at most VB_MAX_PACKET_BYTES (longer ones pass untouched). */
unsigned vb_faults_admit(
	struct vb_faults *faults, const struct vb_path *path, uint8_t *bytes, size_t length, vb_time now);

/* For a receiver of messages that came one by one and have passed the ICRC: a message that would be corrupted is
 * dropped, and there is no bottleneck. Path and interface of a message are not known, so faults of one path or of one
 * interface strike no message. */
void vb_faults_be_of_messages(struct vb_faults *faults);
const struct vb_bottleneck *vb_faults_bottleneck(const struct vb_faults *faults);

/* The next packet whose turn has come, or NULL. It stays valid until vb_faults_recycle. */
struct vb_held *vb_faults_release(struct vb_faults *faults, vb_time now);

/* Takes back everything that vb_faults_release gave out. */
void vb_faults_recycle(struct vb_faults *faults);

/* When vb_faults_release will next give something, if nothing arrives before. */
struct vb_deadline vb_faults_deadline(const struct vb_faults *faults);

/* Faults that are counted. A packet that is doubled and delayed counts under both; one that was dropped counts under
 * nothing else. */
enum vb_fault {
	VB_FAULT_DROPPED, /* by chance, or because too many were held back; the bottleneck counts its own */
	VB_FAULT_DOUBLED,
	VB_FAULT_DELAYED, /* by delay, each copy */
	VB_FAULT_REORDERED,
	VB_FAULT_CORRUPTED,
	VB_FAULT_LATE,
	VB_FAULT_BURSTS, /* runs of packets dropped by burst */
	VB_FAULTS,
};
uint64_t vb_faults_count(const struct vb_faults *faults, enum vb_fault kind);
void vb_faults_check(const struct vb_faults *faults); /* base/invariant.h */

#endif
