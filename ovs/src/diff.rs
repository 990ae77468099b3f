//! One table and its frames in the model and in Open vSwitch.
use crate::frames::{damage, Spec};
use crate::oracle::{ports, Oracle, Sent, FUNCTIONS, GENEVE, NARROW, UNDERLAY, UPLINK, VXLAN};
use crate::server::Error;
use crate::tables;
use crate::tally::{outer_udp, Tally};
use crate::tunnels::address6;
use ferric_abi::codes::SwitchCause;
use ferric_abi::wire::ethertype;
use ferric_model::switch::edit::set_tos;
use ferric_model::switch::flow::{parse, Field, Flow, Step};
use ferric_model::switch::install::{Room, TunnelPort};
use ferric_model::switch::layers::{parse as parse_frame, Upper};
use ferric_model::switch::tables::{Endpoint, EndpointKind, Port, PortKind};
use ferric_model::switch::{Outcome, Switch};
use rand::seq::SliceRandom;
use rand::Rng;

/// The tunnels' ports in the flow language.
pub const TUNNELS: [TunnelPort; 2] = [TunnelPort { number: VXLAN, endpoint: 0 }, TunnelPort { number: GENEVE, endpoint: 1 }];

/// A frame and the port that it comes from.
pub type Arrival = (u8, Vec<u8>);

/// A switch with the oracle's ports and endpoints, and no flows.
pub fn empty_switch() -> Switch {
    let mut switch = Switch::default();
    for port in ports() {
        let kind = if FUNCTIONS.contains(&port) { PortKind::Function } else { PortKind::Uplink };
        let mtu = if port == NARROW.0 { NARROW.1 } else { 1500 };
        switch.tables.ports.insert(port, Port { kind, mtu, class: u8::from(kind == PortKind::Function), ..Default::default() });
    }
    let local = crate::oracle::LOCAL_IP;
    let kinds = [(EndpointKind::Vxlan, 4789), (EndpointKind::Geneve, 6081)];
    for (v6, (kind, udp_port)) in kinds.map(|k| (false, k)).into_iter().chain(kinds.map(|k| (true, k))) {
        let ip = if v6 { address6(local) } else { u32::from_be_bytes(local).into() };
        let endpoint = Endpoint { v6, ip, udp_port, kind, lenient: false, zero_csum6: true, any_remote: false, unknown_to_software: false, option: None };
        switch.tables.endpoints.push(endpoint);
    }
    switch
}

/// The ports' names in Open vSwitch's text.
pub fn names() -> parse::Ports {
    let tunnels = [("vxlan_sys_4789".to_owned(), VXLAN), ("genev_sys_6081".to_owned(), GENEVE)];
    ports().map(|p| (format!("p{p}"), p.into())).chain(tunnels).collect()
}

/// What was different.
#[derive(Debug)]
pub struct Difference {
    /// The table, one flow a line.
    pub table: Vec<String>,
    /// The frame.
    pub arrival: Option<Arrival>,
    /// What each of them did.
    pub model: String,
    pub ovs: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "table:")?;
        for line in &self.table {
            writeln!(f, "  {line}")?;
        }
        if let Some((port, frame)) = &self.arrival {
            writeln!(f, "frame from port {port}: {}", hex(frame))?;
        }
        writeln!(f, "model: {}\novs:   {}", self.model, self.ovs)
    }
}

/// Bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What the model sends, port by port.
pub fn sent(outcome: &Outcome) -> Sent {
    let mut sent = Sent::new();
    for s in &outcome.sent {
        sent.entry(s.port).or_default().push(s.frame.clone());
    }
    sent
}

/// Checks the outer source port's range and takes it out.
fn without_entropy(mut sent: Sent, range: std::ops::RangeInclusive<u16>) -> Sent {
    for frame in sent.values_mut().flatten() {
        if let Some(at) = outer_udp(frame) {
            let port = u16::from_be_bytes([frame[at], frame[at + 1]]);
            if range.contains(&port) {
                frame[at..at + 2].fill(0);
            }
        }
    }
    sent
}

/// Inner packets with CE: Open vSwitch (as Linux) makes ECT(0) of it outside, RFC 3168's full functionality; the model copies it, RFC 6040's normal mode. Their outer header gets
/// the model's form.
fn with_ce(mut sent: Sent) -> Sent {
    for frame in sent.values_mut().flatten() {
        let Some(at) = outer_udp(frame).filter(|_| frame[12] == 8) else {
            continue;
        };
        let geneve = frame[at + 2..at + 4] == 6081u16.to_be_bytes();
        let options = if geneve { frame.get(at + 8).map_or(0, |b| usize::from(b & 0x3f) * 4) } else { 0 };
        let inner = frame.get(at + 16 + options..).and_then(|inner| parse_frame(inner).ok());
        let outer = parse_frame(frame).ok();
        if let (Some(inner), Some(Upper::Ip(ip))) = (inner.and_then(|l| l.ip().copied()), outer.map(|l| l.upper)) {
            if inner.tos & 3 == 3 && ip.tos & 3 == 2 {
                set_tos(frame, 14, &ip, ip.tos | 3);
            }
        }
    }
    sent
}

/// Source ports that Open vSwitch and the model choose.
const OVS_PORTS: std::ops::RangeInclusive<u16> = 32768..=61000;
const OUR_PORTS: std::ops::RangeInclusive<u16> = 0xc000..=0xffff;

/// Text of what left.
pub fn describe(sent: &Sent) -> String {
    let all: Vec<String> = sent.iter().flat_map(|(port, frames)| frames.iter().map(move |f| format!("port {port}: {}", hex(f)))).collect();
    if all.is_empty() {
        "nothing".into()
    } else {
        all.join("; ")
    }
}

/// Hands one frame to both; `None`: no difference.
pub fn compare(switch: &mut Switch, oracle: &mut Oracle, arrival: &Arrival, tally: &mut Tally) -> Result<Option<(String, String)>, Error> {
    let (port, frame) = arrival;
    let outcome = switch.receive(*port, frame);
    let wanted = sent(&outcome);
    let got = oracle.receive(*port, frame, &wanted)?;
    tally.add(&outcome);
    if outcome.software.iter().any(|s| s.cause == SwitchCause::Deep) {
        tally.excused += 1;
        return Ok(None);
    }
    tally.compared += 1;
    let (ours, theirs) = (without_entropy(wanted.clone(), OUR_PORTS), with_ce(without_entropy(got.clone(), OVS_PORTS)));
    Ok((ours != theirs).then(|| (format!("{} (drops {:?}, software {:?})", describe(&wanted), outcome.dropped, outcome.software.iter().map(|s| s.cause).collect::<Vec<_>>()), describe(&got))))
}

/// A table of datapath flows in both.
pub struct FlowTable(pub Vec<Flow>);

impl FlowTable {
    /// A table that the model takes whole.
    pub fn random(rng: &mut impl Rng) -> Self {
        let mut switch = empty_switch();
        let mut flows = tables::table(rng);
        flows.retain(|flow| switch.install(flow, Room::Any, &TUNNELS).is_ok());
        Self(flows)
    }

    /// Frames, most of which match a flow.
    pub fn frames(&self, count: usize, rng: &mut impl Rng) -> Vec<Arrival> {
        let mut out = Vec::new();
        for _ in 0..count {
            let mut spec = Spec::random(rng);
            let mut port = *FUNCTIONS.choose(rng).unwrap_or(&8);
            if let Some(flow) = self.0.choose(rng).filter(|_| rng.gen_ratio(9, 10)) {
                spec.fit(&flow.matches, rng);
                port = flow.matches.exact(Field::InPort).map_or(port, |p| p as u8);
            } else if rng.gen_ratio(1, 4) {
                port = *[UNDERLAY, UPLINK].choose(rng).unwrap_or(&1);
            }
            if rng.gen_ratio(1, 5) {
                spec.spoil(rng);
            }
            // A dummy port allows four bytes more for a customer's tag only, the model for either.
            if spec.tags.first().is_some_and(|tag| tag.0 == ethertype::SERVICE_VLAN) {
                (spec.payload, spec.least) = (spec.payload % 400, 0);
            }
            let mut frame = spec.bytes();
            if rng.gen_ratio(1, 20) {
                damage(&mut frame, rng);
            }
            out.push((port, frame));
        }
        out
    }

    fn model(&self) -> Switch {
        let mut switch = empty_switch();
        for flow in &self.0 {
            // Those that it does not take were left out when the table was made.
            let _ = switch.install(flow, Room::Any, &TUNNELS);
        }
        switch
    }

    fn ovs(&self, oracle: &mut Oracle) -> Result<String, Error> {
        let texts: Vec<(String, String)> = self.0.iter().map(|f| (f.matches.to_string(), ferric_model::switch::flow::steps_text(&f.steps))).collect();
        oracle.flows(&texts)
    }

    /// What Open vSwitch says of its flows has to be these flows.
    fn dump(&self, text: &str) -> Option<Difference> {
        let names = names();
        let mut dumped = Vec::new();
        for line in text.lines().filter(|l| l.contains("actions:")) {
            match parse::dump_line(line, &names) {
                Ok(mut flow) => {
                    // The datapath adds user data.
                    for step in &mut flow.steps {
                        match step {
                            Step::Userspace(_) => *step = tables::to_software(),
                            Step::Sample { probability, steps } => {
                                // It rounds up what its text says rounded.
                                *probability = u32::MAX >> probability.saturating_sub(1).leading_zeros();
                                *steps = vec![tables::to_software()];
                            }
                            _ => {}
                        }
                    }
                    dumped.push(flow);
                }
                Err(e) => return Some(Difference { table: vec![line.to_owned()], arrival: None, model: e.to_string(), ovs: "its own text".into() }),
            }
        }
        let missing = self.0.iter().find(|flow| !dumped.contains(flow));
        missing.map(|flow| Difference {
            table: vec![flow.to_string()],
            arrival: None,
            model: "this flow".into(),
            ovs: dumped.iter().filter(|d| d.matches == flow.matches || d.steps == flow.steps).map(Flow::to_string).collect::<Vec<_>>().join("\n"),
        })
    }

    fn lines(&self) -> Vec<String> {
        self.0.iter().map(Flow::to_string).collect()
    }

    /// Compares text and frames; the first difference, with as few flows as show it.
    pub fn run(&self, oracle: &mut Oracle, frames: &[Arrival], tally: &mut Tally) -> Result<Option<Difference>, Error> {
        // A revalidator that came late may have changed a flow: once more.
        let again = self.dump(&self.ovs(oracle)?).is_some();
        if let Some(difference) = again.then(|| self.ovs(oracle)).transpose()?.and_then(|text| self.dump(&text)) {
            return Ok(Some(difference));
        }
        let mut switch = self.model();
        for arrival in frames {
            if compare(&mut switch, oracle, arrival, tally)?.is_some() {
                if let Some(difference) = self.shrink(oracle, arrival)? {
                    return Ok(Some(difference));
                }
            }
        }
        Ok(None)
    }

    /// Takes flows out as long as the difference stays. `None`: it does not come again.
    fn shrink(&self, oracle: &mut Oracle, arrival: &Arrival) -> Result<Option<Difference>, Error> {
        let mut table = Self(self.0.clone());
        let mut found = None;
        let mut at = table.0.len();
        loop {
            let smaller = if at == table.0.len() && found.is_none() { Self(table.0.clone()) } else { Self(table.0.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, f)| f.clone()).collect()) };
            smaller.ovs(oracle)?;
            let difference = compare(&mut smaller.model(), oracle, arrival, &mut Tally::default())?;
            match (difference, &found) {
                (None, None) => return Ok(None),
                (None, Some(_)) => {}
                (Some(difference), _) => {
                    table = smaller;
                    found = Some(difference);
                }
            }
            if at == 0 {
                break;
            }
            at = (at - 1).min(table.0.len());
        }
        Ok(found.map(|(model, ovs)| Difference { table: table.lines(), arrival: Some(arrival.clone()), model, ovs }))
    }
}
