//! The crossing leaves against their models.

use super::{model, *};
use crate::tb::{Clocks, Tb};
use ferric_hdl_derive::kernel;

#[test]
fn a_synchroniser_is_two_registers() {
    let mut tb = Tb::new("sync7", Sync::<Bits<7>>::default());
    let mut model = model::Sync::default();
    // The bench's reset cycles were edges too.
    for n in 0..500 {
        let x = tb.rng().below(128);
        tb.set("x", x);
        tb.cycle();
        let y = model.edge(x);
        assert!(n < 2 || tb.get("y") == y);
    }
}

#[test]
fn reset_is_raised_without_a_clock_and_falls_with_it() {
    let mut tb = Tb::new("reset_sync", ResetSync::default());
    let mut model = model::ResetSync::default();
    for _ in 0..500 {
        let n = tb.rng().percent(80);
        tb.set("n", n.into());
        if !n {
            tb.begin();
            assert_eq!(tb.get("y"), u64::from(model.low()), "before the edge");
            tb.end();
        } else {
            tb.cycle();
        }
        assert_eq!(tb.get("y"), u64::from(model.edge(n)));
    }
}

/// Counter, code and decoder in one top.
#[derive(LogicBlock, Default)]
struct GrayYard {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    step: Signal<In, Bit>,
    binary: Signal<Out, Bits<5>>,
    gray: Signal<Out, Bits<5>>,
    back: Signal<Out, Bits<5>>,
    count: GrayCount<5>,
    decode: GrayToBin<5>,
}

#[kernel]
impl Logic for GrayYard {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, count);
        self.count.reset.next = self.reset.val();
        self.count.step.next = self.step.val();
        self.binary.next = self.count.binary.val();
        self.gray.next = self.count.gray.val();
        self.decode.x.next = self.count.gray.val();
        self.back.next = self.decode.y.val();
    }
}

#[test]
fn a_gray_counter_changes_one_bit_at_a_time() {
    let mut tb = Tb::new("gray5", GrayYard::default());
    let (mut count, mut code) = (0u64, 0u64);
    for _ in 0..500 {
        let step = tb.rng().percent(70);
        tb.set("step", step.into());
        tb.cycle();
        count = (count + u64::from(step)) % 32;
        assert_eq!((tb.get("binary"), tb.get("gray"), tb.get("back")), (count, model::gray(count), count));
        assert_eq!(model::binary(tb.get("gray")), count);
        assert_eq!((tb.get("gray") ^ code).count_ones(), u32::from(step));
        code = tb.get("gray");
    }
}

#[test]
fn memory_with_two_clocks_against_an_array() {
    let clocks = [("write_clock", None, 3103), ("read_clock", None, 16000)];
    let mut tb = Clocks::new("cross_ram", CrossRam::<Bits<40>, 6>::new(4), &clocks);
    let (mut rows, mut shown, mut reads) = ([0u64; 16], 0, 0);
    while reads < 1000 {
        let clock = tb.upcoming();
        if clock == 0 {
            let (row, data, on) = (tb.rng().below(64), tb.rng().next_u64() >> 24, tb.rng().percent(50));
            tb.set("write_addr", row);
            tb.set("write_data", data);
            tb.set("write_en", on.into());
            tb.step();
            if on {
                rows[row as usize % 16] = data;
            }
        } else {
            let (row, on) = (tb.rng().below(64), tb.rng().percent(60));
            tb.set("read_addr", row);
            tb.set("read_en", on.into());
            tb.step();
            if on {
                shown = rows[row as usize % 16];
                reads += 1;
            }
            assert_eq!(tb.get("read_data"), shown);
        }
    }
}
