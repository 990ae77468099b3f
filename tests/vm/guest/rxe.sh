# Linux as the peer: rdma_rxe on the wire, the stock ping-pong programs as servers. eth0: wire, eth1: control.
. /common.sh
network eth0 10.9.0.2/24 4200
network eth1 10.8.0.2/24
# By its path: the shell would take its own ip.
/bin/ip neigh replace 10.9.0.1 lladdr 02:fe:0a:09:00:01 dev eth0 nud permanent
modprobe crc32-pclmul 2>/dev/null || modprobe crc32_generic
modprobe ib_uverbs; modprobe rdma_rxe || fail "rdma_rxe"
rdma link add rxe0 type rxe netdev eth0 || fail "rxe0"
wait_for 10 ibv_devinfo -d rxe0 || fail "ibv_devinfo"
ibv_devinfo -v -d rxe0 | grep -E "state|active_mtu|GID"
echo RXE-READY
for mtu in 1024 4096; do
  ibv_rc_pingpong -d rxe0 -g 1 -m $mtu -s 6000 -n 20 || fail "ibv_rc_pingpong at $mtu"
done
ibv_uc_pingpong -d rxe0 -g 1 -m 1024 -s 6000 -n 20 || fail "ibv_uc_pingpong"
echo GUEST-PASS
