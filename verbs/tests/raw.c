/* Raw packet queue pairs and flows: what programs do wrong, and frames that must or must not arrive, byte by byte. Two cards in one process, 10.0.0.1 sends and 10.0.0.2 receives. Exits with 1
 * at the first call that does not do what it should. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IS(call, want) do { errno = 0; long got_ = (long)(call); if (got_ != (long)(want)) { printf("line %d: %s: %ld (errno %d), not %ld\n", __LINE__, #call, got_, errno, (long)(want)); exit(1); } } while (0)

enum { ROOM = 16384, DEPTH = 16 };

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
};

static const uint8_t station[2][6] = { { 2, 0xfe, 10, 0, 0, 1 }, { 2, 0xfe, 10, 0, 0, 2 } }, stranger[6] = { 2, 0xfe, 10, 9, 9, 9 }, all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static int to(struct ibv_qp *qp, enum ibv_qp_state state, int more)
{
	struct ibv_qp_attr a = { .qp_state = state, .port_num = 1, .path_mtu = IBV_MTU_1024 };
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | more);
}

static struct ibv_qp *make(struct end *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = e->cq, .recv_cq = e->cq, .cap = { DEPTH, DEPTH, 1, 1, 0 }, .qp_type = type, .sq_sig_all = 1 };
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
	IS(qp != NULL, 1);
	return qp;
}

static void begin(struct end *e, struct ibv_device *device)
{
	e->ctx = ibv_open_device(device);
	IS(e->ctx != NULL, 1);
	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 4 * DEPTH, NULL, NULL, 0);
	e->memory = aligned_alloc(4096, ROOM);
	e->mr = ibv_reg_mr(e->pd, e->memory, ROOM, IBV_ACCESS_LOCAL_WRITE);
	IS(e->mr != NULL, 1);
	e->qp = make(e, IBV_QPT_RAW_PACKET);
	IS(to(e->qp, IBV_QPS_INIT, 0), EINVAL);
	IS(to(e->qp, IBV_QPS_INIT, IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), EINVAL);
	IS(to(e->qp, IBV_QPS_INIT, IBV_QP_PORT), 0);
	IS(to(e->qp, IBV_QPS_RTR, IBV_QP_PATH_MTU), EINVAL);
	IS(to(e->qp, IBV_QPS_RTR, 0), 0);
	IS(to(e->qp, IBV_QPS_RTS, 0), 0);
	IS(to(e->qp, IBV_QPS_SQD, 0), EINVAL);
}

/* The next completion within two seconds. */
static struct ibv_wc next(struct end *e)
{
	struct ibv_wc wc;
	for (int i = 0; i < 20000; i++) {
		if (ibv_poll_cq(e->cq, 1, &wc) == 1) {
			IS(wc.status, IBV_WC_SUCCESS);
			return wc;
		}
		usleep(100);
	}
	printf("no completion\n");
	exit(1);
}

static int post(struct end *e, unsigned len, enum ibv_wr_opcode opcode, unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)e->memory, len, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = len, .opcode = opcode, .sg_list = &sge, .num_sge = 1, .send_flags = flags }, *bad;
	return ibv_post_send(e->qp, &wr, &bad);
}

/* A frame of `len` bytes, of the type for experiments. */
static void send_to(struct end *e, const uint8_t dst[6], unsigned len)
{
	memcpy(e->memory, dst, 6);
	memcpy(e->memory + 6, station[0], 6);
	e->memory[12] = 0x88;
	e->memory[13] = 0xb5;
	for (unsigned i = 14; i < len; i++)
		e->memory[i] = i * 7 + (i >> 8) + len;
	IS(post(e, len, IBV_WR_SEND, 0), 0);
	IS(next(e).wr_id, len);
}

static void receive(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->memory, ROOM, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	memset(e->memory, 0xee, ROOM);
	IS(ibv_post_recv(e->qp, &wr, &bad), 0);
	/* The other end's doorbells may overtake this one on their way to the other card; this end's cannot. What it is answered, the card has seen the receive before. */
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->memory, 4096, 0);
	IS(mr != NULL && ibv_dereg_mr(mr) == 0, 1);
}

/* The frame that was sent last is the next one that arrives. */
static void arrives(struct end *from, struct end *at, unsigned len)
{
	struct ibv_wc wc = next(at);
	IS(wc.opcode, IBV_WC_RECV);
	IS(wc.byte_len, len);
	IS(memcmp(at->memory, from->memory, len), 0);
	IS(at->memory[len], 0xee);
}

struct rule { struct ibv_flow_attr attr; struct ibv_flow_spec_eth eth; };

static struct rule rule(const uint8_t dst[6])
{
	struct rule r = { .attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof r, .num_of_specs = 1, .port = 1 }, .eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof r.eth } };
	memcpy(r.eth.val.dst_mac, dst, 6);
	memset(r.eth.mask.dst_mac, 0xff, 6);
	return r;
}

static void no_flow(struct ibv_qp *qp, struct rule r, int number)
{
	errno = 0;
	IS(ibv_create_flow(qp, &r.attr) == NULL && errno == number, 1);
}

static void wrong(struct end *e)
{
	struct rule good = rule(station[1]), r = good;
	struct ibv_qp *rc = make(e, IBV_QPT_RC);
	no_flow(rc, good, EINVAL);
	IS(ibv_destroy_qp(rc), 0);
	r.attr.port = 2;
	no_flow(e->qp, r, EINVAL);
	r = good, r.attr.comp_mask = 1;
	no_flow(e->qp, r, EINVAL);
	r = good, r.eth.size = 8;
	no_flow(e->qp, r, EINVAL);
	/* What the card does not tell apart. */
	no_flow(e->qp, rule(stranger), EOPNOTSUPP);
	r = good, r.eth.type = IBV_FLOW_SPEC_IPV4;
	no_flow(e->qp, r, EOPNOTSUPP);
	r = good, r.eth.mask.ether_type = 0xffff;
	no_flow(e->qp, r, EOPNOTSUPP);
	r = good, r.eth.mask.src_mac[5] = 1;
	no_flow(e->qp, r, EOPNOTSUPP);
	r = good, r.eth.mask.dst_mac[5] = 0;
	no_flow(e->qp, r, EOPNOTSUPP);
	r = good, r.attr.type = IBV_FLOW_ATTR_MC_DEFAULT, r.attr.num_of_specs = 0;
	no_flow(e->qp, r, EOPNOTSUPP);
	r = good, r.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	no_flow(e->qp, r, EINVAL);
	struct ibv_srq_init_attr shared = { .attr = { DEPTH, 1, 0 } };
	struct ibv_qp_init_attr on = { .send_cq = e->cq, .recv_cq = e->cq, .cap = { DEPTH, 0, 1, 0, 0 }, .qp_type = IBV_QPT_RAW_PACKET, .srq = ibv_create_srq(e->pd, &shared) };
	IS(on.srq != NULL, 1);
	errno = 0;
	IS(ibv_create_qp(e->pd, &on) == NULL && errno == EOPNOTSUPP, 1);
	IS(ibv_destroy_srq(on.srq), 0);
	IS(post(e, 64, IBV_WR_RDMA_WRITE, 0), EINVAL);
	IS(post(e, 64, IBV_WR_SEND_WITH_IMM, 0), EINVAL);
	IS(post(e, 64, IBV_WR_SEND, IBV_SEND_IP_CSUM), EINVAL);
}

int main(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct end from, at;
	IS(n, 2);
	begin(&from, list[0]);
	begin(&at, list[1]);
	wrong(&at);

	struct rule r = rule(station[1]);
	struct ibv_flow *flow = ibv_create_flow(at.qp, &r.attr);
	IS(flow != NULL, 1);
	no_flow(at.qp, r, EBUSY);
	IS(ibv_destroy_qp(at.qp), EBUSY);
	static const unsigned lengths[] = { 60, 61, 64, 333, 1514, 4000 };
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		receive(&at);
		send_to(&from, stranger, lengths[i]);
		send_to(&from, i % 2 ? station[1] : all, lengths[i]);
		arrives(&from, &at, lengths[i]);
	}
	IS(ibv_destroy_flow(flow), 0);

	/* Nothing goes there any more, until all frames do. */
	receive(&at);
	send_to(&from, station[1], 100);
	usleep(200000);
	r.attr.type = IBV_FLOW_ATTR_SNIFFER, r.attr.num_of_specs = 0;
	flow = ibv_create_flow(at.qp, &r.attr);
	IS(flow != NULL, 1);
	send_to(&from, stranger, 200);
	arrives(&from, &at, 200);
	IS(ibv_destroy_flow(flow), 0);
	r.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
	flow = ibv_create_flow(at.qp, &r.attr);
	IS(flow != NULL, 1);
	receive(&at);
	send_to(&from, stranger, 300);
	send_to(&from, station[1], 301);
	arrives(&from, &at, 301);
	IS(ibv_destroy_flow(flow), 0);
	IS(ibv_destroy_qp(at.qp), 0);
	IS(ibv_destroy_qp(from.qp), 0);
	printf("all as it should be\n");
	return 0;
}
