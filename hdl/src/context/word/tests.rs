//! The adapter in front of a plain table whose owner takes its time.

use super::CtlWord;
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::patch_ram::PatchRam;
use crate::tb::{Fields, Tb};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// A row whose width is no multiple of a word.
const ROW: usize = 216;
const WORDS: usize = 7;

/// A table whose owner answers a request after 1 to 4 cycles.
#[derive(LogicBlock, Default)]
struct Table {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    s_ctl: MsgSink<CtlReq>,
    m_ctl: MsgSrc<CtlResp>,
    line: CtlWord<Bits<216>, 5>,
    ram: PatchRam<Bits<216>, 5>,
    pause: DFF<Bits<2>>,
    answer: DFF<Bit>,
}

#[kernel]
impl Logic for Table {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pause, answer);
        clock!(self, clock, line, ram);
        self.line.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);
        self.pause.d.next = self.pause.q.val() + 1;
        self.ram.read_addr.next = self.line.addr.val();
        self.ram.write_addr.next = self.line.addr.val();
        self.ram.write_data.next = bits::<216>(0);
        self.ram.write_en.next = false;
        self.ram.word.next = self.line.word.val();
        self.ram.word_data.next = self.line.data.val();
        self.ram.word_en.next = self.line.done.val() & self.line.we.val();
        self.line.row.next = self.ram.read_data.val();
        self.answer.d.next = self.line.req.val() & (self.pause.q.val() == 3) & !self.answer.q.val();
        self.line.row_valid.next = self.answer.q.val();
    }
}

#[test]
fn words_of_all_lines_read_back() {
    let mut tb = Tb::new("ctl_word", Table::default());
    let (req, resp) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    let (s, m) = (tb.source("s_ctl", 30), tb.sink("m_ctl", 30));
    let mut model = vec![[0u32; WORDS]; 32];
    let mut expected = Vec::new();
    for _ in 0..1500 {
        // Few lines, so that words of one line meet; some beyond the table, some words beyond the row.
        let line = if tb.rng().percent(10) { 32 + tb.rng().below(1 << 23) } else { tb.rng().below(8) * 4 + 3 };
        let (word, write, data) = (tb.rng().below(9), tb.rng().percent(60), tb.rng().next_u32());
        s.push(req.pack(&[("line", line.into()), ("word", word.into()), ("write", write.into()), ("data", data.into())]));
        let cell = model.get_mut(line as usize).and_then(|row| row.get_mut(word as usize));
        expected.push((line >= 32, cell.as_ref().map_or(0, |cell| **cell)));
        if let (Some(cell), true) = (cell, write) {
            *cell = if word as usize == WORDS - 1 { data & ((1 << (ROW % 32)) - 1) } else { data };
        }
    }
    tb.run_until(60_000, |_| m.len() == expected.len());
    for (n, (err, data)) in expected.into_iter().enumerate() {
        let got = m.pop().expect("counted");
        assert_eq!(resp.get(&got, "err") == 1, err, "access {n}");
        if !err {
            assert_eq!(resp.get(&got, "data"), data.into(), "access {n}");
        }
    }
}
