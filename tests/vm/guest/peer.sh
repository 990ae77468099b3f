# Our card against the stock ping-pong programs.
if [ $role = linux ]; then
  for mtu in 1024 4096; do
    ibv_rc_pingpong -d rxe0 -g $g4 -m $mtu -s 6000 -n 20 || fail "ibv_rc_pingpong at $mtu"
  done
  ibv_uc_pingpong -d rxe0 -g $g4 -m 1024 -s 6000 -n 20 || fail "ibv_uc_pingpong"
else
  for options in "--mtu 1024" "--mtu 4096" "--mtu 1024 --transport uc"; do
    retry "is ibv_rc_pingpong running" ferric pingpong "$CARD" --connect 10.8.0.2:18515 --ip 10.9.0.1 --size 6000 --count 20 $options
  done
fi
