/* The path to a host, for the doctor: our address and device that lead there, and datagrams to its UDP port 4791 with
 * their outcome. */
#ifndef VB_CLI_WAY_H
#define VB_CLI_WAY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"
#include "host/client/broker.h"
#include "host/settings.h"

struct vb_way {
	struct vb_gid src, dst;
	struct sockaddr_storage address; /* the host's, with the port */
	socklen_t address_length;
	char src_text[INET6_ADDRSTRLEN], dst_text[INET6_ADDRSTRLEN];
	char device[64]; /* our device that has src */
	uint32_t netdev_mtu, mtu;
	uint32_t receive_buffer; /* of our slots, sent in the discovery */
	/* Between vb_way_open and vb_way_close: */
	struct vb_broker *broker;
	struct vb_slot slot;
	int answers[2]; /* a pipe of struct vb_answer */
};

/* 0, or -errno with the reason in words. Asks the name service and the routing table, sends nothing. */
int vb_way_find(struct vb_way *way, const char *host, int family, char *why, size_t why_size);

/* The outcome of an ordinary datagram from us to a UDP port of the host. */
enum vb_knock {
	VB_KNOCK_SILENCE,     /* nothing: open, filtered, or nobody there */
	VB_KNOCK_CLOSED,      /* the host answers that the port is closed */
	VB_KNOCK_UNREACHABLE, /* we or a router cannot reach the host */
	VB_KNOCK_PROHIBITED,  /* a firewall says so */
};

struct vb_knocker {
	int fd; /* -1: no socket could be made */
	uint16_t src_port, port;
	enum vb_knock heard;
	char who[INET6_ADDRSTRLEN]; /* the address that answered, if any */
};

/* Sends the first datagram. Hosts limit the rate of "port closed" answers: knock before anything else. */
void vb_knock_begin(struct vb_knocker *knocker, const struct vb_way *way, uint16_t port);
/* Returns the outcome; if there is none yet, knocks again and waits. */
enum vb_knock vb_knock_end(struct vb_knocker *knocker, const struct vb_way *way, unsigned timeout_ms);
void vb_knock_close(struct vb_knocker *knocker);

/* ---- MADs from our QP1 to the host's, through the broker, to which answers come ---------------------------------- */

/* Takes a slot of the broker, as peers answer only slots. 0, or -errno with the reason in words. */
int vb_way_open(struct vb_way *way, const struct vb_settings *settings, char *why, size_t why_size);
void vb_way_close(struct vb_way *way);

struct vb_answer {
	uint8_t mad[256];
	uint32_t length; /* as received, padding included */
	int64_t at_ns;   /* CLOCK_MONOTONIC */
};

/* length above 256 pads with zero bytes. 0 or -errno; -EMSGSIZE: the interface does not carry it. */
int vb_way_send(const struct vb_way *way, const uint8_t mad[256], uint32_t length);
/* Takes the next answer from the host; false: none came until deadline_ns. */
bool vb_way_receive(const struct vb_way *way, struct vb_answer *answer, int64_t deadline_ns);

#endif
