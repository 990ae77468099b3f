# Our card against Linux in the other guest: every operation, both ways. eth0: control. vm.only: operations, separated by commas.
. /common.sh
network eth0 10.8.0.1/24
hand_over
wait_for 90 ping -c 1 10.8.0.2 || fail "the other guest does not answer"
n=100
set -- --ip 10.9.0.1 --ip fd09::1
for m in $(echo "${mtus:-1024,4096}" | tr , ' '); do set -- "$@" --mtu $m; done
for o in $(echo "$only" | tr , ' '); do set -- "$@" --only $o; done
until as_user ferric interop "$CARD" --connect 10.8.0.2:18600 --peer-mac 52:54:00:00:00:02 "$@" 2>/tmp/error; do
  # The peer may not be listening yet.
  grep -q "does the peer run there" /tmp/error || { cat /tmp/error; fail "interop"; }
  n=$((n - 1)); [ $n -gt 0 ] || fail "no peer"
  sleep 0.3
done
as_user ferric stat "$CARD" || fail "stat"
echo GUEST-PASS
