//! What is answered to a packet, by what it is to the window (UE 3.5.12).
use crate::uet::types::arrival;
use ferric_abi::uet::codes::NackCode;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Steady inputs; no registers. At most one of the four is said.
#[derive(LogicBlock, BlockDefault)]
pub struct Rules {
    /// See [`arrival`].
    pub arrival: Signal<In, Bits<3>>,
    /// It is an ACK_REQUEST, which asks for a packet, and takes nothing.
    pub asks: Signal<In, Bit>,
    /// Trimmed, in all or by the last hop; says SYN; somebody waits for an ACK of it, even if it has come before.
    pub trim: Signal<In, Bits<2>>,
    pub syn: Signal<In, Bit>,
    pub wanted: Signal<In, Bit>,
    /// It goes to semantics.
    pub delivers: Signal<Out, Bit>,
    /// A NACK with `code`, and with what is expected if `tells`.
    pub refuses: Signal<Out, Bit>,
    pub code: Signal<Out, Bits<8>>,
    pub tells: Signal<Out, Bit>,
    /// It is acknowledged again, with nothing new; with the response that is kept.
    pub repeats: Signal<Out, Bit>,
    pub kept: Signal<Out, Bit>,
    cut: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Rules {
    #[hdl_gen]
    fn update(&mut self) {
        self.cut.next = self.trim.val().any();
        self.delivers.next = false;
        self.refuses.next = false;
        self.code.next = bits::<8>(NackCode::NotReceived as u64);
        self.tells.next = false;
        self.repeats.next = false;
        self.kept.next = false;
        if self.arrival.val() == arrival::KEPT {
            self.kept.next = true;
        } else if self.arrival.val() == arrival::OLD {
            self.repeats.next = self.asks.val() | self.cut.val() | self.wanted.val();
        } else if self.asks.val() {
            self.refuses.next = true;
            if self.arrival.val() == arrival::PENDING {
                self.code.next = bits::<8>(NackCode::InProgress as u64);
            }
        } else if self.arrival.val() == arrival::NEW {
            self.delivers.next = !self.cut.val();
            self.refuses.next = self.cut.val();
            self.code.next = bits::<8>(NackCode::Trimmed as u64);
            if self.trim.val().get_bit(1) {
                self.code.next = bits::<8>(NackCode::TrimmedLastHop as u64);
            }
        } else if self.arrival.val() == arrival::NO_ROOM {
            self.refuses.next = true;
            self.code.next = bits::<8>(NackCode::NoGuaranteed as u64);
        } else if self.arrival.val() == arrival::OUTSIDE {
            self.refuses.next = !self.cut.val();
            self.code.next = bits::<8>(NackCode::OutOfWindow as u64);
            if self.syn.val() {
                self.code.next = bits::<8>(NackCode::InvalidSyn as u64);
            }
        } else if self.arrival.val() == arrival::GAP_TELL {
            self.refuses.next = true;
            self.tells.next = true;
            self.code.next = bits::<8>(NackCode::RodOutOfOrder as u64);
        }
    }
}
