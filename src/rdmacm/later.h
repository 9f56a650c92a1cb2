/* Additions of rdma-core to librdmacm's headers after Debian 12 (44), up to 65, under names of our own: verbs/later.h
 * says why. */
#ifndef VB_RDMACM_LATER_H
#define VB_RDMACM_LATER_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

enum { /* rdma_cm_event_type */
	LATER_EVENT_ADDRINFO_RESOLVED = 16,
	LATER_EVENT_ADDRINFO_ERROR = 17,
	LATER_EVENT_USER = 18,
};

enum { /* rdma_addrinfo.ai_flags */
	LATER_RAI_SA = 0x10,
	LATER_RAI_DNS = 0x20,
};

#define LATER_EVENT_ARG 24 /* offset of param.arg, 64 bits, in rdma_cm_event */

int later_rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints) __asm__("rdma_resolve_addrinfo");
int later_rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info) __asm__("rdma_query_addrinfo");
int later_rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg) __asm__(
	"rdma_write_cm_event");

#endif
