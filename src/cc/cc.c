/* What all algorithms share: start and stop. */
#include "cc/cc.h"
#include <errno.h>
#include <stdlib.h>

static uint32_t first_window(const struct vb_cc_config *config, uint32_t least)
{
	uint32_t window = config->first_window ? config->first_window : VB_CC_START_WINDOW;
	if (window > config->max_window)
		window = config->max_window;
	return window < least ? least : window;
}

int vb_cc_start(struct vb_cc *cc, const struct vb_cc_config *config, uint32_t min_window, vb_time now)
{
	void *large_state = NULL;
	if (config->algorithm->state_bytes > sizeof(cc->state)) {
		large_state = calloc(1, config->algorithm->state_bytes);
		if (!large_state)
			return -ENOMEM;
	}
	vb_cc_stop(cc);
	*cc = (struct vb_cc){
		.algorithm = config->algorithm,
		.window_bytes = first_window(config, min_window),
		.min_window = min_window,
		.max_window = config->max_window,
		.parameters = config->parameters,
		.line_rate = config->line_rate,
		.large_state = large_state,
	};
	cc->algorithm->init(cc, now);
	return 0;
}

void vb_cc_stop(struct vb_cc *cc)
{
	free(cc->large_state);
	*cc = (struct vb_cc){ 0 };
}
