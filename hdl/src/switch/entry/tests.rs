//! Lines, word by word, and which event moves which counter.
use super::Entry;
use crate::host::testing::Control;
use crate::switch::{local, outer, wrap};
use crate::tb::Tb;
use ferric_abi::context::{TunnelCounts, TunnelCtx};
use ferric_abi::csr::TUNNEL_COUNTS;
use ferric_model::net::networks::Networks;

struct Bench {
    tb: Tb,
    control: Control,
}

impl Bench {
    fn access(&mut self, line: u32, word: u32, value: Option<u32>) -> u32 {
        self.control.ask(line, word, value);
        for _ in 0..200 {
            self.tb.cycle();
            if let Some(answer) = self.control.answer() {
                return answer.expect("a line");
            }
        }
        panic!("no answer");
    }

    fn line(&mut self, line: u32, words: u32) -> Vec<u8> {
        (0..words).flat_map(|word| self.access(line, word, None).to_le_bytes()).collect()
    }
}

#[test]
fn lines_and_counters() {
    let mut tb = Tb::new("tunnel_entry", Entry::<4>::default());
    let control = Control::new(&mut tb, 20);
    let mut b = Bench { tb, control };
    let lines: [TunnelCtx; 4] = std::array::from_fn(|_| {
        let mut ctx = TunnelCtx::default();
        ctx.0.copy_from_slice(&b.tb.rng().bytes(56));
        ctx
    });
    for (function, ctx) in lines.iter().enumerate() {
        for word in (0..14).rev() {
            let value = u32::from_le_bytes(ctx.0[4 * word..4 * word + 4].try_into().expect("four"));
            b.access(function as u32, word as u32, Some(value));
            // Nobody writes counters, nor lines of functions that there are none.
            b.access(TUNNEL_COUNTS, word as u32, Some(value));
            b.access(4 + function as u32, word as u32, Some(value));
            b.access(TUNNEL_COUNTS + function as u32, word as u32, Some(value));
        }
    }
    for (function, ctx) in lines.iter().enumerate() {
        assert_eq!(b.line(function as u32, 14), ctx.0);
        assert_eq!(b.tb.get_wide(&format!("ctx${function}")).iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>(), ctx.0);
    }
    assert_eq!(b.line(TUNNEL_COUNTS, 34), [0; 136]);
    assert_eq!(b.line(5, 14), [0; 56]);
    // Who has a tunnel: whose line is valid, or bound while it is written.
    for n in 0..16u32 {
        for function in 0..4 {
            b.access(function, 1, Some(0));
            let line = TunnelCtx::default().with_valid(n >> function & 1 == 1 && function % 2 == 1).with_bound(n >> function & 1 == 1 && function % 2 == 0);
            b.access(function, 0, Some(u32::from_le_bytes(line.0[..4].try_into().expect("four"))));
        }
        let of = |networks: Networks| networks.bytes().chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four"))).collect::<Vec<_>>();
        assert_eq!(b.tb.get_wide("networks"), of(Networks::apart(n.into())));
        // Function 3 has joined function 1: of the two one judges what comes.
        b.access(3, 1, Some(u32::from_le_bytes(TunnelCtx::default().with_joined(true).with_leader(1).0[4..8].try_into().expect("four"))));
        let third = n >> 3 & 1 == 1;
        assert_eq!(b.tb.get_wide("networks"), of(if third { Networks::apart(n.into()).join(3, 1) } else { Networks::apart(n.into()) }));
        let end = TunnelCtx(b.tb.get_wide("ends$3").iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>().try_into().expect("56"));
        assert_eq!((end.valid(), end.bound()), (false, third));
        assert_eq!(b.tb.get_wide("ends$1"), b.tb.get_wide("ctx$1"));
        b.access(3, 1, Some(0));
    }
    // Each event by itself, and several blocks' at once; the order of the record is that of the blocks' lists.
    let names: Vec<&str> = outer::STATS.iter().chain(wrap::STATS).copied().chain(["wrong_function"]).chain(local::DEPARTED.iter().chain(local::ARRIVED).copied()).collect();
    assert_eq!(names, TunnelCounts::LAYOUT.fields.iter().map(|f| f.name).collect::<Vec<_>>());
    for n in 0..names.len() {
        for _ in 0..=n {
            b.tb.set("stripped", if n < 10 { 1 << n } else { 0 });
            b.tb.set("wrapped", u64::from(n == 10 || n == 3));
            b.tb.set("foreign", u64::from(n == 11 || n == 1));
            b.tb.set("departed", if (12..16).contains(&n) { 1 << (n - 12) } else { 0 });
            b.tb.set("arrived", u64::from(n == 16 || n == 0));
            b.tb.cycle();
        }
        ["stripped", "wrapped", "foreign", "departed", "arrived"].iter().for_each(|port| b.tb.set(port, 0));
        b.tb.run(3);
    }
    let sums: Vec<u64> = b.line(TUNNEL_COUNTS, 34).chunks(8).map(|w| u64::from_le_bytes(w.try_into().expect("eight"))).collect();
    assert_eq!(sums, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 + 4, 12 + 2, 13, 14, 15, 16, 17 + 1]);
    // A reset takes the tunnels, not the counts.
    b.tb.reset();
    assert!(b.tb.get_wide("networks").iter().all(|word| *word == 0));
    (0..4).for_each(|function| assert_eq!(b.line(function, 14), [0; 56]));
    assert_eq!(b.line(TUNNEL_COUNTS, 2), [1, 0, 0, 0, 0, 0, 0, 0]);
}
