//! Connections made by the communication manager over the cards' own datagrams (IBTA volume 1, chapter 12).
#[path = "cm/functions.rs"]
mod functions;

use ferric_abi::codes::WrOpcode;
use ferric_driver::cm::{ip_service_id, Cm, CmPort, Event, Gsi, Local, RejectReason, Remote, Request};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu};
use ferric_driver::{Access, CompletionQueue, CqeStatus, MemoryRegion, Path, QpConfig, QueuePair, RecvRequest, SendRequest, Source};
use ferric_sim::fabric::Fate;
use ferric_sim::WorldConfig;
use ferric_tests::pair::Pair;
use std::net::IpAddr;

const PORT: u16 = 7174;

struct Bench {
    pair: Pair,
    ports: [CmPort; 2],
    cqs: [CompletionQueue; 2],
    regions: [MemoryRegion; 2],
    v6: bool,
}

impl Bench {
    fn new(v6: bool) -> Self {
        let pair = Pair::new(&WorldConfig::default()).unwrap();
        if let Ok(path) = std::env::var("FERRIC_PCAP") {
            pair.world().start_capture(std::path::Path::new(&path)).unwrap();
        }
        let known: Vec<(IpAddr, Mac)> = pair.hosts.iter().map(|h| (h.ip(v6), h.mac())).collect();
        let ports = [0, 1].map(|h| {
            let host = &pair.hosts[h];
            let source = Source { smac: host.mac(), sip: host.ip(v6), vlan: None, udp_sport: 0xc001, flow_label: 0 };
            let gsi = Gsi::open(&host.ctx, &host.pd, &host.eq, &source).unwrap();
            let known = known.clone();
            let neighbour = Box::new(move |ip| known.iter().find(|(k, _)| *k == ip).map(|(_, mac)| *mac));
            CmPort::new(&host.ctx, gsi, Cm::new(0x0200_00ff_fe00_0000 + h as u64, 77 * h as u64), neighbour)
        });
        let cqs = [0, 1].map(|h| pair.hosts[h].cq(64).unwrap());
        let regions = [0, 1].map(|h| pair.hosts[h].region(8192, Access::ALL).unwrap());
        Self { pair, ports, cqs, regions, v6 }
    }

    fn qp(&self, h: usize) -> QueuePair {
        let mut qp = self.pair.hosts[h].pd.create_qp(&QpConfig::default(), &self.cqs[h], &self.cqs[h]).unwrap();
        qp.to_init(Access::ALL).unwrap();
        qp
    }

    fn local(&self, qp: &QueuePair) -> Local {
        Local { qpn: qp.qpn(), psn: 0xff_fff0 + qp.qpn(), responder_resources: 8, initiator_depth: 8, rnr_retry: 7 }
    }

    fn request(&self, qp: &QueuePair) -> Request {
        Request {
            to: self.ports[0].address(self.pair.hosts[1].ip(self.v6)).unwrap(),
            from: self.pair.hosts[0].ip(self.v6),
            service_id: ip_service_id(PORT),
            local: self.local(qp),
            mtu: Mtu::M1024,
            retry_count: 7,
            ack_timeout: 14,
            ip_port: Some(40_000),
            private: b"knock".to_vec(),
        }
    }

    fn ready(&self, h: usize, qp: &mut QueuePair, remote: &Remote) {
        let (me, peer) = (&self.pair.hosts[h], &self.pair.hosts[1 - h]);
        let path = Path { dmac: peer.mac(), smac: me.mac(), dip: peer.ip(self.v6), sip: me.ip(self.v6), vlan: None, udp_sport: 0xc123, tclass: 0, hop_limit: 64, flow_label: 0 };
        qp.to_rtr(Access::ALL, &remote.rtr(&self.local(qp), path, 12)).unwrap();
        qp.to_rts(&remote.rts(&self.local(qp))).unwrap();
    }

    /// Runs both managers until host `h` has an event.
    fn event(&mut self, h: usize) -> Event {
        for _ in 0..200_000 {
            self.ports.iter_mut().for_each(|p| p.progress().unwrap());
            if let Some(e) = self.ports[h].cm.poll() {
                return e;
            }
            self.ports[0].relax();
        }
        panic!("no event at host {h}");
    }

    fn connect(&mut self) -> ([u32; 2], [QueuePair; 2]) {
        let (mut a, mut b) = (self.qp(0), self.qp(1));
        let request = self.request(&a);
        let now = self.ports[0].now();
        let ida = self.ports[0].cm.connect(now, &request).unwrap();
        let Event::Request { id: idb, remote, ip, private, .. } = self.event(1) else { panic!() };
        let addresses = ip.unwrap().addresses();
        assert_eq!((addresses, &private[..5]), (Some((self.pair.hosts[0].ip(self.v6), self.pair.hosts[1].ip(self.v6))), &b"knock"[..]));
        self.ready(1, &mut b, &remote);
        let (local, now) = (self.local(&b), self.ports[1].now());
        self.ports[1].cm.accept(now, idb, &local, b"come in").unwrap();
        let Event::Reply { id, remote, private } = self.event(0) else { panic!() };
        assert_eq!((id, remote.qpn, &private[..7]), (ida, b.qpn(), &b"come in"[..]));
        self.ready(0, &mut a, &remote);
        self.ports[0].cm.confirm(ida, b"").unwrap();
        assert_eq!(self.event(0), Event::Established { id: ida });
        assert_eq!(self.event(1), Event::Established { id: idb });
        ([ida, idb], [a, b])
    }

    /// A SEND each way over the connection.
    fn talk(&mut self, qps: &mut [QueuePair; 2]) {
        for (from, to) in [(0, 1), (1, 0)] {
            let bytes: Vec<u8> = (0..3000u32).map(|i| (i * 13 + from as u32) as u8).collect();
            self.regions[from].write(0, &bytes);
            let into = [sge(self.regions[to].addr() + 4096, 3000, self.regions[to].lkey())];
            qps[to].post_recv(&RecvRequest { wr_id: 1, sges: &into }).unwrap();
            let of = [sge(self.regions[from].addr(), 3000, self.regions[from].lkey())];
            let send = SendRequest { wr_id: 2, opcode: WrOpcode::Send, payload: Payload::Sges(&of), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
            qps[from].post_send(&send).unwrap();
            let got = self.pair.wait(&mut self.cqs[to], 400_000).unwrap();
            assert_eq!((got.status, got.byte_len), (CqeStatus::Success, 3000));
            assert_eq!(self.pair.wait(&mut self.cqs[from], 400_000).unwrap().status, CqeStatus::Success);
            assert!(self.regions[to].to_vec(4096, 3000) == bytes);
        }
    }

    fn disconnect(&mut self, h: usize, ids: [u32; 2]) {
        let now = self.ports[h].now();
        self.ports[h].cm.disconnect(now, ids[h], b"").unwrap();
        assert_eq!(self.event(h), Event::Disconnected { id: ids[h] });
        assert_eq!(self.event(1 - h), Event::Disconnected { id: ids[1 - h] });
    }
}

#[test]
fn connections_are_made_used_and_released() {
    for v6 in [false, true] {
        let mut b = Bench::new(v6);
        b.ports[1].cm.listen(ip_service_id(PORT));
        for h in 0..2 {
            let (ids, mut qps) = b.connect();
            b.talk(&mut qps);
            b.disconnect(h, ids);
        }
    }
}

#[test]
fn refusals_arrive() {
    let mut b = Bench::new(false);
    let qp = b.qp(0);
    for (listening, reason) in [(false, RejectReason::InvalidServiceId), (true, RejectReason::Consumer)] {
        let now = b.ports[0].now();
        let request = b.request(&qp);
        let id = b.ports[0].cm.connect(now, &request).unwrap();
        if listening {
            b.ports[1].cm.listen(ip_service_id(PORT));
            let Event::Request { id, .. } = b.event(1) else { panic!() };
            b.ports[1].cm.reject(id, RejectReason::Consumer, b"closed").unwrap();
        }
        let Event::Rejected { id: rejected, reason: why, .. } = b.event(0) else { panic!() };
        assert_eq!((rejected, why), (id, reason));
    }
}

#[test]
fn lost_messages_are_sent_again() {
    let mut b = Bench::new(false);
    b.ports[1].cm.listen(ip_service_id(PORT));
    // The first frame each way: REQ and REP.
    for link in 0..2 {
        let mut frames = 0;
        b.pair.world().links[link].set_hook(Some(Box::new(move |_, _| {
            frames += 1;
            (frames == 1).then_some(Fate::Dropped)
        })));
    }
    let (ids, mut qps) = b.connect();
    b.talk(&mut qps);
    b.disconnect(0, ids);
    let world = b.pair.world();
    assert_eq!([0, 1].map(|l| world.links[l].counters.dropped), [1, 1]);
}
