# Stock programs of rdma-core and perftest against each other: here on our libibverbs and the card, there on rdma_rxe. vm.role: card or linux.
. /common.sh
if [ $role = card ]; then
  own=1 other=2 order="server client"
  network eth0 10.8.0.1/24
  hand_over
  export LD_LIBRARY_PATH=/ferric FERRIC_DEVICES="$CARD@10.9.0.1" FERRIC_NEIGHBOURS=10.9.0.2=52:54:00:00:00:02 FERRIC_MTU=1024 FERRIC_LOG=warn
  g=0
  wait_for 90 ping -c 1 10.8.0.2 || fail "the other guest does not answer"
  as_user timeout 60 ibv_devinfo || fail "ibv_devinfo"
else
  own=2 other=1 order="client server"
  network eth0 10.9.0.2/24 4300
  network eth1 10.8.0.2/24
  /bin/ip neigh replace 10.9.0.1 lladdr 02:fe:0a:09:00:01 dev eth0 nud permanent
  soft_roce eth0
  g=$(gid_index ffff:0a09)
  ulimit -l unlimited
  as_user() { "$@"; }
fi
k=0
grep -v '^#' /programs > /tmp/programs
while read -r name line; do
  for side in $order; do
    port=$((19000 + k))
    line=$(echo "$line" | sed "s/@g/$g/")
    case $line-$side in
      rping*-server) run="$line -s -a 10.9.0.$own -p $port" ;;
      rping*) run="$line -c -a 10.9.0.$other -p $port" ;;
      *-server) run="$line -p $port" ;;
      *) run="$line -p $port 10.8.0.$other" ;;
    esac
    tries=0
    while :; do
      as_user timeout ${limit:-90} $run < /dev/null > /tmp/o 2>&1
      rc=$?
      [ $side = client ] && [ $rc != 0 ] && [ $tries -lt 40 ] && grep -qiE "connect|refused|RDMA_CM_EVENT_REJECTED|unable" /tmp/o || break
      tries=$((tries + 1))
      sleep 0.5
    done
    echo "PROGRAM $name as $side rc $rc"
    [ $rc = 0 ] || { tail -8 /tmp/o; failed="$failed $name($side)"; }
    k=$((k + 1))
  done
done < /tmp/programs
if [ $role = card ]; then unset LD_LIBRARY_PATH; as_user ferric stat "$CARD" || fail "stat"; fi
[ -z "$failed" ] || fail "programs failed:$failed"
echo GUEST-PASS
