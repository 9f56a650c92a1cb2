/* Connection management of this process, for librdmacm.so.1: the CM's state machine (cm/cm.h) with its clock and its
 * broker, behind one mutex. libibverbs.so.1 exports these functions under its private version node VERBENA_PRIVATE, for
 * the process's one NIC lives there.
 *
 * The broker sends and receives the MADs, and knows which process of this network namespace is bound to which port. The
 * CM sends a MAD again that is lost with a broker. Threads: any, unless it says otherwise. Errors: 0 or -errno. */
#ifndef VB_HOST_CONNECTIONS_H
#define VB_HOST_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "cm/cm.h"
#include "host/call_faults.h"
#include "host/forked.h"

struct ibv_context;
struct vb_device;

/* Called with the CM's mutex held, by the thread that drives it: be short, do not block, call vb_cm_* at most. It gives
 * a new id of VB_CM_EVENT_REQUEST or _SIDR_REQUEST its user, or destroys it. */
typedef void vb_connections_handler(void *context, const struct vb_cm_event *event);

/* Once, when the first device of the process is open; devices stay open until stop. -EPERM in a forked child. */
int vb_connections_start(struct vb_device *device, vb_connections_handler *handler, void *context);
/* All ids are destroyed. */
void vb_connections_stop(void);

/* Have the CM to oneself, around every call of cm/cm.h. Unlocking sends all MADs that wait, hands all events to the
 * handler and arms the clock. NULL in a forked child: use nothing, do not unlock. */
struct vb_cm *vb_connections_lock(void);
void vb_connections_unlock(void);

/* ---- Ports: unique in the network namespace for each port space (VB_CM_PS_*) ------------------------------------- */

struct vb_binding {
	uint16_t port_space;
	uint16_t port;         /* 0: any free one, which is then filled in */
	struct vb_gid address; /* zero: any; the mapped 0.0.0.0: any of IPv4 */
	bool is_shared;        /* others may bind it too, as long as none listens: SO_REUSEADDR's rule */
	bool is_ipv6_only;     /* any means any of IPv6 */
	uint64_t family;       /* a secret: processes that have it in common may bind and listen together; 0: alone */
	bool is_accepting;     /* listening: before those of the family that do not say so */
	uint32_t number;       /* filled in: the broker's name for it */
};

/* -EADDRINUSE; -EADDRNOTAVAIL: the address is not ours, or another has the port and one of the two is at all addresses;
 * -EPIPE: no broker. May wait for the broker. */
int vb_connections_bind(struct vb_binding *binding);
/* From now on requests for it come to this process; -EADDRINUSE, -EADDRNOTAVAIL: another listens there. */
int vb_connections_listen(const struct vb_binding *binding);
/* Listening already, it is_accepting from now on. Waits for nothing. */
void vb_connections_accepting(const struct vb_binding *binding);
void vb_connections_unbind(const struct vb_binding *binding);

/* ---- Devices, for librdmacm -------------------------------------------------------------------------------------- */

struct vb_device *vb_connections_device(struct ibv_context *context);
/* The MTU in bytes of an open device, if gid is its address; else 0. Makes no system call and takes no mutex. */
uint32_t vb_connections_device_mtu(struct vb_device *device, const struct vb_gid *gid);
/* The same of all devices that there are, open or not: the kernel is asked. Takes no mutex. */
uint32_t vb_connections_find_mtu(const struct vb_gid *gid);
/* A connection refused for its path MTU, in bytes. */
struct vb_mtu_refusal {
	struct vb_gid local, remote;
	uint16_t port;
	uint32_t wanted, carried; /* 0: not known */
	bool is_ours;             /* we refuse */
};
/* One line on stderr about it. With the CM's mutex held. */
void vb_connections_explain_mtu(const struct vb_mtu_refusal *refusal);
/* There is no route to remote: if loopback is missing, one line on stderr says so, once. Any thread. */
void vb_connections_explain_route(const struct vb_gid *remote);
/* Where lines for stderr wait until the CM's mutex is given away; with it held. */
struct vb_later **vb_connections_unsaid(void);
/* vb_call_strike with the CM's mutex held. */
static inline int vb_connections_strike(enum vb_call call)
{
	return vb_call_strike_later(call, vb_connections_unsaid());
}
/* Now, on the CM's clock. */
vb_time vb_connections_now(void);

#endif
