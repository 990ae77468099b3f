// Linux' side of `ferric interop`: plays every operation on stock libibverbs, one queue pair for each case, and checks every byte.
// The other side leads, over TCP, one line at a time:
//   case TRANSPORT OP ME MTU FAMILY COUNT SIZE QPN PSN GID ADDR RKEY   ME: 1 = this side asks.   Answer: ready QPN PSN GID ADDR RKEY
//   go      this side asks (ME = 1).   Answer: done N, the messages that arrived are for the other side to say
//   check N the other side has asked; N messages, all must be here on a reliable connection.   Answer: ok N, or wrong TEXT
//   end
// peer DEVICE PORT GID-INDEX-4 GID-INDEX-6
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include "verbs.h"

enum { SLOTS = 32, STRIDE = 16384, AREA = SLOTS * STRIDE, QKEY = 0x11111111, GRH = 40 };
enum op { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, FADD, CSWAP, FLUSH, AWRITE, OPS };
static const char *const op_names[OPS] = { "send", "send_imm", "write", "write_imm", "read", "fetch_add", "compare_swap", "flush", "atomic_write" };

static struct ibv_ah *ah;
// Outgoing messages lie in the first half, what comes in the second.
static uint8_t *memory;
static int gid_index[2];
static FILE *wire;

static struct { enum ibv_qp_type type; enum op op; int me; unsigned mtu, family, count, size; uint32_t qpn, psn, rkey; uint64_t addr; union ibv_gid gid; } now;

static void say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vfprintf(wire, format, list);
    va_end(list);
    fputc('\n', wire);
    fflush(wire);
}

// Byte i of message n, as cli/src/party.rs has it; the messages of this side have numbers from 1000 on.
static uint8_t pattern(uint64_t n, uint64_t i) {
    uint64_t x = i * 0x9e3779b9u + n * 0x85ebca6bu + 0x1234;
    return (x >> 13) ^ (x >> 5);
}
static uint8_t *out(unsigned n) { return memory + n % SLOTS * STRIDE; }
static uint8_t *in(unsigned n) { return memory + AREA + n % SLOTS * STRIDE; }
static int differs(const uint8_t *p, uint64_t n, unsigned len) {
    for (unsigned i = 0; i < len; i++) if (p[i] != pattern(n, i)) return 1;
    return 0;
}

static void receive(unsigned n) {
    struct ibv_sge s = { (uintptr_t)in(n), STRIDE, mr->lkey };
    struct ibv_recv_wr w = { .wr_id = n, .sg_list = &s, .num_sge = 1 }, *bad;
    check(!ibv_post_recv(qp, &w, &bad), "post receive");
}

// Of rdma-core from 45 on, behind what older headers have of the structure.
struct newer_qp_ex { struct ibv_qp_ex ex; void (*wr_flush)(struct ibv_qp_ex *, uint32_t rkey, uint64_t addr, size_t len, uint8_t type, uint8_t level); };
enum { QP_EX_WITH_FLUSH = 1 << 11, ACCESS_FLUSH_GLOBAL = 1 << 8, FLUSH_GLOBAL = 1, FLUSH_RANGE = 0, FLUSH_MR = 1 };

// Flush whole regions only.
static int regions;

static int newer(void) { return now.op == FLUSH || now.op == AWRITE; }

static void make(uint32_t psn) {
    if (newer()) make_qp_ex(SLOTS * 2, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | QP_EX_WITH_FLUSH);
    else make_qp(now.type, SLOTS);
    int rc = now.type == IBV_QPT_RC;
    int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | (rc ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0) | (newer() ? ACCESS_FLUSH_GLOBAL : 0);
    // 2.1 s: the other side is a simulation.
    struct path path = { .to = towards(now.gid, gid_index[now.family == 6]), .mtu = now.mtu, .qpn = now.qpn, .psn = now.psn, .patience = 19 };
    connect_qp(&path, psn, rights, QKEY);
    if (now.type == IBV_QPT_UD) check((ah = ibv_create_ah(pd, &path.to)) != NULL, "address handle");
}

static void begin(char *line) {
    char transport[8], op[16], gid[40];
    int n = sscanf(line, "case %7s %15s %d %u %u %u %u %" SCNx32 " %" SCNx32 " %32s %" SCNx64 " %" SCNx32, transport, op, &now.me, &now.mtu, &now.family, &now.count, &now.size,
                   &now.qpn, &now.psn, gid, &now.addr, &now.rkey);
    if (n != 12 || now.count > SLOTS || now.size + GRH > STRIDE || strlen(gid) != 32) { errno = EINVAL; check(0, line); }
    for (int i = 0; i < 16; i++) { unsigned byte; sscanf(gid + 2 * i, "%2x", &byte); now.gid.raw[i] = byte; }
    now.type = !strcmp(transport, "rc") ? IBV_QPT_RC : !strcmp(transport, "uc") ? IBV_QPT_UC : IBV_QPT_UD;
    for (now.op = 0; now.op < OPS && strcmp(op_names[now.op], op); now.op++) {}
    if (now.op == OPS) { errno = EINVAL; check(0, op); }
    for (unsigned s = 0; s < now.count; s++) for (unsigned i = 0; i < now.size; i++) out(s)[i] = pattern(1000 + s, i);
    memset(memory + AREA, 0xee, AREA);
    // Atomics are aimed at the first 8 bytes.
    uint64_t start = 0x1000;
    if (now.op == FADD || now.op == CSWAP) memcpy(in(0), &start, 8);
    uint32_t psn = 0xfffff0 + now.qpn % 7;
    make(psn);
    for (unsigned i = 0; i < now.count; i++) receive(i);
    union ibv_gid own;
    check(!ibv_query_gid(ctx, 1, gid_index[now.family == 6], &own), "query GID");
    char text[33];
    for (int i = 0; i < 16; i++) sprintf(text + 2 * i, "%02x", own.raw[i]);
    say("ready %x %x %s %" PRIx64 " %x", qp->qp_num, psn, text, (uint64_t)(uintptr_t)memory, mr->rkey);
}

// A FLUSH behind a WRITE, or an ATOMIC WRITE, by the calls that alone have them.
static void post_newer(unsigned n) {
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    check(ex != NULL, "extended queue pair");
    uint64_t there = now.addr + AREA + n * STRIDE;
    ibv_wr_start(ex);
    ex->wr_id = n;
    if (now.op == FLUSH) {
        ex->wr_flags = 0;
        ibv_wr_rdma_write(ex, now.rkey, there);
        ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)out(n), now.size);
        ex->wr_flags = IBV_SEND_SIGNALED;
        ((struct newer_qp_ex *)ex)->wr_flush(ex, now.rkey, there, now.size, FLUSH_GLOBAL, n % 2 || regions ? FLUSH_MR : FLUSH_RANGE);
    } else {
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_atomic_write(ex, now.rkey, there, out(n));
    }
    check(!ibv_wr_complete(ex), "post");
}

static void post(unsigned n) {
    if (newer()) { post_newer(n); return; }
    static const enum ibv_wr_opcode codes[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
                                                   IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP };
    int atomic = now.op == FADD || now.op == CSWAP;
    struct ibv_sge s = { (uintptr_t)(now.op == READ || atomic ? in(n) : out(n)), atomic ? 8 : now.size, mr->lkey };
    struct ibv_send_wr w = { .wr_id = n, .sg_list = &s, .num_sge = 1, .opcode = codes[now.op], .imm_data = htonl(n) }, *bad;
    // The other side's memory is laid out as this one's.
    uint64_t there = now.addr + (now.op == READ ? 0 : AREA) + (atomic ? 0 : n * STRIDE);
    if (now.type == IBV_QPT_UD) {
        w.wr.ud.ah = ah;
        w.wr.ud.remote_qpn = now.qpn;
        w.wr.ud.remote_qkey = QKEY;
    } else if (atomic) {
        w.wr.atomic.remote_addr = there;
        w.wr.atomic.rkey = now.rkey;
        w.wr.atomic.compare_add = now.op == FADD ? n + 1 : 0x1000 + n;
        w.wr.atomic.swap = 0x1000 + n + 1;
    } else {
        w.wr.rdma.remote_addr = there;
        w.wr.rdma.rkey = now.rkey;
    }
    check(!ibv_post_send(qp, &w, &bad), "post send");
}

// This side asks. READs and atomics are checked here.
static void go(void) {
    for (unsigned n = 0; n < now.count; n++) post(n);
    uint64_t before = 0x1000;
    for (unsigned n = 0; n < now.count; n++) {
        struct ibv_wc c;
        if (!completion(&c, 60)) { say("wrong request %u of %u does not complete", n, now.count); return; }
        if (c.status != IBV_WC_SUCCESS || c.wr_id != n) { say("wrong request %u ends with %s", (unsigned)c.wr_id, ibv_wc_status_str(c.status)); return; }
        if (now.op == READ && differs(in(n), n, now.size)) { say("wrong READ %u brought other bytes", n); return; }
        if (now.op == FADD || now.op == CSWAP) {
            uint64_t found;
            memcpy(&found, in(n), 8);
            if (found != before) { say("wrong atomic %u found %" PRIx64 ", must be %" PRIx64, n, found, before); return; }
            before += now.op == FADD ? n + 1 : 1;
        }
    }
    say("done %u", now.count);
}

// The other side has asked.
static void compare(unsigned asked) {
    unsigned got = 0;
    int reliable = now.type == IBV_QPT_RC, head = now.type == IBV_QPT_UD ? GRH : 0;
    if (now.op == SEND || now.op == SEND_IMM || now.op == WRITE_IMM) {
        struct ibv_wc c;
        while (got < asked && completion(&c, reliable ? 5 : 1)) {
            unsigned n = c.wc_flags & IBV_WC_WITH_IMM ? ntohl(c.imm_data) : got;
            if (c.status != IBV_WC_SUCCESS) { say("wrong receive ends with %s", ibv_wc_status_str(c.status)); return; }
            if (n >= now.count || c.byte_len != now.size + head) { say("wrong receive of %u bytes, immediate %u", c.byte_len, n); return; }
            const uint8_t *at = now.op == WRITE_IMM ? in(n) : in(c.wr_id) + head;
            if (differs(at, n, now.size)) { say("wrong message %u has other bytes", n); return; }
            got++;
        }
    } else if (now.op == WRITE || newer()) {
        for (unsigned n = 0; n < asked; n++) if (!differs(in(n), n, now.size)) got++;
    } else if (now.op != READ) {
        uint64_t value, want = 0x1000 + (now.op == FADD ? asked * (asked + 1) / 2 : asked);
        memcpy(&value, in(0), 8);
        if (value != want) { say("wrong value %" PRIx64 " after all atomics, must be %" PRIx64, value, want); return; }
        got = asked;
    } else got = asked;
    if (reliable && got != asked) { say("wrong %u of %u messages are here", got, asked); return; }
    say("ok %u", got);
}

static void finish(void) {
    check(!qp || !ibv_destroy_qp(qp), "destroy queue pair");
    check(!ah || !ibv_destroy_ah(ah), "destroy address handle");
    qp = NULL;
    ah = NULL;
    struct ibv_wc c;
    while (ibv_poll_cq(cq, 1, &c) > 0) {}
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 5) { fprintf(stderr, "peer DEVICE PORT GID-INDEX-4 GID-INDEX-6\n"); return 2; }
    gid_index[0] = atoi(argv[3]);
    gid_index[1] = atoi(argv[4]);
    int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    // The right to FLUSH is not known to older kernels and libraries.
    const char *placement = getenv("PLACEMENT");
    if (placement) rights |= ACCESS_FLUSH_GLOBAL;
    regions = placement && !strcmp(placement, "region");
    memory = open_device(argv[1], 4 * SLOTS, 2 * AREA, rights);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])) };
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    check(!bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 1), "listen");
    int s = accept(fd, NULL, NULL);
    check(s >= 0, "accept");
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    FILE *lines = fdopen(dup(s), "r");
    check((wire = fdopen(s, "w")) && lines, "fdopen");
    char line[512];
    unsigned cases = 0;
    while (fgets(line, sizeof line, lines)) {
        if (!strncmp(line, "case ", 5)) { finish(); begin(line); cases++; }
        else if (!strncmp(line, "go", 2)) go();
        else if (!strncmp(line, "check ", 6)) compare(atoi(line + 6));
        else if (!strncmp(line, "end", 3)) { finish(); printf("peer: %u cases played\n", cases); return 0; }
        else { errno = EINVAL; check(0, line); }
    }
    printf("peer: the other side went away after %u cases\n", cases);
    return 1;
}
