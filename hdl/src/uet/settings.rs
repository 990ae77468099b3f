//! What will be registers: the parameters of packet delivery in a card, as the constants that they are until then.
use super::types::{PAYLOAD, SLOT};
use crate::uet::pdc::types::PLACES;
use ferric_abi::uet::UET_PORT;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Sizes of the engine in a card: log2 of PDCs, of chains in their directory, of a window, of messages, of responses kept.
pub const LP: usize = 4;
pub const LH: usize = 3;
pub const LW: usize = 7;
pub const LM: usize = 5;
pub const LK: usize = 6;

/// Ticks of 1.024 us: until an unanswered packet goes again, and one that was refused; of idleness; after a close; of a silent peer; for a clear; of a stall.
const RTO: u64 = 200;
const NACK_WAIT: u64 = 50;
const IDLE: u64 = 20_000;
const SAFETY: u64 = 4 * RTO;
const REAP: u64 = 30_000_000;
const CLEAR_WAIT: u64 = 50;
const TAIL_LOSS: u64 = 50;
const STALL_LEAST: u64 = 16;
/// Times in a row.
const RTO_MAX: u64 = 5;
const NACK_MAX: u64 = 5;
/// PSNs of a window; the same in 128; what a peer is taken to allow until it says.
const WINDOW: u64 = 1 << LW;
const MPR: u64 = WINDOW / ferric_abi::uet::MPR_UNIT as u64;
/// Bytes: of a packet's payload; after which an ACK is asked for, or sent; the least that a packet counts for. Ticks after which one is sent.
const MTU: u64 = 4096;
const ACK_BYTES: u64 = 16 << 10;
const ACK_LEAST: u64 = 1 << 10;
const ACK_WAIT: u64 = 4;
/// PDCs: all, and at most of either role.
const ALL: u64 = (1 << LP) - 1;
const SHARE: u64 = 11;
/// Those that one peer may open: it needs two, and as many that linger or were left behind when its function was reset.
const PEER_SHARE: u64 = 5;
/// Those that PDCs to one peer may have: it needs two, and as many that rest.
const PEER_INITIATORS: u64 = 4;
const SEED: u64 = 0x1d87_2b41;
/// Entropy values: how many, the first, and what lies between two.
const LAST_SLOT: u64 = 15;
const ENTROPY: u64 = 0xc000;
const BETWEEN: u64 = 77;
const SLOTS: u64 = 1 << SLOT;

/// Steady, but for the table of paths, which is written after each reset.
#[derive(LogicBlock, BlockDefault)]
#[demand(SHARE <= ALL && PEER_SHARE < SHARE && PEER_INITIATORS < SHARE)]
pub struct Settings {
    pub clock: Signal<In, Clock>,
    /// Synchronous; the paths are written within 64 cycles.
    pub reset: Signal<In, Bit>,
    pub port: Signal<Out, Bits<16>>,
    pub crc: Signal<Out, Bit>,
    pub rto: Signal<Out, Bits<32>>,
    pub nack_wait: Signal<Out, Bits<32>>,
    pub idle: Signal<Out, Bits<32>>,
    pub safety: Signal<Out, Bits<32>>,
    pub reap: Signal<Out, Bits<32>>,
    pub clear_wait: Signal<Out, Bits<32>>,
    pub tail_loss: Signal<Out, Bits<32>>,
    pub stall_least: Signal<Out, Bits<32>>,
    pub rto_max: Signal<Out, Bits<4>>,
    pub nack_max: Signal<Out, Bits<5>>,
    pub default_range: Signal<Out, Bits<16>>,
    pub ask_bytes: Signal<Out, Bits<20>>,
    pub mtu: Signal<Out, Bits<PAYLOAD>>,
    pub path_order: Signal<Out, Bit>,
    pub last_slot: Signal<Out, Bits<SLOT>>,
    pub penalties: Signal<Out, Bit>,
    pub table_en: Signal<Out, Bit>,
    pub table_slot: Signal<Out, Bits<SLOT>>,
    pub table_entropy: Signal<Out, Bits<16>>,
    pub ack_bytes: Signal<Out, Bits<20>>,
    pub ack_least: Signal<Out, Bits<14>>,
    pub ack_wait: Signal<Out, Bits<32>>,
    pub window: Signal<Out, Bits<16>>,
    pub mpr: Signal<Out, Bits<8>>,
    pub share: Signal<Out, Bits<PLACES>>,
    pub peer_share: Signal<Out, Bits<PLACES>>,
    pub peer_initiators: Signal<Out, Bits<PLACES>>,
    pub places: Signal<Out, Bits<PLACES>>,
    pub low: Signal<Out, Bits<PLACES>>,
    pub linger_cut: Signal<Out, Bit>,
    pub seed: Signal<Out, Bits<32>>,
    at: DFF<Bits<7>>,
    entropy: DFF<Bits<16>>,
}

#[kernel]
impl Logic for Settings {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, at, entropy);
        self.port.next = bits::<16>(UET_PORT as u64);
        self.crc.next = false;
        self.rto.next = bits::<32>(RTO);
        self.nack_wait.next = bits::<32>(NACK_WAIT);
        self.idle.next = bits::<32>(IDLE);
        self.safety.next = bits::<32>(SAFETY);
        self.reap.next = bits::<32>(REAP);
        self.clear_wait.next = bits::<32>(CLEAR_WAIT);
        self.tail_loss.next = bits::<32>(TAIL_LOSS);
        self.stall_least.next = bits::<32>(STALL_LEAST);
        self.rto_max.next = bits::<4>(RTO_MAX);
        self.nack_max.next = bits::<5>(NACK_MAX);
        self.default_range.next = bits::<16>(WINDOW);
        self.ask_bytes.next = bits::<20>(ACK_BYTES);
        self.mtu.next = bits::<PAYLOAD>(MTU);
        self.path_order.next = true;
        self.last_slot.next = bits::<SLOT>(LAST_SLOT);
        self.penalties.next = false;
        self.ack_bytes.next = bits::<20>(ACK_BYTES);
        self.ack_least.next = bits::<14>(ACK_LEAST);
        self.ack_wait.next = bits::<32>(ACK_WAIT);
        self.window.next = bits::<16>(WINDOW);
        self.mpr.next = bits::<8>(MPR);
        self.share.next = bits::<PLACES>(SHARE);
        self.peer_share.next = bits::<PLACES>(PEER_SHARE);
        self.peer_initiators.next = bits::<PLACES>(PEER_INITIATORS);
        self.places.next = bits::<PLACES>(ALL);
        self.low.next = bits::<PLACES>(0);
        self.linger_cut.next = false;
        self.seed.next = bits::<32>(SEED);
        self.table_en.next = self.at.q.val() < SLOTS;
        self.table_slot.next = self.at.q.val().get_bits::<SLOT>(0);
        self.table_entropy.next = self.entropy.q.val();
        if self.at.q.val() < SLOTS {
            self.at.d.next = self.at.q.val() + 1;
            self.entropy.d.next = self.entropy.q.val() + BETWEEN;
        }
        if self.reset.val() {
            self.at.d.next = bits::<7>(0);
            self.entropy.d.next = bits::<16>(ENTROPY);
        }
    }
}
