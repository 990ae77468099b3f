//! What is generated: some connections, on each a list of work requests, some of which break a rule.
use ferric_driver::types::{Mtu, QpType};
use proptest::prelude::*;
use proptest::sample::select;

/// What a work request does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verb {
    Send,
    SendImm,
    /// Takes the key of the peer's window away.
    SendInv,
    Write,
    /// A WRITE of the word that atomics work on.
    Put,
    WriteImm,
    Read,
    FetchAdd,
    /// An ATOMIC WRITE of that word.
    Store,
    Flush,
    /// `hit`: it compares with what is there.
    CompareSwap {
        hit: bool,
    },
}

impl Verb {
    /// Takes a receive of the peer.
    pub fn consumes(self) -> bool {
        matches!(self, Verb::Send | Verb::SendImm | Verb::SendInv | Verb::WriteImm)
    }
    /// Brings its payload into the peer's receive.
    pub fn sends(self) -> bool {
        matches!(self, Verb::Send | Verb::SendImm | Verb::SendInv)
    }
    pub fn has_imm(self) -> bool {
        matches!(self, Verb::SendImm | Verb::WriteImm)
    }
    pub fn is_atomic(self) -> bool {
        matches!(self, Verb::FetchAdd | Verb::CompareSwap { .. })
    }
    /// Works on the word.
    pub fn on_word(self) -> bool {
        self.is_atomic() || matches!(self, Verb::Put | Verb::Store)
    }
    /// Has neither list nor inline bytes.
    pub fn bare(self) -> bool {
        matches!(self, Verb::Store | Verb::Flush)
    }
    /// Brings something back.
    pub fn asks(self) -> bool {
        self == Verb::Read || self.is_atomic()
    }
}

/// A rule that a work request breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crime {
    /// The peer has no such key.
    Key,
    /// Beyond the peer's region.
    Bounds,
    /// Into a region that peers have no rights in.
    Right,
    /// An atomic on an address that is not a multiple of 8.
    Odd,
    /// The peer's receive is too small.
    Short,
    /// Through the window, whose key an earlier SEND has taken away.
    Gone,
    /// No such local key.
    LocalKey,
    /// Beyond the local region.
    LocalBounds,
}

impl Crime {
    /// Can be committed with `verb` and a payload of `len` bytes. What has no payload needs no key (IBTA 9.4.1).
    fn fits(self, verb: Verb, len: usize) -> bool {
        match self {
            _ if len == 0 => false,
            Crime::Key | Crime::Bounds | Crime::Right | Crime::Gone => !verb.sends(),
            Crime::Odd => verb.is_atomic() || verb == Verb::Store,
            Crime::Short => verb.sends(),
            Crime::LocalKey | Crime::LocalBounds => !verb.bare(),
        }
    }
    /// Found at home.
    pub fn is_local(self) -> bool {
        matches!(self, Crime::LocalKey | Crime::LocalBounds)
    }
}

/// A work request.
#[derive(Clone, Debug)]
pub struct Op {
    pub verb: Verb,
    /// Payload bytes; 8 of what works on the word.
    pub len: usize,
    /// Entries of the local list: 1 to 3. What works on the word has one.
    pub entries: usize,
    pub inline: bool,
    pub signaled: bool,
    pub solicited: bool,
    pub fence: bool,
    /// A READ of what the WRITE before it wrote.
    pub reads_back: bool,
    /// By the key of the peer's window, not by that of its region.
    pub through: bool,
    /// Its receive, and those behind it, are posted late.
    pub late: bool,
    pub crime: Option<Crime>,
    /// Seed of payload and operands.
    pub data: u64,
}

/// What the sender's side does once its last request has ended, however that was. Whatever is still under way then is nobody's business any more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Stays,
    /// Takes its memory back.
    Deregisters,
    /// Resets its queue pair.
    Resets,
}

/// A pair of queue pairs; `from` sends.
#[derive(Clone, Debug)]
pub struct Connection {
    pub transport: QpType,
    pub mtu: Mtu,
    pub v6: bool,
    pub vlan: bool,
    pub from: usize,
    pub psn: [u32; 2],
    pub end: End,
    pub ops: Vec<Op>,
}

/// All of it. `faults`: the wire loses, repeats, delays and damages frames.
#[derive(Clone, Debug)]
pub struct Program {
    pub faults: bool,
    pub connections: Vec<Connection>,
}

impl Program {
    /// An end that nobody is told of cannot be waited for.
    pub fn tell_the_end(&mut self) {
        self.connections.iter_mut().filter_map(|c| c.ops.last_mut()).for_each(|op| op.signaled = true);
    }
}

/// Connections of a program at most.
pub const MOST_CONNECTIONS: usize = 2;
/// Largest message: six packets of 1024 bytes and a bit.
const MOST: usize = 6200;

fn verb(transport: QpType) -> BoxedStrategy<Verb> {
    let all = vec![
        Verb::Send,
        Verb::SendImm,
        Verb::Write,
        Verb::WriteImm,
        Verb::Read,
        Verb::FetchAdd,
        Verb::CompareSwap { hit: true },
        Verb::CompareSwap { hit: false },
        Verb::FetchAdd,
        Verb::Put,
        Verb::Put,
        Verb::SendInv,
        Verb::Store,
        Verb::Flush,
        Verb::Flush,
    ];
    let many = match transport {
        QpType::Rc => 15,
        QpType::Uc => 4,
        _ => 2,
    };
    select(all[..many].to_vec()).boxed()
}

/// Borders of packets are favoured.
fn length(mtu: usize, most: usize) -> impl Strategy<Value = usize> {
    prop_oneof![
        1 => Just(0),
        2 => (0..=2usize, 1..=4usize).prop_map(move |(d, n)| (n * mtu + d - 1).min(most)),
        3 => 0..=most.min(80),
        2 => 0..=most,
    ]
}

fn op(transport: QpType, mtu: usize) -> impl Strategy<Value = Op> {
    let most = if transport == QpType::Ud { mtu } else { MOST };
    let crimes = vec![Crime::Key, Crime::Bounds, Crime::Right, Crime::Odd, Crime::Short, Crime::LocalKey, Crime::LocalBounds];
    let crime = prop_oneof![6 => Just(None), 1 => select(crimes).prop_map(Some)];
    let flags = prop::array::uniform6(any::<bool>());
    (verb(transport), length(mtu, most), 1..=3usize, flags, crime, any::<u64>(), 0..8u8).prop_map(move |(verb, len, entries, flags, crime, data, rarely)| {
        let [inline, signaled, solicited, fence, reads_back, through] = flags;
        let len = if verb.on_word() { 8 } else { len };
        // What the unreliable transports do with most crimes is another test's subject (tests/uc.rs, tests/ud.rs).
        let crime = crime.filter(|c| c.fits(verb, len) && transport == QpType::Rc);
        Op {
            verb,
            len,
            entries: if verb.on_word() { 1 } else { entries },
            inline: inline && len <= 32 && !verb.asks() && !verb.bare() && crime.is_none_or(|c| !c.is_local()),
            signaled,
            solicited,
            fence,
            reads_back,
            // A window is not flushed.
            through: through && transport == QpType::Rc && crime.is_none() && !verb.sends() && verb != Verb::Flush,
            late: rarely == 0 && transport == QpType::Rc,
            crime,
            data,
        }
    })
}

fn connection() -> impl Strategy<Value = Connection> {
    let transport = prop_oneof![4 => Just(QpType::Rc), 1 => Just(QpType::Uc), 1 => Just(QpType::Ud)];
    let mtu = select(vec![Mtu::M256, Mtu::M512, Mtu::M1024, Mtu::M2048, Mtu::M4096]);
    (transport, mtu).prop_flat_map(|(transport, mtu)| {
        // A fourth of the PSNs wraps.
        let psn = || prop_oneof![3 => 0..1u32 << 24, 1 => 0xff_fff8..1u32 << 24];
        let ops = prop::collection::vec(op(transport, mtu.bytes()), 1..=6);
        let end = select(vec![End::Stays, End::Deregisters, End::Resets]);
        (any::<bool>(), prop::bool::weighted(0.2), 0..2usize, [psn(), psn()], end, ops).prop_map(move |(v6, vlan, from, psn, end, ops)| Connection { transport, mtu, v6, vlan, from, psn, end, ops })
    })
}

/// Any program.
pub fn program() -> impl Strategy<Value = Program> {
    (any::<bool>(), prop::collection::vec(connection(), 1..=MOST_CONNECTIONS)).prop_map(|(faults, connections)| Program { faults, connections })
}
