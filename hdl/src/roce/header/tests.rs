use super::model::{header, Op};
use super::{header_len, HeaderBuilder, BYTES};
use crate::msg::{HdrDone, HdrOp};
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use ferric_abi::context::PathCtx;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

pub(crate) fn random_path(rng: &mut Rng) -> PathCtx {
    let mut path = PathCtx(rng.bytes(64).try_into().expect("64 bytes"));
    path.set_valid(true);
    path
}

fn random_op(rng: &mut Rng, slot: u8) -> Op {
    let pay_len = rng.range(0, 4096) as u16;
    let mut op = Op {
        slot,
        qpn: rng.below(16) as u32,
        opcode: rng.next_u32() as u8,
        dest_qpn: rng.next_u32() >> 8,
        psn: rng.next_u32() >> 8,
        ack_req: rng.percent(50),
        solicited: rng.percent(50),
        pay_len,
        pad: ((4 - pay_len % 4) % 4) as u8,
        ..Op::default()
    };
    match rng.below(10) {
        9 => {
            op.reth = Some((rng.next_u64(), rng.next_u32(), rng.next_u32()));
            op.feth = Some(rng.next_u32());
        }
        0 => op.reth = Some((rng.next_u64(), rng.next_u32(), rng.next_u32())),
        1 => {
            op.reth = Some((rng.next_u64(), rng.next_u32(), rng.next_u32()));
            op.imm = Some(rng.next_u32());
        }
        2 => op.imm = Some(rng.next_u32()),
        3 => op.aeth = Some(rng.next_u32()),
        4 => {
            op.aeth = Some(rng.next_u32());
            op.atomic_ack = Some(rng.next_u64());
        }
        n @ (7 | 8) => {
            let dip = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
            op.deth = Some((rng.next_u32(), rng.next_u64(), dip));
            op.imm = (n == 8).then(|| rng.next_u32());
        }
        5 => op.atomic = Some((rng.next_u64(), rng.next_u32(), rng.next_u64(), rng.next_u64())),
        _ => {}
    }
    op
}

/// `op` as the message.
pub(crate) fn message(op: &Op) -> Vec<u32> {
    let address = op.reth.or(op.atomic.map(|(va, rkey, ..)| (va, rkey, 0))).or(op.deth.map(|(qkey, address, _)| (address, qkey, 0)));
    let (raddr, rkey, dma_len) = address.unwrap_or_default();
    let dip = op.deth.map(|deth| deth.2);
    let operand = op.atomic.map(|atomic| atomic.2).or(op.atomic_ack).or(dip.map(|dip| dip as u64)).unwrap_or_default();
    let compare = op.atomic.map(|atomic| atomic.3).or(dip.map(|dip| (dip >> 64) as u64)).unwrap_or_default();
    Fields::of::<HdrOp>().pack(&[
        ("slot", op.slot.into()),
        ("qpn", op.qpn.into()),
        ("opcode", op.opcode.into()),
        ("dest_qpn", op.dest_qpn.into()),
        ("psn", op.psn.into()),
        ("ack_req", op.ack_req.into()),
        ("solicited", op.solicited.into()),
        ("pad", op.pad.into()),
        ("pay_len", op.pay_len.into()),
        ("has_reth", op.reth.is_some().into()),
        ("raddr", raddr.into()),
        ("rkey", rkey.into()),
        ("dma_len", dma_len.into()),
        ("has_imm", (op.imm.is_some() || op.feth.is_some()).into()),
        ("imm", op.imm.or(op.feth).unwrap_or_default().into()),
        ("has_feth", op.feth.is_some().into()),
        ("has_aeth", op.aeth.is_some().into()),
        ("aeth", op.aeth.unwrap_or_default().into()),
        ("has_atomic", op.atomic.is_some().into()),
        ("has_atomic_ack", op.atomic_ack.is_some().into()),
        ("operand", operand.into()),
        ("compare", compare.into()),
        ("has_deth", op.deth.is_some().into()),
    ])
}

/// The store's side of the context port: answers after `latency` cycles at random, checks the locking rules.
pub(crate) struct Store {
    acq: Sink,
    line: Source,
    rel: Sink,
    /// Paths by id; an absent id is a fault.
    pub paths: HashMap<u32, PathCtx>,
    latency: (u64, u64),
    due: VecDeque<(u64, u32)>,
    held: Option<u32>,
}

impl Store {
    pub fn new(tb: &mut Tb, port: usize, latency: (u64, u64), stall: u32) -> Store {
        Store {
            acq: tb.sink_of(&format!("ctx${port}$acq_"), &["id", "tag"], stall),
            line: tb.source_of(&format!("ctx${port}$line_"), &["data", "tag", "fault"], stall),
            rel: tb.sink_of(&format!("ctx${port}$rel_"), &["id", "dirty"], stall),
            paths: HashMap::new(),
            latency,
            due: VecDeque::new(),
            held: None,
        }
    }

    /// To be called once per cycle.
    pub fn step(&mut self, tb: &mut Tb) {
        while let Some(fields) = self.rel.pop_fields() {
            assert_eq!(self.held.take(), Some(fields[0][0]), "release of a line not held");
            assert_eq!(fields[1][0], 0, "dirty");
        }
        if let Some(fields) = self.acq.pop_fields() {
            assert!(self.held.is_none() && self.due.is_empty(), "second line");
            assert_eq!(fields[1][0], 0, "tag");
            // The sink saw the request in the cycle that ended: answering next cycle is a latency of one.
            let wait = tb.rng().range(self.latency.0, self.latency.1) - 1;
            self.due.push_back((tb.cycles() + wait, fields[0][0]));
        }
        if self.due.front().is_some_and(|(at, _)| *at <= tb.cycles()) {
            let (_, id) = self.due.pop_front().expect("just seen");
            let words = |path: &PathCtx| path.0.chunks(4).map(|c| u32::from_le_bytes(c.try_into().expect("4"))).collect::<Vec<_>>();
            match self.paths.get(&id) {
                Some(path) => {
                    self.held = Some(id);
                    self.line.push_fields(&[&words(path), &[0], &[0]]);
                }
                None => self.line.push_fields(&[&tb.rng().words(512), &[0], &[1]]),
            }
        }
    }

    pub fn idle(&self) -> bool {
        self.held.is_none() && self.due.is_empty()
    }
}

/// Total length of the packets for which [`carrying`] makes the checksum carry twice.
const TWICE: u16 = 0x800;

/// An IPv4 path whose header, at a total length of [`TWICE`], sums up to xffff: adding the carries carries again.
fn carrying(rng: &mut Rng) -> PathCtx {
    let mut path = random_path(rng);
    path.set_ipv6(false);
    path.set_vlan(false);
    path.set_sip(path.sip() & 0xffff_0000);
    let op = Op { pay_len: TWICE - 44, ..Op::default() };
    let bytes = header(&op, &path);
    let words = bytes[14..34].chunks(2).enumerate().filter(|(n, _)| *n != 5);
    let sum: u32 = words.map(|(_, w)| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    path.set_sip(path.sip() | u128::from(!(sum as u16)));
    path
}

/// log2 of the queue pairs in a function's share: of 16, four are special.
const LJ: usize = 2;

fn run<const W: usize, const K: usize>(name: &str, stall: u32, latency: (u64, u64), count: usize) -> u64 {
    let mut tb = Tb::new(name, HeaderBuilder::<W, K, LJ>::default());
    let mut stores = [0, 1].map(|port| Store::new(&mut tb, port, latency, stall));
    let sources = [tb.source("s_op$0", stall), tb.source("s_op$1", stall)];
    let done = tb.sink("m_ready", stall);
    for id in 0..14 {
        let mut path = if id < 4 { carrying(tb.rng()) } else { random_path(tb.rng()) };
        // One of the paths is there but may not be used; ids 14 and 15 are not there at all.
        path.set_valid(stall == 0 || id != 13);
        stores.iter_mut().for_each(|store| _ = store.paths.insert(id, path));
    }
    let layout = Fields::of::<HdrDone>();
    let rows = tb.sink_of("m_row", &["slot", "row", "data"], 0);
    let mut ram = vec![vec![0u8; BYTES]; 64];
    let mut waiting: HashMap<u8, (Op, Vec<u32>)> = HashMap::new();
    let mut sent = 0;
    let mut got = 0;
    let start = tb.cycles();
    while got < count {
        assert!(tb.cycles() - start < 600 * count as u64 + 1000, "stuck");
        let port = tb.rng().below(2) as usize;
        if sent < count && sources[port].pending() < 2 {
            let slot = tb.rng().below(64) as u8;
            if let Entry::Vacant(place) = waiting.entry(slot) {
                let mut op = random_op(tb.rng(), slot);
                if stall == 0 {
                    op.qpn %= 13;
                }
                if op.qpn < 4 && tb.rng().percent(50) {
                    op.pay_len = TWICE - 44 - op.ext() as u16;
                    op.pad = 0;
                }
                sources[port].push(message(&op));
                place.insert((op, Vec::new()));
                sent += 1;
            }
        }
        tb.cycle();
        while let Some(row) = rows.pop_fields() {
            let bytes: Vec<u8> = row[2].iter().flat_map(|w| w.to_le_bytes()).collect();
            let (slot, at) = (row[0][0] as u8, row[1][0]);
            ram[usize::from(slot)][at as usize * K..(at as usize + 1) * K].copy_from_slice(&bytes[..K]);
            waiting.get_mut(&slot).expect("a row for a slot without op").1.push(at);
        }
        stores.iter_mut().for_each(|store| store.step(&mut tb));
        while let Some(message) = done.pop() {
            let slot = layout.get(&message, "slot") as u8;
            let (op, mut written) = waiting.remove(&slot).expect("an answer without op");
            let path = stores[0].paths.get(&op.qpn).filter(|p| p.valid());
            assert_eq!(layout.get(&message, "abort") == 1, path.is_none(), "{op:?}");
            // A stalled last row may be written again.
            written.dedup();
            if let Some(path) = path {
                let expected = header(&op.as_heard(LJ as u32), path);
                assert_eq!(layout.get(&message, "len") as usize, expected.len());
                assert_eq!(layout.get(&message, "ipv6") == 1, path.ipv6());
                assert_eq!(layout.get(&message, "vlan") == 1, path.vlan());
                assert_eq!(ram[slot as usize][..expected.len()], expected, "{op:?} {path:?}");
                assert_eq!(written, (0..expected.len().div_ceil(K) as u32).collect::<Vec<_>>(), "rows");
            } else {
                assert!(written.is_empty(), "rows without a path");
            }
            got += 1;
        }
    }
    let cycles = tb.cycles() - start;
    tb.run(100);
    stores.iter_mut().for_each(|store| store.step(&mut tb));
    assert!(stores.iter().all(Store::idle) && waiting.is_empty() && done.is_empty());
    cycles
}

#[test]
fn headers_match_the_model_under_stalls() {
    for (stall, latency) in [(0, (2, 2)), (30, (2, 9)), (60, (2, 500))] {
        let count = if latency.1 > 100 { 60 } else { 300 };
        run::<64, 8>("hdr_builder64", stall, latency, count);
        run::<512, 64>("hdr_builder512", stall, latency, count);
    }
}

#[test]
fn headers_are_fast_when_the_store_is() {
    let cycles = run::<512, 64>("hdr_builder512", 0, (1, 1), 1000);
    println!("header: {cycles} cycles for 1000");
    assert!(cycles <= 2_500, "{cycles} cycles for 1000 headers");
}

/// An independent reader agrees with the model, checksum included.
#[test]
fn the_model_agrees_with_etherparse() {
    use etherparse::{NetHeaders, SlicedPacket, TransportSlice};
    let mut rng = Rng::new(7);
    for _ in 0..300 {
        let (path, mut op) = (random_path(&mut rng), random_op(&mut rng, 0));
        // Of a datagram the address is not the path's.
        op.deth = None;
        let mut frame = header(&op, &path);
        assert_eq!(frame.len(), header_len(path.ipv6(), path.vlan(), op.ext()));
        let l4 = op.pay_len as usize + op.pad as usize + 4;
        frame.extend(vec![0x5a; l4]);
        let packet = SlicedPacket::from_ethernet(&frame).expect("parses");
        assert_eq!(packet.vlan.is_some(), path.vlan());
        if let Some(etherparse::VlanSlice::SingleVlan(tag)) = &packet.vlan {
            assert_eq!(tag.vlan_identifier().value(), path.vlan_tci() & 0xfff);
        }
        let parsed = etherparse::PacketHeaders::from_ethernet_slice(&frame).expect("parses");
        match parsed.net {
            Some(NetHeaders::Ipv4(ip, _)) => {
                assert!(!path.ipv6() && ip.dont_fragment && !ip.more_fragments);
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                assert_eq!((u32::from_be_bytes(ip.source), ip.identification), (path.sip() as u32, 0));
                assert_eq!((ip.total_len as usize, ip.time_to_live), (20 + 8 + 12 + op.ext() + l4, path.hop_limit()));
            }
            Some(NetHeaders::Ipv6(ip, _)) => {
                assert!(path.ipv6());
                assert_eq!((u128::from_be_bytes(ip.destination), ip.traffic_class), (path.dip(), path.tclass()));
                assert_eq!((ip.payload_length as usize, ip.flow_label.value()), (20 + op.ext() + l4, path.flow_label()));
            }
            other => panic!("{other:?}"),
        }
        match packet.transport {
            Some(TransportSlice::Udp(udp)) => {
                assert_eq!((udp.destination_port(), udp.source_port(), udp.checksum()), (4791, path.udp_sport(), 0));
                assert_eq!(udp.length() as usize, 20 + op.ext() + l4);
            }
            other => panic!("{other:?}"),
        }
    }
}
