/* Completion queues that change their size under traffic: no completion is lost, none comes twice, none out of order. One card, whose queue pair is connected with itself. First random
 * programs against a model, then three threads. Exits with 1 at the first difference. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define IS(call, want) do { errno = 0; long got_ = (call); if (got_ != (long)(want)) { printf("line %d: %s: %ld (errno %d), not %ld\n", __LINE__, #call, got_, errno, (long)(want)); exit(1); } } while (0)

enum { RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, FIRST = 16, MOST = 2048, DEPTH = 2048, PROGRAMS = 40, STEPS = 60, MESSAGES = 30000 };
static char memory[4096] __attribute__((aligned(4096)));
static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static volatile uint64_t posted, taken;

static uint64_t state = 1;
static unsigned below(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static int post(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = posted, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)memory + 64, mr->rkey } }, *bad;
	int n = ibv_post_send(qp, &wr, &bad);
	if (n == 0)
		posted++;
	return n;
}

/* The next completions, which must be those that are next. */
static int take(int most)
{
	struct ibv_wc wc[64];
	int n = ibv_poll_cq(cq, most < 64 ? most : 64, wc);
	IS(n >= 0, 1);
	for (int i = 0; i < n; i++) {
		IS(wc[i].status, IBV_WC_SUCCESS);
		IS(wc[i].wr_id, taken);
		taken++;
	}
	return n;
}

static void take_all(void)
{
	while (taken < posted)
		take(64);
	IS(take(64), 0);
}

static void made(struct ibv_context *ctx, struct ibv_pd *pd)
{
	cq = ibv_create_cq(ctx, FIRST, NULL, NULL, 0);
	IS(cq != NULL, 1);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { DEPTH, 1, 1, 1, 0 } };
	qp = ibv_create_qp(pd, &init);
	IS(qp != NULL, 1);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS };
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num, .ah_attr = { .is_global = 1, .port_num = 1 } };
	IS(ibv_query_gid(ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7 };
	IS(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
	posted = taken = 0;
}

static void gone(void)
{
	IS(ibv_destroy_qp(qp), 0);
	IS(ibv_destroy_cq(cq), 0);
}

/* A size that is too small for what is posted. It is refused once that has completed, which may take a moment. */
static void too_small(int size)
{
	int before = cq->cqe;
	for (int n; (n = ibv_resize_cq(cq, size)) != EINVAL; usleep(100)) {
		IS(n, 0);
		IS(ibv_resize_cq(cq, before), 0);
	}
	IS(cq->cqe, before);
}

/* Requests, completions and sizes in random order. What may wait is what the queue has room for. */
static void program(struct ibv_context *ctx, struct ibv_pd *pd)
{
	made(ctx, pd);
	for (int step = 0; step < STEPS; step++) {
		unsigned n;
		switch (below(4)) {
		case 0:
		case 1:
			for (n = below(cq->cqe + 1); n > 0 && posted - taken < (unsigned)cq->cqe; n--)
				IS(post(), 0);
			break;
		case 2:
			for (n = below(cq->cqe + 1); n > 0 && taken < posted; n--)
				take(1);
			break;
		default:
			n = 1u << below(13);
			int before = cq->cqe, size = n < 2 ? 2 : n;
			if (size < before && (unsigned)size < posted - taken) {
				too_small(size);
			} else {
				IS(ibv_resize_cq(cq, n), size > MOST ? EOPNOTSUPP : 0);
				IS(cq->cqe, size > MOST ? before : size);
			}
		}
	}
	take_all();
	gone();
}

static void *poster(void *unused)
{
	while (posted < MESSAGES)
		if (posted - taken >= FIRST || post() != 0)
			sched_yield();
	return unused;
}

static void *resizer(void *unused)
{
	unsigned up = 0;
	while (taken < MESSAGES) {
		/* Never below what may wait. */
		IS(ibv_resize_cq(cq, FIRST << (up++ % 8)), 0);
		usleep(100);
	}
	return unused;
}

int main(void)
{
	alarm(60);
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	IS(ctx != NULL, 1);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_mr(pd, memory, sizeof memory, RIGHTS);
	IS(mr != NULL, 1);
	for (int n = 0; n < PROGRAMS; n++)
		program(ctx, pd);

	/* As many as it may grow to wait at once. */
	made(ctx, pd);
	IS(ibv_resize_cq(cq, MOST), 0);
	for (int n = 0; n < MOST; n++)
		IS(post(), 0);
	too_small(MOST / 2);
	take_all();

	posted = taken = 0;
	IS(ibv_resize_cq(cq, FIRST), 0);
	pthread_t threads[2];
	IS(pthread_create(&threads[0], NULL, poster, NULL), 0);
	IS(pthread_create(&threads[1], NULL, resizer, NULL), 0);
	while (taken < MESSAGES)
		take(64);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	take_all();
	gone();

	/* The room of a card is shared: who comes late has what he asked for, and what is given back is there again. */
	struct ibv_cq *many[200];
	int grow = 0;
	for (int n = 0; n < 200; n++) {
		many[n] = ibv_create_cq(ctx, FIRST, NULL, NULL, 0);
		IS(many[n] != NULL, 1);
		int got = ibv_resize_cq(many[n], 1024);
		IS(got == 0 || got == EOPNOTSUPP, 1);
		grow += got == 0;
	}
	IS(grow > 8 && grow < 100, 1);
	for (int n = 0; n < 200; n++)
		IS(ibv_destroy_cq(many[n]), 0);
	made(ctx, pd);
	IS(ibv_resize_cq(cq, 1024), 0);
	gone();

	IS(ibv_dereg_mr(mr), 0);
	IS(ibv_dealloc_pd(pd), 0);
	IS(ibv_close_device(ctx), 0);
	printf("all as it should be\n");
	return 0;
}
