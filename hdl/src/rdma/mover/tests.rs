//! Frames in, host memory out: byte for byte, at both widths.
use super::*;
use crate::tb::{Fields, Tb};
use std::collections::BTreeMap;

struct Move {
    frame: Vec<u8>,
    off: usize,
    len: usize,
    iova: u64,
    free: bool,
    /// The bytes come with the order.
    direct: bool,
}

/// Runs `moves`, playing the cell buffer; returns the cycles from first to last beat out.
fn run<const W: usize, const K: usize, const LK: usize>(name: &str, stall: u32, make: impl Fn(&mut Tb) -> Vec<Move>) -> u64 {
    let mut tb = Tb::new(name, Mover::<W, K, LK>::default());
    let moves = make(&mut tb);
    let s_move = tb.source("s_move", stall);
    let (m_cell, s_cell) = (tb.sink("m_cell", stall), tb.source_of("s_cell", &["data", "keep", "last"], stall));
    let (m_cmd, m_data) = (tb.sink("m_cmd", stall), tb.axis_sink("m_data", stall));
    let (op, read, cmd) = (Fields::of::<MoveOp>(), Fields::of::<CellRead>(), Fields::of::<WrCmd>());
    for (handle, m) in moves.iter().enumerate() {
        s_move.push(op.pack(&[
            ("handle", handle as u128),
            ("off", m.off as u128),
            ("len", m.len as u128),
            ("iova", m.iova.into()),
            ("function", handle as u128 ^ 0x5a5),
            ("free", m.free.into()),
            ("direct", m.direct.into()),
            ("data", if m.direct { m.frame.iter().rev().fold(0, |a, b| a << 8 | u128::from(*b)) } else { tb.rng().next_u64().into() }),
        ]));
    }
    let (mut reads, mut first, mut last) = (0, 0, 0);
    // What the cell buffer is asked for.
    let asked: Vec<usize> = (0..moves.len()).filter(|n| !moves[*n].direct || moves[*n].free).collect();
    let beats: usize = moves.iter().filter(|m| m.len > 0).map(|m| (m.iova as usize % K + m.len).div_ceil(K)).sum();
    tb.run_until(200_000, |tb| {
        while let Some(words) = m_cell.pop() {
            let handle = read.get(&words, "handle") as usize;
            assert_eq!(handle, asked[reads], "frames are read in order");
            reads += 1;
            let m = &moves[handle];
            let wanted = if m.direct { 0 } else { m.len };
            assert_eq!((read.get(&words, "off"), read.get(&words, "len")), (m.off as u128, wanted as u128));
            assert_eq!(read.get(&words, "free") == 1, m.free);
            // Aligned beats; lanes outside the payload are noise.
            let lane = m.off % K;
            let count = if wanted == 0 { 0 } else { (lane + m.len).div_ceil(K) };
            for beat in 0..count {
                let data: Vec<u32> = (0..K / 4)
                    .map(|w| {
                        let bytes: Vec<u8> = (0..4)
                            .map(|b| {
                                let at = (beat * K + w * 4 + b).checked_sub(lane).filter(|at| *at < m.len);
                                at.map_or_else(|| tb.rng().next_u32() as u8, |at| m.frame[m.off + at])
                            })
                            .collect();
                        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
                    })
                    .collect();
                s_cell.push_fields(&[&data, &[u32::MAX; 2][..K.div_ceil(32)].iter().map(|x| if K < 32 { x >> (32 - K) } else { *x }).collect::<Vec<_>>(), &[u32::from(beat + 1 == count)]]);
            }
        }
        if m_data.beats() > 0 && first == 0 {
            first = tb.cycles();
        }
        last = tb.cycles();
        m_data.beats() == beats && reads == asked.len()
    });
    for (handle, m) in moves.iter().enumerate().filter(|(_, m)| m.len > 0) {
        let words = m_cmd.pop().expect("one command per move");
        assert_eq!(cmd.get(&words, "iova"), u128::from(m.iova));
        assert_eq!(cmd.get(&words, "len"), m.len as u128);
        assert_eq!(cmd.get(&words, "function"), handle as u128 ^ 0x5a5);
        let mut memory = BTreeMap::new();
        let base = m.iova as usize & !(K - 1);
        let count = (m.iova as usize % K + m.len).div_ceil(K);
        for n in 0..count {
            let beat = m_data.pop_beat().expect("as many beats as the command says");
            assert_eq!(beat.last, n + 1 == count, "move {handle} beat {n}");
            for lane in (0..K).filter(|lane| beat.keep >> lane & 1 == 1) {
                memory.insert(base + n * K + lane, beat.data[lane]);
            }
        }
        let want = (0..m.len).map(|i| (m.iova as usize + i, m.frame[m.off + i]));
        assert!(memory == want.collect(), "move {handle}: off {} len {} iova {:x}", m.off, m.len, m.iova);
    }
    assert!(m_cmd.is_empty());
    last - first
}

fn random_moves<const K: usize>(tb: &mut Tb) -> Vec<Move> {
    (0..150)
        .map(|_| {
            let rng = tb.rng();
            if rng.percent(20) {
                let len = rng.range(1, 8) as usize;
                let at = rng.below(4096 - 8);
                return Move { frame: rng.bytes(len), off: 0, len, iova: (rng.below(1 << 40) << 12) + at, free: rng.percent(10), direct: true };
            }
            let off = rng.range(0, 130) as usize;
            let page = rng.below(1 << 40) << 12;
            let at = if rng.percent(30) { 0 } else { rng.below(4096) };
            let most = match rng.below(3) {
                0 => 4096 - at,
                1 => (4096 - at).min(3 * K as u64),
                _ => (4096 - at).min(600),
            };
            let len = if rng.percent(10) { 0 } else { rng.range(1, most) as usize };
            Move { frame: rng.bytes(off + len), off, len, iova: page + at, free: len == 0 || rng.percent(50), direct: false }
        })
        .collect()
}

#[test]
fn every_byte_arrives_w64() {
    run::<64, 8, 3>("mover64", 30, random_moves::<8>);
}

#[test]
fn every_byte_arrives_w512() {
    run::<512, 64, 6>("mover512", 30, random_moves::<64>);
}

#[test]
fn full_packets_take_seventeen_cycles() {
    let fill = |_: &mut Tb| {
        let packet = |n: u64| Move { frame: vec![n as u8; 54 + 1024], off: 54, len: 1024, iova: n << 12, free: true, direct: false };
        (0..50).map(packet).collect()
    };
    let cycles = run::<512, 64, 6>("mover512", 0, fill);
    println!("mover: {cycles} cycles for 50 packets of 1024 bytes");
    assert!(cycles <= 50 * 17, "{cycles} cycles for 50 packets");
}

/// The last beat out of a move leaves while the first beat of the next comes in, whatever lies between: here two moves for each packet, which a page's end cuts.
#[test]
fn moves_off_a_line_lose_nothing_between_them() {
    let cut = |mtu: usize| {
        move |_: &mut Tb| {
            let mut moves = Vec::new();
            for n in 0..40u64 {
                let (at, frame) = (n * mtu as u64 + 16, vec![n as u8; 58 + mtu]);
                let first = mtu.min(4096 - (at % 4096) as usize);
                for (off, len) in [(58, first), (58 + first, mtu - first)] {
                    if len > 0 {
                        moves.push(Move { frame: frame.clone(), off, len, iova: at + (off - 58) as u64, free: off + len == 58 + mtu, direct: false });
                    }
                }
            }
            moves
        }
    };
    // 65 beats in and 64 out, and one for what lies behind the page; 17 in and out, and one more for each fourth packet.
    for (mtu, most) in [(4096, 40 * 66), (1024, 40 * 17 + 10)] {
        let cycles = run::<512, 64, 6>("mover512", 0, cut(mtu));
        assert!(cycles <= most + 2, "{cycles} cycles for 40 packets of {mtu} bytes");
    }
}

/// A move in cycle 0: its command and its read are shown in cycle 1; one move every second cycle.
#[test]
fn command_and_read_leave_in_the_next_cycle() {
    let mut tb = Tb::new("mover512", Mover::<512, 64, 6>::default());
    let (s_move, m_cell, m_cmd) = (tb.source("s_move", 0), tb.sink("m_cell", 0), tb.sink("m_cmd", 0));
    (0..2).for_each(|n| s_move.push(Fields::of::<MoveOp>().pack(&[("handle", n), ("off", 70), ("len", 64), ("iova", 0x1000), ("free", 1)])));
    tb.run(2);
    assert_eq!((s_move.taken(), m_cell.taken(), m_cmd.taken()), (1, 1, 1));
    tb.run(2);
    assert_eq!((s_move.taken(), m_cell.taken(), m_cmd.taken()), (2, 2, 2));
}

/// Eight moves are under way before the first byte has come, and before the first command has been taken.
#[test]
fn eight_moves_are_under_way() {
    for commands_go in [true, false] {
        let mut tb = Tb::new("mover512", Mover::<512, 64, 6>::default());
        let (s_move, _cell) = (tb.source("s_move", 0), tb.sink("m_cell", 0));
        let _commands = commands_go.then(|| tb.sink("m_cmd", 0));
        (0..20).for_each(|n| s_move.push(Fields::of::<MoveOp>().pack(&[("handle", n), ("len", 64), ("iova", n << 12)])));
        tb.run(60);
        assert!((8..12).contains(&s_move.taken()), "{} moves, commands taken: {commands_go}", s_move.taken());
    }
}
