//! Every register of the abi list behaves as the list says, for every function, under stalls; the admin engine's view of them, and whose turn it is.

use super::{word, Csr};
use crate::tb::{Sink, Source, Tb};
use ferric_abi::csr::{self, Access, REGISTERS};
use std::collections::{BTreeSet, HashMap};

const CAPS: [u32; 4] = [0x0102_0304, 0x1112_1314, 0x2122_2324, 0x3132_3334];

struct Bench {
    tb: Tb,
    aw: Source,
    w: Source,
    b: Sink,
    ar: Source,
    r: Sink,
    functions: u32,
}

impl Bench {
    fn new(stall: u32) -> Bench {
        Self::of(4, stall)
    }

    /// Of a card of so many functions.
    fn of(functions: u32, stall: u32) -> Bench {
        let mut tb = match functions {
            4 => Tb::new("csr", Csr::<4, 2, 5>::new(CAPS)),
            _ => Tb::new("csr64", Csr::<64, 6, 9>::new(CAPS)),
        };
        tb.set("tick", 0x7171_0001);
        Bench {
            functions,
            aw: tb.source_of("aw_", &["addr"], stall),
            w: tb.source_of("w_", &["data", "strb"], stall),
            b: tb.sink_of("b_", &["resp"], stall),
            ar: tb.source_of("ar_", &["addr"], stall),
            r: tb.sink_of("r_", &["data", "resp"], stall),
            tb,
        }
    }

    fn write(&mut self, addr: u32, data: u32, strb: u32) {
        self.aw.push_fields(&[&[addr]]);
        self.w.push_fields(&[&[data], &[strb]]);
        let b = self.b.clone();
        self.tb.run_until(1000, |_| !b.is_empty());
        assert_eq!(b.pop(), Some(vec![0]));
        self.tb.run(2);
    }

    fn read(&mut self, addr: u32) -> u32 {
        self.ar.push_fields(&[&[addr]]);
        let r = self.r.clone();
        self.tb.run_until(1000, |_| !r.is_empty());
        let fields = r.pop().expect("looked at");
        assert_eq!(fields[1], 0);
        fields[0]
    }

    /// What the admin engine sees.
    fn look(&mut self, function: u32, word: u32) -> u32 {
        self.tb.set("look_function", function.into());
        self.tb.set("look_word", word.into());
        self.tb.cycle();
        self.tb.get("look") as u32
    }

    /// Whose turn it is, found within a round.
    fn turn(&mut self) -> Option<u32> {
        self.tb.run(u64::from(self.functions) + 2);
        let turn = self.look(0, word::TURN);
        (turn >> word::DUE == 1).then_some(turn & 0xfff)
    }

    /// A pulse of the engine about a function.
    fn pulse(&mut self, port: &str, function: u32) {
        self.tb.set("look_function", function.into());
        self.tb.set(port, 1);
        self.tb.cycle();
        self.tb.set(port, 0);
    }

    /// The function whose turn it is is taken up.
    fn serve(&mut self) -> Option<u32> {
        let turn = self.turn()?;
        self.pulse("served", turn);
        Some(turn)
    }
}

/// Bits of a register that keep what is written.
fn mask(offset: u32) -> u32 {
    match offset {
        csr::CONTROL => 1,
        csr::ADMIN_SIZE => 0xf,
        _ => !0,
    }
}

fn constant(offset: u32) -> Option<u32> {
    Some(match offset {
        csr::MAGIC => csr::MAGIC_VALUE,
        csr::VERSION => csr::VERSION_VALUE,
        csr::CAPS0 => CAPS[0],
        csr::CAPS1 => CAPS[1],
        csr::CAPS2 => CAPS[2],
        csr::CAPS3 => CAPS[3],
        csr::TICK => 0x7171_0001,
        _ => return None,
    })
}

#[test]
fn every_register_behaves_as_the_abi_says() {
    for (functions, stall) in [(4, 0), (4, 50), (64, 20)] {
        let mut bench = Bench::of(functions, stall);
        let mut model: HashMap<(u32, u32), u32> = HashMap::new();
        for round in 0..if functions == 4 { 6 } else { 2 } {
            for function in 0..functions {
                for register in REGISTERS {
                    // CONTROL without its reset bit here.
                    let value = bench.tb.rng().next_u32() & if register.offset == csr::CONTROL { !2 } else { !0 };
                    bench.write(function << 16 | register.offset, value, 0xf);
                    if register.access == Access::ReadWrite {
                        model.insert((function, register.offset), value & mask(register.offset));
                    }
                }
            }
            for function in 0..functions {
                for register in REGISTERS {
                    let got = bench.read(function << 16 | register.offset);
                    let expected = match register.access {
                        Access::WriteOnly => 0,
                        Access::ReadWrite => model[&(function, register.offset)],
                        Access::ReadOnly if register.offset == csr::STATUS => model[&(function, csr::CONTROL)],
                        Access::ReadOnly => constant(register.offset).expect("every read-only register is known"),
                    };
                    assert_eq!(got, expected, "round {round} function {function} {}", register.name);
                }
                let get = |offset| model[&(function, offset)];
                for (word, offset) in [(word::SQ, csr::ADMIN_SQ_LO), (word::SQ + 1, csr::ADMIN_SQ_HI), (word::CQ, csr::ADMIN_CQ_LO), (word::CQ + 1, csr::ADMIN_CQ_HI), (word::SIZE, csr::ADMIN_SIZE)] {
                    assert_eq!(bench.look(function, word), get(offset));
                }
                assert_eq!(bench.look(function, word::STATE), get(csr::CONTROL) << word::ENABLED);
            }
        }
        // What is no register reads as zero and changes nothing.
        let kept = bench.read(csr::ADMIN_SQ_LO);
        for offset in (0..0x100).step_by(4).filter(|offset| REGISTERS.iter().all(|r| r.offset != *offset)) {
            bench.write(offset, !0, 0xf);
            assert_eq!(bench.read(offset), 0, "offset {offset:#x}");
        }
        for addr in [functions << 16, functions << 16 | csr::ADMIN_SQ_LO, 1 << 28 | csr::ADMIN_SQ_LO, csr::ADMIN_SQ_LO + 2] {
            bench.write(addr, !kept, 0xf);
            assert_eq!(bench.read(addr), 0);
        }
        bench.write(csr::ADMIN_SQ_LO, !kept, 0x7);
        assert_eq!(bench.read(csr::ADMIN_SQ_LO), kept);
    }
}

#[test]
fn doorbell_and_soft_reset() {
    let mut bench = Bench::new(0);
    bench.write(2 << 16 | csr::ADMIN_DOORBELL, 0x1_2345, 0xf);
    bench.write(2 << 16 | csr::CONTROL, 1, 0xf);
    assert_eq!((bench.look(2, word::PRODUCER), bench.look(1, word::PRODUCER)), (0x2345, 0));
    assert_eq!((bench.look(2, word::STATE), bench.look(1, word::STATE)), (1 << word::ENABLED, 0));
    bench.write(2 << 16 | csr::CONTROL, 3, 0xf);
    assert_eq!((bench.look(2, word::STATE), bench.look(1, word::STATE)), (1 << word::RESETTING, 0));
    assert_eq!(bench.look(2, word::PRODUCER), 0);
    assert_eq!((bench.read(2 << 16 | csr::STATUS), bench.read(1 << 16 | csr::STATUS)), (2, 0));
    assert_eq!(bench.read(2 << 16 | csr::CONTROL), 2);
    // It may be switched on and rung meanwhile.
    bench.write(2 << 16 | csr::CONTROL, 1, 0xf);
    bench.write(2 << 16 | csr::ADMIN_DOORBELL, 1, 0xf);
    assert_eq!(bench.read(2 << 16 | csr::STATUS), 3);
    bench.pulse("reset_done", 1);
    assert_eq!(bench.read(2 << 16 | csr::STATUS), 3, "that was another's");
    bench.pulse("reset_done", 2);
    assert_eq!((bench.read(2 << 16 | csr::STATUS), bench.look(2, word::PRODUCER)), (1, 1));
    // One that is asked for while one ends is not lost: in that very cycle either.
    bench.pulse("reset_done", 2);
    let mut asked = |done: Option<usize>| {
        bench.tb.set("look_function", 2);
        bench.tb.set("look_word", word::STATE.into());
        bench.aw.push_fields(&[&[2 << 16 | csr::CONTROL]]);
        bench.w.push_fields(&[&[2], &[0xf]]);
        let mut seen = Vec::new();
        for cycle in 0..10 {
            bench.tb.set("reset_done", u64::from(Some(cycle) == done));
            bench.tb.cycle();
            seen.push(bench.tb.get("look") >> word::RESETTING);
        }
        seen
    };
    // What is seen was so one cycle before, and written another one before.
    let effect = asked(None).iter().position(|busy| *busy == 1).expect("it is under way") - 1;
    assert_eq!(asked(Some(effect)).last(), Some(&1));
    assert_eq!(asked(Some(effect + 1)).last(), Some(&0));
}

/// After the card's reset no function has anything, and nobody is due; what comes at once waits until that is so.
#[test]
fn the_cards_reset_clears_every_row() {
    for functions in [4, 64] {
        let mut bench = Bench::of(functions, 0);
        for function in 0..functions {
            for register in REGISTERS.iter().filter(|r| r.access != Access::ReadOnly) {
                bench.write(function << 16 | register.offset, !2, 0xf);
            }
        }
        bench.write(1 << 16 | csr::CONTROL, 2, 0xf);
        bench.tb.reset();
        bench.write((functions - 1) << 16 | csr::ADMIN_SQ_LO, 77, 0xf);
        for function in 0..functions {
            for register in REGISTERS.iter().filter(|r| r.access != Access::ReadOnly) {
                let expected = if (function, register.offset) == (functions - 1, csr::ADMIN_SQ_LO) { 77 } else { 0 };
                assert_eq!(bench.read(function << 16 | register.offset), expected, "function {function} {}", register.name);
            }
            assert_eq!((bench.look(function, word::PRODUCER), bench.look(function, word::STATE)), (0, 0));
        }
        assert_eq!(bench.turn(), None);
    }
}

/// A function has a turn when it is told something, one for all it was told before, and as many more as the engine says.
#[test]
fn who_is_told_something_has_a_turn() {
    for functions in [4, 64] {
        let mut bench = Bench::of(functions, 0);
        assert_eq!(bench.serve(), None);
        let last = functions - 1;
        for (offset, value) in [(csr::ADMIN_DOORBELL, 1), (csr::CONTROL, 1), (csr::CONTROL, 0), (csr::CONTROL, 2)] {
            bench.write(last << 16 | offset, value, 0xf);
            bench.write(last << 16 | offset, value, 0xf);
            assert_eq!((bench.serve(), bench.serve()), (Some(last), None), "{offset:#x}");
        }
        // What says nothing to the engine, and what is no write of a function's register.
        for (addr, value, strobe) in [(csr::ADMIN_SQ_LO, 1, 0xf), (csr::ADMIN_SIZE, 1, 0xf), (csr::ADMIN_DOORBELL, 1, 3), (functions << 16 | csr::ADMIN_DOORBELL, 1, 0xf), (csr::STATUS, 1, 0xf)] {
            bench.write(addr, value, strobe);
            assert_eq!(bench.serve(), None, "{addr:#x}");
        }
        // Told anew while it is being served.
        bench.write(1 << 16 | csr::ADMIN_DOORBELL, 1, 0xf);
        assert_eq!(bench.serve(), Some(1));
        bench.write(1 << 16 | csr::ADMIN_DOORBELL, 2, 0xf);
        assert_eq!((bench.serve(), bench.serve()), (Some(1), None));
        bench.pulse("again", 1);
        assert_eq!((bench.serve(), bench.serve()), (Some(1), None));
        // Whoever is due has a turn before another has its second.
        bench.write(1 << 16 | csr::ADMIN_DOORBELL, 3, 0xf);
        assert_eq!(bench.serve(), Some(1));
        let mut due: BTreeSet<u32> = (0..functions).filter(|f| f % 3 == 1).collect();
        due.iter().for_each(|f| bench.write(f << 16 | csr::ADMIN_DOORBELL, 1, 0xf));
        bench.pulse("again", 1);
        while !due.is_empty() {
            let f = bench.serve().expect("somebody is due");
            assert!(due.remove(&f), "function {f} has no turn left");
            if !due.is_empty() {
                bench.pulse("again", f);
            }
        }
        while let Some(f) = bench.serve() {
            assert!(f % 3 == 1);
        }
    }
}

/// Writes and turns at random: nobody is forgotten, and nobody has a turn that is not due.
#[test]
fn turns_at_random() {
    for functions in [4, 64] {
        let mut bench = Bench::of(functions, 0);
        let mut due: BTreeSet<u32> = BTreeSet::new();
        for _ in 0..2000 {
            let function = bench.tb.rng().below(functions.into()) as u32;
            match bench.tb.rng().below(4) {
                0 | 1 => {
                    bench.write(function << 16 | csr::ADMIN_DOORBELL, 1, 0xf);
                    due.insert(function);
                }
                2 => {
                    bench.pulse("again", function);
                    due.insert(function);
                }
                _ => {
                    let turn = bench.serve();
                    assert_eq!(turn.is_some(), !due.is_empty());
                    assert!(turn.is_none_or(|f| due.remove(&f)), "{turn:?} of {due:?}");
                }
            }
        }
        while let Some(f) = bench.serve() {
            assert!(due.remove(&f), "{f} of {due:?}");
        }
        assert!(due.is_empty(), "{due:?} have no turn");
    }
}

#[test]
fn writes_never_stall() {
    let mut bench = Bench::new(0);
    bench.read(csr::MAGIC);
    let start = bench.tb.cycles();
    for i in 0..100 {
        bench.aw.push_fields(&[&[csr::ADMIN_DOORBELL]]);
        bench.w.push_fields(&[&[i], &[0xf]]);
    }
    let b = bench.b.clone();
    bench.tb.run_until(120, |_| b.taken() == 100);
    assert!(bench.tb.cycles() - start < 110, "100 writes in {} cycles", bench.tb.cycles() - start);
}
