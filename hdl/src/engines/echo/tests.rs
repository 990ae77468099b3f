//! The block against its model, and both against what others make of these protocols.
mod bench;
mod frames;

use super::model::Outcome;
use bench::Bench;
use frames::*;

#[test]
fn arp_and_pings_are_answered() {
    let mut b = Bench::<64, 8, 4>::new("echo64", 0, 1);
    b.set_up();
    for len in (0..40).chain([100, 300, 1472]) {
        let data = b.tb.rng().bytes(len);
        assert!(matches!(b.exchange(&ping(CARD4, &data)), Some(Outcome::Answered("echo_ping", _))));
    }
    assert!(matches!(b.exchange(&who_has(CARD4)), Some(Outcome::Answered("echo_arp", _))));
}
