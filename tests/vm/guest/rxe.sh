# Linux as the peer: rdma_rxe on the wire, the stock ping-pong programs or tests/vm/peer.c as servers. eth0: wire, eth1: control.
. /common.sh
network eth0 10.9.0.2/24 4300
network eth1 10.8.0.2/24
# By its path: the shell would take its own ip.
/bin/ip -6 addr add fd09::2/64 dev eth0 nodad
/bin/ip neigh replace 10.9.0.1 lladdr 02:fe:0a:09:00:01 dev eth0 nud permanent
/bin/ip -6 neigh replace fd09::1 lladdr 02:fe:00:00:00:01 dev eth0 nud permanent
soft_roce eth0
g4=$(gid_index ffff:0a09) g6=$(gid_index fd09:)
echo RXE-READY
case $play in
  peer)
    for mtu in 1024 4096; do
      ibv_rc_pingpong -d rxe0 -g $g4 -m $mtu -s 6000 -n 20 || fail "ibv_rc_pingpong at $mtu"
    done
    ibv_uc_pingpong -d rxe0 -g $g4 -m 1024 -s 6000 -n 20 || fail "ibv_uc_pingpong" ;;
  matrix)
    peer rxe0 18600 $g4 $g6 || fail "peer"
    rdma statistic show link rxe0/1 2>/dev/null | tr ' ' '\n' | paste -sd' ' - | head -c 1500; echo ;;
esac
echo GUEST-PASS
