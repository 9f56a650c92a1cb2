/* An algorithm and its parameters, read from text. */
#include "cc/choice.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"
#include "base/words.h"

const struct vb_cc_algorithm *const vb_cc_algorithms[] = { &vb_cc_none, &vb_cc_window, &vb_cc_dcqcn, &vb_cc_hpcc,
	&vb_cc_dctcp, &vb_cc_timely, &vb_cc_swift, &vb_cc_nscc, &vb_cc_queue, NULL };

enum { WORD = 64 };

/* An error text, written piece by piece. */
struct complaint {
	char *at;
	unsigned left;
};

__attribute__((format(printf, 2, 3))) static void say(struct complaint *complaint, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(complaint->at, complaint->left, format, arguments);
	va_end(arguments);
	unsigned used = length < 0 ? 0 : (unsigned)length;
	if (used > complaint->left)
		used = complaint->left;
	complaint->at += used;
	complaint->left -= used;
}

/* Takes the text before the next comma, without blanks around it; *rest becomes NULL behind the last. False: it is too
 * long for any word. */
static bool take_item(const char **rest, char item[WORD])
{
	const char *from = *rest;
	size_t length = strcspn(from, ",");
	*rest = from[length] ? from + length + 1 : NULL;
	for (; length && *from == ' '; length--)
		from++;
	while (length && from[length - 1] == ' ')
		length--;
	bool fits = length < WORD;
	if (!fits)
		length = (size_t)vb_utf8_fitting(from, WORD - 1);
	memcpy(item, from, length);
	item[length] = 0;
	return fits;
}

static const struct vb_cc_algorithm *find(const char *name)
{
	for (unsigned i = 0; vb_cc_algorithms[i]; i++)
		if (strcmp(vb_cc_algorithms[i]->name, name) == 0)
			return vb_cc_algorithms[i];
	return NULL;
}

/* Adds the known name that is nearest to the written one, if it is near. */
static void suggest(struct complaint *complaint, const char *nearest, unsigned apart)
{
	if (nearest && apart <= 2)
		say(complaint, "; did you mean %s?", nearest);
}

static int refuse_algorithm(const char *name, char *why, unsigned why_size)
{
	struct complaint complaint = { why, why_size };
	const char *nearest = NULL;
	unsigned least = VB_WORDS_APART;

	say(&complaint, "there is no congestion control \"%s\"; there are", name);
	for (unsigned i = 0; vb_cc_algorithms[i]; i++) {
		const char *other = vb_cc_algorithms[i]->name;
		unsigned apart = vb_word_distance(name, other);
		say(&complaint, "%s %s", i ? "," : "", other);
		if (apart < least) {
			least = apart;
			nearest = other;
		}
	}
	suggest(&complaint, nearest, least);
	return -EINVAL;
}

static int refuse_parameter(const struct vb_cc_algorithm *algorithm, const char *name, char *why, unsigned why_size)
{
	struct complaint complaint = { why, why_size };
	const char *nearest = NULL;
	unsigned least = VB_WORDS_APART;

	say(&complaint, "%s has no parameter \"%s\"; %s", algorithm->name, name,
		algorithm->parameter_count ? "it has" : "it has none at all");
	for (unsigned i = 0; i < algorithm->parameter_count; i++) {
		const char *other = algorithm->parameters[i].name;
		unsigned apart = vb_word_distance(name, other);
		say(&complaint, "%s %s", i ? "," : "", other);
		if (apart < least) {
			least = apart;
			nearest = other;
		}
	}
	suggest(&complaint, nearest, least);
	return -EINVAL;
}

/* Algorithms count whole bytes a second, so a rate of a few bits would become 0, which means something else. */
static bool is_no_rate(const struct vb_cc_parameter *parameter, uint64_t value)
{
	return parameter->kind == VB_QUANTITY_RATE && value > 0 && value < 8;
}

static int set_parameter(struct vb_cc_choice *choice, char *item, char *why, unsigned why_size)
{
	const struct vb_cc_algorithm *algorithm = choice->algorithm;
	char *equals = strchr(item, '=');

	if (!equals) {
		snprintf(why, why_size, "\"%s\" is no parameter with a value: write NAME=VALUE", item);
		return -EINVAL;
	}
	*equals = 0;
	for (unsigned i = 0; i < algorithm->parameter_count; i++) {
		const struct vb_cc_parameter *parameter = &algorithm->parameters[i];
		uint64_t value;
		if (strcmp(parameter->name, item) != 0)
			continue;
		if (parameter->may_be_path && strcmp(equals + 1, "path") == 0) {
			choice->values[i] = VB_CC_PATH;
			return 0;
		}
		if (!vb_quantity_read(parameter->kind, equals + 1, &value)) {
			snprintf(why, why_size, "\"%s\" is not what %s of %s needs, which is %s%s", equals + 1, item,
				algorithm->name, vb_quantity_form(parameter->kind),
				parameter->may_be_path ? ", or path" : "");
			return -EINVAL;
		}
		bool is_small = value < parameter->least || is_no_rate(parameter, value);
		if (is_small || value > parameter->most) {
			snprintf(why, why_size, "%s=%s is too %s for %s", item, equals + 1,
				is_small ? "small" : "large", algorithm->name);
			return -EINVAL;
		}
		choice->values[i] = value;
		return 0;
	}
	return refuse_parameter(algorithm, item, why, why_size);
}

static uint64_t preset(const struct vb_cc_parameter *parameter, bool is_live)
{
	return is_live && parameter->live ? parameter->live : parameter->preset;
}

static int choose(const char *text, bool is_live, struct vb_cc_choice *choice, char *why, unsigned why_size)
{
	struct vb_cc_choice made = { 0 };
	char item[WORD];
	const char *rest = text;

	bool fits = take_item(&rest, item);
	made.algorithm = fits ? find(item) : NULL;
	if (!made.algorithm)
		return refuse_algorithm(item, why, why_size);
	for (unsigned i = 0; i < made.algorithm->parameter_count; i++)
		made.values[i] = preset(&made.algorithm->parameters[i], is_live);
	while (rest) {
		if (!take_item(&rest, item)) {
			snprintf(why, why_size, "\"%s...\" is no parameter with a value", item);
			return -EINVAL;
		}
		int error = set_parameter(&made, item, why, why_size);
		if (error)
			return error;
	}
	*choice = made;
	return 0;
}

int vb_cc_choose(const char *text, struct vb_cc_choice *choice, char *why, unsigned why_size)
{
	return choose(text, false, choice, why, why_size);
}

int vb_cc_choose_live(const char *text, struct vb_cc_choice *choice, char *why, unsigned why_size)
{
	struct vb_cc_choice made;
	int error = choose(text, true, &made, why, why_size);

	if (error)
		return error;
	if (made.algorithm->goes_by == VB_CC_BY_TELEMETRY) {
		snprintf(why, why_size,
			"%s goes by what switches tell of their queues in each packet, and no network does that here; "
			"it is for simulations",
			made.algorithm->name);
		return -EINVAL;
	}
	for (unsigned i = 0; i < made.algorithm->parameter_count; i++)
		if (made.algorithm->parameters[i].may_be_path && made.values[i] == VB_CC_PATH) {
			snprintf(why, why_size,
				"%s=path is for simulations, which know how long each way is: here name a time",
				made.algorithm->parameters[i].name);
			return -EINVAL;
		}
	*choice = made;
	return 0;
}

bool vb_cc_takes_marks_live(const struct vb_cc_algorithm *algorithm)
{
	return algorithm && algorithm != &vb_cc_window && algorithm->goes_by & VB_CC_BY_MARKS;
}
