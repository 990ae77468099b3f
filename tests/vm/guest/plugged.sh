# The card's port is plugged into itself: the data path on one card alone, twice: the function was reset in between.
lspci -vv -s "$CARD" | grep -E "Capabilities|Memory at|Kernel driver"
as_user ferric info "$CARD" || fail "info"
as_user ferric selftest "$CARD" --plugged || fail "self test"
as_user ferric selftest "$CARD" --plugged || fail "second self test"
