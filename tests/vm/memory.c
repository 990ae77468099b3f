// An RC peer of the memory target on stock libibverbs: WRITE, READ, SEND and atomics, every byte compared; `ferric target`, which must be in the
// PATH, sets it up. Where a record's fields lie was read in docs/reference.md, as a stranger would.
// memory DEVICE GID-INDEX TARGET-ADDRESS [PATIENCE]   PATIENCE: seconds for an answer of the set-up, 10 by default (a simulation is slow)
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include "verbs.h"

enum { MTU = 1024, WINDOW = 16384, RING = WINDOW, SLOT = 2048, SLOTS = 4, RECORD = 32, DEPTH = 64, GUARD = 16 };
enum { CQE_RECV_IMM = 17, CQE_RECV_WRITE_IMM = 18 };

static const char *address, *patience = "10";
static int gid_index;
static unsigned there;        // the target's queue pair
static uint32_t key;          // over all of its memory
static unsigned messages;     // number of the next one in the ring
// What goes out, what comes in, and what the target's memory must hold.
static uint8_t *out, *in;
static uint8_t shadow[WINDOW];

static void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("memory: FAILED: ");
    vprintf(format, list);
    va_end(list);
    putchar('\n');
    exit(1);
}
static void fill(uint8_t *p, unsigned len) {
    static uint32_t state = 0x2545f491;
    for (unsigned i = 0; i < len; i++) { state ^= state << 13; state ^= state >> 17; state ^= state << 5; p[i] = state >> 11; }
}
static void same(const uint8_t *got, const uint8_t *wanted, unsigned len, const char *what) {
    for (unsigned i = 0; i < len; i++) if (got[i] != wanted[i]) fail("%s: byte %u is %02x, must be %02x", what, i, got[i], wanted[i]);
}

// The number behind `word` in what `ferric target VERB ADDRESS ...` prints.
static unsigned set_up(const char *word, const char *verb, const char *format, ...) {
    char options[128], command[256], line[256];
    va_list list;
    va_start(list, format);
    vsnprintf(options, sizeof options, format, list);
    va_end(list);
    snprintf(command, sizeof command, "ferric target %s %s --patience %s %s", verb, address, patience, options);
    FILE *p = popen(command, "r");
    check(p != NULL, command);
    if (!fgets(line, sizeof line, p)) fail("%s says nothing", command);
    if (pclose(p)) fail("%s", command);
    if (strncmp(line, word, strlen(word))) fail("%s: %s", command, line);
    return strtoul(line + strlen(word), NULL, 0);
}

// A queue pair at both ends.
static void connect_both(void) {
    static uint32_t psn = 0xfffff0;
    make_qp(IBV_QPT_RC, DEPTH);
    there = set_up("queue pair", "qp", "--peer-qpn %u --first-psn %u --mtu %u", qp->qp_num, psn, MTU);
    union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };
    check(inet_pton(AF_INET, address, gid.raw + 12) == 1, address);
    // 4.3 s: the other side may be a simulation.
    struct path path = { .to = towards(gid, gid_index), .mtu = MTU, .qpn = there, .patience = 20 };
    connect_qp(&path, psn, 0, 0);
    psn += 0x1234;
}

static void post(enum ibv_wr_opcode opcode, void *here, unsigned len, uint64_t addr, uint32_t rkey, uint64_t operand, uint64_t swap) {
    struct ibv_sge s = { (uintptr_t)here, len, mr->lkey };
    struct ibv_send_wr w = { .sg_list = &s, .num_sge = len ? 1 : 0, .opcode = opcode, .imm_data = htonl((uint32_t)operand) }, *bad;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        w.wr.atomic.remote_addr = addr;
        w.wr.atomic.rkey = rkey;
        w.wr.atomic.compare_add = operand;
        w.wr.atomic.swap = swap;
    } else {
        w.wr.rdma.remote_addr = addr;
        w.wr.rdma.rkey = rkey;
    }
    check(!ibv_post_send(qp, &w, &bad), "post");
}

// The status of the next request that completes.
static enum ibv_wc_status ended(void) {
    struct ibv_wc c;
    if (!completion(&c, 60)) fail("a request does not complete within a minute");
    return c.status;
}
static void done(const char *what) {
    enum ibv_wc_status s = ended();
    if (s != IBV_WC_SUCCESS) fail("%s ends with: %s", what, ibv_wc_status_str(s));
}
static const uint8_t *read_back(uint64_t addr, unsigned len) {
    memset(in, 0xee, len);
    post(IBV_WR_RDMA_READ, in, len, addr, key, 0, 0);
    done("READ");
    return in;
}
// The target's bytes [addr, addr + len) and their neighbours are as they must be.
static void compare(uint64_t addr, unsigned len, const char *what) {
    uint64_t from = addr < GUARD ? 0 : addr - GUARD, to = addr + len + GUARD > WINDOW ? WINDOW : addr + len + GUARD;
    same(read_back(from, to - from), shadow + from, to - from, what);
}

static void writes(void) {
    static const struct { uint32_t addr, len; } cases[] = { { 0, 1 }, { 7, 1 }, { 0x1003, 2 }, { 0x1ffd, 7 }, { 0x123, 64 }, { 0x2001, 255 }, { 0xff7, 1023 }, { 0x400, 1024 },
                                                            { 0x805, 1025 }, { 0x3ff, 2048 }, { 0x11, 3001 }, { 0x20b, 9999 } };
    // All of it first, so that what lies around is known.
    fill(shadow, WINDOW);
    memcpy(out, shadow, WINDOW);
    post(IBV_WR_RDMA_WRITE, out, WINDOW, 0, key, 0, 0);
    done("WRITE");
    same(read_back(0, WINDOW), shadow, WINDOW, "the whole window");
    printf("memory: WRITE of %u bytes, READ back: verified\n", WINDOW);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t addr = cases[i].addr, len = cases[i].len;
        uint8_t *from = out + i % 5;
        fill(shadow + addr, len);
        memcpy(from, shadow + addr, len);
        post(IBV_WR_RDMA_WRITE, from, len, addr, key, 0, 0);
        done("WRITE");
        compare(addr, len, "READ of what was written");
        printf("memory: WRITE of %u bytes to %#x, READ back with its neighbours: verified\n", len, addr);
    }
    // Many at once, over each other: they arrive in order.
    unsigned n = 24;
    for (unsigned i = 0; i < n; i++) {
        uint32_t addr = 0x700 + 97 * i, len = 150 + 11 * i;
        fill(shadow + addr, len);
        memcpy(out + i * 512, shadow + addr, len);
        post(IBV_WR_RDMA_WRITE, out + i * 512, len, addr, key, 0, 0);
    }
    for (unsigned i = 0; i < n; i++) done("WRITE");
    compare(0x700, 97 * n + 150 + 11 * n, "overlapping WRITEs");
    printf("memory: %u overlapping WRITEs under way at once: verified\n", n);
}

static uint32_t word(const uint8_t *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24; }

// The record of message `messages`, and its bytes, lie in their slot.
static void arrived(const uint8_t *sent, unsigned len, uint32_t imm, unsigned opcode) {
    const uint8_t *slot = read_back(RING + messages % SLOTS * SLOT, RECORD + (sent ? len : 0));
    unsigned index = slot[0] | slot[1] << 8, status = slot[2];
    if (index != (messages & 0xffff) || status || slot[3] != opcode || word(slot + 8) != len || word(slot + 12) != imm || (word(slot + 4) & 0xffffff) != there)
        fail("record of message %u: index %u, status %u, opcode %u, queue pair %u, %u bytes, immediate %#x", messages, index, status, slot[3], word(slot + 4) & 0xffffff, word(slot + 8), word(slot + 12));
    if (sent) same(slot + RECORD, sent, len, "SEND");
    messages++;
}

static void give_back(void) { set_up("slots before", "release", "--before %u", messages & 0xffff); }

static void sends(void) {
    static const unsigned sizes[] = { 0, 1, 333, MTU, 1500, SLOT - RECORD };
    unsigned n = sizeof sizes / sizeof *sizes, first = messages;
    for (unsigned i = 0; i < SLOTS; i++) {
        fill(out + i * SLOT, sizes[i]);
        post(IBV_WR_SEND_WITH_IMM, out + i * SLOT, sizes[i], 0, 0, 0xabcd0000 + i, 0);
    }
    for (unsigned i = 0; i < SLOTS; i++) done("SEND");
    arrived(out, sizes[0], 0xabcd0000, CQE_RECV_IMM);
    // No slot is left: the next one is told to wait, and arrives when slots come back.
    fill(out + SLOTS * SLOT, sizes[SLOTS]);
    post(IBV_WR_SEND_WITH_IMM, out + SLOTS * SLOT, sizes[SLOTS], 0, 0, 0xabcd0000 + SLOTS, 0);
    usleep(300000);
    struct ibv_wc c;
    if (ibv_poll_cq(cq, 1, &c)) fail("a SEND without a slot ends with: %s", ibv_wc_status_str(c.status));
    give_back();
    done("SEND that has waited");
    for (unsigned i = 1; i < SLOTS + 1; i++) arrived(out + i * SLOT, sizes[i], 0xabcd0000 + i, CQE_RECV_IMM);
    give_back();
    for (unsigned i = SLOTS + 1; i < n; i++) {
        fill(out, sizes[i]);
        post(IBV_WR_SEND_WITH_IMM, out, sizes[i], 0, 0, 0xabcd0000 + i, 0);
        done("SEND");
        arrived(out, sizes[i], 0xabcd0000 + i, CQE_RECV_IMM);
    }
    printf("memory: %u SENDs with immediate, one of them made to wait for a slot: records and bytes verified\n", messages - first);
    fill(shadow + 0x333, 1300);
    memcpy(out, shadow + 0x333, 1300);
    post(IBV_WR_RDMA_WRITE_WITH_IMM, out, 1300, 0x333, key, 0x12345678, 0);
    done("WRITE with immediate");
    arrived(NULL, 1300, 0x12345678, CQE_RECV_WRITE_IMM);
    compare(0x333, 1300, "WRITE with immediate");
    give_back();
    printf("memory: WRITE with immediate: record and bytes verified\n");
}

static void atomics(void) {
    uint64_t value = 0xfffffffffffffff0, found;
    memcpy(out, &value, 8);
    post(IBV_WR_RDMA_WRITE, out, 8, 0x1008, key, 0, 0);
    done("WRITE");
    for (uint64_t i = 0; i < 6; i++) {
        int add = i < 3, hit = i != 4;
        uint64_t operand = add ? 7 + i : hit ? value : value ^ 1, swap = 0x0123456789abcdef * (i + 1);
        post(add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP, in, 8, 0x1008, key, operand, swap);
        done(add ? "FETCH_ADD" : "COMPARE_SWAP");
        memcpy(&found, in, 8);
        if (found != value) fail("atomic %u found %" PRIx64 ", must be %" PRIx64, (unsigned)i, found, value);
        value = add ? value + operand : hit ? swap : value;
    }
    memcpy(shadow + 0x1008, &value, 8);
    compare(0x1008, 8, "what the atomics have left");
    printf("memory: 3 FETCH_ADDs and 3 COMPARE_SWAPs, one without its value: verified\n");
}

// What is not allowed is refused, the request completes with `wanted`, and everything works again with new queue pairs.
static void refused(const char *what, enum ibv_wr_opcode opcode, uint64_t addr, unsigned len, uint32_t rkey, enum ibv_wc_status wanted) {
    fill(out, len);
    post(opcode, out, len, addr, rkey, 0, 0);
    enum ibv_wc_status s = ended();
    if (s != wanted) fail("%s ends with: %s", what, ibv_wc_status_str(s));
    check(!ibv_destroy_qp(qp), "destroy queue pair");
    set_up("queue pair", "end-qp", "%u", there);
    connect_both();
    same(read_back(0, WINDOW), shadow, WINDOW, "memory after a refusal");
    printf("memory: %s: %s; nothing changed, a new queue pair works: verified\n", what, ibv_wc_status_str(s));
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 4) { fprintf(stderr, "memory DEVICE GID-INDEX TARGET-ADDRESS [PATIENCE]\n"); return 2; }
    gid_index = atoi(argv[2]);
    address = argv[3];
    if (argc > 4) patience = argv[4];
    out = open_device(argv[1], DEPTH, 4 * WINDOW, IBV_ACCESS_LOCAL_WRITE);
    in = out + 2 * WINDOW;
    double begun = seconds();
    messages = set_up("next message", "ring", "--start %u --slot %u --slots %u", RING, SLOT, SLOTS);
    key = set_up("key", "key", "");
    uint32_t read_only = set_up("key", "key", "--rights read");
    connect_both();
    writes();
    sends();
    atomics();
    refused("WRITE with a key that is none", IBV_WR_RDMA_WRITE, 0x100, 700, key ^ 0x1000000, IBV_WC_REM_ACCESS_ERR);
    refused("WRITE with a key for READs", IBV_WR_RDMA_WRITE, 0x100, 2100, read_only, IBV_WC_REM_ACCESS_ERR);
    refused("READ behind the end of the memory", IBV_WR_RDMA_READ, 0x7fff, 2, key, IBV_WC_REM_ACCESS_ERR);
    set_up("key", "end-key", "%#x", read_only);
    set_up("key", "end-key", "%#x", key);
    check(!ibv_destroy_qp(qp), "destroy queue pair");
    set_up("queue pair", "end-qp", "%u", there);
    printf("memory: all verified, %.1f s\n", seconds() - begun);
    return 0;
}
