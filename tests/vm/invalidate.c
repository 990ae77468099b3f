// SEND with invalidate between two machines on stock libibverbs. The server binds a window of type 2, the client writes through it, reads back, and takes its key away with a
// SEND; so in rounds, with two keys in turn. At last the client uses a key that is gone, and must be refused. What the relay between them records is for the replay.
// invalidate -g GID-INDEX -m MTU -p PORT [-r] [SERVER]      -r: the refused access is a READ, else a WRITE. Without SERVER: be one.
#include <arpa/inet.h>
#include <sys/socket.h>
#include "verbs.h"

enum { ROUNDS = 5, WINDOW = 16384, AT = 3 };
// rdma_rxe hands the kernel's flag to programs, whose value is not that of libibverbs.
enum { WITH_INV = IBV_WC_WITH_INV | 1 << 2 };
// An end of the connection, and the window of a round: the numbers that the machines tell each other.
struct hello { uint32_t qpn, psn; union ibv_gid gid; };
struct window { uint64_t addr; uint32_t rkey; };

static uint8_t *memory;
static unsigned mtu = 1024;

static uint8_t pattern(unsigned round, unsigned i) { return i * 29 + (i >> 8) + round * 71 + 5; }
static unsigned sent(unsigned round) { return (unsigned[]) { 0, 33, mtu, 2 * mtu + 5, 3 * mtu }[round]; }

static void tell(int fd, const void *p, size_t len) { check(write(fd, p, len) == (ssize_t)len, "tell"); }
static void hear(int fd, void *p, size_t len) { check(recv(fd, p, len, MSG_WAITALL) == (ssize_t)len, "hear"); }

// A connection to the server, or one from a client.
static int reach(const char *server, int port) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (server) {
        check(inet_pton(AF_INET, server, &at.sin_addr) == 1 && !connect(fd, (struct sockaddr *)&at, sizeof at), "connect");
        return fd;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    check(!bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 1), "listen");
    int s = accept(fd, NULL, NULL);
    check(s >= 0, "accept");
    return s;
}

// The next completion, which must have this outcome.
static struct ibv_wc ended(enum ibv_wc_status status, const char *what) {
    struct ibv_wc c;
    check(completion(&c, 20), what);
    if (c.status != status) { printf("FAILED: %s: %s\n", what, ibv_wc_status_str(c.status)); exit(1); }
    return c;
}

static void post(struct ibv_send_wr *w, enum ibv_wc_status status, const char *what) {
    struct ibv_send_wr *bad;
    check(!ibv_post_send(qp, w, &bad), what);
    ended(status, what);
}

// An access of the client's through a window.
static void use(const struct window *w, enum ibv_wr_opcode opcode, uint64_t at, unsigned len, enum ibv_wc_status status) {
    struct ibv_sge s = { (uintptr_t)memory, len, mr->lkey };
    struct ibv_send_wr request = { .sg_list = &s, .num_sge = 1, .opcode = opcode, .wr.rdma = { .remote_addr = w->addr + at, .rkey = w->rkey } };
    post(&request, status, opcode == IBV_WR_RDMA_READ ? "READ" : "WRITE");
}

static void client(int fd, int refused_read) {
    struct window w;
    for (unsigned n = 0; n < ROUNDS; n++) {
        hear(fd, &w, sizeof w);
        unsigned len = mtu + 7 + n;
        for (unsigned i = 0; i < len; i++) memory[i] = pattern(n, i);
        use(&w, IBV_WR_RDMA_WRITE, AT, len, IBV_WC_SUCCESS);
        memset(memory, 0, len);
        use(&w, IBV_WR_RDMA_READ, AT, len, IBV_WC_SUCCESS);
        for (unsigned i = 0; i < len; i++) check(memory[i] == pattern(n, i), "bytes that were read");
        struct ibv_sge s = { (uintptr_t)memory, sent(n), mr->lkey };
        for (unsigned i = 0; i < s.length; i++) memory[i] = pattern(n + 100, i);
        struct ibv_send_wr take = { .sg_list = &s, .num_sge = s.length > 0, .opcode = IBV_WR_SEND_WITH_INV, .send_flags = n % 2 ? IBV_SEND_SOLICITED : 0, .invalidate_rkey = w.rkey };
        post(&take, IBV_WC_SUCCESS, "SEND with invalidate");
    }
    use(&w, refused_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, AT, 100, IBV_WC_REM_ACCESS_ERR);
}

static void server(int fd) {
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    check(mw != NULL, "window");
    uint32_t keys[2] = { ibv_inc_rkey(mw->rkey), ibv_inc_rkey(ibv_inc_rkey(mw->rkey)) };
    uint8_t *in = memory + WINDOW;
    for (unsigned n = 0; n < ROUNDS; n++) {
        struct ibv_sge s = { (uintptr_t)in, WINDOW, mr->lkey };
        struct ibv_recv_wr r = { .wr_id = n, .sg_list = &s, .num_sge = 1 }, *bad;
        check(!ibv_post_recv(qp, &r, &bad), "post receive");
        struct window w = { (uintptr_t)memory, keys[n % 2] };
        int rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        struct ibv_send_wr bind = { .opcode = IBV_WR_BIND_MW, .bind_mw = { mw, w.rkey, { mr, w.addr, WINDOW, rights } } };
        post(&bind, IBV_WC_SUCCESS, "bind");
        // The next bind names the window by its present key, which rdma_rxe's library does not keep.
        mw->rkey = w.rkey;
        tell(fd, &w, sizeof w);
        struct ibv_wc c = ended(IBV_WC_SUCCESS, "receive");
        check(c.wc_flags & WITH_INV && c.invalidated_rkey == w.rkey, "the key that was invalidated");
        check(c.byte_len == sent(n), "length of the SEND");
        for (unsigned i = 0; i < c.byte_len; i++) check(in[i] == pattern(n + 100, i), "bytes of the SEND");
        for (unsigned i = 0; i < mtu + 7 + n; i++) check(memory[AT + i] == pattern(n, i), "bytes of the WRITE");
    }
}

int main(int argc, char **argv) {
    int option, index = 0, port = 0, refused_read = 0;
    while ((option = getopt(argc, argv, "g:m:p:r")) != -1) {
        switch (option) {
        case 'g': index = atoi(optarg); break;
        case 'm': mtu = atoi(optarg); break;
        case 'p': port = atoi(optarg); break;
        case 'r': refused_read = 1; break;
        default: return 2;
        }
    }
    const char *to = argv[optind];
    memory = open_device("rxe0", 4 * ROUNDS, 2 * WINDOW, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
    make_qp(IBV_QPT_RC, 2 * ROUNDS);
    struct hello own = { qp->qp_num, to ? 0xfffff8 : 0x4711, { { 0 } } }, theirs;
    check(!ibv_query_gid(ctx, 1, index, &own.gid), "query GID");
    int fd = reach(to, port);
    tell(fd, &own, sizeof own);
    hear(fd, &theirs, sizeof theirs);
    struct path path = { towards(theirs.gid, index), mtu, theirs.qpn, theirs.psn, 19 };
    connect_qp(&path, own.psn, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, 0);
    // Neither begins before the other is connected.
    char ready = 1;
    tell(fd, &ready, 1);
    hear(fd, &ready, 1);
    if (to) client(fd, refused_read);
    else server(fd);
    // Neither ends before the other is done.
    tell(fd, &ready, 1);
    hear(fd, &ready, 1);
    printf("invalidate: %d keys taken away\n", ROUNDS);
    return 0;
}
