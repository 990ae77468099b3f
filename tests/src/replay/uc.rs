//! Unreliable connections (IBTA 9.8.2): one way, nothing is acknowledged, so a direction is replayed for itself: its sender, and its receiver.
//! What must be received follows from what was delivered alone: a message of which every packet came, one after the other.
use super::analyse::{self, Connection, Host, Item, Message, Stream};
use super::capture::Capture;
use super::compare;
use super::endpoint::{Done, Endpoint, Factory, Post, Region, RegionSpec, Setup, Slice};
use super::error::{Error, Result};
use super::frame::{Frame, Kind};
use super::memory::Plan;
use super::run::{sent_view, Expected};
use super::Role;
use ferric_driver::{Access, CqeStatus};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Transport bits of the opcodes.
pub const CLASS: u8 = 1;

/// Places that receives take in turn.
const SLOTS: usize = 3;

/// The directions of a capture: machine 0 sends, machine 1 receives.
pub fn directions(capture: &Capture) -> Result<Vec<Connection>> {
    let mut flows: BTreeMap<(IpAddr, IpAddr, u32), Vec<Item>> = BTreeMap::new();
    for (r, frame) in analyse::frames(capture)? {
        if frame.bth.opcode() >> 5 != CLASS {
            continue;
        }
        if !matches!(frame.op.kind, Kind::Send | Kind::Write) {
            return Err(Error::Exchange(format!("packet {}: {} on an unreliable connection", r.number, frame.op.kind.name())));
        }
        let key = (frame.ip.src(), frame.ip.dst(), frame.bth.dest_qpn());
        flows.entry(key).or_default().push(Item { number: r.number, time: r.time, side: 0, frame, sent: r.sent, delivered: r.delivered });
    }
    let mut all = Vec::new();
    for ((src, dst, qpn), items) in flows {
        let mtu = analyse::path_mtu(&items)?;
        let requests = [analyse::stream(&items, 0, mtu)?, Stream::default()];
        all.push(Connection { hosts: [Host { ip: src, qpn: None }, Host { ip: dst, qpn: Some(qpn) }], items, requests, mtu });
    }
    Ok(all)
}

/// Replays what a capture has of unreliable connections; how many messages there were.
pub fn replay(capture: &Capture, role: Role, factory: &dyn Factory) -> Result<usize> {
    let mut count = 0;
    for c in directions(capture)? {
        count += c.requests[0].messages.len();
        for side in role.sides() {
            match side {
                0 => sender(&c, factory, &sent_view(&c, 0))?,
                _ => receiver(&c, factory)?,
            }
        }
    }
    Ok(count)
}

fn setup(c: &Connection, side: usize) -> Setup {
    let base = c.requests[0].base;
    Setup {
        path: c.path(side),
        mtu: c.mtu,
        peer_qpn: c.hosts[1 - side].qpn.unwrap_or(0x00ab_cdef),
        sq_psn: base,
        rq_psn: base,
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
        min_rnr_timer: 12,
        access: Access::ALL,
        depth: c.requests[0].messages.len() + 8,
        unreliable: true,
    }
}

fn at(number: usize, side: &str) -> impl Fn(String) -> Error + '_ {
    move |e| Error::Differs(format!("{side}: at packet {number}: {e}"))
}

/// Replaces the sender. `expected` is compared with only, but for what a program says when it posts (rule 6).
pub fn sender(c: &Connection, factory: &dyn Factory, expected: &[Expected]) -> Result<()> {
    let mut endpoint = factory.build(&setup(c, 0))?;
    let stream = &c.requests[0];
    let len = stream.messages.iter().map(|m| m.len).max().unwrap_or(0).max(1);
    let region = endpoint.register(&RegionSpec::new(len, Access::ALL))?;
    let (mut sent, mut posted) = (std::collections::VecDeque::new(), 0);
    for e in expected {
        let fail = at(e.number, "sender");
        if sent.is_empty() {
            let Some(m) = stream.messages.get(posted) else { return Err(fail(format!("captured {}, which belongs to no message", e.frame.brief()))) };
            if m.data.len() != m.len {
                return Err(Error::Exchange(format!("at packet {}: the message's last packet was never seen", e.number)));
            }
            endpoint.write_memory(&region, 0, &m.data);
            let local = (m.len > 0).then_some(Slice { region, offset: 0, len: m.len });
            let remote = m.remote.unwrap_or_default();
            endpoint.post_send(&Post { id: posted as u64, kind: m.kind, operands: (0, 0), imm: m.imm, invalidate: None, solicited: m.solicited, local, remote, flush: None })?;
            endpoint.settle();
            for (_, bytes) in endpoint.take_frames() {
                sent.push_back(Frame::decode_own(&bytes).map_err(|e| fail(format!("sent a malformed frame: {e}")))?);
            }
            match endpoint.poll() {
                Some(d) if (d.id, d.recv, d.status) == (posted as u64, false, CqeStatus::Success) => {}
                other => return Err(fail(format!("message {posted} is sent, but the completion is {other:?}"))),
            }
            posted += 1;
        }
        let own = sent.pop_front().ok_or_else(|| fail(format!("captured {}, which was not sent", e.frame.brief())))?;
        compare::same(&own, &e.frame).map_err(fail)?;
    }
    if let Some(f) = sent.pop_front() {
        return Err(Error::Differs(format!("sender: {} was sent, which the captured machine did not send", f.brief())));
    }
    if posted != stream.messages.len() {
        return Err(Error::Differs(format!("sender: message {posted} was never sent")));
    }
    quiet(endpoint.as_mut()).map_err(|e| Error::Differs(format!("sender: at the end: {e}")))
}

/// Nothing is sent and nothing completes.
fn quiet(endpoint: &mut dyn Endpoint) -> std::result::Result<(), String> {
    endpoint.settle();
    if let Some((_, bytes)) = endpoint.take_frames().first() {
        return Err(format!("a frame of {} bytes was sent", bytes.len()));
    }
    match endpoint.poll() {
        Some(d) => Err(format!("{d:?} is one completion too many")),
        None => Ok(()),
    }
}

/// The receiver's buffers: what they must hold, and the receive that stands ready.
struct Receives {
    region: Region,
    image: Vec<u8>,
    len: usize,
    posted: u64,
    ready: Option<u64>,
}

impl Receives {
    fn new(endpoint: &mut dyn Endpoint, messages: &[Message]) -> Result<Self> {
        let len = messages.iter().filter(|m| m.kind == Kind::Send).map(|m| m.len).max().unwrap_or(0) + 5;
        let region = endpoint.register(&RegionSpec::new(SLOTS * len, Access::LOCAL_WRITE))?;
        let image: Vec<u8> = (0..SLOTS * len).map(|i| (i as u8).wrapping_mul(113) ^ 0x3c).collect();
        endpoint.write_memory(&region, 0, &image);
        Ok(Self { region, image, len, posted: 0, ready: None })
    }

    fn offset(&self, id: u64) -> usize {
        id as usize % SLOTS * self.len
    }

    /// Sees to it that a receive stands ready.
    fn ready(&mut self, endpoint: &mut dyn Endpoint) -> Result<()> {
        if self.ready.is_none() {
            let place = Slice { region: self.region, offset: self.offset(self.posted), len: self.len };
            endpoint.post_recv(self.posted, Some(place))?;
            self.ready = Some(self.posted);
            self.posted += 1;
        }
        Ok(())
    }

    fn check(&self, endpoint: &dyn Endpoint) -> std::result::Result<(), String> {
        let now = endpoint.read_memory(&self.region, 0, self.image.len());
        match now.iter().zip(&self.image).position(|(a, b)| a != b) {
            Some(i) => Err(format!("receive buffer {}, byte {}: {:#04x}, must be {:#04x}", i / self.len, i % self.len, now[i], self.image[i])),
            None => Ok(()),
        }
    }
}

/// Replaces the receiver.
pub fn receiver(c: &Connection, factory: &dyn Factory) -> Result<()> {
    let mut endpoint = factory.build(&setup(c, 1))?;
    let endpoint = endpoint.as_mut();
    let stream = &c.requests[0];
    let mut plan = Plan::new(c, 0, None, endpoint)?;
    let mut receives = Receives::new(endpoint, &stream.messages)?;
    // The message under way, and how many of its packets have come.
    let mut under_way: Option<(usize, u32)> = None;
    for item in c.items.iter().filter(|i| i.delivered) {
        let fail = at(item.number, "receiver");
        let f = &item.frame;
        let position = stream.position(f.psn());
        let found = u32::try_from(position).ok().and_then(|p| stream.at(p).map(|(n, m)| (n, m, p - m.first)));
        let Some((n, m, k)) = found else { return Err(fail(format!("{} belongs to no message", f.brief()))) };
        let whole = f.icrc_error == 0;
        if whole && (f.op.kind == Kind::Send && f.op.first || f.op.imm) {
            receives.ready(endpoint)?;
        }
        let mut frame = f.clone();
        frame.bth.set_dest_qpn(endpoint.qpn());
        plan.translate(&mut frame, position);
        endpoint.receive(&frame.encode());
        endpoint.settle();
        let mut due = None;
        if whole {
            let goes_on = f.op.first || under_way == Some((n, k));
            under_way = goes_on.then_some((n, k + 1)).filter(|_| !f.op.last);
            if goes_on {
                let offset = k as usize * c.mtu.bytes();
                if m.kind == Kind::Write {
                    plan.written(endpoint, m, offset, &f.payload)?;
                } else if let Some(id) = receives.ready {
                    let to = receives.offset(id) + offset;
                    receives.image[to..to + f.payload.len()].copy_from_slice(&f.payload);
                }
                if f.op.last && (m.kind == Kind::Send || f.op.imm) {
                    let (len, imm, solicited) = (m.len as u32, f.imm.map(|i| i.imm()), f.bth.solicited());
                    due = receives.ready.take().map(|id| Done { len, imm, solicited, ..Done::new(id, true, CqeStatus::Success) });
                }
            }
        }
        if let Some(want) = due {
            match endpoint.poll() {
                Some(got) if got == want => {}
                got => return Err(fail(format!("receive completion {got:?}, must be {want:?}"))),
            }
        }
        plan.check(endpoint)?;
        receives.check(endpoint).map_err(&fail)?;
        quiet(endpoint).map_err(&fail)?;
    }
    Ok(())
}
