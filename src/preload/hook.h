/* Putting a function in front of libc's function of the same name. */
#ifndef VB_PRELOAD_HOOK_H
#define VB_PRELOAD_HOOK_H

#include <dlfcn.h>
#include <stdbool.h>
#include "preload/working.h"

/* Compiled without fortification: these are the functions that the fortified wrappers end in. */
#define HOOK __attribute__((visibility("default")))

/* real: libc's function of that name, looked up at first use, perhaps before our own library is initialised. */
#define REAL(type, name, ...)                                                                                          \
	static type (*found)(__VA_ARGS__);                                                                             \
	type (*real)(__VA_ARGS__) = __atomic_load_n(&found, __ATOMIC_RELAXED);                                         \
	if (!real) {                                                                                                   \
		real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);                                                  \
		__atomic_store_n(&found, real, __ATOMIC_RELAXED);                                                      \
	}

/* Returns libc's answer; if that is a missing file which may be a shown one, the answer for that. An answer leaves
 * errno alone. In a shown working directory libc would look elsewhere, so it is not asked. */
#define ASK(type, failed, base_fd, path, call, shown)                                                                  \
	type result = (failed);                                                                                        \
	int before = errno;                                                                                            \
	bool is_within = vb_working_has(base_fd, path);                                                                \
	if (is_within)                                                                                                 \
		errno = ENOENT;                                                                                        \
	else if (!real)                                                                                                \
		errno = ENOSYS;                                                                                        \
	else                                                                                                           \
		result = call;                                                                                         \
	if (is_within || (result == (type)(failed) && vb_may_be_shown(base_fd, path))) {                               \
		result = shown;                                                                                        \
		if (result != (type)(failed))                                                                          \
			errno = before;                                                                                \
	}                                                                                                              \
	return result

#endif
