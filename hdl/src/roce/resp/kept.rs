//! Receive work request buffers that messages in progress keep between their packets, and which of them is taken away next. See README.md.
use crate::prim::arb::BinToOneHot;
use crate::prim::pack::Gather;
use crate::prim::ram::RamAsync;
use crate::records::RspCtx;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Buffers that messages in progress keep at most. The others of `host/rq` are free, or with orders that end.
pub const KEPT: u64 = 40;
/// A function that keeps fewer loses none. `KEPT` by the number of functions: when all are kept, one of the functions keeps as many, and one keeps more if
/// another keeps fewer.
pub const SHARE: u64 = 10;
/// A period has 2^`AGE` cycles: a buffer that has not been used in this one nor in the one before is idle.
pub const AGE: usize = 11;

/// Whose message a buffer is with.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Owner {
    qpn: Bits<24>,
    function: Bits<2>,
}

/// At most one of `keep`, `touch`, `put_back` and `seek` at a time.
#[derive(LogicBlock, BlockDefault)]
pub struct KeptBuffers {
    pub clock: Signal<In, Clock>,
    /// No buffer is kept.
    pub reset: Signal<In, Bit>,
    /// The queue pair in hand and its context, a register.
    pub qpn: Signal<In, Bits<24>>,
    pub ctx: Signal<In, RspCtx>,
    /// One cycle behind `ctx`: the buffer that it names has been taken away.
    pub gone: Signal<Out, Bit>,
    /// Pulses: buffer `handle` is kept by the queue pair in hand; has been used once more; is kept no longer.
    pub keep: Signal<In, Bit>,
    pub touch: Signal<In, Bit>,
    pub put_back: Signal<In, Bit>,
    pub handle: Signal<In, Bits<6>>,
    /// No further buffer may be kept.
    pub crowded: Signal<Out, Bit>,
    /// Looks for a buffer to be taken away: an idle one of a function that keeps its share or more. If there is none and the function of the queue pair in
    /// hand keeps fewer than its share, one that is in use, of a function that keeps more. `found`, one or more cycles later: `victim`, which `loser` has;
    /// both stay until the next search. Or `none`: there is no such buffer.
    pub seek: Signal<In, Bit>,
    pub found: Signal<Out, Bit>,
    pub none: Signal<Out, Bit>,
    pub victim: Signal<Out, Bits<6>>,
    pub loser: Signal<Out, Bits<24>>,
    /// Pulse with `seek` and `found`: the victim is taken.
    pub take: Signal<In, Bit>,
    owners: RamAsync<Owner, 6>,
    kept: DFF<Bits<64>>,
    /// Used in this period, in the one before.
    used: DFF<Bits<64>>,
    before: DFF<Bits<64>>,
    age: DFF<Bits<AGE>>,
    tick: DFF<Bit>,
    mark: BinToOneHot<64, 6>,
    total: DFF<Bits<7>>,
    counts: [DFF<Bits<7>>; 4],
    /// Functions that keep their share or more; that keep more.
    over: DFF<Bits<4>>,
    rich: DFF<Bits<4>>,
    at_share: Gather<4>,
    above: Gather<4>,
    whose: BinToOneHot<4, 2>,
    full: DFF<Bit>,
    missing: DFF<Bit>,
    at: DFF<Bits<6>>,
    /// Buffers looked at by this search, up to all 64 of them.
    tries: DFF<Bits<7>>,
    /// A whole round in this period has found no idle one.
    barren: DFF<Bit>,
    /// The function of the queue pair in hand keeps fewer than its share.
    needy: DFF<Bit>,
    nothing: DFF<Bit>,
    hit: DFF<Bit>,
    prey: DFF<Bits<6>>,
    prey_of: DFF<Owner>,
    #[init(Constant::new(KEPT.to_bits()))]
    most: Constant<Bits<7>>,
    #[init(Constant::new(SHARE.to_bits()))]
    share: Constant<Bits<7>>,
    named: Signal<Local, Bits<8>>,
    who: Signal<Local, Bits<2>>,
    number: Signal<Local, Bits<6>>,
    asker: Signal<Local, Bits<2>>,
    looked: Signal<Local, Bits<2>>,
    young: Signal<Local, Bits<64>>,
    round: Signal<Local, Bit>,
    idle: Signal<Local, Bit>,
    fair: Signal<Local, Bit>,
    place: Signal<Local, Bits<6>>,
    already: Signal<Local, Bit>,
    ripe: Signal<Local, Bit>,
    drops: Signal<Local, Bit>,
}

#[kernel]
impl Logic for KeptBuffers {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, kept, used, before, age, tick, total, over, rich, full, missing, at, tries, barren, needy, nothing, hit, prey, prey_of);
        clock!(self, clock, owners);
        for i in 0..4 {
            self.counts[i].clock.next = self.clock.val();
            self.counts[i].d.next = self.counts[i].q.val();
        }
        self.named.next = self.ctx.val().rq_handle;
        self.drops.next = self.put_back.val() | self.take.val();
        self.who.next = self.ctx.val().function.get_bits::<2>(0);
        self.place.next = self.handle.val();
        if self.take.val() {
            self.who.next = self.prey_of.q.val().function;
            self.place.next = self.prey.q.val();
        }

        self.whose.x.next = self.who.val();
        self.whose.en.next = true;

        self.already.next = self.kept.q.val().get_bit(self.place.val().index());

        // Whose the buffer of the context is, or the one that the search looks at.
        self.number.next = self.named.val().get_bits::<6>(0);
        self.owners.read_addr.next = self.number.val();
        if self.seek.val() {
            self.owners.read_addr.next = self.at.q.val();
        }
        self.owners.write_addr.next = self.handle.val();
        self.owners.write_data.next.qpn = self.qpn.val();
        self.owners.write_data.next.function = self.who.val();
        self.owners.write_en.next = self.keep.val();
        self.missing.d.next = self.named.val().get_bit(7) & !(self.kept.q.val().get_bit(self.number.val().index()) & (self.owners.read_data.val().qpn == self.qpn.val()));
        self.gone.next = self.missing.q.val();

        self.mark.x.next = self.place.val();
        self.mark.en.next = self.keep.val() | self.touch.val() | self.drops.val();
        if self.keep.val() {
            self.kept.d.next = self.kept.q.val() | self.mark.y.val();
            // The memory target may hand out a slot whose message has been cut short without a word.
            if !self.already.val() {
                self.total.d.next = self.total.q.val() + 1;
            }
        }
        if self.drops.val() {
            self.kept.d.next = self.kept.q.val() & !self.mark.y.val();
            self.total.d.next = self.total.q.val() - 1;
        }
        // Marks of use grow old by the clock alone, however much is looked for.
        self.age.d.next = self.age.q.val() + 1;
        self.tick.d.next = self.age.q.val().all();
        self.young.next = self.used.q.val();
        if self.tick.q.val() {
            self.before.d.next = self.used.q.val();
            self.young.next = bits::<64>(0);
        }
        self.used.d.next = self.young.val();
        if self.keep.val() | self.touch.val() {
            self.used.d.next = self.young.val() | self.mark.y.val();
        }
        for i in 0..4 {
            if self.whose.y.val().get_bit(i) {
                if self.keep.val() & !self.already.val() {
                    self.counts[i].d.next = self.counts[i].q.val() + 1;
                }
                if self.drops.val() {
                    self.counts[i].d.next = self.counts[i].q.val() - 1;
                }
            }
            self.at_share.x[i].next = self.counts[i].q.val() >= self.share.val();
            self.above.x[i].next = self.counts[i].q.val() > self.share.val();
        }
        self.over.d.next = self.at_share.y.val();
        self.rich.d.next = self.above.y.val();
        self.full.d.next = self.total.q.val() >= self.most.val();
        self.crowded.next = self.full.q.val();

        // The search goes round, from where the one before has stopped. First for idle ones; when there are none, whoever keeps fewer than its share takes
        // a busy one, which is another function's. That there are none is remembered to the end of the period: only then others become idle.
        self.asker.next = self.ctx.val().function.get_bits::<2>(0);
        self.needy.d.next = !self.over.q.val().get_bit(self.asker.val().index());
        self.looked.next = self.owners.read_data.val().function;
        self.round.next = self.tries.q.val().get_bit(6);
        self.idle.next = !self.used.q.val().get_bit(self.at.q.val().index()) & !self.before.q.val().get_bit(self.at.q.val().index());
        self.fair.next = self.idle.val() & self.over.q.val().get_bit(self.looked.val().index());
        if self.barren.q.val() {
            self.fair.next = self.needy.q.val() & self.rich.q.val().get_bit(self.looked.val().index());
        }
        self.ripe.next = self.kept.q.val().get_bit(self.at.q.val().index()) & self.fair.val() & !self.round.val();
        self.found.next = self.hit.q.val();
        self.none.next = self.nothing.q.val();
        self.victim.next = self.prey.q.val();
        self.loser.next = self.prey_of.q.val().qpn;
        self.hit.d.next = self.seek.val() & (self.hit.q.val() | self.ripe.val()) & !self.take.val();
        // A round for a busy one finds one, for some function keeps more than its share when another keeps fewer; its end is an end all the same.
        self.nothing.d.next = self.seek.val() & self.barren.q.val() & !self.hit.q.val() & (!self.needy.q.val() | self.round.val());
        self.tries.d.next = bits::<7>(0);
        if self.seek.val() & !self.hit.q.val() & !self.round.val() {
            self.prey.d.next = self.at.q.val();
            self.prey_of.d.next = self.owners.read_data.val();
            self.at.d.next = self.at.q.val() + 1;
            self.tries.d.next = self.tries.q.val() + 1;
        }
        if self.round.val() {
            self.barren.d.next = true;
        }
        if self.tick.q.val() {
            self.barren.d.next = false;
        }
        if self.reset.val() {
            self.kept.d.next = bits::<64>(0);
            self.total.d.next = bits::<7>(0);
            self.full.d.next = false;
            self.hit.d.next = false;
            self.nothing.d.next = false;
            self.tries.d.next = bits::<7>(0);
            self.barren.d.next = false;
            for i in 0..4 {
                self.counts[i].d.next = bits::<7>(0);
            }
        }
    }
}
