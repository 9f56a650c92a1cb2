/* cm_sim [--seed N | --seeds A..B] [--connects N] [--twice] [--trace]
 * Three connection managers on a network that loses, doubles, reorders and delays, with users who connect, accept,
 * reject, delay, disconnect and destroy whenever they like; of eight seeds, one floods a host with requests of
 * addresses that never answer. Each seed is run to its end:
 *
 *   every attempt ends in exactly one of established, rejected and unreachable, for either side;
 *   nobody is established whose peer has not agreed to it;
 *   no event comes of an id that was destroyed, and none that its state does not allow;
 *   who waits has a deadline, and what else the manager's files say holds (check.c);
 *   when all is quiet, both ends of what is connected are connected (but for a half-open one that had to make room,
 *   whose peer is told once), and when all is destroyed, nothing is left;
 *   a flood from a few addresses takes nobody's place.
 *
 * A failure names its seed, and `cm_sim --seed N --trace` replays it. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bytes.h"
#include "base/random.h"
#include "check.h"
#include "mail.h"

enum { HOSTS = 3, MOST_USERS = 256, ACTIVE_AT_ONCE = 60, ACK_TIMEOUT = 8, SERVICE = 0x01060007 };
enum { FLOODS = 4000, FEW_SOURCES = 3, MANY_SOURCES = 60000, FLOODED_LIMIT = 256 };

enum phase { FRESH, TRYING, UP, OVER };

struct user {
	struct vb_cm_id *id; /* NULL: free */
	unsigned host, generation, attempt;
	bool is_passive, is_sidr, has_reply;
	enum phase phase;
};

struct attempt {
	bool is_accepted;
	bool is_displaced;  /* its passive end had to make room, and nobody repeats that to the active one */
	uint32_t confirmed; /* communication ID of the passive end that the active one has confirmed */
};

/* What a call is about: a user, by his place and generation, or one of these. */
enum { USER_BITS = 8, FLOOD_CALL = UINT32_MAX, DEADLINE_CALL = UINT32_MAX - HOSTS };

static struct {
	uint64_t seed, hash, mads;
	struct vb_random random;
	vb_time now, begin;
	unsigned to_come; /* calls for users, and of the flood */
	struct vb_deadline called_at[HOSTS];
	struct vb_cm *cms[HOSTS];
	struct vb_cm_id *listeners[HOSTS];
	struct user users[MOST_USERS];
	struct attempt *attempts;
	unsigned attempt_count, next_qpn, user_count;
	uint8_t response_timeout; /* 17 ms, or 537 ms, within which what is lost is sent again */
	unsigned ups, rejections, unreachables;
	unsigned flood_sources, floods; /* who ask host 0 and never answer, and how often they will still do so */
	bool is_ending, has_events[HOSTS];
} world;

static unsigned connects = 1500;
static bool is_traced;

static _Noreturn void broken(const char *format, ...)
{
	va_list arguments;
	fflush(stdout);
	fprintf(stderr, "cm_sim: seed %" PRIu64 ", %.3f ms: ", world.seed, (double)world.now / (double)VB_MS);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\nreplay with: cm_sim --seed %" PRIu64 " --connects %u --trace\n", world.seed, connects);
	exit(1);
}

static void trace(const char *format, ...)
{
	va_list arguments;
	if (!is_traced)
		return;
	printf("%12.3f ms  ", (double)world.now / (double)VB_MS);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

static void note(uint64_t value)
{
	world.hash = (world.hash ^ value ^ (uint64_t)world.now) * 0x100000001B3u;
	world.hash ^= world.hash >> 32;
}

static uint32_t below(uint32_t n)
{
	return vb_random_below(&world.random, n);
}

static vb_time within(vb_time span)
{
	return (vb_time)below((uint32_t)(span / VB_US)) * VB_US;
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static void call(vb_time at, uint32_t number)
{
	mail_call(vb_time_diff(at, world.begin), number);
}

static void act_within(unsigned user, vb_time span)
{
	world.to_come++;
	call(vb_time_add(world.now, within(span)), world.users[user].generation << USER_BITS | user);
}

/* Calls for deadlines that were later, and seemed to be the next, stand: they find nothing due. */
static void watch_deadline(unsigned host)
{
	struct vb_deadline next = vb_cm_next_deadline(world.cms[host]), *called = &world.called_at[host];
	if (!next.is_set || (called->is_set && !vb_time_before(next.at, called->at)))
		return;
	*called = next;
	call(next.at, DEADLINE_CALL + host);
}

static bool is_something_to_come(void)
{
	return world.to_come > 0 || mail_under_way() > 0;
}

/* ---- The network ------------------------------------------------------------------------------------------------- */

static struct vb_gid gid_of(unsigned host)
{
	return vb_gid_from_ipv4(10, 0, 0, (uint8_t)(1 + host));
}

static void flush(unsigned host)
{
	struct vb_cm_outgoing out;
	while (vb_cm_next_outgoing(world.cms[host], &out)) {
		world.mads++;
		note((uint64_t)out.mad[17] << 32 | host);
		if (out.path.remote.raw[13]) /* a flood's source, which hears nothing */
			continue;
		mail_send(host, out.path.remote.raw[15] - 1u, &out);
	}
}

static void deliver(unsigned host, const struct vb_cm_outgoing *mad)
{
	struct vb_cm_path path = { .local = mad->path.remote, .remote = mad->path.local };
	trace("host %u gets 0x%x from %u, tid %08x, of %08x to %08x", host, mad->mad[17], mad->path.local.raw[15] - 1u,
		vb_load_be32(mad->mad + 12), vb_load_be32(mad->mad + 24), vb_load_be32(mad->mad + 28));
	vb_cm_receive(world.cms[host], &path, mad->mad, world.now);
}

/* ---- A flood ----------------------------------------------------------------------------------------------------- */

static struct user flood; /* of the ids that it makes: accepted at once, and never confirmed */

static void flood_again(void)
{
	if (world.floods == 0 || world.attempt_count >= connects)
		return;
	world.floods--;
	world.to_come++;
	call(vb_time_add(world.now, within(100 * VB_US)), FLOOD_CALL);
}

static void flood_one(void)
{
	uint32_t source = below(world.flood_sources);
	struct vb_cm_path path = { .local = gid_of(0),
		.remote = vb_gid_from_ipv4(10, 1, (uint8_t)(source >> 8), (uint8_t)source) };
	struct vb_cm_message message = { .kind = VB_CM_REQ,
		.transaction_id = vb_random_u64(&world.random),
		.local_id = 1 + below(UINT32_MAX - 1),
		.req = { .service_id = SERVICE,
			.qpn = below(1 << 24),
			.max_cm_retries = 15,
			.remote_timeout = world.response_timeout,
			.local_timeout = world.response_timeout,
			.primary = { .ack_timeout = ACK_TIMEOUT } } };
	uint8_t mad[VB_MAD_LENGTH];
	memset(message.req.private_data, 0xFF, sizeof(uint32_t));
	vb_cm_encode(&message, mad);
	vb_cm_receive(world.cms[0], &path, mad, world.now);
	flood_again();
}

static bool is_of_flood(const struct vb_cm_event *event)
{
	return event->kind == VB_CM_EVENT_REQUEST && event->message.req.private_data[3] == 0xFF;
}

static void take_flood(const struct vb_cm_event *event)
{
	struct vb_cm_rep rep = { .ca_guid = 1, .qpn = 1 };
	vb_cm_id_set_user(event->id, &flood);
	if (event->kind != VB_CM_EVENT_REQUEST)
		vb_cm_id_destroy(event->id, world.now);
	else if (vb_cm_id_state(event->id) == VB_CM_REQ_RCVD && vb_cm_accept(event->id, &rep, world.now) != 0)
		broken("a flood cannot be accepted");
}

/* ---- Users ------------------------------------------------------------------------------------------------------- */

static unsigned user_open(unsigned host, struct vb_cm_id *id)
{
	unsigned i = 0;
	while (i < MOST_USERS && world.users[i].id)
		i++;
	if (i == MOST_USERS)
		return i;
	struct user *user = &world.users[i];
	*user = (struct user){ .id = id, .host = host, .generation = user->generation + 1, .attempt = UINT32_MAX };
	vb_cm_id_set_user(id, user);
	world.user_count++;
	return i;
}

static void note_displaced(const struct user *user, int error)
{
	if (error != -ENOBUFS || user->attempt == UINT32_MAX)
		return;
	world.attempts[user->attempt].is_displaced = true;
	if (user->host == 0 && world.flood_sources == FEW_SOURCES)
		broken("user %td had to make room for a few", user - world.users);
}

static void user_destroy(struct user *user)
{
	note_displaced(user, user->id->error);
	trace("user %td destroys in state %d", user - world.users, vb_cm_id_state(user->id));
	vb_cm_id_destroy(user->id, world.now);
	user->id = NULL;
	user->generation++;
	world.user_count--;
}

static void user_connect(struct user *user)
{
	unsigned to = (user->host + 1 + below(HOSTS - 1)) % HOSTS;
	struct vb_cm_path path = { .local = gid_of(user->host), .remote = gid_of(to) };
	bool is_reused = below(50) == 0 && world.next_qpn > 1; /* one that may well be connected */
	struct vb_cm_req req = { .service_id = SERVICE,
		.ca_guid = 1 + user->host,
		.path_mtu = 3,
		.max_cm_retries = 15,
		.remote_timeout = world.response_timeout,
		.local_timeout = world.response_timeout,
		.qpn = is_reused ? world.next_qpn - below(world.next_qpn < 20 ? world.next_qpn : 20) : ++world.next_qpn,
		.primary = { .ack_timeout = ACK_TIMEOUT } };
	unsigned attempt = world.attempt_count++;
	req.service_id += below(30) == 0; /* where nobody listens */
	memcpy(req.private_data, &attempt, sizeof(attempt));
	if (vb_cm_connect(user->id, &path, &req, world.now) != 0)
		broken("an idle id does not connect");
	user->phase = TRYING;
	user->has_reply = false;
	user->attempt = attempt;
	trace("user %td connects to host %u, attempt %u", user - world.users, to, attempt);
	act_within((unsigned)(user - world.users), 200 * VB_MS);
}

static void user_ask(struct user *user)
{
	struct vb_cm_path path = { .local = gid_of(user->host), .remote = gid_of((user->host + 1) % HOSTS) };
	struct vb_cm_sidr_req req = { .service_id = SERVICE + (below(10) == 0) };
	user->is_sidr = true;
	user->phase = TRYING;
	if (vb_cm_sidr_request(user->id, &path, &req, 20 * VB_MS, 15, world.now) != 0)
		broken("an idle id does not ask");
	act_within((unsigned)(user - world.users), 500 * VB_MS);
}

static void answer_request(struct user *user)
{
	struct vb_cm_rep rep = { .ca_guid = 1 + user->host, .qpn = ++world.next_qpn };
	uint32_t roll = below(100);
	if (roll < 75) {
		if (vb_cm_accept(user->id, &rep, world.now) != 0)
			broken("a request cannot be accepted");
		user->phase = TRYING;
		world.attempts[user->attempt].is_accepted = true;
		act_within((unsigned)(user - world.users), 300 * VB_MS);
	} else if (roll < 85) {
		vb_cm_reject(user->id, VB_CM_REJ_CONSUMER, NULL, 0, NULL, 0, world.now);
		user->phase = OVER;
		act_within((unsigned)(user - world.users), 10 * VB_MS);
	} else if (roll < 95) {
		vb_cm_delay(user->id, (uint8_t)(8 + below(8)), world.now);
		act_within((unsigned)(user - world.users), 50 * VB_MS);
	} else {
		user_destroy(user);
	}
}

static void answer_reply(struct user *user)
{
	uint32_t roll = below(100);
	if (roll < 80) {
		if (vb_cm_confirm(user->id, NULL, 0, world.now) != 0)
			broken("a reply cannot be confirmed");
		user->phase = UP;
		world.ups++;
		world.attempts[user->attempt].confirmed = user->id->remote_id;
		act_within((unsigned)(user - world.users), 100 * VB_MS);
	} else if (roll < 88) {
		vb_cm_reject(user->id, VB_CM_REJ_CONSUMER, NULL, 0, NULL, 0, world.now);
		user->phase = OVER;
	} else if (roll < 95) {
		vb_cm_delay(user->id, (uint8_t)(8 + below(8)), world.now);
		act_within((unsigned)(user - world.users), 50 * VB_MS);
	} else {
		user_destroy(user);
	}
}

static bool is_confirmed(const struct user *user)
{
	return world.attempts[user->attempt].confirmed == user->id->local_id;
}

static void wait_for_rtu(struct user *user)
{
	if (below(10) == 0)
		user_destroy(user);
	else if (below(2) == 0 && is_confirmed(user)) /* data has come */
		vb_cm_notify_established(user->id, world.now);
}

static void leave(struct user *user)
{
	uint32_t roll = below(100);
	if (roll < 40 && vb_cm_disconnect(user->id, NULL, 0, world.now) != 0)
		broken("what is connected cannot be disconnected");
	else if (roll >= 40 && roll < 60)
		user_destroy(user);
}

static void be_left(struct user *user)
{
	if (below(7) == 0) {
		user_destroy(user);
		return;
	}
	if (vb_cm_disconnect(user->id, NULL, 0, world.now) != 0)
		broken("a disconnection cannot be answered");
	user->phase = OVER;
}

static void start_or_end(struct user *user)
{
	if (user->phase == TRYING)
		broken("user %td is idle and has not heard how it ended", user - world.users);
	if (user->is_passive || world.is_ending || world.attempt_count >= connects || below(3) == 0)
		user_destroy(user);
	else if (below(12) == 0)
		user_ask(user);
	else
		user_connect(user);
}

static void answer_question(struct user *user)
{
	struct vb_cm_sidr_rep rep = { .qpn = 1, .qkey = 2 };
	if (below(5) > 0 && vb_cm_sidr_reply(user->id, &rep, world.now) != 0)
		broken("a question cannot be answered");
	user_destroy(user);
}

static void user_act(struct user *user)
{
	if (!vb_list_empty(&user->id->events)) { /* he does not know yet what he is about */
		if (below(3) == 0)
			user_destroy(user);
		return;
	}
	switch (vb_cm_id_state(user->id)) {
	case VB_CM_IDLE:
		start_or_end(user);
		break;
	case VB_CM_REQ_RCVD:
	case VB_CM_MRA_REQ_SENT:
		answer_request(user);
		break;
	case VB_CM_REP_RCVD:
	case VB_CM_MRA_REP_SENT:
		answer_reply(user);
		break;
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
		wait_for_rtu(user);
		break;
	case VB_CM_ESTABLISHED:
		leave(user);
		break;
	case VB_CM_DREQ_RCVD:
		be_left(user);
		break;
	case VB_CM_SIDR_REQ_RCVD:
		answer_question(user);
		break;
	default: /* it waits for the peer, or for time */
		if (below(10) == 0)
			user_destroy(user);
	}
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

static void adopt(unsigned host, const struct vb_cm_event *event)
{
	unsigned i = user_open(host, event->id);
	if (i == MOST_USERS) {
		vb_cm_id_destroy(event->id, world.now);
		return;
	}
	struct user *user = &world.users[i];
	user->is_passive = true;
	user->is_sidr = event->kind == VB_CM_EVENT_SIDR_REQUEST;
	if (event->listener != world.listeners[host])
		broken("a request names another listener");
	if (!user->is_sidr)
		memcpy(&user->attempt, event->message.req.private_data, sizeof(user->attempt));
	trace("user %u is asked, attempt %d", i, (int)user->attempt);
	act_within(i, 20 * VB_MS);
}

static void require(const struct user *user, bool is_right, const struct vb_cm_event *event)
{
	if (!is_right)
		broken("user %td (%s, phase %d, attempt %d) has event %d", user - world.users,
			user->is_passive ? "passive" : "active", user->phase, (int)user->attempt, event->kind);
}

static void take_event(unsigned host, const struct vb_cm_event *event)
{
	struct user *user = vb_cm_id_user(event->id);
	note((uint64_t)event->kind << 40 | host);
	if (user == &flood || is_of_flood(event)) {
		take_flood(event);
		return;
	}
	if (event->kind == VB_CM_EVENT_REQUEST || event->kind == VB_CM_EVENT_SIDR_REQUEST) {
		if (user)
			broken("a request is of an id that somebody holds");
		adopt(host, event);
		return;
	}
	if (!user || user->id != event->id || user->host != host)
		broken("event %d of an id that nobody holds", event->kind);
	note_displaced(user, event->error);
	trace("user %td has event %d", user - world.users, event->kind);
	switch (event->kind) {
	case VB_CM_EVENT_REPLY:
		require(user, user->phase == TRYING && !user->is_passive && !user->has_reply, event);
		require(user, world.attempts[user->attempt].is_accepted, event);
		user->has_reply = true;
		break;
	case VB_CM_EVENT_ESTABLISHED:
		require(user, user->phase == TRYING && user->is_passive, event);
		require(user, is_confirmed(user), event);
		user->phase = UP;
		break;
	case VB_CM_EVENT_REJECTED:
		require(user, user->phase == TRYING || (user->phase == FRESH && user->is_passive), event);
		user->phase = OVER;
		world.rejections++;
		break;
	case VB_CM_EVENT_UNREACHABLE:
		require(user, user->phase == TRYING, event);
		user->phase = OVER;
		world.unreachables++;
		break;
	case VB_CM_EVENT_DISCONNECT:
		require(user, user->phase == UP, event);
		break;
	case VB_CM_EVENT_DISCONNECTED:
		require(user, user->phase == UP, event);
		user->phase = OVER;
		break;
	case VB_CM_EVENT_TIMEWAIT_EXIT:
		require(user, user->phase == OVER, event);
		break;
	case VB_CM_EVENT_SIDR_REPLY:
	case VB_CM_EVENT_SIDR_TIMEOUT:
		require(user, user->phase == TRYING && user->is_sidr, event);
		user->phase = OVER;
		user->is_sidr = false;
		break;
	default:
		require(user, user->phase == TRYING, event);
		break;
	}
	act_within((unsigned)(user - world.users), 20 * VB_MS);
}

static void check_host(unsigned host)
{
	struct vb_deadline next = vb_cm_next_deadline(world.cms[host]);
	if (next.is_set && vb_time_before(next.at, world.now))
		broken("host %u has a deadline in the past", host);
	const char *wrong = check_manager(world.cms[host]);
	if (wrong)
		broken("host %u: %s", host, wrong);
}

static void settle(unsigned host)
{
	struct vb_cm_event event;
	vb_cm_advance(world.cms[host], world.now);
	/* Now and then events lie about for a while, and their ids may be gone before they are taken. */
	while ((world.has_events[host] = below(8) == 0) == false && vb_cm_next_event(world.cms[host], &event))
		take_event(host, &event);
	flush(host);
	check_host(host);
	watch_deadline(host);
}

/* ---- A run ------------------------------------------------------------------------------------------------------- */

static void listen_on(unsigned host)
{
	struct vb_gid any = { { 0 } };
	world.listeners[host] = vb_cm_id_create(world.cms[host], NULL);
	if (!world.listeners[host] || vb_cm_listen(world.listeners[host], SERVICE, &any) != 0)
		broken("nobody can listen");
}

static void look_at_time(void)
{
	world.now = vb_time_add(world.begin, mail_now());
}

static void on_mad(unsigned host, const struct vb_cm_outgoing *mad)
{
	look_at_time();
	deliver(host, mad);
	settle(host);
}

static void on_deadline(unsigned host)
{
	struct vb_deadline *called = &world.called_at[host];
	if (!vb_deadline_due(*called, world.now)) /* an earlier one has come in between, and has been looked at since */
		return;
	called->is_set = false;
	settle(host);
}

static void on_call(uint32_t number)
{
	look_at_time();
	if (number >= DEADLINE_CALL && number < FLOOD_CALL) {
		on_deadline(number - DEADLINE_CALL);
		return;
	}
	world.to_come--;
	if (number == FLOOD_CALL) {
		flood_one();
		settle(0);
		return;
	}
	struct user *user = &world.users[number & ((1u << USER_BITS) - 1)];
	if (!user->id || user->generation != number >> USER_BITS)
		return;
	unsigned host = user->host;
	user_act(user);
	settle(host);
}

static void open_mail(void)
{
	static const uint32_t chances[] = { 0, 1000, 10000, 50000, 100000 };
	const struct mail_user user = { on_mad, on_call };
	struct mail_conditions conditions = { .seed = world.seed, .hosts = HOSTS };
	conditions.drop = chances[below(5)];
	conditions.twice = chances[below(5)];
	conditions.late = chances[below(5)];
	conditions.delay = (vb_time)(10 << below(9)) * VB_US;
	if (!mail_open(&conditions, &user))
		exit(1);
}

static void begin(uint64_t seed)
{
	struct attempt *attempts = calloc(connects + 1, sizeof(*attempts));
	if (!attempts)
		abort();
	memset(&world, 0, sizeof(world));
	world.attempts = attempts;
	world.seed = seed;
	vb_random_seed(&world.random, seed);
	open_mail();
	world.floods = seed % 8 == 5 ? FLOODS : 0;
	world.flood_sources = seed % 16 == 5 ? FEW_SOURCES : MANY_SOURCES;
	world.response_timeout = seed % 4 == 3 ? 17 : 12;
	world.begin = world.now = below(4) == 0 ? INT64_MAX - VB_S : 0; /* time wraps during the run */
	for (unsigned host = 0; host < HOSTS; host++) {
		struct vb_cm_config config = {
			.seed = seed + host, .slot = (uint8_t)host, .max_half_open = below(4) == 0 ? 6 : 0
		};
		if (world.floods && host == 0)
			config.max_half_open = FLOODED_LIMIT;
		if (vb_cm_create(&config, &world.cms[host]) != 0)
			broken("no manager");
		listen_on(host);
	}
	flood_again();
}

static void add_users(void)
{
	while (world.attempt_count < connects && world.user_count < ACTIVE_AT_ONCE) {
		unsigned host = below(HOSTS), i = user_open(host, vb_cm_id_create(world.cms[host], NULL));
		act_within(i, 50 * VB_MS);
		world.users[i].phase = FRESH;
	}
}

static void step(void)
{
	for (unsigned host = 0; host < HOSTS; host++) {
		if (world.has_events[host] && (!is_something_to_come() || below(2) == 0)) {
			settle(host);
			return;
		}
	}
	if (!mail_step())
		broken("who waits is not called");
}

/* All places are taken by those who are connected and content. */
static void wake_all(void)
{
	for (unsigned i = 0; i < MOST_USERS; i++)
		if (world.users[i].id)
			act_within(i, 100 * VB_MS);
}

static bool is_quiet(void)
{
	for (unsigned host = 0; host < HOSTS; host++)
		if (vb_cm_next_deadline(world.cms[host]).is_set || world.has_events[host])
			return false;
	return !is_something_to_come();
}

static bool has_peer(const struct user *user)
{
	for (unsigned i = 0; i < MOST_USERS; i++) {
		const struct user *other = &world.users[i];
		if (other->id && other->phase == UP && other->id->local_id == user->id->remote_id &&
			other->id->remote_id == user->id->local_id)
			return true;
	}
	return false;
}

static void check_agreement(void)
{
	for (unsigned i = 0; i < MOST_USERS; i++) {
		struct user *user = &world.users[i];
		if (!user->id)
			continue;
		if (user->phase != UP || vb_cm_id_state(user->id) != VB_CM_ESTABLISHED)
			broken("all is quiet, and user %u is in phase %d, state %d", i, user->phase,
				vb_cm_id_state(user->id));
		if (!has_peer(user) && !world.attempts[user->attempt].is_displaced)
			broken("all is quiet, and user %u is connected to nobody", i);
	}
}

static void check_empty(void)
{
	for (unsigned host = 0; host < HOSTS; host++) {
		struct vb_cm *cm = world.cms[host];
		if (cm->id_count || cm->half_open.count || cm->records || cm->timers.count || cm->by_local.count ||
			cm->by_remote.count || cm->by_qp.count || cm->by_service.count)
			broken("host %u keeps %u ids, %u half open, %u records", host, cm->id_count,
				cm->half_open.count, cm->records);
		vb_cm_destroy(cm);
	}
}

static uint64_t run(uint64_t seed)
{
	begin(seed);
	do {
		add_users();
		if (is_quiet())
			wake_all();
		step();
	} while (world.attempt_count < connects || !is_quiet());
	check_agreement();
	world.is_ending = true;
	for (unsigned i = 0; i < MOST_USERS; i++)
		if (world.users[i].id)
			user_destroy(&world.users[i]);
	for (unsigned host = 0; host < HOSTS; host++) {
		vb_cm_id_destroy(world.listeners[host], world.now);
		settle(host);
	}
	while (!is_quiet())
		step();
	check_empty();
	mail_close();
	free(world.attempts);
	return world.hash;
}

int main(int argc, char **argv)
{
	uint64_t first = 1, last = 1;
	bool is_twice = false;
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(argv[i], "--seed") && sscanf(value, "%" SCNu64, &first) == 1) {
			last = first;
			i++;
		} else if (!strcmp(argv[i], "--seeds") && sscanf(value, "%" SCNu64 "..%" SCNu64, &first, &last) == 2) {
			i++;
		} else if (!strcmp(argv[i], "--connects") && sscanf(value, "%u", &connects) == 1 && connects > 0) {
			i++;
		} else if (!strcmp(argv[i], "--twice")) {
			is_twice = true;
		} else if (!strcmp(argv[i], "--trace")) {
			is_traced = true;
		} else {
			fprintf(stderr, "usage: cm_sim [--seed N | --seeds A..B] [--connects N] [--twice] [--trace]\n");
			return 2;
		}
	}
	for (uint64_t seed = first; seed <= last; seed++) {
		uint64_t hash = run(seed);
		printf("seed %" PRIu64 ": %u attempts, %u established, %u rejected, %u unreachable, %" PRIu64
		       " MADs, trace %016" PRIx64 "\n",
			seed, world.attempt_count, world.ups, world.rejections, world.unreachables, world.mads, hash);
		if (is_twice && run(seed) != hash)
			broken("the same seed gave another trace");
	}
	return 0;
}
