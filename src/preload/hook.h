/* How a function of libc is put in front of libc's own. */
#ifndef VB_PRELOAD_HOOK_H
#define VB_PRELOAD_HOOK_H

#include <dlfcn.h>
#include <stdbool.h>
#include "preload/working.h"

/* Built without fortification: these are the functions that its wrappers end in. */
#define HOOK __attribute__((visibility("default")))

/* real: libc's function of that name, looked up at first use, be it before our own library is initialised. */
#define REAL(type, name, ...)                                                                                          \
	static type (*found)(__VA_ARGS__);                                                                             \
	type (*real)(__VA_ARGS__) = __atomic_load_n(&found, __ATOMIC_RELAXED);                                         \
	if (!real) {                                                                                                   \
		real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);                                                  \
		__atomic_store_n(&found, real, __ATOMIC_RELAXED);                                                      \
	}

/* Returns what libc says, or, where that is a missing file and might be a shown one, the answer for that. errno is left
 * alone by an answer. In a shown working directory libc would look elsewhere, and is not asked. */
#define ASK(type, failed, dirfd, path, call, shown)                                                                    \
	type result = (failed);                                                                                        \
	int before = errno;                                                                                            \
	bool is_within = vb_working_has(dirfd, path);                                                                  \
	if (is_within)                                                                                                 \
		errno = ENOENT;                                                                                        \
	else if (!real)                                                                                                \
		errno = ENOSYS;                                                                                        \
	else                                                                                                           \
		result = call;                                                                                         \
	if (is_within || (result == (type)(failed) && vb_may_be_shown(dirfd, path))) {                                 \
		result = shown;                                                                                        \
		if (result != (type)(failed))                                                                          \
			errno = before;                                                                                \
	}                                                                                                              \
	return result

#endif
