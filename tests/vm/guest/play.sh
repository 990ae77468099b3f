# One guest of a scenario: puts itself in order for its role, then plays one act after the other. vm.role: card (our card, in the hands of an
# ordinary user) or linux (rdma_rxe); vm.own and vm.other: last byte of its addresses and of the other guest's, without them it is alone;
# vm.acts: scripts, separated by commas.
. /common.sh
begun=$(seconds)
if [ $role = linux ]; then
  # eth0 is the wire, eth1 the network by which both sides agree. vm.under: the wire is the underlay of a tunnel, of this IP version.
  wire=eth0
  [ -z "$under" ] || { vxlan; wire=vx0; }
  network $wire 10.9.0.$own/24 4300
  network eth1 10.8.0.$own/24
  # By its path: the shell would take its own ip.
  /bin/ip -6 addr add fd09::$own/64 dev $wire nodad
  soft_roce $wire
  g4=$(gid_index ffff:0a09) g6=$(gid_index fd09:)
else
  [ -z "$own" ] || network eth0 10.8.0.$own/24
  hand_over
fi
[ -z "$other" ] || wait_for 120 ping -c 1 10.8.0.$other || fail "the other guest does not answer"
echo "ACT ready $(($(seconds) - begun)) s"
for act in $(echo $acts | tr , ' '); do
  begun=$(seconds)
  # A shell of its own: what it exports is gone afterwards.
  (. /$act.sh) || fail "act $act"
  echo "ACT $act $(($(seconds) - begun)) s"
done
[ $role = linux ] || as_user ferric stat "$CARD" || fail "stat"
echo GUEST-PASS
