# Our card against Linux in the other guest. eth0: control.
. /common.sh
network eth0 10.8.0.1/24
hand_over
wait_for 60 ping -c 1 10.8.0.2 || fail "the other guest does not answer"
play() {
  n=100
  until as_user ferric pingpong "$CARD" --connect 10.8.0.2:18515 --ip 10.9.0.1 --peer-mac 52:54:00:00:00:02 --size 6000 --count 20 "$@" 2>/tmp/error; do
    # The stock program may not be listening yet.
    grep -q "is ibv_rc_pingpong running" /tmp/error || fail "$(cat /tmp/error)"
    n=$((n - 1)); [ $n -gt 0 ] || fail "$(cat /tmp/error)"
    sleep 0.3
  done
}
play --mtu 1024
play --mtu 4096
play --mtu 1024 --transport uc
as_user ferric stat "$CARD" || fail "stat"
echo GUEST-PASS
