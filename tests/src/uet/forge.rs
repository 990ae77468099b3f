//! Frames of whoever means a card no good: of peers that it knows, of nobody, and of the right peer where nothing may come of them.
use super::{address, number, Way};
use ferric_abi::uet::codes::{ControlType, NextHeader, PdsType, SesOpcode};
use ferric_abi::uet::{PdsAck, PdsAckCc, PdsControl, PdsNack, PdsRequest, PdsRequestCc, PdsRudi, PdsSyn, PdsUud};
use ferric_abi::uet::{SesFirst, SesMedium, SesNext, SesResponse, SesResponseData, SesResponseDataSmall, SesSmall};
use ferric_abi::wire::{Eth, Ipv4};
use ferric_driver::types::Mac;
use ferric_sim::Rng;
use ferric_uet::wire::{build, checksum, parse, Addresses, Carriage, Message, Operands, Pds, Registers, Ses};
use rand::{Rng as _, SeedableRng};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Ids that the card's frames have told, most recent last.
const KNOWN: usize = 24;
/// Bytes of payload, most of the time and at most.
const SMALL: usize = 200;
const LARGE: usize = 4200;

/// Something that the card has said to a peer.
#[derive(Clone, Copy, Debug)]
struct Told {
    way: usize,
    ours: u16,
    theirs: u16,
    /// A PSN that it was about.
    psn: u32,
    message: u16,
}

/// Where messages may go: address and key.
pub type Place = (u64, u64);

/// Makes frames.
pub struct Forge {
    rng: Rng,
    mac: Mac,
    ways: Vec<Way>,
    /// Addresses from which a frame is of the good peer.
    good: Way,
    /// Another function's MAC address.
    foreign: Mac,
    places: Vec<Place>,
    told: VecDeque<Told>,
    /// Requests of the card.
    asked: VecDeque<Told>,
}

impl Forge {
    /// For the card at `mac`. `ways`: of the peers that are bad.
    pub fn new(seed: u64, mac: Mac, ways: &[Way], good: Way, foreign: Mac, places: &[Place]) -> Self {
        Self { rng: Rng::seed_from_u64(seed), mac, ways: ways.to_vec(), good, foreign, places: places.to_vec(), told: VecDeque::new(), asked: VecDeque::new() }
    }

    /// The card has sent a frame to a bad peer: what it says is used.
    pub fn hear(&mut self, frame: &[u8]) {
        let Ok(parsed) = parse(frame, &super::judge::registers()) else { return };
        let to = parsed.carriage.addresses.destination();
        let Some(way) = self.ways.iter().position(|way| address(way.other) == to) else { return };
        let message = if let Ses::First(head, _) = parsed.ses { head.message_id() } else { self.rng.gen() };
        let (ours, theirs, psn) = match parsed.pds {
            Pds::Request(head, _) => (if head.syn() { self.rng.gen() } else { head.dpdcid() }, head.spdcid(), head.psn()),
            Pds::Ack(head, _) => (head.dpdcid(), head.spdcid(), head.cack()),
            Pds::Nack(head) => (head.dpdcid(), head.spdcid(), head.psn()),
            Pds::Control(head) => (if head.syn() { self.rng.gen() } else { head.dpdcid() }, head.spdcid(), head.psn()),
            _ => return,
        };
        let list = if matches!(parsed.pds, Pds::Request(..)) { &mut self.asked } else { &mut self.told };
        if list.len() == KNOWN {
            list.pop_front();
        }
        list.push_back(Told { way, ours, theirs, psn, message });
    }

    fn percent(&mut self, n: u32) -> bool {
        self.rng.gen_range(0..100) < n
    }

    /// Something that the card has asked, most of the time.
    fn asked(&mut self) -> Told {
        if self.asked.is_empty() || self.percent(30) {
            return self.about();
        }
        let mut told = self.asked[self.rng.gen_range(0..self.asked.len())];
        match self.rng.gen_range(0..8) {
            0 => told.psn = told.psn.wrapping_add(self.rng.gen_range(0..300)).wrapping_sub(150),
            1 => told.ours = self.rng.gen(),
            _ => {}
        }
        told
    }

    /// Something that the card knows, most of the time.
    fn about(&mut self) -> Told {
        let random = Told { way: self.rng.gen_range(0..self.ways.len()), ours: self.rng.gen(), theirs: self.rng.gen(), psn: self.rng.gen(), message: self.rng.gen() };
        if self.told.is_empty() || self.percent(8) {
            return random;
        }
        let mut told = self.told[self.rng.gen_range(0..self.told.len())];
        match self.rng.gen_range(0..20) {
            0 => told.ours = random.ours,
            1 => told.theirs = random.theirs,
            2 => told.theirs ^= 1 << self.rng.gen_range(0..16),
            3 => told.way = random.way,
            4 => told.psn = random.psn,
            5..=7 => told.psn = told.psn.wrapping_add(self.rng.gen_range(0..300)).wrapping_sub(150),
            _ => told.psn = told.psn.wrapping_add(self.rng.gen_range(0..4)),
        }
        told
    }

    fn payload(&mut self) -> Vec<u8> {
        let most = if self.percent(4) { LARGE } else { SMALL };
        let len = self.rng.gen_range(0..=most);
        (0..len).map(|i| i as u8 ^ 0xe5).collect()
    }

    /// A request's header of semantics, and the payload behind it.
    fn request(&mut self) -> (NextHeader, Ses, Vec<u8>) {
        let payload = self.payload();
        let (at, key) = self.places[self.rng.gen_range(0..self.places.len())];
        let offset = if self.percent(80) { at } else { at.wrapping_add(self.rng.gen_range(0..0x2000)).wrapping_sub(0x1000) };
        let key = if self.percent(95) { key } else { key ^ 1 << self.rng.gen_range(0..64) };
        let opcode = if self.percent(70) { SesOpcode::Write as u8 } else { self.rng.gen_range(0..64) };
        let (id, job, pid, index, length) = (self.rng.gen::<u16>(), self.rng.gen::<u32>() >> 8, self.rng.gen::<u16>() & 0xfff, self.rng.gen::<u16>() & 0xfff, payload.len() as u32);
        let length = if self.percent(90) { length } else { self.rng.gen_range(0..0x1_0000) };
        let (eom, hd) = (self.percent(80), self.percent(30));
        let none = Operands::default();
        match self.rng.gen_range(0..10) {
            0 => {
                let head =
                    SesSmall::default().with_opcode(opcode).with_som(true).with_eom(eom).with_hd(hd).with_request_length(length as u16 & 0x3fff).with_job_id(job).with_pid(pid).with_index(index);
                (NextHeader::Small, Ses::Small(head.with_offset(offset), none), payload)
            }
            1 => {
                let head =
                    SesMedium::default().with_opcode(opcode).with_som(true).with_eom(eom).with_hd(hd).with_request_length(length as u16 & 0x3fff).with_job_id(job).with_pid(pid).with_index(index);
                (NextHeader::Medium, Ses::Medium(head.with_data(offset).with_key(key), none), payload)
            }
            2 => {
                let head = SesNext::default().with_opcode(opcode).with_eom(eom).with_message_id(id).with_job_id(job).with_pid(pid).with_index(index).with_offset(offset).with_key(key);
                let begin = self.rng.gen_range(0..0x400);
                let whole = if self.percent(80) { begin + length } else { begin };
                (NextHeader::Standard, Ses::Next(head.with_payload_length(payload.len() as u16 & 0x3fff).with_message_offset(begin).with_request_length(whole), none), payload)
            }
            3 if self.percent(50) => {
                let head = SesResponseData::default()
                    .with_opcode(self.rng.gen_range(0..4))
                    .with_code(self.rng.gen_range(0..64))
                    .with_payload_length(payload.len() as u16 & 0x3fff)
                    .with_modified_length(length);
                (NextHeader::ResponseData, Ses::Data(head), payload)
            }
            _ => {
                let head = SesFirst::default().with_opcode(opcode).with_dc(self.percent(50)).with_ie(self.percent(3)).with_rel(self.percent(50)).with_hd(hd).with_eom(eom).with_som(true);
                let head = head.with_message_id(id).with_job_id(job).with_pid(pid).with_index(index).with_offset(offset).with_key(key).with_header_data(self.rng.gen());
                (NextHeader::Standard, Ses::First(head.with_request_length(length), none), payload)
            }
        }
    }

    /// Delivery, semantics, payload and whose it is.
    fn packet(&mut self) -> (Pds, Ses, Vec<u8>, usize) {
        let told = self.about();
        match self.rng.gen_range(0..20) {
            // A PDC is opened.
            0..=2 => {
                let (next, ses, payload) = self.request();
                let kind = if self.percent(50) { PdsType::RudReq } else { PdsType::RodReq };
                let offset = if self.percent(70) { 0 } else { self.rng.gen_range(0..4096) };
                let word = u16::from_be_bytes(PdsSyn::default().with_psn_offset(offset).0);
                let own = if self.percent(80) { self.rng.gen() } else { told.ours };
                let head = PdsRequest::default().with_kind(kind as u8).with_next(next as u8).with_syn(true).with_ar(self.percent(50)).with_psn(self.rng.gen()).with_spdcid(own).with_dpdcid(word);
                (Pds::Request(head, None), ses, payload, told.way)
            }
            3..=7 => {
                let (next, ses, payload) = self.request();
                let (kind, cc) = [(PdsType::RudReq, false), (PdsType::RodReq, false), (PdsType::RudCcReq, true), (PdsType::RodCcReq, true)][self.rng.gen_range(0..4)];
                let clear = if self.percent(80) { self.rng.gen_range(0..200u16).wrapping_neg() } else { self.rng.gen() };
                let head = PdsRequest::default().with_kind(kind as u8).with_next(next as u8).with_retx(self.percent(30)).with_ar(self.percent(50)).with_syn(self.percent(5)).with_clear_offset(clear);
                let cc = cc.then(|| PdsRequestCc::default().with_ccc_id(self.rng.gen()).with_credit_target(self.rng.gen::<u32>() >> 8));
                (Pds::Request(head.with_psn(told.psn).with_spdcid(told.ours).with_dpdcid(told.theirs), cc), ses, payload, told.way)
            }
            8..=10 => {
                let told = self.asked();
                self.acknowledge(told)
            }
            11..=12 => {
                let told = self.asked();
                let head = PdsNack::default().with_kind(PdsType::Nack as u8).with_marked(self.percent(20)).with_retx(self.percent(20)).with_rudi(self.percent(3)).with_code(self.rng.gen());
                let head = if self.percent(60) { head.with_code(head.code() % 0x1c) } else { head };
                (Pds::Nack(head.with_psn(told.psn).with_spdcid(told.ours).with_dpdcid(told.theirs).with_payload(told.psn)), Ses::None, Vec::new(), told.way)
            }
            13..=15 => {
                let ctl = if self.percent(80) { self.rng.gen_range(0..ControlType::Negotiation as u8 + 1) } else { self.rng.gen_range(0..16) };
                let head =
                    PdsControl::default().with_kind(PdsType::Control as u8).with_ctl(ctl).with_rod(self.percent(50)).with_retx(self.percent(20)).with_ar(self.percent(60)).with_syn(self.percent(10));
                let psn = if self.percent(30) { 0 } else { told.psn };
                (Pds::Control(head.with_psn(psn).with_spdcid(told.ours).with_dpdcid(told.theirs).with_payload(told.psn)), Ses::None, Vec::new(), told.way)
            }
            16 => {
                let (next, ses, payload) = self.request();
                let kind = if self.percent(50) { PdsType::RudiReq } else { PdsType::RudiResp };
                (Pds::Rudi(PdsRudi::default().with_kind(kind as u8).with_next(next as u8).with_packet_id(self.rng.gen())), ses, payload, told.way)
            }
            17 => {
                let (next, ses, payload) = self.request();
                (Pds::Uud(PdsUud::default().with_kind(PdsType::UudReq as u8).with_next(next as u8)), ses, payload, told.way)
            }
            // Any type, and whatever header behind it.
            _ => {
                let (next, ses, payload) = self.request();
                let next = if self.percent(50) { next as u8 } else { self.rng.gen_range(0..16) };
                let kind = [0, 1, PdsType::AckCcx as u8, PdsType::NackCcx as u8, self.rng.gen_range(0..32), self.rng.gen_range(0..32)][self.rng.gen_range(0..6)];
                let head = PdsRequest::default().with_kind(kind).with_next(next).with_psn(told.psn).with_spdcid(told.ours).with_dpdcid(told.theirs);
                (Pds::Request(head, None), ses, payload, told.way)
            }
        }
    }

    fn acknowledge(&mut self, told: Told) -> (Pds, Ses, Vec<u8>, usize) {
        let cc = self.percent(60);
        let (next, ses) = match self.rng.gen_range(0..6) {
            0 => (NextHeader::None, Ses::None),
            1 => (NextHeader::ResponseDataSmall, Ses::DataSmall(SesResponseDataSmall::default().with_opcode(2).with_code(self.rng.gen_range(0..64)).with_request_psn(told.psn))),
            _ => {
                let id = if self.percent(70) { told.message } else { self.rng.gen() };
                let head = SesResponse::default().with_list(self.rng.gen_range(0..4)).with_opcode(self.rng.gen_range(0..4)).with_code(self.rng.gen_range(0..64)).with_message_id(id);
                (NextHeader::Response, Ses::Response(head.with_modified_length(self.rng.gen())))
            }
        };
        let head = PdsAck::default().with_kind(if cc { PdsType::AckCc } else { PdsType::Ack } as u8).with_next(next as u8).with_marked(self.percent(30)).with_retx(self.percent(30));
        let offset = if self.percent(80) { self.rng.gen_range(0..4) } else { self.rng.gen() };
        let head = head.with_probe(self.percent(5)).with_req(self.rng.gen_range(0..4)).with_psn_offset(offset).with_cack(told.psn).with_spdcid(told.ours).with_dpdcid(told.theirs);
        let more = cc.then(|| {
            let sack = if self.percent(50) { 1 } else { self.rng.gen() };
            PdsAckCc::default().with_cc_type(self.rng.gen_range(0..16)).with_mpr(self.rng.gen()).with_sack_offset(sack).with_bitmap(self.rng.gen()).with_state(self.rng.gen())
        });
        (Pds::Ack(head, more), ses, Vec::new(), told.way)
    }

    /// The next frame.
    pub fn frame(&mut self) -> Vec<u8> {
        let (pds, ses, payload, way) = self.packet();
        // Of the good peer, of nobody, to another function: now and then.
        let mut way = self.ways[way];
        let (mut source, mut destination, mut dst_mac) = (way.other, way.own, self.mac);
        match self.rng.gen_range(0..40) {
            0 | 1 => {
                way = self.good;
                (source, destination) = (way.other, way.own);
            }
            2 => source = IpAddr::from([10, self.rng.gen(), self.rng.gen(), self.rng.gen()]),
            3 => destination = IpAddr::from([10, self.rng.gen(), self.rng.gen(), self.rng.gen()]),
            4 => dst_mac = self.foreign,
            _ => {}
        }
        let addresses = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Addresses::V4(source.into(), destination.into()),
            (source, destination) => Addresses::V6(address(source), address(destination)),
        };
        let carriage = Carriage {
            dst_mac: number(dst_mac),
            src_mac: number(way.mac),
            tag: if self.percent(1) { Some(self.rng.gen()) } else { None },
            addresses,
            dscp: self.rng.gen_range(0..64),
            ecn: self.rng.gen_range(0..4),
            hops: self.rng.gen(),
            native: self.percent(1).then_some(ferric_abi::uet::UET_PROTOCOL),
            entropy: self.rng.gen(),
        };
        let registers = Registers { crc: self.percent(3), ..super::judge::registers() };
        let frame = build(&Message { carriage, pds, ses, payload: &payload }, &registers);
        self.altered(frame)
    }

    /// Bits and lengths that are wrong, in one frame of three.
    fn altered(&mut self, mut frame: Vec<u8>) -> Vec<u8> {
        let v4 = frame[12..14] == [8, 0];
        match self.rng.gen_range(0..24) {
            0..=3 => {
                let at = self.rng.gen_range(Eth::BYTES..frame.len().min(150));
                frame[at] ^= 1 << self.rng.gen_range(0..8);
            }
            4 => {
                let at = self.rng.gen_range(12..frame.len());
                frame[at] = self.rng.gen();
            }
            5 => frame.truncate(self.rng.gen_range(Eth::BYTES..=frame.len())),
            // Cut, with lengths that say so.
            6 if v4 => {
                let end = self.rng.gen_range(Eth::BYTES + Ipv4::BYTES..=frame.len());
                frame.truncate(end);
                frame[16..18].copy_from_slice(&((end - Eth::BYTES) as u16).to_be_bytes());
                if end >= 42 {
                    frame[38..40].copy_from_slice(&((end - Eth::BYTES - Ipv4::BYTES) as u16).to_be_bytes());
                }
            }
            7 if v4 => frame[38..40].copy_from_slice(&self.rng.gen::<u16>().to_be_bytes()),
            8 => frame.extend((0..self.rng.gen_range(1..30)).map(|n: u8| n)),
            _ => return frame,
        }
        if v4 && self.percent(80) {
            sum(&mut frame);
        }
        frame
    }
}

/// Makes the checksum of IPv4's header right.
pub fn sum(frame: &mut [u8]) {
    const IP: usize = Eth::BYTES;
    let Some(header) = frame.get_mut(IP..IP + Ipv4::BYTES) else { return };
    header[10..12].fill(0);
    let sum = checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}
