//! Random accesses against a list of what is to come of them.

use super::*;
use crate::tb::Tb;
use ferric_abi::csr;

/// What the core's register at an address reads as.
fn register(addr: u32) -> u32 {
    addr.wrapping_mul(0x9e37_79b9) | 1 << 16
}

/// Doorbells that a list of 4-byte writes rings: address and data.
fn rung(writes: &[(u32, u32, u32)]) -> Vec<(u32, u64)> {
    let mut low: Option<(u32, u32)> = None;
    let mut rung = Vec::new();
    for &(addr, data, strb) in writes.iter().filter(|w| w.0 >> 12 & 15 != 0) {
        let before = low.take();
        match (addr >> 12 & 15, addr & 7) {
            (1, 0) => low = (strb == 15).then_some((addr, data)),
            (1, 4) => rung.extend(before.filter(|l| l.0 == addr - 4 && strb == 15).map(|l| (l.0, u64::from(l.1) | u64::from(data) << 32))),
            _ => {}
        }
    }
    rung
}

fn run(stall: u32) {
    let mut tb = Tb::new("ferric_ocl_w512", Ocl::<512, 64>::default());
    let (aw, w, b) = (tb.source_of("s_aw_", &["addr"], stall), tb.source_of("s_w_", &["data", "strb"], stall), tb.sink_of("s_b_", &["resp"], stall));
    let (ar, r) = (tb.source_of("s_ar_", &["addr"], stall), tb.sink_of("s_r_", &["data", "resp"], stall));
    let (csr_aw, csr_w, csr_b) = (tb.sink_of("csr_aw_", &["addr"], stall), tb.sink_of("csr_w_", &["data", "strb"], stall), tb.source_of("csr_b_", &["resp"], stall));
    let (csr_ar, csr_r) = (tb.sink_of("csr_ar_", &["addr"], stall), tb.source_of("csr_r_", &["data", "resp"], stall));
    let (db_aw, db_w, db_b) = (tb.sink_of("db_aw_", &["addr", "len"], stall), tb.sink_of("db_w_", &["data", "strb", "last"], stall), tb.source_of("db_b_", &["resp"], stall));
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let rng = tb.rng();
        let (function, data) = ((rng.below(4) as u32) << 16, rng.next_u32());
        let strb = if rng.percent(5) { rng.below(15) as u32 } else { 15 };
        let offset = match rng.below(8) {
            0..=2 => rng.below(0x400) as u32 * 4,
            3..=6 => csr::DB_SQ + rng.below(8) as u32 * 4,
            _ => rng.below(0x3400) as u32 * 4 + 0x2000,
        };
        writes.push((function | offset, data, strb));
        // Most doorbells in two halves.
        if offset >> 12 == 1 && offset & 4 == 0 && rng.percent(80) {
            writes.push((function | offset | 4, rng.next_u32(), 15));
        }
        let read = [rng.below(0x4000) as u32 * 4, csr::CAPS3, rng.below(0x400) as u32 * 4][rng.below(3) as usize];
        reads.push(function | read);
    }
    for (addr, data, strb) in &writes {
        aw.push(*addr);
        w.push_fields(&[&[*data], &[*strb]]);
    }
    reads.iter().for_each(|a| ar.push(*a));
    let (mut registers, mut doorbells) = (Vec::new(), Vec::new());
    tb.run_until(60_000, |_| {
        if !csr_aw.is_empty() && !csr_w.is_empty() {
            let (addr, word) = (csr_aw.pop_u64().unwrap_or(0) as u32, csr_w.pop().unwrap_or_default());
            registers.push((addr, word[0], word[1]));
            csr_b.push(0u8);
        }
        if !db_aw.is_empty() && !db_w.is_empty() {
            doorbells.push((db_aw.pop().unwrap_or_default(), db_w.pop().unwrap_or_default()));
            db_b.push(0u8);
        }
        if let Some(addr) = csr_ar.pop_u64() {
            csr_r.push_fields(&[&[register(addr as u32)], &[0]]);
        }
        b.len() == writes.len() && r.len() == reads.len()
    });
    let to_registers: Vec<_> = writes.iter().copied().filter(|w| w.0 >> 12 & 15 == 0).collect();
    assert_eq!(registers, to_registers);
    let wanted = rung(&writes);
    assert_eq!(doorbells.len(), wanted.len());
    for ((at, beat), (addr, data)) in doorbells.iter().zip(&wanted) {
        assert_eq!(*at, [*addr, 0]);
        let lane = (addr % 64 / 4) as usize;
        assert_eq!((beat[lane], beat[lane + 1]), (*data as u32, (data >> 32) as u32));
        let strobes = u64::from(beat[16]) | u64::from(beat[17]) << 32;
        assert_eq!((strobes, beat[18]), (0xff << (addr % 64), 1));
    }
    assert!(wanted.len() > 40);
    for addr in reads {
        let value = match addr & 0xffff {
            csr::CAPS3 => register(addr) & !(1 << 16),
            0..=0xfff => register(addr),
            _ => 0,
        };
        assert_eq!(r.pop(), Some(vec![value, 0]), "{addr:x}");
    }
}

#[test]
fn registers_doorbells_and_nothing_else() {
    run(0);
    run(40);
}
