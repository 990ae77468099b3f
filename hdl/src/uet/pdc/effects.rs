//! What becomes of a place: its line, the counts, the lists, and what is told of it. One step behind the ruling.
use super::counts::{INITIATORS, KINDS, LEAVING, LINGERING, RESTING, TARGETS, WANTING};
use super::types::{class, stage, stat, verdict, victim, PdcAsk, PdcLine, Ruling, ID, STAT_BITS};
use crate::uet::types::LINE;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What a line is taken for.
pub mod mode {
    /// All places become free, after the card's reset.
    pub const WIPE: u64 = 0;
    /// The order's own PDC.
    pub const OWN: u64 = 1;
    /// A PDC begins.
    pub const NEW: u64 = 2;
    /// An initiator is to take no more; a target is asked to go; one that lingers goes.
    pub const LEAVE: u64 = 3;
    pub const ASK: u64 = 4;
    pub const CUT: u64 = 5;
    /// The reset of a function looks at each.
    pub const SWEEP: u64 = 6;
    /// A target of a peer that has its share goes.
    pub const OUST: u64 = 7;
}

/// The effect.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Effect {
    /// The PDC is over; its place is free at once.
    pub ends: Bit,
    pub gives: Bit,
    /// For `Oldest`.
    pub set: Bit,
    pub class: Bits<2>,
    pub opens: Bit,
    pub work: Bit,
    /// For `Counts`.
    pub up: Bits<KINDS>,
    pub down: Bits<KINDS>,
    /// For the answer: these count; the rest is of another PDC.
    pub tells: Bit,
    pub verdict: Bits<4>,
    pub code: Bits<8>,
    pub own: Bit,
    pub more: Bit,
    pub victim: Bits<2>,
    pub stat: Bits<STAT_BITS>,
}

/// All that goes in is steady for a cycle before what comes out counts.
#[derive(LogicBlock, BlockDefault)]
pub struct Effects<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// See [`mode`].
    pub mode: Signal<In, Bits<3>>,
    pub posts: Signal<In, Bit>,
    pub ask: Signal<In, PdcAsk>,
    pub at: Signal<In, Bits<LINE>>,
    pub line: Signal<In, PdcLine>,
    pub ruling: Signal<In, Ruling>,
    /// PSN less Start_PSN; Start_PSN of a SYN, and of an initiator.
    pub place: Signal<In, Bits<32>>,
    pub syn_start: Signal<In, Bits<32>>,
    pub start: Signal<In, Bits<32>>,
    pub effect: Signal<Out, Effect>,
    /// The line as it is now.
    pub made: Signal<Out, PdcLine>,
    effects: DFF<Effect>,
    lines: DFF<PdcLine>,
    #[init(Constant::new(PdcLine::default()))]
    nobody: Constant<PdcLine>,
    #[init(Constant::new(Effect::default()))]
    nothing: Constant<Effect>,
    /// What an id grows by from life to life.
    #[init(Constant::new((1u64 << LP).to_bits()))]
    life: Constant<Bits<ID>>,
    r: Signal<Local, Ruling>,
    l: Signal<Local, PdcLine>,
    mine: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    birth: Signal<Local, Bits<STAT_BITS>>,
    of_initiator: Signal<Local, Bit>,
    of_target: Signal<Local, Bit>,
    ups: crate::prim::pack::Gather<KINDS>,
    downs: crate::prim::pack::Gather<KINDS>,
}

#[kernel]
impl<const LP: usize> Logic for Effects<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, effects, lines);
        self.effect.next = self.effects.q.val();
        self.made.next = self.lines.q.val();
        self.r.next = self.ruling.val();
        self.l.next = self.line.val();
        self.mine.next = self.l.val().stage.any() & !(self.l.val().stage == stage::REST) & (self.l.val().function == self.ask.val().function);
        self.ends.next = false;
        self.birth.next = bits::<STAT_BITS>(0);
        self.lines.d.next = self.l.val();
        self.effects.d.next = self.nothing.val();
        for i in 0..KINDS {
            self.ups.x[i].next = false;
            self.downs.x[i].next = false;
        }
        if self.mode.val() == mode::WIPE {
            self.lines.d.next = self.nobody.val();
            self.lines.d.next.id = bit_cast::<ID, LINE>(self.at.val());
            self.effects.d.next.set = true;
        } else if self.mode.val() == mode::OWN {
            self.effects.d.next.tells = true;
            self.effects.d.next.verdict = self.r.val().verdict;
            self.effects.d.next.code = self.r.val().code;
            self.effects.d.next.own = self.r.val().own;
            self.effects.d.next.stat = self.r.val().stat;
            self.effects.d.next.work = self.r.val().work;
            self.ends.next = self.r.val().over;
            if self.r.val().latch {
                self.lines.d.next.peer_id = self.ask.val().peer_id;
                self.lines.d.next.stage = bits::<3>(stage::OPEN);
            }
            if self.r.val().closing {
                self.lines.d.next.closing = true;
                self.ups.x[LEAVING].next = !self.l.val().closing;
            }
            if self.r.val().wants {
                self.lines.d.next.wants = true;
                self.ups.x[WANTING].next = !self.l.val().wants;
            }
            if self.r.val().leaves {
                self.lines.d.next.stage = bits::<3>(stage::CLOSE_WAIT);
            }
            if self.r.val().lingers {
                self.lines.d.next.stage = bits::<3>(stage::LINGER);
                self.lines.d.next.close = self.place.val();
                self.ups.x[LINGERING].next = true;
                self.effects.d.next.set = true;
                self.effects.d.next.class = bits::<2>(class::LINGERS);
            }
            if self.r.val().free {
                self.lines.d.next.stage = bits::<3>(stage::FREE);
                self.downs.x[INITIATORS].next = true;
                self.downs.x[RESTING].next = true;
                self.effects.d.next.gives = true;
            }
        } else if self.mode.val() == mode::NEW {
            self.effects.d.next.tells = true;
            self.effects.d.next.verdict = bits::<4>(verdict::OPENED);
            self.birth.next = bits::<STAT_BITS>(stat::OPENED);
            self.effects.d.next.set = true;
            self.effects.d.next.class = bits::<2>(class::INITIATOR);
            self.effects.d.next.opens = true;
            self.effects.d.next.work = true;
            self.lines.d.next.stage = bits::<3>(stage::SYN);
            self.lines.d.next.initiator = self.posts.val();
            self.lines.d.next.rod = self.ask.val().rod;
            self.lines.d.next.closing = false;
            self.lines.d.next.wants = false;
            self.lines.d.next.used = true;
            self.lines.d.next.function = self.ask.val().function;
            self.lines.d.next.peer_id = bits::<ID>(0);
            self.lines.d.next.peer = self.ask.val().peer;
            self.lines.d.next.id = self.l.val().id + self.life.val();
            self.lines.d.next.start = self.start.val();
            self.ups.x[INITIATORS].next = true;
            if !self.posts.val() {
                self.birth.next = bits::<STAT_BITS>(stat::ACCEPTED);
                self.effects.d.next.class = bits::<2>(class::TARGET);
                self.lines.d.next.stage = bits::<3>(stage::OPEN);
                self.lines.d.next.peer_id = self.ask.val().peer_id;
                self.lines.d.next.start = self.syn_start.val();
                self.ups.x[INITIATORS].next = false;
                self.ups.x[TARGETS].next = true;
            }
            self.effects.d.next.stat = self.birth.val();
            if self.l.val().used {
                self.effects.d.next.stat = self.birth.val() | bits::<STAT_BITS>(stat::REUSED);
            }
        } else if self.mode.val() == mode::LEAVE {
            self.lines.d.next.closing = true;
            self.ups.x[LEAVING].next = true;
            self.effects.d.next.stat = bits::<STAT_BITS>(stat::LEAVES);
            self.effects.d.next.victim = bits::<2>(victim::LEAVES);
        } else if self.mode.val() == mode::ASK {
            self.lines.d.next.wants = true;
            self.ups.x[WANTING].next = true;
            self.effects.d.next.stat = bits::<STAT_BITS>(stat::ASKED);
            self.effects.d.next.victim = bits::<2>(victim::ASKED);
        } else if self.mode.val() == mode::CUT {
            self.ends.next = true;
            self.effects.d.next.stat = bits::<STAT_BITS>(stat::LINGER_CUT);
            self.effects.d.next.victim = bits::<2>(victim::CUT);
        } else if self.mode.val() == mode::OUST {
            self.ends.next = true;
            self.effects.d.next.stat = bits::<STAT_BITS>(stat::OUSTED);
            self.effects.d.next.victim = bits::<2>(victim::CUT);
        } else if self.mine.val() {
            self.ends.next = true;
            self.effects.d.next.tells = true;
            self.effects.d.next.verdict = bits::<4>(verdict::FAILED);
            self.effects.d.next.more = true;
            self.effects.d.next.stat = bits::<STAT_BITS>(stat::FAILED);
        }
        // The end of an initiator's PDC leaves its place at rest; a target's is free.
        self.of_initiator.next = self.ends.val() & self.l.val().initiator;
        self.of_target.next = self.ends.val() & !self.l.val().initiator;
        if self.of_initiator.val() {
            self.lines.d.next.stage = bits::<3>(stage::REST);
            self.ups.x[RESTING].next = true;
            self.downs.x[LEAVING].next = self.l.val().closing;
        }
        if self.of_target.val() {
            self.lines.d.next.stage = bits::<3>(stage::FREE);
            self.downs.x[TARGETS].next = true;
            self.downs.x[LINGERING].next = self.l.val().stage == stage::LINGER;
            self.downs.x[WANTING].next = self.l.val().wants;
            self.effects.d.next.gives = true;
        }
        if self.ends.val() {
            self.effects.d.next.ends = true;
            self.effects.d.next.set = true;
            self.effects.d.next.class = bits::<2>(class::NONE);
        }
        self.effects.d.next.up = self.ups.y.val();
        self.effects.d.next.down = self.downs.y.val();
    }
}
