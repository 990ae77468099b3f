//! What programs and the communication manager say to each other.
use super::wire::{IpHeader, RejectReason, ServiceStatus};
use crate::types::{Mtu, RtrAttr, RtsAttr};
use crate::ud::AddressHandle;
use crate::Path;
use std::net::IpAddr;
use std::time::Duration;

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
        RtrAttr { mtu: self.mtu, dest_qpn: self.qpn, rq_psn: local.psn, min_rnr_timer, repeat_nak: false, max_dest_rd_atomic: self.initiator_depth.min(16), path: Some(path) }
    }
    /// Attributes with which it goes to RTS.
    pub fn rts(&self, local: &Local) -> RtsAttr {
        RtsAttr { sq_psn: self.psn, timeout: self.ack_timeout, retry_cnt: self.retry_count, rnr_retry: self.rnr_retry, max_rd_atomic: local.initiator_depth.min(self.responder_resources).min(16) }
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

/// A service to be resolved: which datagram queue pair serves it.
#[derive(Clone, Debug)]
pub struct ServiceQuestion {
    /// The other machine.
    pub to: AddressHandle,
    /// Own address.
    pub from: IpAddr,
    /// Service, see [`super::ip_datagram_service_id`].
    pub service_id: u64,
    /// Source port: puts the addresses of annex A11 in front of the private data.
    pub ip_port: Option<u16>,
    /// Private data: 216 bytes, 180 with addresses.
    pub private: Vec<u8>,
}

/// Who serves a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceAnswer {
    /// Anybody?
    pub status: ServiceStatus,
    /// The queue pair.
    pub qpn: u32,
    /// Its Q_Key.
    pub qkey: u32,
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
    /// A peer asks which queue pair serves a service: `answer_service`.
    ServiceRequest {
        /// The question.
        id: u32,
        /// Service asked for.
        service_id: u64,
        /// Addresses of annex A11, if the service ID is one of RDMA over IP.
        ip: Option<IpHeader>,
        /// Private data behind them.
        private: Vec<u8>,
    },
    /// The peer has said who serves a service. When it says nothing the event is `Rejected` with `Timeout`.
    ServiceReply {
        /// The question.
        id: u32,
        /// What it has said.
        answer: ServiceAnswer,
        /// Private data.
        private: Vec<u8>,
    },
    /// The connection has ended.
    Disconnected {
        /// The connection.
        id: u32,
    },
}

/// 4.096 us * 2^n, as all time-outs of chapter 12 are given.
pub fn timeout(exponent: u8) -> Duration {
    Duration::from_nanos(4096u64 << exponent.min(31))
}
