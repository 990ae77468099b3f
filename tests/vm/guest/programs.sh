# Stock programs of rdma-core and perftest against each other: on our libibverbs and librdmacm and the card, or on rdma_rxe. With Linux either side
# is the server in turn; between two cards, which are alike, the first guest is.
limit=90
if [ $role = card ]; then
  export LD_LIBRARY_PATH=/ferric FERRIC_DEVICES="$CARD@10.9.0.$own" FERRIC_MTU=1024 FERRIC_LOG=warn
  g=0
  as_user timeout 60 ibv_devinfo || fail "ibv_devinfo"
else
  g=$g4
  ulimit -l unlimited
  as_user() { "$@"; }
fi
order=server
[ $own = 1 ] || order=client
[ $peer = card ] || { [ $own = 1 ] && order="server client" || order="client server"; }
k=0
grep -v '^#' /programs > /tmp/programs
[ -z "$programs" ] || grep -E "^($(echo $programs | tr , '|')) " /programs > /tmp/programs
while read -r name line; do
  for side in $order; do
    port=$((19000 + k))
    line=$(echo "$line" | sed "s/@g/$g/")
    case $line-$side in
      rping*-server) run="$line -s -a 10.9.0.$own -p $port" ;;
      rping*) run="$line -c -a 10.9.0.$other -p $port" ;;
      *stream*-server) run="$line -b 10.9.0.$own -p $port" ;;
      *stream*) run="$line -s 10.9.0.$other -p $port" ;;
      *-server) run="$line -p $port" ;;
      *) run="$line -p $port 10.8.0.$other" ;;
    esac
    tries=0
    begun=$(seconds)
    while :; do
      as_user timeout $limit $run < /dev/null > /tmp/o 2>&1
      rc=$?
      [ $side = client ] && [ $rc != 0 ] && [ $tries -lt 40 ] && grep -qiE "connect|refused|RDMA_CM_EVENT_(REJECTED|ADDR_ERROR|UNREACHABLE)|unable" /tmp/o || break
      tries=$((tries + 1))
      sleep 0.5
    done
    echo "PROGRAM $name as $side rc $rc $(($(seconds) - begun)) s"
    [ $rc = 0 ] || { tail -8 /tmp/o; failed="$failed $name($side)"; }
    k=$((k + 1))
  done
done < /tmp/programs
[ -z "$failed" ] || fail "programs failed:$failed"
