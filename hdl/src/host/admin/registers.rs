//! The functions' admin registers as words for the engine.

use crate::prim::mux::IndexMux;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

// Numbers of the words.
const SQ_LOW: u64 = 0;
const SQ_HIGH: u64 = 1;
const CQ_LOW: u64 = 2;
const CQ_HIGH: u64 = 3;

/// `word`, one cycle late: 0, 1 ring; 2, 3 completion ring; else producer [15:0], log2 slots [19:16], enabled [20],
/// soft reset wanted [21].
#[derive(LogicBlock, Default)]
pub(super) struct Registers {
    pub clock: Signal<In, Clock>,
    pub admin_sq: [Signal<In, Bits<64>>; 4],
    pub admin_cq: [Signal<In, Bits<64>>; 4],
    pub admin_log_size: [Signal<In, Bits<4>>; 4],
    pub admin_producer: [Signal<In, Bits<16>>; 4],
    pub enable: Signal<In, Bits<4>>,
    pub soft_reset: Signal<In, Bits<4>>,
    pub chosen: Signal<In, Bits<2>>,
    pub number: Signal<In, Bits<3>>,
    pub word: Signal<Out, Bits<32>>,
    held: DFF<Bits<32>>,
    sq: IndexMux<Bits<64>, 4, 2>,
    cq: IndexMux<Bits<64>, 4, 2>,
    log: IndexMux<Bits<4>, 4, 2>,
    producer: IndexMux<Bits<16>, 4, 2>,
    enabled: Signal<Local, Bits<4>>,
    resetting: Signal<Local, Bits<4>>,
    status: Signal<Local, Bits<32>>,
}

#[kernel]
impl Logic for Registers {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held);
        for i in 0..4 {
            self.sq.x[i].next = self.admin_sq[i].val();
            self.cq.x[i].next = self.admin_cq[i].val();
            self.log.x[i].next = self.admin_log_size[i].val();
            self.producer.x[i].next = self.admin_producer[i].val();
        }
        self.sq.sel.next = self.chosen.val();
        self.cq.sel.next = self.chosen.val();
        self.log.sel.next = self.chosen.val();
        self.producer.sel.next = self.chosen.val();
        self.enabled.next = self.enable.val() >> self.chosen.val();
        self.resetting.next = self.soft_reset.val() >> self.chosen.val();
        self.status.next = bit_cast::<32, 16>(self.producer.y.val())
            | (bit_cast::<32, 4>(self.log.y.val()) << 16)
            | (bit_cast::<32, 1>(self.enabled.val().get_bit(0).into()) << 20)
            | (bit_cast::<32, 1>(self.resetting.val().get_bit(0).into()) << 21);
        match self.number.val().index() {
            SQ_LOW => {
                self.held.d.next = self.sq.y.val().get_bits::<32>(0);
            }
            SQ_HIGH => {
                self.held.d.next = self.sq.y.val().get_bits::<32>(32);
            }
            CQ_LOW => {
                self.held.d.next = self.cq.y.val().get_bits::<32>(0);
            }
            CQ_HIGH => {
                self.held.d.next = self.cq.y.val().get_bits::<32>(32);
            }
            _ => {
                self.held.d.next = self.status.val();
            }
        }
        self.word.next = self.held.q.val();
    }
}
