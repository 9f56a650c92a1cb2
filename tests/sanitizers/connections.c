/* connections [exit|fork|leak|overflow|race]: a server and a client of librdmacm, each a thread with an event channel,
 * make connections one after another and exchange messages, asleep on completion events. Prints "done". "exit" ends
 * with all open, "fork" has children that call exit(); the others are bugs that a sanitizer is to find. */
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 5000, CONNECTIONS = 3, MESSAGES = 20 };
static const char *bug = "";
static int unguarded;

static void must(int is_right, const char *what)
{
	if (!is_right) {
		perror(what);
		exit(1);
	}
}

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char *bytes;
};

static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	must(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	if (event->event != type) {
		fprintf(stderr, "%s status %d\n", rdma_event_str(event->event), event->status);
		exit(1);
	}
	if (event->param.conn.private_data_len)
		must(((const char *)event->param.conn.private_data)[0] == 'v', "private data");
	struct rdma_cm_id *id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void open_end(struct end *end)
{
	end->pd = ibv_alloc_pd(end->id->verbs);
	end->comp = ibv_create_comp_channel(end->id->verbs);
	end->cq = ibv_create_cq(end->id->verbs, 32, NULL, end->comp, 0);
	must(end->pd && end->comp && end->cq, "objects");
	must(!ibv_req_notify_cq(end->cq, 0), "notify");
	struct ibv_qp_init_attr attr = { .send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	must(!rdma_create_qp(end->id, end->pd, &attr), "rdma_create_qp");
	end->bytes = malloc(2 * SIZE);
	end->mr = ibv_reg_mr(end->pd, end->bytes, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE);
	must(end->mr != NULL, "reg");
	must(!rdma_post_recv(end->id, NULL, end->bytes + SIZE, SIZE, end->mr), "recv");
}

static void close_end(struct end *end)
{
	rdma_destroy_qp(end->id);
	must(!ibv_dereg_mr(end->mr) && !ibv_destroy_cq(end->cq) && !ibv_destroy_comp_channel(end->comp) &&
			!ibv_dealloc_pd(end->pd),
		"close");
	free(end->bytes);
	must(!rdma_destroy_id(end->id), "destroy id");
}

static void take(struct end *end, int count)
{
	struct ibv_wc wc;
	while (count) {
		int got = ibv_poll_cq(end->cq, 1, &wc);
		must(got >= 0, "poll");
		if (got) {
			must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
			count--;
			continue;
		}
		struct ibv_cq *cq;
		void *context;
		must(!ibv_get_cq_event(end->comp, &cq, &context), "event");
		ibv_ack_cq_events(cq, 1);
		must(!ibv_req_notify_cq(cq, 0), "notify");
	}
}

static void talk(struct end *end, int is_client)
{
	for (int i = 0; i < MESSAGES; i++) {
		if (is_client) {
			memset(end->bytes, i, SIZE);
			must(!rdma_post_send(end->id, NULL, end->bytes, SIZE, end->mr, IBV_SEND_SIGNALED), "send");
			take(end, 2);
		} else {
			take(end, 1);
			memcpy(end->bytes, end->bytes + SIZE, SIZE);
		}
		for (int k = 0; k < SIZE; k++)
			must(end->bytes[SIZE + k] == (char)i, "bytes");
		memset(end->bytes + SIZE, 0xee, SIZE);
		must(!rdma_post_recv(end->id, NULL, end->bytes + SIZE, SIZE, end->mr), "recv");
		if (!is_client) {
			must(!rdma_post_send(end->id, NULL, end->bytes, SIZE, end->mr, IBV_SEND_SIGNALED), "send");
			take(end, 1);
		}
		if (strcmp(bug, "race") == 0)
			unguarded++;
	}
}

static struct rdma_cm_id *listener;
static struct end server;

static void *serve(void *ignored)
{
	struct rdma_conn_param param = { .private_data = "vb", .private_data_len = 2, .rnr_retry_count = 7 };
	for (int i = 0; i < CONNECTIONS; i++) {
		server.id = expect(server.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		open_end(&server);
		must(!rdma_accept(server.id, &param), "accept");
		expect(server.channel, RDMA_CM_EVENT_ESTABLISHED);
		talk(&server, 0);
		expect(server.channel, RDMA_CM_EVENT_DISCONNECTED);
		rdma_disconnect(server.id);
		close_end(&server);
	}
	return NULL;
}

static void have_child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		exit(0);
	must(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

/* To the listener, as a client. */
static void connect_to(struct end *end, const char *port)
{
	struct rdma_conn_param param = {
		.private_data = "vb", .private_data_len = 2, .retry_count = 7, .rnr_retry_count = 7
	};
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;

	must(!rdma_getaddrinfo("127.0.0.1", port, &hints, &to), "rdma_getaddrinfo");
	must(!rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_resolve_addr(end->id, NULL, to->ai_dst_addr, 2000), "rdma_resolve_addr");
	expect(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(end->id, 2000), "rdma_resolve_route");
	expect(end->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_freeaddrinfo(to);
	open_end(end);
	must(!rdma_connect(end->id, &param), "rdma_connect");
	expect(end->channel, RDMA_CM_EVENT_ESTABLISHED);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *to;
	static struct end client;
	char port[8];
	pthread_t thread;

	if (argc > 1)
		bug = argv[1];
	must(!rdma_getaddrinfo("127.0.0.1", "0", &hints, &to), "getaddrinfo");
	server.channel = rdma_create_event_channel();
	must(!rdma_create_id(server.channel, &listener, NULL, RDMA_PS_TCP), "id");
	must(!rdma_bind_addr(listener, to->ai_src_addr), "bind");
	must(!rdma_listen(listener, 8), "listen");
	rdma_freeaddrinfo(to);
	snprintf(port, sizeof(port), "%d", ntohs(rdma_get_src_port(listener)));
	must(!pthread_create(&thread, NULL, serve, NULL), "thread");

	client.channel = rdma_create_event_channel();
	for (int i = 0; i < CONNECTIONS; i++) {
		connect_to(&client, port);
		talk(&client, 1);
		if (strcmp(bug, "exit") == 0) {
			printf("done\n");
			exit(0);
		}
		if (strcmp(bug, "fork") == 0)
			have_child();
		if (strcmp(bug, "overflow") == 0)
			client.bytes[2 * SIZE + argc] = 1;
		if (strcmp(bug, "leak") == 0)
			client.bytes[0] = *strdup("leak");
		rdma_disconnect(client.id);
		expect(client.channel, RDMA_CM_EVENT_DISCONNECTED);
		close_end(&client);
	}
	pthread_join(thread, NULL);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(client.channel);
	rdma_destroy_event_channel(server.channel);
	printf("done\n");
	return 0;
}
