/* What options name: regions, windows, keys, addresses, rights, errors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "script.h"

void must(struct line *line, int rc, const char *what)
{
	if (rc)
		fail(line, "%s: %s", what, strerror(-rc));
}

/* fails=EINVAL: the call must be refused like that. */
bool refused(struct line *line, int rc, const char *what)
{
	const char *name = line_text(line, "fails");
	int expected = 0;
	if (name)
		expected = !strcmp(name, "EINVAL")   ? -EINVAL
			   : !strcmp(name, "ENOMEM") ? -ENOMEM
			   : !strcmp(name, "EBUSY")  ? -EBUSY
						     : -EIO;
	if (rc != expected)
		fail(line, "%s returned %d, expected %d", what, rc, expected);
	return name != NULL;
}

uint32_t read_access(struct line *line, const char *key, uint32_t fallback)
{
	static const struct {
		const char *name;
		uint32_t bits;
	} names[] = { { "lw", VB_ACCESS_LOCAL_WRITE }, { "rw", VB_ACCESS_REMOTE_WRITE },
		{ "rr", VB_ACCESS_REMOTE_READ }, { "ra", VB_ACCESS_REMOTE_ATOMIC }, { "mw", VB_ACCESS_MW_BIND },
		{ "zero", VB_ACCESS_ZERO_BASED }, { "flush", VB_ACCESS_FLUSH_GLOBAL }, { "none", 0 },
		{ "all", VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC } };
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

struct region *region_named(const char *name, size_t length)
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

int window_named(const char *name, size_t length)
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
