/* An algorithm and what it shall do, as people write it: NAME, or NAME, PARAMETER=VALUE, ... */
#ifndef VB_CC_CHOICE_H
#define VB_CC_CHOICE_H

#include "cc/cc.h"

/* All there are; ends with NULL. */
extern const struct vb_cc_algorithm *const vb_cc_algorithms[];

struct vb_cc_choice {
	const struct vb_cc_algorithm *algorithm;
	uint64_t values[VB_CC_PARAMETERS_MAX]; /* for vb_cc_config.parameters; VB_CC_PATH where it may be */
};

/* 0, or -EINVAL and why. */
int vb_cc_choose(const char *text, struct vb_cc_choice *choice, char *why, unsigned why_size);
/* The same for a live process, whose round trips are those of software: some defaults are others. Its switches tell
 * nothing, and nobody knows its ways: what needs telemetry, or VB_CC_PATH, is refused. */
int vb_cc_choose_live(const char *text, struct vb_cc_choice *choice, char *why, unsigned why_size);
/* Do packets that go by it in a live process say that they may be marked? Not by default: the wire stays what it is
 * where nothing is set. */
bool vb_cc_takes_marks_live(const struct vb_cc_algorithm *algorithm);

#endif
