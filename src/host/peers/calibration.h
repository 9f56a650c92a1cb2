/* Which way to copy is faster on this machine, found by trying. */
#ifndef VB_HOST_CALIBRATION_H
#define VB_HOST_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

/* From how many bytes on a message is better pulled by one copy of the kernel's than copied by both ends through a
 * heap: measured once a process, which takes some milliseconds; where other programs want the cores a tenth of a
 * second, after which only the longest are pulled. From 16384 bytes to just more than a part. Any thread. */
uint32_t vb_pull_pays_from(void);
/* Whether a pull between addresses that are near in their pages takes more than one and a half times as long, so that
 * it is better done by a stage (port/pull.h). */
bool vb_pull_is_slow_near(void);

#endif
