/* What a forked child answers when it uses an object that its parent made. libibverbs.so.1 exports the function to
 * librdmacm.so.1 under its private version node. */
#ifndef VB_HOST_FORKED_H
#define VB_HOST_FORKED_H

#include <errno.h>

#define VB_FORKED_ERRNO EPERM

/* The first refusal of a process has one line written to stderr: what its parent had done, and what the child is to do
 * itself. Takes no lock and no memory, since a thread of the parent may have held either. Returns -VB_FORKED_ERRNO. */
int vb_refuse_forked(const char *done_by_parent, const char *to_be_done);

#endif
