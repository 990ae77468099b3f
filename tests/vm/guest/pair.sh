# Two of our cards in two guests, one wire between them. eth0: control. vm.role: listen or connect. The listening guest's driver is killed
# in the middle of a transfer, and its function is reset in the middle of another; the card works again at once each time.
. /common.sh
[ "$role" = listen ] && own=1 || own=2
network eth0 10.8.0.$own/24
hand_over
connected() { grep -q ':1B58 .* 01 ' /proc/net/tcp; }
# listen: takes one transfer
listen() { as_user ferric perf "$CARD" --listen 10.8.0.1:7000 --ip 10.0.0.1 --patience 60 > /tmp/listen 2>&1; }
whole() {
  listen || { cat /tmp/listen; fail "$1"; }
  grep verified /tmp/listen
}
# connect OP COUNT
connect() {
  n=200
  while :; do
    as_user ferric perf "$CARD" --connect 10.8.0.1:7000 --ip 10.0.0.2 --op $1 --size 3000 --mtu 1024 --count $2 --patience 20 > /tmp/connect 2>&1 && { cat /tmp/connect; return 0; }
    # The other side may not be listening yet.
    grep -q refused /tmp/connect || { cat /tmp/connect; return 1; }
    n=$((n - 1)); [ $n -gt 0 ] || fail "nobody listens"
    sleep 0.3
  done
}
if [ $role = listen ]; then
  whole "first transfer"
  listen &
  wait_for 120 connected || fail "nobody connects"
  sleep 10
  connected || fail "the transfer was over before the driver was killed"
  kill -9 $(pidof ferric)
  echo "driver killed in the middle of a transfer"
  wait
  whole "transfer after kill -9"
  listen &
  wait_for 120 connected || fail "nobody connects"
  sleep 10
  connected || fail "the transfer was over before the reset"
  echo 1 > "/sys/bus/pci/devices/$CARD/reset" || fail "reset"
  echo "function reset in the middle of a transfer"
  kill -9 $(pidof ferric)
  wait
  whole "transfer after the reset"
else
  connect write 24 || fail "first transfer"
  connect send 100000 && fail "a transfer went on without the other side's driver"
  connect send 24 || fail "transfer after kill -9"
  connect write 100000 && fail "a transfer went on across a reset"
  connect write 24 || fail "transfer after the reset"
fi
as_user ferric stat "$CARD" || fail "stat"
echo GUEST-PASS
