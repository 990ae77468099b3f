/* Opens as many RC queue pairs as the argument says on the first card, up to RTS and towards the second card, and prints how long that took. Exits with 1 at the first
   call that does not do what it should. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void failed(int line, const char *call)
{
	printf("line %d: %s (errno %d)\n", line, call, errno);
	exit(1);
}
#define IS(call) do { if ((call) != 0) failed(__LINE__, #call); } while (0)
#define MADE(p) do { if (!(p)) failed(__LINE__, #p); } while (0)

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void open_one(struct ibv_qp **qp, struct ibv_pd *pd, struct ibv_cq *cq, union ibv_gid to)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	MADE(*qp = ibv_create_qp(pd, &init));
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	IS(ibv_modify_qp(*qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .dest_qp_num = 2,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = to } };
	IS(ibv_modify_qp(*qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	IS(ibv_modify_qp(*qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

int main(int argc, char **argv)
{
	int many = argc > 1 ? atoi(argv[1]) : 0, n = 0;
	if (many < 1) {
		fprintf(stderr, "say how many queue pairs\n");
		return 2;
	}
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx[2];
	union ibv_gid to;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	if (n < 2) {
		fprintf(stderr, "there have to be two cards\n");
		return 2;
	}
	for (int i = 0; i < 2; i++)
		MADE(ctx[i] = ibv_open_device(list[i]));
	IS(ibv_query_gid(ctx[1], 1, 0, &to));
	MADE(pd = ibv_alloc_pd(ctx[0]));
	MADE(cq = ibv_create_cq(ctx[0], 16, NULL, NULL, 0));
	struct ibv_qp **qps = calloc(many, sizeof *qps);
	MADE(qps);
	double start = now();
	for (int i = 0; i < many; i++)
		open_one(&qps[i], pd, cq, to);
	printf("%d queue pairs in %.6f s\n", many, now() - start);
	for (int i = 0; i < many; i++)
		IS(ibv_destroy_qp(qps[i]));
	IS(ibv_destroy_cq(cq));
	IS(ibv_dealloc_pd(pd));
	for (int i = 0; i < 2; i++)
		IS(ibv_close_device(ctx[i]));
	free(qps);
	ibv_free_device_list(list);
	return 0;
}
