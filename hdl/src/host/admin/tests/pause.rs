//! SET_PAUSE: whose it is, what is refused, and in which order the line is written. The block works meanwhile: no frame goes out by half of the rules.

use super::card::Event;
use super::commands::{line, words};
use super::{functions, Bench, SIZES};
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::{self, *};
use ferric_abi::context::PauseCtx;
use ferric_abi::csr::space::PAUSE;

const FUNCTIONS: usize = 1 << SIZES.functions;
const WORDS: u8 = 6;

fn on() -> PauseCtx {
    let on = PauseCtx::default().with_send(2).with_obey_link(true).with_obey_priority(true).with_data(8).with_sent(8);
    on.with_xoff(100).with_xon(101).with_quantum(256).with_obey_limit(1).with_send_limit(1).with_mac(0x0203_0405_0607)
}

fn set(b: &mut Bench, status: AdminStatus, f: usize, id: u32, rules: PauseCtx) {
    b.expect(status, f, SetPause, id, &words::<6>(&rules.0));
}

fn there(b: &Bench) -> PauseCtx {
    PauseCtx(line(&b.card, PAUSE, 0))
}

pub fn all(b: &mut Bench) {
    let start = b.card.log.len();
    // Another function's is refused, whatever it says.
    for f in 1..FUNCTIONS {
        set(b, Denied, f, 0, on());
        set(b, Denied, f, 0, PauseCtx::default());
    }
    set(b, BadId, 0, 1, on());
    set(b, BadId, 0, u32::MAX, PauseCtx::default());
    let refused = [
        on().with_send(3),
        on().with_quantum(255),
        on().with_quantum(0),
        on().with_xoff(101),
        on().with_xoff(u16::MAX),
        on().with_data(0),
        on().with_obey_limit(0),
        on().with_send_limit(0),
        // One of them is enough.
        on().with_obey_link(false).with_obey_limit(0),
        on().with_obey_priority(false).with_obey_limit(0),
        on().with_send(1).with_xoff(102),
        on().with_send(0).with_data(0),
        PauseCtx::default().with_send(1).with_xon(1).with_send_limit(1).with_quantum(255),
    ];
    refused.into_iter().for_each(|rules| set(b, BadParameter, 0, 0, rules));
    assert_eq!(b.card.written(PAUSE, start), [], "what is refused changes nothing");
    let fine = [
        on(),
        on().with_send(1),
        on().with_xoff(0).with_xon(u16::MAX),
        on().with_quantum(u16::MAX),
        // What nobody asks for may be anything.
        on().with_send(0).with_xoff(5).with_xon(5).with_send_limit(0),
        on().with_obey_link(false).with_obey_priority(false).with_data(0).with_obey_limit(0),
        on().with_obey_link(false),
        on().with_obey_priority(false),
    ];
    for rules in fine {
        let from = b.card.log.len();
        set(b, Ok, 0, 0, rules.with_rsvd0(15).with_rsvd1(255));
        assert_eq!(there(b), rules, "reserved bits stay zero");
        let order: Vec<(u8, Option<u32>)> = b.card.log[from..]
            .iter()
            .filter_map(|e| match e {
                Event::Control { space: PAUSE, word, write, .. } if write.is_some() => Some((*word, *write)),
                _ => None,
            })
            .collect();
        assert_eq!(order[0], (0, Some(0)), "off first");
        assert_eq!(order.iter().map(|(word, _)| *word).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 0], "on last");
        assert_eq!(order.len(), usize::from(WORDS) + 1);
    }
    // The others' reset leaves it, the physical function's does not.
    for f in (0..FUNCTIONS).rev() {
        functions::reset(b, f);
        assert_eq!(there(b).obey_priority() || there(b).obey_link() || there(b).send() != 0, f != 0);
    }
    set(b, Ok, 0, 0, on());
    set(b, Ok, 0, 0, PauseCtx::default().with_data(3));
    assert_eq!((there(b).send(), there(b).obey_link(), there(b).obey_priority(), there(b).data()), (0, false, false, 0));
}
