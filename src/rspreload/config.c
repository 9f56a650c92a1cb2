/* The programs that get rsockets, the sizes of these, and the summary that counts them.
 *
 * /etc/rdma/rsocket/preload_config has lines of a program's name, a domain (INET, INET6), a type (STREAM, DGRAM) and a
 * protocol (TCP, UDP); * matches any, # begins a comment. Without the file every program gets them. */
#include "rspreload/rspreload.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "os/clock.h"

#define CONFIG "/etc/rdma/rsocket/preload_config"

enum { ENTRIES_MAX = 256, ANY = -1 };

struct entry {
	int domain, type, protocol;
};

static struct entry entries[ENTRIES_MAX]; /* of this program */
static int entry_count;
static bool has_file;
static atomic_uint rsockets, ordinaries;

static int number_of(const char *word, const char *const names[], const int numbers[])
{
	for (int i = 0; names[i]; i++) {
		if (!strcasecmp(word, names[i]))
			return numbers[i];
	}
	return ANY;
}

static bool is_known(const char *word, const char *const names[])
{
	if (!strcmp(word, "*"))
		return true;
	for (int i = 0; names[i]; i++) {
		if (!strcasecmp(word, names[i]))
			return true;
	}
	return false;
}

static void read_line(const char *line)
{
	static const char *const domains[] = { "INET", "INET6", NULL };
	static const char *const types[] = { "STREAM", "DGRAM", NULL };
	static const char *const protocols[] = { "TCP", "UDP", NULL };
	static const int domain_numbers[] = { AF_INET, AF_INET6 }, type_numbers[] = { SOCK_STREAM, SOCK_DGRAM };
	static const int protocol_numbers[] = { IPPROTO_TCP, IPPROTO_UDP };
	char program[256], domain[16], type[16], protocol[16];

	if (sscanf(line, "%255s %15s %15s %15s", program, domain, type, protocol) != 4 || program[0] == '#')
		return;
	if (strcmp(program, "*") && strcasecmp(program, program_invocation_short_name))
		return;
	if (!is_known(domain, domains) || !is_known(type, types) || !is_known(protocol, protocols) ||
		entry_count == ENTRIES_MAX)
		return;
	entries[entry_count++] = (struct entry){
		.domain = number_of(domain, domains, domain_numbers),
		.type = number_of(type, types, type_numbers),
		.protocol = number_of(protocol, protocols, protocol_numbers),
	};
}

static void read_config(void)
{
	char line[512];

	vb_enter();
	FILE *file = fopen(CONFIG, "re");
	has_file = file;
	while (file && fgets(line, sizeof(line), file))
		read_line(line);
	if (file)
		fclose(file);
	vb_leave();
}

static bool matches(const struct entry *entry, int domain, int type, int protocol)
{
	return (entry->domain == ANY || entry->domain == domain) && (entry->type == ANY || entry->type == type) &&
	       (entry->protocol == ANY || entry->protocol == protocol);
}

bool vb_config_wants(int domain, int type, int protocol)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_config);
	if (!protocol)
		protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	for (int i = 0; i < entry_count; i++) {
		if (matches(&entries[i], domain, type, protocol))
			return true;
	}
	return !has_file;
}

static void set_size(int rsocket, int option, const char *name)
{
	const char *text = secure_getenv(name);
	int size = text ? atoi(text) : 0;
	if (size > 0)
		rsetsockopt(rsocket, SOL_RDMA, option, &size, sizeof(size));
}

void vb_config_set_sizes(int rsocket)
{
	set_size(rsocket, RDMA_SQSIZE, "RS_SQ_SIZE");
	set_size(rsocket, RDMA_RQSIZE, "RS_RQ_SIZE");
	set_size(rsocket, RDMA_INLINE, "RS_INLINE");
}

/* ---- The summary ------------------------------------------------------------------------------------------------- */

static bool is_talkative(void)
{
	const char *stats = getenv("VERBENA_STATS");
	return stats && !strcmp(stats, "1");
}

void vb_count_rsocket(void)
{
	rsockets++;
}

/* A program may ask again and again for a socket that cannot be an rsocket. */
static bool was_just_said(void)
{
	static atomic_llong said_ms;
	long long now_ms = vb_clock_ms(), before = atomic_load(&said_ms);

	return (before && now_ms - before < 1000) || !atomic_compare_exchange_strong(&said_ms, &before, now_ms);
}

void vb_count_ordinary(int domain, int type, const char *why)
{
	ordinaries++;
	if (is_talkative() && !was_just_said())
		fprintf(stderr, "verbena: rsockets: %s gets an ordinary socket (%s, %s): %s\n",
			program_invocation_short_name, domain == AF_INET ? "IPv4" : "IPv6",
			type == SOCK_STREAM  ? "stream"
			: type == SOCK_DGRAM ? "datagram"
					     : "raw",
			why);
}

__attribute__((destructor)) static void print_summary(void)
{
	if (is_talkative() && (rsockets || ordinaries))
		fprintf(stderr, "verbena: rsockets: %s had %u rsockets and %u ordinary IP sockets\n",
			program_invocation_short_name, rsockets, ordinaries);
}
