/* ibv_wr_flush and ibv_wr_atomic_write: what they do, what is refused, and with which number. One twin, whose queue pair is connected with itself.
 * The headers of Debian 12 do not know FLUSH; its numbers and the place of its function are those of rdma-core 45 and later. Exits with 1 at the first difference. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(call, want) do { errno = 0; long got_ = (call); if (got_ != (want)) { printf("line %d: %s: %ld (errno %d), not %ld\n", __LINE__, #call, got_, errno, (long)(want)); exit(1); } } while (0)
#define MADE(p) IS(!!(p), 1)

struct newer_qp_ex { struct ibv_qp_ex ex; void (*wr_flush)(struct ibv_qp_ex *, uint32_t rkey, uint64_t addr, size_t len, uint8_t type, uint8_t level); };
enum { QP_EX_WITH_FLUSH = 1 << 11, ACCESS_FLUSH_GLOBAL = 1 << 8, ACCESS_FLUSH_PERSISTENT = 1 << 9, GLOBAL = 1, PERSISTENT = 2, RANGE = 0, REGION = 1, WC_FLUSH = 8, WR_FLUSH = 14 };
enum { RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
static uint64_t memory[1024] __attribute__((aligned(4096)));

static struct ibv_context *ctx;
static struct ibv_qp *qp;
static struct ibv_qp_ex *ex;
static struct ibv_cq *cq;

static void connect_with_itself(int rights)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = rights };
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num, .min_rnr_timer = 12, .max_dest_rd_atomic = 1,
				  .ah_attr = { .is_global = 1, .port_num = 1 } };
	IS(ibv_query_gid(ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static struct ibv_wc completion(void)
{
	struct ibv_wc wc;
	int n;
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	IS(n, 1);
	return wc;
}

static void start(uint64_t wr_id)
{
	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
}

/* Number of the call that posts it. */
static int flush(uint32_t rkey, uint64_t addr, size_t len, int type, int level)
{
	start(7);
	((struct newer_qp_ex *)ex)->wr_flush(ex, rkey, addr, len, type, level);
	return ibv_wr_complete(ex);
}

/* Status of a flush that is posted; the queue pair is its own peer, so that one that is refused may complete as flushed. */
static int flushed(uint32_t rkey, uint64_t addr, size_t len, int type, int level)
{
	IS(flush(rkey, addr, len, type, level), 0);
	struct ibv_wc wc = completion();
	if (wc.status == IBV_WC_SUCCESS)
		IS(wc.opcode, WC_FLUSH);
	else
		connect_with_itself(RIGHTS | ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT);
	return wc.status;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	MADE(list && *list && (ctx = ibv_open_device(*list)));
	struct ibv_device_attr_ex device;
	IS(ibv_query_device_ex(ctx, NULL, &device), 0);
	IS(device.device_cap_flags_ex >> 38 & 7, 5); /* FLUSH with global placement, not with persistence; ATOMIC WRITE */
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	MADE(pd && (cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)));
	/* No region is persistent. */
	errno = 0;
	IS(ibv_reg_mr(pd, memory, sizeof memory, RIGHTS | ACCESS_FLUSH_PERSISTENT) == NULL && errno == EOPNOTSUPP, 1);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, RIGHTS | ACCESS_FLUSH_GLOBAL), *closed = ibv_reg_mr(pd, memory, sizeof memory, RIGHTS);
	MADE(mr && closed);
	struct ibv_qp_init_attr_ex init = { .send_cq = cq, .recv_cq = cq, .cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .pd = pd, .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | QP_EX_WITH_FLUSH };
	MADE((qp = ibv_create_qp_ex(ctx, &init)) && (ex = ibv_qp_to_qp_ex(qp)));
	connect_with_itself(RIGHTS | ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT);
	uint64_t at = (uintptr_t)memory, value = 0x1122334455667788;

	/* Two and a WRITE in one batch; the value is taken when the call is made. */
	memory[9] = 99;
	start(1);
	ibv_wr_atomic_write(ex, mr->rkey, at, &value);
	value = 0;
	ex->wr_id = 2;
	ibv_wr_rdma_write(ex, mr->rkey, at + 64);
	ibv_wr_set_sge(ex, mr->lkey, at + 72, 8);
	ex->wr_id = 3;
	((struct newer_qp_ex *)ex)->wr_flush(ex, mr->rkey, at, 72, GLOBAL, RANGE);
	IS(ibv_wr_complete(ex), 0);
	static const int opcodes[] = { IBV_WC_ATOMIC_WRITE, IBV_WC_RDMA_WRITE, WC_FLUSH };
	for (int n = 0; n < 3; n++) {
		struct ibv_wc wc = completion();
		IS(wc.wr_id, n + 1);
		IS(wc.status, IBV_WC_SUCCESS);
		IS(wc.opcode, opcodes[n]);
	}
	IS(memory[0] == 0x1122334455667788 && memory[8] == 99, 1);

	/* What is refused at home. */
	IS(flush(mr->rkey, at, 8, GLOBAL, 2), EINVAL);
	IS(flush(mr->rkey, at, 8, GLOBAL | 4, RANGE), EINVAL);
	IS(flush(mr->rkey, at, 1ul << 32, GLOBAL, RANGE), EINVAL);
	/* By no list of requests. */
	struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)WR_FLUSH, .wr.rdma = { at, mr->rkey } }, *bad;
	IS(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_WRITE;
	IS(ibv_post_send(qp, &wr, &bad), EINVAL);

	/* What the peer refuses. */
	IS(flushed(mr->rkey, 0, 0, GLOBAL, REGION), IBV_WC_SUCCESS);
	IS(flushed(mr->rkey, 0, 8, GLOBAL, RANGE) != IBV_WC_SUCCESS, 1);
	IS(flushed(closed->rkey, at, 8, GLOBAL, RANGE) != IBV_WC_SUCCESS, 1);
	IS(flushed(mr->rkey, at, 8, PERSISTENT, RANGE) != IBV_WC_SUCCESS, 1);
	IS(flushed(mr->rkey, at, 8, GLOBAL, RANGE), IBV_WC_SUCCESS);
	connect_with_itself(RIGHTS);
	IS(flushed(mr->rkey, at, 8, GLOBAL, RANGE) != IBV_WC_SUCCESS, 1);

	/* Unreliable connections have neither. */
	init.qp_type = IBV_QPT_UC;
	struct ibv_qp *uc = ibv_create_qp_ex(ctx, &init);
	IS(uc == NULL || !ibv_destroy_qp(uc), 1);
	IS(ibv_destroy_qp(qp) | ibv_dereg_mr(mr) | ibv_dereg_mr(closed) | ibv_destroy_cq(cq) | ibv_dealloc_pd(pd) | ibv_close_device(ctx), 0);
	puts("all as it should be");
	return 0;
}
