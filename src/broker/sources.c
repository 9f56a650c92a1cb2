/* See sources.h. Token buckets count in thousandths, so that a millisecond brings a whole number. */
#include "broker/sources.h"

#include <stdlib.h>
#include "base/invariant.h"
#include "broker/keyed_hash.h"

#define CHALLENGE_MS 60000

struct bucket {
	uint32_t spent; /* thousandths of a request; a full bucket has spent nothing */
	uint64_t at;
};

struct source {
	bool is_used;
	struct vb_gid gid;
	uint64_t known_until, heard_at, asked_at; /* milliseconds */
	struct bucket requests, questions;
};

struct sources {
	struct hash_key key;
	struct bucket others, questions, proofs;
	struct source table[SOURCES_SETS][SOURCES_WAYS];
};

/* ---- Buckets ----------------------------------------------------------------------------------------------------- */

static void refill(struct bucket *bucket, uint32_t rate, uint64_t now)
{
	const uint64_t gained = (now - bucket->at) * rate;
	bucket->spent = gained < bucket->spent ? bucket->spent - (uint32_t)gained : 0;
	bucket->at = now;
}

static bool has_one(const struct bucket *bucket, uint32_t burst)
{
	return bucket->spent + 1000 <= burst * 1000;
}

static bool take(struct bucket *bucket, uint32_t burst, uint32_t rate, uint64_t now)
{
	refill(bucket, rate, now);
	if (!has_one(bucket, burst))
		return false;
	bucket->spent += 1000;
	return true;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

/* Any process of this host can send from any address of 127/8, so these count as one source. */
static struct vb_gid whose(const struct vb_gid *gid)
{
	return vb_gid_is_ipv4(gid) && gid->raw[12] == 127 ? vb_gid_from_ipv4(127, 0, 0, 1) : *gid;
}

static struct source *set_of(struct sources *sources, const struct vb_gid *gid)
{
	return sources->table[keyed_hash(&sources->key, gid, 0) % SOURCES_SETS];
}

static struct source *find(struct sources *sources, const struct vb_gid *gid)
{
	const struct vb_gid source = whose(gid);
	struct source *set = set_of(sources, &source);
	for (unsigned i = 0; i < SOURCES_WAYS; i++)
		if (set[i].is_used && vb_gid_equal(&set[i].gid, &source))
			return &set[i];
	return NULL;
}

static bool is_known(const struct source *source, uint64_t now)
{
	return source->is_used && source->known_until > now;
}

/* The entry to replace: an empty one, else the one heard of longest ago, known ones last. */
static bool goes_before(const struct source *a, const struct source *b, uint64_t now)
{
	if (a->is_used != b->is_used)
		return !a->is_used;
	if (is_known(a, now) != is_known(b, now))
		return !is_known(a, now);
	return a->heard_at < b->heard_at;
}

/* NULL: its set is full of known sources, and it is not known. */
static struct source *find_or_add(struct sources *sources, const struct vb_gid *gid, bool will_be_known, uint64_t now)
{
	struct source *source = find(sources, gid);
	if (source) {
		source->heard_at = now;
		return source;
	}
	const struct vb_gid whole = whose(gid);
	struct source *set = set_of(sources, &whole);
	source = set;
	for (unsigned i = 1; i < SOURCES_WAYS; i++)
		if (goes_before(&set[i], source, now))
			source = &set[i];
	if (is_known(source, now) && !will_be_known)
		return NULL;
	assert(will_be_known || !is_known(source, now)); /* unknown sources do not push out known ones */
	*source = (struct source){ .is_used = true, .gid = whole, .heard_at = now };
	return source;
}

void sources_prove(struct sources *sources, const struct vb_gid *gid, uint64_t now)
{
	struct source *source = find_or_add(sources, gid, true, now);
	assert(source);
	source->known_until = now + SOURCES_KNOWN_MS;
}

bool sources_is_known(struct sources *sources, const struct vb_gid *gid, uint64_t now)
{
	const struct source *source = find(sources, gid);
	return source && is_known(source, now);
}

/* ---- Judgement --------------------------------------------------------------------------------------------------- */

/* Proofs are asked for once a quarter of the unknown sources' bucket is spent, so that honest ones are known before it
 * is empty. */
static bool must_prove(struct sources *sources, struct source *source, uint64_t now)
{
	assert(sources->others.spent <= SOURCES_OTHERS_BURST * 1000);
	if (sources->others.spent < SOURCES_OTHERS_BURST / 4 * 1000 ||
		(source && source->asked_at && now < source->asked_at + SOURCES_ASK_AGAIN_MS) ||
		!take(&sources->proofs, SOURCES_PROOFS_BURST, SOURCES_PROOFS_RATE, now))
		return false;
	assert(sources->proofs.spent <= SOURCES_PROOFS_BURST * 1000);
	if (source)
		source->asked_at = now;
	return true;
}

enum sources_verdict sources_take_request(
	struct sources *sources, const struct vb_gid *gid, uint64_t now, bool *must_ask)
{
	struct source *source = find_or_add(sources, gid, false, now);
	assert(!source || source->requests.spent <= SOURCES_KNOWN_BURST * 1000);
	*must_ask = false;
	if (source && is_known(source, now))
		return take(&source->requests, SOURCES_KNOWN_BURST, SOURCES_KNOWN_RATE, now) ? SOURCES_PASS
											     : SOURCES_DROP;
	refill(&sources->others, SOURCES_OTHERS_RATE, now);
	*must_ask = must_prove(sources, source, now);
	if (source && !take(&source->requests, SOURCES_OTHER_BURST, SOURCES_OTHER_RATE, now))
		return SOURCES_WAIT;
	return take(&sources->others, SOURCES_OTHERS_BURST, SOURCES_OTHERS_RATE, now) ? SOURCES_PASS : SOURCES_WAIT;
}

enum sources_verdict sources_take_question(struct sources *sources, const struct vb_gid *gid, uint64_t now)
{
	struct source *source = find_or_add(sources, gid, false, now);
	assert(!source || source->questions.spent <= SOURCES_QUESTION_BURST * 1000);
	assert(sources->questions.spent <= SOURCES_QUESTIONS_BURST * 1000);
	if (source && !take(&source->questions, SOURCES_QUESTION_BURST, SOURCES_QUESTION_RATE, now))
		return SOURCES_DROP;
	if (source && is_known(source, now))
		return SOURCES_PASS;
	return take(&sources->questions, SOURCES_QUESTIONS_BURST, SOURCES_QUESTIONS_RATE, now) ? SOURCES_PASS
											       : SOURCES_DROP;
}

/* ---- Proof ------------------------------------------------------------------------------------------------------- */

uint64_t sources_challenge(const struct sources *sources, const struct vb_gid *gid, uint64_t now)
{
	return keyed_hash(&sources->key, gid, 1 + now / CHALLENGE_MS);
}

bool sources_is_answer(const struct sources *sources, const struct vb_gid *gid, uint64_t number, uint64_t now)
{
	return number == sources_challenge(sources, gid, now) ||
	       (now >= CHALLENGE_MS && number == sources_challenge(sources, gid, now - CHALLENGE_MS));
}

struct sources *sources_create(void)
{
	struct sources *sources = calloc(1, sizeof(*sources));
	if (sources)
		sources->key = hash_key_new();
	return sources;
}

void sources_destroy(struct sources *sources)
{
	free(sources);
}
