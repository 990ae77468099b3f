//! A kernel with names and one with their numbers give the same text.
use super::kernel;
use ferric_abi::codes::{CqeStatus, QpState};
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

const NINE: u16 = 9;
const LARGE: u64 = 0xfe44_5e70;
const SECOND: usize = 1;

macro_rules! block {
    ($(#[$attribute:meta])? $name:ident, $nine:tt, $large:tt, $second:tt, [$($state:tt)+], [$($status:tt)+], $arm:tt, [$($code:tt)+]) => {
        #[derive(LogicBlock, Default)]
        struct $name {
            a: Signal<In, Bits<32>>,
            state: Signal<In, Bits<3>>,
            y: Signal<Out, Bits<32>>,
            z: [Signal<Out, Bits<8>>; 2],
            bit: Signal<Out, Bit>,
        }

        $(#[$attribute])?
        impl Logic for $name {
            #[hdl_gen]
            fn update(&mut self) {
                self.y.next = bits::<32>($large);
                self.z[0].next = bits::<8>($nine);
                self.z[$second].next = bits::<8>($($status)+);
                self.bit.next = (self.state.val() == $($state)+) | self.a.val().get_bit($second);
                match self.state.val().index() {
                    $($code)+ => self.y.next = self.a.val() + $nine,
                    _ => {}
                }
                match self.a.val().index() {
                    $arm => self.y.next = self.a.val(),
                    _ => {}
                }
            }
        }
    };
}

block!(
    #[kernel]
    Named,
    NINE,
    LARGE,
    SECOND,
    [QpState::Rts as u64],
    [CqeStatus::Fatal as u64],
    SECOND,
    [QpState::Error]
);
block!(Bare, 9, 0xfe44_5e70_u64, 1, [3], [19], 1, [6]);

#[test]
fn names_give_the_text_of_their_numbers() {
    let named = crate::emit::emit("top", Named::default()).expect("well formed");
    assert_eq!(named, crate::emit::emit("top", Bare::default()).expect("well formed"));
    assert!(named.contains("32'h9") && named.contains("64'hfe445e70") && named.contains("6:"), "{named}");
}

#[derive(LogicStruct, Clone, Copy, Debug, Default, PartialEq)]
struct Pair {
    low: Bits<12>,
    high: Bits<5>,
}

#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "Receive"]
struct Send {
    data: Signal<Out, Bits<8>>,
    taken: Signal<In, Bit>,
}

#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "Send"]
struct Receive {
    data: Signal<In, Bits<8>>,
    taken: Signal<Out, Bit>,
}

/// A part with an end of an interface each way.
macro_rules! ends {
    ($($(#[$attribute:meta])? $name:ident),+) => {$(
        #[derive(LogicBlock, Default)]
        struct $name {
            m: Send,
            s: Receive,
        }

        $(#[$attribute])?
        impl Logic for $name {
            #[hdl_gen]
            fn update(&mut self) {
                self.m.data.next = self.s.data.val();
                self.s.taken.next = self.m.taken.val();
            }
        }
    )+};
}

ends!(
    #[kernel]
    EndsHere,
    EndsThere
);

/// A block with everything that kernels may say.
macro_rules! all {
    ($(#[$attribute:meta])? $name:ident, $ends:ident) => {
        #[derive(LogicBlock, BlockDefault)]
        struct $name<const N: usize> {
            clock: Signal<In, Clock>,
            a: Signal<In, Bits<32>>,
            b: Signal<In, Bits<32>>,
            c: Signal<In, Bits<7>>,
            wide: Signal<In, Bits<100>>,
            given: Signal<In, Pair>,
            on: Signal<In, Bit>,
            many: [Signal<In, Bits<8>>; N],
            s: Receive,
            m: Send,
            y: Signal<Out, Bits<32>>,
            z: Signal<Out, Bits<100>>,
            each: [Signal<Out, Bits<8>>; N],
            made: Signal<Out, Pair>,
            flag: Signal<Out, Bit>,
            flags: Signal<Out, Bits<8>>,
            kept: DFF<Bits<32>>,
            counts: [DFF<Bits<8>>; N],
            alone: DFF<Bit>,
            first: $ends,
            second: $ends,
            between: Signal<Local, Bits<32>>,
        }

        $(#[$attribute])?
        impl<const N: usize> Logic for $name<N> {
            #[hdl_gen]
            fn update(&mut self) {
                dff_setup!(self, clock, kept);
                clock!(self, clock, alone);
                self.alone.d.next = self.on.val() & !self.alone.q.val();
                Receive::link(&mut self.s, &mut self.first.s);
                Send::join(&mut self.first.m, &mut self.second.s);
                Send::link(&mut self.m, &mut self.second.m);
                self.between.next = (self.a.val() + self.b.val()) ^ (self.a.val() - self.b.val());
                self.y.next = self.between.val();
                self.z.next = bit_cast::<100, 32>(self.between.val()) << bits::<100>(3_u64.into());
                self.flags.next = bits::<8>(0x81);
                self.flag.next = self.a.val().all() || (self.b.val().any() && self.c.val().xor());
                for i in 0..N {
                    self.counts[i].clock.next = self.clock.val();
                    self.counts[i].d.next = self.counts[i].q.val() + self.many[i].val() + 0xff_u64;
                    self.each[i].next = self.counts[i].q.val() | bits::<8>(1);
                }
                if (self.a.val() == self.b.val()) | (self.a.val() != 5) {
                    self.y.next = self.a.val() & self.b.val() & !bits::<32>(0xffff_0000_u64);
                    self.kept.d.next = self.kept.q.val() >> 2;
                } else if (self.a.val() < self.b.val()) || (self.a.val() >= 1) {
                    self.z.next = self.wide.val().replace_bit(3, true).replace_bit(self.c.val().index(), self.on.val());
                } else if (self.a.val() <= self.b.val()) && (self.a.val() > 0xffff_u64) {
                    self.flag.next = self.wide.val().get_bit(self.c.val().index());
                    self.y.next = bit_cast::<32, 12>(self.given.val().low) | bit_cast::<32, 20>(self.wide.val().get_bits::<20>(44));
                } else {
                    self.flag.next = false;
                }
                self.made.next.low = self.given.val().low;
                self.made.next.high = bits::<5>(9);
                match self.c.val().index() {
                    0 => self.flag.next = true,
                    3 => {
                        self.flag.next = false;
                        self.flags.next = bit_cast::<8, 7>(self.c.val());
                    }
                    _ => {}
                }
            }
        }
    };
}

all!(
    #[kernel]
    Here,
    EndsHere
);
all!(There, EndsThere);

#[test]
fn kernels_have_the_verilog_that_rust_hdl_gives_them() {
    let here = crate::emit::emit("top", Here::<3>::default()).expect("well formed");
    assert_eq!(here, crate::emit::emit("top", There::<3>::default()).expect("well formed"));
    for part in ["kept$d", "first$m$data", "counts$2$d", "case", "else if", "<<", "^"] {
        assert!(here.contains(part), "{part}: {here}");
    }
}

#[test]
#[should_panic(expected = "Verilator simulates")]
fn rust_hdl_has_nothing_to_simulate() {
    Logic::update(&mut EndsHere::default());
}
