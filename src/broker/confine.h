/* The system calls that the broker makes once it works, and a filter that refuses all others (EPERM). */
#ifndef VB_BROKER_CONFINE_H
#define VB_BROKER_CONFINE_H

/* Confines this process and its children for good; sets no_new_privs. Does nothing if the kernel refuses, on a machine
 * type that is not listed, and under sanitizers, which make calls of their own. */
void confine(void);

#endif
