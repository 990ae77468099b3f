//! Admin engine: executes the microprogram of `program`. See README.md.

mod alu;
pub mod clean;
mod fences;
pub mod isa;
#[cfg(test)]
use ferric_model::admin::interpreter as model;
pub use ferric_model::admin::program;
mod sequence;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::admin_cause;
use crate::msg::{CtlAsk, CtlResp, QpError, RdCmd, RdRow, WrDone, WrSmall};
use crate::prim::ram::{Ram, RamAsync2};
use alu::Alu;
use fences::Fences;
use ferric_abi::codes::CqeStatus;
use ferric_abi::host::{AdminCommand, AdminCompletion};
use ferric_hdl_derive::kernel;
use isa::{notice, output, Op};
use program::Plan;
use rust_hdl::prelude::*;
use sequence::Sequence;

/// Words of a row of 64 bytes.
const ROW_WORDS: u64 = 16;
const LAST_WORD: u64 = ROW_WORDS - 1;
/// Rows of a command.
const COMMAND_ROWS: u64 = AdminCommand::BYTES as u64 / (4 * ROW_WORDS);
/// The command's first register, and that of its second row.
const COMMAND: u64 = 32;
const COMMAND_REST: u64 = COMMAND + ROW_WORDS;
/// log2 of the words of the scratch memory.
const SCRATCH_BITS: usize = 13;
const LAST_SCRATCH: u64 = (1 << SCRATCH_BITS) - 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Clear,
    Fetch,
    Decode,
    Operands,
    Execute,
    Write,
    Load,
    Loaded,
    Seek,
    Found,
    CtlSend,
    CtlWait,
    ReadSend,
    ReadRow,
    ReadWord,
    WriteSend,
    WriteWait,
    ErrorSend,
    /// Until what was asked of `fences` has come.
    FenceWait,
}

/// What bit i of `stat` counts. `refused`: commands answered with another status than Ok.
pub const STATS: &[&str] = &["refused"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // The engine: a command, or a soft reset. It also reads contexts again and again until who was told of a QpError, or the key unit, has changed them: that ends as the error's own way does. Nobody awaits it.
    ("look", &["m_rd", "s_rd", "m_wr", "s_done", "m_ctl", "s_ctl", "m_error[0]", "m_error[1]", "barrier_done", "quiesced_rd", "quiesced_wr", "mtt_clean"]),
    ("s_rd", &[]),    // awaited since the read was asked for
    ("s_done", &[]),  // the same of the write
    ("s_ctl", &[]),   // and of the access
    ("barrier", &[]), // pulses and levels that are given when the engine comes to them
    ("quiesce_rd", &[]),
    ("quiesce_wr", &[]),
    ("mtt_invalidate", &[]),
];

/// The admin queues of 2^`LF` functions.
#[derive(LogicBlock, Default)]
pub struct Admin<const LF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; starts the program after the scratch memory has been cleared (8192 cycles).
    pub reset: Signal<In, Bit>,
    /// The functions' registers: `look` is word `look_word` (`host::csr::word`) of function `look_function` in the cycle before.
    pub look_function: Signal<Out, Bits<LF>>,
    pub look_word: Signal<Out, Bits<3>>,
    pub look: Signal<In, Bits<32>>,
    /// Pulses: the function whose turn it is has been taken up; `look_function` is to have another turn; all its objects are removed and its ring is rewound, as
    /// its soft reset wants.
    pub served: Signal<Out, Bit>,
    pub again: Signal<Out, Bit>,
    pub reset_done: Signal<Out, Bit>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_done: MsgSink<WrDone>,
    pub m_ctl: MsgSrc<CtlAsk>,
    pub s_ctl: MsgSink<CtlResp>,
    /// ModifyQp to ERROR. 0: to the requester, 1: to the responder.
    pub m_error: [MsgSrc<QpError>; 2],
    /// Pulse: receive barrier wanted; `barrier_done` pulses when it has passed.
    pub barrier: Signal<Out, Bit>,
    pub barrier_done: Signal<In, Bit>,
    /// Until then: the barrier ends the life of queue pair `ends_qpn`.
    pub ends: Signal<Out, Bit>,
    pub ends_qpn: Signal<Out, Bits<24>>,
    /// Levels, held until answered and dropped until the answer is gone.
    pub quiesce_rd: Signal<Out, Bit>,
    pub quiesced_rd: Signal<In, Bit>,
    pub quiesce_wr: Signal<Out, Bit>,
    pub quiesced_wr: Signal<In, Bit>,
    /// Pulse: drop all cached translations. The engine waits for `mtt_clean`: they are gone, and no read of a page table is under way that is not of a table that
    /// the key table names.
    pub mtt_invalidate: Signal<Out, Bit>,
    pub mtt_clean: Signal<In, Bit>,
    /// Bit 31: there is a raw queue pair, with the number in bits 23 to 0; bit 30: it gets frames to any MAC address.
    pub raw_qpn: Signal<Out, Bits<32>>,
    /// See [`STATS`]; whose events they are.
    pub stat: Signal<Out, Bits<1>>,
    pub stat_function: Signal<Out, Bits<12>>,
    state: DFF<State>,
    a: DFF<Bits<32>>,
    b: DFF<Bits<32>>,
    c: DFF<Bits<32>>,
    /// The arithmetic's answers, one cycle after the operands.
    y: DFF<Bits<32>>,
    equal: DFF<Bit>,
    less: DFF<Bit>,
    /// The result that does not come from there.
    result: DFF<Bits<32>>,
    computed: DFF<Bit>,
    line: DFF<Bits<24>>,
    serving: DFF<Bits<12>>,
    failed: DFF<Bit>,
    count: DFF<Bits<13>>,
    /// A row of the command, or the line to be written, 32 bits in or out at a time.
    shift: DFF<Bits<512>>,
    second_row: DFF<Bit>,
    last_row: DFF<Bit>,
    refused_now: DFF<Bit>,
    /// The object last looked at by `Find` is one.
    hit: DFF<Bit>,
    /// See `served`, `again`, `reset_done`.
    served_now: DFF<Bit>,
    again_now: DFF<Bit>,
    reset_done_now: DFF<Bit>,
    raw: DFF<Bits<32>>,
    sequence: Sequence,
    regs: RamAsync2<Bits<32>, 6>,
    scratch: Ram<Bits<32>, SCRATCH_BITS>,
    alu: Alu,
    fences: Fences,
    op: Signal<Local, Bits<5>>,
    choice: Signal<Local, Bits<32>>,
    failure: Signal<Local, QpError>,
    number: Signal<Local, Bits<12>>,
    sum: Signal<Local, Bits<32>>,
    word: Signal<Local, Bits<6>>,
    address: Signal<Local, Bits<32>>,
    register: Signal<Local, Bits<32>>,
    object: Signal<Local, Bits<32>>,
    owner: Signal<Local, Bits<12>>,
    own: Signal<Local, Bit>,
    place: Signal<Local, Bits<32>>,
    ended: Signal<Local, Bit>,
    after: Signal<Local, Bits<32>>,
    dma_iova: Signal<Local, Bits<64>>,
}

impl<const LF: usize> Admin<LF> {
    /// The engine with the program for this plan; `default()` has that of a card without engines.
    pub fn new(plan: &Plan) -> Self {
        Self { sequence: Sequence::new(plan), ..Self::default() }
    }
}

#[kernel]
impl<const LF: usize> Logic for Admin<LF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, a, b, c, y, equal, less, result, computed, line, serving, failed, count, shift);
        dff_setup!(self, clock, second_row, last_row, refused_now, hit, served_now, again_now, reset_done_now, raw);
        clock!(self, clock, sequence, regs, scratch, fences);
        self.fences.reset.next = self.reset.val();
        self.fences.pass.next = false;
        self.fences.clean.next = false;
        self.fences.still_reads.next = false;
        self.fences.still_writes.next = false;
        self.fences.barrier_done.next = self.barrier_done.val();
        self.fences.mtt_clean.next = self.mtt_clean.val();
        self.fences.quiesced_rd.next = self.quiesced_rd.val();
        self.fences.quiesced_wr.next = self.quiesced_wr.val();
        self.barrier.next = self.fences.barrier.val();
        self.mtt_invalidate.next = self.fences.mtt_invalidate.val();
        self.quiesce_rd.next = self.fences.quiesce_rd.val();
        self.quiesce_wr.next = self.fences.quiesce_wr.val();
        self.ends.next = self.sequence.inst.val().imm.get_bit(0);
        self.ends_qpn.next = self.line.q.val();
        self.raw_qpn.next = self.raw.q.val();
        self.refused_now.d.next = false;
        self.stat.next = bit_cast::<1, 1>(self.refused_now.q.val().into());
        // The next function's turn begins instructions later.
        self.stat_function.next = self.serving.q.val();
        self.served.next = self.served_now.q.val();
        self.again.next = self.again_now.q.val();
        self.reset_done.next = self.reset_done_now.q.val();
        self.served_now.d.next = false;
        self.again_now.d.next = false;
        self.reset_done_now.d.next = false;
        self.dma_iova.next = bit_cast::<64, 32>(self.a.q.val()) | (bit_cast::<64, 32>(self.b.q.val()) << 32);
        self.m_rd.valid.next = self.state.q.val() == State::ReadSend;
        self.m_rd.data.next.iova = self.dma_iova.val();
        self.m_rd.data.next.function = self.serving.q.val();
        self.m_rd.data.next.rows = bits::<4>(COMMAND_ROWS);
        self.m_rd.data.next.tag = bits::<8>(0);
        self.s_rd.ready.next = self.state.q.val() == State::ReadRow;
        self.m_wr.valid.next = self.state.q.val() == State::WriteSend;
        self.m_wr.data.next.iova = self.dma_iova.val();
        self.m_wr.data.next.function = self.serving.q.val();
        self.m_wr.data.next.len = bits::<7>(AdminCompletion::BYTES as u64);
        self.m_wr.data.next.tag = bits::<8>(0);
        self.m_wr.data.next.data = self.shift.q.val();
        self.s_done.ready.next = self.state.q.val() == State::WriteWait;
        self.address.next = self.c.q.val();
        self.m_ctl.valid.next = self.state.q.val() == State::CtlSend;
        self.m_ctl.data.next.table = self.address.val().get_bits::<8>(8);
        self.m_ctl.data.next.line = self.line.q.val();
        self.m_ctl.data.next.word = self.address.val().get_bits::<6>(0);
        self.m_ctl.data.next.write = self.sequence.inst.val().op == Op::CtlWrite as u64;
        self.m_ctl.data.next.data = self.a.q.val();
        self.s_ctl.ready.next = self.state.q.val() == State::CtlWait;
        self.register.next = self.a.q.val();
        // Each side is told as if the other one had noticed.
        self.failure.next.qpn = self.register.val().get_bits::<24>(0);
        self.failure.next.epoch = self.b.q.val().get_bits::<8>(0);
        self.failure.next.side = !self.sequence.inst.val().imm.get_bit(0);
        self.failure.next.cause = bits::<8>(CqeStatus::WrFlush as u64);
        match self.sequence.inst.val().imm.index() {
            notice::DRAIN => self.failure.next.cause = bits::<8>(admin_cause::DRAIN),
            notice::LIFE => self.failure.next.cause = bits::<8>(0),
            notice::RESUME => self.failure.next.cause = bits::<8>(admin_cause::RESUME),
            notice::SQ_RECOVERED => self.failure.next.cause = bits::<8>(admin_cause::SQ_RECOVERED),
            _ => {}
        }
        self.m_error[0].data.next = self.failure.val();
        self.m_error[1].data.next = self.failure.val();
        self.m_error[0].valid.next = (self.state.q.val() == State::ErrorSend) & !self.sequence.inst.val().imm.get_bit(0);
        self.m_error[1].valid.next = (self.state.q.val() == State::ErrorSend) & self.sequence.inst.val().imm.get_bit(0);

        self.number.next = self.serving.q.val();
        self.choice.next = self.sequence.inst.val().imm;
        // Which is there when the instruction that asks for it comes to its second cycle.
        self.look_function.next = self.number.val().get_bits::<LF>(0);
        self.look_word.next = self.choice.val().get_bits::<3>(0);

        self.sequence.reset.next = self.reset.val();
        self.sequence.fetch.next = self.state.q.val() == State::Fetch;
        self.sequence.decode.next = self.state.q.val() == State::Decode;
        self.sequence.ends.next = self.state.q.val() == State::Write;
        self.sequence.register.next = self.a.q.val();
        self.sequence.equal.next = self.equal.q.val();
        self.sequence.less.next = self.less.q.val();
        self.sequence.failed.next = self.failed.q.val();
        self.sequence.hit.next = self.hit.q.val();

        // Memories
        self.regs.read_addr0.next = self.sequence.inst.val().a;
        self.regs.read_addr1.next = self.sequence.inst.val().b;
        self.regs.write_en.next = false;
        self.regs.write_addr.next = self.sequence.inst.val().d;
        self.regs.write_data.next = self.result.q.val();
        if self.computed.q.val() {
            self.regs.write_data.next = self.y.q.val();
        }
        self.sum.next = self.y.q.val();
        self.scratch.read_addr.next = self.sum.val().get_bits::<13>(0);
        self.scratch.write_addr.next = self.sum.val().get_bits::<13>(0);
        self.scratch.write_data.next = self.b.q.val();
        self.scratch.write_en.next = false;
        // Find
        self.object.next = self.scratch.read_data.val();
        self.owner.next = self.object.val().get_bits::<12>(16);
        self.own.next = self.object.val().get_bit(31) & (self.owner.val() == self.serving.q.val());
        self.place.next = self.result.q.val();
        self.ended.next = self.place.val() == self.b.q.val();
        self.after.next = self.a.q.val() + 1;
        self.alu.inst.next = self.sequence.inst.val();
        self.alu.a.next = self.a.q.val();
        self.alu.b.next = self.b.q.val();
        self.alu.c.next = self.c.q.val();
        self.y.d.next = self.alu.y.val();
        self.equal.d.next = self.alu.eq.val();
        self.less.d.next = self.alu.lt.val();
        self.op.next = self.sequence.inst.val().op;
        self.word.next = bits::<6>(COMMAND) | self.count.q.val().get_bits::<6>(0);
        if self.second_row.q.val() {
            self.word.next = bits::<6>(COMMAND_REST) | self.count.q.val().get_bits::<6>(0);
        }

        match self.state.q.val() {
            State::Clear => {
                self.scratch.write_en.next = true;
                self.scratch.write_addr.next = self.count.q.val();
                self.scratch.write_data.next = bits::<32>(0);
                self.count.d.next = self.count.q.val() + 1;
                if self.count.q.val() == LAST_SCRATCH {
                    self.state.d.next = State::Fetch;
                }
            }
            State::Fetch => {
                self.state.d.next = State::Decode;
            }
            State::Decode => {
                self.state.d.next = State::Operands;
            }
            State::Operands => {
                self.a.d.next = self.regs.read_data0.val();
                self.b.d.next = self.regs.read_data1.val();
                self.c.d.next = self.regs.read_data1.val();
                if self.sequence.inst.val().use_imm {
                    self.c.d.next = self.sequence.inst.val().imm;
                }
                self.state.d.next = State::Execute;
            }
            State::Execute => {
                self.state.d.next = State::Write;
                self.computed.d.next = true;
                match self.op.val().index() {
                    Op::Jal => {
                        self.computed.d.next = false;
                        self.result.d.next = bit_cast::<32, 11>(self.sequence.step.val());
                    }
                    Op::Ld => {
                        self.state.d.next = State::Load;
                    }
                    Op::Line => {
                        self.line.d.next = self.register.val().get_bits::<24>(0);
                    }
                    Op::CtlRead => {
                        self.state.d.next = State::CtlSend;
                    }
                    Op::CtlWrite => {
                        self.state.d.next = State::CtlSend;
                    }
                    Op::Csr => {
                        self.computed.d.next = false;
                        self.result.d.next = self.look.val();
                    }
                    Op::Function => {
                        self.serving.d.next = self.register.val().get_bits::<12>(0);
                    }
                    Op::Fetch => {
                        self.failed.d.next = false;
                        self.state.d.next = State::ReadSend;
                    }
                    Op::Push => {
                        self.shift.d.next = (self.shift.q.val() >> 32) | (bit_cast::<512, 32>(self.a.q.val()) << 480);
                    }
                    Op::Write => {
                        self.state.d.next = State::WriteSend;
                    }
                    Op::Out => match self.choice.val().index() {
                        output::RAW_QUEUE => {
                            self.raw.d.next = self.a.q.val();
                        }
                        output::TRANSLATIONS => {
                            self.fences.clean.next = true;
                            self.state.d.next = State::FenceWait;
                        }
                        output::REFUSED => {
                            self.refused_now.d.next = true;
                        }
                        output::SERVED => {
                            self.served_now.d.next = true;
                        }
                        output::AGAIN => {
                            self.again_now.d.next = true;
                        }
                        _ => {
                            self.reset_done_now.d.next = true;
                        }
                    },
                    Op::Error => {
                        self.state.d.next = State::ErrorSend;
                    }
                    Op::Barrier => {
                        self.fences.pass.next = true;
                        self.state.d.next = State::FenceWait;
                    }
                    Op::QuiesceReads => {
                        self.fences.still_reads.next = true;
                        self.state.d.next = State::FenceWait;
                    }
                    Op::QuiesceWrites => {
                        self.fences.still_writes.next = true;
                        self.state.d.next = State::FenceWait;
                    }
                    Op::Find => {
                        self.state.d.next = State::Seek;
                    }
                    _ => {}
                }
            }
            State::Write => {
                self.regs.write_en.next = self.sequence.inst.val().write;
                self.scratch.write_en.next = self.op.val() == Op::St as u64;
                self.state.d.next = State::Operands;
                if self.sequence.jumps.val() {
                    self.state.d.next = State::Fetch;
                }
            }
            State::Load => {
                self.state.d.next = State::Loaded;
            }
            State::Loaded => {
                self.computed.d.next = false;
                self.result.d.next = self.scratch.read_data.val();
                self.state.d.next = State::Write;
            }
            // Two cycles per word: its address is there, and the next one is being computed when it comes.
            State::Seek => {
                self.computed.d.next = false;
                self.result.d.next = self.a.q.val();
                self.a.d.next = self.after.val();
                self.state.d.next = State::Found;
            }
            State::Found => {
                self.hit.d.next = self.own.val() & !self.ended.val();
                self.state.d.next = State::Seek;
                if self.own.val() | self.ended.val() {
                    self.state.d.next = State::Write;
                }
                if self.own.val() & !self.ended.val() {
                    self.line.d.next = self.place.val().get_bits::<24>(0);
                }
            }
            State::CtlSend => {
                if self.m_ctl.ready.val() {
                    self.state.d.next = State::CtlWait;
                }
            }
            State::CtlWait => {
                self.computed.d.next = false;
                self.result.d.next = self.s_ctl.data.val().data;
                if self.s_ctl.valid.val() {
                    self.failed.d.next = self.s_ctl.data.val().err;
                    self.state.d.next = State::Write;
                }
            }
            State::ReadSend => {
                if self.m_rd.ready.val() {
                    self.state.d.next = State::ReadRow;
                }
            }
            State::ReadRow => {
                self.shift.d.next = self.s_rd.data.val().data;
                self.second_row.d.next = self.s_rd.data.val().row != 0;
                self.last_row.d.next = self.s_rd.data.val().last;
                self.count.d.next = bits::<13>(0);
                if self.s_rd.valid.val() {
                    self.failed.d.next = self.failed.q.val() | self.s_rd.data.val().err;
                    self.state.d.next = State::ReadWord;
                }
            }
            State::ReadWord => {
                self.regs.write_en.next = true;
                self.regs.write_addr.next = self.word.val();
                self.regs.write_data.next = self.shift.q.val().get_bits::<32>(0);
                self.shift.d.next = self.shift.q.val() >> 32;
                self.count.d.next = self.count.q.val() + 1;
                if self.count.q.val() == LAST_WORD {
                    self.state.d.next = State::ReadRow;
                    if self.last_row.q.val() {
                        self.state.d.next = State::Write;
                    }
                }
            }
            State::WriteSend => {
                if self.m_wr.ready.val() {
                    self.state.d.next = State::WriteWait;
                }
            }
            State::WriteWait => {
                if self.s_done.valid.val() {
                    self.failed.d.next = self.s_done.data.val().err;
                    self.state.d.next = State::Write;
                }
            }
            State::ErrorSend => {
                if (self.m_error[0].ready.val() & !self.sequence.inst.val().imm.get_bit(0)) | (self.m_error[1].ready.val() & self.sequence.inst.val().imm.get_bit(0)) {
                    self.state.d.next = State::Write;
                }
            }
            State::FenceWait => {
                if self.fences.over.val() {
                    self.state.d.next = State::Write;
                }
            }
            _ => {
                self.state.d.next = State::Clear;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Clear;
            self.count.d.next = bits::<13>(0);
            self.served_now.d.next = false;
            self.again_now.d.next = false;
            self.reset_done_now.d.next = false;
        }
    }
}
