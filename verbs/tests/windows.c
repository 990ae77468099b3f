/* Windows, regions that are registered anew, thread and parent domains, queues that change their size: what is refused, and with which number.
 * Symbols that newer libraries ask for. One twin, whose queue pair is connected with itself. Exits with 1 at the first difference. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(call, want) do { errno = 0; long got_ = (call); if (got_ != (want)) { printf("line %d: %s: %ld (errno %d), not %ld\n", __LINE__, #call, got_, errno, (long)(want)); exit(1); } } while (0)
#define FAILS(call, want) do { errno = 0; const void *p_ = (call); int n_ = errno; if (p_ || n_ != (want)) { printf("line %d: %s: errno %d, not %d\n", __LINE__, #call, n_, want); exit(1); } } while (0)
/* A region that stays as it was. */
#define STAYS(call, want) do { errno = 0; int got_ = (call), n_ = errno; if (got_ != IBV_REREG_MR_ERR_INPUT || n_ != (want)) { printf("line %d: %s: %d (errno %d), not errno %d\n", __LINE__, #call, got_, n_, want); exit(1); } } while (0)
#define MADE(p) IS((p) != NULL, 1)

enum { RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
static char memory[8192] __attribute__((aligned(4096))), other[8192] __attribute__((aligned(4096)));

static struct ibv_qp *qp;
static struct ibv_cq *cq;

static int post(struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;
	wr.send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(qp, &wr, &bad);
}

static int bind2(struct ibv_mw *mw, uint32_t rkey, struct ibv_mr *mr, void *addr, uint64_t length, unsigned int access)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)addr, length, access };
	return post(wr);
}

/* The queue pair is its own peer: a write that is refused may complete as flushed. */
static struct ibv_wc completion(void)
{
	struct ibv_wc wc;
	int n;
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	IS(n, 1);
	return wc;
}

static int write_to(struct ibv_mr *mr, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 8, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .wr.rdma = { addr, rkey } };
	IS(post(wr), 0);
	return completion().status;
}

static void connect_with_itself(struct ibv_context *ctx)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS };
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num, .min_rnr_timer = 12, .max_dest_rd_atomic = 1,
				  .ah_attr = { .is_global = 1, .port_num = 1 } };
	IS(ibv_query_gid(ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void symbols(void)
{
	static const char version[] = "IBVERBS_PRIVATE_34";
	const char *(*name)(int) = dlvsym(RTLD_DEFAULT, "ibv_wr_opcode_str", version);
	MADE(name);
	IS(strcmp(name(IBV_WR_BIND_MW), "bind-mw"), 0);
	IS(strcmp(name(IBV_WR_RDMA_WRITE), "rdma-write"), 0);
	/* Between those that there are, behind them, and no number of one. */
	IS(strcmp(name(12), "unknown"), 0);
	IS(strcmp(name(16), "unknown"), 0);
	IS(strcmp(name(-1), "unknown"), 0);
	MADE(dlvsym(RTLD_DEFAULT, "ibv_cmd_create_cq_ex2", version));
}

static void domains(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_td_init_attr none = { 0 }, unknown = { 1 };
	FAILS(ibv_alloc_td(ctx, &unknown), EINVAL);
	struct ibv_td *td = ibv_alloc_td(ctx, &none);
	MADE(td);
	struct ibv_parent_domain_init_attr attr = { .td = td };
	FAILS(ibv_alloc_parent_domain(ctx, &attr), EINVAL);
	attr.pd = pd;
	attr.comp_mask = 4;
	FAILS(ibv_alloc_parent_domain(ctx, &attr), EINVAL);
	attr.comp_mask = 0;
	struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &attr);
	MADE(parent);
	IS(ibv_dealloc_td(td), EBUSY);
	IS(ibv_dealloc_pd(pd), EBUSY);
	struct ibv_mr *mr = ibv_reg_mr(parent, memory, 64, RIGHTS);
	MADE(mr);
	IS(ibv_dealloc_pd(parent), EBUSY);
	IS(ibv_dereg_mr(mr), 0);
	struct ibv_cq_init_attr_ex wanted = { .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = pd };
	FAILS(ibv_create_cq_ex(ctx, &wanted), EINVAL);
	wanted.parent_domain = parent;
	struct ibv_cq_ex *made = ibv_create_cq_ex(ctx, &wanted);
	MADE(made);
	IS(ibv_dealloc_pd(parent), EBUSY);
	IS(ibv_destroy_cq(ibv_cq_ex_to_cq(made)), 0);
	IS(ibv_dealloc_pd(parent), 0);
	IS(ibv_dealloc_td(td), 0);
}

static void anew(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
	MADE(mr);
	uint32_t key = mr->rkey;
	STAYS(ibv_rereg_mr(mr, 8, NULL, NULL, 0, 0), EINVAL);
	STAYS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 64, 0), EINVAL);
	STAYS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 0, 0), EINVAL);
	STAYS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), EINVAL);
	STAYS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, RIGHTS), EINVAL);
	STAYS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	STAYS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 64, 0), EFAULT);
	/* All that changed nothing. */
	IS(write_to(mr, (uintptr_t)memory + 64, key) != IBV_WC_SUCCESS, 1);
	connect_with_itself(ctx);
	IS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS), 0);
	IS(mr->rkey, key);
	strcpy(memory, "before");
	IS(write_to(mr, (uintptr_t)memory + 64, key), IBV_WC_SUCCESS);
	IS(strcmp(memory + 64, "before"), 0);
	strcpy(other, "behind");
	IS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, sizeof other, 0), 0);
	IS(mr->addr == other && mr->length == sizeof other && mr->rkey == key, 1);
	IS(write_to(mr, (uintptr_t)other + 4096, key), IBV_WC_SUCCESS);
	IS(strcmp(other + 4096, "behind"), 0);
	struct ibv_pd *foreign = ibv_alloc_pd(ctx);
	IS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, foreign, NULL, 0, 0), 0);
	IS(mr->pd == foreign, 1);
	IS(ibv_dealloc_pd(foreign), EBUSY);
	IS(write_to(mr, (uintptr_t)other + 4096, key), IBV_WC_LOC_PROT_ERR);
	connect_with_itself(ctx);
	IS(ibv_dereg_mr(mr), 0);
	IS(ibv_dealloc_pd(foreign), 0);
}

static void windows(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, RIGHTS | IBV_ACCESS_MW_BIND);
	MADE(mr);
	FAILS(ibv_alloc_mw(pd, 3), EINVAL);
	FAILS(ibv_alloc_mw(pd, 0), EINVAL);
	struct ibv_mw *one = ibv_alloc_mw(pd, IBV_MW_TYPE_1), *two = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	MADE(one);
	MADE(two);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = { mr, (uintptr_t)memory, sizeof memory, IBV_ACCESS_REMOTE_WRITE } };
	uint32_t key = ibv_inc_rkey(two->rkey);
	/* A window of the other type, no window, another window's key, no bytes, bytes that the region has not, rights that there are not. */
	IS(ibv_bind_mw(qp, two, &bind), EINVAL);
	IS(bind2(one, ibv_inc_rkey(one->rkey), mr, memory, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	IS(bind2(NULL, key, mr, memory, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	IS(bind2(two, key + 256, mr, memory, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	IS(bind2(two, key, mr, memory, 0, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	IS(bind2(two, key, NULL, memory, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	IS(bind2(two, key, mr, memory + 1, sizeof memory, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	IS(bind2(two, key, mr, memory - 1, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	IS(bind2(two, key, mr, memory, 64, IBV_ACCESS_ZERO_BASED), EINVAL);

	/* A window gives a part; its region stays as long as it is bound, and cannot be registered anew. */
	IS(bind2(two, key, mr, memory + 64, 64, IBV_ACCESS_REMOTE_WRITE), 0);
	IS(completion().opcode, IBV_WC_BIND_MW);
	IS(two->rkey, key);
	IS(ibv_dereg_mr(mr), EBUSY);
	STAYS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS), EBUSY);
	IS(write_to(mr, (uintptr_t)memory + 64, key), IBV_WC_SUCCESS);
	IS(write_to(mr, (uintptr_t)memory + 128, key) != IBV_WC_SUCCESS, 1);
	connect_with_itself(ctx);

	/* Type 1: bound anew, and to nothing. */
	IS(ibv_bind_mw(qp, one, &bind), 0);
	IS(completion().status, IBV_WC_SUCCESS);
	key = one->rkey;
	IS(ibv_bind_mw(qp, one, &bind), 0);
	IS(completion().status, IBV_WC_SUCCESS);
	IS(one->rkey, ibv_inc_rkey(key));
	bind.bind_info.length = 0;
	IS(ibv_bind_mw(qp, one, &bind), 0);
	IS(completion().status, IBV_WC_SUCCESS);
	IS(write_to(mr, (uintptr_t)memory + 64, one->rkey) != IBV_WC_SUCCESS, 1);
	connect_with_itself(ctx);

	/* Taken back by its key; what is no window's key is none. */
	two = (ibv_dealloc_mw(two), ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	MADE(two);
	key = ibv_inc_rkey(two->rkey);
	IS(bind2(two, key, mr, memory, 64, IBV_ACCESS_REMOTE_WRITE), 0);
	IS(completion().status, IBV_WC_SUCCESS);
	struct ibv_send_wr inv = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key, .send_flags = IBV_SEND_INLINE };
	IS(post(inv), EINVAL);
	inv.send_flags = 0;
	IS(post(inv), 0);
	IS(completion().opcode, IBV_WC_LOCAL_INV);
	IS(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(pd, memory, sizeof memory, RIGHTS);
	MADE(mr);
	inv.invalidate_rkey = mr->rkey;
	IS(post(inv), 0);
	IS(completion().status, IBV_WC_MW_BIND_ERR);
	connect_with_itself(ctx);
	/* A region to which nothing may be bound. */
	IS(bind2(two, ibv_inc_rkey(two->rkey), mr, memory, 64, IBV_ACCESS_REMOTE_WRITE), 0);
	IS(completion().status, IBV_WC_MW_BIND_ERR);
	connect_with_itself(ctx);
	IS(ibv_dealloc_mw(one), 0);
	IS(ibv_dealloc_mw(two), 0);
	IS(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	MADE(ctx);
	struct ibv_device_attr device;
	IS(ibv_query_device(ctx, &device), 0);
	IS((device.device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0 && device.max_mw > 0, 1);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	MADE(cq);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	qp = ibv_create_qp(pd, &init);
	MADE(qp);
	connect_with_itself(ctx);

	IS(ibv_resize_cq(cq, 0), EINVAL);
	IS(ibv_resize_cq(cq, 1 << 20), EINVAL);
	IS(ibv_resize_cq(cq, 4096), EOPNOTSUPP);
	IS(ibv_resize_cq(cq, 1000), 0);
	IS(cq->cqe, 1024);
	symbols();
	domains(ctx, pd);
	anew(ctx, pd);
	windows(ctx, pd);

	IS(ibv_destroy_qp(qp), 0);
	IS(ibv_destroy_cq(cq), 0);
	IS(ibv_dealloc_pd(pd), 0);
	IS(ibv_close_device(ctx), 0);
	puts("all as it should be");
	return 0;
}
