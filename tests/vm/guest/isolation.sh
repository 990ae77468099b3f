# The card belongs to one ordinary user's process, and reaches nothing but what that process has mapped.
MEMLOCK=4 as_user ferric info "$CARD" 2>&1 | tee /tmp/memlock
grep -q "limit on locked memory is 4 KiB" /tmp/memlock || fail "a low limit on locked memory is not explained"
# The card writes where nothing is mapped: the memory stays as it is, the card counts an error, its AER capability has it.
unsupported() { lspci -vvv -s "$CARD" | grep "UESta:" | grep -q "UnsupReq+"; }
unsupported && fail "AER has an unsupported request before there was one"
mkfifo /tmp/hold
as_user ferric selftest "$CARD" --stray < /tmp/hold > /tmp/stray 2>&1 &
stray=$!
exec 3> /tmp/hold
wait_for 60 grep -q "^stray" /tmp/stray || { cat /tmp/stray; fail "self test"; }
cat /tmp/stray
# While that process still has the card.
lspci -vvv -s "$CARD" | grep -E "UESta:|HeaderLog:"
unsupported || fail "the AER capability does not show the access that was refused"
as_user ferric info "$CARD" 2>&1 | tee /tmp/second
grep -q "another process has it" /tmp/second || fail "a second process could open the card"
exec 3>&-
wait $stray || fail "self test"
