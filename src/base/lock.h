/* A short lock for a few dozen instructions at a time (a queue's indices, a completion ring). It spins a little and
 * then yields the core, because a holder that lost its core cannot be waited for by burning it. Longer waits (a lane)
 * belong to the holder of the engine, who has real mutexes. */
#ifndef VB_BASE_LOCK_H
#define VB_BASE_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct vb_lock {
	atomic_bool held;
};

static inline void vb_lock_init(struct vb_lock *lock)
{
	atomic_init(&lock->held, false);
}

static inline void vb_lock_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline bool vb_lock_try(struct vb_lock *lock)
{
	return !atomic_exchange_explicit(&lock->held, true, memory_order_acquire);
}

static inline void vb_lock_take(struct vb_lock *lock)
{
	for (int spins = 0; !vb_lock_try(lock);) {
		if (++spins < 64) {
			vb_lock_pause();
		} else {
			sched_yield();
			spins = 0;
		}
	}
}

static inline void vb_lock_release(struct vb_lock *lock)
{
	atomic_store_explicit(&lock->held, false, memory_order_release);
}

#endif
