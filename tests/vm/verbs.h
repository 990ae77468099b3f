// What the programs on stock libibverbs of this folder share: open a device, connect a queue pair, wait for a completion.
#pragma once
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;

// Ends the program where `good` is false. `what`: what was tried.
static void check(int good, const char *what) {
    if (good) return;
    printf("FAILED: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double seconds(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }

// `ctx`, `pd`, a `cq` of `depth`, and an `mr` over `len` bytes, which are returned.
static uint8_t *open_device(const char *name, int depth, size_t len, int rights) {
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (; list && *list && strcmp(ibv_get_device_name(*list), name); list++) {}
    check(list && *list && (ctx = ibv_open_device(*list)), name);
    check((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, depth, NULL, NULL, 0)), "verbs objects");
    uint8_t *memory = aligned_alloc(4096, len);
    check(memory && (mr = ibv_reg_mr(pd, memory, len, rights)), "memory");
    return memory;
}

// The other end of a queue pair, and how it is reached.
struct path { struct ibv_ah_attr to; unsigned mtu, qpn, psn, patience; };

static struct ibv_ah_attr towards(union ibv_gid gid, int own_index) {
    return (struct ibv_ah_attr) { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 64, .sgid_index = own_index } };
}

// `qp`, of `type`, in RESET, as many requests each way as `depth` says.
static void make_qp(enum ibv_qp_type type, unsigned depth) {
    struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .cap = { depth, depth, 1, 1, 0 }, .qp_type = type, .sq_sig_all = 1 };
    check((qp = ibv_create_qp(pd, &init)) != NULL, "create queue pair");
}

// The same for calls that build requests one by one, of RC, each request says whether it is signalled. `operations`: `ibv_qp_create_send_ops_flags`.
static inline void make_qp_ex(unsigned depth, uint64_t operations) {
    struct ibv_qp_init_attr_ex init = { .send_cq = cq, .recv_cq = cq, .cap = { depth, depth, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .pd = pd, .send_ops_flags = operations,
                                        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS };
    check((qp = ibv_create_qp_ex(ctx, &init)) != NULL, "create extended queue pair");
}

// `qp` to RTS, its first request with number `psn`. `rights`: what the other end may; of UD `qkey` instead. An answer has 4.096 us * 2^patience.
static void connect_qp(const struct path *p, uint32_t psn, int rights, uint32_t qkey) {
    int rc = qp->qp_type == IBV_QPT_RC, ud = qp->qp_type == IBV_QPT_UD, mtu = IBV_MTU_256;
    for (unsigned bytes = p->mtu; bytes > 256; bytes /= 2) mtu++;
    struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = rights, .qkey = qkey };
    check(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), "to INIT");
    a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = p->qpn, .rq_psn = p->psn, .max_dest_rd_atomic = 8, .min_rnr_timer = 18, .ah_attr = p->to };
    int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    check(!ibv_modify_qp(qp, &a, IBV_QP_STATE | (ud ? 0 : connected)), "to RTR");
    a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .sq_psn = psn, .timeout = p->patience, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4 };
    int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    check(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | (rc ? reliable : 0)), "to RTS");
}

// The next completion; 0: none within `patience` seconds.
static int completion(struct ibv_wc *c, double patience) {
    for (double end = seconds() + patience; seconds() < end; usleep(500)) {
        int n = ibv_poll_cq(cq, 1, c);
        check(n >= 0, "poll");
        if (n) return 1;
    }
    return 0;
}
