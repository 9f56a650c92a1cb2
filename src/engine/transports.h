/* Which transport a QP has for good. */
#ifndef VB_ENGINE_TRANSPORTS_H
#define VB_ENGINE_TRANSPORTS_H

#include "core/transport.h"

/* The row of a type; restarts: RC's messages begin again when a packet is lost. */
const struct vb_transport *vb_transport_of(enum vb_qp_type type, bool restarts);

#endif
