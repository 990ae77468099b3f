// What DPDK says that a packet's hash is: reads lines "KEY SOURCE PORT DESTINATION PORT" (the key's bytes in hexadecimal with colons, addresses of IPv4 or IPv6), writes one hash for each, in decimal.
// It is built with the headers of DPDK (./tests/vm/fetch --headers), whose rte_softrss is nothing that we wrote.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <rte_config.h>
// Its string functions, of which nothing is used, would want libbsd.
#undef RTE_USE_LIBBSD
#include <rte_thash.h>

// Bytes of the longest key that anybody has, and of one that serves both kinds of addresses.
enum { LONGEST = 64, SHORTEST = 40 };

static int key_of(const char *text, uint8_t *key) {
    int n = 0, used;
    unsigned byte;
    for (; n < LONGEST && sscanf(text, "%2x%n", &byte, &used) == 1; n++) {
        key[n] = byte;
        text += used + (text[used] == ':');
    }
    return n;
}

int main(void) {
    char text[3 * LONGEST + 1], from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    unsigned sport, dport;
    while (scanf("%192s %45s %u %45s %u", text, from, &sport, to, &dport) == 5) {
        _Alignas(16) uint8_t key[LONGEST] = {0};
        if (key_of(text, key) < SHORTEST) return 1;
        uint32_t v4[2];
        if (inet_pton(AF_INET, from, &v4[0]) == 1 && inet_pton(AF_INET, to, &v4[1]) == 1) {
            struct rte_ipv4_tuple tuple = { .src_addr = ntohl(v4[0]), .dst_addr = ntohl(v4[1]), .sport = sport, .dport = dport };
            printf("%u\n", rte_softrss((uint32_t *)&tuple, RTE_THASH_V4_L4_LEN, key));
            continue;
        }
        struct rte_ipv6_hdr head;
        if (inet_pton(AF_INET6, from, head.src_addr) != 1 || inet_pton(AF_INET6, to, head.dst_addr) != 1) return 1;
        union rte_thash_tuple tuple;
        rte_thash_load_v6_addrs(&head, &tuple);
        tuple.v6.sport = sport;
        tuple.v6.dport = dport;
        printf("%u\n", rte_softrss((uint32_t *)&tuple, RTE_THASH_V6_L4_LEN, key));
    }
    return ferror(stdin);
}
