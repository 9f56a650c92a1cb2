/* An algorithm and its parameters, as people write them: NAME, or NAME, PARAMETER=VALUE, ... */
#ifndef VB_CC_CHOICE_H
#define VB_CC_CHOICE_H

#include "cc/cc.h"

/* All algorithms; ends with NULL. */
extern const struct vb_cc_algorithm *const vb_cc_algorithms[];

struct vb_cc_choice {
	const struct vb_cc_algorithm *algorithm;
	uint64_t values[VB_CC_PARAMETERS_MAX]; /* for vb_cc_config.parameters; VB_CC_PATH where allowed */
};

/* 0, or -EINVAL with the reason in why. */
int vb_cc_choose(const char *text, struct vb_cc_choice *choice, char *why, unsigned why_size);
/* The same for a live process, where some defaults differ, since its round trips are those of software. Telemetry and
 * VB_CC_PATH are refused: real switches report nothing, and paths are not known. */
int vb_cc_choose_live(const char *text, struct vb_cc_choice *choice, char *why, unsigned why_size);
/* True if a live process using the algorithm marks its packets ECN-capable. The default algorithm does not, so the wire
 * is unchanged unless a setting says so. */
bool vb_cc_takes_marks_live(const struct vb_cc_algorithm *algorithm);

#endif
