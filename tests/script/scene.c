/* The lines that make objects: the NIC, its lane, peers, memory, queues, QPs. */
#include <stdlib.h>
#include <string.h>
#include "../paced.h"
#include "script.h"

void do_nic(struct line *line)
{
	stage.nic_config.advertise_credits = line_flag(line, "credits");
	stage.nic_config.mtu = (uint32_t)line_number(line, "mtu", 4096);
	stage.nic_config.seed = line_number(line, "seed", 1);
	if (line_flag(line, "ipv6")) {
		stage.local = (struct vb_gid){ { 0xfd, [15] = 1 } };
		stage.peer = (struct vb_gid){ { 0xfd, [15] = 2 } };
	}
}

static void read_congestion_control(struct line *line, struct vb_cc_config *cc)
{
	static struct paced paced;
	paced.rate = line_number(line, "rate", 0);
	cc->algorithm = line_flag(line, "no_cc") ? &vb_cc_none : paced.rate ? &paced_algorithm : NULL;
	cc->parameters = &paced;
	cc->first_window = (uint32_t)line_number(line, "first_window", 0);
	cc->max_window = (uint32_t)line_number(line, "max_window", 0);
}

static enum vb_cnp_scope read_scope(struct line *line)
{
	static const char *const names[] = { "qp", "destination", "port", "never" };
	const char *word = line_text(line, "cnp");
	for (int i = 0; i < 4; i++)
		if (!word || strcmp(names[i], word) == 0)
			return (enum vb_cnp_scope)i;
	fail(line, "cnp is qp, destination, port or never");
}

/* Where it is like a NIC. */
static void read_habits(struct line *line, struct vb_lane_config *config)
{
	config->acks = (struct vb_ack_policy){ .every_packets = (uint32_t)line_number(line, "ack_packets", 0),
		.every_bytes = (uint32_t)line_number(line, "ack_bytes", 0),
		.by_count_alone = line_flag(line, "by_count"),
		.tells_marks = line_flag(line, "tells_marks") };
	config->replies_first = line_flag(line, "replies_first");
	config->cnps =
		(struct vb_cnp_policy){ .scope = read_scope(line), .interval = line_time(line, "cnp_interval", 0) };
	config->packet_overhead = line_flag(line, "no_overhead") ? VB_NONE : 0;
	config->ack_timeout = line_time(line, "ack_timeout", 0);
	config->probe_after = line_time(line, "probe_after", 0);
	config->never_probes = line_flag(line, "never_probes");
	config->recovery = line_flag(line, "go_back_0")   ? VB_RECOVERY_GO_BACK_0
			   : line_flag(line, "selective") ? VB_RECOVERY_SELECTIVE
							  : VB_RECOVERY_GO_BACK_N;
	stage.budget = (unsigned)line_number(line, "budget", VB_BATCH_PACKETS);
}

void do_lane(struct line *line)
{
	read_congestion_control(line, &stage.lane_config.cc);
	read_habits(line, &stage.lane_config);
	stage.lane_config.patience = line_time(line, "patience", 0);
	stage.lane_config.ack_delay = line_time(line, "ack_delay", 0);
	stage.lane_config.receive_buffer = (uint32_t)line_number(line, "receive_buffer", 0);
	stage.lane_config.unknown_peer_allowance =
		line_flag(line, "no_window") ? VB_UNLIMITED : (uint32_t)line_number(line, "window", 0);
	if (line_flag(line, "time_wraps"))
		stage.now = stage.mark = INT64_MAX - 5 * VB_US;
}

void do_peer(struct line *line)
{
	stage_open(line);
	stage_input(line);
	struct vb_peer_facts facts = { .is_verbena = line_flag(line, "verbena"),
		.is_asked = line_flag(line, "asked"),
		.receive_buffer = (uint32_t)line_number(line, "receive_buffer", 0) };
	struct vb_gid gid = read_gid(line, "gid", stage.peer);
	vb_lane_set_peer(stage.lane, &gid, &facts);
	stage_settle(line);
}

void do_mr(struct line *line)
{
	stage_open(line);
	if (stage.region_count == MAX_REGIONS)
		fail(line, "too many regions");
	unsigned index = stage.region_count++;
	struct region *region = &stage.regions[index];
	region_create(region, line_word(line), line_number(line, "size", 65536), index);
	region->config = (struct vb_mr_config){ .memory = region->bytes,
		.iova = region->iova,
		.length = region->size,
		.access = read_access(line, "access", VB_ACCESS_LOCAL_WRITE) };
	struct vb_pd *pd = line_flag(line, "other_pd") ? stage.other_pd : stage.pd;
	must(line, vb_mr_register(pd, &region->config, &region->mr), "register");
	region->key = vb_mr_key(region->mr);
}

void do_mw(struct line *line)
{
	stage_open(line);
	int type = (int)line_number(line, "type", 2);
	unsigned n = stage.window_count++;
	strncpy(stage.windows[n].name, line_word(line), 15);
	stage.windows[n].type = type;
	must(line, vb_mw_create(stage.pd, type, &stage.windows[n].mw), "window");
}

void do_cq(struct line *line)
{
	stage_open(line);
	struct named_cq *cq = &stage.cqs[stage.cq_count++];
	struct vb_cq_config config = { .capacity = (uint32_t)line_number(line, "size", 64),
		.ignore_overrun = line_flag(line, "ignore_overrun") };
	cq->is_unpolled = line_flag(line, "unpolled");
	strncpy(cq->name, line_word(line), sizeof(cq->name) - 1);
	must(line, vb_cq_create(stage.nic, &config, &cq->cq), "cq");
}

struct named_cq *find_cq(struct line *line, const char *key)
{
	const char *name = line_text(line, key);
	for (unsigned i = 0; i < stage.cq_count; i++)
		if (!name || strcmp(stage.cqs[i].name, name) == 0)
			return &stage.cqs[i];
	fail(line, "there is no such CQ");
}

void do_srq(struct line *line)
{
	stage_open(line);
	struct vb_srq_config config = { .max_wr = (uint32_t)line_number(line, "max", 64),
		.max_sge = (uint32_t)line_number(line, "max_sge", 4),
		.limit = (uint32_t)line_number(line, "limit", 0) };
	must(line, vb_srq_create(stage.pd, &config, &stage.srq), "srq");
}

/* xrc_srq NAME [max=] [max_sge=] [limit=] [cq=] [other_domain] [other_pd] */
void do_xrc_srq(struct line *line)
{
	stage_open(line);
	if (stage.xrc_srq_count == MAX_NAMED)
		fail(line, "too many SRQs");
	struct named_srq *named = &stage.xrc_srqs[stage.xrc_srq_count++];
	strncpy(named->name, line_word(line), sizeof(named->name) - 1);
	struct vb_srq_config config = { .max_wr = (uint32_t)line_number(line, "max", 64),
		.max_sge = (uint32_t)line_number(line, "max_sge", 4),
		.limit = (uint32_t)line_number(line, "limit", 0),
		.xrcd = line_flag(line, "other_domain") ? stage.other_xrcd : stage.xrcd,
		.cq = find_cq(line, "cq")->cq };
	struct vb_pd *pd = line_flag(line, "other_pd") ? stage.other_pd : stage.pd;
	must(line, vb_srq_create(pd, &config, &named->srq), "srq");
	named->number = vb_srq_number(named->srq);
}

uint32_t read_srqn(struct line *line, struct named_srq **srq)
{
	const char *text = line_text(line, "srqn");
	if (!text)
		return 0;
	size_t n = strcspn(text, "+");
	for (unsigned i = 0; i < stage.xrc_srq_count; i++) {
		struct named_srq *named = &stage.xrc_srqs[i];
		if (strlen(named->name) != n || memcmp(named->name, text, n) != 0)
			continue;
		*srq = named;
		return named->number + (text[n] ? (uint32_t)parse_number(line, text + n + 1) : 0);
	}
	return (uint32_t)parse_number(line, text);
}

void do_destroy_srq(struct line *line)
{
	struct named_srq *named = NULL;
	stage_input(line);
	read_srqn(line, &named);
	if (!named)
		fail(line, "destroy_srq needs srqn=NAME");
	must(line, vb_srq_destroy(named->srq), "destroy srq");
	named->srq = NULL;
}

void do_srq_limit(struct line *line)
{
	stage_input(line);
	must(line, vb_srq_set_limit(stage.srq, (uint32_t)line_number(line, "limit", 0)), "limit");
	stage_settle(line);
}

uint32_t attributes_of(enum vb_qp_type type, enum vb_qp_state to)
{
	static const uint32_t rc[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QPS_RTR] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			       VB_QP_MIN_RNR_TIMER,
		[VB_QPS_RTS] =
			VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC };
	static const uint32_t uc[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QPS_RTR] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN,
		[VB_QPS_RTS] = VB_QP_SQ_PSN };
	static const uint32_t ud[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_QKEY,
		[VB_QPS_RTR] = 0,
		[VB_QPS_RTS] = VB_QP_SQ_PSN };
	/* Of RC's attributes those of the half. */
	static const uint32_t xrc_send[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QPS_RTR] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN,
		[VB_QPS_RTS] =
			VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC };
	static const uint32_t xrc_recv[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QPS_RTR] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			       VB_QP_MIN_RNR_TIMER,
		[VB_QPS_RTS] = VB_QP_TIMEOUT | VB_QP_SQ_PSN };
	static const uint32_t *const of_type[] = { [VB_QP_RC] = rc,
		[VB_QP_UC] = uc,
		[VB_QP_UD] = ud,
		[VB_QP_XRC_SEND] = xrc_send,
		[VB_QP_XRC_RECV] = xrc_recv };
	if (to < VB_QPS_INIT || to > VB_QPS_RTS)
		return VB_QP_STATE;
	return VB_QP_STATE | of_type[type][to];
}

enum vb_qp_state read_state(struct line *line, const char *word)
{
	static const char *const names[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "err" };
	for (int i = 0; word && i < 7; i++)
		if (strcmp(names[i], word) == 0)
			return (enum vb_qp_state)i;
	fail(line, "a state is reset, init, rtr, rts, sqd, sqe or err");
}

void read_attributes(struct line *line, struct vb_qp_attr *attr)
{
	attr->path_mtu = (uint32_t)line_number(line, "mtu", attr->path_mtu);
	attr->sq_psn = (uint32_t)line_number(line, "sq_psn", attr->sq_psn);
	attr->rq_psn = (uint32_t)line_number(line, "rq_psn", attr->rq_psn);
	attr->timeout = (uint8_t)line_number(line, "timeout", attr->timeout);
	attr->retry_cnt = (uint8_t)line_number(line, "retry", attr->retry_cnt);
	attr->rnr_retry = (uint8_t)line_number(line, "rnr_retry", attr->rnr_retry);
	attr->min_rnr_timer = (uint8_t)line_number(line, "min_rnr", attr->min_rnr_timer);
	attr->max_rd_atomic = (uint8_t)line_number(line, "rd_atomic", attr->max_rd_atomic);
	attr->max_dest_rd_atomic = (uint8_t)line_number(line, "dest_rd_atomic", attr->max_dest_rd_atomic);
	attr->dest_qpn = (uint32_t)line_number(line, "dest_qpn", attr->dest_qpn);
	attr->qkey = (uint32_t)line_number(line, "qkey", attr->qkey);
	attr->access = read_access(line, "access", attr->access);
	attr->av.dgid = read_gid(line, "dgid", attr->av.dgid);
	attr->av.traffic_class = (uint8_t)line_number(line, "traffic_class", attr->av.traffic_class);
}

static enum vb_qp_type read_type(struct line *line)
{
	static const struct {
		const char *name;
		enum vb_qp_type type;
	} names[] = { { "rc", VB_QP_RC }, { "uc", VB_QP_UC }, { "ud", VB_QP_UD }, { "xrc_send", VB_QP_XRC_SEND },
		{ "xrc_recv", VB_QP_XRC_RECV } };
	const char *word = line_word(line);
	for (unsigned i = 0; word && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, word) == 0)
			return names[i].type;
	fail(line, "a QP is rc, uc, ud, xrc_send or xrc_recv");
}

void do_qp(struct line *line)
{
	stage_open(line);
	struct actor *actor = calloc(1, sizeof(*actor));
	stage.actors[stage.actor_count++] = actor;
	enum vb_qp_type type = read_type(line);
	bool is_send = type == VB_QP_XRC_SEND, is_recv = type == VB_QP_XRC_RECV;
	const char *name = line_text(line, "name");
	strncpy(actor->name, name ? name : "qp", sizeof(actor->name) - 1);
	bool has_srq = line_flag(line, "srq");
	actor->recvs = has_srq ? &stage.srq_recvs : &actor->own;
	actor->config = (struct vb_qp_config){
		.type = type,
		.pd = is_recv ? NULL : stage.pd,
		.send_cq = is_recv ? NULL : find_cq(line, "cq")->cq,
		.recv_cq = is_recv || is_send ? NULL : find_cq(line, line_has(line, "recv_cq") ? "recv_cq" : "cq")->cq,
		.srq = has_srq ? stage.srq : NULL,
		.xrcd = is_recv ? stage.xrcd : NULL,
		.max_send_wr = (uint32_t)line_number(line, "max_send_wr", 64),
		.max_recv_wr = (uint32_t)line_number(line, "max_recv_wr", 64),
		.max_send_sge = (uint32_t)line_number(line, "max_sge", 4),
		.max_recv_sge = (uint32_t)line_number(line, "max_sge", 4),
		.max_inline = (uint32_t)line_number(line, "max_inline", 256),
		.signal_all = line_flag(line, "signal_all"),
		.user = actor,
	};
	must(line, vb_qp_create(stage.lane, &actor->config, &actor->qp), "create qp");
	actor->attr = (struct vb_qp_attr){ .path_mtu = 1024,
		.sq_psn = 100,
		.rq_psn = 200,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.dest_qpn = 0x222,
		.qkey = 0x11111111,
		.port = 1,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC,
		.av = { .sgid = stage.local, .dgid = stage.peer } };
	read_attributes(line, &actor->attr);
	actor->next_psn = actor->attr.sq_psn;
	const char *state = line_text(line, "state");
	enum vb_qp_state last = state ? read_state(line, state) : VB_QPS_RTS;
	for (int to = VB_QPS_INIT; to <= (int)last; to++) {
		actor->attr.state = (enum vb_qp_state)to;
		must(line,
			vb_qp_modify(actor->qp, &actor->attr, attributes_of(actor->config.type, actor->attr.state),
				stage.now),
			"modify");
	}
}
