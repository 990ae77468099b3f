//! Lays the header fields out as bytes. Wiring and two choices; no state.

use crate::msg::HdrOp;
use crate::net::header::{layers::Layers, udp::UdpFront, DATAGRAM};
use crate::prim::pack::BePack;
use crate::records::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ImmDt, PathCtx, Reth};
use ferric_abi::wire;
use ferric_abi::wire::{protocol, ROCE_PORT};
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Where what follows the BTH is packed.
const EXT: usize = DATAGRAM + wire::Bth::BYTES;
/// Bytes of UDP header and BTH.
const FRONT: usize = wire::Udp::BYTES + wire::Bth::BYTES;

/// Header bytes of one op, byte 0 in the low bits, zeros behind `len`.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct HeaderImage {
    pub op: Signal<In, HdrOp>,
    pub path: Signal<In, PathCtx>,
    pub udp_len: Signal<In, Bits<16>>,
    /// See `Ip4Sum`.
    pub total: Signal<In, Bits<20>>,
    pub image: Signal<Out, Bits<1024>>,
    pub len: Signal<Out, Bits<8>>,
    #[init(Layers::new(protocol::UDP))]
    layers: Layers,
    udp: UdpFront,
    #[init(BePack::of(&wire::Bth::LAYOUT, DATAGRAM))]
    bth: BePack<1024, Bth>,
    #[init(BePack::of(&wire::Reth::LAYOUT, EXT))]
    reth: BePack<1024, Reth>,
    #[init(BePack::of(&wire::Reth::LAYOUT, EXT + wire::Feth::BYTES))]
    late_reth: BePack<1024, Reth>,
    #[init(BePack::of(&wire::Aeth::LAYOUT, EXT))]
    aeth: BePack<1024, Aeth>,
    #[init(BePack::of(&wire::AtomicEth::LAYOUT, EXT))]
    atomic: BePack<1024, AtomicEth>,
    #[init(BePack::of(&wire::AtomicAckEth::LAYOUT, EXT + 4))]
    atomic_ack: BePack<1024, AtomicAckEth>,
    #[init(BePack::of(&wire::Deth::LAYOUT, EXT))]
    deth: BePack<1024, Deth>,
    #[init(BePack::of(&wire::ImmDt::LAYOUT, EXT + 8))]
    imm_deth: BePack<1024, ImmDt>,
    #[init(BePack::of(&wire::ImmDt::LAYOUT, EXT))]
    imm: BePack<1024, ImmDt>,
    #[init(BePack::of(&wire::ImmDt::LAYOUT, EXT + 16))]
    imm_reth: BePack<1024, ImmDt>,
    aeth_word: Signal<Local, Bits<32>>,
    ext: Signal<Local, Bits<1024>>,
    body_len: Signal<Local, Bits<8>>,
}

#[kernel]
impl Logic for HeaderImage {
    #[hdl_gen]
    fn update(&mut self) {
        self.layers.path.next = self.path.val();
        self.layers.length.next = self.udp_len.val();
        self.layers.total.next = self.total.val();
        self.udp.src_port.next = self.path.val().udp_sport;
        self.udp.dst_port.next = bits::<16>(ROCE_PORT);
        self.udp.length.next = self.udp_len.val();
        self.bth.x.next.opcode = self.op.val().opcode;
        self.bth.x.next.solicited = self.op.val().solicited;
        self.bth.x.next.migreq = true;
        self.bth.x.next.pad = self.op.val().pad;
        self.bth.x.next.tver = bits::<4>(0);
        self.bth.x.next.pkey = self.path.val().pkey;
        self.bth.x.next.fecn = false;
        self.bth.x.next.becn = false;
        self.bth.x.next.rsvd0 = bits::<6>(0);
        self.bth.x.next.dest_qpn = self.op.val().dest_qpn;
        self.bth.x.next.ack_req = self.op.val().ack_req;
        self.bth.x.next.rsvd1 = bits::<7>(0);
        self.bth.x.next.psn = self.op.val().psn;
        self.reth.x.next.va = self.op.val().raddr;
        self.reth.x.next.rkey = self.op.val().rkey;
        self.reth.x.next.length = self.op.val().dma_len;
        self.late_reth.x.next.va = self.op.val().raddr;
        self.late_reth.x.next.rkey = self.op.val().rkey;
        self.late_reth.x.next.length = self.op.val().dma_len;
        self.aeth_word.next = self.op.val().aeth;
        self.aeth.x.next.syndrome = self.aeth_word.val().get_bits::<8>(24);
        self.aeth.x.next.msn = self.aeth_word.val().get_bits::<24>(0);
        self.atomic.x.next.va = self.op.val().raddr;
        self.atomic.x.next.rkey = self.op.val().rkey;
        self.atomic.x.next.swap_add = self.op.val().operand;
        self.atomic.x.next.compare = self.op.val().compare;
        self.atomic_ack.x.next.original = self.op.val().operand;
        self.imm.x.next.imm = self.op.val().imm;
        self.imm_reth.x.next.imm = self.op.val().imm;
        self.imm_deth.x.next.imm = self.op.val().imm;
        self.deth.x.next.qkey = self.op.val().rkey;
        self.deth.x.next.rsvd0 = bits::<8>(0);
        self.deth.x.next.src_qpn = self.op.val().qpn;
        // Extension headers; the length is that of UDP and BTH, too.
        self.ext.next = bits::<1024>(0);
        self.body_len.next = bits::<8>(FRONT as u64);
        if self.op.val().has_reth {
            self.ext.next = self.reth.y.val();
            self.body_len.next = bits::<8>((FRONT + wire::Reth::BYTES) as u64);
            if self.op.val().has_imm {
                self.ext.next = self.reth.y.val() | self.imm_reth.y.val();
                self.body_len.next = bits::<8>((FRONT + wire::Reth::BYTES + wire::ImmDt::BYTES) as u64);
            }
            // A FETH has the length of immediate data, but stands in front.
            if self.op.val().has_feth {
                self.ext.next = self.imm.y.val() | self.late_reth.y.val();
            }
        } else if self.op.val().has_deth {
            self.ext.next = self.deth.y.val();
            self.body_len.next = bits::<8>((FRONT + wire::Deth::BYTES) as u64);
            if self.op.val().has_imm {
                self.ext.next = self.deth.y.val() | self.imm_deth.y.val();
                self.body_len.next = bits::<8>((FRONT + wire::Deth::BYTES + wire::ImmDt::BYTES) as u64);
            }
        } else if self.op.val().has_imm {
            self.ext.next = self.imm.y.val();
            self.body_len.next = bits::<8>((FRONT + wire::ImmDt::BYTES) as u64);
        } else if self.op.val().has_aeth {
            self.ext.next = self.aeth.y.val();
            self.body_len.next = bits::<8>((FRONT + wire::Aeth::BYTES) as u64);
            if self.op.val().has_atomic_ack {
                self.ext.next = self.aeth.y.val() | self.atomic_ack.y.val();
                self.body_len.next = bits::<8>((FRONT + wire::Aeth::BYTES + wire::AtomicAckEth::BYTES) as u64);
            }
        } else if self.op.val().has_atomic {
            self.ext.next = self.atomic.y.val();
            self.body_len.next = bits::<8>((FRONT + wire::AtomicEth::BYTES) as u64);
        }
        self.layers.body.next = self.udp.y.val() | self.bth.y.val() | self.ext.val();
        self.layers.body_len.next = self.body_len.val();
        self.image.next = self.layers.image.val();
        self.len.next = self.layers.len.val();
    }
}
