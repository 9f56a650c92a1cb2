#ifndef VB_TESTS_RSPRELOAD_KERNEL_RSOCKETS_H
#define VB_TESTS_RSPRELOAD_KERNEL_RSOCKETS_H

/* rsocket() fails with that errno from now on. */
void refuse_rsockets(int error);

#endif
