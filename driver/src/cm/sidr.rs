//! Service ID resolution (IBTA 12.11): a machine asks which datagram queue pair serves a service, and gets its number and its Q_Key. Two messages, and no
//! connection: the one who asks repeats its request until the answer is there.
use super::connection::{RESPONSE, RETRIES};
use super::machine::{addresses, message, Cm};
use super::question::{Asked, Asking};
use super::types::{timeout, Event, ServiceAnswer, ServiceQuestion};
use super::wire::{Body, CmSidrRep, CmSidrReq, IpHeader, RejectReason, ServiceStatus};
use crate::error::{Error, Result};
use crate::ud::AddressHandle;
use std::time::Duration;

/// How long an answer is kept for a request that is repeated, as exponent: 17 s, since Linux waits 4 s before it repeats one.
const KEPT: u8 = 22;

impl Cm {
    /// Questions after this service become events from now on.
    pub fn serve(&mut self, service_id: u64) {
        self.sidr.listening.insert(service_id);
    }

    /// No longer.
    pub fn serve_no_more(&mut self, service_id: u64) {
        self.sidr.listening.remove(&service_id);
    }

    /// Asks a machine who serves a service.
    pub fn ask_service(&mut self, now: Duration, q: &ServiceQuestion) -> Result<u32> {
        let mut private = Vec::new();
        if let Some(port) = q.ip_port {
            private.extend(IpHeader::between(q.from, port, q.to.dip).0);
        }
        private.extend(&q.private);
        let (id, tid) = (self.fresh_id(), self.fresh_tid());
        let req = CmSidrReq::default().with_request_id(id).with_pkey(0xffff).with_service_id(q.service_id);
        let mad = message(tid, Body::SidrReq(req), private)?;
        self.sidr.asking.insert(id, Asking { to: q.to, mad, due: now + timeout(RESPONSE), left: RETRIES });
        self.out.push((q.to, mad));
        Ok(id)
    }

    /// Answers a question. Private data: 136 bytes.
    pub fn answer_service(&mut self, now: Duration, id: u32, answer: &ServiceAnswer, private: &[u8]) -> Result<()> {
        let asked = self.sidr.asked.get_mut(&id).filter(|a| a.answer.is_none()).ok_or(Error::State)?;
        let mad = message(asked.tid, Body::SidrRep(rep(asked.request_id, asked.service_id, answer)), private.to_vec())?;
        asked.answer = Some((mad, now + timeout(KEPT)));
        self.out.push((asked.from, mad));
        Ok(())
    }

    /// Gives up a question: of our own, whose answer nobody waits for any more, or a peer's, as if it had not come.
    pub fn forget_service(&mut self, id: u32) {
        self.sidr.asking.remove(&id);
        if self.sidr.asked.get(&id).is_some_and(|a| a.answer.is_none()) {
            self.sidr.asked.remove(&id);
        }
    }

    /// Machine that has asked.
    pub fn asker(&self, id: u32) -> Option<AddressHandle> {
        self.sidr.asked.get(&id).map(|a| a.from)
    }

    /// Questions that are remembered: own ones and those of peers.
    pub fn questions(&self) -> usize {
        self.sidr.asking.len() + self.sidr.asked.len()
    }

    pub(super) fn sidr_tick(&mut self, now: Duration) {
        self.sidr.asked.retain(|_, a| a.answer.is_none_or(|(_, until)| until > now));
        let due: Vec<u32> = self.sidr.asking.iter().filter(|(_, a)| a.due <= now).map(|(id, _)| *id).collect();
        for id in due {
            let Some(a) = self.sidr.asking.get_mut(&id) else { continue };
            if a.left > 0 {
                (a.left, a.due) = (a.left - 1, now + timeout(RESPONSE));
                self.out.push((a.to, a.mad));
            } else {
                self.sidr.asking.remove(&id);
                self.events.push_back(Event::Rejected { id, reason: RejectReason::Timeout, private: Vec::new() });
            }
        }
    }

    pub(super) fn service_asked(&mut self, from: AddressHandle, tid: u64, req: &CmSidrReq, private: &[u8]) {
        let (request_id, service_id) = (req.request_id(), req.service_id());
        if let Some(known) = self.sidr.asked.values().find(|a| (a.from.dip, a.request_id, a.service_id) == (from.dip, request_id, service_id)) {
            // Once more: so is what was said, if anything was.
            if let Some((mad, _)) = known.answer {
                self.out.push((known.from, mad));
            }
            return;
        }
        if !self.sidr.listening.contains(&service_id) {
            let nobody = ServiceAnswer { status: ServiceStatus::Unsupported, qpn: 0, qkey: 0 };
            return self.answer(from, tid, Body::SidrRep(rep(request_id, service_id, &nobody)));
        }
        let id = self.fresh_id();
        self.sidr.asked.insert(id, Asked { from, tid, request_id, service_id, answer: None });
        let (ip, private) = addresses(service_id, private);
        self.events.push_back(Event::ServiceRequest { id, service_id, ip, private });
    }

    pub(super) fn service_answered(&mut self, from: &AddressHandle, rep: &CmSidrRep, private: Vec<u8>) {
        let id = rep.request_id();
        // What other machines say of it is nothing.
        if self.sidr.asking.get(&id).is_some_and(|a| a.to.dip == from.dip) {
            self.sidr.asking.remove(&id);
            let answer = ServiceAnswer { status: ServiceStatus::of(rep.status()), qpn: rep.qpn(), qkey: rep.qkey() };
            self.events.push_back(Event::ServiceReply { id, answer, private });
        }
    }
}

fn rep(request_id: u32, service_id: u64, answer: &ServiceAnswer) -> CmSidrRep {
    CmSidrRep::default().with_request_id(request_id).with_status(answer.status.code()).with_qpn(answer.qpn).with_service_id(service_id).with_qkey(answer.qkey)
}
