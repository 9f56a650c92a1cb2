/* A packet as the request that it carries, for a test that executes it. */
#ifndef VB_TESTS_REQUEST_H
#define VB_TESTS_REQUEST_H

#include "roce/request_packet.h"

static inline struct vb_request request_of(const struct vb_packet *packet)
{
	struct vb_request request = { 0 };
	vb_request_of_packet(&request, packet);
	return request;
}

#endif
