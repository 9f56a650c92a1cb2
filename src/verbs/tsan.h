/* Posting happens before polling: said to ThreadSanitizer, where the program has it. It sees neither our atomics nor
 * what a peer does, so a buffer that one thread posts and another has back by a completion would be a race to it. All
 * of a device is one object to it, which may hide a race of the program, and never makes one up. The functions are
 * those of LLVM's sanitizer/tsan_interface.h. */
#ifndef VB_VERBS_TSAN_H
#define VB_VERBS_TSAN_H

#include <infiniband/verbs.h>

extern void __tsan_acquire(void *address) __attribute__((weak, visibility("default")));
extern void __tsan_release(void *address) __attribute__((weak, visibility("default")));

/* Before the request is put into a queue. */
static inline void vb_tsan_posts(struct ibv_context *context)
{
	if (__builtin_expect(__tsan_release != NULL, false))
		__tsan_release(context);
}

/* After a completion was taken. */
static inline void vb_tsan_polled(struct ibv_context *context)
{
	if (__builtin_expect(__tsan_acquire != NULL, false))
		__tsan_acquire(context);
}

#endif
