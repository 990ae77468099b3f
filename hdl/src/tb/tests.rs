//! The test bench against good and bad blocks.

use super::{Fields, Tb};
use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A one-entry buffer: half throughput, all outputs registered.
#[derive(LogicBlock, Default)]
struct Slot<const W: usize, const K: usize> {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    s: AxisSink<W, K>,
    m: AxisSrc<W, K>,
    data: DFF<Bits<W>>,
    keep: DFF<Bits<K>>,
    last: DFF<Bit>,
    full: DFF<Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Slot<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, data, keep, last, full);
        self.m.data.next = self.data.q.val();
        self.m.keep.next = self.keep.q.val();
        self.m.last.next = self.last.q.val();
        self.m.valid.next = self.full.q.val();
        self.s.ready.next = !self.full.q.val();
        if !self.full.q.val() & self.s.valid.val() {
            self.data.d.next = self.s.data.val();
            self.keep.d.next = self.s.keep.val();
            self.last.d.next = self.s.last.val();
            self.full.d.next = true;
        }
        if self.full.q.val() & self.m.ready.val() {
            self.full.d.next = false;
        }
        if self.reset.val() {
            self.full.d.next = false;
        }
    }
}

/// Two slots behind each other through linked ports: the children's buses are this block's own.
#[derive(LogicBlock, Default)]
struct Pair {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    s: AxisSink<64, 8>,
    m: AxisSrc<64, 8>,
    a: Slot<64, 8>,
    b: Slot<64, 8>,
}

#[kernel]
impl Logic for Pair {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, a, b);
        self.a.reset.next = self.reset.val();
        self.b.reset.next = self.reset.val();
        AxisSink::<64, 8>::link(&mut self.s, &mut self.a.s);
        AxisSrc::<64, 8>::join(&mut self.a.m, &mut self.b.s);
        AxisSrc::<64, 8>::link(&mut self.m, &mut self.b.m);
    }
}

fn frames_pass(mut tb: Tb, stalls: [u32; 2]) {
    let (s, m) = (tb.axis_source("s", stalls[0]), tb.axis_sink("m", stalls[1]));
    let frames: Vec<Vec<u8>> = (0..100).map(|_| tb.rng().range(1, 200) as usize).collect::<Vec<_>>().into_iter().map(|len| tb.rng().bytes(len)).collect();
    frames.iter().for_each(|frame| s.push(frame));
    let beats = s.pending() as u64;
    let mut got = Vec::new();
    tb.run_until(beats * 60 + 1000, |_| {
        got.extend(m.pop());
        got.len() == frames.len()
    });
    assert!(got == frames, "frames differ");
    assert_eq!((s.taken(), m.taken(), s.pending()), (beats, beats, 0));
}

#[test]
fn frames_pass_a_register_under_stalls() {
    for stalls in [[0, 0], [50, 0], [0, 50], [90, 60]] {
        frames_pass(Tb::new("tb_slot64", Slot::<64, 8>::default()), stalls);
        frames_pass(Tb::new("tb_slot512", Slot::<512, 64>::default()), stalls);
    }
    frames_pass(Tb::new("tb_pair", Pair::default()), [30, 30]);
}

#[test]
fn without_stalls_every_cycle_counts() {
    let mut tb = Tb::new("tb_slot64", Slot::<64, 8>::default());
    let (s, m) = (tb.axis_source("s", 0), tb.axis_sink("m", 0));
    s.push(&[7; 80]);
    tb.run(20);
    assert_eq!(m.pop(), Some(vec![7; 80]), "ten beats of two cycles each");
    s.push(&[1; 8]);
    tb.cycle();
    assert_eq!((tb.get("m$valid"), tb.get("s$ready")), (1, 0), "state after the edge");
    tb.reset();
    assert_eq!(tb.get("m$valid"), 0);
    tb.run(5);
    assert_eq!(m.beats(), 0, "reset dropped the beat in the block");
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
#[allow(dead_code)]
enum Kind {
    Read,
    Write,
    Fence,
}

#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Msg {
    op: Bits<5>,
    kind: Kind,
    addr: Bits<64>,
    flag: Bit,
}

/// Which of a block's rules `Echo` breaks.
#[derive(LogicBlock)]
struct Echo {
    clock: Signal<In, Clock>,
    s_data: Signal<In, Msg>,
    s: MsgSink<Msg>,
    m: MsgSrc<Msg>,
    held: DFF<Msg>,
    full: DFF<Bit>,
    count: DFF<Bits<4>>,
    drops_valid: Constant<Bit>,
    changes_payload: Constant<Bit>,
    passes_ready: Constant<Bit>,
}

impl Echo {
    fn new(fault: u32) -> Self {
        Echo {
            clock: Default::default(),
            s_data: Default::default(),
            s: Default::default(),
            m: Default::default(),
            held: Default::default(),
            full: Default::default(),
            count: Default::default(),
            drops_valid: Constant::new(fault == 1),
            changes_payload: Constant::new(fault == 2),
            passes_ready: Constant::new(fault == 3),
        }
    }
}

#[kernel]
impl Logic for Echo {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held, full, count);
        self.count.d.next = self.count.q.val() + 1;
        self.m.data.next = self.held.q.val();
        self.m.valid.next = self.full.q.val();
        self.s.ready.next = !self.full.q.val();
        if self.drops_valid.val() & self.count.q.val().all() {
            self.m.valid.next = false;
        }
        if self.changes_payload.val() & self.count.q.val().all() {
            self.m.data.next.flag = !self.held.q.val().flag;
        }
        if self.passes_ready.val() {
            self.s.ready.next = !self.full.q.val() & self.m.ready.val();
        }
        if self.s.valid.val() & self.s.ready.val() {
            self.held.d.next = self.s.data.val();
            self.held.d.next.addr = self.s.data.val().addr ^ self.s_data.val().addr;
            self.full.d.next = true;
        }
        if self.full.q.val() & self.m.ready.val() {
            self.full.d.next = false;
        }
    }
}

fn messages_pass(name: &str, fault: u32) {
    let layout = Fields::of::<Msg>();
    assert_eq!(layout.width(), 72);
    let mut tb = Tb::new(name, Echo::new(fault));
    let (s, m) = (tb.source("s", 20), tb.sink("m", 60));
    tb.set_wide("s_data", layout.pack(&[("addr", 0xff)]));
    let messages: Vec<Vec<u32>> = (0..200).map(|_| tb.rng().words(72)).collect();
    messages.iter().for_each(|message| s.push(message.clone()));
    tb.run_until(5000, |_| m.len() == messages.len());
    for message in &messages {
        let mut expected = message.clone();
        layout.set(&mut expected, "addr", layout.get(message, "addr") ^ 0xff);
        let got = m.pop().expect("as many as were sent");
        assert_eq!(layout.unpack(&got), layout.unpack(&expected));
    }
}

#[test]
fn struct_messages_pass_and_broken_protocols_are_found() {
    messages_pass("tb_echo", 0);
    for (fault, words) in [(1, "valid fell"), (2, "payload changed"), (3, "combinational path from `m`")] {
        let run = || messages_pass(&format!("tb_echo{fault}"), fault);
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the fault went unseen");
        let text = panic.downcast_ref::<String>().expect("a formatted panic");
        assert!(text.contains(words), "fault {fault}: {text}");
    }
}

#[test]
fn an_input_left_open_inside_is_reported() {
    #[derive(LogicBlock, Default)]
    struct Forgetful {
        clock: Signal<In, Clock>,
        s: AxisSink<64, 8>,
        m: AxisSrc<64, 8>,
        slot: Slot<64, 8>,
    }
    #[kernel]
    impl Logic for Forgetful {
        #[hdl_gen]
        fn update(&mut self) {
            self.slot.clock.next = self.clock.val();
            AxisSink::<64, 8>::link(&mut self.s, &mut self.slot.s);
            AxisSrc::<64, 8>::link(&mut self.m, &mut self.slot.m);
        }
    }
    let error = crate::emit::emit("forgetful", Forgetful::default()).unwrap_err();
    assert_eq!(error.faults, ["input forgetful.slot.reset has no driver"]);
}

/// What the lint gate refuses is not simulated, the second time neither.
#[test]
fn the_gate_stands_before_every_bench() {
    let text = "module latched(input wire clock, input wire f, input wire [7:0] a, output reg [7:0] y);\nalways @(*) if (f) y = a;\nendmodule\n";
    for _ in 0..2 {
        let panic = catch_unwind(AssertUnwindSafe(|| Tb::from_verilog("latched", text, 1))).err().expect("refused");
        let said = panic.downcast_ref::<String>().expect("a sentence");
        assert!(said.contains("the lint gate refuses `latched`") && said.contains("LATCH"), "{said}");
    }
}
