/* What a script does as a program would: make objects, post, modify, poll; and what it expects to see of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "script.h"

static void must(struct line *line, int rc, const char *what)
{
	if (rc)
		fail(line, "%s: %s", what, strerror(-rc));
}

/* fails=EINVAL: the call must be refused like that. */
static bool refused(struct line *line, int rc, const char *what)
{
	const char *name = line_text(line, "fails");
	int expected = 0;
	if (name)
		expected = !strcmp(name, "EINVAL") ? -EINVAL : !strcmp(name, "ENOMEM") ? -ENOMEM
			: !strcmp(name, "EBUSY")					 ? -EBUSY
											 : -EIO;
	if (rc != expected)
		fail(line, "%s returned %d, expected %d", what, rc, expected);
	return name != NULL;
}

static uint32_t read_access(struct line *line, const char *key, uint32_t fallback)
{
	static const struct {
		const char *name;
		uint32_t bits;
	} names[] = { { "lw", VB_ACCESS_LOCAL_WRITE }, { "rw", VB_ACCESS_REMOTE_WRITE }, { "rr", VB_ACCESS_REMOTE_READ },
		{ "ra", VB_ACCESS_REMOTE_ATOMIC }, { "mw", VB_ACCESS_MW_BIND }, { "zero", VB_ACCESS_ZERO_BASED },
		{ "flush", VB_ACCESS_FLUSH_GLOBAL }, { "none", 0 }, { "all", VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC } };
	const char *text = line_text(line, key);
	if (!text)
		return fallback;
	uint32_t access = 0;
	for (size_t n; *text; text += n + (text[n] == ',')) {
		n = strcspn(text, ",");
		bool is_known = false;
		for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			if (strlen(names[i].name) == n && memcmp(names[i].name, text, n) == 0) {
				access |= names[i].bits;
				is_known = true;
			}
		}
		if (!is_known)
			fail(line, "access is a list of lw rw rr ra mw zero all none");
	}
	return access;
}

static struct region *region_named(const char *name, size_t length)
{
	for (unsigned i = 0; i < stage.region_count; i++)
		if (strlen(stage.regions[i].name) == length && memcmp(stage.regions[i].name, name, length) == 0)
			return &stage.regions[i];
	return NULL;
}

uint64_t read_address(struct line *line, const char *key, uint64_t fallback)
{
	const char *text = line_text(line, key);
	if (!text)
		return fallback;
	size_t n = strcspn(text, "+");
	struct region *region = region_named(text, n);
	if (!region)
		return parse_number(line, text);
	return region->iova + (text[n] ? parse_number(line, text + n + 1) : 0);
}

static int window_named(const char *name, size_t length)
{
	for (unsigned i = 0; i < stage.window_count; i++)
		if (strlen(stage.windows[i].name) == length && memcmp(stage.windows[i].name, name, length) == 0)
			return (int)i;
	return -1;
}

uint32_t read_key(struct line *line, const char *key, uint32_t fallback)
{
	const char *text = line_text(line, key);
	if (!text)
		return fallback;
	if (strcmp(text, "bad") == 0)
		return region_named("remote", 6)->key ^ 0x10000001;
	struct region *region = region_named(text, strlen(text));
	if (region)
		return region->key;
	size_t n = strcspn(text, ".+");
	int window = window_named(text, n);
	if (window < 0)
		return (uint32_t)parse_number(line, text);
	struct vb_mw *mw = stage.windows[window].mw;
	if (strcmp(text + n, ".next") == 0) /* the key of the next bind */
		return stage.windows[window].type == 1 ? vb_mw_next_key(mw)
						       : (vb_mw_key(mw) & ~0xFFu) | ((vb_mw_key(mw) + 1) & 0xFF);
	return vb_mw_key(mw) + (text[n] ? (uint32_t)parse_number(line, text + n + 1) : 0);
}

struct vb_gid read_gid(struct line *line, const char *key, struct vb_gid fallback)
{
	const char *text = line_text(line, key);
	unsigned a, b, c, d;
	if (!text)
		return fallback;
	if (sscanf(text, "%u.%u.%u.%u", &a, &b, &c, &d) == 4)
		return vb_gid_from_ipv4((uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d);
	struct vb_gid gid = { { 0xfd } };
	if (sscanf(text, "ff0e::%x", &a) == 1) {
		gid.raw[0] = 0xff;
		gid.raw[1] = 0x0e;
	} else if (sscanf(text, "fd00::%x", &a) != 1) {
		fail(line, "an address is 10.0.0.1, fd00::1 or ff0e::1");
	}
	gid.raw[15] = (uint8_t)a;
	return gid;
}

enum vb_wc_status read_status(struct line *line, const char *word)
{
	static const struct {
		const char *name;
		enum vb_wc_status status;
	} names[] = { { "success", VB_WC_SUCCESS }, { "loc_len_err", VB_WC_LOC_LEN_ERR },
		{ "loc_qp_op_err", VB_WC_LOC_QP_OP_ERR }, { "loc_prot_err", VB_WC_LOC_PROT_ERR },
		{ "wr_flush_err", VB_WC_WR_FLUSH_ERR }, { "mw_bind_err", VB_WC_MW_BIND_ERR },
		{ "bad_resp_err", VB_WC_BAD_RESP_ERR }, { "loc_access_err", VB_WC_LOC_ACCESS_ERR },
		{ "rem_inv_req_err", VB_WC_REM_INV_REQ_ERR }, { "rem_access_err", VB_WC_REM_ACCESS_ERR },
		{ "rem_op_err", VB_WC_REM_OP_ERR }, { "retry_exc_err", VB_WC_RETRY_EXC_ERR },
		{ "rnr_retry_exc_err", VB_WC_RNR_RETRY_EXC_ERR } };
	for (unsigned i = 0; word && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, word) == 0)
			return names[i].status;
	fail(line, "'%s' is not a completion status", word ? word : "");
}

/* ---- The scene -------------------------------------------------------------------------------------------------- */

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

void do_lane(struct line *line)
{
	stage.lane_config.ack_delay = line_time(line, "ack_delay", 0);
	stage.lane_config.receive_buffer = (uint32_t)line_number(line, "receive_buffer", 0);
	stage.lane_config.stranger_window = (uint32_t)line_number(line, "window", 0);
	if (line_flag(line, "time_wraps"))
		stage.now = stage.mark = INT64_MAX - 5 * VB_US;
}

void do_peer(struct line *line)
{
	stage_open(line);
	stage_input(line);
	struct vb_peer_facts facts = { .is_verbena = line_flag(line, "verbena"), .is_asked = line_flag(line, "asked"),
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
	region->config = (struct vb_mr_config){ .memory = region->bytes, .iova = region->iova, .length = region->size,
		.access = read_access(line, "access", VB_ACCESS_LOCAL_WRITE), .kind = VB_MEMORY_HOST };
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

static struct named_cq *find_cq(struct line *line, const char *key)
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

static uint32_t attributes_of(enum vb_qp_type type, enum vb_qp_state to)
{
	static const uint32_t rc[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QPS_RTR] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER,
		[VB_QPS_RTS] = VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC };
	static const uint32_t uc[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QPS_RTR] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN,
		[VB_QPS_RTS] = VB_QP_SQ_PSN };
	static const uint32_t ud[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_QKEY,
		[VB_QPS_RTR] = 0,
		[VB_QPS_RTS] = VB_QP_SQ_PSN };
	/* Of RC's attributes those of the half. */
	static const uint32_t xrc_send[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QPS_RTR] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN,
		[VB_QPS_RTS] = VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC };
	static const uint32_t xrc_recv[] = { [VB_QPS_INIT] = VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS,
		[VB_QPS_RTR] = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER,
		[VB_QPS_RTS] = VB_QP_TIMEOUT | VB_QP_SQ_PSN };
	static const uint32_t *const of_type[] = { [VB_QP_RC] = rc, [VB_QP_UC] = uc, [VB_QP_UD] = ud,
		[VB_QP_XRC_SEND] = xrc_send, [VB_QP_XRC_RECV] = xrc_recv };
	if (to < VB_QPS_INIT || to > VB_QPS_RTS)
		return VB_QP_STATE;
	return VB_QP_STATE | of_type[type][to];
}

static enum vb_qp_state read_state(struct line *line, const char *word)
{
	static const char *const names[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "err" };
	for (int i = 0; word && i < 7; i++)
		if (strcmp(names[i], word) == 0)
			return (enum vb_qp_state)i;
	fail(line, "a state is reset, init, rtr, rts, sqd, sqe or err");
}

static void read_attributes(struct line *line, struct vb_qp_attr *attr)
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
	actor->attr = (struct vb_qp_attr){ .path_mtu = 1024, .sq_psn = 100, .rq_psn = 200, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12, .max_rd_atomic = 4, .max_dest_rd_atomic = 4,
		.dest_qpn = 0x222, .qkey = 0x11111111, .port = 1,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC,
		.av = { .sgid = stage.local, .dgid = stage.peer } };
	read_attributes(line, &actor->attr);
	actor->next_psn = actor->attr.sq_psn;
	const char *state = line_text(line, "state");
	enum vb_qp_state last = state ? read_state(line, state) : VB_QPS_RTS;
	for (int to = VB_QPS_INIT; to <= (int)last; to++) {
		actor->attr.state = (enum vb_qp_state)to;
		must(line, vb_qp_modify(actor->qp, &actor->attr, attributes_of(actor->config.type, actor->attr.state),
				   stage.now), "modify");
	}
}

/* ---- Posting ------------------------------------------------------------------------------------------------------ */

/* len bytes from an address, cut into n pieces: equal ones, the first taking what is over. */
static unsigned read_sges(struct line *line, const char *key, uint64_t fallback, struct vb_sge *sges)
{
	uint64_t length = line_number(line, "len", fallback), at = read_address(line, key, stage.regions[0].iova);
	unsigned n = (unsigned)line_number(line, "sges", length || line_has(line, key) ? 1 : 0);
	struct region *region = region_at(at, length);
	uint32_t lkey = read_key(line, "lkey", region ? region->key : stage.regions[0].key);
	uint64_t gap = line_number(line, "gap", n > 1 ? 8 : 0);
	if (n > VB_MAX_SGE)
		n = VB_MAX_SGE;
	for (unsigned i = 0; i < n; i++) {
		uint64_t piece = length / n + (i == 0 ? length % n : 0);
		sges[i] = (struct vb_sge){ .addr = at, .length = (uint32_t)piece, .lkey = lkey };
		at += piece + gap;
	}
	return n;
}

static enum vb_wr_opcode read_opcode(struct line *line)
{
	static const char *const names[] = { "write", "write_imm", "send", "send_imm", "read", "cmp_swap", "fetch_add",
		"local_inv", "bind", "send_inv" };
	const char *word = line_word(line);
	for (int i = 0; word && i < 10; i++)
		if (strcmp(names[i], word) == 0)
			return (enum vb_wr_opcode)i;
	if (word && strcmp(word, "atomic_write") == 0)
		return VB_WR_ATOMIC_WRITE;
	if (word && strcmp(word, "flush") == 0)
		return VB_WR_FLUSH;
	fail(line, "'%s' cannot be posted", word ? word : "");
}

static bool is_atomic(enum vb_wr_opcode opcode)
{
	return opcode == VB_WR_ATOMIC_CMP_AND_SWP || opcode == VB_WR_ATOMIC_FETCH_AND_ADD;
}

static void number_psns(struct actor *actor, struct posted *posted)
{
	uint32_t mtu = actor->attr.path_mtu;
	bool travels = posted->opcode != VB_WR_LOCAL_INV && posted->opcode != VB_WR_BIND_MW;
	posted->packets = !travels ? 0
		: actor->config.type == VB_QP_UD || is_atomic(posted->opcode) || posted->length == 0
		? 1
		: (uint32_t)((posted->length + mtu - 1) / mtu);
	posted->psn = actor->next_psn;
	actor->next_psn = vb_psn_add(actor->next_psn, posted->packets);
}

static void read_bind(struct line *line, struct vb_send_wr *wr)
{
	const char *name = line_text(line, "mw");
	int window = name ? window_named(name, strlen(name)) : -1;
	if (window < 0)
		fail(line, "bind needs mw=");
	const char *region = line_text(line, "mr");
	wr->bind.mw = stage.windows[window].mw;
	struct region *to = region_named(region ? region : "remote", strlen(region ? region : "remote"));
	wr->bind.mr = to->mr;
	wr->bind.addr = read_address(line, "at", to->iova);
	wr->bind.length = line_number(line, "len", 0);
	wr->bind.access = read_access(line, "access", VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ);
	uint32_t next = stage.windows[window].type == 1
		? vb_mw_next_key(wr->bind.mw)
		: (vb_mw_key(wr->bind.mw) & ~0xFFu) | ((vb_mw_key(wr->bind.mw) + 1) & 0xFF);
	wr->bind.rkey = read_key(line, "key", next);
}

static void read_send(struct line *line, struct actor *actor, struct vb_send_wr *wr, struct vb_sge *sges, struct vb_av *av)
{
	wr->opcode = read_opcode(line);
	wr->wr_id = line_number(line, "wr", 0);
	wr->flags = (line_flag(line, "unsignalled") ? 0 : VB_SEND_SIGNALED) | (line_flag(line, "fence") ? VB_SEND_FENCE : 0) |
		(line_flag(line, "solicited") ? VB_SEND_SOLICITED : 0) | (line_flag(line, "inline") ? VB_SEND_INLINE : 0);
	wr->remote_addr = line_number(line, "va", 0x7000000000);
	wr->rkey = read_key(line, "rkey", 0x4242);
	wr->imm_or_inv = line_has(line, "imm") ? __builtin_bswap32((uint32_t)line_number(line, "imm", 0))
					       : read_key(line, "inv", 0);
	wr->compare_add = line_number(line, line_has(line, "add") ? "add" : "compare", 0);
	wr->swap = line_number(line, "swap", 0);
	wr->remote_srqn = (uint32_t)line_number(line, "srqn", 0);
	wr->flush_length = (uint32_t)line_number(line, "range", 0);
	wr->flush_type = (uint8_t)line_number(line, "type", VB_FLUSH_GLOBAL);
	wr->flush_level = (uint8_t)line_number(line, "level", VB_FLUSH_RANGE);
	if (wr->opcode == VB_WR_BIND_MW)
		read_bind(line, wr);
	else if (wr->opcode != VB_WR_LOCAL_INV)
		wr->sge_count = read_sges(line, "from", is_atomic(wr->opcode) ? 8 : 0, sges);
	wr->sges = sges;
	if (actor->config.type == VB_QP_UD) {
		*av = actor->attr.av;
		av->dgid = read_gid(line, "to", av->dgid);
		wr->av = av;
		wr->remote_qpn = (uint32_t)line_number(line, "remote_qpn", 0x222);
		wr->remote_qkey = (uint32_t)line_number(line, "qkey", actor->attr.qkey);
	}
}

/* INLINE copies the bytes at once, from any address: the caller's memory is overwritten right after the post. */
static void make_inline(struct vb_send_wr *wr, struct vb_sge *sges, uint8_t *scratch)
{
	for (unsigned i = 0; i < wr->sge_count; i++) {
		uint8_t *from = shadow_at(sges[i].addr, sges[i].length);
		memcpy(scratch, from, sges[i].length);
		sges[i] = (struct vb_sge){ .addr = (uintptr_t)scratch, .length = sges[i].length, .lkey = 0 };
		scratch += sges[i].length;
	}
}

void do_post(struct line *line)
{
	stage_input(line);
	struct actor *actor = stage_actor(line);
	struct vb_sge sges[VB_MAX_SGE];
	uint8_t scratch[VB_MAX_INLINE * 2];
	struct vb_send_wr wr = { 0 };
	struct vb_av av;
	if (actor->posted_count == MAX_POSTED)
		fail(line, "too many posts");
	read_send(line, actor, &wr, sges, &av);
	bool is_kept = line_flag(line, "more"); /* published together with the next post */
	struct posted *posted = &actor->posted[actor->posted_count];
	*posted = (struct posted){ .wr_id = wr.wr_id, .opcode = wr.opcode, .flags = wr.flags, .sge_count = wr.sge_count,
		.imm_or_inv = wr.imm_or_inv, .rkey = wr.rkey, .remote_addr = wr.remote_addr,
		.srqn = wr.remote_srqn, .compare_add = wr.compare_add, .swap = wr.swap };
	memcpy(posted->sges, sges, sizeof(sges));
	for (unsigned i = 0; i < wr.sge_count; i++)
		posted->length += sges[i].length;
	posted->range = wr.flush_length;
	posted->feth = (uint32_t)(wr.flush_type | wr.flush_level << 4);
	if (wr.opcode != VB_WR_RDMA_READ && !is_atomic(wr.opcode)) {
		posted->bytes = calloc(1, posted->length + 1);
		shadow_gather(sges, wr.sge_count, posted->bytes);
	}
	if (wr.flags & VB_SEND_INLINE)
		make_inline(&wr, sges, scratch);
	static bool is_begun;
	if (!is_begun)
		vb_sq_begin(actor->qp);
	int rc = vb_sq_put(actor->qp, &wr);
	is_begun = is_kept;
	if (!is_kept)
		vb_sq_end(actor->qp, rc == 0);
	memset(scratch, 0xEE, sizeof(scratch));
	if (refused(line, rc, "post")) {
		free(posted->bytes);
		return;
	}
	if (!line_flag(line, "unsent")) /* its PSNs are for the next one */
		number_psns(actor, posted);
	actor->posted_count++;
	if (!is_kept) {
		if (!vb_lane_has_doorbells(stage.lane) && vb_qp_state(actor->qp) == VB_QPS_RTS)
			fail(line, "a post rings a doorbell");
		stage_settle(line);
	}
}

void do_recv(struct line *line)
{
	stage_input(line);
	struct actor *actor = stage.actor_count ? stage_actor(line) : NULL;
	bool is_shared = line_flag(line, "srq");
	struct named_srq *named = NULL;
	read_srqn(line, &named);
	struct recv_queue *queue = named ? &named->recvs : is_shared ? &stage.srq_recvs : actor->recvs;
	struct recv *recv = &queue->items[queue->tail % MAX_RECVS];
	*recv = (struct recv){ .wr_id = line_number(line, "wr", 0) };
	recv->sge_count = read_sges(line, "at", 0, recv->sges);
	struct vb_recv_wr wr = { .wr_id = recv->wr_id, .sges = recv->sges, .sge_count = recv->sge_count };
	int rc = named ? vb_srq_post(named->srq, &wr) : is_shared ? vb_srq_post(stage.srq, &wr) : vb_rq_post(actor->qp, &wr);
	if (refused(line, rc, "recv"))
		return;
	queue->tail++;
	stage_settle(line);
}

/* Puts a number where the program keeps it: of the local memory behind an address. */
void do_store(struct line *line)
{
	stage_input(line);
	uint64_t at = read_address(line, "at", 0), value = line_number(line, "value", 0);
	struct region *region = region_at(at, 8);
	memcpy(region->shadow + (at - region->iova), &value, 8);
	memcpy(region->bytes + (at - region->iova), &value, 8);
}

void do_modify(struct line *line)
{
	stage_input(line);
	struct actor *actor = stage_actor(line);
	struct vb_qp_attr attr = actor->attr;
	enum vb_qp_state to = read_state(line, line_text(line, "state"));
	uint32_t mask = to == VB_QPS_RTS && vb_qp_state(actor->qp) != VB_QPS_RTR ? VB_QP_STATE
										  : attributes_of(actor->config.type, to);
	attr.state = to;
	if (line_flag(line, "notify")) {
		attr.notify_drained = true;
		mask |= VB_QP_EN_SQD_ASYNC_NOTIFY;
	}
	if (line_has(line, "min_rnr") && to == VB_QPS_RTS)
		mask |= VB_QP_MIN_RNR_TIMER;
	if (line_has(line, "dest_rd_atomic") && to == VB_QPS_SQD)
		mask |= VB_QP_MAX_DEST_RD_ATOMIC;
	read_attributes(line, &attr);
	int rc = vb_qp_modify(actor->qp, &attr, mask, stage.now);
	if (!refused(line, rc, "modify"))
		actor->attr = attr;
	if (to == VB_QPS_RESET && rc == 0) {
		actor->recvs->head = actor->recvs->tail;
		actor->message_open = false;
	}
	if (to == VB_QPS_RTS)
		actor->next_psn = mask & VB_QP_SQ_PSN ? attr.sq_psn : actor->next_psn;
	stage_settle(line);
}

void do_arm(struct line *line)
{
	stage_input(line);
	vb_cq_request_notify(find_cq(line, "cq")->cq, line_flag(line, "solicited"));
}

void do_invalidate(struct line *line)
{
	stage_input(line);
	const char *name = line_text(line, "mr");
	struct region *region = region_named(name, strlen(name));
	refused(line, vb_mr_invalidate(region->mr), "invalidate");
}

void do_mcast(struct line *line)
{
	stage_input(line);
	struct vb_gid gid = read_gid(line, "group", stage.peer);
	struct actor *actor = stage_actor(line);
	int rc = line_flag(line, "leave") ? vb_qp_detach_mcast(actor->qp, &gid) : vb_qp_attach_mcast(actor->qp, &gid);
	line_flag(line, "join");
	refused(line, rc, "mcast");
}

/* send_error errno=14 [after=2]: the next packet handed out, or the third, cannot be sent. */
void do_send_error(struct line *line)
{
	stage_input(line);
	stage.send_error = (int)line_number(line, "errno", EFAULT);
	stage.send_error_after = (unsigned)line_number(line, "after", 0);
}

void do_flush_acks(struct line *line)
{
	stage_input(line);
	vb_lane_flush_acks(stage.lane);
	stage_settle(line);
}

/* ---- What must come of it ------------------------------------------------------------------------------------------- */

static uint32_t wc_opcode_of(enum vb_wr_opcode opcode)
{
	static const uint32_t opcodes[] = { [VB_WR_RDMA_WRITE] = VB_WC_RDMA_WRITE,
		[VB_WR_RDMA_WRITE_WITH_IMM] = VB_WC_RDMA_WRITE, [VB_WR_SEND] = VB_WC_SEND,
		[VB_WR_SEND_WITH_IMM] = VB_WC_SEND, [VB_WR_RDMA_READ] = VB_WC_RDMA_READ,
		[VB_WR_ATOMIC_CMP_AND_SWP] = VB_WC_COMP_SWAP, [VB_WR_ATOMIC_FETCH_AND_ADD] = VB_WC_FETCH_ADD,
		[VB_WR_ATOMIC_WRITE] = VB_WC_ATOMIC_WRITE, [VB_WR_FLUSH] = VB_WC_FLUSH,
		[VB_WR_LOCAL_INV] = VB_WC_LOCAL_INV, [VB_WR_BIND_MW] = VB_WC_BIND_MW, [VB_WR_SEND_WITH_INV] = VB_WC_SEND };
	return opcodes[opcode];
}

static void expect(struct line *line, const char *what, uint64_t expected, uint64_t seen)
{
	if (expected != seen)
		fail(line, "completion's %s: expected %llu (0x%llx), seen %llu (0x%llx)", what,
			(unsigned long long)expected, (unsigned long long)expected, (unsigned long long)seen,
			(unsigned long long)seen);
}

static void check_sent_completion(struct line *line, struct actor *actor, const struct vb_wc *wc)
{
	for (unsigned i = actor->posted_count; i-- > 0;) {
		struct posted *posted = &actor->posted[i];
		if (posted->wr_id != wc->wr_id)
			continue;
		expect(line, "opcode", wc_opcode_of(posted->opcode), wc->opcode);
		if (posted->opcode == VB_WR_RDMA_READ || is_atomic(posted->opcode))
			expect(line, "byte_len", posted->length, wc->byte_len);
		return;
	}
	fail(line, "nothing was posted with this wr");
}

static void check_received(struct line *line, struct actor *actor, const struct vb_wc *wc)
{
	if (actor->received_head == actor->received_tail)
		fail(line, "no message has landed");
	expect(line, "byte_len", actor->received[actor->received_head++ % MAX_RECVS], wc->byte_len);
	if (line_has(line, "len"))
		expect(line, "byte_len", line_number(line, "len", 0), wc->byte_len);
	uint32_t flags = (line_has(line, "imm") ? VB_WC_WITH_IMM : 0) | (line_has(line, "inv") ? VB_WC_WITH_INV : 0) |
		(actor->config.type == VB_QP_UD ? VB_WC_GRH : 0);
	expect(line, "flags", flags, wc->flags);
	expect(line, "opcode", line_flag(line, "write_imm") ? VB_WC_RECV_RDMA_WITH_IMM : VB_WC_RECV, wc->opcode);
	if (line_has(line, "imm"))
		expect(line, "imm", line_number(line, "imm", 0), __builtin_bswap32(wc->imm_or_inv));
	if (line_has(line, "inv"))
		expect(line, "inv", read_key(line, "inv", 0), wc->imm_or_inv);
	if (line_has(line, "src_qpn"))
		expect(line, "src_qpn", line_number(line, "src_qpn", 0), wc->src_qpn);
	if (line_has(line, "sl"))
		expect(line, "sl", line_number(line, "sl", 0), wc->sl);
}

static void check_completion(struct line *line, struct vb_wc *wc)
{
	struct actor *actor = stage_actor(line);
	bool is_recv = line_flag(line, "recv");
	expect(line, "wr", line_number(line, "wr", 0), wc->wr_id);
	expect(line, "qpn", vb_qp_number(actor->qp), wc->qpn);
	bool is_write_imm = line_flag(line, "write_imm");
	(void)is_write_imm;
	const char *status = NULL;
	for (const char *word; (word = line_word(line));)
		if (strcmp(word, "recv") && strcmp(word, "write_imm"))
			status = word;
	expect(line, "status", read_status(line, status), wc->status);
	if (wc->qp_user != actor)
		fail(line, "completion does not carry the QP's user pointer");
	if (wc->status)
		return;
	if (is_recv)
		check_received(line, actor, wc);
	else
		check_sent_completion(line, actor, wc);
}

void do_complete(struct line *line)
{
	stage_wait(line, &stage.completed_head, &stage.completed_tail);
	if (stage.completed_head == stage.completed_tail)
		fail(line, "no completion");
	struct completed *done = &stage.completed[stage.completed_head++];
	check_completion(line, &done->wc);
	stage_stamp(line, done->at, "completion");
}

/* poll cq=small: of a CQ that is left alone otherwise. overrun: it must say so. empty: nothing in it. */
void do_poll(struct line *line)
{
	struct vb_wc wc;
	stage_input(line);
	int n = vb_cq_poll(find_cq(line, "cq")->cq, &wc, 1);
	int expected = line_flag(line, "overrun") ? -EIO : line_flag(line, "empty") ? 0 : 1;
	if (n != expected)
		fail(line, "poll returned %d, expected %d", n, expected);
	if (n == 1)
		check_completion(line, &wc);
}

void do_event(struct line *line)
{
	stage_wait(line, &stage.happened_head, &stage.happened_tail);
	if (stage.happened_head == stage.happened_tail)
		fail(line, "no event");
	struct happened *event = &stage.happened[stage.happened_head++];
	const char *name = line_word(line);
	if (!name || strcmp(name, event_name(event->event.kind)) != 0)
		fail(line, "seen event %s", event_name(event->event.kind));
	if (event->event.qp && event->event.qp != stage_actor(line)->qp)
		fail(line, "event of another QP");
	stage_stamp(line, event->at, "event");
}

static void check_cause(struct line *line, struct actor *actor, const char *name)
{
	static const char *const names[] = {
#define X(NAME, text) #NAME,
		VB_CAUSES(X)
#undef X
	};
	struct vb_cause cause;
	vb_qp_cause(actor->qp, &cause);
	if (strcasecmp(names[cause.kind], name) != 0)
		fail(line, "cause seen: %s (%s)", names[cause.kind], vb_cause_text(cause.kind));
	if (line_has(line, "tries") && line_number(line, "tries", 0) != cause.tries)
		fail(line, "tries seen: %u", cause.tries);
	if (line_has(line, "psn") && line_number(line, "psn", 0) != cause.psn)
		fail(line, "psn of the cause seen: %u", cause.psn);
	if (line_flag(line, "never_heard") && cause.was_heard)
		fail(line, "the cause says that the peer was heard");
	if (line_flag(line, "heard") && !cause.was_heard)
		fail(line, "the cause says that the peer was never heard");
}

/* state err cause=nak_remote_access: the QP died by itself, and says why. */
void do_state(struct line *line)
{
	struct actor *actor = stage_actor(line);
	const char *cause = line_text(line, "cause");
	enum vb_qp_state expected = read_state(line, line_word(line));
	if (cause) {
		stage_wait(line, &stage.happened_head, &stage.happened_tail);
		if (stage.happened_head == stage.happened_tail)
			fail(line, "the QP did not die; it is in state %d", vb_qp_state(actor->qp));
		struct happened *event = &stage.happened[stage.happened_head++];
		if (event->event.kind != VB_EVENT_QP_DIED || event->event.qp != actor->qp)
			fail(line, "seen event %s", event_name(event->event.kind));
		stage_stamp(line, event->at, "death");
		check_cause(line, actor, cause);
	} else {
		stage_input(line);
	}
	if (vb_qp_state(actor->qp) != expected)
		fail(line, "state seen: %d", vb_qp_state(actor->qp));
}

void do_counter(struct line *line)
{
	uint64_t values[VB_COUNTER_COUNT];
	stage_input(line);
	vb_lane_counters(stage.lane, values);
	for (const char *name; (name = line_word(line));)
		fail(line, "counter NAME=VALUE, not '%s'", name);
	for (int t = 1; t < line->token_count; t++) {
		const char *key = line->tokens[t].key;
		uint64_t expected = line_number(line, key, 0);
		int i = 0;
		while (i < VB_COUNTER_COUNT && strcmp(vb_counter_name[i], key) != 0)
			i++;
		if (i == VB_COUNTER_COUNT)
			fail(line, "there is no counter '%s'", key);
		if (values[i] != expected)
			fail(line, "%s: expected %llu, seen %llu", key, (unsigned long long)expected,
				(unsigned long long)values[i]);
	}
}

/* deadline at=10us: the lane wants to be called then, or a little before; deadline none: it does not. */
void do_deadline(struct line *line)
{
	stage_input(line);
	struct vb_deadline deadline = vb_lane_next_deadline(stage.lane);
	if (line_flag(line, "none")) {
		if (deadline.is_set)
			fail(line, "deadline in %s", show_time(vb_time_diff(deadline.at, stage.now)));
		return;
	}
	vb_time at = line_time(line, "at", 0);
	if (!deadline.is_set || vb_time_diff(deadline.at, stage.now) > at)
		fail(line, "deadline %s", deadline.is_set ? show_time(vb_time_diff(deadline.at, stage.now)) : "not set");
}

void do_idle(struct line *line)
{
	stage_input(line);
	stage_idle(line);
	stage.mark = stage.now;
}

/* +10ms quiet: nothing comes out until then. */
void do_quiet(struct line *line)
{
	stage_input(line);
}
