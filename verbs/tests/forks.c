/* Children of fork: what they may do with their parent's card (nothing, at once) and with cards of their own; what a fork does to registered memory; and a child
   that outlives its parent, whose number is printed last. Two cards. Exits with 1 at the first call that does not do what it should. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void line_failed(int line, const char *call, long got, long want)
{
	printf("line %d: %s: %ld (errno %d), not %ld\n", line, call, got, errno, want);
	fflush(stdout);
	_exit(1);
}
#define IS(call, want) do { long got_ = (long)(call); if (got_ != (long)(want)) line_failed(__LINE__, #call, got_, (long)(want)); } while (0)
#define FAILS(call, want) do { errno = 0; if ((call) != NULL || errno != (want)) line_failed(__LINE__, #call, 0, want); } while (0)
#define MADE(p) do { if (!(p)) line_failed(__LINE__, #p, 0, 1); } while (0)

enum { LEN = 3000, PAGE = 4096 };

struct card {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	char *memory;
};

static void open_card(struct card *c, struct ibv_device *device)
{
	MADE(c->ctx = ibv_open_device(device));
	MADE(c->pd = ibv_alloc_pd(c->ctx));
	MADE(c->cq = ibv_create_cq(c->ctx, 16, NULL, NULL, 0));
	MADE(c->memory = aligned_alloc(PAGE, 2 * PAGE));
	memset(c->memory, 0, 2 * PAGE);
	MADE(c->mr = ibv_reg_mr(c->pd, c->memory, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	IS(ibv_query_gid(c->ctx, 1, 0, &c->gid), 0);
	struct ibv_qp_init_attr init = { .send_cq = c->cq, .recv_cq = c->cq, .qp_type = IBV_QPT_RC, .cap = { 16, 16, 1, 1, 0 }, .sq_sig_all = 1 };
	MADE(c->qp = ibv_create_qp(c->pd, &init));
}

static void start(struct card *c, struct card *peer)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	IS(ibv_modify_qp(c->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .dest_qp_num = peer->qp->qp_num,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = peer->gid } };
	IS(ibv_modify_qp(c->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	IS(ibv_modify_qp(c->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

/* A WRITE of `byte`s: they arrive. */
static void copy(struct card *from, struct card *to, char byte)
{
	memset(from->memory, byte, LEN);
	struct ibv_sge sge = { (uintptr_t)from->memory, LEN, from->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = byte, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = { (uintptr_t)to->memory, to->mr->rkey } };
	IS(ibv_post_send(from->qp, &wr, &bad), 0);
	struct ibv_wc wc;
	int n;
	while ((n = ibv_poll_cq(from->cq, 1, &wc)) == 0)
		;
	IS(n, 1);
	IS(wc.status, IBV_WC_SUCCESS);
	for (int i = 0; i < LEN; i++)
		IS(to->memory[i], byte);
}

static void ends_well(pid_t child)
{
	int status = -1;
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
}

int main(void)
{
	alarm(60);
	IS(ibv_fork_init(), 0);
	IS(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	IS(n, 2);
	static struct card a, b;
	open_card(&a, list[0]);

	pid_t child = fork();
	if (child == 0) {
		alarm(30);
		/* The parent's: refused at once, whatever it is. */
		struct ibv_wc wc;
		struct ibv_port_attr port;
		FAILS(ibv_alloc_pd(a.ctx), EIO);
		FAILS(ibv_reg_mr(a.pd, a.memory, PAGE, IBV_ACCESS_LOCAL_WRITE), EIO);
		int polled;
		while ((polled = ibv_poll_cq(a.cq, 1, &wc)) == 0)
			;
		IS(polled, -1);
		(void)ibv_query_port(a.ctx, 1, &port);
		IS(ibv_destroy_qp(a.qp), 0);
		IS(ibv_dereg_mr(a.mr), 0);
		IS(ibv_destroy_cq(a.cq), 0);
		IS(ibv_dealloc_pd(a.pd), 0);
		IS(ibv_close_device(a.ctx), 0);
		/* The parent has it. */
		FAILS(ibv_open_device(list[0]), EBUSY);
		/* Its own. */
		open_card(&b, list[1]);
		exit(0);
	}
	/* Nothing of what the child does is done to the parent's. */
	struct ibv_pd *pd;
	for (int i = 0; i < 20; i++) {
		MADE(pd = ibv_alloc_pd(a.ctx));
		IS(ibv_dealloc_pd(pd), 0);
	}
	ends_well(child);

	open_card(&b, list[1]);
	start(&a, &b);
	start(&b, &a);
	copy(&a, &b, 1);
	/* Pages shared with a child: the card reads and writes its parent's, whoever writes first. */
	int go[2];
	IS(pipe(go), 0);
	child = fork();
	if (child == 0) {
		char c;
		close(go[1]);
		memset(a.memory, 7, LEN);
		memset(b.memory + PAGE, 7, PAGE);
		IS(read(go[0], &c, 1), 0);
		for (int i = 0; i < LEN; i++) {
			IS(a.memory[i], 7);
			IS(b.memory[i], 1);
		}
		exit(0);
	}
	close(go[0]);
	copy(&a, &b, 2);
	copy(&b, &a, 3);
	close(go[1]);
	ends_well(child);
	copy(&a, &b, 4);

	child = fork();
	if (child == 0) {
		alarm(60);
		for (;;)
			pause();
	}
	printf("all as it should be; a child lives on: %d\n", child);
	fflush(stdout);
	kill(getpid(), 9);
	return 1;
}
