//! What the software codecs read, as the blocks' record; and random frames.
use crate::tb::{Fields, Rng};
use crate::uet::head::types::{cause, UetHead};
use ferric_abi::uet::codes::{AtomicOp, NextHeader, PdsType, SesOpcode};
use ferric_abi::uet::{PdsPrologue, SesAtomic, SesCompare, SesFirst, SesHead, SesMedium, SesNext, SesResponseData, SesResponseDataSmall, SesSmall};
use ferric_abi::wire::{ethertype, protocol, Eth, Ipv4, Udp, Vlan};
use ferric_uet::wire::{Bad, Parsed, Pds, Registers, Ses, Trim};

/// The cause by which the parser knows it; none: what is in front of UDP is not its affair.
pub fn cause_of(bad: Bad) -> Option<u64> {
    Some(match bad {
        Bad::NotUet => cause::NOT_UET,
        Bad::Truncated => cause::TRUNCATED,
        Bad::UdpLength => cause::UDP_LENGTH,
        Bad::PdsShort => cause::PDS_SHORT,
        Bad::PdsType(_) => cause::PDS_TYPE,
        Bad::Tss => cause::TSS,
        Bad::Ccx => cause::CCX,
        Bad::NextHeader(_) => cause::NEXT_HEADER,
        Bad::NextNotAllowed(_) => cause::NEXT_NOT_ALLOWED,
        Bad::SesShort => cause::SES_SHORT,
        Bad::Version(_) => cause::VERSION,
        Bad::PayloadLength => cause::PAYLOAD_LENGTH,
        Bad::ShortForm => cause::SHORT_FORM,
        Bad::HeaderData => cause::HEADER_DATA,
        Bad::Range => cause::RANGE,
        Bad::Datagram => cause::DATAGRAM,
        Bad::Fragment | Bad::IpChecksum | Bad::IpLength | Bad::Group | Bad::Crc => return None,
    })
}

/// A packet as the parser gets it: bytes behind IP's header, whether it is native, how it was trimmed.
#[derive(Clone, Debug)]
pub struct Packet {
    pub frame: Vec<u8>,
    pub bytes: Vec<u8>,
    pub native: bool,
    pub trim: u8,
}

/// The packet of a frame, if there is IP and something in it.
pub fn packet(frame: &[u8], registers: &Registers) -> Option<Packet> {
    let mut at = Eth::BYTES;
    let mut ether = Eth(*frame.first_chunk()?).ethertype();
    if ether == ethertype::VLAN {
        ether = Vlan(*frame[at..].first_chunk()?).ethertype();
        at += Vlan::BYTES;
    }
    if ether != ethertype::IPV4 {
        return None;
    }
    let ip = Ipv4(*frame[at..].first_chunk()?);
    let bytes = frame.get(at + Ipv4::BYTES..at + ip.total_length() as usize)?.to_vec();
    let native = ip.protocol() != protocol::UDP;
    if native && Some(ip.protocol()) != registers.native || bytes.is_empty() {
        return None;
    }
    let trim = match ip.dscp() {
        dscp if dscp == registers.dscp_trimmed => 1,
        dscp if dscp == registers.dscp_trimmed_last => 2,
        _ => 0,
    };
    Some(Packet { frame: frame.to_vec(), bytes, native, trim })
}

/// The record that the parser makes of it.
pub fn record(parsed: &Parsed) -> Vec<u32> {
    let mut all: Vec<(&str, u128)> = vec![("carried.native", parsed.carriage.native.is_some().into()), ("carried.entropy", parsed.carriage.entropy.into())];
    let trim = match parsed.trim {
        None => 0,
        Some(Trim::Path) => 1,
        Some(Trim::LastHop) => 2,
    };
    all.push(("carried.trim", trim));
    let front = if parsed.carriage.native.is_some() { ferric_abi::uet::UetEntropy::BYTES } else { Udp::BYTES };
    all.push(("pay_off", (front + parsed.pds.bytes().len() + parsed.ses.bytes().len()) as u128));
    all.push(("pay_len", if trim == 0 { parsed.payload.len() as u128 } else { 0 }));
    all.push(("reserved", (!parsed.reserved().is_empty()).into()));
    let bytes = parsed.pds.bytes();
    let prologue = PdsPrologue([bytes[0], bytes[1]]);
    all.extend([("pds.kind", prologue.kind().into()), ("pds.follows", prologue.next().into())]);
    match parsed.pds {
        Pds::Request(h, cc) => {
            all.extend([("pds.retx", h.retx().into()), ("pds.ar", h.ar().into()), ("pds.syn", h.syn().into()), ("pds.word", h.clear_offset().into()), ("pds.psn", h.psn().into())]);
            all.extend([("pds.spdcid", h.spdcid().into()), ("pds.dpdcid", h.dpdcid().into())]);
            all.extend(cc.map(|cc| ("pds.payload", u32::from_be_bytes(cc.0).into())));
        }
        Pds::Ack(h, cc) => {
            all.extend([("pds.marked", h.marked().into()), ("pds.retx", h.retx().into()), ("pds.probe", h.probe().into()), ("pds.req", h.req().into()), ("pds.word", h.psn_offset().into())]);
            all.extend([("pds.psn", h.cack().into()), ("pds.spdcid", h.spdcid().into()), ("pds.dpdcid", h.dpdcid().into())]);
            if let Some(cc) = cc {
                all.extend([("pds.cc_type", cc.cc_type().into()), ("pds.mpr", cc.mpr().into()), ("pds.sack_offset", cc.sack_offset().into())]);
                all.extend([("pds.bitmap", cc.bitmap().into()), ("pds.state", cc.state().into())]);
            }
        }
        Pds::Nack(h) => {
            all.extend([("pds.marked", h.marked().into()), ("pds.retx", h.retx().into()), ("pds.rudi", h.rudi().into()), ("pds.word", u128::from(h.code()) << 8 | u128::from(h.vendor()))]);
            all.extend([("pds.psn", h.psn().into()), ("pds.spdcid", h.spdcid().into()), ("pds.dpdcid", h.dpdcid().into()), ("pds.payload", h.payload().into())]);
        }
        Pds::Control(h) => {
            all.extend([("pds.rod", h.rod().into()), ("pds.retx", h.retx().into()), ("pds.ar", h.ar().into()), ("pds.syn", h.syn().into()), ("pds.word", h.opaque().into())]);
            all.extend([("pds.psn", h.psn().into()), ("pds.spdcid", h.spdcid().into()), ("pds.dpdcid", h.dpdcid().into()), ("pds.payload", h.payload().into())]);
        }
        Pds::Rudi(h) => all.extend([("pds.marked", h.marked().into()), ("pds.retx", h.retx().into()), ("pds.psn", h.packet_id().into())]),
        Pds::Uud(_) => {}
    }
    macro_rules! request {
        ($h:ident, $form:expr) => {
            all.extend([("ses.form", $form as u128), ("ses.opcode", $h.opcode().into()), ("ses.dc", $h.dc().into()), ("ses.ie", $h.ie().into()), ("ses.rel", $h.rel().into())]);
            all.extend([("ses.hd", $h.hd().into()), ("ses.eom", $h.eom().into()), ("ses.som", $h.som().into()), ("ses.generation", $h.generation().into())]);
            all.extend([("ses.job", $h.job_id().into()), ("ses.pid", $h.pid().into()), ("ses.index", $h.index().into()), ("ses.request_length", $h.request_length().into())]);
        };
    }
    macro_rules! response {
        ($h:ident, $form:expr) => {
            all.extend([("ses.form", $form as u128), ("ses.opcode", $h.opcode().into()), ("ses.list", $h.list().into()), ("ses.code", $h.code().into()), ("ses.job", $h.job_id().into())]);
        };
    }
    let operands = match parsed.ses {
        Ses::Small(_, o) | Ses::Medium(_, o) | Ses::First(_, o) | Ses::Next(_, o) => o,
        _ => Default::default(),
    };
    match parsed.ses {
        Ses::None => {}
        Ses::Small(h, _) => {
            request!(h, NextHeader::Small);
            all.push(("ses.offset", h.offset().into()));
        }
        Ses::Medium(h, _) => {
            request!(h, NextHeader::Medium);
            all.extend([("ses.offset", h.data().into()), ("ses.initiator", h.initiator().into()), ("ses.key", h.key().into())]);
        }
        Ses::First(h, _) => {
            request!(h, NextHeader::Standard);
            all.extend([("ses.message", h.message_id().into()), ("ses.offset", h.offset().into()), ("ses.initiator", h.initiator().into()), ("ses.key", h.key().into())]);
            all.push(("ses.header_data", h.header_data().into()));
        }
        Ses::Next(h, _) => {
            request!(h, NextHeader::Standard);
            all.extend([("ses.message", h.message_id().into()), ("ses.offset", h.offset().into()), ("ses.initiator", h.initiator().into()), ("ses.key", h.key().into())]);
            all.push(("ses.message_offset", h.message_offset().into()));
        }
        Ses::Response(h) => {
            response!(h, NextHeader::Response);
            all.extend([("ses.message", h.message_id().into()), ("ses.generation", h.generation().into()), ("ses.modified_length", h.modified_length().into())]);
        }
        Ses::Data(h) => {
            response!(h, NextHeader::ResponseData);
            all.extend([("ses.message", h.message_id().into()), ("ses.read_id", h.read_id().into()), ("ses.modified_length", h.modified_length().into())]);
            all.push(("ses.message_offset", h.message_offset().into()));
        }
        Ses::DataSmall(h) => {
            response!(h, NextHeader::ResponseDataSmall);
            all.push(("ses.request_psn", h.request_psn().into()));
        }
    }
    if let Some(h) = operands.atomic {
        all.extend([("operands.atomic", 1), ("operands.operation", h.operation().into()), ("operands.datatype", h.datatype().into()), ("operands.control", h.control().into())]);
    }
    if let Some(h) = operands.compare {
        all.extend([("operands.swaps", 1), ("operands.compare", h.compare()), ("operands.swap", h.swap())]);
    }
    Fields::of::<UetHead>().pack(&all)
}

/// Bytes with a record of the codecs in front that has been changed by `$change`.
macro_rules! changed {
    ($bytes:expr, $kind:ident, $change:expr) => {{
        let head = $kind(*$bytes.first_chunk().unwrap());
        let head: $kind = $change(head);
        $bytes[..$kind::BYTES].copy_from_slice(&head.0);
    }};
}

/// A frame that is often right: a random type, a next header that mostly fits, random fields, lengths that mostly agree.
pub fn random(rng: &mut Rng, registers: &Registers) -> Vec<u8> {
    let kind = if rng.percent(4) { rng.below(32) as u8 } else { 2 + rng.below(13) as u8 };
    let next = if rng.percent(4) {
        rng.below(16) as u8
    } else {
        use NextHeader as N;
        let fitting: &[N] = match PdsType::from_u8(kind) {
            Some(PdsType::RudiReq) => &[N::Small, N::Medium, N::Standard],
            Some(PdsType::UudReq) => &[N::Medium, N::Standard],
            Some(PdsType::Ack | PdsType::AckCc) => &[N::None, N::Response, N::ResponseData, N::ResponseDataSmall],
            Some(PdsType::RudiResp) => &[N::Response, N::ResponseData, N::ResponseDataSmall],
            Some(PdsType::Nack) => &[N::None],
            Some(PdsType::Control) => &[N::None, N::Small, N::ResponseDataSmall, N::Medium],
            _ => &[N::Small, N::Medium, N::Standard, N::Standard, N::Standard, N::ResponseData, N::ResponseDataSmall],
        };
        fitting[rng.below(fitting.len() as u64) as usize] as u8
    };
    let size = match PdsType::from_u8(kind) {
        Some(PdsType::RudReq | PdsType::RodReq | PdsType::Ack) => 12,
        Some(PdsType::AckCc) => 32,
        Some(PdsType::RudiReq | PdsType::RudiResp) => 8,
        Some(PdsType::UudReq) => 4,
        _ => 16,
    };
    let mut pds = rng.bytes(size);
    let prologue = PdsPrologue([pds[0], pds[1]]).with_kind(kind).with_next(next).with_flags(rng.next_u32() as u8 & 0x1c);
    pds[..2].copy_from_slice(&prologue.0);
    if rng.percent(20) {
        pds[1] ^= 1 << rng.below(7);
    }
    if (size == 4 || size == 8) && rng.percent(80) {
        pds[2..4].fill(0);
    }
    if size == 32 && rng.percent(80) {
        pds[12] &= 0xf0;
    }
    let there = if rng.percent(50) { rng.below(80) } else { rng.below(1500) } as usize;
    let mut ses = rng.bytes(80);
    let clean = rng.percent(70);
    let opcode = if rng.percent(40) { rng.below(16) as u8 } else { [1, 2, 4, 5, 0x0d][rng.below(5) as usize] };
    let opcode = if kind == PdsType::UudReq as u8 && rng.percent(80) { SesOpcode::DatagramSend as u8 } else { opcode };
    let off = |rng: &mut Rng| if rng.percent(15) { rng.below(5) as i64 - 2 } else { 0 };
    let said = (there as i64 + off(rng)).max(0) as u16;
    let som = rng.percent(60);
    let short = next == NextHeader::Small as u8 || next == NextHeader::Medium as u8;
    changed!(ses, SesHead, |h: SesHead| {
        let h = h.with_version(if rng.percent(3) { 1 } else { 0 });
        if next >= NextHeader::Response as u8 {
            return h;
        }
        let h = if clean { h.with_rsvd0(0) } else { h };
        let h = h.with_opcode(opcode);
        if short {
            let whole = !rng.percent(10);
            h.with_som(whole || rng.percent(50)).with_eom(whole).with_hd(rng.percent(if next == 1 { 10 } else { 50 }))
        } else {
            h.with_som(som)
        }
    });
    let operation = if rng.percent(50) { 13 + rng.below(8) as u8 } else { rng.below(24) as u8 };
    let place = match next {
        1 => {
            changed!(ses, SesSmall, |h: SesSmall| if clean { h.with_request_length(said).with_rsvd1(0).with_rsvd2(0).with_rsvd3(0) } else { h.with_request_length(said) });
            20
        }
        2 => {
            changed!(ses, SesMedium, |h: SesMedium| if clean { h.with_request_length(said).with_rsvd1(0).with_rsvd2(0).with_rsvd3(0) } else { h.with_request_length(said) });
            32
        }
        3 if som => {
            let length = if rng.percent(20) { rng.next_u32() } else { said.into() };
            let id = if kind == PdsType::UudReq as u8 && rng.percent(90) { 0 } else { rng.next_u32() as u16 };
            let eom = rng.percent(80);
            changed!(ses, SesFirst, |h: SesFirst| {
                let h = h.with_request_length(length).with_message_id(id).with_eom(eom);
                if clean {
                    h.with_rsvd1(0).with_rsvd2(0)
                } else {
                    h
                }
            });
            44
        }
        3 => {
            let offset = if rng.percent(20) { u32::MAX - rng.below(3000) as u32 } else { rng.next_u32() };
            let end = (u64::from(offset) + u64::from(said)) as i64 + off(rng);
            let length = if rng.percent(30) { u32::MAX } else { end.clamp(0, u32::MAX.into()) as u32 };
            changed!(ses, SesNext, |h: SesNext| {
                let h = h.with_payload_length(said).with_message_offset(offset).with_request_length(length);
                if clean {
                    h.with_rsvd1(0).with_rsvd2(0).with_rsvd3(0)
                } else {
                    h
                }
            });
            44
        }
        5 => {
            changed!(ses, SesResponseData, |h: SesResponseData| if clean { h.with_payload_length(said).with_rsvd0(0).with_rsvd1(0) } else { h.with_payload_length(said) });
            20
        }
        6 => {
            changed!(ses, SesResponseDataSmall, |h: SesResponseDataSmall| if clean { h.with_payload_length(said).with_rsvd0(0).with_rsvd1(0) } else { h.with_payload_length(said) });
            12
        }
        4 => 12,
        _ => 0,
    };
    let atomic = matches!(opcode, 3 | 4 | 13 | 14) && (1..4).contains(&next);
    if atomic {
        ses[place] = operation;
        if clean {
            ses[place + 3] = 0;
        }
    }
    let swaps = (AtomicOp::Cswap as u8..=AtomicOp::Mswap as u8).contains(&operation);
    let operands = if swaps { SesAtomic::BYTES + SesCompare::BYTES } else { SesAtomic::BYTES };
    let size = place + if atomic { operands } else { 0 };
    ses.truncate(size);
    if kind == PdsType::Control as u8 || kind == PdsType::Nack as u8 && rng.percent(90) {
        ses.clear();
    }
    let payload = rng.bytes(there);
    let mut packet = [pds, ses, payload].concat();
    if rng.percent(15) {
        packet.truncate(rng.below(packet.len() as u64 + 1) as usize);
    }
    if rng.percent(10) && !packet.is_empty() {
        let at = rng.below(packet.len() as u64) as usize;
        packet[at] ^= 1 << rng.below(8);
    }
    wrap(rng, packet, registers)
}

/// Ethernet, IPv4 and UDP or the entropy header in front of `packet`; mostly they are right.
fn wrap(rng: &mut Rng, packet: Vec<u8>, registers: &Registers) -> Vec<u8> {
    let native = rng.percent(30);
    let mut inner = if native {
        [rng.bytes(2), if rng.percent(80) { vec![0; 2] } else { rng.bytes(2) }, packet].concat()
    } else {
        let port = if rng.percent(3) { registers.port ^ 1 << rng.below(16) } else { registers.port };
        let length = (Udp::BYTES + packet.len()) as u16;
        let length = if rng.percent(3) { length ^ 1 << rng.below(16) } else { length };
        [Udp::default().with_src_port(rng.next_u32() as u16).with_dst_port(port).with_length(length).0.to_vec(), packet].concat()
    };
    if rng.percent(3) {
        inner.truncate(rng.range(1, 9) as usize);
    }
    let dscp = match rng.below(20) {
        0 => registers.dscp_trimmed,
        1 => registers.dscp_trimmed_last,
        _ => 0,
    };
    let kind = if native { registers.native.unwrap() } else { protocol::UDP };
    let ip = Ipv4::default().with_version(4).with_ihl(5).with_dscp(dscp).with_total_length((Ipv4::BYTES + inner.len()) as u16).with_ttl(9).with_protocol(kind);
    let sum: u32 = ip.0.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let ip = ip.with_checksum(!((sum & 0xffff) + (sum >> 16)) as u16);
    [Eth::default().with_dst(2).with_src(4).with_ethertype(ethertype::IPV4).0.to_vec(), ip.0.to_vec(), inner].concat()
}
