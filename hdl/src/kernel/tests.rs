//! A kernel with names and one with their numbers give the same text.
use super::kernel;
use ferric_abi::codes::{CqeStatus, QpState};
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
