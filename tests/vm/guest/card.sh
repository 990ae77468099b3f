# One card with a plug in its port, under an emulated IOMMU, in the hands of an ordinary user.
. /common.sh
hand_over
lspci -vv -s "$CARD" | grep -E "Capabilities|Memory at|Kernel driver"
MEMLOCK=4 as_user ferric info "$CARD" 2>&1 | tee /tmp/memlock
grep -q "limit on locked memory is 4 KiB" /tmp/memlock || fail "a low limit on locked memory is not explained"
as_user ferric info "$CARD" || fail "info"
as_user ferric selftest "$CARD" --plugged || fail "self test"
# Again, after the first process: the function was reset in between.
as_user ferric selftest "$CARD" --plugged || fail "second self test"
# A second process is refused while the first one has the card.
as_user ferric perf "$CARD" --listen 127.0.0.1:7000 & 
sleep 3
as_user ferric info "$CARD" 2>&1 | tee /tmp/second
grep -q "another process has it" /tmp/second || fail "a second process could open the card"
# The driver is killed; the card works for the next one.
kill -9 $(pidof ferric)
sleep 1
as_user ferric selftest "$CARD" --plugged || fail "self test after kill -9"
echo GUEST-PASS
