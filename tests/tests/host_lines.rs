//! Memory as a card sees it while its owner writes, and as its reader sees it while a card writes: a host's memory is coherent by lines of 64 bytes, so
//! a line that is read is one moment of memory whatever the width of the bus, and a line that is written shows its last bytes last.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Access, QpConfig, SendRequest};
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Pair, Wire};

const LINE: usize = 64;
const BYTES: usize = 4096;

/// A card of `width` bits WRITEs a page that its owner changes, all bytes of it, in every cycle.
fn lines_are_whole(width: usize) {
    let card = CardConfig { width, ..Default::default() };
    let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap();
    let (mut cq0, cq1) = (pair.hosts[0].cq(64).unwrap(), pair.hosts[1].cq(64).unwrap());
    let [mut a, _b] = pair.connected(&QpConfig::default(), &Wire::default(), [&cq0, &cq1]).unwrap();
    let [src, dst] = [0, 1].map(|h: usize| pair.hosts[h].region(BYTES + LINE, Access::ALL).unwrap());
    let [from, to] = [&src, &dst].map(|r| r.addr().next_multiple_of(LINE as u64));
    let sges = [sge(from, BYTES as u32, src.lkey())];
    a.post_send(&SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: to, rkey: dst.rkey(), imm: 0, signaled: true, solicited: false }).unwrap();
    let mut moments = std::collections::BTreeSet::new();
    for n in 0..20_000u32 {
        src.write(0, &[(n % 255) as u8 + 1; BYTES + LINE]);
        pair.world().step();
        let seen = dst.to_vec((to - dst.addr()) as usize, BYTES);
        for (i, line) in seen.chunks(LINE).enumerate().filter(|(_, line)| line[LINE - 1] != 0) {
            assert!(line.iter().all(|b| *b == line[0]), "cycle {n}: line {i} is of several moments, or its end came first: {line:?}");
            moments.insert(line[0]);
        }
        if cq0.poll().is_some() {
            assert!(seen.iter().all(|b| *b != 0) && moments.len() > 1, "{} moments", moments.len());
            return;
        }
    }
    panic!("no completion");
}

#[test]
fn lines_are_whole_w64() {
    lines_are_whole(64);
}

#[test]
fn lines_are_whole_w512() {
    lines_are_whole(512);
}
