//! The commands of docs/admin.md against software tables: once interpreted, once on the engine, with the same outcome.

mod addresses;
mod card;
mod commands;
mod flows;
mod functions;
mod many;
mod own_table;
mod pause;
mod queue_pairs;
mod raw;
mod stations;
mod tunnel;

use super::isa::Inst;
use super::model::{Model, World};
use super::program::{assemble, Command, Plan, Program, Sizes};
use super::Admin;
use crate::msg::{CtlAsk, CtlResp, QpError, RdCmd, RdRow, WrDone, WrSmall};
use crate::tb::{Fields, Sink, Source, Tb};
use card::{Card, Event};
use ferric_abi::codes::{AdminOpcode, AdminStatus};
use rust_hdl::prelude::*;

/// Smaller than the card's, so that the numbers beyond the end are near.
const SIZES: Sizes = Sizes { qp: 4, cq: 4, mr: 5, pd: 3, eq: 2, functions: 2 };

/// All that the engines bring, and the addresses' commands: the engine that they belong to may not be there yet.
fn plan(sizes: Sizes) -> Plan {
    const ADDRESSES: &[Command] = &[Command(AdminOpcode::SetAddress, Program::set_address), Command(AdminOpcode::Resolve, Program::resolve)];
    // Those of `uet` are tested by themselves: a plan knows the tables of one card.
    let engines: Vec<_> = crate::card::most().collect();
    let mut commands: Vec<Command> = engines.iter().flat_map(|e| e.commands).copied().collect();
    let mut resets: Vec<fn(&mut Program)> = engines.iter().filter_map(|e| e.reset).collect();
    if !commands.iter().any(|c| c.0 == AdminOpcode::SetAddress) {
        commands.extend(ADDRESSES);
        resets.push(Program::no_addresses);
    }
    Plan::new(sizes, &commands, resets).with_tables(card::tables().iter().map(|t| t.name))
}

/// What executes the program.
enum Engine {
    Model(Box<Model>),
    Rtl(Box<Rtl>),
}

struct Rtl {
    tb: Tb,
    rd: Sink,
    rows: Source,
    wr: Sink,
    done: Source,
    /// Requests to the tables, and their answers; none where the tables are blocks.
    ctl: Option<(Sink, Source)>,
    errors: Vec<Sink>,
    barrier_in: u64,
}

/// A card with its drivers.
struct Bench {
    engine: Engine,
    card: Card,
    produced: Vec<u32>,
    /// Completions seen with another status than Ok.
    refused: Vec<u32>,
}

impl Bench {
    fn model() -> Self {
        Self::model_of(SIZES)
    }

    fn model_of(sizes: Sizes) -> Self {
        Self::with(Engine::Model(Box::new(Model::new(assemble(&plan(sizes))))), sizes)
    }

    fn rtl(name: &str) -> Self {
        Self::rtl_of(name, SIZES, 30)
    }

    /// `stall`: how often the streams do not move, in percent.
    fn rtl_of(name: &str, sizes: Sizes, stall: u32) -> Self {
        let plan = plan(sizes);
        let mut tb = match sizes.functions {
            2 => Tb::new(name, Admin::<2>::new(&plan)),
            6 => Tb::new(name, Admin::<6>::new(&plan)),
            other => panic!("no engine for 2^{other} functions"),
        };
        let (rd, rows) = (tb.sink("m_rd", stall), tb.source("s_rd", stall));
        let (wr, done) = (tb.sink("m_wr", stall), tb.source("s_done", stall));
        let ctl = Some((tb.sink("m_ctl", stall), tb.source("s_ctl", stall)));
        let errors = vec![tb.sink("m_error$0", stall), tb.sink("m_error$1", stall)];
        tb.set("mtt_clean", 1);
        Self::with(Engine::Rtl(Box::new(Rtl { tb, rd, rows, wr, done, ctl, errors, barrier_in: 0 })), sizes)
    }

    fn with(engine: Engine, sizes: Sizes) -> Self {
        Self { engine, card: Card::new(sizes), produced: vec![0; 1 << sizes.functions], refused: vec![0; 1 << sizes.functions] }
    }

    /// One instruction or one cycle.
    fn advance(&mut self) {
        match &mut self.engine {
            Engine::Model(model) => model.step(&mut self.card),
            Engine::Rtl(rtl) => rtl.cycle(&mut self.card),
        }
    }

    /// Cycles of the engine so far.
    fn cycles(&self) -> u64 {
        match &self.engine {
            Engine::Model(_) => 0,
            Engine::Rtl(rtl) => rtl.tb.cycles(),
        }
    }

    fn soft_reset(&mut self, f: usize) {
        self.card.soft_reset[f] = true;
        self.card.producer[f] = 0;
        self.produced[f] = 0;
        self.card.tell(f);
        let mut left = 2_000_000;
        while self.card.soft_reset[f] {
            self.advance();
            left -= 1;
            assert!(left > 0, "soft reset never ends");
        }
    }

    /// Queues a command on function `f`; its slot.
    fn post(&mut self, f: usize, opcode: u8, id: u32, params: &[u32]) -> u64 {
        let n = self.produced[f];
        let slot = u64::from(n % (1 << Card::log_size(f)));
        let mut words = [0xdead_0000 | n; 32];
        words[0] = u32::from(opcode) | (n & 0xffff) << 16;
        words[1] = id;
        words[2..2 + params.len()].copy_from_slice(params);
        self.card.commands.insert(Card::ring(f) + 128 * slot, words);
        self.produced[f] = n + 1;
        self.card.producer[f] = (n + 1) & 0xffff;
        self.card.tell(f);
        Card::completions(f) + 64 * slot
    }

    /// The completion at `iova` of command `n`, when it comes.
    fn wait(&mut self, f: usize, iova: u64, n: u32) -> (AdminStatus, Vec<u32>) {
        let phase = n >> Card::log_size(f) & 1 == 0;
        let mut left = 400_000;
        loop {
            if let Some(line) = self.card.lines.get(&iova).filter(|line| (line[15] >> 31 == 1) == phase) {
                assert_eq!(line[0], (n + 1) & 0xffff, "commands consumed");
                let status = AdminStatus::from_u8((line[15] >> 16) as u8).expect("a known status");
                self.refused[f] += u32::from(status != AdminStatus::Ok);
                if status != AdminStatus::DmaError {
                    assert_eq!(line[15] & 0xffff, n & 0xffff, "command number");
                }
                return (status, line[1..15].to_vec());
            }
            self.advance();
            left -= 1;
            assert!(left > 0, "no completion of command {n} of function {f}");
        }
    }

    fn execute(&mut self, f: usize, opcode: AdminOpcode, id: u32, params: &[u32]) -> (AdminStatus, Vec<u32>) {
        let n = self.produced[f];
        let iova = self.post(f, opcode as u8, id, params);
        self.wait(f, iova, n)
    }

    /// Executes and expects `status`; the result words.
    fn expect(&mut self, status: AdminStatus, f: usize, opcode: AdminOpcode, id: u32, params: &[u32]) -> Vec<u32> {
        let (got, result) = self.execute(f, opcode, id, params);
        assert_eq!(got, status, "{opcode:?} {id} {params:x?}");
        result
    }
}

impl Rtl {
    fn cycle(&mut self, card: &mut Card) {
        let tb = &mut self.tb;
        // What the engine looks at is there a cycle later.
        let function = tb.get("look_function") as u32;
        let seen = card.register(function, tb.get("look_word") as u32);
        // The barrier comes back some time later, a quiesce is answered after a while and falls after a while.
        if self.barrier_in > 0 {
            self.barrier_in -= 1;
        }
        tb.set("barrier_done", u64::from(self.barrier_in == 1));
        for (quiesce, quiesced, writes) in [("quiesce_rd", "quiesced_rd", false), ("quiesce_wr", "quiesced_wr", true)] {
            let (asked, answered) = (tb.get(quiesce), tb.get(quiesced));
            if asked != answered && tb.rng().percent(20) {
                if asked == 1 {
                    card.log.push(Event::Quiesce { writes });
                }
                tb.set(quiesced, asked);
            }
        }
        tb.cycle();
        if tb.get("barrier") == 1 {
            assert_eq!(self.barrier_in, 0, "one barrier at a time");
            card.log.push(Event::Barrier);
            self.barrier_in = 2 + tb.rng().below(30);
        }
        if tb.get("stat") == 1 {
            card.output(tb.get("stat_function") as u32, 4, 0);
        }
        // The translations are gone some time after they were to go.
        if tb.get("mtt_clean") == 0 && tb.rng().percent(10) {
            card.log.push(Event::Clean);
            tb.set("mtt_clean", 1);
        }
        if tb.get("mtt_invalidate") == 1 {
            card.log.push(Event::Invalidate);
            tb.set("mtt_clean", 0);
        }
        tb.set("look", seen.into());
        let function = tb.get("look_function") as u32;
        for (pulse, output) in [("served", 5), ("again", 6), ("reset_done", 3)] {
            if tb.get(pulse) == 1 {
                card.output(function, output, 0);
            }
        }
        card.raw_qpn = tb.get("raw_qpn") as u32;
        self.serve(card);
    }

    fn serve(&mut self, card: &mut Card) {
        if let Some(got) = self.rd.pop() {
            let layout = Fields::of::<RdCmd>();
            assert_eq!(layout.get(&got, "rows"), 2);
            let (words, failed) = card.fetch(layout.get(&got, "function") as u32, layout.get(&got, "iova") as u64);
            let row_layout = Fields::of::<RdRow>();
            for row in 0..2usize {
                let mut beat = row_layout.pack(&[("row", row as u128), ("last", row as u128), ("err", failed.into())]);
                row_layout.set_words(&mut beat, "data", &words[16 * row..16 * row + 16]);
                self.rows.push(beat);
            }
        }
        if let Some(got) = self.wr.pop() {
            let layout = Fields::of::<WrSmall>();
            assert_eq!(layout.get(&got, "len"), 64);
            let line = layout.get_words(&got, "data").try_into().expect("16 words");
            let failed = card.write(layout.get(&got, "function") as u32, layout.get(&got, "iova") as u64, line);
            self.done.push(Fields::of::<WrDone>().pack(&[("err", failed.into())]));
        }
        if let Some((got, answers)) = self.ctl.as_ref().and_then(|(ctl, answers)| Some((ctl.pop()?, answers))) {
            let layout = Fields::of::<CtlAsk>();
            let [table, line, word, write, data] = ["table", "line", "word", "write", "data"].map(|name| layout.get(&got, name) as u32);
            let (data, err) = card.control(table as u8, line, word as u8, (write == 1).then_some(data));
            answers.push(Fields::of::<CtlResp>().pack(&[("data", data.into()), ("err", err.into())]));
        }
        for (port, errors) in (0..).zip(&self.errors) {
            if let Some(got) = errors.pop() {
                let layout = Fields::of::<QpError>();
                // Not every message is an error: see `Op::Error`.
                let cause = layout.get(&got, "cause");
                let told = [(5, port), (0, 3), (0x81, 2), (0x80, 4), (0x82, 6)].into_iter().find(|(c, _)| *c == cause).expect("a known cause").1;
                assert_eq!((told % 2, layout.get(&got, "side")), (port, u128::from(port == 0)));
                card.error(told, layout.get(&got, "qpn") as u32, layout.get(&got, "epoch") as u8);
            }
        }
    }
}

#[test]
fn an_instruction_is_what_the_engine_reads() {
    let steps = assemble(&plan(Sizes::default()));
    assert!(steps.len() > 500, "{} instructions", steps.len());
    let layout = Fields::of::<Inst>();
    assert_eq!(layout.width() as usize, Inst::BITS);
    for step in steps {
        let word = step.encode();
        let words: Vec<u32> = (0..3).map(|i| (word >> (32 * i)) as u32).collect();
        let fields = layout.unpack(&words);
        let expected = [
            ("imm", step.imm.into()),
            ("target", step.target.into()),
            ("sh", step.sh.into()),
            ("use_imm", step.use_imm.into()),
            ("write", step.writes().into()),
            ("b", step.b.into()),
            ("a", step.a.into()),
            ("d", step.d.into()),
            ("op", step.op as u128),
        ];
        assert_eq!(fields, expected);
    }
}

#[test]
fn the_program_does_what_the_commands_say() {
    commands::all(&mut Bench::model());
}

#[test]
fn the_engine_does_what_the_program_says() {
    same([Bench::model(), Bench::rtl("admin")], commands::all, 1000);
}

/// A driver resets its function behind its last command: at each moment of the engine's next look at the ring.
fn reset_behind(b: &mut Bench, moments: u64) {
    for moment in 0..moments {
        b.expect(AdminStatus::Ok, 0, AdminOpcode::Nop, 0, &[]);
        (0..moment).for_each(|_| b.advance());
        let start = b.card.log.len();
        functions::reset(b, 0);
        let ring = |e: &&Event| matches!(e, Event::Fetch { .. } | Event::Write { .. });
        assert_eq!(b.card.log[start..].iter().find(ring), None, "a reset {moment} steps behind the command: nobody has posted one");
    }
}

#[test]
fn a_reset_is_no_command() {
    // More instructions, and more cycles, than the engine needs from a completion to an empty ring.
    reset_behind(&mut Bench::model(), 60);
    reset_behind(&mut Bench::rtl("admin"), 200);
}

/// `work` has the same events, `least` at least, with either bench: the first is the model's.
fn same(mut benches: [Bench; 2], work: fn(&mut Bench), least: usize) {
    benches.iter_mut().for_each(work);
    let [model, rtl] = benches;
    for (n, (m, r)) in model.card.log.iter().zip(&rtl.card.log).enumerate() {
        assert_eq!(m, r, "event {n}");
    }
    assert_eq!(model.card.log.len(), rtl.card.log.len());
    assert!(model.card.log.len() > least, "{} events are too few", model.card.log.len());
}
