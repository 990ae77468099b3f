# Linux finds the card by ARP and neighbour discovery, and pings it; the card finds Linux. Neither side has been told anything of the other.
# An address that Linux takes in the control network when it is done.
finished=10.8.0.102
if [ $role = linux ]; then
  # The card answers while a driver has given it its addresses: not at once.
  wait_for 60 ping -c 1 -W 5 10.9.0.1 || fail "no answer to a ping"
  wait_for 60 ping -6 -c 1 -W 5 fd09::1 || fail "no answer to a ping over IPv6"
  for size in 56 1472; do
    ping -c 3 -W 20 -s $size 10.9.0.1 || fail "no answer to a ping of $size bytes"
    ping -6 -c 3 -W 20 -s $size fd09::1 || fail "no answer to a ping of $size bytes over IPv6"
  done
  # By its path: the shell would take its own ip.
  /bin/ip neigh show dev eth0
  /bin/ip neigh show 10.9.0.1 dev eth0 | grep -q "lladdr 02:fe:0a:09:00:01" || fail "ARP has brought another address"
  /bin/ip -6 neigh show fd09::1 dev eth0 | grep -q "lladdr 02:fe:00:00:00:01" || fail "neighbour discovery has brought another address"
  # Nobody has this one, and the card does not answer for it.
  ! ping -c 1 -W 3 10.9.0.77 || fail "an answer for an address that nobody has"
  # What follows begins without any neighbour again.
  /bin/ip neigh flush dev eth0
  /bin/ip -6 neigh flush dev eth0
  /bin/ip addr add $finished/24 dev eth1
else
  ours="--ip 10.9.0.1 --ip fd09::1"
  # Linux may not have its addresses yet.
  retry "no machine has answered" ferric address "$CARD" $ours --find 10.9.0.2 --find fd09::2 < /dev/null | tee /tmp/found
  for ip in 10.9.0.2 fd09::2; do grep -q "$ip is at 52:54:00:00:00:02" /tmp/found || fail "the MAC address of $ip"; done
  mkfifo /tmp/answers
  as_user ferric address "$CARD" $ours < /tmp/answers &
  answers=$!
  exec 3> /tmp/answers
  wait_for 60 ping -c 1 -W 1 $finished || fail "the other guest has not been answered"
  exec 3>&-
  wait $answers || fail "ferric address"
fi
