//! The admin commands as a microprogram: see docs/admin.md for what they do.

mod addresses;
mod flows;
mod functions;
mod multicast;
mod objects;
mod pause;
mod query;
mod queue_pair;
mod ranges;
mod raw;
mod reset;
mod shared_queue;
mod stations;
mod tunnel;
mod uet;
mod virtio;

use super::isa::{notice, output, Asm, Label, Op, Step, R};
use super::word;
use ferric_abi::codes::{AdminOpcode, AdminStatus, ObjectKind};
use ferric_abi::context::MrCtx;
use ferric_abi::csr::space::{self, CQ, EQ, MCAST, MR, PATH, REQ, RQ, RSP, SQ, STATS};
use ferric_abi::layout::Layout;

/// Number on the control bus of a table that the card does not have.
pub const NO_TABLE: u8 = u8::MAX;

/// What a table is called. Its number on the control bus is its place in the list; nobody writes it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableName {
    /// The number by which hosts know it (`abi::csr::space`).
    Known(u8),
    /// A word that only the engine and its admin commands use.
    Own(&'static str),
}

impl From<u8> for TableName {
    fn from(number: u8) -> Self {
        TableName::Known(number)
    }
}

impl From<&'static str> for TableName {
    fn from(word: &'static str) -> Self {
        TableName::Own(word)
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TableName::Known(number) => write!(f, "{number}"),
            TableName::Own(word) => write!(f, "`{word}`"),
        }
    }
}

/// log2 of the number of objects of each kind, and of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub qp: u32,
    pub cq: u32,
    pub mr: u32,
    pub pd: u32,
    pub eq: u32,
    pub functions: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { qp: 8, cq: 8, mr: 10, pd: 8, eq: 5, functions: 2 }
    }
}

/// Codes of [`AdminStatus`]: 0 and what follows without a gap.
const STATUSES: usize = AdminStatus::ALL.len();

/// Where the number of a table stands in the address of a control word.
const TABLE_AT: u8 = 8;

/// Bits of the scratch address.
pub const SCRATCH_BITS: u32 = 13;

// Registers
const ZERO: R = R(0);
const FN: R = R(1);
const HEAD: R = R(2);
const LOG: R = R(3);
const IDX: R = R(4);
const STATUS: R = R(5);
/// The number that a command is about.
pub const ID: R = R(6);
const OBJ: R = R(7);
const T: R = R(8);
const U: R = R(9);
const V: R = R(10);
const W: R = R(11);
/// Return addresses: leaf subroutines, queue pair shutdown, object removal.
const LINK: R = R(12);
const LINK2: R = R(13);
const LINK3: R = R(14);
const LO: R = R(15);
const HI: R = R(16);
const I: R = R(17);
const N: R = R(18);
const RAW: R = R(19);
const PROD: R = R(20);
/// The first result word.
pub const RES: u8 = 21;
const RESULTS: u8 = 9;
/// The command.
const C0: R = R(32);
const C1: R = R(33);

/// Parameter word `n`.
pub const fn p(n: u8) -> R {
    R(34 + n)
}

/// A field of a word.
#[derive(Clone, Copy)]
struct F {
    word: u32,
    shift: u8,
    mask: u32,
}

/// Where `name` lies. Panics if it straddles words or does not exist: a mistake in this program.
fn field(layout: &Layout, name: &str) -> F {
    let f = layout.field(name).unwrap_or_else(|| panic!("{} has no field {name}", layout.name));
    let shift = f.offset % 32;
    assert!(shift + f.width <= 32, "{name} straddles words");
    F { word: (f.offset / 32) as u32, shift: shift as u8, mask: ((1u64 << f.width) - 1) as u32 }
}

/// A kind of object: its scratch words start at `base`, the functions' ranges (see `ranges.rs`) at `ranges`.
///
/// Object word: users [15:0], function [27:16], exists [31]. Zero: no such object.
#[derive(Clone, Copy)]
struct Kind {
    base: u32,
    log: u32,
    count: u32,
    ranges: u32,
}

/// Kinds of objects. Their ranges stand behind the ring heads, in the order of [`ferric_abi::codes::ObjectKind`].
const KINDS: u32 = ObjectKind::ALL.len() as u32;

const USERS: u32 = 0xffff;
const FUNCTION_AT: u8 = 16;
const FUNCTION: u32 = 0xfff;
const EXISTS: u32 = 1 << 31;

/// An admin command, and the steps that carry it out.
#[derive(Clone, Copy)]
pub struct Command(pub AdminOpcode, pub fn(&mut Program));

/// What the admin engine of a card can do.
#[derive(Clone)]
pub struct Plan {
    pub sizes: Sizes,
    /// In the order of their numbers.
    commands: Vec<Command>,
    /// What engines do first when a function is reset.
    resets: Vec<fn(&mut Program)>,
    /// Tables by their numbers on the control bus.
    tables: Vec<TableName>,
}

impl Plan {
    /// The commands of the chassis, and these of engines.
    pub fn new<'a>(sizes: Sizes, commands: impl IntoIterator<Item = &'a Command>, resets: impl IntoIterator<Item = fn(&mut Program)>) -> Self {
        let mut commands: Vec<Command> = CHASSIS.iter().chain(commands).copied().collect();
        commands.sort_by_key(|c| c.0 as u32);
        commands.dedup_by_key(|c| c.0 as u32);
        Self { sizes, commands, resets: resets.into_iter().collect(), tables: Vec::new() }
    }

    /// The same for a card with these tables, in the order of their numbers on the control bus.
    #[must_use]
    pub fn with_tables(&self, tables: impl IntoIterator<Item = TableName>) -> Self {
        Self { tables: tables.into_iter().collect(), ..self.clone() }
    }
}

/// Commands of every card.
const CHASSIS: &[Command] = &[
    Command(AdminOpcode::Nop, Program::done),
    Command(AdminOpcode::CreateEq, Program::create_eq),
    Command(AdminOpcode::DestroyEq, |p| p.destroy(p.eq, p.remove_eq)),
    Command(AdminOpcode::QueryCounters, Program::query_counters),
    Command(AdminOpcode::QueryObject, Program::query_object),
    Command(AdminOpcode::SetRange, Program::set_range),
    Command(AdminOpcode::QueryRanges, Program::query_ranges),
    Command(AdminOpcode::SetStation, Program::set_station),
];

/// Commands that engines bring, and what they do first when a function is reset.
pub mod engines {
    use super::{Command, Program};
    use ferric_abi::codes::AdminOpcode::*;

    /// What the transports share: domains, completion queues, regions, shared receive queues.
    pub const VERBS: &[Command] = &[
        Command(CreatePd, Program::create_pd),
        Command(DestroyPd, Program::destroy_pd),
        Command(CreateCq, Program::create_cq),
        Command(DestroyCq, Program::destroy_cq),
        Command(CreateMr, Program::create_mr),
        Command(DestroyMr, Program::destroy_mr),
        Command(CreateSrq, Program::create_srq),
        Command(ModifySrq, Program::modify_srq),
        Command(QuerySrq, Program::query_srq),
        Command(DestroySrq, Program::destroy_srq),
    ];
    /// RoCEv2: queue pairs, groups, the port's raw queue pair.
    pub const ROCE: &[Command] = &[
        Command(CreateQp, Program::create_qp),
        Command(ModifyQp, Program::modify_qp),
        Command(QueryQp, Program::query_qp),
        Command(DestroyQp, Program::destroy_qp),
        Command(AttachMulticast, Program::attach_multicast),
        Command(DetachMulticast, Program::detach_multicast),
        Command(SetPort, Program::set_port),
    ];
    /// The functions' own addresses.
    pub const ECHO: &[Command] = &[Command(SetAddress, Program::set_address), Command(Resolve, Program::resolve)];

    /// Pause frames.
    pub const PAUSE: &[Command] = &[Command(SetPause, Program::set_pause)];

    /// The functions' tunnels.
    pub const TUNNEL: &[Command] = &[Command(SetTunnel, Program::set_tunnel)];

    /// The flow tables.
    pub const FLOWS: &[Command] = &[Command(SetFlow, Program::set_flow), Command(SetFlowPort, Program::set_flow_port)];

    /// Ultra Ethernet: peers and the ring for ends, domains and regions.
    pub const UET: &[Command] = &[
        Command(CreatePd, Program::create_pd),
        Command(DestroyPd, Program::destroy_pd),
        Command(CreateMr, Program::create_mr),
        Command(DestroyMr, Program::destroy_mr),
        Command(SetUetPeer, Program::set_uet_peer),
        Command(SetUetEnds, Program::set_uet_ends),
    ];

    /// Virtio network functions.
    pub const VIRTIO: &[Command] =
        &[Command(SetVq, Program::set_vq), Command(QueryVq, Program::query_vq), Command(SetVqSteer, Program::set_vq_steer), Command(SetVqFunction, Program::set_vq_function)];

    /// Of RoCEv2: the function's groups and its raw queue pair.
    pub fn reset_roce(program: &mut Program) {
        program.no_groups();
        program.no_raw_queue();
    }
    /// Of the addresses: there are none.
    pub const RESET_ECHO: fn(&mut Program) = Program::no_addresses;
    /// Of pause frames: none, if it is the physical function.
    pub const RESET_PAUSE: fn(&mut Program) = Program::no_pause;
    /// Of the tunnels: the physical function's own goes with it.
    pub const RESET_TUNNEL: fn(&mut Program) = Program::no_tunnel;
    /// Of virtio: the function's queues end.
    pub const RESET_VIRTIO: fn(&mut Program) = Program::no_virtio;
    /// Of Ultra Ethernet: nobody is a peer, and there is no ring, if it is the physical function.
    pub const RESET_UET: fn(&mut Program) = Program::no_uet;
    /// Of the flow tables: they are emptied, and frames pass, if it is the physical function; else it may send nothing any more, if it is verified.
    pub const RESET_FLOWS: fn(&mut Program) = Program::no_flows;
}

pub use uet::{ENDS as UET_ENDS, EVERYBODY as UET_EVERYBODY, GONE as UET_GONE, PEERS as UET_PEER_TABLE};
pub use virtio::{AVAIL as VQ_AVAIL, BELL as VQ_BELL, INTAKE as VQ_INTAKE, STEER as VQ_STEER, USED as VQ_USED};

/// The program while it is written.
pub struct Program {
    /// What has been written so far.
    pub asm: Asm,
    /// As in [`Plan`].
    tables: Vec<TableName>,
    /// log2 of the functions.
    share: u32,
    qp: Kind,
    cq: Kind,
    mr: Kind,
    pd: Kind,
    eq: Kind,
    /// Shared receive queues: as many as queue pairs, their rings behind those of the queue pairs.
    srq: Kind,
    idle: Label,
    /// Where a command goes on that ends with the status of that number.
    status: Vec<Label>,
    /// HI:LO += T, back through LINK.
    add_offset: Label,
    /// See `may_use`.
    in_range: Label,
    /// See `number_of`.
    network_number: Label,
    /// Scratch word: how many regions are windows.
    windows: u32,
    /// Queue pair ID out of action, back through LINK.
    qp_stop: Label,
    /// The same and drained, back through LINK2.
    qp_down: Label,
    /// Removal of object ID, back through LINK3.
    remove_qp: Label,
    remove_mr: Label,
    remove_srq: Label,
    remove_cq: Label,
    remove_eq: Label,
    remove_pd: Label,
}

/// Assembles the program of this plan.
pub fn assemble(plan: &Plan) -> Vec<Step> {
    let sizes = plan.sizes;
    // Ring heads, ranges, objects.
    let functions = 1 << sizes.functions;
    let (mut ranges, mut next) = (functions, functions + KINDS * functions);
    let mut kind = |log: u32| {
        let k = Kind { base: next, log, count: 1 << log, ranges };
        next += k.count;
        ranges += functions;
        k
    };
    let (qp, cq, mr, pd, eq) = (kind(sizes.qp), kind(sizes.cq), kind(sizes.mr), kind(sizes.pd), kind(sizes.eq));
    let srq = kind(sizes.qp);
    let windows = next;
    assert!(windows < 1 << SCRATCH_BITS, "the scratch memory is too small for these tables");
    let mut asm = Asm::default();
    let status = (0..STATUSES).map(|_| asm.label()).collect();
    let [idle, add_offset, in_range, network_number, qp_stop, qp_down, remove_qp, remove_mr, remove_srq, remove_cq, remove_eq, remove_pd] = std::array::from_fn(|_| asm.label());
    let mut program = Program {
        asm,
        tables: plan.tables.clone(),
        share: sizes.functions,
        qp,
        cq,
        mr,
        pd,
        eq,
        srq,
        idle,
        status,
        add_offset,
        in_range,
        network_number,
        windows,
        qp_stop,
        qp_down,
        remove_qp,
        remove_mr,
        remove_srq,
        remove_cq,
        remove_eq,
        remove_pd,
    };
    program.main(plan);
    program.asm.finish()
}

impl Program {
    /// Where a command goes on that ends with `status`.
    pub fn fails(&self, status: AdminStatus) -> Label {
        self.status[status as usize]
    }
    /// The command is done.
    pub fn done(&mut self) {
        let ok = self.fails(AdminStatus::Ok);
        self.asm.jump(ok);
    }
    /// Fails with `status` if `op` holds for `a` and `y`.
    fn refuse(&mut self, status: AdminStatus, op: Op, a: R, y: impl Into<super::isa::Y>) {
        let to = self.fails(status);
        self.asm.branch(op, a, y, to);
    }
    /// `d` = field `f` of the word in `a`.
    fn get(&mut self, d: R, a: R, f: F) {
        self.asm.ext(d, a, f.shift, f.mask);
    }
    /// `d` = `a` with field `f` from `b`.
    fn set(&mut self, d: R, a: R, b: R, f: F) {
        self.asm.ins(d, a, b, f.shift, f.mask);
    }
    /// Field `f` of `d` becomes `value`.
    fn set_to(&mut self, d: R, f: F, value: u32) {
        self.asm.op(Op::And, d, d, !(f.mask << f.shift));
        if value != 0 {
            self.asm.op(Op::Or, d, d, value << f.shift);
        }
    }
    /// The line that is read and written from here on.
    pub fn line(&mut self, id: R) {
        self.asm.op(Op::Line, ZERO, id, 0);
    }
    /// Where word 0 of a line of `table` is for [`Op::CtlRead`] and [`Op::CtlWrite`]; every access to a table that the card does not have fails.
    fn at(&self, table: impl Into<TableName>) -> u32 {
        let table = table.into();
        let number = self.tables.iter().position(|name| *name == table).map_or(NO_TABLE.into(), |n| n as u32);
        number << TABLE_AT
    }
    /// `d` = word `word` of the line in `table`.
    pub fn read(&mut self, d: R, table: impl Into<TableName>, word: u32) {
        let at = self.at(table) | word;
        self.asm.op(Op::CtlRead, d, ZERO, at);
    }
    /// The word becomes `value`.
    pub fn write(&mut self, table: impl Into<TableName>, word: u32, value: R) {
        let at = self.at(table) | word;
        self.asm.op(Op::CtlWrite, ZERO, value, at);
    }

    /// OBJ = object `id`, which must exist and belong to the function.
    fn own(&mut self, kind: Kind, id: R) {
        self.refuse(AdminStatus::BadId, Op::Bge, id, kind.count);
        self.asm.op(Op::Ld, OBJ, id, kind.base);
        self.refuse(AdminStatus::BadState, Op::Beq, OBJ, 0);
        self.asm.ext(T, OBJ, FUNCTION_AT, FUNCTION);
        self.refuse(AdminStatus::BadId, Op::Bne, T, FN);
    }
    /// Object ID must be [`Self::own`] and without users.
    fn own_unused(&mut self, kind: Kind) {
        self.own(kind, ID);
        self.asm.ext(T, OBJ, 0, USERS);
        self.refuse(AdminStatus::InUse, Op::Bne, T, 0);
    }
    /// Number ID must be free and one that the function may use. Changes what `may_use` does.
    fn fresh(&mut self, kind: Kind) {
        self.refuse(AdminStatus::BadId, Op::Bge, ID, kind.count);
        self.may_use(kind);
        self.is_free(kind);
    }
    /// There is no object ID.
    fn is_free(&mut self, kind: Kind) {
        self.asm.op(Op::Ld, OBJ, ID, kind.base);
        self.refuse(AdminStatus::BadState, Op::Bne, OBJ, 0);
    }
    /// Object ID exists from now on.
    fn make(&mut self, kind: Kind) {
        self.asm.li(T, EXISTS);
        self.asm.ins(T, T, FN, FUNCTION_AT, FUNCTION);
        self.asm.store(ID, kind.base, T);
    }
    /// Object ID is gone.
    fn unmake(&mut self, kind: Kind) {
        self.asm.store(ID, kind.base, ZERO);
    }
    /// Object `id` has one user more (`Op::Add`) or less (`Op::Sub`).
    fn users(&mut self, kind: Kind, id: R, op: Op) {
        self.asm.op(Op::Ld, V, id, kind.base);
        self.asm.op(op, V, V, 1);
        self.asm.store(id, kind.base, V);
    }
    /// A window more or less.
    fn count_window(&mut self, op: Op) {
        self.asm.op(Op::Ld, V, ZERO, self.windows);
        self.asm.op(op, V, V, 1);
        self.asm.store(ZERO, self.windows, V);
    }
    /// Region ID, whose line that is, goes out of use.
    fn close_region(&mut self) {
        let region = self.asm.label();
        self.read(T, MR, 0);
        self.write(MR, 0, ZERO);
        self.get(T, T, field(&MrCtx::LAYOUT, "window"));
        self.asm.branch(Op::Beq, T, 0, region);
        self.count_window(Op::Sub);
        self.asm.bind(region);
    }
    /// Waits until everything that was decided by what the tables said before has left the card, and the host has answered it.
    fn drain(&mut self) {
        self.barrier_and_quiesce(0);
    }
    /// The same; the line is a queue pair's, whose life ends.
    fn drain_queue_pair(&mut self) {
        self.barrier_and_quiesce(1);
    }
    fn barrier_and_quiesce(&mut self, ends: u32) {
        self.asm.op(Op::Barrier, ZERO, ZERO, ends);
        self.asm.op(Op::QuiesceReads, ZERO, ZERO, 0);
        self.asm.op(Op::QuiesceWrites, ZERO, ZERO, 0);
    }

    fn main(&mut self, plan: &Plan) {
        self.asm.li(RAW, 0);
        self.asm.act(Op::Out, RAW, ZERO, output::RAW_QUEUE);
        self.default_ranges();
        let soft_reset = self.asm.label();
        self.turns(soft_reset);
        // Slot and command
        self.asm.act_csr(LOG, word::SIZE);
        self.asm.li(T, 1);
        self.asm.op(Op::Shl, T, T, LOG);
        self.asm.op(Op::Sub, T, T, 1);
        self.asm.op(Op::And, IDX, HEAD, T);
        self.asm.act_csr(LO, word::SQ);
        self.asm.act_csr(HI, word::SQ + 1);
        self.asm.op(Op::Shl, T, IDX, 7);
        self.asm.call(LINK, self.add_offset);
        for r in 0..RESULTS {
            self.asm.li(R(RES + r), 0);
        }
        self.asm.li(STATUS, 0);
        let unreadable = self.asm.label();
        self.asm.act(Op::Fetch, LO, HI, 0);
        self.asm.on_error(unreadable);
        self.asm.mov(ID, C1);
        self.asm.ext(T, C0, 0, 0xff);
        let commands: Vec<_> = plan.commands.iter().map(|command| (command, self.asm.label())).collect();
        for (command, label) in &commands {
            self.asm.branch(Op::Beq, T, command.0 as u32, *label);
        }
        self.asm.jump(self.fails(AdminStatus::BadOpcode));
        for (Command(_, steps), label) in commands {
            self.asm.bind(label);
            steps(self);
        }
        self.subroutines();
        self.asm.bind(soft_reset);
        self.soft_reset(&plan.resets);
        self.asm.bind(unreadable);
        self.asm.li(C0, 0);
        self.asm.jump(self.fails(AdminStatus::DmaError));
        // From each status to the next lower one, counted on the way.
        for status in (1..STATUSES).rev() {
            self.asm.bind(self.status[status]);
            self.asm.op(Op::Add, STATUS, STATUS, 1);
        }
        self.asm.act(Op::Out, ZERO, ZERO, output::REFUSED);
        self.asm.bind(self.status[AdminStatus::Ok as usize]);
        self.completion();
    }

    /// Writes the completion of the command in slot IDX and goes on.
    fn completion(&mut self) {
        self.asm.ext(T, C0, 16, 0xffff);
        self.asm.ins(T, T, STATUS, 16, 0xff);
        self.asm.op(Op::Shr, U, HEAD, LOG);
        self.asm.op(Op::Add, U, U, 1);
        self.asm.ins(T, T, U, 31, 1);
        self.asm.op(Op::Add, HEAD, HEAD, 1);
        self.asm.op(Op::And, HEAD, HEAD, 0xffff);
        self.asm.store(FN, 0, HEAD);
        self.asm.act(Op::Push, HEAD, ZERO, 0);
        for n in 0..14 {
            self.asm.act(Op::Push, if n < RESULTS { R(RES + n) } else { ZERO }, ZERO, 0);
        }
        // Last, for a host may see the beats of a line one by one.
        self.asm.act(Op::Push, T, ZERO, 0);
        self.asm.act_csr(LO, word::CQ);
        self.asm.act_csr(HI, word::CQ + 1);
        self.asm.op(Op::Shl, T, IDX, 6);
        self.asm.call(LINK, self.add_offset);
        self.asm.act(Op::Write, LO, HI, 0);
        self.asm.jump(self.idle);
        self.asm.bind(self.add_offset);
        self.asm.op(Op::Add, LO, LO, T);
        self.asm.op(Op::Lt, U, LO, T);
        self.asm.op(Op::Add, HI, HI, U);
        self.asm.ret(LINK);
    }
}
