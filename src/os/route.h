/* What the kernel's routing table says of an address. */
#ifndef VB_OS_ROUTE_H
#define VB_OS_ROUTE_H

#include <sys/socket.h>

/* From which of our addresses the kernel would send to an IPv4 or IPv6 address: *source, of the same family, without a
 * port. from, unless it is NULL, is the one to send from. Ports are ignored; nothing is sent. 0 or -errno: -ENETUNREACH
 * and -EHOSTUNREACH no route, -EADDRNOTAVAIL from is not ours. */
int vb_route_source(const struct sockaddr *to, const struct sockaddr *from, struct sockaddr_storage *source);

#endif
