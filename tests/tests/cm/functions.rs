//! A connection manager on each function: of one card, and of two. Nobody gets what is another's, and a new life nothing of the former one's.
use super::PORT;
use ferric_abi::codes::AdminStatus;
use ferric_abi::special;
use ferric_driver::cm::{ip_service_id, Cm, CmPort, Event, Gsi, Local, RejectReason, Request};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu, QpType};
use ferric_driver::ud::{DatagramRequest, GSI_QKEY, GSI_QPN, QKEY_OWN};
use ferric_driver::{Access, Address, AddressHandle, CqeStatus, Error, QpConfig, Source};
use ferric_hdl::card::counters;
use ferric_sim::{Body, CardConfig, WorldConfig};
use ferric_tests::pair::{Host, Pair};
use std::net::IpAddr;

/// Functions of either card that are in use, of four.
const FUNCTIONS: u8 = 3;
const MAD: usize = 256;

fn source(host: &Host, v6: bool) -> Source {
    Source { smac: host.mac(), sip: host.ip(v6), vlan: None, udp_sport: 0xc001, flow_label: 0 }
}

/// The addresses are the function's own from now on.
fn settle(host: &Host) {
    for (number, v6) in [false, true].into_iter().enumerate() {
        host.ctx.set_address(number as u32, Address { ip: host.ip(v6), mac: host.mac(), vlan: None }).unwrap();
    }
}

/// Functions of two cards: first all of card 0.
struct Bench {
    pair: Pair,
    ports: Vec<Option<CmPort>>,
    v6: bool,
}

impl Bench {
    fn new(bodies: [Body; 2], v6: bool) -> Self {
        let cards = bodies.map(|body| CardConfig { body, width: 64, ..Default::default() }).to_vec();
        let pair = Pair::with_functions(&WorldConfig { cards, ..Default::default() }, FUNCTIONS).unwrap();
        let mut b = Self { pair, ports: (0..2 * FUNCTIONS).map(|_| None).collect(), v6 };
        for n in 0..b.ports.len() {
            settle(b.host(n));
            b.open(n);
        }
        b
    }

    fn host(&self, n: usize) -> &Host {
        let functions = usize::from(FUNCTIONS);
        &self.pair.of(n % functions)[n / functions]
    }

    fn function(n: usize) -> u32 {
        n as u32 % u32::from(FUNCTIONS)
    }

    /// A connection manager on that function, which listens.
    fn open(&mut self, n: usize) {
        let known: Vec<(IpAddr, Mac)> = (0..self.ports.len()).map(|n| (self.host(n).ip(self.v6), self.host(n).mac())).collect();
        let host = self.host(n);
        let gsi = Gsi::open(&host.ctx, &host.pd, &host.eq, &source(host, self.v6)).unwrap();
        let neighbour = Box::new(move |ip| known.iter().find(|(k, _)| *k == ip).map(|(_, mac)| *mac));
        let mut port = CmPort::new(&host.ctx, gsi, Cm::new(0x0200_00ff_fe00_0000 + n as u64, 77 * n as u64), neighbour);
        port.cm.listen(ip_service_id(PORT));
        self.ports[n] = Some(port);
    }

    fn port(&mut self, n: usize) -> &mut CmPort {
        self.ports[n].as_mut().unwrap()
    }

    /// The next event, and whose it is. Whatever `rounds` are enough for.
    fn next(&mut self, rounds: u32) -> Option<(usize, Event)> {
        for _ in 0..rounds {
            self.ports.iter_mut().flatten().for_each(|p| p.progress().unwrap());
            if let Some(event) = self.ports.iter_mut().enumerate().find_map(|(n, p)| p.as_mut()?.cm.poll().map(|e| (n, e))) {
                return Some(event);
            }
            self.ports.iter().flatten().next().unwrap().relax();
        }
        None
    }

    fn event(&mut self, n: usize) -> Event {
        let (whose, event) = self.next(200_000).unwrap_or_else(|| panic!("no event at {n}"));
        assert_eq!(whose, n, "{event:?}");
        event
    }

    fn local(n: usize) -> Local {
        Local { qpn: 0x100 + n as u32, psn: 7, responder_resources: 1, initiator_depth: 1, rnr_retry: 7 }
    }

    fn ask(&mut self, from: usize, to: usize) -> u32 {
        let (ip, own, v) = (self.host(to).ip(self.v6), self.host(from).ip(self.v6), self.port(from).now());
        let request = Request {
            to: self.port(from).address(ip).unwrap(),
            from: own,
            service_id: ip_service_id(PORT),
            local: Self::local(from),
            mtu: Mtu::M1024,
            retry_count: 7,
            ack_timeout: 14,
            ip_port: Some(40_000),
            private: vec![from as u8, to as u8],
        };
        self.port(from).cm.connect(v, &request).unwrap()
    }

    fn connect(&mut self, from: usize, to: usize) {
        let asked = self.ask(from, to);
        let Event::Request { id, remote, ip, private, .. } = self.event(to) else { panic!() };
        assert_eq!((remote.qpn, &private[..2]), (Self::local(from).qpn, &[from as u8, to as u8][..]));
        assert_eq!(ip.unwrap().addresses(), Some((self.host(from).ip(self.v6), self.host(to).ip(self.v6))));
        let now = self.port(to).now();
        self.port(to).cm.accept(now, id, &Self::local(to), b"come in").unwrap();
        let Event::Reply { id: replied, remote, .. } = self.event(from) else { panic!() };
        assert_eq!((replied, remote.qpn), (asked, Self::local(to).qpn));
        self.port(from).cm.confirm(asked, b"").unwrap();
        assert_eq!(self.event(from), Event::Established { id: asked });
        assert_eq!(self.event(to), Event::Established { id });
        let now = self.port(to).now();
        self.port(to).cm.disconnect(now, id, b"").unwrap();
        let mut ends = [self.next(200_000).unwrap(), self.next(200_000).unwrap()];
        ends.sort_by_key(|(n, _)| *n != from);
        assert_eq!(ends, [(from, Event::Disconnected { id: asked }), (to, Event::Disconnected { id })]);
    }

    /// What card `side` has counted, of function `f` or of all.
    fn count(&self, side: usize, f: Option<u32>, name: &str) -> u64 {
        let (physical, index) = (&self.pair.hosts[side].ctx, counters::index(name).expect(name) as u32);
        match f {
            Some(f) => physical.counters_of(f, index, 1).unwrap()[0],
            None => physical.counters(index, 1).unwrap()[0],
        }
    }

    /// Requests that have come to the queue pairs of each function of card `side`, what was refused and what found no queue pair.
    fn come(&self, side: usize) -> ([u64; FUNCTIONS as usize], [u64; 2]) {
        (std::array::from_fn(|f| self.count(side, Some(f as u32), "resp.rx_requests")), ["rx.rx_stranger", "resp.drop_no_qp"].map(|name| self.count(side, None, name)))
    }

    /// The request of `from` reaches nobody: it is refused or finds no queue pair, and what functions have got is as before, but that function 0 has what nobody has.
    fn reaches_nobody(&mut self, from: usize, to: usize) {
        let side = to / usize::from(FUNCTIONS);
        let before = self.come(side);
        let asked = self.ask(from, to);
        assert_eq!(self.next(3_000).filter(|(_, e)| !matches!(e, Event::Rejected { reason: RejectReason::Timeout, .. })), None);
        let after = self.come(side);
        let lost = [0, 1].map(|n| after.1[n] - before.1[n]);
        assert!(lost[0] + lost[1] > 0, "{before:?}, {after:?}");
        assert_eq!(after.0[1..], before.0[1..]);
        // Counted there, not received.
        assert_eq!(after.0[0] - before.0[0], lost[1]);
        let _ = self.port(from).cm.reject(asked, RejectReason::Other(3), &[]);
    }
}

fn everybody_connects_to_everybody(bodies: [Body; 2], v6: bool) {
    let mut b = Bench::new(bodies, v6);
    let all = b.ports.len();
    for from in 0..all {
        for to in (0..all).filter(|to| *to != from) {
            // What a card sends to itself stays on the card of a twin; gateware sends it to the wire.
            let one_card = from / usize::from(FUNCTIONS) == to / usize::from(FUNCTIONS);
            if !one_card || bodies[from / usize::from(FUNCTIONS)] == Body::Twin {
                b.connect(from, to);
            }
        }
    }
    for side in 0..2 {
        assert_eq!([b.count(side, None, "rx.rx_stranger"), b.count(side, None, "resp.drop_no_qp"), b.count(side, None, "resp.drop_bad_qkey")], [0; 3]);
    }
}

#[test]
fn functions_of_two_twins_connect() {
    everybody_connects_to_everybody([Body::Twin; 2], false);
    everybody_connects_to_everybody([Body::Twin; 2], true);
}

#[test]
fn functions_of_gateware_connect() {
    everybody_connects_to_everybody([Body::Gateware; 2], true);
    everybody_connects_to_everybody([Body::Twin, Body::Gateware], false);
}

/// A function that has none hears nothing, and the others nothing of what is for it: before, after it has been reset, and when its new life has another address.
fn lives(bodies: [Body; 2]) {
    let mut b = Bench::new(bodies, false);
    let (asker, last) = (0, b.ports.len() - 1);
    b.connect(asker, last);
    // The manager goes; the function and its addresses are still there.
    b.ports[last] = None;
    b.reaches_nobody(asker, last);
    b.open(last);
    b.connect(asker, last);
    // It dies and comes back, in the midst of a request, as nobody in particular.
    b.ask(asker, last);
    b.port(asker).progress().unwrap();
    std::mem::forget(b.ports[last].take());
    b.pair.reopen(1, FUNCTIONS - 1).unwrap();
    assert_eq!(b.next(2_000).filter(|(n, _)| *n != asker), None);
    b.reaches_nobody(asker, last);
    // With a manager of another address it hears nothing of what is sent to the former one.
    let host = b.host(last);
    let other = Address { ip: "10.0.77.7".parse().unwrap(), mac: Mac([2, 0, 0, 0, 77, 7]), vlan: None };
    host.ctx.set_address(0, other).unwrap();
    let gsi = Gsi::open(&host.ctx, &host.pd, &host.eq, &Source { smac: other.mac, sip: other.ip, ..source(host, false) }).unwrap();
    let mut port = CmPort::new(&host.ctx, gsi, Cm::new(1, 1), Box::new(|_| None));
    port.cm.listen(ip_service_id(PORT));
    b.ports[last] = Some(port);
    b.reaches_nobody(asker, last);
    // Its own again, after a reset of its own.
    std::mem::forget(b.ports[last].take());
    b.pair.reopen(1, FUNCTIONS - 1).unwrap();
    settle(b.host(last));
    b.open(last);
    b.connect(asker, last);
    b.connect(last, asker);
}

#[test]
fn a_new_life_of_a_function_hears_nothing_of_the_former_one_on_twins() {
    lives([Body::Twin; 2]);
}

#[test]
fn a_new_life_of_a_function_hears_nothing_of_the_former_one_on_gateware() {
    lives([Body::Gateware; 2]);
}

/// Neither by number nor by address does a function pass for another's queue pair 1.
fn forgeries(bodies: [Body; 2]) {
    let mut b = Bench::new(bodies, false);
    let log_share = b.host(0).ctx.capabilities().qps.ilog2() - 2;
    let refused = |result: Result<Gsi, Error>| matches!(result, Err(Error::Admin { status: AdminStatus::Denied, .. }));
    b.ports[1] = None;
    let (one, two) = (b.host(1), b.host(2));
    // With the addresses of a neighbour, all or one of them, or with one that is nobody's.
    for forged in [source(two, false), Source { sip: two.ip(false), ..source(one, false) }, Source { smac: two.mac(), ..source(one, false) }, Source { vlan: Some(3), ..source(one, false) }] {
        assert!(refused(Gsi::open(&one.ctx, &one.pd, &one.eq, &forged)), "{forged:?}");
    }
    // Its own is taken again, and cannot be given away meanwhile.
    let gsi = Gsi::open(&one.ctx, &one.pd, &one.eq, &source(one, true)).unwrap();
    let again = Address { ip: "fd00::99".parse().unwrap(), mac: one.mac(), vlan: None };
    assert!(matches!(one.ctx.set_address(1, again), Err(Error::Admin { status: AdminStatus::InUse, .. })));
    assert_eq!(b.host(2).ctx.set_address(3, Address { ip: one.ip(true), mac: two.mac(), vlan: None }).map_err(|e| matches!(e, Error::Admin { status: AdminStatus::InUse, .. })), Err(true));
    drop(gsi);
    b.host(1).ctx.set_address(1, again).unwrap();
    // An ordinary queue pair of function 1, with the Q_Key of management, sends to the neighbours on the other card by their queue pairs' numbers on the card, and to 1.
    let (one, far) = (b.host(1), [3, 4, 5].map(|n| (b.host(n).mac(), b.host(n).ip(false))));
    let mut cq = one.cq(16).unwrap();
    let mut qp = one.pd.create_qp(&QpConfig { qp_type: QpType::Ud, ..Default::default() }, &cq, &cq).unwrap();
    qp.to_init_ud(GSI_QKEY).unwrap();
    qp.to_rtr_ud(Mtu::M1024, &source(one, false)).unwrap();
    qp.to_rts_ud(0).unwrap();
    let memory = one.region(MAD, Access::ALL).unwrap();
    let mut send = |b: &Bench, to: usize, dest_qpn: u32| {
        let (to, from) = (AddressHandle::new(far[to].0, far[to].1), [sge(memory.addr(), MAD as u32, memory.lkey())]);
        qp.post_send_ud(&DatagramRequest { wr_id: 1, payload: Payload::Sges(&from), to: &to, dest_qpn, qkey: QKEY_OWN, imm: None, signaled: true, solicited: false }).unwrap();
        assert_eq!(b.pair.wait(&mut cq, 400_000).unwrap().status, CqeStatus::Success);
        b.pair.world().run(4_000);
    };
    for f in 0..3u32 {
        let number = special::special_queue_pair(f, log_share);
        let before = b.come(1);
        for to in 0..3 {
            // Where it is number 1, that is the name that it has.
            if number != GSI_QPN {
                send(&b, to, number);
            }
        }
        let after = b.come(1);
        assert_eq!((after.0, after.1[0] - before.1[0]), (before.0, if number == GSI_QPN { 0 } else { 3 }), "number {number}");
        send(&b, f as usize, GSI_QPN);
        let got = b.come(1);
        assert_eq!(std::array::from_fn::<u64, 3, _>(|n| got.0[n] - after.0[n]), std::array::from_fn(|n| u64::from(n as u32 == f)), "to function {f}");
    }
    // It was received, but did not come from anybody's queue pair 1.
    assert_eq!(b.next(1_000), None);
    b.connect(0, 5);
}

#[test]
fn nobody_passes_for_another_functions_manager_on_twins() {
    forgeries([Body::Twin; 2]);
}

#[test]
fn nobody_passes_for_another_functions_manager_on_gateware() {
    forgeries([Body::Gateware; 2]);
}

/// What a function is, `Bench` says.
#[test]
fn numbers_of_managers_are_one_of_each_share() {
    let b = Bench::new([Body::Twin; 2], false);
    for n in 0..b.ports.len() {
        let ctx = &b.host(n).ctx;
        assert_eq!((ctx.capabilities().function, ctx.capabilities().functions), (Bench::function(n), 4));
    }
    // No ordinary queue pair gets such a number, on function 0 neither.
    let (host, cq) = (b.host(0), b.host(0).cq(16).unwrap());
    let qps: Vec<u32> = (0..200).map(|_| host.pd.create_qp(&QpConfig::default(), &cq, &cq).unwrap()).map(|qp| qp.qpn()).collect();
    assert!(qps.iter().all(|qpn| !special::is_special(*qpn, 6)), "{qps:?}");
}
