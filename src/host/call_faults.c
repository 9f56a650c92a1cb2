/* Counts the program's calls and decides which of them fail (call_faults.h). */
#include "host/call_faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/invariant.h"
#include "base/random.h"
#include "host/host.h"
#include "host/report/json_line.h"
#include "host/report/later.h"
#include "host/report/summary.h"
#include "host/settings.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT atomic_int vb_call_faults_state;
static struct vb_call_faults set;
static _Thread_local bool are_passed __attribute__((tls_model("initial-exec")));
static atomic_bool are_broken; /* the device has failed */
static atomic_ullong calls[VB_CALLS], struck[VB_CALL_FAULTS_MAX];

bool vb_call_fault_strikes(const struct vb_call_faults *faults, unsigned index, uint64_t n)
{
	const struct vb_call_fault *fault = &faults->faults[index];
	struct vb_random random;

	assert(index < faults->count && n >= 1);
	switch (fault->when) {
	case VB_FAULT_NTH:
		return n == fault->number;
	case VB_FAULT_EVERY:
		return n % fault->number == 0;
	case VB_FAULT_FROM:
		return n >= fault->number;
	case VB_FAULT_CHANCE:
		vb_random_seed(&random, faults->seed + ((uint64_t)index << 48) + n);
		return vb_random_chance(&random, (uint32_t)fault->number);
	case VB_FAULT_AFTER:
		break;
	}
	return false;
}

/* ---- The process's ----------------------------------------------------------------------------------------------- */

static void read_settings(void)
{
	const struct vb_settings *settings = vb_settings_get();
	char why[128];

	if (settings && vb_call_faults_parse(settings->text[VB_SETTING_FAULTS], &set, why, sizeof(why)) < 0)
		set.count = 0; /* the settings have been checked */
	if (set.count)
		vb_devices_expect_use(); /* a program that fails before it looks at devices has a summary, too */
	atomic_store(&vb_call_faults_state, set.count ? VB_CALL_FAULTS_SET : VB_CALL_FAULTS_NONE);
}

const struct vb_call_faults *vb_call_faults_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_settings);
	return &set;
}

/* "verb ibv_reg_mr", "cm reject" */
static const char *subject(const struct vb_call_fault *fault, char *text, size_t size)
{
	if (fault->is_event)
		snprintf(text, size, "event %s", fault->event);
	else if (fault->call >= VB_CALL_CM_REJECT)
		snprintf(text, size, "cm %s", vb_call_name(fault->call) + strlen("cm:"));
	else
		snprintf(text, size, "verb %s", vb_call_name(fault->call));
	return text;
}

static const char *effect(const struct vb_call_fault *fault, char *text, size_t size)
{
	if (fault->call == VB_CALL_CM_REJECT)
		snprintf(text, size, "reason %d", fault->value);
	else if (fault->call == VB_CALL_CM_DISCONNECT)
		snprintf(text, size, "disconnected");
	else
		snprintf(text, size, "%s", vb_error_name(fault->value));
	return text;
}

/* A device that has failed. */
static bool is_broken(enum vb_call call)
{
	static const char *const works[] = { "ibv_close", "ibv_dealloc", "ibv_dereg", "ibv_destroy", "ibv_detach",
		"ibv_free", "ibv_get_", "ibv_next_poll", "ibv_poll_cq", "ibv_start_poll" };
	const char *name = vb_call_name(call);

	if (!atomic_load(&are_broken) || strncmp(name, "ibv_", 4) != 0)
		return false;
	for (unsigned i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		if (strncmp(name, works[i], strlen(works[i])) == 0)
			return false;
	return true;
}

static void say(const struct vb_call_fault *fault, uint64_t n, struct vb_later **unsaid)
{
	char text[80], what[40];

	subject(fault, text, sizeof(text));
	effect(fault, what, sizeof(what));
	if (unsaid)
		vb_log_later(unsaid, VB_LOG_INFO, "fault %s call %llu: %s", text, (unsigned long long)n, what);
	else
		vb_log(VB_LOG_INFO, "fault %s call %llu: %s", text, (unsigned long long)n, what);
}

EXPORT int vb_call_strike_later(enum vb_call call, struct vb_later **unsaid)
{
	const struct vb_call_faults *faults = vb_call_faults_get();

	if (!faults->count || are_passed)
		return 0;
	const uint64_t n = atomic_fetch_add(&calls[call], 1) + 1;
	for (unsigned i = 0; i < faults->count; i++) {
		const struct vb_call_fault *fault = &faults->faults[i];
		if (fault->is_event || fault->call != call || !vb_call_fault_strikes(faults, i, n))
			continue;
		atomic_fetch_add(&struck[i], 1);
		say(fault, n, unsaid);
		errno = fault->value;
		return fault->value;
	}
	return is_broken(call) ? errno = EIO : 0;
}

EXPORT int vb_call_strike(enum vb_call call)
{
	return vb_call_strike_later(call, NULL);
}

void vb_calls_pass(bool value)
{
	are_passed = value;
}

void vb_calls_break(bool value)
{
	atomic_store(&are_broken, value);
}

void vb_call_faults_event_struck(unsigned index)
{
	assert(index < set.count && set.faults[index].is_event);
	atomic_fetch_add(&struck[index], 1);
	vb_log(VB_LOG_INFO, "fault event %s", set.faults[index].event);
}

/* ---- The summary ------------------------------------------------------------------------------------------------- */

static void tell_event(const struct vb_summary *summary, const struct vb_call_fault *fault, unsigned long long times)
{
	if (times)
		vb_summary_add(summary, "fault event %s: %llu", fault->event, times);
	else
		vb_summary_add(summary, "fault event %s: never reached", fault->event);
}

static void tell_call(const struct vb_summary *summary, const struct vb_call_fault *fault, unsigned long long times)
{
	static const char *const names[] = { "call", "every", "from" };
	const unsigned long long count = atomic_load(&calls[fault->call]);
	char text[80], what[40], when[48];

	subject(fault, text, sizeof(text));
	effect(fault, what, sizeof(what));
	if (fault->when == VB_FAULT_CHANCE)
		snprintf(when, sizeof(when), "p=%g%%", (double)fault->number / 10000);
	else
		snprintf(when, sizeof(when), "%s %llu", names[fault->when], (unsigned long long)fault->number);
	if (!times)
		vb_summary_add(summary, "fault %s %s: never reached: called %llu times", text, when, count);
	else if (fault->when == VB_FAULT_NTH)
		vb_summary_add(summary, "fault %s %s: %s", text, when, what);
	else
		vb_summary_add(summary, "fault %s %s: %s, %llu of %llu calls", text, when, what, times, count);
}

void vb_call_faults_tell(const struct vb_summary *summary)
{
	const struct vb_call_faults *faults = vb_call_faults_get();

	for (unsigned i = 0; i < faults->count; i++) {
		const struct vb_call_fault *fault = &faults->faults[i];
		const unsigned long long times = atomic_load(&struck[i]);
		if (fault->is_event)
			tell_event(summary, fault, times);
		else
			tell_call(summary, fault, times);
	}
}

void vb_call_faults_put(struct vb_json_line *json)
{
	const struct vb_call_faults *faults = vb_call_faults_get();
	char text[80];

	vb_json_line_add(json, ",\"faults\":[");
	for (unsigned i = 0; i < faults->count; i++) {
		const struct vb_call_fault *fault = &faults->faults[i];
		vb_json_line_add(json, "%s{\"fault\":\"%s\",\"struck\":%llu", i ? "," : "",
			subject(fault, text, sizeof(text)), (unsigned long long)atomic_load(&struck[i]));
		if (!fault->is_event)
			vb_json_line_add(json, ",\"calls\":%llu", (unsigned long long)atomic_load(&calls[fault->call]));
		vb_json_line_add(json, "}");
	}
	vb_json_line_add(json, "]");
}
