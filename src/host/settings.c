/* Settings: reads VERBENA_* from an environment and refuses what it does not understand. Parsing is pure; only
 * vb_settings_get looks at the process. The table is in settings.h. */
#include "base/invariant.h"
#include "host/settings.h"
#include "host/host.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/utf8.h"
#include "host/call_faults.h"
#include "host/report/log.h"
#include "port/port.h"

#define PREFIX             "VERBENA_"
#define RECEIVE_BUFFER_MIN 65536u
#define RECEIVE_BUFFER_MAX 1073741824u
#define DEVICE_TEXT_MAX    63

const struct vb_setting_row vb_setting_rows[VB_SETTING_COUNT] = {
#define X(name, allowed, fallback, meaning) { #name, allowed, fallback, meaning },
	VB_SETTINGS(X)
#undef X
};

/* In secure execution. */
static const bool counts_when_secure[VB_SETTING_COUNT] = {
	[VB_SETTING_DEVICES] = true,
	[VB_SETTING_LOCAL] = true,
	[VB_SETTING_LANES] = true,
	[VB_SETTING_STATS] = true,
	[VB_SETTING_LOG] = true,
};

static const char *const level_names[] = { "error", "warn", "info", "debug" };

/* ---- Kinds of values: each returns false when text is not one ---------------------------------------------------- */

static bool parse_choice(const char *text, const char *no, const char *yes, bool *value)
{
	if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
		return false;
	*value = strcmp(text, yes) == 0;
	return true;
}

static bool parse_number(const char *text, uint64_t low, uint64_t high, uint32_t *value)
{
	uint64_t number = 0;

	if (!*text)
		return false;
	for (const char *c = text; *c; c++) {
		if (!isdigit((unsigned char)*c))
			return false;
		number = number * 10 + (uint64_t)(*c - '0');
		if (number > high)
			return false;
	}
	if (number < low)
		return false;
	*value = (uint32_t)number;
	return true;
}

/* One path alone is one that is never left. */
static bool parse_paths(const char *text, struct vb_settings *settings)
{
	const bool is_auto = strcmp(text, "auto") == 0;

	settings->paths = 1;
	if (!is_auto && !parse_number(text, 1, 64, &settings->paths))
		return false;
	settings->fails_over = is_auto || settings->paths > 1;
	return true;
}

static bool parse_level(const char *text, enum vb_log_level *level)
{
	for (unsigned i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*level = (enum vb_log_level)i;
			return true;
		}
	}
	return false;
}

/* Names separated by commas, none empty. */
static bool parse_names(const char *text)
{
	size_t length = 0;

	for (const char *c = text;; c++) {
		if (*c == ',' || *c == '\0') {
			if (length == 0 || length > DEVICE_TEXT_MAX)
				return false;
			length = 0;
			if (*c == '\0')
				return true;
		} else if (!isgraph((unsigned char)*c)) {
			return false;
		} else {
			length++;
		}
	}
}

/* %p is the only thing a % may begin. */
static bool parse_file(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c == '%' && *++c != 'p')
			return false;
	return *text != '\0';
}

/* auto: none, and it goes by what the peer is. */
static bool parse_cc(const char *text, struct vb_cc_choice *choice, char *why, size_t why_size)
{
	*choice = (struct vb_cc_choice){ 0 };
	return strcmp(text, "auto") == 0 || vb_cc_choose_live(text, choice, why, (unsigned)why_size) == 0;
}

static bool parse_faults(const char *text, bool *are_of_packets, char *why, size_t why_size)
{
	struct vb_faults *faults = NULL;
	struct vb_call_faults of_calls;

	if (vb_faults_parse(text, &faults, why, (unsigned)why_size) < 0)
		return false;
	vb_faults_free(faults);
	*are_of_packets = vb_faults_are_of_packets(text);
	return vb_call_faults_parse(text, &of_calls, why, why_size) == 0;
}

/* ---- One setting ------------------------------------------------------------------------------------------------- */

static bool parse_value(
	struct vb_settings *settings, enum vb_setting which, const char *text, char *why, size_t why_size)
{
	switch (which) {
	case VB_SETTING_DEVICES:
		return parse_names(text);
	case VB_SETTING_LOCAL:
		return parse_choice(text, "auto", "off", &settings->local_off);
	case VB_SETTING_MAP:
		return parse_choice(text, "off", "registered", &settings->map_registered);
	case VB_SETTING_LANES:
		return parse_number(text, 1, VB_LANES_MAX, &settings->lanes);
	case VB_SETTING_PCAP:
	case VB_SETTING_STATS_JSON:
		return parse_file(text);
	case VB_SETTING_CC:
		return parse_cc(text, &settings->cc, why, why_size);
	case VB_SETTING_RECOVERY:
		return parse_choice(text, "auto", "go-back-n", &settings->go_back_n);
	case VB_SETTING_LARGE_PACKETS:
		return parse_choice(text, "auto", "off", &settings->large_off);
	case VB_SETTING_PATHS:
		return parse_paths(text, settings);
	case VB_SETTING_FAULTS:
		return parse_faults(text, &settings->packet_faults, why, why_size);
	case VB_SETTING_STATS:
		return parse_choice(text, "0", "1", &settings->stats);
	case VB_SETTING_TRAINS:
		return parse_choice(text, "auto", "off", &settings->trains_off);
	case VB_SETTING_RCVBUF:
		return parse_number(text, RECEIVE_BUFFER_MIN, RECEIVE_BUFFER_MAX, &settings->receive_buffer);
	case VB_SETTING_PART_ID:
		return parse_number(text, 0, UINT32_MAX, &settings->part_id);
	case VB_SETTING_BROKER:
		return parse_choice(text, "own", "any", &settings->broker_any);
	case VB_SETTING_LOG:
		return parse_level(text, &settings->log);
	case VB_SETTING_DMABUF:
		return parse_choice(text, "auto", "on", &settings->dmabuf_on);
	case VB_SETTING_LIBEXEC:
		return *text == '/';
	case VB_SETTING_PROGRESS:
		return parse_choice(text, "thread", "off", &settings->progress_off);
	case VB_SETTING_COUNT:
		break;
	}
	return false;
}

static void set_default(struct vb_settings *settings, enum vb_setting which)
{
	char why[1];

	settings->text[which] = vb_setting_rows[which].fallback;
	settings->is_given[which] = false;
	assert(settings->text[which]);
	if (*settings->text[which])
		parse_value(settings, which, settings->text[which], why, sizeof(why));
}

static int find_setting(const char *name, size_t length)
{
	for (int i = 0; i < VB_SETTING_COUNT; i++)
		if (strlen(vb_setting_rows[i].name) == length && memcmp(vb_setting_rows[i].name, name, length) == 0)
			return i;
	return -1;
}

static int refuse_name(const char *name, size_t length, char *why, size_t why_size)
{
	int at = snprintf(why, why_size, "there is no setting " PREFIX "%.*s; there are",
		vb_utf8_fitting(name, length < 64 ? (unsigned)length : 64), name);

	for (int i = 0; i < VB_SETTING_COUNT && at >= 0 && (size_t)at < why_size; i++)
		at += snprintf(
			why + at, why_size - (size_t)at, "%s " PREFIX "%s", i ? "," : "", vb_setting_rows[i].name);
	return -EINVAL;
}

static int refuse_value(enum vb_setting which, const char *text, const char *detail, char *why, size_t why_size)
{
	const struct vb_setting_row *row = &vb_setting_rows[which];

	snprintf(why, why_size, PREFIX "%s=%.*s is not understood%s%s; allowed: %s", row->name,
		vb_utf8_fitting(text, 200), text, *detail ? ": " : "", detail, row->allowed);
	return -EINVAL;
}

static int parse_entry(struct vb_settings *settings, const char *entry, char *why, size_t why_size)
{
	const char *name = entry + strlen(PREFIX), *equals = strchr(name, '=');
	char detail[400] = "";

	if (!equals)
		return 0; /* not a variable */
	int which = find_setting(name, (size_t)(equals - name));
	if (which < 0)
		return refuse_name(name, (size_t)(equals - name), why, why_size);
	if (settings->is_given[which])
		return 0; /* as getenv: the first one counts */
	/* A script sets an empty value to say "as if unset". */
	if (equals[1] && !parse_value(settings, (enum vb_setting)which, equals + 1, detail, sizeof(detail)))
		return refuse_value((enum vb_setting)which, equals + 1, detail, why, why_size);
	if (equals[1]) {
		settings->text[which] = equals + 1;
		settings->is_given[which] = true;
	}
	return 0;
}

/* The name of an entry as in "VERBENA_NAME=value", added to the list. One that does not fit whole is left out. */
static void add_name(char *names, size_t size, const char *entry)
{
	size_t length = strcspn(entry, "="), used = strlen(names);

	if (used + strlen(", ") + length < size)
		snprintf(names + used, size - used, "%s%.*s", used ? ", " : "", (int)length, entry);
}

static bool counts(const char *entry)
{
	const char *name = entry + strlen(PREFIX);
	int which = find_setting(name, strcspn(name, "="));

	return which >= 0 && counts_when_secure[which];
}

/* ignored: where to list the names that do not count in secure execution; NULL: it is no secure execution. */
static int parse(struct vb_settings *settings, char *const *environment, char *ignored, size_t ignored_size, char *why,
	size_t why_size)
{
	struct vb_settings parsed = { .stats = false };

	for (int i = 0; i < VB_SETTING_COUNT; i++)
		set_default(&parsed, (enum vb_setting)i);
	for (char *const *entry = environment; entry && *entry; entry++) {
		if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0)
			continue;
		if (ignored && !counts(*entry)) {
			add_name(ignored, ignored_size, *entry);
			continue;
		}
		int rc = parse_entry(&parsed, *entry, why, why_size);
		if (rc < 0)
			return rc;
	}
	*settings = parsed;
	return 0;
}

int vb_settings_parse(struct vb_settings *settings, char *const *environment, char *why, size_t why_size)
{
	return parse(settings, environment, NULL, 0, why, why_size);
}

int vb_settings_parse_secure(struct vb_settings *settings, char *const *environment, char *ignored, size_t ignored_size,
	char *why, size_t why_size)
{
	*ignored = '\0';
	return parse(settings, environment, ignored, ignored_size, why, why_size);
}

/* ---- The process's ----------------------------------------------------------------------------------------------- */

static struct vb_settings process_settings;
static bool process_settings_good;

static void say_ignored(const char *ignored)
{
	char names[256] = "";

	for (int i = 0; i < VB_SETTING_COUNT; i++)
		if (counts_when_secure[i])
			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s" PREFIX "%s",
				*names ? ", " : "", vb_setting_rows[i].name);
	vb_log(VB_LOG_WARN,
		"this program runs with another user's rights or with capabilities (secure execution), where only "
		"%s count; ignored: %s",
		names, ignored);
}

static void read_environment(void)
{
	char why[1024], ignored[400] = "";
	int rc = vb_settings_are_secure() ? vb_settings_parse_secure(&process_settings, environ, ignored,
						    sizeof(ignored), why, sizeof(why))
					  : vb_settings_parse(&process_settings, environ, why, sizeof(why));

	if (rc < 0) {
		vb_log(VB_LOG_ERROR, "%s", why);
		return;
	}
	for (int i = 0; i < VB_SETTING_COUNT; i++) /* the environment may change under us */
		if (process_settings.is_given[i])
			process_settings.text[i] = strdup(process_settings.text[i]);
	vb_log_set_level(process_settings.log);
	if (*ignored)
		say_ignored(ignored);
	process_settings_good = true;
}

const struct vb_settings *vb_settings_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_environment);
	return process_settings_good ? &process_settings : NULL;
}
