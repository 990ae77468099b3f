# A guest whose network cards are virtio functions of Ferric cards, with its kernel's own driver. vm.peers: how many of them, each on a wire of its own; number N (from 0) has 10.6.N.2 and fd06:N::2,
# at its wire's other end is the kernel of this machine, or another guest (vm.own=1), with 10.6.N.1 and fd06:N::1. vm.acts: what is done, of the functions below; vm.sha: what the file that the other end sends has to be.
. /common.sh
own=${own:-2}
other=$((3 - own))
mtu=${mtu:-9000}

# (wait_for has a variable n of its own.)
# Interface N is the one behind the N-th function on the bus.
interface() { ls "/sys/bus/pci/devices/$(echo $devices | cut -d' ' -f$(($1 + 1)))"/virtio*/net 2> /dev/null; }
up() {
  wait_for 10 interface $1 || fail "function $1 has no interface"
  /bin/ip link set "$(interface $1)" mtu $mtu up || fail "function $1: MTU"
  /bin/ip addr add 10.6.$1.$own/24 dev "$(interface $1)"
  /bin/ip -6 addr add fd06:$1::$own/64 dev "$(interface $1)" nodad
}
# pings N SIZE COUNT: none may be lost. The first may wait for ARP, which the other end answers when its link is up.
pings() {
  wait_for 20 ping -c 1 -W 1 10.6.$1.$other || fail "function $1: no answer to a ping"
  ping -q -i 0.01 -W 5 -s $2 -c $3 10.6.$1.$other > /tmp/pings
  grep transmitted /tmp/pings | sed "s/^/PINGS function $1, $2 bytes: /"
  grep -q "^$3 packets transmitted, $3 packets received" /tmp/pings || fail "function $1: pings of $2 bytes"
}
# What the driver has taken: bits of the features that the matrix is about.
features() {
  bits=$(cat /sys/bus/virtio/devices/virtio$1/features)
  taken=
  for f in 35:packed 30:event_idx 29:indirect 16:mergeable 36:in_order 39:notification_data 1:csum 12:tso4 57:uso 23:mq 61:rss 54:coalescing; do
    [ "$(echo $bits | cut -c${f%%:*})" = 0 ] || taken="$taken ${f#*:}"
  done
  echo "FEATURES function $1:$taken"
}
# No checksum has been wrong.
sums() { ! nstat -az | grep Csum | grep -v ' 0  *0.0$' || fail "wrong checksums"; }
# stream N BYTES: so much comes from the other end, and goes back to it, which compares it.
stream() {
  wait_for 20 sh -c "nc -w 20 10.6.$1.$other $((5000 + 2 * $1)) < /tmp/open > /tmp/stream && [ -s /tmp/stream ]" || fail "function $1: nothing came"
  [ "$(wc -c < /tmp/stream)" = $2 ] && [ "$(sha256sum < /tmp/stream | cut -d' ' -f1)" = $sha ] || fail "function $1: $(wc -c < /tmp/stream) bytes that are not those that were sent"
  nc -w 20 10.6.$1.$other $((5001 + 2 * $1)) < /tmp/stream || fail "function $1: the stream was not taken"
  echo "STREAM function $1: $2 bytes, $sha"
}

act_ping() { for size in 56 1472 $((mtu - 28)); do pings 0 $size 100; done; ping -6 -q -i 0.01 -c 100 fd06:0::$other | grep transmitted; }
# Until somebody outside ends it, or resets the machine.
act_waiting() { pings 0 56 20; sleep 600; }
act_flood() { pings 0 56 5; echo FLOOD; ping -q -i 0.002 -s 1472 10.6.0.$other > /dev/null; }
# run OPTION...: iperf3 to the other end
run() { wait_for 30 ping -c 1 10.6.0.$other; iperf3 -f m -c 10.6.0.$other "$@" > /tmp/iperf 2>&1 || { cat /tmp/iperf; fail "iperf3 $*"; }; echo "IPERF $*: $(grep -E 'receiver' /tmp/iperf | tail -1)"; }
act_tcp() {
  run -n 4M; run -n 4M -R
  run -n 4M -P 4; run -n 4M -P 4 -R
  run -6 -c fd06:0::$other -n 4M
  run -u -b 20M -t 1; run -u -b 20M -t 1 -R
  stream 0 4194304
  sums
}
# The other end of `cards`: serves until it is ended.
act_serving() { iperf3 -s > /dev/null 2>&1 & echo SERVING; sleep 600; }
act_cards() {
  for mtu in 1500 9000; do
    /bin/ip link set "$(interface 0)" mtu $mtu || fail "MTU $mtu"
    pings 0 $((mtu - 28)) 100
    run -n 4M; run -n 4M -R; run -n 4M -P 4
  done
  sums
}
# Every setting of what the function does for the driver: the sums of what comes and goes are right, whoever makes them.
act_offload() {
  k=0
  kinds=${kinds:-tx,sg,rx,tso}
  while [ $k -lt $((1 << $(echo "$kinds" | tr , '\n' | wc -l))) ]; do
    set --
    b=0
    for what in $(echo "$kinds" | tr , ' '); do
      [ $((k >> b & 1)) = 1 ] && on=on || on=off
      set -- "$@" $what $on
      b=$((b + 1))
    done
    # What cannot be without another stays off; rx is fixed, since the function does not offer CTRL_GUEST_OFFLOADS.
    ethtool -K "$(interface 0)" "$@" > /dev/null 2>&1
    echo "OFFLOAD $*: $(ethtool -k "$(interface 0)" | grep -cE '^(tx-checksumming|scatter-gather|rx-checksumming|tcp-segmentation-offload): on') of 4 on"
    pings 0 8972 5
    run -n 1M; run -n 1M -R; run -6 -c fd06:0::$other -n 1M
    k=$((k + 1))
  done
  sums
}
# received: interrupts by receive queue (the driver of Linux 7.3 does not show its counts of packets to ethtool)
received() { awk '/virtio0-input/ { sum = 0; for (n = 2; n <= NF && $n ~ /^[0-9]+$/; n++) sum += $n; print sum }' /proc/interrupts | tr '\n' ' '; }
# spread WEIGHT...: a table with these shares of the pairs and a new key, and packets of 256 flows; whoever reads the log judges by which queue they came (tests/vm/flows).
spread() {
  key=$(od -An -v -tx1 -N40 /dev/urandom | tr -s ' \n' ':' | sed 's/^://; s/:$//')
  ethtool -X "$(interface 0)" hkey $key weight "$@" || fail "ethtool -X $*"
  echo "ASKED $key $*"
  ethtool -x "$(interface 0)"
  before=$(received)
  queues "$(interface 0)" spread 256 || fail "queues: spread"
  echo "QUEUES weights $*: interrupts by queue, before $before, now $(received)"
}
# interrupts: of all receive queues
interrupts() { received | tr ' ' '\n' | awk '{ sum += $1 } END { print sum }'; }
# 100 frames, one each 6 ms: without limits most have an interrupt of their own, with limits ten share one, or those of half a second do. All come.
coalesce() {
  for frames in 0 10; do
    # Linux 6.1 takes a zero that it has itself, of frames to be sent, for a wish to send without NAPI.
    ethtool -C "$(interface 0)" rx-frames $frames rx-usecs $((frames * 50000)) tx-frames 1 || fail "ethtool -C"
    before=$(interrupts)
    queues "$(interface 0)" filter 100 || fail "queues: coalescing"
    count=$(($(interrupts) - before))
    echo "QUEUES 100 frames, at most $frames for an interrupt: $count interrupts"
    if [ $frames = 0 ]; then [ $count -ge 50 ]; else [ $count -le 30 ]; fi || fail "$count interrupts"
  done
  ethtool -C "$(interface 0)" rx-frames 0 rx-usecs 0 tx-frames 1 || fail "ethtool -C"
}
# Pairs of queues: streams of several flows with each number of them; with four, flows come by more than one. vm.spread=hash: then tables and keys of receive-side scaling; else flows come by the pair that
# sends them, which the driver's own program judges. At last the filter: a group and a VLAN are wanted that were not.
act_queues() {
  features 0
  case "$spread $taken " in "hash "*" rss "*) ;; *" rss "*) fail "RSS is offered" ;; "hash "*) fail "RSS is not taken" ;; esac
  for pairs in 1 2 3 4; do
    ethtool -L "$(interface 0)" combined $pairs || fail "ethtool -L $pairs"
    pings 0 1472 20
    run -n 4M -P 8; run -n 4M -P 8 -R
    echo "QUEUES $pairs: interrupts by queue $(received)"
    if [ $spread != hash ]; then
      queues "$(interface 0)" answers 256 || fail "queues: answers"
      continue
    fi
    case $pairs in
      1) spread 1 ;;
      2) spread 1 1; spread 0 1 ;;
      3) spread 1 1 1; spread 5 2 1 ;;
      4) spread 1 1 1 1; spread 1 2 3 4 ;;
    esac
  done
  [ "$(received | tr ' ' '\n' | grep -c '[1-9]')" -gt 1 ] || fail "all by one queue"
  modprobe 8021q
  /bin/ip link add link "$(interface 0)" name vlan5 type vlan id 5 && /bin/ip link set vlan5 up && /bin/ip maddr add 01:00:5e:7f:00:05 dev "$(interface 0)" || fail "a VLAN and a group"
  queues "$(interface 0)" filter 1000 || fail "queues: filter"
  case "$taken " in *" coalescing "*) coalesce ;; esac
  sums
}
act_matrix() {
  k=0
  while [ $k -lt $peers ]; do
    features $k
    pings $k 56 100
    stream $k 262144
    k=$((k + 1))
  done
  sums
}
act_life() {
  address=$(echo $devices | cut -d' ' -f1)
  virtio=$(basename /sys/bus/pci/devices/$address/virtio*)
  k=0
  while [ $k -lt ${binds:-100} ]; do
    virtio=$(basename /sys/bus/pci/devices/$address/virtio*)
    echo $virtio > /sys/bus/virtio/drivers/virtio_net/unbind || fail "unbind $k"
    echo $virtio > /sys/bus/virtio/drivers/virtio_net/bind || fail "bind $k"
    k=$((k + 1))
  done
  up 0
  pings 0 56 20
  echo "LIFE $k times unbound and bound"
  # Other ring sizes while frames come and go: queues are reset one by one.
  ping -q -i 0.005 -W 1 10.6.0.$other > /tmp/flood & flood=$!
  k=0
  while [ $k -lt ${resizes:-50} ]; do
    ethtool -G "$(interface 0)" rx $((64 << k % 3)) tx $((256 >> k % 3)) || fail "ethtool -G $k"
    k=$((k + 1))
  done
  kill -INT $flood; wait $flood
  sed -n '/transmitted/s/^/LIFE meanwhile: /p' /tmp/flood
  pings 0 1472 20
  echo "LIFE $k times other ring sizes"
  # The function's own reset, by the kernel. Behind the back of virtio-pci, which has acknowledged the device once and for all, it would undo that.
  echo $address > /sys/bus/pci/drivers/virtio-pci/unbind
  echo 1 > /sys/bus/pci/devices/$address/reset || fail "FLR"
  echo $address > /sys/bus/pci/drivers/virtio-pci/bind || fail "bind behind FLR"
  up 0
  pings 0 56 20
  echo "LIFE function-level reset"
}

modprobe virtio_pci; modprobe virtio_net
# An input that does not end: nc ends with its input.
mkfifo /tmp/open
exec 9<> /tmp/open
wait_for 10 test -e /sys/bus/pci/drivers/virtio-pci || fail "virtio-pci"
devices=$(cd /sys/bus/pci/drivers/virtio-pci && ls -d 0000:*)
[ "$(echo $devices | wc -w)" = "$peers" ] || fail "$(echo $devices | wc -w) of $peers functions are there"
lspci -n -d 1af4:1041
[ "$peers" != 1 ] || lspci -vv -d 1af4:1041
[ "$(basename "$(readlink "/sys/bus/virtio/devices/virtio0/driver")")" = virtio_net ] || fail "virtio_net is not the driver"
ethtool -i "$(interface 0)" | head -3
group=/sys/bus/pci/devices/$(echo $devices | cut -d' ' -f1)/iommu_group
[ ! -e $group ] || echo "IOMMU $(cat $group/type)"
k=0
while [ $k -lt $peers ]; do up $k; k=$((k + 1)); done
for act in $(echo $acts | tr , ' '); do
  begun=$(seconds)
  (act_$act) || fail "act $act"
  echo "ACT $act $(($(seconds) - begun)) s"
done
dmesg | grep -iE 'virtio|net ' | grep -iE 'fail|error|warn|timeout' && fail "the kernel complains"
echo GUEST-PASS
