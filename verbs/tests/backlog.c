/* A listener with room for one request: others come again until it fetches them. Two cards in one process. Exits with 1 at the first call that does not do what it
   should. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void line_failed(int line, const char *call, long got, long want)
{
	printf("line %d: %s: %ld (errno %d), not %ld\n", line, call, got, errno, want);
	exit(1);
}
#define IS(call, want) do { long got_ = (long)(call); if (got_ != (long)(want)) line_failed(__LINE__, #call, got_, (long)(want)); } while (0)

enum { CLIENTS = 3 };

static struct rdma_cm_id *event(struct rdma_event_channel *channel, int kind)
{
	struct rdma_cm_event *e;
	IS(rdma_get_cm_event(channel, &e), 0);
	IS(e->event, kind);
	struct rdma_cm_id *id = e->id;
	rdma_ack_cm_event(e);
	return id;
}

static int ready(struct rdma_event_channel *channel, int ms)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	return poll(&p, 1, ms);
}

int main(void)
{
	alarm(60);
	struct rdma_event_channel *at = rdma_create_event_channel(), *of = rdma_create_event_channel();
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(7471) }, own = { .sin_family = AF_INET };
	inet_pton(AF_INET, "10.0.0.1", &server.sin_addr);
	inet_pton(AF_INET, "10.0.0.2", &own.sin_addr);
	struct rdma_cm_id *listener, *clients[CLIENTS];
	IS(rdma_create_id(at, &listener, NULL, RDMA_PS_TCP), 0);
	IS(rdma_bind_addr(listener, (struct sockaddr *)&server), 0);
	IS(rdma_listen(listener, 1), 0);
	for (int i = 0; i < CLIENTS; i++) {
		IS(rdma_create_id(of, &clients[i], NULL, RDMA_PS_TCP), 0);
		IS(rdma_resolve_addr(clients[i], (struct sockaddr *)&own, (struct sockaddr *)&server, 1000), 0);
		event(of, RDMA_CM_EVENT_ADDR_RESOLVED);
		IS(rdma_resolve_route(clients[i], 1000), 0);
		event(of, RDMA_CM_EVENT_ROUTE_RESOLVED);
		struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7, .qp_num = 100 + i };
		IS(rdma_connect(clients[i], &param), 0);
	}
	/* All have asked, more than once. */
	IS(ready(of, 800), 0);
	/* One waits at a time; the next comes when its client asks again. What a client asked again before it heard of its rejection comes as a request, too. */
	for (int rejected = 0; rejected < CLIENTS;) {
		if (ready(at, 20)) {
			struct rdma_cm_id *id = event(at, RDMA_CM_EVENT_CONNECT_REQUEST);
			IS(ready(at, 0), 0);
			IS(rdma_reject(id, NULL, 0), 0);
			IS(rdma_destroy_id(id), 0);
		}
		if (ready(of, 0)) {
			event(of, RDMA_CM_EVENT_REJECTED);
			rejected++;
		}
	}
	for (int i = 0; i < CLIENTS; i++)
		IS(rdma_destroy_id(clients[i]), 0);
	IS(rdma_destroy_id(listener), 0);
	printf("all as it should be\n");
	return 0;
}
