/* Names the process that holds a UDP port, from /proc. */
#ifndef VB_BROKER_PORT_HOLDER_H
#define VB_BROKER_PORT_HOLDER_H

#include <stddef.h>
#include <stdint.h>

/* Writes one sentence: the port's holder, as far as it can be seen, and what to do. */
void port_holder_explain(uint16_t port, char *why, size_t why_size);

#endif
