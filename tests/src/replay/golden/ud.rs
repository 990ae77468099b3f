//! Golden model of a datagram queue pair, from IBTA volume 1, 9.8.3 (packets), 9.6.1.5 (Q_Key), 11.4.1.2 (GRH area) and annex A17 (RoCEv2).
use super::super::error::{Error, Result};
use super::super::frame::{psn_add, Frame, Ip, Kind, Op};
use super::super::ud::{Datagrams, Event, Outgoing, UdSetup, CLASS, FILL};
use ferric_abi::wire::{Bth, Deth, Eth, ImmDt, Ipv4, Ipv6, Udp, Vlan};
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::CqeStatus;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Deliberate faults, to show that a replay notices them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdDefect {
    /// Any Q_Key will do.
    QkeyUnchecked,
    /// Received ICRCs are not looked at.
    IcrcUnchecked,
    /// The payload begins at the front of the buffer.
    NoArea,
    /// An IPv4 header stands in the first half of the area.
    HeaderInFront,
    /// The completion names its own queue pair as sender.
    OwnSource,
    /// Sent with a source queue pair of zero.
    SourceMissing,
    /// All PSNs are the first one.
    PsnNotAdvanced,
    /// One pad byte is missing.
    PadWrong,
    /// Immediate data in the wrong byte order.
    ImmediateSwapped,
    /// Its own Q_Key is sent, whatever was asked for.
    OwnQkeySent,
    /// The hop limit is always 63.
    HopLimitFixed,
    /// Datagrams are acknowledged.
    Acknowledges,
}

impl UdDefect {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::QkeyUnchecked,
        Self::IcrcUnchecked,
        Self::NoArea,
        Self::HeaderInFront,
        Self::OwnSource,
        Self::SourceMissing,
        Self::PsnNotAdvanced,
        Self::PadWrong,
        Self::ImmediateSwapped,
        Self::OwnQkeySent,
        Self::HopLimitFixed,
        Self::Acknowledges,
    ];
}

/// The model.
pub struct GoldenDatagrams {
    setup: UdSetup,
    defect: Option<UdDefect>,
    psn: u32,
    receives: VecDeque<(u64, usize)>,
    out: Vec<Vec<u8>>,
    done: VecDeque<Event>,
}

/// Its queue pair number.
const QPN: u32 = 0x00ab_cdef;

impl GoldenDatagrams {
    /// A queue pair that is ready to send.
    pub fn new(setup: &UdSetup, defect: Option<UdDefect>) -> Self {
        Self { setup: setup.clone(), defect, psn: setup.sq_psn, receives: VecDeque::new(), out: Vec::new(), done: VecDeque::new() }
    }

    fn has(&self, defect: UdDefect) -> bool {
        self.defect == Some(defect)
    }

    fn frame(&self, d: &Outgoing) -> Result<Frame> {
        let s = &self.setup.source;
        let mac = |m: [u8; 6]| m.iter().fold(0u64, |a, b| a << 8 | u64::from(*b));
        let hops = if self.has(UdDefect::HopLimitFixed) { 63 } else { d.to.hop_limit };
        let (dscp, ecn) = (d.to.tclass >> 2, d.to.tclass & 3);
        let (ip, ethertype) = match (s.sip, d.to.dip) {
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let h = Ipv6::default().with_version(6).with_dscp(dscp).with_ecn(ecn).with_flow_label(s.flow_label).with_next_header(17);
                (Ip::V6(h.with_hop_limit(hops).with_src(from.into()).with_dst(to.into())), 0x86dd)
            }
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let h = Ipv4::default().with_version(4).with_ihl(5).with_dscp(dscp).with_ecn(ecn).with_flags(2).with_ttl(hops).with_protocol(17);
                (Ip::V4(h.with_src(from.into()).with_dst(to.into())), 0x0800)
            }
            _ => return Err(Error::Endpoint("addresses of two families".into())),
        };
        let vlan = s.vlan.map(|tci| Vlan::default().with_pcp((tci >> 13) as u8).with_dei(tci >> 12 & 1 == 1).with_vid(tci & 0xfff).with_ethertype(ethertype));
        let eth = Eth::default().with_dst(mac(d.to.dmac.0)).with_src(mac(s.smac.0)).with_ethertype(if vlan.is_some() { 0x8100 } else { ethertype });
        let op = Op { imm: d.imm.is_some(), ..Op::plain(Kind::Send, true, true) };
        let pad = d.data.len().wrapping_neg() & 3;
        let pad = if self.has(UdDefect::PadWrong) { pad.saturating_sub(1) } else { pad };
        let opcode = CLASS << 5 | op.code().unwrap_or(0);
        let bth = Bth::default().with_opcode(opcode).with_solicited(d.solicited).with_pad(pad as u8).with_pkey(0xffff).with_dest_qpn(d.dest_qpn).with_psn(self.psn);
        // The highest bit asks for the queue pair's own (10.2.4).
        let own = d.qkey >> 31 == 1 || self.has(UdDefect::OwnQkeySent);
        let qkey = if own { self.setup.qkey ^ u32::from(self.has(UdDefect::OwnQkeySent)) } else { d.qkey };
        let imm = d.imm.map(|i| ImmDt::default().with_imm(if self.has(UdDefect::ImmediateSwapped) { i.swap_bytes() } else { i }));
        let src = if self.has(UdDefect::SourceMissing) { 0 } else { QPN };
        Ok(Frame {
            eth,
            vlan,
            ip,
            udp: Udp::default().with_src_port(s.udp_sport).with_dst_port(4791),
            bth,
            op,
            deth: Some(Deth::default().with_qkey(qkey).with_src_qpn(src)),
            reth: None,
            atomic: None,
            aeth: None,
            atomic_ack: None,
            imm,
            feth: None,
            ieth: None,
            payload: d.data.clone(),
            pad: vec![0; pad],
            icrc_error: 0,
        })
    }
}

impl Datagrams for GoldenDatagrams {
    fn qpn(&self) -> u32 {
        QPN
    }
    fn send(&mut self, d: &Outgoing) -> Result<()> {
        let event = Event { id: d.id, recv: false, status: CqeStatus::Success, len: 0, imm: None, solicited: false, src_qp: 0, grh: false, buffer: Vec::new() };
        if d.data.len() > self.setup.mtu.bytes() {
            self.done.push_back(Event { status: CqeStatus::LocalLength, ..event });
            return Ok(());
        }
        self.out.push(self.frame(d)?.encode());
        if !self.has(UdDefect::PsnNotAdvanced) {
            self.psn = psn_add(self.psn, 1);
        }
        self.done.push_back(event);
        Ok(())
    }
    fn post_recv(&mut self, id: u64, len: usize) -> Result<()> {
        self.receives.push_back((id, len));
        Ok(())
    }
    fn receive(&mut self, bytes: &[u8]) {
        let Ok(Some(f)) = Frame::decode(bytes) else { return };
        let Some(deth) = f.deth else { return };
        let whole = f.icrc_error == 0 || self.has(UdDefect::IcrcUnchecked);
        let known = deth.qkey() == self.setup.qkey || self.has(UdDefect::QkeyUnchecked);
        let kind = f.bth.opcode() >> 5 == CLASS && f.op.kind == Kind::Send && f.op.first && f.op.last && f.bth.tver() == 0;
        let fits = f.payload.len() <= self.setup.mtu.bytes() && f.pad.len() == f.payload.len().wrapping_neg() & 3;
        if !(whole && known && kind && fits) || f.bth.dest_qpn() != QPN || f.bth.pkey() & 0x7fff != 0x7fff {
            return;
        }
        let Some((id, len)) = self.receives.pop_front() else { return };
        let total = f.payload.len() + GRH_BYTES;
        let mut buffer = vec![FILL; len];
        let mut status = CqeStatus::LocalLength;
        if total <= len {
            status = CqeStatus::Success;
            let l3 = 14 + f.vlan.map_or(0, |_| 4);
            match f.ip {
                Ip::V4(_) if self.has(UdDefect::HeaderInFront) => buffer[..20].copy_from_slice(&bytes[l3..l3 + 20]),
                Ip::V4(_) => buffer[20..40].copy_from_slice(&bytes[l3..l3 + 20]),
                Ip::V6(_) => buffer[..40].copy_from_slice(&bytes[l3..l3 + 40]),
            }
            let at = if self.has(UdDefect::NoArea) { 0 } else { GRH_BYTES };
            buffer[at..at + f.payload.len()].copy_from_slice(&f.payload);
        }
        let imm = f.imm.filter(|_| status == CqeStatus::Success).map(|i| i.imm());
        let src_qp = if self.has(UdDefect::OwnSource) { QPN } else { deth.src_qpn() };
        self.done.push_back(Event { id, recv: true, status, len: total as u32, imm, solicited: f.bth.solicited(), src_qp, grh: true, buffer });
        if self.has(UdDefect::Acknowledges) {
            self.out.push(bytes.to_vec());
        }
    }
    fn settle(&mut self) {}
    fn take_frames(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.out)
    }
    fn poll(&mut self) -> Option<Event> {
        self.done.pop_front()
    }
}
