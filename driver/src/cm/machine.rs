//! The state machine of the communication manager (IBTA 12.9): both sides of a connection, retries by time-out, duplicates answered again.
use super::timeout;
use super::wire::{gid, mtu_of, Body, CmDrep, CmDreq, CmMra, CmRej, CmRep, CmReq, CmRtu, IpHeader, Message, RejectReason, MAD_BYTES};
use crate::error::{Error, Result};
use crate::types::{Mtu, RtrAttr, RtsAttr};
use crate::ud::AddressHandle;
use crate::Path;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// Time in which an answer is expected, as exponent: 268 ms.
const RESPONSE: u8 = 16;
/// Times a message is sent again.
const RETRIES: u8 = 15;
/// How long an ended connection is remembered, so that a repeated DREQ is answered, as exponent: 67 ms.
const TIME_WAIT: u8 = 14;

/// Our end of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Local {
    /// Queue pair.
    pub qpn: u32,
    /// First PSN it expects: the peer is told to begin with it (12.7.31).
    pub psn: u32,
    /// READs and atomics of the peer that it remembers.
    pub responder_resources: u8,
    /// READs and atomics it will have outstanding.
    pub initiator_depth: u8,
    /// RNR retries the peer shall do, 7 for ever.
    pub rnr_retry: u8,
}

/// The peer's end of a connection, as its REQ or REP tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remote {
    /// Queue pair.
    pub qpn: u32,
    /// First PSN it expects: what is sent to it begins there.
    pub psn: u32,
    /// Path MTU.
    pub mtu: Mtu,
    /// READs and atomics it remembers: at most so many may be outstanding here.
    pub responder_resources: u8,
    /// READs and atomics it will have outstanding: at least so many are to be remembered here.
    pub initiator_depth: u8,
    /// Transport retries it wants.
    pub retry_count: u8,
    /// RNR retries it wants.
    pub rnr_retry: u8,
    /// Local ACK timeout.
    pub ack_timeout: u8,
}

impl Remote {
    /// Attributes with which the local queue pair goes to RTR.
    pub fn rtr(&self, local: &Local, path: Path, min_rnr_timer: u8) -> RtrAttr {
        RtrAttr { mtu: self.mtu, dest_qpn: self.qpn, rq_psn: local.psn, min_rnr_timer, max_dest_rd_atomic: self.initiator_depth.min(16), path: Some(path) }
    }
    /// Attributes with which it goes to RTS.
    pub fn rts(&self, local: &Local) -> RtsAttr {
        RtsAttr {
            sq_psn: self.psn, timeout: self.ack_timeout, retry_cnt: self.retry_count, rnr_retry: self.rnr_retry,
            max_rd_atomic: local.initiator_depth.min(self.responder_resources).min(16),
        }
    }
}

/// A connection to be asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The other machine.
    pub to: AddressHandle,
    /// Own address.
    pub from: IpAddr,
    /// Service, see [`super::ip_service_id`].
    pub service_id: u64,
    /// Own end.
    pub local: Local,
    /// Path MTU.
    pub mtu: Mtu,
    /// Transport retries of both sides.
    pub retry_count: u8,
    /// Local ACK timeout of both sides.
    pub ack_timeout: u8,
    /// Source port: puts the addresses of annex A11 in front of the private data.
    pub ip_port: Option<u16>,
    /// Private data: 92 bytes, 56 with addresses.
    pub private: Vec<u8>,
}

/// What a program must know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A peer asks for a connection: `accept` or `reject` it.
    Request {
        /// The connection.
        id: u32,
        /// Service asked for.
        service_id: u64,
        /// Its end.
        remote: Remote,
        /// Addresses of annex A11, if the service ID is one of RDMA over IP.
        ip: Option<IpHeader>,
        /// Private data behind them.
        private: Vec<u8>,
    },
    /// The peer accepts: bring the queue pair to RTS, then `confirm`.
    Reply {
        /// The connection.
        id: u32,
        /// Its end.
        remote: Remote,
        /// Private data.
        private: Vec<u8>,
    },
    /// Both sides are ready.
    Established {
        /// The connection.
        id: u32,
    },
    /// There will be no connection.
    Rejected {
        /// The connection.
        id: u32,
        /// Why; `Timeout` also when nobody answered.
        reason: RejectReason,
        /// Private data.
        private: Vec<u8>,
    },
    /// The connection has ended.
    Disconnected {
        /// The connection.
        id: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    ReqSent,
    ReqReceived,
    RepReceived,
    RepSent,
    Established,
    DreqSent,
    TimeWait,
}

struct Connection {
    state: State,
    remote_id: u32,
    remote_guid: u64,
    to: AddressHandle,
    tid: u64,
    remote: Option<Remote>,
    /// Of the request, for the REP's reader.
    asked: Option<(Mtu, u8, u8)>,
    /// The last message that may have to be sent again, and when, and how often still.
    last: Option<[u8; MAD_BYTES]>,
    due: Option<Duration>,
    left: u8,
}

/// The communication manager of one port.
pub struct Cm {
    guid: u64,
    next_id: u32,
    next_tid: u64,
    listening: BTreeSet<u64>,
    connections: BTreeMap<u32, Connection>,
    out: Vec<(AddressHandle, [u8; MAD_BYTES])>,
    events: VecDeque<Event>,
}

impl Cm {
    /// `guid`: of this channel adapter, unique in the fabric. `seed`: communication and transaction IDs start from it, so that those of an
    /// earlier life of the program do not come again.
    pub fn new(guid: u64, seed: u64) -> Self {
        Self {
            guid, next_id: seed as u32, next_tid: seed << 20, listening: BTreeSet::new(), connections: BTreeMap::new(), out: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Requests for this service become events from now on.
    pub fn listen(&mut self, service_id: u64) {
        self.listening.insert(service_id);
    }

    /// No longer.
    pub fn unlisten(&mut self, service_id: u64) {
        self.listening.remove(&service_id);
    }

    /// Asks for a connection.
    pub fn connect(&mut self, now: Duration, r: &Request) -> Result<u32> {
        let mut private = Vec::new();
        if let Some(port) = r.ip_port {
            private.extend(IpHeader::between(r.from, port, r.to.dip).0);
        }
        private.extend(&r.private);
        let id = self.fresh_id();
        let tid = self.fresh_tid();
        let req = CmReq::default()
            .with_local_id(id).with_service_id(r.service_id).with_local_guid(self.guid).with_local_qpn(r.local.qpn)
            .with_responder_resources(r.local.responder_resources).with_initiator_depth(r.local.initiator_depth).with_remote_timeout(RESPONSE)
            .with_local_timeout(RESPONSE).with_flow_control(true).with_starting_psn(r.local.psn).with_retry_count(r.retry_count).with_pkey(0xffff)
            .with_mtu(r.mtu as u8).with_rnr_retry(r.local.rnr_retry).with_max_cm_retries(RETRIES).with_local_lid(0xffff).with_remote_lid(0xffff)
            .with_local_gid(gid(r.from)).with_remote_gid(gid(r.to.dip)).with_tclass(r.to.tclass).with_hop_limit(r.to.hop_limit).with_ack_timeout(r.ack_timeout);
        let connection = Connection {
            state: State::ReqSent, remote_id: 0, remote_guid: 0, to: r.to, tid, remote: None, asked: Some((r.mtu, r.retry_count, r.ack_timeout)),
            last: None, due: None, left: 0,
        };
        let mad = message(tid, Body::Req(req), private)?;
        self.connections.insert(id, connection);
        self.expecting(now, id, mad);
        Ok(id)
    }

    /// Accepts a request: the queue pair `local` is ready to receive. Private data: 196 bytes.
    pub fn accept(&mut self, now: Duration, id: u32, local: &Local, private: &[u8]) -> Result<()> {
        let guid = self.guid;
        let c = self.in_state(id, &[State::ReqReceived])?;
        let rep = CmRep::default()
            .with_local_id(id).with_remote_id(c.remote_id).with_local_qpn(local.qpn).with_starting_psn(local.psn)
            .with_responder_resources(local.responder_resources).with_initiator_depth(local.initiator_depth).with_flow_control(true)
            .with_rnr_retry(local.rnr_retry).with_local_guid(guid);
        let mad = message(c.tid, Body::Rep(rep), private.to_vec())?;
        c.state = State::RepSent;
        self.expecting(now, id, mad);
        Ok(())
    }

    /// The answer to a request or a reply will take longer: up to 4.096 us * 2^`exponent` (MRA).
    pub fn delay(&mut self, id: u32, exponent: u8) -> Result<()> {
        let c = self.in_state(id, &[State::ReqReceived, State::RepReceived])?;
        let mra = CmMra::default().with_local_id(id).with_remote_id(c.remote_id).with_message(u8::from(c.state == State::RepReceived)).with_service_timeout(exponent);
        let (mad, to) = (message(c.tid, Body::Mra(mra), Vec::new())?, c.to);
        // A repeated request is answered by it until there is more to say.
        c.last = Some(mad);
        self.out.push((to, mad));
        Ok(())
    }

    /// The queue pair is ready: tells the peer (RTU). Private data: 224 bytes.
    pub fn confirm(&mut self, id: u32, private: &[u8]) -> Result<()> {
        let c = self.in_state(id, &[State::RepReceived])?;
        let rtu = CmRtu::default().with_local_id(id).with_remote_id(c.remote_id);
        let (mad, to) = (message(c.tid, Body::Rtu(rtu), private.to_vec())?, c.to);
        c.state = State::Established;
        c.last = Some(mad);
        self.out.push((to, mad));
        self.events.push_back(Event::Established { id });
        Ok(())
    }

    /// Refuses a request or a reply. Private data: 148 bytes.
    pub fn reject(&mut self, id: u32, reason: RejectReason, private: &[u8]) -> Result<()> {
        let c = self.in_state(id, &[State::ReqReceived, State::RepReceived])?;
        let of = u8::from(c.state == State::RepReceived);
        let (mad, to) = (message(c.tid, Body::Rej(rej(id, c.remote_id, of, reason)), private.to_vec())?, c.to);
        self.connections.remove(&id);
        self.out.push((to, mad));
        Ok(())
    }

    /// Ends a connection. Private data: 220 bytes.
    pub fn disconnect(&mut self, now: Duration, id: u32, private: &[u8]) -> Result<()> {
        let tid = self.fresh_tid();
        let c = self.in_state(id, &[State::Established, State::RepSent])?;
        let qpn = c.remote.map_or(0, |r| r.qpn);
        let dreq = CmDreq::default().with_local_id(id).with_remote_id(c.remote_id).with_remote_qpn(qpn);
        let mad = message(tid, Body::Dreq(dreq), private.to_vec())?;
        (c.state, c.tid) = (State::DreqSent, tid);
        self.expecting(now, id, mad);
        Ok(())
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What is to be sent, each to queue pair 1 of its machine.
    pub fn take_outgoing(&mut self) -> Vec<(AddressHandle, [u8; MAD_BYTES])> {
        std::mem::take(&mut self.out)
    }

    /// Machine at the other end of a connection.
    pub fn peer(&self, id: u32) -> Option<AddressHandle> {
        self.connections.get(&id).map(|c| c.to)
    }

    /// Connections that are remembered.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    fn fresh_id(&mut self) -> u32 {
        loop {
            self.next_id = self.next_id.wrapping_add(1);
            if self.next_id != 0 && !self.connections.contains_key(&self.next_id) {
                return self.next_id;
            }
        }
    }

    fn fresh_tid(&mut self) -> u64 {
        self.next_tid = self.next_tid.wrapping_add(1);
        self.next_tid
    }

    fn in_state(&mut self, id: u32, states: &[State]) -> Result<&mut Connection> {
        self.connections.get_mut(&id).filter(|c| states.contains(&c.state)).ok_or(Error::State)
    }

    /// Sends a message that must be answered.
    fn expecting(&mut self, now: Duration, id: u32, mad: [u8; MAD_BYTES]) {
        if let Some(c) = self.connections.get_mut(&id) {
            (c.last, c.due, c.left) = (Some(mad), Some(now + timeout(RESPONSE)), RETRIES);
            self.out.push((c.to, mad));
        }
    }

    /// Time has passed: sends again what has not been answered, gives up what was sent often enough.
    pub fn tick(&mut self, now: Duration) {
        let due: Vec<u32> = self.connections.iter().filter(|(_, c)| c.due.is_some_and(|at| at <= now)).map(|(id, _)| *id).collect();
        for id in due {
            let Some(c) = self.connections.get_mut(&id) else { continue };
            if c.state == State::TimeWait {
                self.connections.remove(&id);
                continue;
            }
            if let (Some(mad), true) = (c.last, c.left > 0) {
                c.left -= 1;
                c.due = Some(now + timeout(RESPONSE));
                self.out.push((c.to, mad));
                continue;
            }
            let (state, remote_id, tid, to) = (c.state, c.remote_id, c.tid, c.to);
            self.connections.remove(&id);
            if state == State::DreqSent {
                self.events.push_back(Event::Disconnected { id });
                continue;
            }
            // The peer may be half connected: it is told (12.6.7).
            let of = if state == State::RepSent { 1 } else { 2 };
            self.answer(to, tid, Body::Rej(rej(id, remote_id, of, RejectReason::Timeout)));
            self.events.push_back(Event::Rejected { id, reason: RejectReason::Timeout, private: Vec::new() });
        }
    }

    fn answer(&mut self, to: AddressHandle, tid: u64, body: Body) {
        self.out.push((to, Message { tid, body, private: Vec::new() }.encode()));
    }

    /// A MAD has come from machine `from`.
    pub fn receive(&mut self, now: Duration, from: AddressHandle, mad: &[u8]) {
        let Some(m) = Message::decode(mad) else {
            log::debug!("a datagram on queue pair 1 that is not the communication manager's");
            return;
        };
        match m.body {
            Body::Req(req) => self.request(from, m.tid, &req, m.private),
            Body::Rep(rep) => self.reply(from, m.tid, &rep, m.private),
            Body::Mra(mra) => self.patience(now, &mra),
            Body::Rej(rej) => self.rejected(&rej, m.private),
            Body::Rtu(rtu) => {
                if let Some(c) = self.connections.get_mut(&rtu.remote_id()).filter(|c| c.state == State::RepSent && c.remote_id == rtu.local_id()) {
                    (c.state, c.due) = (State::Established, None);
                    self.events.push_back(Event::Established { id: rtu.remote_id() });
                }
            }
            Body::Dreq(dreq) => self.release(now, from, m.tid, &dreq),
            Body::Drep(drep) => {
                if let Some(c) = self.connections.get_mut(&drep.remote_id()).filter(|c| c.state == State::DreqSent && c.remote_id == drep.local_id()) {
                    (c.state, c.due, c.last) = (State::TimeWait, Some(now + timeout(TIME_WAIT)), None);
                    self.events.push_back(Event::Disconnected { id: drep.remote_id() });
                }
            }
        }
    }

    fn request(&mut self, from: AddressHandle, tid: u64, req: &CmReq, private: Vec<u8>) {
        let peer = (req.local_id(), req.local_guid());
        if let Some(c) = self.connections.values().find(|c| (c.remote_id, c.remote_guid) == peer) {
            // Once more: so is what was said about it, if anything was.
            if let (State::ReqReceived | State::RepSent, Some(mad)) = (c.state, c.last) {
                self.out.push((c.to, mad));
            }
            return;
        }
        let same_qp = |c: &&Connection| c.remote_guid == peer.1 && c.state == State::Established && c.remote.is_some_and(|r| r.qpn == req.local_qpn());
        let fault = match mtu_of(req.mtu()) {
            _ if !self.listening.contains(&req.service_id()) => Err(RejectReason::InvalidServiceId),
            _ if req.transport() != 0 => Err(RejectReason::InvalidTransport),
            _ if self.connections.values().any(|c| same_qp(&c)) => Err(RejectReason::StaleConnection),
            // Invalid path MTU (table 108).
            None => Err(RejectReason::Other(26)),
            Some(mtu) => Ok(mtu),
        };
        let mtu = match fault {
            Ok(mtu) => mtu,
            Err(reason) => return self.answer(from, tid, Body::Rej(rej(0, req.local_id(), 0, reason))),
        };
        let id = self.fresh_id();
        let remote = Remote {
            qpn: req.local_qpn(), psn: req.starting_psn(), mtu, responder_resources: req.responder_resources(), initiator_depth: req.initiator_depth(),
            retry_count: req.retry_count(), rnr_retry: req.rnr_retry(), ack_timeout: req.ack_timeout(),
        };
        let connection = Connection {
            state: State::ReqReceived, remote_id: peer.0, remote_guid: peer.1, to: from, tid, remote: Some(remote), asked: None, last: None, due: None, left: 0,
        };
        self.connections.insert(id, connection);
        // RDMA over IP: service IDs of annex A11 promise the addresses.
        let ip = (req.service_id() >> 24 == 1).then(|| IpHeader(private[..IpHeader::BYTES].try_into().unwrap_or([0; IpHeader::BYTES])));
        let private = private[if ip.is_some() { IpHeader::BYTES } else { 0 }..].to_vec();
        self.events.push_back(Event::Request { id, service_id: req.service_id(), remote, ip, private });
    }

    fn reply(&mut self, from: AddressHandle, tid: u64, rep: &CmRep, private: Vec<u8>) {
        let id = rep.remote_id();
        let Some(c) = self.connections.get_mut(&id) else {
            return self.answer(from, tid, Body::Rej(rej(id, rep.local_id(), 1, RejectReason::InvalidCommId)));
        };
        match (c.state, c.asked, c.last) {
            (State::ReqSent, Some((mtu, retry_count, ack_timeout)), _) => {
                let remote = Remote {
                    qpn: rep.local_qpn(), psn: rep.starting_psn(), mtu, responder_resources: rep.responder_resources(), initiator_depth: rep.initiator_depth(),
                    retry_count, rnr_retry: rep.rnr_retry(), ack_timeout,
                };
                (c.state, c.remote, c.due, c.last) = (State::RepReceived, Some(remote), None, None);
                (c.remote_id, c.remote_guid) = (rep.local_id(), rep.local_guid());
                self.events.push_back(Event::Reply { id, remote, private });
            }
            // Our RTU (or MRA) was lost.
            (State::RepReceived | State::Established, _, Some(mad)) if c.remote_id == rep.local_id() => self.out.push((c.to, mad)),
            _ => {}
        }
    }

    fn patience(&mut self, now: Duration, mra: &CmMra) {
        let wanted = [State::ReqSent, State::RepSent];
        if let Some(c) = self.connections.get_mut(&mra.remote_id()).filter(|c| wanted.contains(&c.state)) {
            c.due = Some(now + timeout(mra.service_timeout()) + timeout(RESPONSE));
        }
    }

    fn rejected(&mut self, rej: &CmRej, private: Vec<u8>) {
        let id = rej.remote_id();
        let Some(c) = self.connections.get(&id) else { return };
        let open = matches!(c.state, State::ReqSent | State::RepSent | State::RepReceived | State::ReqReceived);
        if open && (c.remote_id == 0 || c.remote_id == rej.local_id() || rej.local_id() == 0) {
            self.connections.remove(&id);
            self.events.push_back(Event::Rejected { id, reason: RejectReason::of(rej.reason()), private });
        }
    }

    fn release(&mut self, now: Duration, from: AddressHandle, tid: u64, dreq: &CmDreq) {
        let id = dreq.remote_id();
        let drep = CmDrep::default().with_local_id(id).with_remote_id(dreq.local_id());
        match self.connections.get_mut(&id).filter(|c| c.remote_id == dreq.local_id()) {
            Some(c) if matches!(c.state, State::Established | State::RepSent | State::DreqSent) => {
                (c.state, c.due, c.last) = (State::TimeWait, Some(now + timeout(TIME_WAIT)), None);
                self.events.push_back(Event::Disconnected { id });
            }
            _ => {}
        }
        // Answered whether it is known or not: the peer has nothing to wait for.
        self.answer(from, tid, Body::Drep(drep));
    }
}

fn rej(id: u32, remote_id: u32, message: u8, reason: RejectReason) -> CmRej {
    CmRej::default().with_local_id(id).with_remote_id(remote_id).with_message(message).with_reason(reason.code())
}

fn message(tid: u64, body: Body, private: Vec<u8>) -> Result<[u8; MAD_BYTES]> {
    if private.len() > body.room() {
        return Err(Error::Invalid("more private data than the message has room for"));
    }
    Ok(Message { tid, body, private }.encode())
}
