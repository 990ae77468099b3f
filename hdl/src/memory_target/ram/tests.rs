//! Commands on all ports at once against a byte array.
use super::Memory;
use crate::msg::{PayCmd, PayDone, RdCmd, RdRow, WrCmd, WrDone, WrSmall};
use crate::tb::{Fields, Sink, Source, Tb};

const BYTES: usize = 4096 * 4;
const ASM: usize = 65536;

struct Lab {
    tb: Tb,
    ram: Vec<u8>,
    asm: Vec<u8>,
    ports: [Source; 5],
    data: Source,
    done: [Sink; 5],
}

impl Lab {
    fn new(stall: u32, seed: u64) -> Lab {
        let mut tb = Tb::with_seed("target_ram", Memory::<11>::default(), seed);
        let ports = ["s_pay", "s_rd", "s_cmd", "s_small$0", "s_small$1"].map(|name| tb.source(name, stall));
        let data = tb.source_of("s_data", &["data", "keep", "last"], stall);
        let done = ["m_pay_done", "m_rd", "m_cmd_done", "m_small_done$0", "m_small_done$1"].map(|name| tb.sink(name, stall));
        Lab { tb, ram: vec![0; BYTES], asm: vec![0; ASM], ports, data, done }
    }

    fn step(&mut self) {
        self.tb.cycle();
        let (we, row1, row) = (self.tb.get("asm_we"), self.tb.get("asm_row1"), self.tb.get("asm_addr") as usize);
        let data = self.tb.get("asm_data").to_le_bytes();
        for lane in (0..8).filter(|lane| we >> lane & 1 == 1) {
            self.asm[((row + (row1 >> lane & 1) as usize) * 8 + lane) % ASM] = data[lane];
        }
    }

    /// Waits for one answer of port `n`.
    fn answer(&mut self, n: usize) -> Vec<u32> {
        for _ in 0..10_000 {
            if let Some(words) = self.done[n].pop() {
                return words;
            }
            self.step();
        }
        panic!("no answer on port {n}");
    }

    fn write(&mut self, at: usize, bytes: &[u8], tag: u128) {
        self.ports[2].push(Fields::of::<WrCmd>().pack(&[("iova", at as u128), ("len", bytes.len() as u128), ("tag", tag)]));
        let beats = (at % 8 + bytes.len()).div_ceil(8);
        for beat in 0..beats {
            let (mut word, mut keep) = (self.tb.rng().next_u64().to_le_bytes(), 0);
            for lane in 0..8 {
                if let Some(byte) = (beat * 8 + lane).checked_sub(at % 8).and_then(|i| bytes.get(i)) {
                    word[lane] = *byte;
                    keep |= 1 << lane;
                }
            }
            let word = u64::from_le_bytes(word);
            self.data.push_fields(&[&[word as u32, (word >> 32) as u32], &[keep], &[u32::from(beat + 1 == beats)]]);
        }
        self.ram[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn small(&mut self, port: usize, at: usize, bytes: &[u8], tag: u128) {
        let layout = Fields::of::<WrSmall>();
        let mut words = layout.pack(&[("iova", at as u128), ("len", bytes.len() as u128), ("tag", tag)]);
        let data: Vec<u32> = bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).chain(std::iter::repeat(0)).take(16).collect();
        layout.set_words(&mut words, "data", &data);
        self.ports[3 + port].push(words);
        self.ram[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn payload(&mut self, at: usize, len: usize, dst: usize, slot: u128) {
        self.ports[0].push(Fields::of::<PayCmd>().pack(&[("iova", at as u128), ("len", len as u128), ("dst", dst as u128), ("slot", slot)]));
    }

    fn row(&mut self, at: usize, tag: u128) {
        self.ports[1].push(Fields::of::<RdCmd>().pack(&[("iova", at as u128), ("rows", 1), ("tag", tag)]));
    }
}

/// One command after the other, of every kind, any place and length.
#[test]
fn commands_do_what_they_say() {
    for (stall, seed) in [(0, 1), (50, 2)] {
        let mut lab = Lab::new(stall, seed);
        for n in 0..300u128 {
            let len = 1 + lab.tb.rng().below([8, 100, 4096][n as usize % 3]) as usize;
            let at = lab.tb.rng().below((BYTES - len) as u64 + 1) as usize;
            let tag = n % 100;
            match lab.tb.rng().below(5) {
                0 => {
                    let bytes = lab.tb.rng().bytes(len);
                    lab.write(at, &bytes, tag);
                    assert_eq!(Fields::of::<WrDone>().get(&lab.answer(2), "tag"), tag);
                }
                port @ (1 | 2) => {
                    let len = 8 << lab.tb.rng().below(4);
                    let bytes = lab.tb.rng().bytes(len);
                    lab.small(port as usize - 1, at / len * len % BYTES, &bytes, tag);
                    assert_eq!(Fields::of::<WrDone>().get(&lab.answer(2 + port as usize), "tag"), tag);
                }
                3 => {
                    let at = at / 64 * 64;
                    lab.row(at, tag);
                    let words = lab.answer(1);
                    let layout = Fields::of::<RdRow>();
                    assert_eq!((layout.get(&words, "tag"), layout.get(&words, "last"), layout.get(&words, "err")), (tag, 1, 0));
                    let bytes: Vec<u8> = layout.get_words(&words, "data").iter().flat_map(|w| w.to_le_bytes()).collect();
                    assert_eq!(bytes, lab.ram[at..at + 64]);
                }
                _ => {
                    let dst = lab.tb.rng().below((ASM - len) as u64) as usize;
                    let before = lab.asm.clone();
                    lab.payload(at, len, dst, tag);
                    let done = lab.answer(0);
                    assert_eq!(Fields::of::<PayDone>().get(&done, "slot"), tag);
                    lab.step();
                    assert_eq!(lab.asm[dst..dst + len], lab.ram[at..at + len]);
                    assert!(lab.asm[..dst] == before[..dst] && lab.asm[dst + len..] == before[dst + len..], "bytes beside");
                }
            }
        }
    }
}

/// All ports busy, each in its own part of the memory: nobody waits for ever, nothing is mixed up.
#[test]
fn ports_take_turns() {
    for (stall, seed) in [(0, 3), (40, 4)] {
        let mut lab = Lab::new(stall, seed);
        let filled: Vec<u8> = lab.tb.rng().bytes(0x1000);
        lab.write(0, &filled, 0);
        lab.answer(2);
        for n in 0..30usize {
            let (len, block) = (1 + lab.tb.rng().below(1000) as usize, lab.tb.rng().bytes(1000));
            lab.write(0x1000 + lab.tb.seed() as usize % 8 + n, &block[..len], n as u128);
            lab.small(0, 0x2000 + 8 * n, &block[..8], n as u128);
            lab.small(1, 0x3000 + 32 * n, &block[..32], n as u128);
            lab.payload(n, 900, 2048 * n + 5, n as u128);
            lab.row(64 * n, n as u128);
        }
        let mut counts = [0; 5];
        while counts != [30; 5] {
            for n in 0..5 {
                while let Some(words) = lab.done[n].pop() {
                    if n == 1 {
                        let bytes: Vec<u8> = Fields::of::<RdRow>().get_words(&words, "data").iter().flat_map(|w| w.to_le_bytes()).collect();
                        assert_eq!(bytes, lab.ram[64 * counts[1]..][..64]);
                    }
                    counts[n] += 1;
                }
            }
            assert!(lab.tb.cycles() < 200_000, "{counts:?}");
            lab.step();
        }
        lab.step();
        for n in 0..30 {
            assert_eq!(lab.asm[2048 * n + 5..][..900], lab.ram[n..n + 900]);
        }
        for page in 0..4 {
            lab.payload(0x1000 * page, 4096, 0x1000 * page, 0);
            lab.answer(0);
            lab.step();
        }
        assert_eq!(lab.asm[..BYTES], lab.ram);
    }
}

/// A client that does not take its answers stops its own port only.
#[test]
fn an_answer_that_is_not_taken() {
    let mut tb = Tb::with_seed("target_ram", Memory::<11>::default(), 5);
    let [small, other, rows] = ["s_small$0", "s_small$1", "s_rd"].map(|name| tb.source(name, 0));
    // Nobody listens to `m_small_done$0`.
    let [other_done, row] = ["m_small_done$1", "m_rd"].map(|name| tb.sink(name, 0));
    let write = |at: u128| Fields::of::<WrSmall>().pack(&[("iova", at), ("len", 8)]);
    small.push(write(0));
    small.push(write(8));
    other.push(write(64));
    rows.push(Fields::of::<RdCmd>().pack(&[("iova", 64), ("rows", 1)]));
    tb.run_until(100, |_| other_done.len() == 1 && row.len() == 1);
    assert_eq!((small.taken(), other.taken()), (1, 1));
}
