/* See mail.h. */
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>
#include "fabric/holder.h"

#define WIRE_BYTES 370           /* a MAD in its UD packet */
#define RATE       100000000000u /* so that nothing waits for it */
#define LATE_BY    (100 * VB_MS)
#define DAY_SHIFT  27

static struct {
	struct network topology;
	struct fabric *fabric;
	struct mail_user user;
	unsigned under_way;
} mail;

static struct vb_cm_outgoing *copy_of(const struct vb_cm_outgoing *mad)
{
	struct vb_cm_outgoing *copy = malloc(sizeof(*copy));
	if (!copy)
		abort();
	*copy = *mad;
	mail.under_way++;
	return copy;
}

static void let_go(struct vb_cm_outgoing *mad)
{
	free(mad);
	mail.under_way--;
}

/* ---- What the fabric says ---------------------------------------------------------------------------------------- */

static void on_arrival(void *user, uint32_t host, void *cargo, bool is_marked)
{
	struct vb_cm_outgoing mad = *(struct vb_cm_outgoing *)cargo;
	let_go(cargo);
	mail.user.on_mad(host, &mad);
}

static void on_loss(void *user, void *cargo)
{
	let_go(cargo);
}

static void *on_copy(void *user, void *cargo)
{
	return copy_of(cargo);
}

static void on_call(void *user, uint32_t number)
{
	mail.user.on_call(number);
}

/* ---- What is asked of it ----------------------------------------------------------------------------------------- */

/* All that may happen to a MAD happens on the way to the switch. */
static void connect(uint32_t host, const struct mail_conditions *conditions)
{
	const struct network_fault fault = { .loss_ppm = conditions->drop,
		.duplicate_ppm = conditions->twice,
		.late_ppm = conditions->late,
		.late_by = LATE_BY,
		.jitter = conditions->delay };
	uint32_t link = network_connect(&mail.topology, host, network_switch_node(0), RATE, conditions->delay);
	network_set_fault(&mail.topology, link, &fault);
	mail.topology.links[link + 1].fault = NETWORK_NONE;
	mail.topology.links[link + 1].delay = 0;
}

bool mail_open(const struct mail_conditions *conditions, const struct mail_user *user)
{
	static const struct switch_profile profile = { .name = "ideal", .class_count = 1 };
	static const struct nic_profile nic = { .name = "ideal" };
	static const struct fabric_holder holder = { .on_arrival = on_arrival,
		.on_loss = on_loss,
		.on_copy = on_copy,
		.on_call = on_call,
		.day_shift = DAY_SHIFT };
	char why[100] = "no memory";
	mail.user = *user;
	network_add_profile(&mail.topology, &profile);
	network_add_nic(&mail.topology, &nic);
	network_add_switch(&mail.topology, 0, 0, NETWORK_NONE);
	for (unsigned host = 0; host < conditions->hosts; host++) {
		network_add_endpoint(&mail.topology, host, 0);
		connect(host, conditions);
	}
	if (network_finish(&mail.topology, why, sizeof(why)) == 0 &&
		fabric_open(&mail.topology, conditions->seed, &holder, &mail.fabric, why, sizeof(why)) == 0)
		return true;
	fprintf(stderr, "there is no network: %s\n", why);
	return false;
}

void mail_close(void)
{
	fabric_close(mail.fabric);
	network_free(&mail.topology);
	mail.fabric = NULL;
}

void mail_send(unsigned from, unsigned to, const struct vb_cm_outgoing *mad)
{
	fabric_send(mail.fabric,
		&(struct fabric_post){ .from = from, .to = to, .wire_bytes = WIRE_BYTES, .cargo = copy_of(mad) });
}

/* A deadline that has passed is due now: time does not go back. */
void mail_call(vb_time at, uint32_t number)
{
	fabric_call(mail.fabric, at > mail_now() ? at : mail_now(), number);
}

bool mail_step(void)
{
	int rc = fabric_step(mail.fabric);
	if (rc < 0)
		abort();
	return rc;
}

vb_time mail_now(void)
{
	return fabric_now(mail.fabric);
}

unsigned mail_under_way(void)
{
	return mail.under_way;
}
