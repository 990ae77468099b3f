# Exchanges between the stock programs of two guests on rdma_rxe, one after the other. The relay between them begins a file at the client's
# echo request of 1000 + N bytes. vm.role: server or client.
. /common.sh
[ "$role" = server ] && own=1 other=2 || own=2 other=1
network eth0 10.9.0.$own/24 4300
/bin/ip -6 addr add fd09::$own/64 dev eth0 nodad
soft_roce eth0
echo "KERNEL $(uname -r)"
wait_for 60 ping -c 1 10.9.0.$other || fail "the other guest does not answer"
wait_for 10 ping -6 -c 1 fd09::$other || fail "the other guest does not answer over IPv6"
g4=$(gid_index ffff:0a09) g6=$(gid_index fd09:)
export UCX_NET_DEVICES=rxe0:1 UCX_TLS=rc_v,self UCX_IB_GID_INDEX=$g4 UCX_MODULE_DIR=/usr/lib/x86_64-linux-gnu/ucx UCX_RC_TIMEOUT=2s
ulimit -l unlimited
k=0
grep -v '^#' /exchanges > /tmp/exchanges
while read -r name line; do
  port=$((19000 + k))
  line=$(echo "$line" | sed "s/@4/$g4/; s/@6/$g6/; s/@a4/10.9.0.1/; s/@a6/fd09::1/")
  case $line in
    rping*) server="$line -s -p $port" client="$line -c -p $port" ;;
    *) server="$line -p $port" client="$line -p $port 10.9.0.1" ;;
  esac
  if [ $role = server ]; then
    timeout 60 $server < /dev/null > /tmp/o 2>&1
    rc=$?
  else
    # What is left of the exchange before has time to go by.
    sleep 0.5
    ping -c 1 -s $((1000 + k)) 10.9.0.1 > /dev/null
    tries=0
    while :; do
      timeout 60 $client < /dev/null > /tmp/o 2>&1
      rc=$?
      [ $rc != 0 ] && [ $tries -lt 60 ] && grep -qiE "connect|refused|RDMA_CM_EVENT_REJECTED|unable" /tmp/o || break
      tries=$((tries + 1))
      sleep 0.3
    done
  fi
  echo "EXCHANGE $name rc $rc"
  [ $rc = 0 ] || { tail -5 /tmp/o; failed="$failed $name"; }
  k=$((k + 1))
done < /tmp/exchanges
[ -z "$failed" ] || fail "exchanges failed:$failed"
echo GUEST-PASS
