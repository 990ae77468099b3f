/* Calls that must fail, each with its error number. Exits with 1 at the first that does not. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

static int line_failed(int line, const char *call, int got, int want)
{
	printf("line %d: %s: %d (errno %d), not %d\n", line, call, got, errno, want);
	exit(1);
}
#define IS(call, want) do { int got_ = (call); if (got_ != (want)) line_failed(__LINE__, #call, got_, want); } while (0)
/* For calls that give a pointer. */
#define FAILS(call, want) do { errno = 0; if ((call) != NULL || errno != (want)) line_failed(__LINE__, #call, 0, want); } while (0)
#define MADE(p) do { if (!(p)) line_failed(__LINE__, #p, 0, 0); } while (0)

static char memory[8192];

int main(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	IS(n, 1);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	MADE(ctx);
	struct ibv_context *again = ibv_open_device(list[0]);
	MADE(again);
	IS(ibv_close_device(again), 0);
	FAILS(ibv_open_device(NULL), ENODEV);

	struct ibv_port_attr port;
	IS(ibv_query_port(ctx, 1, &port), 0);
	IS(ibv_query_port(ctx, 2, &port), EINVAL);
	union ibv_gid gid;
	struct ibv_gid_entry entry;
	IS(ibv_query_gid(ctx, 1, 1, &gid), -1);
	IS(ibv_query_gid_ex(ctx, 1, 1, &entry, 0), ENODATA);
	IS(ibv_query_gid_ex(ctx, 1, 0, &entry, 0), 0);
	IS(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	__be16 pkey;
	IS(ibv_query_pkey(ctx, 1, 1, &pkey), -1);
	IS((int)ibv_query_gid_table(ctx, &entry, 0, 0), -EINVAL);
	IS((int)ibv_query_gid_table(ctx, &entry, 1, 0), 1);

	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	MADE(pd);
	FAILS(ibv_reg_mr(pd, memory, 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	FAILS(ibv_reg_mr(pd, memory, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	FAILS(ibv_reg_mr(pd, memory, 64, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	FAILS(ibv_reg_mr_iova(pd, memory, 64, 1 + (uintptr_t)memory, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	/* Memory that is not there, and a constant that would be written. */
	FAILS(ibv_reg_mr(pd, (void *)4096, 64, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	FAILS(ibv_reg_mr(pd, (void *)"constant", 8, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	MADE(mr);
	IS(ibv_dealloc_pd(pd), EBUSY);

	FAILS(ibv_create_cq(ctx, 0, NULL, NULL, 0), EINVAL);
	FAILS(ibv_create_cq(ctx, 100000, NULL, NULL, 0), EINVAL);
	FAILS(ibv_create_cq(ctx, 16, NULL, NULL, 1), EINVAL);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	MADE(channel);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, channel, 0);
	MADE(cq);
	IS(ibv_destroy_comp_channel(channel), EBUSY);
	IS(ibv_resize_cq(cq, 0), EINVAL);

	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_XRC_SEND, .cap = { 4, 4, 2, 2, 16 } };
	FAILS(ibv_create_qp(pd, &init), EOPNOTSUPP);
	init.qp_type = IBV_QPT_RC;
	init.cap.max_send_wr = 1000000;
	FAILS(ibv_create_qp(pd, &init), EINVAL);
	init.cap.max_send_wr = 4;
	init.cap.max_send_sge = 100;
	FAILS(ibv_create_qp(pd, &init), EINVAL);
	init.cap.max_send_sge = 2;
	init.cap.max_inline_data = 4000;
	FAILS(ibv_create_qp(pd, &init), EINVAL);
	init.cap.max_inline_data = 16;
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	MADE(qp);
	IS(ibv_qp_to_qp_ex(qp) == NULL, 1);
	/* What fits. */
	IS(init.cap.max_send_wr == 4 && init.cap.max_send_sge >= 2 && init.cap.max_recv_sge >= 2 && init.cap.max_inline_data >= 16, 1);
	const struct ibv_qp_cap fits = init.cap;
	IS(ibv_destroy_cq(cq), EBUSY);

	struct ibv_sge sge[64];
	for (int i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr send = { .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad_send = NULL;
	struct ibv_recv_wr recv = { .sg_list = sge, .num_sge = 1 }, *bad_recv = NULL;
	IS(ibv_post_send(qp, &send, &bad_send), EINVAL);
	IS(bad_send == &send, 1);
	IS(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);

	/* Attributes that are missing, too many, wrong, and transitions that are not there. */
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), EINVAL);
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_SQ_PSN), EINVAL);
	attr.port_num = 2;
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), EINVAL);
	attr.port_num = 1;
	attr.qp_state = IBV_QPS_RTS;
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
	/* There is nothing to flush in RESET. */
	attr.qp_state = IBV_QPS_ERR;
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	attr.qp_state = IBV_QPS_INIT;
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num, .ah_attr = { .port_num = 1 } };
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	/* No global route. */
	IS(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = entry.gid;
	attr.max_dest_rd_atomic = 17;
	IS(ibv_modify_qp(qp, &attr, rtr), EINVAL);
	attr.max_dest_rd_atomic = 1;
	IS(ibv_modify_qp(qp, &attr, rtr), 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);

	send.opcode = 77;
	IS(ibv_post_send(qp, &send, &bad_send), EINVAL);
	send.opcode = IBV_WR_TSO;
	IS(ibv_post_send(qp, &send, &bad_send), EINVAL);
	send.opcode = IBV_WR_RDMA_WRITE;
	send.num_sge = fits.max_send_sge + 1;
	IS(ibv_post_send(qp, &send, &bad_send), EINVAL);
	send.num_sge = -1;
	IS(ibv_post_send(qp, &send, &bad_send), EINVAL);
	send.num_sge = 1;
	send.send_flags = 1 << 9;
	IS(ibv_post_send(qp, &send, &bad_send), EINVAL);
	send.send_flags = IBV_SEND_INLINE;
	sge[0].length = fits.max_inline_data + 1;
	IS(ibv_post_send(qp, &send, &bad_send), EINVAL);
	send.send_flags = 0;
	send.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	IS(ibv_post_send(qp, &send, &bad_send), EINVAL);
	recv.num_sge = fits.max_recv_sge + 1;
	IS(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	recv.num_sge = 1;
	for (int i = 0; i < 4; i++)
		IS(ibv_post_recv(qp, &recv, &bad_recv), 0);
	IS(ibv_post_recv(qp, &recv, &bad_recv), ENOMEM);
	IS(bad_recv == &recv, 1);

	/* The error state flushes what was posted. */
	attr.qp_state = IBV_QPS_ERR;
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	struct ibv_wc wc;
	for (int i = 0; i < 4; i++) {
		while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
			;
		IS(n, 1);
		IS(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	struct ibv_qp_attr asked;
	IS(ibv_query_qp(qp, &asked, IBV_QP_STATE, &init), 0);
	IS(asked.qp_state, IBV_QPS_ERR);
	IS((int)init.cap.max_recv_wr, 4);

	struct ibv_ah_attr route = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 1, .dgid = entry.gid } };
	FAILS(ibv_create_ah(pd, &route), EINVAL);

	/* Shared receive queues: sizes, kinds, a limit that is below at once, and the end of a queue pair that takes receives from one. */
	struct ibv_device_attr device;
	IS(ibv_query_device(ctx, &device), 0);
	struct ibv_srq_init_attr_ex shared = { .attr = { device.max_srq_wr + 1, 1, 0 }, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD, .pd = pd };
	FAILS(ibv_create_srq_ex(ctx, &shared), EINVAL);
	shared.attr = (struct ibv_srq_attr){ 4, device.max_srq_sge + 1, 0 };
	FAILS(ibv_create_srq_ex(ctx, &shared), EINVAL);
	shared.attr.max_sge = 1;
	shared.srq_type = IBV_SRQT_XRC;
	FAILS(ibv_create_srq_ex(ctx, &shared), EOPNOTSUPP);
	shared.srq_type = IBV_SRQT_BASIC;
	struct ibv_srq *srq = ibv_create_srq_ex(ctx, &shared);
	MADE(srq);
	IS(shared.attr.max_sge >= 1, 1);
	recv.num_sge = shared.attr.max_sge + 1;
	IS(ibv_post_srq_recv(srq, &recv, &bad_recv), EINVAL);
	recv.num_sge = 1;
	IS(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
	struct ibv_srq_attr limit = { .srq_limit = 5 };
	IS(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), EINVAL);
	IS(ibv_modify_srq(srq, &limit, IBV_SRQ_MAX_WR), EOPNOTSUPP);
	limit.srq_limit = 1;
	IS(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	limit.srq_limit = 0;
	IS(ibv_query_srq(srq, &limit), 0);
	IS(limit.srq_limit == 1 && limit.max_wr == 4 && limit.max_sge == shared.attr.max_sge, 1);
	limit.srq_limit = 2;
	IS(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	struct ibv_async_event event;
	IS(ibv_get_async_event(ctx, &event), 0);
	IS(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	IS(event.element.srq == srq, 1);
	ibv_ack_async_event(&event);
	IS(ibv_query_srq(srq, &limit), 0);
	IS((int)limit.srq_limit, 0);
	for (int i = 1; i < 4; i++)
		IS(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
	bad_recv = NULL;
	IS(ibv_post_srq_recv(srq, &recv, &bad_recv), ENOMEM);
	IS(bad_recv == &recv, 1);
	init.srq = srq;
	struct ibv_qp *one = ibv_create_qp(pd, &init);
	MADE(one);
	IS((int)init.cap.max_recv_wr, 0);
	IS(ibv_destroy_srq(srq), EBUSY);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 };
	IS(ibv_modify_qp(one, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	IS(ibv_post_recv(one, &recv, &bad_recv), EINVAL);
	attr.qp_state = IBV_QPS_ERR;
	IS(ibv_modify_qp(one, &attr, IBV_QP_STATE), 0);
	IS(ibv_get_async_event(ctx, &event), 0);
	IS(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	IS(event.element.qp == one, 1);
	ibv_ack_async_event(&event);
	/* The requests stay with the queue. */
	IS(ibv_poll_cq(cq, 1, &wc), 0);
	IS(ibv_destroy_qp(one), 0);
	IS(ibv_destroy_srq(srq), 0);

	IS(ibv_destroy_qp(qp), 0);
	IS(ibv_destroy_cq(cq), 0);
	IS(ibv_destroy_comp_channel(channel), 0);
	IS(ibv_dereg_mr(mr), 0);
	IS(ibv_dealloc_pd(pd), 0);
	IS(ibv_close_device(ctx), 0);
	ibv_free_device_list(list);
	printf("all as it should be\n");
	return 0;
}
