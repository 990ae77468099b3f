//! Frames that are not RoCE: which set of rules they meet, what actions count of them, and noise.
use super::*;
use etherparse::{ip_number, IpHeaders, Ipv4Header, NetSlice, PacketBuilder, SlicedPacket};
use ferric_abi::switch::tag_op;

/// A promiscuous raw queue pair of function 0 on card 1.
pub struct Raw {
    cq: CompletionQueue,
    qp: QueuePair,
    memory: MemoryRegion,
}

impl Raw {
    pub fn new(pair: &Pair) -> Self {
        let host = &pair.hosts[1];
        let cq = host.cq(2 * BUFFERS).unwrap();
        let memory = host.region(BUFFERS * FRAME, Access::LOCAL_WRITE).unwrap();
        let mut qp = host.pd.create_qp(&QpConfig { qp_type: QpType::Raw, max_recv: BUFFERS, ..Default::default() }, &cq, &cq).unwrap();
        qp.to_init(Access::ALL).unwrap();
        qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None }).unwrap();
        qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 }).unwrap();
        (0..BUFFERS as u64).for_each(|n| post(&mut qp, &memory, n));
        host.ctx.set_promiscuous_queue(&qp).unwrap();
        Raw { cq, qp, memory }
    }

    /// Each frame that has come.
    fn frames(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.cq.poll())
            .map(|c| {
                assert_eq!((c.status, c.byte_len as usize), (CqeStatus::Success, FRAME));
                let frame = self.memory.to_vec(c.wr_id as usize * FRAME, FRAME);
                post(&mut self.qp, &self.memory, c.wr_id);
                frame
            })
            .collect()
    }

    /// Sender and number of each.
    pub fn heard(&mut self) -> Vec<(u8, u16)> {
        let told = |frame: Vec<u8>| {
            let number = u16::from_be_bytes([frame[14], frame[15]]);
            assert_eq!(frame, numbered(frame[11], number));
            (frame[11], number)
        };
        self.frames().into_iter().map(told).collect()
    }
}

/// Buffer `n` takes a frame.
fn post(qp: &mut QueuePair, memory: &MemoryRegion, n: u64) {
    qp.post_recv(&RecvRequest { wr_id: n, sges: &[sge(memory.addr() + n * FRAME as u64, FRAME as u32, memory.lkey())] }).unwrap();
}

/// A frame that is for nobody, of a sender and with a number.
pub fn numbered(sender: u8, number: u16) -> Vec<u8> {
    let mut frame = [&[2u8, 0, 0, 0, 99, 99][..], &[2, 0, 0, 0, 88, sender], &TYPE.to_be_bytes(), &number.to_be_bytes()].concat();
    frame.resize(FRAME, 0x5a);
    frame
}

pub fn sender(n: u8) -> FlowKey {
    FlowKey::default().with_ethertype(TYPE).with_smac(0x0200_0000_5800 | u64::from(n))
}

/// Frames of two senders in turn, and in the middle of them the other generation: each is wholly of one, and none is lost.
#[test]
fn all_rules_at_once() {
    let mut b = Bench::new(64);
    let mut raw = Raw::new(&b.pair);
    b.actions();
    for (generation, [passes, goes]) in [(0, [1, 2]), (1, [2, 1])] {
        b.insert(generation, OTHERS, &sender(passes), 3);
        b.insert(generation, OTHERS, &sender(goes), 2);
    }
    b.decide(0, true);
    for round in 0..6 {
        let (old, new) = (1 + round % 2, 2 - round % 2);
        const COUNT: u16 = 60;
        {
            let mut world = b.pair.world();
            (0..COUNT).for_each(|n| [old, new].into_iter().for_each(|from| world.cards[1].receive(numbered(from, n))));
        }
        b.decide(u8::from(round % 2 == 0), true);
        b.settle();
        let heard = raw.heard();
        let until = heard.iter().take_while(|(from, _)| *from == old).count();
        let first = heard.get(until).map_or(COUNT, |(_, n)| *n);
        let want: Vec<_> = (0..until as u16).map(|n| (old, n)).chain((first..COUNT).map(|n| (new, n))).collect();
        assert_eq!(heard, want, "round {round}");
        // The change fell between two frames that came one behind the other.
        assert!(until as u16 == first || until as u16 == first + 1, "{until} {first}");
        assert!(until > 0 && first < COUNT, "the change fell into the frames: {until} {first}");
    }
    moved(&b.counts(), &["software", "acl"]);
}

/// What actions count: frames that pass, that are dropped and that software gets, exactly, and their bytes; when that was; and what stands in the exact table.
fn flows_are_counted(width: usize) {
    let mut b = Bench::new(width);
    b.actions();
    let ctx = b.pair.hosts[1].ctx.clone();
    // Senders 1 to 3: to software, dropped, and to software without counting.
    let counting = |kind: u8, count| Action::default().with_kind(kind).with_count(count);
    for (line, action) in [(40, counting(destination::EXCEPTION, true)), (41, counting(ACL, true)), (42, counting(destination::EXCEPTION, false))] {
        b.tables.set_action(&ctx, line, Some(&action)).unwrap();
        b.insert(0, OTHERS, &sender(line as u8 - 39), line);
    }
    b.decide(0, true);
    let send = |b: &Bench, counts: [u16; 3]| {
        let mut world = b.pair.world();
        for (from, count) in (1..).zip(counts) {
            (0..count).for_each(|n| world.cards[1].receive(numbered(from, n)));
        }
        drop(world);
        b.settle();
    };
    let before = ctx.flow_tick().unwrap();
    send(&b, [50, 30, 20]);
    let used = |b: &Bench, line| b.tables.used(&ctx, line).map(|u| (u.line(), u.packets(), u.bytes())).unwrap();
    let all = |counts: [u64; 3]| [40, 41, 42].map(|line| (line, counts[usize::from(line) - 40], counts[usize::from(line) - 40] * FRAME as u64));
    assert_eq!([40, 41, 42].map(|line| used(&b, line)), all([50, 30, 0]));
    let last = b.tables.used(&ctx, 40).unwrap().last_use();
    assert!((before..=ctx.flow_tick().unwrap()).contains(&last), "{before} {last}");
    // They begin anew when they are told to, one by one.
    assert_eq!(b.tables.forget(&ctx, 41).unwrap().packets(), 30);
    // A tick later.
    b.pair.world().run(1 << csr::FLOW_TICK);
    send(&b, [3, 4, 5]);
    assert_eq!([40, 41, 42].map(|line| used(&b, line)), all([53, 4, 0]));
    assert!(b.tables.used(&ctx, 40).unwrap().last_use() > last);
    // What stands in the exact table is what was put there, and no more.
    let places = Table::<{ table::KEY_BITS }, 64>::new(b.tables.actions().ilog2());
    let stands = |b: &Bench, n| -> Vec<_> {
        let lines = places.candidates(&sender(n).0).map(|p| b.tables.standing(&b.pair.hosts[1].ctx, table::EXACT, p.way, p.line.into()).unwrap());
        lines.into_iter().filter(|line| line.opcode() == table::WRITE).collect()
    };
    (1..4).for_each(|n| assert!(stands(&b, n).iter().any(|line| *line == table::exact(line.way(), line.line(), Some((&sender(n), u16::from(n) + 39, 0))))));
    // A driver that comes later finds nothing of it.
    b.reopen(1, 0);
    b.tables = FlowTables::open(&b.pair.hosts[1].ctx).unwrap();
    assert_eq!(b.tables.used(&b.pair.hosts[1].ctx, 40).unwrap().packets(), 0);
    (1..4).for_each(|n| assert_eq!(stands(&b, n), []));
}

#[test]
fn flows_are_counted_w64() {
    flows_are_counted(64);
}

#[test]
fn flows_are_counted_w512() {
    flows_are_counted(512);
}

/// A frame that is routed: other MAC addresses, one less to live, another DSCP, another VLAN; one flow after the other, and another pair of addresses in the same lines.
#[test]
fn frames_are_changed() {
    for width in [64, 512] {
        let mut b = Bench::new(width);
        let mut raw = Raw::new(&b.pair);
        let ctx = b.pair.hosts[1].ctx.clone();
        let station = FlowKey::default().with_dmac(u64::MAX >> 16);
        b.tables.set_mask(&ctx, 0, 0, V4, Some(&station)).unwrap();
        let routed = |from: u8, vlan: u16, dscp: u8, ttl: u8| {
            let to = [2, 0, 0, 0, 77, from];
            let ip = PacketBuilder::ethernet2([2, 0, 0, 0, 66, from], to)
                .single_vlan(vlan.try_into().unwrap())
                .ip(IpHeaders::Ipv4(Ipv4Header { dscp: dscp.try_into().unwrap(), ..Ipv4Header::new(0, ttl, ip_number::UDP, [10, 0, 0, from], [10, 0, 1, 1]).unwrap() }, Default::default()));
            let mut frame = Vec::new();
            ip.udp(500, 600).write(&mut frame, &[from; FRAME - 18 - 28]).unwrap();
            (frame, FlowKey::default().with_dmac(Mac(to).number()))
        };
        for round in 0..3u8 {
            let mut want = Vec::new();
            for from in 0..4 {
                let (frame, key) = routed(from, 7, 10, 64);
                // What somebody else makes of the same packet with the other values.
                let (mut changed, _) = routed(from, 900, 46, 63);
                let macs = [[2, 0, 0, 0, round, 40 + from], [2, 0, 0, 0, round, 50]].map(Mac);
                changed[..12].copy_from_slice(macs.map(|mac| mac.0).as_flattened());
                let line = b.tables.rewrite(&ctx, macs).unwrap();
                assert_eq!(line, u16::from(from) + 1, "the lines of the round before lead nowhere");
                let action = Action::default().with_kind(destination::PORT).with_number(PORT_0).with_rewrite(line).with_dec_ttl(true).with_write_dscp(true).with_dscp(46);
                let number = 20 + u16::from(from);
                b.tables.set_action(&ctx, number, Some(&action.with_tag_op(tag_op::SET).with_tag(900))).unwrap();
                b.tables.insert(&ctx, 0, [0, V4], &key, number).unwrap();
                want.push((frame, changed));
            }
            b.decide(0, true);
            {
                let mut world = b.pair.world();
                want.iter().for_each(|(frame, _)| world.cards[1].receive(frame.clone()));
            }
            b.settle();
            let heard = raw.frames();
            assert_eq!(heard, want.into_iter().map(|(_, changed)| changed).collect::<Vec<_>>());
            heard.iter().for_each(|frame| assert!(checksum_is_right(frame)));
            (20..24).for_each(|number| b.tables.set_action(&ctx, number, None).unwrap());
        }
        // A line that nobody has written, and one that there is not.
        for line in [60, 600] {
            let action = Action::default().with_kind(destination::PORT).with_number(PORT_0).with_rewrite(line);
            assert!(b.tables.set_action(&ctx, 30, Some(&action)).is_err());
        }
    }
}

/// As etherparse computes it.
fn checksum_is_right(frame: &[u8]) -> bool {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("IPv4 is expected") };
    let header = ip.header().to_header();
    header.header_checksum == header.calc_header_checksum()
}

/// Frames of every length and of noise between RoCE packets: those that software gets are whole, RoCE loses nothing, and every frame counts once.
#[test]
fn noise_in_between() {
    for width in [64, 512] {
        let mut b = Bench::new(width);
        b.actions();
        b.packets_of(0, 0, 0, 0);
        b.decide(0, true);
        let before = b.counter("rx.rx_frames");
        const COUNT: usize = 300;
        {
            let mut world = b.pair.world();
            for n in 0..COUNT {
                // Short and long, an IPv4 header that says anything, no type at all.
                let mut frame: Vec<u8> = (0..[60, 64, 61, 14, 65, 1514, 127, 128, 129, 9000][n % 10]).map(|i| (i * 7 + n * 13) as u8).collect();
                if n % 3 == 0 {
                    frame[12..14].copy_from_slice(&IPV4.to_be_bytes());
                }
                world.cards[1].receive(frame);
            }
        }
        (0..3).for_each(|_| b.heard(0));
        b.settle();
        let c = b.counts();
        assert_eq!(c.software() + c.miss() + c.unable(), COUNT as u64, "{c:?}");
        assert!(c.software() > 0 && c.miss() > 0);
        assert_eq!(b.counter("rx.rx_frames") - before, c.port() + c.software(), "what went on has come behind");
    }
}
