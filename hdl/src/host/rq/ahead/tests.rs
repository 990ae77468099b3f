//! What is given back and what passes, read by read.

use super::*;
use crate::tb::{Fields, Source, Tb};
use ferric_hdl_derive::kernel;

/// The block as it stands in `host/rq`, without chains of several blocks.
#[derive(LogicBlock, Default)]
struct Room {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_rd: MsgSink<RdRow>,
    pub s_due: MsgSink<RqDue>,
    pub s_copy: MsgSink<RqCopy>,
    pub m_row: MsgSrc<RdRow>,
    pub passes: Signal<In, Bits<4>>,
    pub pass_ok: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    pub block: Signal<Out, Bits<7>>,
    pub block_ok: Signal<Out, Bit>,
    ahead: RqAhead<4, 7>,
}

#[kernel]
impl Logic for Room {
    #[hdl_gen]
    fn update(&mut self) {
        self.ahead.clock.next = self.clock.val();
        self.ahead.reset.next = self.reset.val();
        MsgSink::<RdRow>::link(&mut self.s_rd, &mut self.ahead.s_rd);
        MsgSink::<RqDue>::link(&mut self.s_due, &mut self.ahead.s_due);
        MsgSink::<RqCopy>::link(&mut self.s_copy, &mut self.ahead.s_copy);
        MsgSrc::<RdRow>::link(&mut self.m_row, &mut self.ahead.m_row);
        self.ahead.passes.next = self.passes.val();
        self.pass_ok.next = self.ahead.pass_ok.val();
        self.ahead.take.next = self.take.val();
        self.block.next = self.ahead.block.val();
        self.block_ok.next = self.ahead.block_ok.val();
        self.ahead.link_en.next = false;
        self.ahead.link_at.next = bits::<7>(0);
        self.ahead.link.next.block = bits::<7>(0);
        self.ahead.link.next.slots = bits::<4>(0);
        self.ahead.look_at.next = bits::<7>(0);
    }
}

struct Bench {
    tb: Tb,
    due: Source,
    copy: Source,
    rd: Source,
}

impl Bench {
    /// All 14 blocks are taken.
    fn new() -> Bench {
        let mut tb = Tb::new("rq_room", Room::default());
        tb.sink("m_row", 0);
        let mut bench = Bench { due: tb.source("s_due", 0), copy: tb.source("s_copy", 0), rd: tb.source("s_rd", 0), tb };
        bench.tb.run(40);
        for block in 0..14 {
            assert_eq!(["block_ok", "block"].map(|port| bench.tb.get(port)), [1, block]);
            bench.tb.set("take", 1);
            bench.tb.run(1);
            bench.tb.set("take", 0);
            bench.tb.run(1);
        }
        assert_eq!(bench.tb.get("block_ok"), 0);
        bench
    }

    fn rows(&mut self, rows: u128) {
        let layout = Fields::of::<RdRow>();
        (0..rows).for_each(|row| self.rd.push(layout.pack(&[("row", row), ("last", (row + 1 == rows).into())])));
        self.tb.run(30);
    }
}

#[test]
fn a_block_is_free_when_its_rows_have_come() {
    let mut bench = Bench::new();
    bench.due.push(Fields::of::<RqDue>().pack(&[("block", 3)]));
    bench.tb.run(5);
    bench.copy.push(Fields::of::<RqCopy>().pack(&[("release", 1), ("block", 3), ("count", 1)]));
    bench.tb.run(50);
    assert_eq!(bench.tb.get("block_ok"), 0, "its read is on the way");
    bench.rows(8);
    assert_eq!(["block_ok", "block"].map(|port| bench.tb.get(port)), [1, 3]);
}

#[test]
fn no_more_passes_than_there_is_room_for() {
    let mut bench = Bench::new();
    for ok in [1, 0] {
        assert_eq!(bench.tb.get("pass_ok"), 1);
        bench.due.push(Fields::of::<RqDue>().pack(&[("passing", 1)]));
        bench.tb.set("passes", 8);
        bench.tb.run(1);
        bench.tb.set("passes", 0);
        bench.tb.run(1);
        assert_eq!(bench.tb.get("pass_ok"), ok, "of 16 rows");
    }
    bench.rows(8);
    assert_eq!(bench.tb.get("pass_ok"), 0, "what has come is to be copied yet");
    // A request of eight rows.
    bench.copy.push(Fields::of::<RqCopy>().pack(&[("passing", 1), ("tag", 3 << 6)]));
    bench.tb.run(30);
    assert_eq!(bench.tb.get("pass_ok"), 1);
}
