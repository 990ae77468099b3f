//! What the bench runs: every scenario, and the points at which it is run.

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// WRITE from registered memory.
    Write,
    /// WRITE whose bytes stand in the request.
    Inline,
    /// SEND from registered memory into receives posted in time.
    Send,
    /// READ.
    Read,
    /// FETCH_ADD.
    Add,
    /// SEND of a datagram (UD).
    Datagram,
}

/// Queue pairs and what they are set up with; scenarios of one kind of rig share a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rig {
    /// 32 pairs whose requests have 128 bytes, so that the card fetches them.
    Fetched,
    /// As many pairs as a card has, which are fetched like those of `Fetched`.
    All,
    /// 32 pairs whose requests have 64 bytes and travel with the doorbell.
    Carried,
    /// 4 pairs for large messages, path MTU 4096.
    Large4096,
    /// 2 pairs for large messages, path MTU 1024.
    Large1024,
    /// 8 pairs of datagrams.
    Datagrams,
    /// One pair and a program's own buffers: what registering costs.
    Registrations,
}

/// What is between the cards' engines and the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Nothing: the card `roce`.
    Plain,
    /// The card `vxlan`, without a tunnel.
    Ends,
    /// The card `switch`, which lets frames pass.
    Idle,
    /// The same; its tables decide about every received frame, by an exact entry, and everything that is sent is verified.
    Decided,
    /// The same, inside a VXLAN tunnel over IPv4.
    Tunnelled,
}

/// How a trace becomes a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Ideal beats of the payload in percent of the cycles.
    Efficiency,
    /// Payload in percent of what the pace allows: so many bytes per cycle.
    Pace(u32),
    /// Cycles per message.
    PerMessage,
    /// Cycles from doorbell to wire less host reads.
    DoorbellToWire,
    /// Cycles from the last beat received to the DMA write.
    WireToDma,
    /// Cycles of a message from the program's memory, registered by this policy.
    Registration(Policy),
}

/// As in `ferric_driver::registration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// For each message.
    Each,
    /// From a pool.
    Pool,
    /// Through a bounce block.
    Bounce,
    /// Once.
    Once,
}

/// One kind of traffic.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// First part of its figures' names. Stable.
    pub name: &'static str,
    /// In words.
    pub what: &'static str,
    /// Queue pairs.
    pub rig: Rig,
    /// What is in between.
    pub way: Way,
    /// What is done.
    pub op: Op,
    /// Bytes of a message.
    pub size: usize,
    /// Queue pairs that ask, in each direction.
    pub qps: usize,
    /// Both directions at once.
    pub both: bool,
    /// How it is judged.
    pub measure: Measure,
    /// Messages outstanding per queue pair; the first is the one at which other things are varied.
    pub windows: &'static [usize],
    /// Host latencies at the first window; the first is the one at which windows are varied.
    pub latencies: &'static [u32],
    /// Offsets of buffers from a multiple of 64.
    pub offsets: &'static [usize],
    /// Messages per queue pair in the measured part; more if that is less than so many windows.
    pub count: usize,
    /// Windows of the measured part, unless these are more than `ENOUGH` bytes; two at least. Of two, the first comes in at once and the second after one way: half of the true time where
    /// the way is what limits.
    pub rounds: usize,
    /// Bytes of memory, at each end, over which all messages of a direction are strewn; 0: one place per message outstanding.
    pub set: usize,
    /// Frames per million that the link loses.
    pub loss: u32,
    /// Bytes per cycle of the MAC; 0: no limit.
    pub mac: u32,
    /// Bytes per cycle of the host's bus, each way; 0: no limit.
    pub bus: u32,
    /// Reads that the host takes at a time.
    pub reads: u32,
    /// What ARCHITECTURE's section 6 asks for: at 64-byte lines, the first latency, every window.
    pub bar: Option<f64>,
    /// What is asked for next, in the order in which they are tried.
    pub aims: &'static [Aim],
}

/// A value to be reached later, at the points that match. None of a field: any.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// Offset of buffers.
    pub offset: Option<usize>,
    /// Host latency.
    pub latency: Option<u32>,
    /// The value.
    pub value: f64,
}

/// One figure: a scenario under fixed conditions.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The scenario.
    pub scenario: &'static Scenario,
    /// Messages outstanding per queue pair.
    pub window: usize,
    /// Offset of buffers.
    pub offset: usize,
    /// Host latency.
    pub latency: u32,
}

/// What scenarios differ from.
pub(super) const BASE: Scenario = Scenario {
    name: "",
    what: "",
    rig: Rig::Fetched,
    way: Way::Plain,
    op: Op::Write,
    size: 64,
    qps: 32,
    both: false,
    measure: Measure::PerMessage,
    windows: &[32, 128, 512],
    latencies: &[250, 500, 1000],
    offsets: &[0, 16],
    count: 96,
    rounds: 2,
    set: 0,
    loss: 0,
    mac: 0,
    bus: 0,
    reads: 512,
    bar: None,
    aims: &[],
};
/// Bytes of a queue pair behind which more windows change nothing: the wire has been the limit for long.
const ENOUGH: usize = 4 << 20;
/// Queue pairs of `write_64_all_qps.w4` and whoever else takes all: those of a card of 512 bits that a program can have, but for a few: of 1,024 contexts each function has one for management.
pub(super) const ALL: usize = 1016;
pub(super) const LARGE: Scenario = Scenario { rig: Rig::Large4096, size: 262_144, qps: 1, both: true, measure: Measure::Efficiency, windows: &[8, 2], count: 24, ..BASE };
pub(super) const SINGLE: Scenario = Scenario { rig: Rig::Large4096, qps: 1, windows: &[1], count: 16, ..BASE };
const WIDE: Scenario = Scenario { qps: 16, set: 256 << 20, latencies: &[250], windows: &[32, 8], ..BASE };
const COPIES: Scenario = Scenario { rig: Rig::Registrations, size: 16_384, qps: 1, windows: &[1], latencies: &[250], count: 16, ..BASE };

const fn everywhere(value: f64) -> Aim {
    Aim { offset: None, latency: Some(250), value }
}
const fn at(offset: usize, value: f64) -> Aim {
    Aim { offset: Some(offset), latency: Some(250), value }
}
const fn after(latency: u32, value: f64) -> Aim {
    Aim { offset: None, latency: Some(latency), value }
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "write_256k_mtu4096",
        what: "WRITE of 256 KiB, MTU 4096, one queue pair in each direction at once",
        bar: Some(98.0),
        aims: &[at(0, 99.0), at(16, 98.0), after(1000, 97.0)],
        ..LARGE
    },
    Scenario { name: "write_256k_mtu1024", what: "WRITE of 256 KiB, MTU 1024, one queue pair in each direction at once", rig: Rig::Large1024, bar: Some(95.0), aims: &[at(16, 96.0)], ..LARGE },
    Scenario {
        name: "read_64k_mtu4096",
        what: "READ of 64 KiB, MTU 4096, two queue pairs in each direction at once, up to 16 READs of each on the wire",
        op: Op::Read,
        size: 65_536,
        qps: 2,
        windows: &[32, 8],
        count: 40,
        aims: &[at(16, 98.0)],
        ..LARGE
    },
    Scenario { name: "write_64_32qp", what: "WRITE of 64 B, 32 queue pairs, one direction", count: 384, bar: Some(4.0), aims: &[everywhere(4.0), after(500, 4.0), after(1000, 6.0)], ..BASE },
    Scenario {
        name: "write_64_all_qps",
        what: "WRITE of 64 B, all queue pairs of a card (1,016) at once, one direction",
        rig: Rig::All,
        qps: ALL,
        windows: &[4],
        latencies: &[250],
        count: 16,
        aims: &[everywhere(4.2)],
        ..BASE
    },
    Scenario { name: "write_64_both_ways", what: "WRITE of 64 B, 16 queue pairs in each direction at once", qps: 16, both: true, bar: Some(5.0), ..BASE },
    Scenario {
        name: "write_64_1qp",
        what: "WRITE of 64 B, one queue pair, one direction",
        rig: Rig::Large4096,
        qps: 1,
        windows: &[128, 256, 512],
        count: 4096,
        bar: Some(8.0),
        aims: &[everywhere(7.5)],
        ..BASE
    },
    Scenario { name: "write_64_inline_32qp", what: "WRITE of 64 B that stand in the request (inline), 32 queue pairs, one direction", op: Op::Inline, aims: &[everywhere(4.0)], ..BASE },
    Scenario {
        name: "write_64_doorbell_32qp",
        what: "WRITE of 64 B, 32 queue pairs whose requests are one 64-byte slot with one entry and travel with the doorbell, one direction",
        rig: Rig::Carried,
        aims: &[everywhere(4.0)],
        ..BASE
    },
    Scenario { name: "send_64_32qp", what: "SEND of 64 B, 32 queue pairs, one direction", op: Op::Send, aims: &[everywhere(5.0), after(500, 6.0)], ..BASE },
    Scenario {
        name: "send_64_1qp",
        what: "SEND of 64 B, one queue pair, one direction",
        rig: Rig::Large4096,
        op: Op::Send,
        qps: 1,
        windows: &[128, 512],
        count: 1024,
        aims: &[everywhere(9.0)],
        ..BASE
    },
    Scenario { name: "read_64_16qp", what: "READ of 64 B, 16 queue pairs, one direction, up to 16 READs of each on the wire", op: Op::Read, qps: 16, aims: &[everywhere(6.0)], ..BASE },
    Scenario {
        name: "fetch_add_16qp",
        what: "FETCH_ADD, 16 queue pairs, words in lines of their own, one direction, up to 16 of each on the wire",
        op: Op::Add,
        size: 8,
        qps: 16,
        aims: &[everywhere(12.0)],
        ..BASE
    },
    Scenario {
        name: "ud_64_8qp",
        what: "datagram (UD SEND) of 64 B, 8 queue pairs, no more on their way than there are receives, one direction",
        rig: Rig::Datagrams,
        op: Op::Datagram,
        qps: 8,
        aims: &[everywhere(6.0)],
        ..BASE
    },
    Scenario {
        name: "write_64_32qp_reads32",
        what: "WRITE of 64 B, 32 queue pairs, one direction, a host that takes 32 reads at a time",
        reads: 32,
        windows: &[32],
        aims: &[everywhere(10.0)],
        ..BASE
    },
    Scenario { name: "write_64_32qp_reads64", what: "WRITE of 64 B, 32 queue pairs, one direction, a host that takes 64 reads at a time", reads: 64, windows: &[32], aims: &[everywhere(6.0)], ..BASE },
    Scenario { name: "write_64_16qp_set32m", what: "WRITE of 64 B, 16 queue pairs, strewn over 32 MiB in 4 KiB pages at either end, one direction", set: 32 << 20, ..WIDE },
    Scenario { name: "write_64_16qp_set256m", what: "WRITE of 64 B, 16 queue pairs, strewn over 256 MiB in 4 KiB pages at either end, one direction", aims: &[everywhere(12.0)], ..WIDE },
    Scenario {
        name: "write_4k_16qp_set256m",
        what: "WRITE of 4 KiB, MTU 4096, 16 queue pairs, strewn over 256 MiB in 4 KiB pages at either end, one direction",
        size: 4096,
        measure: Measure::Efficiency,
        windows: &[8, 32],
        count: 32,
        aims: &[everywhere(95.0)],
        ..WIDE
    },
    Scenario {
        name: "write_64k_16qp_set256m",
        what: "WRITE of 64 KiB, MTU 4096, 16 queue pairs, strewn over 256 MiB in 4 KiB pages at either end, one direction",
        size: 65_536,
        measure: Measure::Efficiency,
        windows: &[2],
        count: 6,
        aims: &[everywhere(98.0)],
        ..WIDE
    },
    Scenario {
        name: "write_64k_loss_1000ppm",
        what: "WRITE of 64 KiB, MTU 4096, one queue pair, one direction, 0.1 % of the frames lost either way",
        size: 65_536,
        both: false,
        windows: &[32, 8],
        latencies: &[250],
        count: 256,
        loss: 1000,
        aims: &[everywhere(90.0)],
        ..LARGE
    },
    Scenario {
        name: "write_64k_loss_10000ppm",
        what: "WRITE of 64 KiB, MTU 4096, one queue pair, one direction, 1 % of the frames lost either way",
        size: 65_536,
        both: false,
        windows: &[32, 8],
        latencies: &[250],
        count: 256,
        loss: 10_000,
        aims: &[everywhere(78.0)],
        ..LARGE
    },
    Scenario {
        name: "write_256k_mtu4096_mac49",
        what: "WRITE of 256 KiB, MTU 4096, one direction, a 100G MAC that takes 49 B per cycle; in percent of these",
        both: false,
        measure: Measure::Pace(49),
        mac: 49,
        latencies: &[250],
        ..LARGE
    },
    Scenario {
        name: "write_256k_mtu1024_mac49",
        what: "WRITE of 256 KiB, MTU 1024, one direction, a 100G MAC that takes 49 B per cycle; in percent of these",
        rig: Rig::Large1024,
        both: false,
        measure: Measure::Pace(49),
        mac: 49,
        latencies: &[250],
        ..LARGE
    },
    Scenario {
        name: "write_64_32qp_mac49",
        what: "WRITE of 64 B, 32 queue pairs, one direction, a 100G MAC that takes 49 B per cycle",
        mac: 49,
        latencies: &[250],
        windows: &[32],
        count: 384,
        ..BASE
    },
    Scenario {
        name: "write_256k_mtu4096_host54",
        what: "WRITE of 256 KiB, MTU 4096, one direction, a Gen3 x16 host that moves 54 B per cycle each way, requests and completions included; in percent of these",
        both: false,
        measure: Measure::Pace(54),
        bus: 54,
        latencies: &[250],
        ..LARGE
    },
    Scenario {
        name: "write_256k_mtu1024_host54",
        what: "WRITE of 256 KiB, MTU 1024, one direction, a Gen3 x16 host that moves 54 B per cycle each way, requests and completions included; in percent of these",
        rig: Rig::Large1024,
        both: false,
        measure: Measure::Pace(54),
        bus: 54,
        latencies: &[250],
        ..LARGE
    },
    Scenario {
        name: "write_64_32qp_host54",
        what: "WRITE of 64 B, 32 queue pairs, one direction, a Gen3 x16 host that moves 54 B per cycle each way, requests and completions included",
        bus: 54,
        latencies: &[250],
        windows: &[32],
        count: 384,
        ..BASE
    },
    Scenario {
        name: "doorbell_to_wire_64",
        what: "doorbell to first beat on the wire, less serial host reads: WRITE of 64 B, one at a time",
        measure: Measure::DoorbellToWire,
        bar: Some(60.0),
        aims: &[everywhere(53.0)],
        ..SINGLE
    },
    Scenario {
        name: "doorbell_to_wire_64_inline",
        what: "doorbell to first beat on the wire, less the host read of the request: WRITE of 64 B inline, one at a time",
        op: Op::Inline,
        measure: Measure::DoorbellToWire,
        bar: Some(60.0),
        ..SINGLE
    },
    Scenario {
        name: "doorbell_to_wire_64_doorbell",
        what: "doorbell to first beat on the wire, less the host read of the payload: WRITE of 64 B whose request travels with the doorbell, one at a time",
        rig: Rig::Carried,
        measure: Measure::DoorbellToWire,
        bar: Some(60.0),
        ..SINGLE
    },
    Scenario { name: "wire_to_dma_64", what: "last beat in to DMA write issued: WRITE of 64 B, one at a time", measure: Measure::WireToDma, bar: Some(30.0), aims: &[everywhere(25.0)], ..SINGLE },
    Scenario {
        name: "registration_each",
        what: "16 KiB from the program's memory, one message at a time, until acknowledged: registered for each message",
        measure: Measure::Registration(Policy::Each),
        ..COPIES
    },
    Scenario { name: "registration_pool", what: "the same from a pool, whose pieces lie at 64-byte lines", measure: Measure::Registration(Policy::Pool), offsets: &[0], ..COPIES },
    Scenario { name: "registration_bounce", what: "the same by a bounce block, the host's copy not counted", measure: Measure::Registration(Policy::Bounce), offsets: &[0], ..COPIES },
    Scenario { name: "registration_once", what: "the same, registered once", measure: Measure::Registration(Policy::Once), ..COPIES },
];

impl Measure {
    /// Of its figures.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Efficiency => "% of the beats",
            Measure::Pace(_) => "% of the pace",
            Measure::PerMessage => "cycles per message",
            Measure::DoorbellToWire | Measure::WireToDma | Measure::Registration(_) => "cycles",
        }
    }

    /// A larger value is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Measure::Efficiency | Measure::Pace(_))
    }
}

impl Point {
    /// Name of the figure. Stable.
    pub fn name(&self) -> String {
        format!("{}.w{}.{}.l{}", self.scenario.name, self.window, if self.offset == 0 { "a64" } else { "a16" }, self.latency)
    }

    /// In words.
    pub fn conditions(&self) -> String {
        let place = if self.offset == 0 { "at 64-byte lines".to_string() } else { format!("{} bytes behind a 64-byte line", self.offset) };
        format!("{}; {} outstanding per queue pair; buffers {place}; host reads answered after {} to {} cycles", self.scenario.what, self.window, self.latency, self.latency + 60)
    }

    /// Messages per queue pair before the measured part, and in it.
    pub fn counts(&self) -> (u64, u64) {
        let Scenario { count, rounds, size, .. } = *self.scenario;
        let windows = (rounds * self.window).min(ENOUGH / size).max(2 * self.window);
        (self.window.min(128) as u64, count.max(windows) as u64)
    }

    /// What it has to reach now.
    pub fn bar(&self) -> Option<f64> {
        self.scenario.bar.filter(|_| self.offset == 0 && self.latency == self.scenario.latencies[0])
    }

    /// What it is to reach later.
    pub fn aim(&self) -> Option<f64> {
        let fits = |a: &&Aim| a.offset.is_none_or(|o| o == self.offset) && a.latency.is_none_or(|l| l == self.latency);
        self.scenario.aims.iter().find(fits).map(|a| a.value)
    }

    /// Part of `--quick`: the first window and latency, at lines, without loss.
    pub fn quick(&self) -> bool {
        let s = self.scenario;
        s.loss == 0 && self.window == s.windows[0] && self.latency == s.latencies[0] && self.offset == 0
    }

    /// `value` is as good as `limit` says.
    pub fn reaches(&self, value: f64, limit: f64) -> bool {
        if self.scenario.measure.more_is_better() {
            value >= limit
        } else {
            value <= limit
        }
    }
}

/// Every figure made of a trace, in order.
pub fn points() -> Vec<Point> {
    let mut all = Vec::new();
    for scenario in SCENARIOS {
        for (n, window) in scenario.windows.iter().enumerate() {
            let latencies = if n == 0 { scenario.latencies } else { &scenario.latencies[..1] };
            for offset in scenario.offsets {
                all.extend(latencies.iter().map(|latency| Point { scenario, window: *window, offset: *offset, latency: *latency }));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_conditions_are_covered() {
        let all = points();
        assert_eq!(all.iter().map(Point::name).collect::<BTreeSet<_>>().len(), all.len());
        // Whatever is said of the card's speed is said at both alignments; where latency may be hidden by depth, at three latencies.
        for s in SCENARIOS {
            let pieces = matches!(s.measure, Measure::Registration(Policy::Pool | Policy::Bounce));
            assert!(pieces || s.offsets == [0, 16], "{}", s.name);
        }
        for name in ["write_256k_mtu4096", "write_256k_mtu1024", "read_64k_mtu4096", "write_64_32qp", "write_64_1qp", "send_64_32qp", "send_64_1qp", "read_64_16qp", "ud_64_8qp", "fetch_add_16qp"] {
            let s = SCENARIOS.iter().find(|s| s.name == name).unwrap();
            assert_eq!(s.latencies, [250, 500, 1000], "{name}");
            let packets = s.size.div_ceil(4096) * s.windows.iter().copied().max().unwrap_or(0);
            assert!(packets >= 512, "{name}: {packets} packets outstanding");
        }
    }

    #[test]
    fn bars_are_at_lines_only() {
        let p = |name: &str| points().into_iter().find(|p| p.name() == name).unwrap();
        assert_eq!(p("write_256k_mtu4096.w8.a64.l250").bar(), Some(98.0));
        assert_eq!(p("write_256k_mtu4096.w8.a16.l250").bar(), None);
        assert_eq!((p("write_256k_mtu4096.w8.a16.l250").aim(), p("write_256k_mtu4096.w8.a16.l1000").aim(), p("write_256k_mtu4096.w8.a16.l500").aim()), (Some(98.0), Some(97.0), None));
        assert!(p("write_64_1qp.w512.a64.l250").reaches(7.5, 7.5) && !p("write_64_1qp.w512.a64.l250").reaches(7.6, 7.5));
        assert!(!p("write_256k_mtu4096.w8.a64.l250").reaches(97.9, 98.0));
    }

    /// Later work is judged by these names.
    #[test]
    fn names_are_stable() {
        let all: BTreeSet<String> = points().iter().map(Point::name).collect();
        for name in [
            "write_256k_mtu4096.w2.a64.l250",
            "write_256k_mtu1024.w8.a16.l250",
            "write_256k_mtu4096.w8.a64.l1000",
            "read_64k_mtu4096.w32.a16.l250",
            "write_64_32qp.w32.a64.l250",
            "write_64_32qp.w32.a64.l500",
            "write_64_32qp.w32.a64.l1000",
            "write_64_32qp_reads32.w32.a64.l250",
            "write_64_32qp_reads64.w32.a64.l250",
            "write_64_1qp.w128.a64.l250",
            "write_64_1qp.w256.a64.l250",
            "write_64_1qp.w512.a64.l250",
            "send_64_32qp.w32.a64.l250",
            "send_64_1qp.w128.a64.l250",
            "write_64_inline_32qp.w32.a64.l250",
            "write_64_doorbell_32qp.w32.a64.l250",
            "read_64_16qp.w32.a64.l250",
            "ud_64_8qp.w32.a64.l250",
            "fetch_add_16qp.w32.a64.l250",
            "write_64_16qp_set256m.w32.a64.l250",
            "write_4k_16qp_set256m.w8.a64.l250",
            "write_64k_16qp_set256m.w2.a64.l250",
            "write_64k_loss_1000ppm.w32.a64.l250",
            "write_64k_loss_10000ppm.w32.a64.l250",
        ] {
            assert!(all.contains(name), "{name}");
        }
    }
}
