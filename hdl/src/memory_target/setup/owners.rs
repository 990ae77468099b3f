//! Whose queue pairs and keys are.
use crate::prim::ram::RamAsync;
use crate::records::SetupRequest;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Entry of key 0.
const KEYS: u64 = 16;
/// The first that are given away.
const FIRST_QP: u64 = 2;
const FIRST_KEY: u64 = KEYS + 1;

/// Whose an entry is: of queue pair n entry n, of key n entry 16 + n. It stays, not `valid`, when the object has gone.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Owner {
    pub valid: Bit,
    pub ip: Bits<32>,
    /// The request that made it, or ended it.
    pub seq: Bits<32>,
    /// The peer's queue pair.
    pub peer: Bits<24>,
    /// Lives so far: the queue pair's epoch, the key's variant.
    pub life: Bits<8>,
}

/// The entries, and what a request of `ip` has to do with the one at hand.
#[derive(LogicBlock, Default)]
pub(super) struct Owners {
    pub clock: Signal<In, Clock>,
    pub request: Signal<In, SetupRequest>,
    pub ip: Signal<In, Bits<32>>,
    /// It is about a key.
    pub keyed: Signal<In, Bit>,
    /// The first entry to look at: the named one, or of those that are given away.
    pub first: Signal<Out, Bits<5>>,
    pub entry: Signal<In, Bits<5>>,
    pub owner: Signal<Out, Owner>,
    /// The sender's; made by this request, or for this queue pair of the peer; changed last by this request; still the key that is named.
    pub mine: Signal<Out, Bit>,
    pub known: Signal<Out, Bit>,
    pub same: Signal<Out, Bit>,
    pub variant_ok: Signal<Out, Bit>,
    /// The name is no number beyond all entries.
    pub whole: Signal<Out, Bit>,
    /// Entry `place` becomes the sender's, with a next `life`; `valid`: it begins. `clear`: it becomes nobody's.
    pub place: Signal<In, Bits<5>>,
    pub write: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub life: Signal<In, Bits<8>>,
    pub clear: Signal<In, Bit>,
    entries: RamAsync<Owner, 5>,
    mine_now: Signal<Local, Bit>,
    named: Signal<Local, Bits<32>>,
}

#[kernel]
impl Logic for Owners {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, entries);
        self.named.next = self.request.val().object;
        self.entries.read_addr.next = self.entry.val();
        self.owner.next = self.entries.read_data.val();
        self.mine_now.next = self.entries.read_data.val().ip == self.ip.val();
        self.mine.next = self.mine_now.val();
        self.same.next = self.entries.read_data.val().seq == self.request.val().seq;
        self.known.next = self.mine_now.val()
            & self.entries.read_data.val().valid
            & ((self.keyed.val() & (self.entries.read_data.val().seq == self.request.val().seq)) | (!self.keyed.val() & (self.entries.read_data.val().peer == self.request.val().peer_qpn)));
        self.whole.next = !self.named.val().get_bits::<28>(4).any();
        self.variant_ok.next = true;
        if self.keyed.val() {
            self.whole.next = !self.named.val().get_bits::<20>(12).any();
            self.variant_ok.next = self.entries.read_data.val().life == self.named.val().get_bits::<8>(0);
        }
        // Queue pairs 0 and 1 are not given away (IBTA 3.5.10), nor is the ring's key.
        self.first.next = bit_cast::<5, 4>(self.named.val().get_bits::<4>(0));
        if self.keyed.val() {
            self.first.next = bit_cast::<5, 4>(self.named.val().get_bits::<4>(8)) | KEYS;
        }
        if self.valid.val() {
            self.first.next = bits::<5>(FIRST_QP);
            if self.keyed.val() {
                self.first.next = bits::<5>(FIRST_KEY);
            }
        }
        self.entries.write_addr.next = self.place.val();
        self.entries.write_en.next = self.write.val();
        self.entries.write_data.next.valid = self.valid.val() & !self.clear.val();
        self.entries.write_data.next.ip = self.ip.val();
        if self.clear.val() {
            self.entries.write_data.next.ip = bits::<32>(0);
        }
        self.entries.write_data.next.seq = self.request.val().seq;
        self.entries.write_data.next.peer = self.request.val().peer_qpn;
        self.entries.write_data.next.life = self.life.val();
    }
}
