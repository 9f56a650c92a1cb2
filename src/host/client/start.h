/* Starting a broker where there is none. */
#ifndef VB_HOST_BROKER_START_H
#define VB_HOST_BROKER_START_H

#include <stddef.h>
#include <stdint.h>

/* Runs verbena-broker, of the directory libexec if that is given. Returns 0 when a broker listens, ours or another that
 * was quicker; else a negative errno, and why says what is wrong and what to do. Waits up to ten seconds. */
int vb_broker_start(const char *libexec, char *why, size_t why_size);

/* Writes a reason into why, if there is room for any, and returns -error. */
int vb_broker_fail(int error, char *why, size_t why_size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
