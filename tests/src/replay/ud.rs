//! Datagrams: no connection, no acknowledge, every frame for itself (rule 10). Each queue pair of the capture is replaced in turn.
use super::capture::Capture;
use super::compare;
use super::endpoint::Factory;
use super::error::{Error, Result};
use super::frame::{psn_add, Frame, Ip};
use super::Role;
use ferric_driver::types::{Mac, Mtu};
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::{AddressHandle, CqeStatus, Source};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Transport bits of a datagram's opcode.
pub const CLASS: u8 = 3;

/// A datagram queue pair as the replaced one was.
#[derive(Clone, Debug)]
pub struct UdSetup {
    /// Where its datagrams come from.
    pub source: Source,
    /// Path MTU.
    pub mtu: Mtu,
    /// Q_Key.
    pub qkey: u32,
    /// First PSN sent.
    pub sq_psn: u32,
}

/// A datagram to send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Number given back in the completion.
    pub id: u64,
    /// Destination.
    pub to: AddressHandle,
    /// Destination queue pair.
    pub dest_qpn: u32,
    /// Q_Key put in.
    pub qkey: u32,
    /// Immediate data.
    pub imm: Option<u32>,
    /// Solicited event.
    pub solicited: bool,
    /// Payload.
    pub data: Vec<u8>,
}

/// A completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The request's number.
    pub id: u64,
    /// Receive side.
    pub recv: bool,
    /// Outcome.
    pub status: CqeStatus,
    /// Bytes received, GRH area included.
    pub len: u32,
    /// Immediate data.
    pub imm: Option<u32>,
    /// Solicited event.
    pub solicited: bool,
    /// Sender's queue pair.
    pub src_qp: u32,
    /// A GRH area stands in front.
    pub grh: bool,
    /// The receive's buffer, all of it.
    pub buffer: Vec<u8>,
}

/// A machine with one datagram queue pair.
pub trait Datagrams {
    /// Its queue pair number.
    fn qpn(&self) -> u32;
    /// Posts a datagram.
    fn send(&mut self, datagram: &Outgoing) -> Result<()>;
    /// Posts a receive of `len` bytes, all of them [`FILL`].
    fn post_recv(&mut self, id: u64, len: usize) -> Result<()>;
    /// A frame arrives from the wire.
    fn receive(&mut self, frame: &[u8]);
    /// Runs until nothing more happens.
    fn settle(&mut self);
    /// Takes the frames sent since the last call.
    fn take_frames(&mut self) -> Vec<Vec<u8>>;
    /// Takes the next completion.
    fn poll(&mut self) -> Option<Event>;
}

/// What receive buffers hold before.
pub const FILL: u8 = 0x5a;

/// One frame, seen from a queue pair.
#[derive(Clone, Debug)]
pub struct Item {
    /// Packet number in the file.
    pub number: usize,
    /// It sent this.
    pub own: bool,
    /// The frame.
    pub frame: Frame,
}

/// A queue pair of the capture.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its machine.
    pub ip: IpAddr,
    /// Its number.
    pub qpn: u32,
    /// It sent the first datagram of the capture.
    pub first: bool,
    /// What it sent and got.
    pub items: Vec<Item>,
}

/// The datagram queue pairs of a capture.
pub fn locals(capture: &Capture) -> Result<Vec<Local>> {
    let mut found: BTreeMap<(IpAddr, u32), Vec<Item>> = BTreeMap::new();
    let mut first = None;
    for r in &capture.records {
        let frame = match Frame::decode(&r.bytes) {
            Ok(Some(f)) if f.bth.opcode() >> 5 == CLASS => f,
            _ => continue,
        };
        let Some(deth) = frame.deth else { continue };
        if r.sent && frame.icrc_error == 0 {
            let key = (frame.ip.src(), deth.src_qpn());
            first.get_or_insert(key);
            found.entry(key).or_default().push(Item { number: r.number, own: true, frame: frame.clone() });
        }
        if r.delivered && !frame.ip.dst().is_multicast() {
            let key = (frame.ip.dst(), frame.bth.dest_qpn());
            found.entry(key).or_default().push(Item { number: r.number, own: false, frame });
        }
    }
    Ok(found.into_iter().map(|((ip, qpn), items)| Local { ip, qpn, first: first == Some((ip, qpn)), items }).collect())
}

/// Class and hop limit.
fn class_and_hops(ip: &Ip) -> (u8, u8) {
    match ip {
        Ip::V4(h) => (h.dscp() << 2 | h.ecn(), h.ttl()),
        Ip::V6(h) => (h.dscp() << 2 | h.ecn(), h.hop_limit()),
    }
}

fn mac(v: u64) -> Mac {
    let b = v.to_be_bytes();
    Mac([b[2], b[3], b[4], b[5], b[6], b[7]])
}

/// What the queue pair must have been set up with.
pub fn setup(local: &Local) -> Result<UdSetup> {
    let Some(seen) = local.items.iter().find(|i| i.own).or(local.items.first()) else { return Err(Error::Exchange("no datagrams".into())) };
    let f = &seen.frame;
    let (smac, sip) = if seen.own { (f.eth.src(), f.ip.src()) } else { (f.eth.dst(), f.ip.dst()) };
    let flow_label = if let Ip::V6(h) = f.ip { h.flow_label() } else { 0 };
    let vlan = f.vlan.map(|v| u16::from_be_bytes([v.0[0], v.0[1]]));
    let longest = local.items.iter().map(|i| i.frame.payload.len()).max().unwrap_or(0);
    let mtu = Mtu::from_bytes(longest.next_power_of_two().max(256)).ok_or_else(|| Error::Exchange(format!("a datagram of {longest} bytes")))?;
    // The Q_Key is the one that most of the datagrams it got have.
    let mut keys: BTreeMap<u32, usize> = BTreeMap::new();
    let to_it = local.items.iter().filter(|i| !i.own).filter_map(|i| i.frame.deth);
    to_it.for_each(|d| *keys.entry(d.qkey()).or_default() += 1);
    let qkey = keys.into_iter().max_by_key(|(_, n)| *n).map_or(0x7777, |(k, _)| k);
    let sq_psn = local.items.iter().find(|i| i.own).map_or(0, |i| i.frame.psn());
    Ok(UdSetup { source: Source { smac: mac(smac), sip, vlan, udp_sport: f.udp.src_port(), flow_label }, mtu, qkey, sq_psn })
}

/// Replays the datagrams of a capture; how many there were.
pub fn replay(capture: &Capture, role: Role, factory: &dyn Factory) -> Result<usize> {
    let mut count = 0;
    for local in locals(capture)? {
        let wanted = match role {
            Role::Requester => local.first,
            Role::Responder => !local.first,
            Role::Both => true,
        };
        if wanted {
            let expected: Vec<Frame> = local.items.iter().filter(|i| i.own).map(|i| i.frame.clone()).collect();
            count += local.items.len();
            replay_local(&local, factory, &expected)?;
        }
    }
    Ok(count)
}

/// Replaces one queue pair. `expected`: what it must send; compared with only, but for what a program says when it posts (rule 6).
pub fn replay_local(local: &Local, factory: &dyn Factory, expected: &[Frame]) -> Result<()> {
    let setup = setup(local)?;
    let mut machine = factory.datagrams(&setup)?;
    let (mut sent, mut received, mut posted) = (0, 0u64, None);
    for item in &local.items {
        let at = |e: String| Error::Differs(format!("at packet {}: {e}", item.number));
        if item.own {
            post(machine.as_mut(), &item.frame, sent as u64).map_err(|e| Error::Endpoint(format!("at packet {}: {e}", item.number)))?;
            let frames = machine.take_frames();
            let [bytes] = &frames[..] else { return Err(at(format!("{} frames were sent for one datagram", frames.len()))) };
            let mut frame = Frame::decode_own(bytes).map_err(at)?;
            left(local, machine.qpn(), &mut frame, &expected[sent], psn_add(setup.sq_psn, sent as u32)).map_err(at)?;
            let done = machine.poll();
            if !done.as_ref().is_some_and(|d| (d.id, d.recv, d.status) == (sent as u64, false, CqeStatus::Success)) {
                return Err(at(format!("sent, but the completion is {done:?}")));
            }
            sent += 1;
        } else {
            if posted.is_none() {
                machine.post_recv(received, setup.mtu.bytes() + GRH_BYTES)?;
                posted = Some(received);
                received += 1;
            }
            let mut frame = item.frame.clone();
            frame.bth.set_dest_qpn(machine.qpn());
            let bytes = frame.encode();
            machine.receive(&bytes);
            machine.settle();
            if !machine.take_frames().is_empty() {
                return Err(at("a datagram was answered".into()));
            }
            let ours = item.frame.icrc_error == 0 && item.frame.deth.is_some_and(|d| d.qkey() == setup.qkey) && item.frame.bth.pkey() & 0x7fff == 0x7fff && item.frame.bth.tver() == 0;
            match (machine.poll(), ours.then_some(()).and(posted)) {
                (None, None) => {}
                (None, Some(_)) => return Err(at("the datagram was not received".into())),
                (Some(e), None) => return Err(at(format!("completed with {:?}, though this datagram was not for it", e.status))),
                (Some(e), Some(id)) => {
                    arrived(&e, id, &frame, &bytes).map_err(at)?;
                    posted = None;
                }
            }
        }
        if let Some(e) = machine.poll() {
            return Err(at(format!("one completion too many: {:?}", e.status)));
        }
    }
    Ok(())
}

fn post(machine: &mut dyn Datagrams, frame: &Frame, id: u64) -> Result<()> {
    let (tclass, hop_limit) = class_and_hops(&frame.ip);
    machine.send(&Outgoing {
        id,
        to: AddressHandle { dmac: mac(frame.eth.dst()), dip: frame.ip.dst(), tclass, hop_limit },
        dest_qpn: frame.bth.dest_qpn(),
        qkey: frame.deth.map_or(0, |d| d.qkey()),
        imm: frame.imm.map(|i| i.imm()),
        solicited: frame.bth.solicited(),
        data: frame.payload.clone(),
    })?;
    machine.settle();
    Ok(())
}

/// Compares a frame of the machine with the captured one. `psn`: what its PSN must be.
fn left(local: &Local, qpn: u32, own: &mut Frame, captured: &Frame, psn: u32) -> std::result::Result<(), String> {
    if let Some(deth) = own.deth.as_mut() {
        if deth.src_qpn() != qpn {
            return Err(format!("DETH names queue pair {:#x}, not its own", deth.src_qpn()));
        }
        deth.set_src_qpn(local.qpn);
    }
    if own.psn() != psn {
        return Err(format!("PSN {:#x} follows on others than {psn:#x}", own.psn()));
    }
    let (mine, theirs) = (class_and_hops(&own.ip), class_and_hops(&captured.ip));
    if mine != theirs {
        return Err(format!("class and hop limit are {mine:?}, captured {theirs:?}"));
    }
    compare::same(own, captured)
}

/// Checks what became of a datagram that was for this queue pair.
fn arrived(e: &Event, id: u64, frame: &Frame, bytes: &[u8]) -> std::result::Result<(), String> {
    let len = frame.payload.len() + GRH_BYTES;
    let want = (id, true, CqeStatus::Success, len as u32, frame.imm.map(|i| i.imm()), frame.bth.solicited(), frame.deth.map_or(0, |d| d.src_qpn()), true);
    let got = (e.id, e.recv, e.status, e.len, e.imm, e.solicited, e.src_qp, e.grh);
    if got != want {
        return Err(format!("the completion says {got:?}, must be {want:?}"));
    }
    let l3 = 14 + frame.vlan.map_or(0, |_| 4);
    let header = match frame.ip {
        Ip::V4(_) => [&[FILL; 20], &bytes[l3..l3 + 20]].concat(),
        Ip::V6(_) => bytes[l3..l3 + 40].to_vec(),
    };
    if e.buffer[..GRH_BYTES] != header[..] {
        return Err("the 40 bytes in front are not the IP header at its place".into());
    }
    if e.buffer[GRH_BYTES..len] != frame.payload[..] {
        return Err("the bytes received are not those of the datagram".into());
    }
    if e.buffer[len..].iter().any(|b| *b != FILL) {
        return Err("bytes behind the datagram were written".into());
    }
    Ok(())
}
