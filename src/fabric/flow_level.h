/* The state of messages that are no packets, for flow_ends.c and flow_outages.c. */
#ifndef FABRIC_FLOW_LEVEL_H
#define FABRIC_FLOW_LEVEL_H

#include "fabric/flow_paths.h"
#include "fabric/flow_ports.h"
#include "fabric/fluids.h"
#include "fabric/resending.h"

enum stage { STAGE_ACKS, STAGE_ARRIVED, STAGE_ENDED, STAGE_AGAIN, STAGE_FAILED };

/* Messages of a job between two endpoints that go one after the other, as by a QP. */
struct channel {
	struct flow_path *path; /* NULL: none has begun */
	struct flow_port port;
	uint32_t src, dst;    /* endpoints */
	uint32_t first, last; /* messages that wait; first: or FLOW_NONE */
	bool is_busy;         /* one flows */
	bool has_failed;      /* one has, and all behind it fail */
};

#define NO_CHANNEL UINT32_MAX

/* The part of a message. */
struct flow_message {
	struct fluid fluid;
	struct flow_path *path; /* until it has ended */
	struct flow_port port;
	struct flow_times times;
	uint64_t packets, acks;
	uint32_t number, channel;
	bool has_left, has_arrived;
	bool waits;         /* for its way; when it has arrived, for its ack's */
	vb_time deaf_since; /* no ack has come since then; -1: they come */
	bool is_flushed;    /* it fails without having begun */
	struct stall stall;
};

struct flow_level {
	struct flow_paths *paths;
	struct flow_ports *ports;
	struct fluids *fluids;
	struct channel *channels;
	uint32_t channel_count, channel_room;
	struct number_map *channel_of; /* by source: by connection_key, its number + 1 */
	struct resending resending;
	vb_time next; /* the event that counts; -1: none */
};

/* flow_ends.c: EVENT_STAGE, for the message; EVENT_FLUIDS, at this time. */
void flow_await_stage(struct shard *shard, uint32_t number, enum stage stage, vb_time at);
void flow_await(struct shard *shard, vb_time next);
/* The message's from now on, which has none, or gives its own back. */
void flow_set_path(struct flow_level *level, struct flow_message *its, struct flow_path *path, uint64_t bytes);
/* It begins to flow, or goes on: its acks will come. */
void flow_await_acks(struct shard *shard, const struct flow_message *its);
void flow_end(struct shard *shard, uint32_t number);

/* flow_outages.c: a link goes down or is up again, or it becomes known. */
void flow_await_outage(struct shard *shard, uint32_t fault);
/* A message begins over a path; false: it waits for a link that is down. */
bool flow_may_begin(struct shard *shard, struct flow_message *its);
/* It has arrived; false: its ack waits for a link that is down. */
bool flow_is_heard(struct shard *shard, struct flow_message *its);
/* STAGE_AGAIN, STAGE_FAILED. */
void flow_go_on(struct shard *shard, uint32_t number);
void flow_may_fail(struct shard *shard, uint32_t number);
/* It will fail at once, without having begun: its connection has failed. */
void flow_flush(struct shard *shard, uint32_t number);

#endif
