# Every operation, both ways, between our card and Linux. vm.only: operations, vm.mtus: path MTUs, separated by commas. vm.placement: the peer runs on
# Debian 13's libibverbs, which knows FLUSH; Linux flushes ranges and whole regions in turn (range), or whole regions (region).
if [ $role = linux ]; then
  if [ -n "$placement" ]; then
    for d in dev sys proc; do mount -o bind /$d /newer/$d; done
    PLACEMENT=$placement chroot /newer /bin/peer rxe0 18600 $g4 $g6 || fail "peer"
  else
    peer rxe0 18600 $g4 $g6 || fail "peer"
  fi
  [ -z "$under" ] || /bin/ip -s link show vx0
  rdma statistic show link rxe0/1 2>/dev/null | tr ' ' '\n' | paste -sd' ' - | head -c 1500; echo
else
  set -- --ip 10.9.0.1 --ip fd09::1
  # The peer's network card is the next hop.
  case "$under" in
    4) set -- "$@" --tunnel 100,06:00:00:00:00:01,10.7.0.1,52:54:00:00:00:02,10.7.0.2 ;;
    6) set -- "$@" --tunnel 100,06:00:00:00:00:01,fd07::1,52:54:00:00:00:02,fd07::2 ;;
  esac
  for m in $(echo "${mtus:-1024,4096}" | tr , ' '); do set -- "$@" --mtu $m; done
  for o in $(echo "$only" | tr , ' '); do set -- "$@" --only $o; done
  retry "does the peer run there" ferric interop "$CARD" --connect 10.8.0.2:18600 "$@"
fi
