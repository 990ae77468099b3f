//! The state machine of the communication manager (IBTA 12.9): both sides of a connection, retries by time-out, duplicates answered again.
use super::connection::{bounded, Asked, Connection, State, CONFIRM, RESPONSE, RETRIES};
use super::question::Questions;
use super::types::{timeout, Event, Local, Remote, Request};
use super::wire::{gid, mtu_of, Body, CmDrep, CmDreq, CmMra, CmRej, CmRep, CmReq, CmRtu, IpHeader, Message, RejectReason, MAD_BYTES};
use crate::error::{Error, Result};
use crate::ud::AddressHandle;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// How long an ended connection is remembered, so that a repeated DREQ is answered, as exponent: 67 ms.
const TIME_WAIT: u8 = 14;

/// The communication manager of one port.
pub struct Cm {
    guid: u64,
    next_id: u32,
    next_tid: u64,
    listening: BTreeSet<u64>,
    connections: BTreeMap<u32, Connection>,
    /// Service IDs that are being resolved.
    pub(super) sidr: Questions,
    pub(super) out: Vec<(AddressHandle, [u8; MAD_BYTES])>,
    pub(super) events: VecDeque<Event>,
}

impl Cm {
    /// `guid`: of this channel adapter, unique in the fabric. `seed`: communication and transaction IDs start from it, so that those of an
    /// earlier life of the program do not come again.
    pub fn new(guid: u64, seed: u64) -> Self {
        Self { guid, next_id: seed as u32, next_tid: seed << 20, listening: BTreeSet::new(), connections: BTreeMap::new(), sidr: Questions::default(), out: Vec::new(), events: VecDeque::new() }
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
            .with_local_id(id)
            .with_service_id(r.service_id)
            .with_local_guid(self.guid)
            .with_local_qpn(r.local.qpn)
            .with_responder_resources(r.local.responder_resources)
            .with_initiator_depth(r.local.initiator_depth)
            .with_remote_timeout(RESPONSE)
            .with_local_timeout(RESPONSE)
            .with_flow_control(true)
            .with_starting_psn(r.local.psn)
            .with_retry_count(r.retry_count)
            .with_pkey(0xffff)
            .with_mtu(r.mtu as u8)
            .with_rnr_retry(r.local.rnr_retry)
            .with_max_cm_retries(RETRIES)
            .with_local_lid(0xffff)
            .with_remote_lid(0xffff)
            .with_local_gid(gid(r.from))
            .with_remote_gid(gid(r.to.dip))
            .with_tclass(r.to.tclass)
            .with_hop_limit(r.to.hop_limit)
            .with_ack_timeout(r.ack_timeout);
        let connection = Connection { sent: Some((r.mtu, r.retry_count, r.ack_timeout)), ..Connection::new(State::ReqSent, r.to, tid) };
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
            .with_local_id(id)
            .with_remote_id(c.remote_id)
            .with_local_qpn(local.qpn)
            .with_starting_psn(local.psn)
            .with_responder_resources(local.responder_resources)
            .with_initiator_depth(local.initiator_depth)
            .with_flow_control(true)
            .with_rnr_retry(local.rnr_retry)
            .with_local_guid(guid);
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
        if let Some(a) = &mut c.asked {
            a.mra = timeout(exponent);
        }
        self.out.push((to, mad));
        Ok(())
    }

    /// Forgets a request as if it had not come: when the peer repeats it, it is a new one. For programs that have too many already.
    pub fn ignore(&mut self, id: u32) -> Result<()> {
        self.in_state(id, &[State::ReqReceived])?;
        self.connections.remove(&id);
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

    pub(super) fn fresh_id(&mut self) -> u32 {
        loop {
            self.next_id = self.next_id.wrapping_add(1);
            if self.next_id != 0 && !self.connections.contains_key(&self.next_id) && !self.sidr.has(self.next_id) {
                return self.next_id;
            }
        }
    }

    pub(super) fn fresh_tid(&mut self) -> u64 {
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
        self.sidr_tick(now);
        let due: Vec<u32> = self.connections.iter().filter(|(_, c)| c.due().is_some_and(|at| at <= now)).map(|(id, _)| *id).collect();
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
            let (state, remote_id, tid, to, told) = (c.state, c.remote_id, c.tid, c.to, c.told);
            self.connections.remove(&id);
            if state == State::DreqSent {
                if !told {
                    self.events.push_back(Event::Disconnected { id });
                }
                continue;
            }
            // The peer may be half connected: it is told (12.6.7) which message led to nothing, here or there.
            let of = match state {
                State::ReqReceived => 0,
                State::RepSent | State::RepReceived => 1,
                _ => 2,
            };
            self.answer(to, tid, Body::Rej(rej(id, remote_id, of, RejectReason::Timeout)));
            self.events.push_back(Event::Rejected { id, reason: RejectReason::Timeout, private: Vec::new() });
        }
    }

    pub(super) fn answer(&mut self, to: AddressHandle, tid: u64, body: Body) {
        self.out.push((to, Message { tid, body, private: Vec::new() }.encode()));
    }

    /// A MAD has come from machine `from`.
    pub fn receive(&mut self, now: Duration, from: AddressHandle, mad: &[u8]) {
        let Some(m) = Message::decode(mad) else {
            log::debug!("a datagram on queue pair 1 that is not the communication manager's");
            return;
        };
        match m.body {
            Body::Req(req) => self.request(now, from, m.tid, &req, m.private),
            Body::Rep(rep) => self.reply(now, from, m.tid, &rep, m.private),
            Body::Mra(mra) => self.patience(now, &from, &mra),
            Body::Rej(rej) => self.rejected(now, &from, &rej, m.private),
            Body::Rtu(rtu) => {
                if let Some(c) = self.of_peer(rtu.remote_id(), &from).filter(|c| c.state == State::RepSent && c.remote_id == rtu.local_id()) {
                    (c.state, c.due) = (State::Established, None);
                    self.events.push_back(Event::Established { id: rtu.remote_id() });
                }
            }
            Body::Dreq(dreq) => self.release(now, from, m.tid, &dreq),
            Body::SidrReq(req) => self.service_asked(from, m.tid, &req, &m.private),
            Body::SidrRep(rep) => self.service_answered(&from, &rep, m.private),
            Body::Drep(drep) => {
                let id = drep.remote_id();
                if self.of_peer(id, &from).is_some_and(|c| c.state == State::DreqSent && c.remote_id == drep.local_id()) {
                    self.ended(now, id);
                }
            }
        }
    }

    /// A connection with the machine from which a message about it has come: what others say of it is nothing.
    fn of_peer(&mut self, id: u32, from: &AddressHandle) -> Option<&mut Connection> {
        self.connections.get_mut(&id).filter(|c| c.to.dip == from.dip)
    }

    /// The connection has ended on both sides; it is remembered for a while.
    fn ended(&mut self, now: Duration, id: u32) {
        let Some(c) = self.connections.get_mut(&id) else { return };
        (c.state, c.due, c.last) = (State::TimeWait, Some(now + timeout(TIME_WAIT)), None);
        if !std::mem::replace(&mut c.told, true) {
            self.events.push_back(Event::Disconnected { id });
        }
    }

    /// Ends what the peer's queue pair `qpn` was connected with, or was being connected with, by another message than number `but`: the peer has
    /// forgotten it, or it would not connect that queue pair again (12.9.8.3.1). True: a connection was there, and its end takes a moment.
    fn end_stale(&mut self, now: Duration, guid: u64, from: &AddressHandle, qpn: u32, but: u32) -> bool {
        let stale: Vec<u32> = self.connections.iter().filter(|(id, c)| **id != but && c.holds(guid, from, qpn)).map(|(id, _)| *id).collect();
        let mut there = false;
        for id in stale {
            log::info!("connection {id:#x} is stale: its peer's queue pair {qpn:#x} asks anew");
            let established = self.connections.get(&id).is_some_and(|c| c.state == State::Established);
            if established && self.disconnect(now, id, &[]).is_ok() {
                // The program is told now: what its queue pair still sends goes to one that does not know it.
                self.connections.entry(id).and_modify(|c| c.told = true);
                self.events.push_back(Event::Disconnected { id });
                there = true;
            } else {
                self.connections.remove(&id);
                self.events.push_back(Event::Rejected { id, reason: RejectReason::StaleConnection, private: Vec::new() });
            }
        }
        there
    }

    fn request(&mut self, now: Duration, from: AddressHandle, tid: u64, req: &CmReq, private: Vec<u8>) {
        let peer = (req.local_id(), req.local_guid());
        if let Some(c) = self.connections.values_mut().find(|c| (c.remote_id, c.remote_guid) == peer && c.to.dip == from.dip) {
            c.asked_again(now);
            // Once more: so is what was said about it, if anything was.
            if let (State::ReqReceived | State::RepSent, Some(mad)) = (c.state, c.last) {
                self.out.push((c.to, mad));
            }
            return;
        }
        let fault = match mtu_of(req.mtu()) {
            _ if !self.listening.contains(&req.service_id()) => Err(RejectReason::InvalidServiceId),
            _ if req.transport() != 0 => Err(RejectReason::InvalidTransport),
            // Not twice: its repeat finds nothing in its way.
            _ if self.end_stale(now, peer.1, &from, req.local_qpn(), 0) => Err(RejectReason::StaleConnection),
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
            qpn: req.local_qpn(),
            psn: req.starting_psn(),
            mtu,
            responder_resources: req.responder_resources(),
            initiator_depth: req.initiator_depth(),
            retry_count: req.retry_count(),
            rnr_retry: req.rnr_retry(),
            ack_timeout: req.ack_timeout(),
        };
        let asked = Some(Asked::now(now, req.remote_timeout(), req.max_cm_retries()));
        let connection = Connection { remote_id: peer.0, remote_guid: peer.1, remote: Some(remote), asked, ..Connection::new(State::ReqReceived, from, tid) };
        self.connections.insert(id, connection);
        let (ip, private) = addresses(req.service_id(), &private);
        self.events.push_back(Event::Request { id, service_id: req.service_id(), remote, ip, private });
    }

    fn reply(&mut self, now: Duration, from: AddressHandle, tid: u64, rep: &CmRep, private: Vec<u8>) {
        let id = rep.remote_id();
        let Some(c) = self.of_peer(id, &from) else {
            return self.answer(from, tid, Body::Rej(rej(id, rep.local_id(), 1, RejectReason::InvalidCommId)));
        };
        match (c.state, c.sent, c.last) {
            (State::ReqSent, Some((mtu, retry_count, ack_timeout)), _) => {
                let remote = Remote {
                    qpn: rep.local_qpn(),
                    psn: rep.starting_psn(),
                    mtu,
                    responder_resources: rep.responder_resources(),
                    initiator_depth: rep.initiator_depth(),
                    retry_count,
                    rnr_retry: rep.rnr_retry(),
                    ack_timeout,
                };
                // Answers its repeats until the program has confirmed.
                let mra = CmMra::default().with_local_id(id).with_remote_id(rep.local_id()).with_message(1).with_service_timeout(CONFIRM);
                (c.state, c.remote, c.due, c.last) = (State::RepReceived, Some(remote), None, message(tid, Body::Mra(mra), Vec::new()).ok());
                (c.remote_id, c.remote_guid, c.left) = (rep.local_id(), rep.local_guid(), 0);
                c.asked = Some(Asked { mra: timeout(CONFIRM), ..Asked::now(now, RESPONSE, RETRIES) });
                self.events.push_back(Event::Reply { id, remote, private });
                self.end_stale(now, rep.local_guid(), &from, remote.qpn, id);
            }
            // Our RTU or MRA was lost.
            (State::RepReceived | State::Established, _, Some(mad)) if c.remote_id == rep.local_id() => {
                c.asked_again(now);
                let to = c.to;
                self.out.push((to, mad));
            }
            _ => {}
        }
    }

    fn patience(&mut self, now: Duration, from: &AddressHandle, mra: &CmMra) {
        let wanted = [State::ReqSent, State::RepSent];
        if let Some(c) = self.of_peer(mra.remote_id(), from).filter(|c| wanted.contains(&c.state)) {
            c.due = Some(now + bounded(timeout(mra.service_timeout())) + timeout(RESPONSE));
        }
    }

    fn rejected(&mut self, now: Duration, from: &AddressHandle, rej: &CmRej, private: Vec<u8>) {
        let (id, reason) = (rej.remote_id(), RejectReason::of(rej.reason()));
        let Some(c) = self.of_peer(id, from) else { return };
        if c.state == State::ReqSent && reason == RejectReason::StaleConnection && c.left > 0 {
            // The peer is ending what it remembers of our queue pair's earlier life (12.9.8.3.1): then the same request will do.
            c.due = Some(now + timeout(RESPONSE));
            return;
        }
        let open = matches!(c.state, State::ReqSent | State::RepSent | State::RepReceived | State::ReqReceived);
        if open && (c.remote_id == 0 || c.remote_id == rej.local_id() || rej.local_id() == 0) {
            self.connections.remove(&id);
            self.events.push_back(Event::Rejected { id, reason, private });
        }
    }

    fn release(&mut self, now: Duration, from: AddressHandle, tid: u64, dreq: &CmDreq) {
        let id = dreq.remote_id();
        let drep = CmDrep::default().with_local_id(id).with_remote_id(dreq.local_id());
        let open = [State::Established, State::RepSent, State::DreqSent];
        if self.of_peer(id, &from).is_some_and(|c| c.remote_id == dreq.local_id() && open.contains(&c.state)) {
            self.ended(now, id);
        }
        // Answered whether it is known or not: the peer has nothing to wait for.
        self.answer(from, tid, Body::Drep(drep));
    }
}

fn rej(id: u32, remote_id: u32, message: u8, reason: RejectReason) -> CmRej {
    CmRej::default().with_local_id(id).with_remote_id(remote_id).with_message(message).with_reason(reason.code())
}

/// RDMA over IP: service IDs of annex A11 promise the addresses in front of the private data.
pub(super) fn addresses(service_id: u64, private: &[u8]) -> (Option<IpHeader>, Vec<u8>) {
    match private.split_first_chunk::<{ IpHeader::BYTES }>() {
        Some((ip, rest)) if service_id >> 24 == 1 => (Some(IpHeader(*ip)), rest.to_vec()),
        _ => (None, private.to_vec()),
    }
}

pub(super) fn message(tid: u64, body: Body, private: Vec<u8>) -> Result<[u8; MAD_BYTES]> {
    if private.len() > body.room() {
        return Err(Error::Invalid("more private data than the message has room for"));
    }
    Ok(Message { tid, body, private }.encode())
}
