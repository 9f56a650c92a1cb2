/* The InfiniBand connection manager (IBA vol. 1, chapter 12) as a pure state machine: MADs, calls and time go in; MADs
 * and events come out. It owns no QP: its holder moves QPs and reports what happened to them. It makes no system call,
 * reads no clock and has no thread; one caller at a time may use it.
 *
 * A struct vb_cm_id is one end of a connection, of a SIDR exchange, or a listener, from its creation to its destruction
 * by the holder. It stays for a while in TIMEWAIT after the connection has ended, so that late packets do not reach a
 * new QP with the same number.
 *
 *   active:   IDLE -> REQ_SENT -> [MRA_REQ_RCVD] -> REP_RCVD -> [MRA_REP_SENT] -> ESTABLISHED
 *   passive:  (REQ arrives) REQ_RCVD -> [MRA_REQ_SENT] -> REP_SENT -> [MRA_REP_RCVD] -> ESTABLISHED
 *   either:   ESTABLISHED -> DREQ_SENT | DREQ_RCVD -> TIMEWAIT -> IDLE
 *   SIDR:     IDLE -> SIDR_REQ_SENT -> IDLE;  SIDR_REQ_RCVD -> IDLE
 *
 * Calls return 0 or -errno: -EINVAL if the state does not allow the call or a value is out of range, -ENOMEM. */
#ifndef VB_CM_CM_H
#define VB_CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"
#include "base/time.h"
#include "wire/cm.h"

struct vb_cm;
struct vb_cm_id;

struct vb_cm_config {
	/* Of communication and transaction IDs. A peer that knows the seed can guess them. */
	uint64_t seed, seed_high;
	uint8_t slot; /* top 8 bits of every communication ID, by which the broker finds the process of an answer */
	/* The limit of requests received that are not connections yet. At the limit, a new request from a source that
	 * has many is dropped; for another source the oldest request of the source with most makes room. 0: 4096. */
	uint32_t max_half_open;
	/* A request that has had no answer for so long causes VB_CM_EVENT_SILENT, once, when it is sent again. 0:
	 * never. */
	vb_time tells_silence;
};

int vb_cm_create(const struct vb_cm_config *config, struct vb_cm **cm);
/* The holder has destroyed all its ids before; those in TIMEWAIT end with the manager. */
void vb_cm_destroy(struct vb_cm *cm);

enum vb_cm_state {
	VB_CM_IDLE,
	VB_CM_LISTEN,
	VB_CM_REQ_SENT,
	VB_CM_REQ_RCVD,
	VB_CM_MRA_REQ_SENT,
	VB_CM_MRA_REQ_RCVD,
	VB_CM_REP_SENT,
	VB_CM_REP_RCVD,
	VB_CM_MRA_REP_SENT,
	VB_CM_MRA_REP_RCVD,
	VB_CM_ESTABLISHED,
	VB_CM_DREQ_SENT,
	VB_CM_DREQ_RCVD,
	VB_CM_TIMEWAIT,
	VB_CM_SIDR_REQ_SENT,
	VB_CM_SIDR_REQ_RCVD,
};

/* The two ends between which a MAD travels. */
struct vb_cm_path {
	struct vb_gid local, remote;
	uint32_t scope; /* interface of link-local addresses, else 0 */
};

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

struct vb_cm_id *vb_cm_id_create(struct vb_cm *cm, void *user); /* NULL: out of memory */
/* Ends the exchange as the specification requires: a REQ received is rejected, a REQ sent is given up by a REJ
 * (timeout), a connection gets a DREQ and stays in TIMEWAIT without its holder. The id causes no further event. */
void vb_cm_id_destroy(struct vb_cm_id *id, vb_time now);
/* Drops a request just received and not answered, as if it had not come: its sender sends it again. */
void vb_cm_id_forget(struct vb_cm_id *id);
void *vb_cm_id_user(const struct vb_cm_id *id);
void vb_cm_id_set_user(struct vb_cm_id *id, void *user);
enum vb_cm_state vb_cm_id_state(const struct vb_cm_id *id);
const struct vb_cm_path *vb_cm_id_path(const struct vb_cm_id *id);

/* Requests for service_id at address come to this id; of several listeners, to the closest match. Zero: any address;
 * the mapped 0.0.0.0: any of IPv4. -EADDRINUSE: another listener has exactly this address. The broker has decided
 * before which processes may listen. */
int vb_cm_listen(struct vb_cm_id *id, uint64_t service_id, const struct vb_gid *address);
/* Sends a REQ, and repeats it until it is answered or max_cm_retries are spent. The REQ's own timeouts give the period
 * that the peer may take. Within the first period, repetitions cost no retry: the first comes after 100 ms, the next
 * ones at growing intervals. After that, a retry is sent at the end of each period. REP, DREQ and SIDR_REQ are repeated
 * likewise. The caller fills in req, except for the communication ID. */
int vb_cm_connect(struct vb_cm_id *id, const struct vb_cm_path *path, const struct vb_cm_req *req, vb_time now);
int vb_cm_accept(struct vb_cm_id *id, const struct vb_cm_rep *rep, vb_time now);      /* REQ_RCVD: REP */
int vb_cm_confirm(struct vb_cm_id *id, const void *data, size_t length, vb_time now); /* REP_RCVD: RTU */
int vb_cm_reject(struct vb_cm_id *id, uint16_t reason, const void *ari, size_t ari_length, const void *data,
	size_t length, vb_time now); /* REQ or REP received */
/* "Wait" (MRA): the peer waits 4.096 us * 2^service_timeout longer. REQ_RCVD, REP_RCVD. An MRA is also sent without
 * this call, when a REQ or REP that the holder has not answered comes again after the peer's time for it is over. */
int vb_cm_delay(struct vb_cm_id *id, uint8_t service_timeout, vb_time now);
int vb_cm_disconnect(
	struct vb_cm_id *id, const void *data, size_t length, vb_time now); /* ESTABLISHED: DREQ; DREQ_RCVD: DREP */
/* Data has come before the RTU, which may be lost: REP_SENT becomes ESTABLISHED. */
int vb_cm_notify_established(struct vb_cm_id *id, vb_time now);
int vb_cm_sidr_request(struct vb_cm_id *id, const struct vb_cm_path *path, const struct vb_cm_sidr_req *req,
	vb_time timeout, unsigned retries, vb_time now);
int vb_cm_sidr_reply(struct vb_cm_id *id, const struct vb_cm_sidr_rep *rep, vb_time now);

/* ---- In and out -------------------------------------------------------------------------------------------------- */

/* A MAD of class CM arrived. A malformed one is counted and dropped. */
void vb_cm_receive(struct vb_cm *cm, const struct vb_cm_path *path, const uint8_t mad[VB_MAD_LENGTH], vb_time now);
/* The network reports that a MAD of ours cannot reach remote; error is a negative errno. An id that waits for an answer
 * to it gives up: at once, or, if the host is there and only its port is closed (-ECONNREFUSED), if that is still so at
 * the first retry, since a program there may just be starting. For any other MAD this has no effect. */
void vb_cm_undelivered(
	struct vb_cm *cm, const struct vb_gid *remote, const uint8_t mad[VB_MAD_LENGTH], int error, vb_time now);
void vb_cm_advance(struct vb_cm *cm, vb_time now);
struct vb_deadline vb_cm_next_deadline(const struct vb_cm *cm); /* may be early, never late */

struct vb_cm_outgoing {
	struct vb_cm_path path;
	uint8_t mad[VB_MAD_LENGTH];
};
/* The next MAD to send; false when there is none. */
bool vb_cm_next_outgoing(struct vb_cm *cm, struct vb_cm_outgoing *out);

enum vb_cm_event_kind {
	VB_CM_EVENT_REQUEST,      /* message.req; id is new, for the holder to accept, reject or destroy; of listener */
	VB_CM_EVENT_REPLY,        /* message.rep; confirm or reject */
	VB_CM_EVENT_ESTABLISHED,  /* RTU came; message.rtu, or none if data came instead */
	VB_CM_EVENT_REJECTED,     /* message.rej; or none if the peer vanished or restarted, or the id made room */
	VB_CM_EVENT_DELAYED,      /* message.mra */
	VB_CM_EVENT_SILENT,       /* no answer to REQ or SIDR_REQ so far; attempts continue */
	VB_CM_EVENT_UNREACHABLE,  /* no answer to REQ or REP within all retries */
	VB_CM_EVENT_DISCONNECT,   /* message.dreq: the peer disconnects; answer with vb_cm_disconnect */
	VB_CM_EVENT_DISCONNECTED, /* our DREQ was answered (message.drep), crossed with the peer's, or was never
				   * answered; or the peer does not know the connection, without a DREQ of ours */
	VB_CM_EVENT_TIMEWAIT_EXIT,
	VB_CM_EVENT_SIDR_REQUEST, /* message.sidr_req; id is new */
	VB_CM_EVENT_SIDR_REPLY,   /* message.sidr_rep */
	VB_CM_EVENT_SIDR_TIMEOUT,
};

struct vb_cm_event {
	enum vb_cm_event_kind kind;
	struct vb_cm_id *id, *listener;
	bool has_message;
	struct vb_cm_message message;
	/* SILENT, UNREACHABLE, SIDR_TIMEOUT: the number of attempts, the service, and the network's error or 0.
	 * -ENOBUFS, with UNREACHABLE or REJECTED: the id made room for other requests. */
	unsigned tries;
	int error;
	bool is_of_reply; /* UNREACHABLE: our answer to a request was not confirmed */
	uint64_t service_id;
};
/* The next event; false when there is none. Destroying an id removes its events. */
bool vb_cm_next_event(struct vb_cm *cm, struct vb_cm_event *event);

/* X(NAME, "name", "meaning") */
#define VB_CM_COUNTERS(X)                                                                                              \
	X(RX_MADS, "cm_rx_mads", "connection manager's messages received")                                             \
	X(TX_MADS, "cm_tx_mads", "connection manager's messages sent")                                                 \
	X(RETRIES, "cm_retries", "messages sent again because no answer came")                                         \
	X(DUPLICATES, "cm_duplicates", "messages received again, and answered again")                                  \
	X(DROPPED, "cm_dropped", "messages that are malformed or belong to no connection")                             \
	X(STALE, "cm_stale", "requests from a QP that still has a connection here")                                    \
	X(REJECTED, "cm_rejected", "requests for a service without a listener")                                        \
	X(DISPLACED, "cm_displaced", "half-open requests given up to make room for other sources")                     \
	X(FLOODED, "cm_flooded", "requests dropped because too many from their source wait already")

enum vb_cm_counter {
#define X(name, text, meaning) VB_CM_##name##_COUNT,
	VB_CM_COUNTERS(X)
#undef X
		VB_CM_COUNTER_COUNT,
};
void vb_cm_counters(const struct vb_cm *cm, uint64_t values[VB_CM_COUNTER_COUNT]);

#endif
