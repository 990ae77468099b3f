# Two of our cards: transfers, every byte compared. The driver of the first is killed in the middle of one, its function is reset in the middle
# of another, and the card works again at once each time. The first guest listens, the second one connects.
connected() { grep -q ':1B58 .* 01 ' /proc/net/tcp; }
# listen: takes one transfer
listen() { as_user ferric perf "$CARD" --listen 10.8.0.1:7000 --ip 10.0.0.1 --patience 60 > /tmp/listen 2>&1; }
whole() {
  listen || { cat /tmp/listen; fail "$1"; }
  grep verified /tmp/listen
}
# middle: waits until a transfer is under way
middle() {
  wait_for 120 connected || fail "nobody connects"
  sleep 5
  connected || fail "the transfer was over before $1"
}
# connect OP COUNT
connect() { retry "onnection refused" ferric perf "$CARD" --connect 10.8.0.1:7000 --ip 10.0.0.2 --op $1 --size 3000 --mtu 1024 --count $2 --patience 20; }
# broken OP: a transfer that the other side's end must break
broken() { (connect $1 100000) > /tmp/broken 2>&1 && fail "a $1 transfer went on $2"; grep "^ferric" /tmp/broken; }
if [ $own = 1 ]; then
  whole "first transfer"
  listen &
  middle "the driver was killed"
  kill -9 $(pidof ferric)
  echo "driver killed in the middle of a transfer"
  wait
  whole "transfer after kill -9"
  listen &
  middle "the reset"
  echo 1 > "/sys/bus/pci/devices/$CARD/reset" || fail "reset"
  echo "function reset in the middle of a transfer"
  kill -9 $(pidof ferric)
  wait
  whole "transfer after the reset"
else
  connect write 24
  broken send "without the other side's driver"
  connect send 24
  broken write "across a reset"
  connect write 24
fi
