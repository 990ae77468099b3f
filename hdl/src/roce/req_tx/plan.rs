//! What req_tx must know about a work request and its context before the first packet: one register stage, so that the
//! state machine decides on single bits.

use crate::msg::SqWqe;
use crate::prim::pack::Cast;
use crate::records::{ReqCtx, WqeHead};
use rust_hdl::prelude::*;

/// Latches its outputs from `line` and `wqe` in cycles with `en`.
#[derive(LogicBlock, Default)]
pub struct Plan {
    pub clock: Signal<In, Clock>,
    pub en: Signal<In, Bit>,
    pub line: Signal<In, ReqCtx>,
    pub wqe: Signal<In, SqWqe>,
    /// Of another epoch, or the queue pair does not send.
    pub stale: Signal<Out, Bit>,
    pub live: Signal<Out, Bit>,
    /// The request whose turn it is.
    pub in_order: Signal<Out, Bit>,
    /// At or behind a request that failed locally.
    pub past_error: Signal<Out, Bit>,
    /// The tracker has no place for a new request.
    pub full: Signal<Out, Bit>,
    pub nop: Signal<Out, Bit>,
    /// `CqeStatus` if the request cannot be sent, else 0.
    pub status: Signal<Out, Bits<8>>,
    /// UD or RAW: one packet whatever the length.
    pub single: Signal<Out, Bit>,
    pub reliable: Signal<Out, Bit>,
    /// Packets of the whole message, less one.
    pub more: Signal<Out, Bits<24>>,
    /// Payload bytes of a full packet.
    pub mtu: Signal<Out, Bits<13>>,
    /// Retransmission time, 4.096 us * 2^timeout in ticks, at most 2^30.
    pub ticks: Signal<Out, Bits<32>>,
    head: Cast<Bits<256>, WqeHead>,
    r_stale: DFF<Bit>,
    r_live: DFF<Bit>,
    r_in_order: DFF<Bit>,
    r_past_error: DFF<Bit>,
    r_full: DFF<Bit>,
    r_nop: DFF<Bit>,
    r_bad: DFF<Bit>,
    r_err: DFF<Bit>,
    r_long: DFF<Bit>,
    r_zero: DFF<Bit>,
    r_single: DFF<Bit>,
    r_datagram: DFF<Bit>,
    r_reliable: DFF<Bit>,
    r_ragged: DFF<Bit>,
    r_whole: DFF<Bits<24>>,
    r_mtu: DFF<Bits<13>>,
    r_ticks: DFF<Bits<32>>,
    send: Signal<Local, Bit>,
    write: Signal<Local, Bit>,
    idle: Signal<Local, Bit>,
    imm: Signal<Local, Bit>,
    raw: Signal<Local, Bit>,
    opcode: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<32>>,
    transport: Signal<Local, Bits<3>>,
    beyond: Signal<Local, Bits<16>>,
    tracked: Signal<Local, Bits<16>>,
    exponent: Signal<Local, Bits<5>>,
    several: Signal<Local, Bit>,
}

impl Logic for Plan {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, r_stale, r_live, r_in_order, r_past_error, r_full, r_nop, r_bad, r_err, r_long, r_zero, r_single,
            r_datagram, r_reliable, r_ragged, r_whole, r_mtu, r_ticks
        );
        self.head.x.next = self.wqe.val().head;
        self.length.next = self.head.y.val().length;
        self.opcode.next = self.head.y.val().opcode;
        self.transport.next = self.line.val().qp_type;
        self.send.next = (self.opcode.val() == 0) | (self.opcode.val() == 1);
        self.write.next = (self.opcode.val() == 2) | (self.opcode.val() == 3);
        self.idle.next = self.opcode.val() == 15;
        self.imm.next = self.opcode.val().get_bit(0);
        self.raw.next = self.transport.val() == 3;
        self.beyond.next = self.wqe.val().index - self.line.val().error_index;
        self.tracked.next = self.line.val().sent_index - self.line.val().una_index;
        self.exponent.next = self.line.val().timeout;
        if self.line.val().timeout > 28 {
            self.exponent.next = bits::<5>(28);
        }
        if self.en.val() {
            self.r_stale.d.next = !(self.wqe.val().epoch == self.line.val().epoch);
            self.r_live.d.next = self.line.val().state == 3;
            self.r_in_order.d.next = self.wqe.val().index == self.line.val().next_index;
            self.r_past_error.d.next = self.line.val().error_pending & !self.beyond.val().get_bit(15);
            self.r_full.d.next = self.tracked.val() > 127;
            self.r_nop.d.next = self.idle.val();
            self.r_err.d.next = self.wqe.val().err;
            self.r_bad.d.next = !(self.send.val() | self.write.val() | self.idle.val())
                | (self.write.val() & self.transport.val().get_bit(1))
                | (self.send.val() & self.imm.val() & self.raw.val());
            self.r_zero.d.next = self.length.val() == 0;
            self.r_long.d.next = self.length.val().get_bit(31)
                | (self.raw.val() & ((self.length.val() > 9216) | (self.length.val() == 0)));
            self.r_single.d.next = self.transport.val().get_bit(1);
            self.r_datagram.d.next = self.transport.val() == 2;
            self.r_reliable.d.next = self.transport.val() == 0;
            self.r_ticks.d.next = bits::<32>(4) << bit_cast::<32, 5>(self.exponent.val());
            match self.line.val().pmtu.index() {
                1 => {
                    self.r_mtu.d.next = bits::<13>(256);
                    self.r_whole.d.next = self.length.val().get_bits::<24>(8);
                    self.r_ragged.d.next = self.length.val().get_bits::<8>(0).any();
                }
                2 => {
                    self.r_mtu.d.next = bits::<13>(512);
                    self.r_whole.d.next = bit_cast::<24, 23>(self.length.val().get_bits::<23>(9));
                    self.r_ragged.d.next = self.length.val().get_bits::<9>(0).any();
                }
                3 => {
                    self.r_mtu.d.next = bits::<13>(1024);
                    self.r_whole.d.next = bit_cast::<24, 22>(self.length.val().get_bits::<22>(10));
                    self.r_ragged.d.next = self.length.val().get_bits::<10>(0).any();
                }
                4 => {
                    self.r_mtu.d.next = bits::<13>(2048);
                    self.r_whole.d.next = bit_cast::<24, 21>(self.length.val().get_bits::<21>(11));
                    self.r_ragged.d.next = self.length.val().get_bits::<11>(0).any();
                }
                _ => {
                    self.r_mtu.d.next = bits::<13>(4096);
                    self.r_whole.d.next = bit_cast::<24, 20>(self.length.val().get_bits::<20>(12));
                    self.r_ragged.d.next = self.length.val().get_bits::<12>(0).any();
                }
            }
        }
        self.stale.next = self.r_stale.q.val();
        self.live.next = self.r_live.q.val();
        self.in_order.next = self.r_in_order.q.val();
        self.past_error.next = self.r_past_error.q.val();
        self.full.next = self.r_full.q.val();
        self.nop.next = self.r_nop.q.val();
        self.single.next = self.r_single.q.val();
        self.reliable.next = self.r_reliable.q.val();
        self.mtu.next = self.r_mtu.q.val();
        self.ticks.next = self.r_ticks.q.val();
        self.several.next = (self.r_whole.q.val() > 1) | ((self.r_whole.q.val() == 1) & self.r_ragged.q.val());
        self.status.next = bits::<8>(0);
        if self.r_err.q.val() {
            self.status.next = bits::<8>(19);
        } else if self.r_bad.q.val() {
            self.status.next = bits::<8>(2);
        } else if (self.r_long.q.val() | (self.r_datagram.q.val() & self.several.val())) & !self.r_nop.q.val() {
            self.status.next = bits::<8>(1);
        }
        self.more.next = self.r_whole.q.val() - 1;
        if self.r_ragged.q.val() {
            self.more.next = self.r_whole.q.val();
        }
        if self.r_zero.q.val() | self.r_single.q.val() {
            self.more.next = bits::<24>(0);
        }
    }
}
