//! The memory target: a card without a host whose memory is RAM of the FPGA. See README.md.
pub mod echo;
pub mod engine;
pub mod keys;
pub mod model;
pub mod paths;
pub mod ram;
pub mod ring;
pub mod setup;
mod sort;
#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, AxisSrc, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::stream::AxisArb;
use echo::Echo;
use engine::TargetCore;
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;
use setup::Setup;

// How long events show in `status`, in halves of the period of the tick counter's bit 16.
const ACTIVE: u64 = 3;
const WRONG: u64 = 15;

/// log2 of the queue pairs, of what `roce/reply` keeps, of the keys, and of the rows of 8 bytes of the RAM: 16, 16, 32 KiB.
/// (The ECPIX-5 has no block RAMs for more.)
const LQ: usize = 4;
const LR: usize = LQ + 5;
const LM: usize = 4;
const ROWS: usize = 12;

/// The addresses with which the module `ferric_target_w64` is made: 02:fe:11:00:00:01, 10.0.0.1.
pub const MAC: u64 = 0x02fe_1100_0001;
pub const IP: u32 = 0x0a00_0001;

/// The target as boards have it. `mac` (48 bits) and `ip` (IPv4) are its own addresses.
#[derive(LogicBlock, BlockNew)]
#[given(mac: u64, ip: u32)]
pub struct Target {
    pub clock: Signal<In, Clock>,
    /// Synchronous. What is in the RAM stays.
    pub reset: Signal<In, Bit>,
    /// Ticks of 1.024 us.
    pub now: Signal<In, Bits<32>>,
    /// From the MAC, always taken; `rx_err` with the last beat: a bad frame.
    pub rx: AxisSink<64, 8>,
    pub rx_err: Signal<In, Bit>,
    pub tx: AxisSrc<64, 8>,
    /// Lamps: a frame has come; there is a queue pair; frames come; something went wrong lately.
    pub status: Signal<Out, Bits<4>>,
    core: TargetCore<LQ, LR, LM, ROWS>,
    setup: Setup<ROWS>,
    echo: Echo,
    /// RoCE, answers of the set-up, ARP and ICMP.
    out: AxisArb<64, 8, 3>,
    reset_q: DFF<Bit>,
    /// Behind the core's own register.
    reset_late: DFF<Bit>,
    reset_last: DFF<Bit>,
    seen: DFF<Bit>,
    /// Ticks until the lamp goes out, by 65536.
    active: DFF<Bits<2>>,
    wrong: DFF<Bits<4>>,
    tick: DFF<Bit>,
    #[init(Constant::new(mac.into()))]
    mac: Constant<Bits<48>>,
    #[init(Constant::new(u64::from(ip).into()))]
    ip: Constant<Bits<32>>,
    events: Signal<Local, Bits<8>>,
    second: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Target {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, reset_q, reset_late, reset_last, seen, active, wrong, tick);
        clock!(self, clock, core, setup, echo, out);
        self.reset_q.d.next = self.reset.val();
        self.reset_late.d.next = self.reset_q.q.val();
        self.reset_last.d.next = self.reset_late.q.val();
        self.core.reset.next = self.reset_q.q.val();
        self.out.reset.next = self.reset_q.q.val();
        self.setup.reset.next = self.reset_q.q.val() | self.reset_late.q.val() | self.reset_last.q.val();
        self.echo.reset.next = self.reset_q.q.val();
        self.setup.now.next = self.now.val();
        self.core.mac.next = self.mac.val();
        self.core.ip.next = self.ip.val();
        self.setup.mac.next = self.mac.val();
        self.setup.ip.next = self.ip.val();
        self.echo.mac.next = self.mac.val();
        self.echo.ip.next = self.ip.val();

        // Every frame goes to all who listen; each knows its own.
        self.rx.ready.next = true;
        self.core.rx.data.next = self.rx.data.val();
        self.core.rx.keep.next = self.rx.keep.val();
        self.core.rx.last.next = self.rx.last.val();
        self.core.rx.valid.next = self.rx.valid.val();
        self.core.rx_err.next = self.rx_err.val();
        self.setup.rx_data.next = self.rx.data.val();
        self.setup.rx_last.next = self.rx.last.val();
        self.setup.rx_valid.next = self.rx.valid.val();
        self.setup.rx_err.next = self.rx_err.val();
        self.echo.rx_data.next = self.rx.data.val();
        self.echo.rx_keep.next = self.rx.keep.val();
        self.echo.rx_last.next = self.rx.last.val();
        self.echo.rx_valid.next = self.rx.valid.val();
        self.echo.rx_err.next = self.rx_err.val();
        AxisSrc::<64, 8>::join(&mut self.core.tx, &mut self.out.s[0]);
        AxisSrc::<64, 8>::join(&mut self.setup.tx, &mut self.out.s[1]);
        AxisSrc::<64, 8>::join(&mut self.echo.tx, &mut self.out.s[2]);
        AxisSrc::<64, 8>::link(&mut self.tx, &mut self.out.m);

        MsgSrc::<CtlReq>::join(&mut self.setup.m_ctl, &mut self.core.s_ctl);
        MsgSrc::<CtlResp>::join(&mut self.core.m_ctl, &mut self.setup.s_ctl);
        self.core.key.next = self.setup.key.val();
        self.core.key_en.next = self.setup.key_en.val();
        self.core.peer.next = self.setup.peer.val();
        self.core.peer_en.next = self.setup.peer_en.val();
        self.core.ring.next = self.setup.ring.val();
        self.core.ring_consumer.next = self.setup.ring_consumer.val();
        self.setup.ring_head.next = self.core.ring_head.val();
        self.core.barrier.next = self.setup.barrier.val();
        self.setup.barrier_done.next = self.core.barrier_done.val();

        // Counters and lamps.
        self.events.next = self.core.events.val();
        self.setup.frame.next = self.events.val().get_bit(0);
        self.setup.judged.next = self.events.val().get_bit(3);
        self.setup.failed.next = self.events.val().get_bit(4);
        self.setup.echoed.next = self.echo.answered.val();
        self.setup.malformed.next = self.echo.malformed.val();
        self.tick.d.next = self.now.val().get_bit(16);
        self.second.next = self.tick.q.val() != self.now.val().get_bit(16);
        if self.second.val() {
            if self.active.q.val().any() {
                self.active.d.next = self.active.q.val() - 1;
            }
            if self.wrong.q.val().any() {
                self.wrong.d.next = self.wrong.q.val() - 1;
            }
        }
        if self.rx.valid.val() & self.rx.last.val() & !self.rx_err.val() {
            self.seen.d.next = true;
        }
        if self.events.val().get_bit(0) {
            self.active.d.next = bits::<2>(ACTIVE);
        }
        if self.events.val().get_bit(1) | self.events.val().get_bit(2) | self.events.val().get_bit(4) {
            self.wrong.d.next = bits::<4>(WRONG);
        }
        self.status.next = bit_cast::<4, 1>(self.seen.q.val().into())
            | (bit_cast::<4, 1>(self.setup.active.val().into()) << 1)
            | (bit_cast::<4, 1>(self.active.q.val().any().into()) << 2)
            | (bit_cast::<4, 1>(self.wrong.q.val().any().into()) << 3);
        if self.reset.val() {
            self.seen.d.next = false;
            self.active.d.next = bits::<2>(0);
            self.wrong.d.next = bits::<4>(0);
        }
    }
}
