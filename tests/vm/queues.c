// By which queue of an interface frames come. Who sends them is `flows` (tests/vm/flows) at the wire's other end, which is asked for them by a frame.
// queues INTERFACE spread COUNT   asks for COUNT packets, each of another flow; writes "FLOW PROTOCOL SOURCE PORT DESTINATION PORT QUEUE" for each
// queues INTERFACE filter COUNT   asks for COUNT frames that the interface wants and as many that it does not; fails if not all of the first kind come, and none of the others
// queues INTERFACE answers COUNT  sends COUNT packets, each of another flow, by one transmit queue after the other; fails if an answer does not come by the receive queue of the same pair
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// All frames have one length (that of a tag is taken off), of which the filter in the kernel lets so many bytes through as the number of the queue says: a packet socket does not say it otherwise.
enum { LENGTH = 400, SHORTEST = 200, TYPE = 0x88b5, ETHERNET = 14, V4 = 20, V6 = 40, TCP = 20, UDP = 8 };
// Milliseconds: before somebody is asked again, and until what has not come does not come any more.
enum { AGAIN = 1000, QUIET = 3000, PATIENCE = 60000 };
static const uint8_t MAGIC[4] = { 'F', 'R', 'C', '5' }, PEER[6] = { 2, 0, 0, 0, 0, 0x77 };
// What is behind the headers.
struct mark { uint8_t magic[4], kind, rsvd[3]; uint32_t number, count; };

static int fd;
static uint8_t own[6];

static void check(int good, const char *what) {
    if (good) return;
    perror(what);
    exit(1);
}

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void attach(const char *name) {
    struct ifreq request;
    memset(&request, 0, sizeof request);
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    fd = socket(AF_PACKET, SOCK_RAW, 0);
    check(fd >= 0 && !ioctl(fd, SIOCGIFHWADDR, &request), name);
    memcpy(own, request.ifr_hwaddr.sa_data, sizeof own);
    // Bytes that are let through: the queue's number plus one, which is what the kernel has, and the shortest.
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_QUEUE),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, SHORTEST),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    int room = 4 << 20, on = 1;
    check(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), "SO_ATTACH_FILTER");
    check(!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room), "SO_RCVBUFFORCE");
    // Straight to the queue of the processor that sends.
    check(!setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on), "PACKET_QDISC_BYPASS");
    struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(name) };
    check(!bind(fd, (struct sockaddr *)&at, sizeof at), "bind");
}

// The headers' length, which the mark is behind.
static int headers(const uint8_t *frame) {
    int type = frame[12] << 8 | frame[13];
    if (type == ETHERTYPE_IP) return ETHERNET + V4 + (frame[ETHERNET + 9] == IPPROTO_TCP ? TCP : UDP);
    if (type == ETHERTYPE_IPV6) return ETHERNET + V6 + (frame[ETHERNET + 6] == IPPROTO_TCP ? TCP : UDP);
    return type == TYPE ? ETHERNET : -1;
}

// The next frame of ours until `end`, its mark and queue; 0: there is none.
static int next(uint8_t *frame, struct mark *mark, int *queue, long end) {
    struct sockaddr_ll from;
    for (;;) {
        long left = end - now();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (left <= 0 || poll(&p, 1, left) <= 0) return 0;
        socklen_t size = sizeof from;
        ssize_t n = recvfrom(fd, frame, LENGTH, 0, (struct sockaddr *)&from, &size);
        if (n < SHORTEST || from.sll_pkttype == PACKET_OUTGOING) continue;
        int at = headers(frame);
        if (at < 0 || memcmp(frame + at, MAGIC, sizeof MAGIC)) continue;
        memcpy(mark, frame + at, sizeof *mark);
        // The kernel's number is one more, and 0 where nobody has said it.
        *queue = n - SHORTEST - 1;
        check(*queue >= 0, "the driver does not say by which queue a frame has come");
        return 1;
    }
}

static struct mark *begin(uint8_t *frame, int type, int at, char kind, uint32_t number, uint32_t count) {
    memcpy(frame, PEER, 6);
    memcpy(frame + 6, own, 6);
    frame[12] = type >> 8;
    frame[13] = type;
    struct mark *mark = (struct mark *)(frame + at);
    *mark = (struct mark) { .kind = kind, .number = htonl(number), .count = htonl(count) };
    memcpy(mark->magic, MAGIC, sizeof MAGIC);
    return mark;
}

// Asks for frames, under a number that no one else has.
static void ask(char kind, uint32_t number, uint32_t count) {
    uint8_t frame[LENGTH] = {0};
    begin(frame, TYPE, ETHERNET, kind, number, count);
    check(send(fd, frame, sizeof frame, 0) == sizeof frame, "send");
}

static void write_flow(const uint8_t *frame, int queue) {
    int v4 = frame[13] == 0, at = v4 ? ETHERNET + 12 : ETHERNET + 8, half = v4 ? 4 : 16;
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    inet_ntop(v4 ? AF_INET : AF_INET6, frame + at, from, sizeof from);
    inet_ntop(v4 ? AF_INET : AF_INET6, frame + at + half, to, sizeof to);
    const uint8_t *ports = frame + at + 2 * half;
    printf("FLOW %s %s %d %s %d %d\n", frame[v4 ? ETHERNET + 9 : ETHERNET + 6] == IPPROTO_TCP ? "tcp" : "udp", from, ports[0] << 8 | ports[1], to, ports[2] << 8 | ports[3], queue);
}

// Frames that somebody else sends: how many of each kind come.
static int come(char kind, uint32_t count) {
    uint8_t frame[LENGTH], *seen = calloc(count, 1);
    struct mark mark;
    uint32_t wanted = 0, unwanted = 0, twice = 0, mine = now() ^ (uint32_t)getpid() << 16;
    int queue;
    long last = now(), end = last + PATIENCE;
    ask(kind, mine, count);
    for (long asked = last; now() < end;) {
        if (!next(frame, &mark, &queue, now() + AGAIN)) {
            // Nothing has come yet: it may not have been heard. Else all that comes has come.
            if (!wanted && !unwanted && now() - asked >= AGAIN) ask(kind, mine, count), asked = now();
            if ((wanted || unwanted) && now() - last >= QUIET) break;
            continue;
        }
        last = now();
        uint32_t number = ntohl(mark.number);
        if (mark.kind == 'u') unwanted++;
        else if (mark.kind != 'w' || number >= count || seen[number]++) twice++;
        else {
            wanted++;
            if (kind == 'S') write_flow(frame, queue);
        }
        // Of flows nothing is to come behind the last.
        if (kind == 'S' && wanted == count) break;
    }
    free(seen);
    printf("FRAMES %u of %u that are wanted, %u of those that are not, %u that are none of these\n", wanted, count, unwanted, twice);
    return wanted != count || unwanted || twice;
}

// A processor whose frames leave by this queue; -1: there is no such queue.
static int processor(const char *name, int queue) {
    char path[128], mask[64];
    snprintf(path, sizeof path, "/sys/class/net/%s/queues/tx-%d/xps_cpus", name, queue);
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    check(fgets(mask, sizeof mask, f) != NULL, path);
    fclose(f);
    unsigned long bits = strtoul(mask, NULL, 16);
    return bits ? __builtin_ctzl(bits) : queue;
}

static void any(uint8_t *at, int bytes) { while (bytes--) *at++ = 20 + rand() % 100; }

// The checksum of a header of IPv4, whose place is zero.
static void sum(uint8_t *head) {
    uint32_t all = 0;
    for (int i = 0; i < V4; i += 2) all += head[i] << 8 | head[i + 1];
    all = (all & 0xffff) + (all >> 16);
    all = ~(all + (all >> 16));
    head[10] = all >> 8;
    head[11] = all;
}

// Packets of our own, each answered by `flows` at once: so nobody else's flow is noted in between.
static int answers(const char *name, uint32_t count, int queues) {
    uint32_t good = 0, elsewhere = 0;
    for (uint32_t n = 0; n < count; n++) {
        uint8_t frame[LENGTH] = {0}, back[LENGTH];
        int v4 = n & 1, l4 = n & 2 ? TCP : UDP, ip = v4 ? V4 : V6, want = (n >> 2) % queues, queue = -1;
        struct mark mark;
        begin(frame, v4 ? ETHERTYPE_IP : ETHERTYPE_IPV6, ETHERNET + ip + l4, 'a', n, count);
        uint8_t *head = frame + ETHERNET, *length = head + (v4 ? 2 : 4);
        int bytes = LENGTH - ETHERNET - (v4 ? 0 : V6);
        head[0] = v4 ? 0x45 : 0x60;
        length[0] = bytes >> 8;
        length[1] = bytes;
        head[v4 ? 9 : 6] = l4 == TCP ? IPPROTO_TCP : IPPROTO_UDP;
        head[v4 ? 8 : 7] = 64;
        any(head + (v4 ? 12 : 8), v4 ? 8 : 32);
        any(head + ip, 4);
        if (v4) sum(head);
        if (l4 == TCP) head[ip + 12] = TCP / 4 << 4;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(processor(name, want), &set);
        check(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
        for (int tries = 0; tries < 5; tries++) {
            check(send(fd, frame, sizeof frame, 0) == sizeof frame, "send");
            if (next(back, &mark, &queue, now() + AGAIN) && ntohl(mark.number) == n) break;
            queue = -1;
        }
        if (queue == want) good++;
        else if (queue >= 0) elsewhere++;
    }
    printf("ANSWERS %u of %u by the pair that sent, %u by another\n", good, count, elsewhere);
    return good != count;
}

int main(int argc, char **argv) {
    check(argc == 4, "queues INTERFACE spread|filter|answers COUNT");
    uint32_t count = atoi(argv[3]);
    int queues = 0;
    attach(argv[1]);
    srand(now());
    while (processor(argv[1], queues) >= 0) queues++;
    if (!strcmp(argv[2], "answers")) return answers(argv[1], count, queues);
    return come(!strcmp(argv[2], "spread") ? 'S' : 'F', count);
}
