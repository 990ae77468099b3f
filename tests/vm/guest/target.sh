# Linux and the memory target at 10.0.0.1, nobody between them: the kernel finds it by ARP and pings it, then memory.c has everything done that
# rdma_rxe can ask for.
. /common.sh
network eth0 10.0.0.2/24
ping -c 3 -W 20 10.0.0.1 || fail "no answer to a ping"
ping -c 1 -W 20 -s 1472 10.0.0.1 || fail "no answer to a long ping"
/bin/ip neigh show dev eth0
/bin/ip neigh show 10.0.0.1 dev eth0 | grep -q "lladdr 02:fe:11:00:00:01" || fail "ARP has brought another address"
soft_roce eth0
ferric target query 10.0.0.1 --patience 10 || fail "query"
memory rxe0 $(gid_index ffff:0a00) 10.0.0.1 || fail "memory"
ferric target query 10.0.0.1 --patience 10 --json || fail "query"
echo GUEST-PASS
