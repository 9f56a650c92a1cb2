/* Any bytes as the MADs of several peers, what the network says of ours, and the time that a connection manager gets,
 * beside a user who answers as the bytes say: it has a listener, requests half open and a connection. Nothing may be
 * leaked, no id may come after it was destroyed, the number of half-open requests stays bounded, and time ends it all.
 *
 * The input: a byte of what to do, then its bytes. A MAD is its attribute and 232 bytes, of which those that name our
 * communication IDs are filled in, or no forged MAD would ever reach a connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../sim/cm/check.h"
#include "base/bytes.h"

enum { SERVICE = 0x01060007, MOST_HALF_OPEN = 4, MOST_IDS = 8, PEERS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static const uint8_t *at, *end;
static struct vb_cm *cm;
static struct vb_cm_id *held[MOST_IDS];
static vb_time now;

static void require(bool holds)
{
	if (!holds)
		abort();
}

static uint8_t take(void)
{
	return at < end ? *at++ : 0;
}

static struct vb_cm_path path(unsigned peer)
{
	return (struct vb_cm_path){ .local = vb_gid_from_ipv4(10, 0, 0, 1),
		.remote = vb_gid_from_ipv4(10, 0, 0, (uint8_t)(2 + peer % PEERS)) };
}

/* A place for a new id; whoever had it goes. */
static unsigned vacate(void)
{
	static unsigned next;
	next = (next + 1) % MOST_IDS;
	if (held[next])
		vb_cm_id_destroy(held[next], now);
	held[next] = NULL;
	return next;
}

static void hold(struct vb_cm_id *id)
{
	unsigned i = vacate();
	held[i] = id;
	vb_cm_id_set_user(id, &held[i]);
}

static void receive(void)
{
	uint8_t mad[VB_MAD_LENGTH] = { 1, VB_MAD_CLASS_CM, 2, VB_MAD_METHOD_SEND };
	uint8_t whose = take();
	struct vb_cm_path from = path(whose / MOST_IDS);
	struct vb_cm_id *to = held[whose % MOST_IDS];
	unsigned given = take();
	mad[17] = VB_CM_REQ + take() % 12;
	for (unsigned i = VB_MAD_HEADER_LENGTH; i < VB_MAD_LENGTH && i < VB_MAD_HEADER_LENGTH + given; i++)
		mad[i] = take();
	if (to && given & 1) {
		vb_store_be32(mad + VB_MAD_HEADER_LENGTH + (mad[17] == VB_CM_SIDR_REP ? 0 : 4), to->local_id);
		if (to->remote_id && mad[17] != VB_CM_SIDR_REP)
			vb_store_be32(mad + VB_MAD_HEADER_LENGTH, to->remote_id);
		if (mad[17] == VB_CM_DREQ)
			vb_store_be24(mad + VB_MAD_HEADER_LENGTH + 8, to->local_qpn);
	}
	if (mad[17] == VB_CM_REQ || mad[17] == VB_CM_SIDR_REQ)
		vb_store_be64(mad + VB_MAD_HEADER_LENGTH + 8, SERVICE);
	vb_cm_receive(cm, &from, mad, now);
}

static void ask(void)
{
	struct vb_cm_id *id = vb_cm_id_create(cm, NULL);
	uint8_t whom = take(), is_sidr = whom & 1;
	struct vb_cm_path to = path(whom / 2);
	struct vb_cm_sidr_req sidr = { .service_id = SERVICE };
	struct vb_cm_req req = { .service_id = SERVICE,
		.qpn = take(),
		.max_cm_retries = take(),
		.remote_timeout = take(),
		.primary = { .ack_timeout = take() } };
	hold(id);
	if (is_sidr)
		vb_cm_sidr_request(id, &to, &sidr, (vb_time)take() * VB_MS, take(), now);
	else
		vb_cm_connect(id, &to, &req, now);
}

static void call(void)
{
	struct vb_cm_id **place = &held[take() % MOST_IDS];
	struct vb_cm_rep rep = { .qpn = take() };
	struct vb_cm_sidr_rep sidr = { .qpn = 1 };
	uint8_t what = take();
	if (!*place)
		return;
	switch (what % 8) {
	case 0:
		vb_cm_accept(*place, &rep, now);
		break;
	case 1:
		vb_cm_confirm(*place, &rep, what, now);
		break;
	case 2:
		vb_cm_reject(*place, what, &rep, 4, &rep, 4, now);
		break;
	case 3:
		vb_cm_delay(*place, what / 8, now);
		break;
	case 4:
		if (what & 0x80)
			vb_cm_undelivered(cm, &(*place)->path.remote, (*place)->sent,
				what & 0x40 ? -ECONNREFUSED : -EHOSTUNREACH, now);
		else
			vb_cm_disconnect(*place, &rep, 4, now);
		break;
	case 5:
		vb_cm_notify_established(*place, now);
		break;
	case 6:
		vb_cm_sidr_reply(*place, &sidr, now);
		break;
	default:
		vb_cm_id_destroy(*place, now);
		*place = NULL;
	}
}

/* A program whose backlog is full, now and then. */
static void take_request(const struct vb_cm_event *event)
{
	if (event->kind == VB_CM_EVENT_REQUEST && event->message.req.psn & 1)
		vb_cm_id_forget(event->id);
	else
		hold(event->id);
}

static void drain(void)
{
	struct vb_cm_outgoing out;
	struct vb_cm_event event;
	struct vb_cm_message message;
	while (vb_cm_next_outgoing(cm, &out))
		require(vb_cm_decode(&message, out.mad));
	while (vb_cm_next_event(cm, &event)) {
		struct vb_cm_id **place = vb_cm_id_user(event.id);
		if (event.kind == VB_CM_EVENT_REQUEST || event.kind == VB_CM_EVENT_SIDR_REQUEST)
			take_request(&event);
		else
			require(place && *place == event.id);
	}
	require(cm->half_open.count <= MOST_HALF_OPEN && cm->records <= MOST_HALF_OPEN);
}

static void end_all(void)
{
	struct vb_deadline next;
	for (unsigned i = 0; i < MOST_IDS; i++)
		if (held[i])
			vb_cm_id_destroy(held[i], now);
	memset(held, 0, sizeof(held));
	for (unsigned i = 0; (next = vb_cm_next_deadline(cm)).is_set; i++) {
		require(i < 100000);
		now = vb_time_before(now, next.at) ? next.at : now;
		vb_cm_advance(cm, now);
		drain();
	}
	require(cm->id_count == 1); /* the listener */
	vb_cm_destroy(cm);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct vb_cm_config config = { .seed = 1, .slot = 1, .max_half_open = MOST_HALF_OPEN };
	struct vb_gid any = { { 0 } };
	at = bytes;
	end = bytes + length;
	now = 0;
	require(vb_cm_create(&config, &cm) == 0);
	require(vb_cm_listen(vb_cm_id_create(cm, NULL), SERVICE, &any) == 0);
	while (at < end) {
		switch (take() % 4) {
		case 0:
			receive();
			break;
		case 1:
			ask();
			break;
		case 2:
			call();
			break;
		default:
			now = vb_time_add(now, (vb_time)take() * take() * VB_MS);
			vb_cm_advance(cm, now);
		}
		require(!check_manager(cm));
		if (take() & 1) /* else they wait for a while */
			drain();
	}
	drain();
	end_all();
	return 0;
}
