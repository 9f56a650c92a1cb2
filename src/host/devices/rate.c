/* An interface's speed as a port of InfiniBand has it. */
#include "host/devices/identity.h"

enum { WIDTH_1X = 1, WIDTH_4X = 2, WIDTH_8X = 4 };
enum { SPEED_2_5 = 1, SPEED_5 = 2, SPEED_10 = 4, SPEED_14 = 16, SPEED_25 = 32, SPEED_50 = 64, SPEED_100 = 128 };

void vb_device_rate(uint64_t mbps, uint8_t *width, uint8_t *speed)
{
	static const struct {
		uint64_t up_to_mbps;
		uint8_t width, speed;
	} table[] = {
		{ 2500, WIDTH_1X, SPEED_2_5 },
		{ 5000, WIDTH_1X, SPEED_5 },
		{ 10000, WIDTH_1X, SPEED_10 },
		{ 20000, WIDTH_4X, SPEED_5 },
		{ 25000, WIDTH_1X, SPEED_25 },
		{ 40000, WIDTH_4X, SPEED_10 },
		{ 50000, WIDTH_1X, SPEED_50 },
		{ 56000, WIDTH_4X, SPEED_14 },
		{ 100000, WIDTH_4X, SPEED_25 },
		{ 200000, WIDTH_4X, SPEED_50 },
		{ 400000, WIDTH_4X, SPEED_100 },
		{ UINT64_MAX, WIDTH_8X, SPEED_100 },
	};
	if (mbps == 0)
		mbps = VB_SPEED_OF_NONE_MBPS;
	unsigned i = 0;
	while (mbps > table[i].up_to_mbps)
		i++;
	*width = table[i].width;
	*speed = table[i].speed;
}
