/* Datagrams over librdmacm on two cards (10.0.0.1 and 10.0.0.2): what is refused, and with which number; questions that are refused, that nobody answers
 * and that are given up; groups. Exits with 1 at the first difference. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(call, want) do { errno = 0; long got_ = (call); if (got_ != (want)) { printf("line %d: %s: %ld (errno %d), not %ld\n", __LINE__, #call, got_, errno, (long)(want)); exit(1); } } while (0)
#define FAILS(call, want) do { errno = 0; int got_ = (call), n_ = errno; if (got_ != -1 || n_ != (want)) { printf("line %d: %s: %d (errno %d), not -1 (errno %d)\n", __LINE__, #call, got_, n_, want); exit(1); } } while (0)

static struct sockaddr *at(const char *ip, int port)
{
	static struct sockaddr_in all[8];
	static int next;
	struct sockaddr_in *a = &all[next++ % 8];
	memset(a, 0, sizeof *a);
	a->sin_family = AF_INET;
	a->sin_port = htons(port);
	inet_pton(AF_INET, ip, &a->sin_addr);
	return (struct sockaddr *)a;
}

static struct rdma_cm_event *event(struct rdma_event_channel *channel, enum rdma_cm_event_type want, int status)
{
	struct rdma_cm_event *e;
	IS(rdma_get_cm_event(channel, &e), 0);
	if (e->event != want || e->status != status) {
		printf("%s (status %d), not %s (%d)\n", rdma_event_str(e->event), e->status, rdma_event_str(want), status);
		exit(1);
	}
	return e;
}

static struct rdma_cm_id *client(struct rdma_event_channel *channel, const char *to, int port)
{
	struct rdma_cm_id *id;
	IS(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	IS(rdma_resolve_addr(id, at("10.0.0.2", 0), at(to, port), 500), 0);
	IS(rdma_ack_cm_event(event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0)), 0);
	IS(rdma_resolve_route(id, 500), 0);
	IS(rdma_ack_cm_event(event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0)), 0);
	return id;
}

int main(void)
{
	struct rdma_event_channel *here = rdma_create_event_channel(), *there = rdma_create_event_channel();
	struct rdma_cm_id *listener, *id, *tcp;
	struct rdma_cm_event *e;
	char data[255];
	memset(data, 'x', sizeof data);

	IS(rdma_create_id(there, &listener, &listener, RDMA_PS_UDP), 0);
	IS(rdma_bind_addr(listener, at("10.0.0.1", 7000)), 0);
	IS(rdma_listen(listener, 1), 0);
	IS(rdma_create_id(there, &id, NULL, RDMA_PS_UDP), 0);
	IS(rdma_bind_addr(id, at("10.0.0.1", 7000)), 0);
	FAILS(rdma_listen(id, 1), EADDRINUSE);
	IS(rdma_destroy_id(id), 0);
	/* Another port space, another service. */
	IS(rdma_create_id(there, &tcp, NULL, RDMA_PS_TCP), 0);
	IS(rdma_bind_addr(tcp, at("10.0.0.1", 7000)), 0);
	IS(rdma_listen(tcp, 1), 0);
	IS(rdma_destroy_id(tcp), 0);

	/* Too much to say; nothing that could be ended. */
	id = client(here, "10.0.0.1", 7000);
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 181 };
	FAILS(rdma_connect(id, &param), EINVAL);
	FAILS(rdma_disconnect(id), EINVAL);
	FAILS(rdma_accept(id, &param), EINVAL);
	unsigned char timeout = 20;
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), EINVAL);

	/* Asked, refused. */
	param.private_data_len = 180;
	IS(rdma_connect(id, &param), 0);
	e = event(there, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *asked = e->id;
	IS(e->listen_id == listener && asked->context == &listener, 1);
	IS(e->param.ud.private_data_len, 180);
	IS(memcmp(e->param.ud.private_data, data, 180), 0);
	IS(((struct sockaddr_in *)rdma_get_peer_addr(asked))->sin_addr.s_addr == inet_addr("10.0.0.2"), 1);
	IS(rdma_ack_cm_event(e), 0);
	IS(rdma_reject(asked, "no", 2), 0);
	FAILS(rdma_reject(asked, NULL, 0), EINVAL);
	IS(rdma_destroy_id(asked), 0);
	e = event(here, RDMA_CM_EVENT_UNREACHABLE, 2);
	IS(memcmp(e->param.ud.private_data, "no", 3), 0);
	IS(rdma_ack_cm_event(e), 0);

	/* Asked again by the same identifier: whoever is destroyed has refused. */
	IS(rdma_connect(id, NULL), 0);
	e = event(there, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	asked = e->id;
	IS(rdma_ack_cm_event(e), 0);
	IS(rdma_destroy_id(asked), 0);
	IS(rdma_ack_cm_event(event(here, RDMA_CM_EVENT_UNREACHABLE, 2)), 0);

	/* Answered, with a queue pair that the program names. */
	IS(rdma_connect(id, NULL), 0);
	e = event(there, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	asked = e->id;
	IS(rdma_ack_cm_event(e), 0);
	memset(&param, 0, sizeof param);
	FAILS(rdma_accept(asked, &param), EINVAL);
	param.qp_num = 0x123456;
	param.private_data = data;
	param.private_data_len = 137;
	FAILS(rdma_accept(asked, &param), EINVAL);
	param.private_data_len = 136;
	IS(rdma_accept(asked, &param), 0);
	FAILS(rdma_accept(asked, &param), EINVAL);
	e = event(here, RDMA_CM_EVENT_ESTABLISHED, 0);
	IS(e->param.ud.qp_num, 0x123456);
	IS(e->param.ud.qkey, RDMA_UDP_QKEY);
	IS(e->param.ud.ah_attr.is_global, 1);
	IS(e->param.ud.ah_attr.grh.dgid.raw[15], 1);
	IS(e->param.ud.private_data_len, 136);
	IS(memcmp(e->param.ud.private_data, data, 136), 0);
	IS(rdma_ack_cm_event(e), 0);
	IS(rdma_destroy_id(asked), 0);
	IS(rdma_destroy_id(id), 0);

	/* Nobody serves there. */
	id = client(here, "10.0.0.1", 7001);
	IS(rdma_connect(id, NULL), 0);
	IS(rdma_ack_cm_event(event(here, RDMA_CM_EVENT_UNREACHABLE, 1)), 0);
	IS(rdma_destroy_id(id), 0);

	/* Nobody is there, and a question that is given up while it is asked. */
	id = client(here, "10.0.0.77", 7000);
	struct rdma_cm_id *given_up = client(here, "10.0.0.77", 7000);
	IS(rdma_connect(given_up, NULL), 0);
	IS(rdma_connect(id, NULL), 0);
	IS(rdma_destroy_id(given_up), 0);
	IS(rdma_ack_cm_event(event(here, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT)), 0);
	IS(rdma_destroy_id(id), 0);

	/* Groups. */
	IS(rdma_create_id(here, &id, NULL, RDMA_PS_UDP), 0);
	struct sockaddr *group = at("239.1.2.3", 0);
	FAILS(rdma_join_multicast(id, group, NULL), EINVAL);
	IS(rdma_bind_addr(id, at("10.0.0.2", 0)), 0);
	FAILS(rdma_join_multicast(id, at("10.0.0.1", 0), NULL), EINVAL);
	FAILS(rdma_leave_multicast(id, group), EADDRNOTAVAIL);
	struct rdma_cm_join_mc_attr_ex join = { .comp_mask = 4, .addr = group };
	FAILS(rdma_join_multicast_ex(id, &join, NULL), ENOTSUP);
	join.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	FAILS(rdma_join_multicast_ex(id, &join, NULL), EINVAL);
	join.comp_mask |= RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	join.join_flags = 2;
	FAILS(rdma_join_multicast_ex(id, &join, NULL), EINVAL);
	join.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	IS(rdma_join_multicast_ex(id, &join, data), 0);
	e = event(here, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	IS(e->param.ud.qp_num, 0xffffff);
	IS(e->param.ud.qkey, RDMA_UDP_QKEY);
	IS(e->param.ud.private_data == data, 1);
	IS(e->param.ud.ah_attr.grh.dgid.raw[12], 239);
	IS(rdma_ack_cm_event(e), 0);
	IS(rdma_leave_multicast(id, group), 0);
	FAILS(rdma_leave_multicast(id, group), EADDRNOTAVAIL);
	IS(rdma_destroy_id(id), 0);
	IS(rdma_create_id(here, &id, NULL, RDMA_PS_TCP), 0);
	IS(rdma_bind_addr(id, at("10.0.0.2", 0)), 0);
	FAILS(rdma_join_multicast(id, group, NULL), EINVAL);
	IS(rdma_destroy_id(id), 0);

	IS(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(here);
	rdma_destroy_event_channel(there);
	puts("all as it should be");
	return 0;
}
