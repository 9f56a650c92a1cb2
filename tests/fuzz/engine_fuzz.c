/* Any bytes as what a program and a network do to a lane: QPs of every type and state, packets forged field by field,
 * posts, time. */
#include "scene.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	input = (struct input){ bytes, bytes + length };
	scene_open(0x222, 8192, 700, NULL);
	while (input.at < input.end) {
		scene_happen();
		vb_lane_check(scene.lane);
	}
	vb_nic_check(scene.nic);
	scene_transmit();
	scene_close();
	return 0;
}
