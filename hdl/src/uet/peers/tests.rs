//! The table against what was written, while readers look.
use super::*;
use crate::tb::{Fields, Tb};
use ferric_abi::context::PathCtx as Line;

const LE: usize = 3;

#[test]
fn lines_are_what_was_written_and_nobody_after_a_reset() {
    let mut tb = Tb::new("uet_peers", Peers::<LE>::default());
    let (asks, answers) = (tb.source("s_ctl", 30), tb.sink("m_ctl", 30));
    let (ask, told) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    let mut model = [Line::default(); 1 << LE];
    let access = |tb: &mut Tb, line: u64, word: u64, data: Option<u32>| {
        asks.push(ask.pack(&[("line", line.into()), ("word", word.into()), ("write", u128::from(data.is_some())), ("data", data.unwrap_or(0).into())]));
        tb.run_until(1000, |_| !answers.is_empty());
        let words = answers.pop().unwrap();
        (told.get(&words, "data") as u32, told.get(&words, "err"))
    };
    tb.reset();
    let words = Line::BYTES as u64 / 4;
    for round in 0..200u32 {
        let (line, word) = (tb.rng().below(1 << LE), tb.rng().below(words));
        let at = 4 * word as usize;
        let bytes = &mut model[line as usize].0[at..at + 4];
        if tb.rng().percent(50) {
            let data = round.wrapping_mul(0x9e37_79b9);
            bytes.copy_from_slice(&data.to_le_bytes());
            assert_eq!(access(&mut tb, line, word, Some(data)).1, 0);
        } else {
            let was = u32::from_le_bytes(bytes.try_into().unwrap());
            assert_eq!(access(&mut tb, line, word, None), (was, 0));
        }
        for reader in 0..READERS {
            let seen = tb.rng().below(1 << LE);
            tb.set(&format!("line${reader}"), seen);
            tb.run(2);
            let row: Vec<u8> = tb.get_wide(&format!("path${reader}")).iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(row, model[seen as usize].0, "reader {reader}");
        }
    }
    assert_eq!(access(&mut tb, 1 << LE, 0, None).1, 1, "there is no such line");
    tb.reset();
    tb.run(1 << LE);
    for line in 0..1 << LE {
        assert_eq!(access(&mut tb, line, 13, None), (0, 0), "nobody is a peer after a reset");
    }
}
