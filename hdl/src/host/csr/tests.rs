//! Every register of the abi list behaves as the list says, for every function, under stalls.

use super::{Csr, FUNCTIONS, OFFSETS};
use crate::tb::{Sink, Source, Tb};
use ferric_abi::csr::{self, Access, REGISTERS};
use std::collections::HashMap;

const CAPS: [u32; 4] = [0x0102_0304, 0x1112_1314, 0x2122_2324, 0x3132_3334];

struct Bench {
    tb: Tb,
    aw: Source,
    w: Source,
    b: Sink,
    ar: Source,
    r: Sink,
}

impl Bench {
    fn new(stall: u32) -> Bench {
        let mut tb = Tb::new("csr", Csr::new(CAPS));
        tb.set("tick", 0x7171_0001);
        Bench {
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
        self.tb.run_until(500, |_| !b.is_empty());
        assert_eq!(b.pop(), Some(vec![0]));
        self.tb.run(2);
    }

    fn read(&mut self, addr: u32) -> u32 {
        self.ar.push_fields(&[&[addr]]);
        let r = self.r.clone();
        self.tb.run_until(500, |_| !r.is_empty());
        let fields = r.pop().expect("looked at");
        assert_eq!(fields[1], 0);
        fields[0]
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
    for stall in [0, 50] {
        let mut bench = Bench::new(stall);
        let mut model: HashMap<(u32, u32), u32> = HashMap::new();
        for round in 0..6 {
            for function in 0..FUNCTIONS as u32 {
                for register in REGISTERS {
                    // CONTROL without its reset bit here.
                    let value = bench.tb.rng().next_u32() & if register.offset == csr::CONTROL { !2 } else { !0 };
                    bench.write(function << 16 | register.offset, value, 0xf);
                    if register.access == Access::ReadWrite {
                        model.insert((function, register.offset), value & mask(register.offset));
                    }
                }
            }
            for function in 0..FUNCTIONS as u32 {
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
                let get = |offset| u64::from(model[&(function, offset)]);
                let out = |bench: &Bench, port: &str| bench.tb.get(&format!("{port}${function}"));
                assert_eq!(out(&bench, "admin_sq"), get(csr::ADMIN_SQ_HI) << 32 | get(csr::ADMIN_SQ_LO));
                assert_eq!(out(&bench, "admin_cq"), get(csr::ADMIN_CQ_HI) << 32 | get(csr::ADMIN_CQ_LO));
                assert_eq!(out(&bench, "admin_log_size"), get(csr::ADMIN_SIZE));
                assert_eq!(bench.tb.get("enable") >> function & 1, get(csr::CONTROL));
            }
        }
        // What is no register reads as zero and changes nothing.
        let kept = bench.read(csr::ADMIN_SQ_LO);
        for offset in (0..0x100).step_by(4).filter(|offset| !OFFSETS.contains(offset)) {
            bench.write(offset, !0, 0xf);
            assert_eq!(bench.read(offset), 0, "offset {offset:#x}");
        }
        for addr in [4 << 16, 1 << 28 | csr::ADMIN_SQ_LO, csr::ADMIN_SQ_LO + 2] {
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
    assert_eq!((bench.tb.get("admin_producer$2"), bench.tb.get("admin_producer$1")), (0x2345, 0));
    assert_eq!((bench.tb.get("enable"), bench.tb.get("reset_req")), (4, 0));
    bench.aw.push_fields(&[&[2 << 16 | csr::CONTROL]]);
    bench.w.push_fields(&[&[3], &[0xf]]);
    let pulses: u64 = (0..20)
        .map(|_| {
            bench.tb.cycle();
            bench.tb.get("reset_req")
        })
        .sum();
    assert_eq!(pulses, 4, "one pulse for function 2");
    assert_eq!((bench.tb.get("enable"), bench.tb.get("admin_producer$2")), (0, 0));
    bench.tb.set("reset_busy", 4);
    assert_eq!((bench.read(2 << 16 | csr::STATUS), bench.read(1 << 16 | csr::STATUS)), (2, 0));
    assert_eq!(bench.read(2 << 16 | csr::CONTROL), 2);
}

#[test]
fn writes_never_stall() {
    let mut bench = Bench::new(0);
    let start = bench.tb.cycles();
    for i in 0..100 {
        bench.aw.push_fields(&[&[csr::ADMIN_DOORBELL]]);
        bench.w.push_fields(&[&[i], &[0xf]]);
    }
    let b = bench.b.clone();
    bench.tb.run_until(120, |_| b.taken() == 100);
    assert!(bench.tb.cycles() - start < 110, "100 writes in {} cycles", bench.tb.cycles() - start);
}
