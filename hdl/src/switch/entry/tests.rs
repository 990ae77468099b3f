//! Lines, word by word, and which event moves which counter.
use super::Entry;
use crate::host::testing::Control;
use crate::switch::{outer, wrap};
use crate::tb::Tb;
use ferric_abi::context::{TunnelCounts, TunnelCtx};

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
    let mut tb = Tb::new("tunnel_entry", Entry::default());
    let control = Control::new(&mut tb, 20);
    let mut b = Bench { tb, control };
    let mut ctx = TunnelCtx::default();
    let bytes = b.tb.rng().bytes(56);
    ctx.0.copy_from_slice(&bytes);
    for word in (0..14).rev() {
        let value = u32::from_le_bytes(ctx.0[4 * word..4 * word + 4].try_into().expect("four"));
        b.access(0, word as u32, Some(value));
        // Nobody writes counters.
        b.access(1, word as u32, Some(value));
    }
    assert_eq!(b.line(0, 14), ctx.0);
    assert_eq!(b.tb.get_wide("ctx").iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>(), ctx.0);
    assert_eq!(b.line(1, 22), [0; 88]);
    // Each event by itself, and both blocks' at once; the order of the record is that of the blocks' lists.
    let names: Vec<&str> = outer::STATS.iter().chain(wrap::STATS).copied().collect();
    assert_eq!(names, TunnelCounts::LAYOUT.fields.iter().map(|f| f.name).collect::<Vec<_>>());
    for n in 0..names.len() {
        for _ in 0..=n {
            b.tb.set("stripped", if n < 10 { 1 << n } else { 0 });
            b.tb.set("wrapped", u64::from(n == 10 || n == 3));
            b.tb.cycle();
        }
        b.tb.set("stripped", 0);
        b.tb.set("wrapped", 0);
        b.tb.run(3);
    }
    let sums: Vec<u64> = b.line(1, 22).chunks(8).map(|w| u64::from_le_bytes(w.try_into().expect("eight"))).collect();
    assert_eq!(sums, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 + 4]);
    // A reset takes the tunnel, not the counts.
    b.tb.reset();
    assert_eq!((b.line(0, 14), b.line(1, 2)), (vec![0; 56], vec![1, 0, 0, 0, 0, 0, 0, 0]));
}
