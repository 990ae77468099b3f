//! Golden software model of one end of a reliable connection, written from IBTA volume 1 chapter 9 and nothing else.
//! Requester and responder are separate machines over one memory, as in the standard.
mod memory;
mod requester;
mod responder;
pub mod uc;
pub mod ud;

use super::endpoint::{Done, Endpoint, Factory, Post, Region, RegionSpec, Setup, Slice};
use super::error::Result;
use super::frame::{Frame, Ip, Kind, Op, Syndrome};
use super::ud::{Datagrams, UdSetup};
use ferric_abi::wire::{Aeth, Bth, Eth, Ipv4, Ipv6, Udp, Vlan};
use memory::Memory;
use requester::Requester;
use responder::Responder;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Deliberate faults, to show that a replay notices them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The responder does not count accepted packets.
    PsnNotAdvanced,
    /// The message sequence number also counts packets.
    MsnWrong,
    /// The pad count is one too small (never below zero) and the pad bytes are missing.
    PadWrong,
    /// Remote keys are not compared.
    KeyUnchecked,
    /// One byte behind a region may be reached.
    BoundOffByOne,
    /// The ICRC of sent frames starts from another value.
    IcrcSeedWrong,
    /// Duplicate requests are executed again.
    DuplicateExecuted,
    /// Received ICRCs are not looked at.
    IcrcUnchecked,
    /// Go-back-N starts one packet late.
    RetransmitSkipsOne,
    /// The time-out is half as long as it should be.
    TimeoutHalved,
    /// The RNR NAK timer is not waited for.
    RnrNotWaited,
    /// Packets ahead of the expected one are dropped without NAK.
    GapNotReported,
    /// A WRITE reports no error for a region without the right.
    PermissionUnchecked,
    /// The region's protection domain is not compared.
    DomainUnchecked,
    /// Immediate data comes in the wrong byte order.
    ImmediateSwapped,
    /// A completion says success where it should not.
    ErrorReportedAsSuccess,
    /// A key that a SEND has invalidated goes on working.
    InvalidatedKeyWorks,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::PsnNotAdvanced,
        Self::MsnWrong,
        Self::PadWrong,
        Self::KeyUnchecked,
        Self::BoundOffByOne,
        Self::IcrcSeedWrong,
        Self::DuplicateExecuted,
        Self::IcrcUnchecked,
        Self::RetransmitSkipsOne,
        Self::TimeoutHalved,
        Self::RnrNotWaited,
        Self::GapNotReported,
        Self::PermissionUnchecked,
        Self::DomainUnchecked,
        Self::ImmediateSwapped,
        Self::ErrorReportedAsSuccess,
        Self::InvalidatedKeyWorks,
    ];
}

/// What requester and responder share: the connection, the way out, completions and time.
struct Port {
    setup: Setup,
    defect: Option<Defect>,
    memory: Memory,
    out: Vec<(u64, Vec<u8>)>,
    done: VecDeque<Done>,
    now: u64,
    /// The queue pair is in the error state.
    error: bool,
}

impl Port {
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// A frame of this connection with the given operation and PSN, no payload.
    fn frame(&self, op: Op, psn: u32) -> Frame {
        let p = &self.setup.path;
        let mac = |m: [u8; 6]| m.iter().fold(0u64, |a, b| a << 8 | u64::from(*b));
        let (ip, ethertype) = match (p.sip, p.dip) {
            (IpAddr::V6(s), IpAddr::V6(d)) => (
                Ip::V6(
                    Ipv6::default()
                        .with_version(6)
                        .with_dscp(p.tclass >> 2)
                        .with_ecn(p.tclass & 3)
                        .with_flow_label(p.flow_label)
                        .with_next_header(17)
                        .with_hop_limit(p.hop_limit)
                        .with_src(s.into())
                        .with_dst(d.into()),
                ),
                0x86dd,
            ),
            (s, d) => {
                let v4 = |a: IpAddr| if let IpAddr::V4(a) = a { u32::from(a) } else { 0 };
                let h = Ipv4::default().with_version(4).with_ihl(5).with_dscp(p.tclass >> 2).with_ecn(p.tclass & 3).with_flags(2).with_ttl(p.hop_limit);
                (Ip::V4(h.with_protocol(17).with_src(v4(s)).with_dst(v4(d))), 0x0800)
            }
        };
        let vlan = p.vlan.map(|tci| Vlan(tci.to_be_bytes().iter().copied().chain(u16::to_be_bytes(ethertype)).collect::<Vec<_>>().try_into().unwrap_or_default()));
        let eth = Eth::default().with_dst(mac(p.dmac.0)).with_src(mac(p.smac.0)).with_ethertype(if vlan.is_some() { 0x8100 } else { ethertype });
        let bth = Bth::default().with_opcode(op.code().unwrap_or(0xff)).with_pkey(0xffff).with_dest_qpn(self.setup.peer_qpn).with_psn(psn);
        let udp = Udp::default().with_src_port(p.udp_sport).with_dst_port(4791);
        Frame {
            eth,
            vlan,
            ip,
            udp,
            bth,
            op,
            deth: None,
            feth: None,
            reth: None,
            atomic: None,
            aeth: None,
            atomic_ack: None,
            imm: None,
            ieth: None,
            payload: Vec::new(),
            pad: Vec::new(),
            icrc_error: 0,
        }
    }

    /// Pads and sends.
    fn send(&mut self, mut frame: Frame) {
        let mut pad = frame.payload.len().wrapping_neg() & 3;
        if self.has(Defect::PadWrong) {
            pad = pad.saturating_sub(1);
        }
        frame.bth.set_pad(pad as u8);
        frame.pad = vec![0; pad];
        if self.has(Defect::IcrcSeedWrong) {
            frame.icrc_error = 0x5a5a_0001;
        }
        self.out.push((self.now, frame.encode()));
    }

    fn acknowledge(&mut self, psn: u32, syndrome: Syndrome, msn: u32) {
        let op = Op::plain(Kind::Ack, true, true);
        let mut frame = self.frame(op, psn);
        frame.aeth = Some(Aeth::default().with_syndrome(syndrome.byte()).with_msn(msn));
        self.send(frame);
    }
}

/// The model: one queue pair.
pub struct Golden {
    port: Port,
    requester: Requester,
    responder: Responder,
}

impl Golden {
    /// A connected queue pair.
    pub fn new(setup: &Setup, defect: Option<Defect>) -> Self {
        let port = Port { setup: setup.clone(), defect, memory: Memory::new(defect), out: Vec::new(), done: VecDeque::new(), now: 0, error: false };
        Self { requester: Requester::new(setup), responder: Responder::new(setup), port }
    }

    fn after(&mut self) {
        self.requester.run(&mut self.port);
        if self.port.error {
            self.responder.flush(&mut self.port);
            self.requester.flush(&mut self.port);
        }
    }
}

/// A queue pair number unlike those of common captures, with its upper byte in use.
pub const QPN: u32 = 0x00c0_ffee;

/// A model of a transport. Around it stands the same queue pair: memory, completions, time, the way out.
trait Protocol {
    fn port(&self) -> &Port;
    fn port_mut(&mut self) -> &mut Port;
    fn post_send(&mut self, post: &Post) -> Result<()>;
    fn post_recv(&mut self, id: u64, place: Option<Slice>) -> Result<()>;
    fn receive(&mut self, frame: &[u8]);
    /// Does what needs no time.
    fn settle(&mut self) {}
    /// Does what is due now that time has passed.
    fn elapsed(&mut self) {}
}

impl<P: Protocol> Endpoint for P {
    fn qpn(&self) -> u32 {
        QPN
    }
    fn register(&mut self, spec: &RegionSpec) -> Result<Region> {
        Ok(self.port_mut().memory.register(spec))
    }
    fn write_memory(&mut self, region: &Region, offset: usize, bytes: &[u8]) {
        self.port_mut().memory.bytes_mut(region.index)[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    fn read_memory(&self, region: &Region, offset: usize, len: usize) -> Vec<u8> {
        self.port().memory.bytes(region.index)[offset..offset + len].to_vec()
    }
    fn post_send(&mut self, post: &Post) -> Result<()> {
        Protocol::post_send(self, post)
    }
    fn post_recv(&mut self, id: u64, place: Option<Slice>) -> Result<()> {
        Protocol::post_recv(self, id, place)
    }
    fn receive(&mut self, frame: &[u8]) {
        Protocol::receive(self, frame);
    }
    fn settle(&mut self) {
        Protocol::settle(self);
    }
    fn ticks(&self) -> u64 {
        self.port().now
    }
    fn advance(&mut self, ticks: u64) {
        self.port_mut().now += ticks;
        self.elapsed();
    }
    fn poll(&mut self) -> Option<Done> {
        self.port_mut().done.pop_front()
    }
    fn take_frames(&mut self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut self.port_mut().out)
    }
}

impl Protocol for Golden {
    fn port(&self) -> &Port {
        &self.port
    }
    fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }
    fn post_send(&mut self, post: &Post) -> Result<()> {
        self.requester.post(&self.port, post);
        self.after();
        Ok(())
    }
    fn post_recv(&mut self, id: u64, place: Option<Slice>) -> Result<()> {
        self.responder.post(id, place);
        self.after();
        Ok(())
    }
    fn receive(&mut self, bytes: &[u8]) {
        let Ok(Some(frame)) = Frame::decode(bytes) else { return };
        let wrong_icrc = frame.icrc_error != 0 && !self.port.has(Defect::IcrcUnchecked);
        if wrong_icrc || frame.bth.dest_qpn() != QPN || frame.bth.opcode() >> 5 != 0 || frame.bth.tver() != 0 || frame.bth.pkey() & 0x7fff != 0x7fff {
            return;
        }
        if self.port.error {
            return;
        }
        if frame.op.kind.is_request() {
            self.responder.receive(&mut self.port, &frame);
        } else {
            self.requester.receive(&mut self.port, &frame);
        }
        self.after();
    }
    fn settle(&mut self) {
        self.after();
    }
    fn elapsed(&mut self) {
        self.requester.expire(&mut self.port);
        self.after();
    }
}

/// Makes golden models, all with the same defect, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct GoldenFactory {
    /// Built in.
    pub defect: Option<Defect>,
}

impl Factory for GoldenFactory {
    fn build(&self, setup: &Setup) -> Result<Box<dyn Endpoint>> {
        if setup.unreliable {
            return Ok(Box::new(uc::GoldenUc::new(setup, None)));
        }
        Ok(Box::new(Golden::new(setup, self.defect)))
    }
    fn datagrams(&self, setup: &UdSetup) -> Result<Box<dyn Datagrams>> {
        Ok(Box::new(ud::GoldenDatagrams::new(setup, None)))
    }
}
