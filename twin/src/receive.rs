//! Frames off the wire: what they are, whose they are, and to whom they go.
use crate::counters::count;
use crate::host::Host;
use crate::requester::{HALF, PSN};
use crate::Twin;
use ferric_abi::codes::{QpState, QpType};
use ferric_abi::context::RspCtx;
use ferric_abi::meta::frame_kind;
use ferric_abi::wire::{opcode, syndrome, Eth, Ipv4, Ipv6, Vlan, ECN_CE};
use ferric_model::net::echo::Outcome;
use ferric_model::net::networks::{Network, Through};
use ferric_model::net::parse::{receive as parse, Drop, Parsed};
use ferric_model::roce::peer::{foreign, meant, stranger, Path, Seen};
use ferric_model::roce::responder::{kind, Packet};
use ferric_model::switch::functions::raw_queues;

/// Shortest Ethernet frame without FCS: a sender's MAC fills up.
const SHORTEST: usize = 60;
/// VLAN identifier in a tag.
const VID: u16 = 0xfff;
/// Both queue pairs of a packet may be limited members of a partition: this bit says full.
const FULL_MEMBER: u16 = 0x8000;

fn vid(p: &Parsed) -> Option<u16> {
    p.has_vlan.then_some(p.vlan_tci & VID)
}

fn header<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    if let Some(bytes) = frame.get(at..at + N) {
        out.copy_from_slice(bytes);
    }
    out
}

impl Twin {
    /// A frame without an outer header, which came from `through`. A sender's MAC has filled up what came through none.
    pub(crate) fn receive_from(&mut self, host: &mut dyn Host, frame: &[u8], through: Through) {
        if frame.len() < SHORTEST && through == Through::None {
            let mut padded = frame.to_vec();
            padded.resize(SHORTEST, 0);
            return self.receive_from(host, &padded, through);
        }
        let network = self.network(through);
        count!(self, 0, "rx.rx_frames");
        match parse(frame, false) {
            Err(Drop::MacError) => count!(self, 0, "rx.rx_mac_error"),
            Err(Drop::Oversize) => count!(self, 0, "rx.rx_oversize"),
            Err(Drop::Malformed) => count!(self, 0, "rx.rx_malformed"),
            Err(Drop::BadIcrc) => count!(self, 0, "rx.rx_bad_icrc"),
            Ok(p) if p.raw => self.receive_raw(host, &p, frame, network),
            Ok(p) => self.receive_roce(host, &p, frame, network),
        }
    }

    fn receive_raw(&mut self, host: &mut dyn Host, p: &Parsed, frame: &[u8], network: Network) {
        if self.listening.other(header(frame, 0), network) {
            return count!(self, 0, "rx.rx_other_station");
        }
        count!(self, 0, "rx.rx_raw");
        let network = self.listening.addressed(header(frame, 0), network);
        if p.kind != frame_kind::OTHER {
            match self.station.receive(frame, self.ticks as u32, network) {
                Some(Outcome::Answered(name, answer, function)) => {
                    self.count_answer(name);
                    return self.emit(function as u16, answer);
                }
                Some(Outcome::Limited) => return count!(self, 0, "echo.echo_limited"),
                Some(Outcome::Malformed) => return count!(self, 0, "echo.echo_malformed"),
                Some(Outcome::Found) => return count!(self, 0, "echo.echo_found"),
                Some(Outcome::PassedOn) => count!(self, 0, "echo.echo_passed_on"),
                None => {}
            }
        }
        let queues = raw_queues(self.raw_qpn, &self.tables.raw, network);
        if queues.is_empty() {
            return self.deliver(host, None, p, frame);
        }
        queues.into_iter().for_each(|qpn| self.deliver(host, Some(qpn), p, frame));
    }

    /// The card has answered by itself, as `name` says.
    pub(crate) fn count_answer(&mut self, name: &str) {
        match name {
            "echo_arp" => count!(self, 0, "echo.echo_arp"),
            "echo_nd" => count!(self, 0, "echo.echo_nd"),
            "echo_ping" => count!(self, 0, "echo.echo_ping"),
            _ => count!(self, 0, "echo.echo_ping6"),
        }
    }

    fn path_of(&self, qpn: u32) -> Option<Path> {
        let path = self.tables.path.get(qpn as usize).filter(|p| p.valid())?;
        Some(Path { smac: path.smac(), sip: path.sip(), dip: path.dip(), ipv6: path.ipv6(), vlan: path.vlan().then_some(path.vlan_tci() & VID), function: path.function() })
    }

    fn receive_roce(&mut self, host: &mut dyn Host, p: &Parsed, frame: &[u8], network: Network) {
        let l3 = Eth::BYTES + if p.has_vlan { Vlan::BYTES } else { 0 };
        let (sip, dip) = if p.ipv6 {
            let ip = Ipv6(header(frame, l3));
            (ip.src(), ip.dst())
        } else {
            let ip = Ipv4(header(frame, l3));
            (ip.src().into(), ip.dst().into())
        };
        let datagram = p.opcode >> opcode::OPERATION_BITS == opcode::CLASS_UD;
        let seen = Seen { qpn: p.dest_qpn, datagram, dmac: Eth(header(frame, 0)).dst(), sip, dip, ipv6: p.ipv6, vlan: vid(p), network };
        // Queue pair 1 is that of the function whose address it is.
        let qpn = meant(&seen, self.listening.owner(header(frame, 0), network), self.log_share);
        let path = self.path_of(qpn);
        if foreign(&seen, path.as_ref()) {
            return self.count_foreign();
        }
        if stranger(&seen, path.as_ref(), self.log_share) {
            return count!(self, 0, "rx.rx_stranger");
        }
        count!(self, 0, "rx.rx_roce");
        if p.ecn == ECN_CE {
            count!(self, 0, "cc.np_ecn_marked_roce_packets");
        }
        if p.opcode == opcode::CNP {
            count!(self, 0, "cc.rp_cnp_ignored");
        }
        if (opcode::READ_RESPONSE_FIRST..=opcode::ATOMIC_ACKNOWLEDGE).contains(&p.opcode) {
            let at = usize::from(p.pay_off);
            return self.response(host, p, &frame[at..at + usize::from(p.pay_len)]);
        }
        if !p.multicast {
            return self.deliver(host, Some(qpn), p, frame);
        }
        let group = u128::from(p.compare) << 64 | u128::from(p.operand);
        let vlan = vid(p);
        let mut members = self.groups();
        members.retain(|(m, _)| m.valid() && m.group() == group && m.ipv6() == p.ipv6 && network.has(m.function().into()));
        let members: Vec<u32> = members.into_iter().filter(|(_, of)| *of == vlan).map(|(m, _)| m.qpn()).collect();
        if members.is_empty() {
            count!(self, 0, "mcast.mcast_no_group");
            // The number of all groups is no queue pair's.
            return self.deliver(host, Some(p.dest_qpn), p, frame);
        }
        for qpn in members {
            count!(self, 0, "mcast.mcast_delivered");
            self.deliver(host, Some(qpn), p, frame);
        }
    }

    /// Attachments with the VLAN of their queue pairs' paths.
    fn groups(&self) -> Vec<(ferric_abi::context::McastCtx, Option<u16>)> {
        self.tables.mcast.iter().map(|m| (*m, self.path_of(m.qpn()).and_then(|path| path.vlan))).collect()
    }

    /// A request, or a raw frame, for the responder of `qpn`.
    fn deliver(&mut self, host: &mut dyn Host, qpn: Option<u32>, p: &Parsed, frame: &[u8]) {
        let receives = |c: &&RspCtx| c.state() == QpState::Rtr as u8 || c.state() == QpState::Rts as u8;
        let line = qpn.and_then(|qpn| self.tables.rsp.get(qpn as usize)).filter(receives);
        let line = line.filter(|c| !p.raw || c.qp_type() == QpType::Raw as u8);
        count!(self, line.map_or(0, |c| c.function()), "resp.rx_requests");
        let (Some(qpn), true) = (qpn, line.is_some()) else {
            return if p.raw { count!(self, 0, "resp.raw_no_queue") } else { count!(self, 0, "resp.drop_no_qp") };
        };
        if p.opcode == opcode::CNP && !p.raw {
            return;
        }
        let packet = Packet {
            raw: p.raw,
            handle: 0,
            frame_len: frame.len() as u32,
            pay_off: p.pay_off.into(),
            pay_len: p.pay_len.into(),
            pad: p.pad.into(),
            opcode: p.opcode,
            ack_req: p.ack_req,
            solicited: p.solicited,
            pkey: p.pkey,
            qpn,
            psn: p.psn,
            va: p.va,
            rkey: p.rkey,
            dma_len: p.dma_len,
            imm: p.imm,
            operand: p.operand,
            compare: p.compare,
            qkey: p.qkey,
            src_qpn: p.src_qpn,
            v6: p.ipv6,
            tag: p.has_vlan,
        };
        self.request(host, qpn, &packet, frame);
    }

    /// Counts what became of a request, by the gateware's causes.
    pub(crate) fn count_verdict(&mut self, before: &RspCtx, p: &Packet) {
        let f = before.function();
        let (order, answer) = self.verdict.unwrap_or((kind::NOTHING, None));
        let nothing = order == kind::NOTHING;
        if p.raw {
            return if self.empty {
                count!(self, f, "resp.no_recv")
            };
        }
        let class = p.opcode >> opcode::OPERATION_BITS;
        let datagram = before.qp_type() == QpType::Ud as u8;
        let transport = match QpType::from_u8(before.qp_type()) {
            Some(QpType::Rc) => class == opcode::CLASS_RC,
            Some(QpType::Uc) => class == opcode::CLASS_UC,
            Some(QpType::Ud) => matches!(p.opcode, 0x64 | 0x65),
            _ => false,
        };
        let answers = (opcode::READ_RESPONSE_FIRST..=opcode::ATOMIC_ACKNOWLEDGE).contains(&(p.opcode & 31));
        let member = (p.pkey | before.pkey()) & FULL_MEMBER != 0 && (p.pkey ^ before.pkey()) & !FULL_MEMBER == 0;
        if !transport || answers {
            count!(self, f, "resp.drop_bad_transport");
        } else if !member {
            count!(self, f, "resp.drop_bad_pkey");
        } else if datagram && p.qkey != before.qkey() {
            count!(self, f, "resp.drop_bad_qkey");
        } else if before.qp_type() == QpType::Rc as u8 {
            let distance = p.psn.wrapping_sub(before.epsn()) & PSN;
            if distance >= HALF {
                return count!(self, f, "resp.dup_requests");
            }
            if distance > 0 {
                count!(self, f, "resp.out_of_order");
            }
            match answer {
                Some(syndrome::NAK_SEQUENCE) => count!(self, f, "resp.nak_seq_sent"),
                Some(syndrome::NAK_INVALID) if nothing => count!(self, f, "resp.nak_inv_sent"),
                Some(syndrome::NAK_ACCESS) if nothing => count!(self, f, "resp.nak_access_sent"),
                Some(syndrome::NAK_OPERATION) if nothing => count!(self, f, "resp.srq_dead"),
                Some(code) if code >> 5 & 3 == syndrome::KIND_RNR => count!(self, f, "resp.rnr_sent"),
                _ => {}
            }
        } else if nothing && self.empty {
            count!(self, f, "resp.no_recv");
        } else if nothing && datagram {
            count!(self, f, "resp.drop_bad_length");
        } else if nothing {
            count!(self, f, "resp.out_of_order");
        }
    }
}
