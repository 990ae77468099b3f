# Functions of the guests' scripts.
fail() { echo "GUEST-FAIL $*"; dmesg | tail -15; exit 1; }
# wait_for SECONDS COMMAND...
wait_for() { n=$(($1 * 5)); shift; while ! "$@" >/dev/null 2>&1; do n=$((n - 1)); [ $n -gt 0 ] || return 1; sleep 0.2; done; }

seconds() { cut -d. -f1 /proc/uptime; }
# retry PATTERN COMMAND...: as the ordinary user; again as long as it fails with the pattern, because the other side may not be listening yet.
retry() {
  pattern=$1 tries=200
  shift
  until as_user "$@" 2> /tmp/error; do
    grep -q "$pattern" /tmp/error && [ $tries -gt 0 ] || { cat /tmp/error; fail "$*"; }
    tries=$((tries - 1))
    sleep 0.3
  done
}

# Network interface $1 with address $2: the control network, or the wire of rdma_rxe.
network() {
  modprobe virtio_pci; modprobe virtio_net
  wait_for 10 test -d "/sys/class/net/$1" || fail "no interface $1"
  ip link set "$1" mtu "${3:-1500}" up
  ip addr add "$2" dev "$1"
}

# Gives the card to the ordinary user, as an administrator would; CARD is its address from then on.
hand_over() {
  modprobe vfio_iommu_type1; modprobe vfio-pci
  ferric list
  CARD=$(ferric list --json | sed 's/.*"address":"\([^"]*\)".*/\1/')
  [ -e "/sys/bus/pci/devices/$CARD" ] || fail "no Ferric card"
  [ -e "/sys/bus/pci/devices/$CARD/iommu_group" ] || fail "no emulated IOMMU"
  ferric bind "$CARD" || fail "bind"
  group=$(basename "$(readlink "/sys/bus/pci/devices/$CARD/iommu_group")")
  # Not yet: the device file is root's.
  as_user ferric info "$CARD" > /tmp/info 2>&1
  cat /tmp/info
  grep -q "sudo chown" /tmp/info || fail "an ordinary user is not told what is missing"
  chown user "/dev/vfio/$group"
  ferric list
}

# Runs a command as the ordinary user, who may pin memory.
as_user() { (ulimit -l "${MEMLOCK:-unlimited}"; su user -c "PATH=$PATH $*"); }

# Puts a VXLAN device of VNI 100, vx0, on eth0, which is the underlay of IP version $under (10.7.0.0/24, fd07::/64). Our card does not answer for its address there.
vxlan() {
  modprobe vxlan || fail "vxlan"
  if [ $under = 4 ]; then
    network eth0 10.7.0.$own/24 4400
    ends="local 10.7.0.$own remote 10.7.0.$other"
    /bin/ip neigh add 10.7.0.$other lladdr 06:00:00:00:00:0$other dev eth0 nud permanent
  else
    network eth0 10.7.0.$own/24 4400
    /bin/ip -6 addr add fd07::$own/64 dev eth0 nodad
    /bin/ip -6 neigh add fd07::$other lladdr 06:00:00:00:00:0$other dev eth0 nud permanent
    # Our card sends no outer UDP checksums (RFC 6935).
    ends="local fd07::$own remote fd07::$other udp6zerocsumrx"
  fi
  /bin/ip link add vx0 type vxlan id 100 dev eth0 dstport 4789 $ends || fail "vx0"
}

# rdma_rxe on network interface $1.
soft_roce() {
  modprobe crc32-pclmul 2>/dev/null || modprobe crc32_generic 2>/dev/null
  modprobe ib_uverbs; modprobe rdma_ucm
  modprobe rdma_rxe || fail "rdma_rxe"
  rdma link add rxe0 type rxe netdev "$1" || fail "rxe0"
  wait_for 10 ibv_devinfo -d rxe0 || fail "ibv_devinfo"
  ibv_devinfo -v -d rxe0 | grep -E "state|active_mtu|GID"
}

# Index of rxe0's first GID with $1 in it.
gid_index() {
  for f in /sys/class/infiniband/rxe0/ports/1/gids/*; do
    if grep -q "$1" "$f"; then basename "$f"; return; fi
  done
  fail "no GID with $1"
}
