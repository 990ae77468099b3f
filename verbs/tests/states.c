/* Multicast groups, a drained send queue and its event, and the way out of SQ error: two cards in one process, which send to each other. Exits with 1 at the first
   call that does not do what it should. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void line_failed(int line, const char *call, long got, long want)
{
	printf("line %d: %s: %ld (errno %d), not %ld\n", line, call, got, errno, want);
	exit(1);
}
#define IS(call, want) do { long got_ = (long)(call); if (got_ != (long)(want)) line_failed(__LINE__, #call, got_, (long)(want)); } while (0)
#define MADE(p) do { if (!(p)) line_failed(__LINE__, #p, 0, 1); } while (0)

enum { QKEY = 0x1234, LEN = 700, GRH = 40, SLOT = 4096 };

struct card {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	union ibv_gid gid;
	char memory[8 * SLOT];
};

static struct card cards[2];

static void open_card(struct card *c, struct ibv_device *device)
{
	MADE(c->ctx = ibv_open_device(device));
	MADE(c->pd = ibv_alloc_pd(c->ctx));
	MADE(c->cq = ibv_create_cq(c->ctx, 64, NULL, NULL, 0));
	MADE(c->mr = ibv_reg_mr(c->pd, c->memory, sizeof c->memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	IS(ibv_query_gid(c->ctx, 1, 0, &c->gid), 0);
}

static void close_card(struct card *c)
{
	IS(ibv_destroy_cq(c->cq), 0);
	IS(ibv_dereg_mr(c->mr), 0);
	IS(ibv_dealloc_pd(c->pd), 0);
	IS(ibv_close_device(c->ctx), 0);
}

static struct ibv_qp *make(struct card *c, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = c->cq, .recv_cq = c->cq, .qp_type = type, .cap = { 16, 16, 1, 1, 0 }, .sq_sig_all = 1 };
	struct ibv_qp *qp = ibv_create_qp(c->pd, &init);
	MADE(qp);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), 0);
	return qp;
}

/* To RTS; `peer` is not looked at for datagrams. */
static void start(struct ibv_qp *qp, struct ibv_qp *peer, union ibv_gid *to)
{
	int rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1, .min_rnr_timer = 12 };
	if (qp->qp_type != IBV_QPT_UD) {
		rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
		attr.dest_qp_num = peer->qp_num;
		attr.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1, .grh.dgid = *to };
	}
	if (qp->qp_type == IBV_QPT_RC) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	IS(ibv_modify_qp(qp, &attr, rtr), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	IS(ibv_modify_qp(qp, &attr, rts), 0);
}

static int state(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	IS(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

static int modify(struct ibv_qp *qp, int to, int from)
{
	struct ibv_qp_attr attr = { .qp_state = to, .cur_qp_state = from };
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (from ? IBV_QP_CUR_STATE : 0));
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* The next completion, within `seconds`; 0 when none came. */
static int completion(struct card *c, struct ibv_wc *wc, double seconds)
{
	int n;
	for (double end = now() + seconds; (n = ibv_poll_cq(c->cq, 1, wc)) == 0 && now() < end;)
		;
	return n;
}

static void completes(struct card *c, int wr_id, int status)
{
	struct ibv_wc wc;
	IS(completion(c, &wc, 60), 1);
	IS(wc.wr_id, wr_id);
	IS(wc.status, status);
}

static void receive(struct card *c, struct ibv_qp *qp, int wr_id, int slot)
{
	struct ibv_sge into = { (uintptr_t)c->memory + slot * SLOT, SLOT, c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &into, .num_sge = 1 }, *bad;
	IS(ibv_post_recv(qp, &wr, &bad), 0);
}

static void send_bytes(struct card *c, struct ibv_qp *qp, int wr_id, int len, int wrong_key)
{
	struct ibv_sge from = { (uintptr_t)c->memory, len, c->mr->lkey ^ (wrong_key ? 0x80 : 0) };
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	IS(ibv_post_send(qp, &wr, &bad), 0);
}

static void fill(struct card *c, int seed)
{
	for (int i = 0; i < SLOT; i++)
		c->memory[i] = (char)(i * 7 + seed);
}

/* A datagram to `to` reaches those members, in whatever order, and nobody else. */
static void to_group(struct ibv_qp *sender, struct ibv_qp **member, struct ibv_ah *to, int seed, int who)
{
	struct ibv_wc wc;
	fill(&cards[0], seed);
	memset(cards[1].memory, 0x5a, sizeof cards[1].memory);
	struct ibv_sge from = { (uintptr_t)cards[0].memory, LEN, cards[0].mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 99, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = { to, 0xffffff, QKEY } }, *bad;
	IS(ibv_post_send(sender, &wr, &bad), 0);
	completes(&cards[0], 99, IBV_WC_SUCCESS);
	for (int left = who; left;) {
		IS(completion(&cards[1], &wc, 60), 1);
		int m = (int)wc.wr_id;
		IS(wc.status, IBV_WC_SUCCESS);
		IS(left >> m & 1, 1);
		IS(wc.byte_len, LEN + GRH);
		IS(wc.src_qp, sender->qp_num);
		IS(memcmp(cards[1].memory + m * SLOT + GRH, cards[0].memory, LEN), 0);
		left &= ~(1 << m);
		receive(&cards[1], member[m], m, m);
	}
	IS(completion(&cards[1], &wc, 0.3), 0);
}

static void multicast(void)
{
	struct ibv_qp *sender = make(&cards[0], IBV_QPT_UD), *member[3], *reliable = make(&cards[1], IBV_QPT_RC);
	start(sender, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		member[i] = make(&cards[1], IBV_QPT_UD);
		start(member[i], NULL, NULL);
		receive(&cards[1], member[i], i, i);
	}
	union ibv_gid group[2] = { { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 } }, { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 4 } } };
	struct ibv_ah *to[2];
	for (int i = 0; i < 2; i++) {
		struct ibv_ah_attr route = { .is_global = 1, .port_num = 1, .grh.dgid = group[i] };
		MADE(to[i] = ibv_create_ah(cards[0].pd, &route));
	}
	IS(ibv_attach_mcast(member[0], &cards[1].gid, 0), EINVAL);
	IS(ibv_attach_mcast(reliable, &group[0], 0), EINVAL);
	to_group(sender, member, to[0], 1, 0);
	IS(ibv_attach_mcast(member[0], &group[0], 0), 0);
	IS(ibv_attach_mcast(member[1], &group[0], 0), 0);
	IS(ibv_attach_mcast(member[2], &group[1], 0), 0);
	to_group(sender, member, to[0], 2, 3);
	to_group(sender, member, to[1], 3, 4);
	IS(ibv_detach_mcast(member[0], &group[0], 0), 0);
	IS(ibv_detach_mcast(member[0], &group[0], 0) != 0, 1);
	IS(ibv_detach_mcast(member[1], &group[1], 0) != 0, 1);
	to_group(sender, member, to[0], 4, 2);
	/* Who is destroyed leaves; the place is free again. */
	IS(ibv_destroy_qp(member[1]), 0);
	to_group(sender, member, to[0], 5, 0);
	IS(ibv_attach_mcast(member[0], &group[0], 0), 0);
	to_group(sender, member, to[0], 6, 1);
	for (int i = 0; i < 2; i++)
		IS(ibv_destroy_ah(to[i]), 0);
	IS(ibv_destroy_qp(member[0]), 0);
	IS(ibv_destroy_qp(member[2]), 0);
	IS(ibv_destroy_qp(reliable), 0);
	IS(ibv_destroy_qp(sender), 0);
}

/* What has begun is completed before the send queue is drained; the rest, and what is posted then, waits until RTS. Receives go on. */
static void drained(void)
{
	struct ibv_qp *one = make(&cards[0], IBV_QPT_RC), *two = make(&cards[1], IBV_QPT_RC);
	start(one, two, &cards[1].gid);
	start(two, one, &cards[0].gid);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct pollfd events = { .fd = cards[0].ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	struct ibv_wc wc;
	for (int round = 0; round < 2; round++) {
		int done = 0;
		fill(&cards[0], round);
		for (int i = 0; i < 6; i++)
			receive(&cards[1], two, i, i);
		for (int i = 0; i < 5; i++)
			send_bytes(&cards[0], one, i, 4000, 0);
		/* The second time without the event. */
		attr.en_sqd_async_notify = !round;
		IS(ibv_modify_qp(one, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
		IS(one->state, IBV_QPS_SQD);
		if (!round) {
			IS(ibv_get_async_event(cards[0].ctx, &event), 0);
			IS(event.event_type, IBV_EVENT_SQ_DRAINED);
			IS(event.element.qp == one, 1);
			ibv_ack_async_event(&event);
		}
		while (completion(&cards[0], &wc, 1) == 1) {
			IS(wc.status, IBV_WC_SUCCESS);
			IS(wc.wr_id, done++);
		}
		IS(state(one), IBV_QPS_SQD);
		send_bytes(&cards[0], one, 5, 100, 0);
		IS(completion(&cards[0], &wc, 0.5), 0);
		receive(&cards[0], one, 20, 1);
		send_bytes(&cards[1], two, 21, 200, 0);
		completes(&cards[0], 20, IBV_WC_SUCCESS);
		for (int i = 0; i < done; i++)
			completes(&cards[1], i, IBV_WC_SUCCESS);
		completes(&cards[1], 21, IBV_WC_SUCCESS);
		IS(modify(one, IBV_QPS_RTS, IBV_QPS_RTS), EINVAL);
		IS(modify(one, IBV_QPS_RTS, IBV_QPS_SQD), 0);
		IS(state(one), IBV_QPS_RTS);
		for (int i = done; i < 6; i++) {
			completes(&cards[0], i, IBV_WC_SUCCESS);
			completes(&cards[1], i, IBV_WC_SUCCESS);
		}
		for (int i = 0; i < 6; i++)
			IS(memcmp(cards[1].memory + i * SLOT, cards[0].memory, i < 5 ? 4000 : 100), 0);
		IS(poll(&events, 1, 300), 0);
	}
	IS(ibv_destroy_qp(one), 0);
	IS(ibv_destroy_qp(two), 0);
}

/* A failed request stops an unreliable queue pair's sends, not its receives; RTS again, and it sends. A reliable one is in error for good. */
static void out_of_sq_error(void)
{
	struct ibv_qp *one = make(&cards[0], IBV_QPT_UC), *two = make(&cards[1], IBV_QPT_UC);
	start(one, two, &cards[1].gid);
	start(two, one, &cards[0].gid);
	for (int round = 0; round < 2; round++) {
		send_bytes(&cards[0], one, 1, 100, 1);
		send_bytes(&cards[0], one, 2, 100, 0);
		completes(&cards[0], 1, IBV_WC_LOC_PROT_ERR);
		completes(&cards[0], 2, IBV_WC_WR_FLUSH_ERR);
		IS(state(one), IBV_QPS_SQE);
		send_bytes(&cards[0], one, 3, 100, 0);
		completes(&cards[0], 3, IBV_WC_WR_FLUSH_ERR);
		fill(&cards[1], round);
		receive(&cards[0], one, 4, 1);
		send_bytes(&cards[1], two, 5, 2000, 0);
		completes(&cards[0], 4, IBV_WC_SUCCESS);
		completes(&cards[1], 5, IBV_WC_SUCCESS);
		IS(memcmp(cards[0].memory + SLOT, cards[1].memory, 2000), 0);
		IS(modify(one, IBV_QPS_SQD, 0), EINVAL);
		IS(modify(one, IBV_QPS_RTS, IBV_QPS_SQE), 0);
		IS(state(one), IBV_QPS_RTS);
		fill(&cards[0], 50 + round);
		receive(&cards[1], two, 6, 1);
		send_bytes(&cards[0], one, 7, 3000, 0);
		completes(&cards[0], 7, IBV_WC_SUCCESS);
		completes(&cards[1], 6, IBV_WC_SUCCESS);
		IS(memcmp(cards[1].memory + SLOT, cards[0].memory, 3000), 0);
	}
	IS(ibv_destroy_qp(one), 0);
	IS(ibv_destroy_qp(two), 0);
}

int main(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	IS(n, 2);
	for (int i = 0; i < 2; i++)
		open_card(&cards[i], list[i]);
	ibv_free_device_list(list);
	multicast();
	printf("multicast\n");
	drained();
	printf("drained\n");
	out_of_sq_error();
	printf("out of SQ error\n");
	for (int i = 0; i < 2; i++)
		close_card(&cards[i]);
	printf("all as it should be\n");
	return 0;
}
