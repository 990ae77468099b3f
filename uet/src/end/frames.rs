//! Between packets of the model and headers on the wire. Operations are WRITE and FETCHING_ATOMIC (SUM of 64 bits), in the standard form; all three forms are understood.
use crate::model::{Body, Mode, Packet, Response, Sack, To};
use crate::wire::{Operands, Parsed, Pds, Ses};
use ferric_abi::uet::codes::{AckRequest, AtomicOp, AtomicType, ControlType, NackCode, NextHeader, PdsType, ResponseOpcode, ReturnCode, SesOpcode};
use ferric_abi::uet::{NsccState, PdsAck, PdsAckCc, PdsControl, PdsNack, PdsRequest, PdsSyn, SesAtomic, SesFirst, SesNext, SesResponse, SesResponseData};

/// What semantics say in every packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// FETCHING_ATOMIC instead of WRITE.
    pub fetch: bool,
    /// Job.
    pub job: u32,
    /// Process.
    pub pid: u16,
    /// Resource index.
    pub index: u16,
    /// First byte in the buffer.
    pub offset: u64,
    /// Memory key.
    pub key: u64,
    /// Header data, which come with the completion at the target.
    pub header_data: u64,
}

/// Why a packet is not for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unused {
    /// RUDI, which is not implemented.
    Rudi,
    /// UUD, which is not implemented.
    Uud,
    /// A number that means nothing.
    Code(u8),
    /// READ data, which is not implemented.
    ReadData,
    /// A control packet asks to open a PDC.
    ControlSyn,
}

/// Bytes of the data of a fetching atomic.
const WORD: usize = 8;

fn to(word: u16, syn: bool) -> To {
    if syn {
        To::Syn(PdsSyn(word.to_be_bytes()).psn_offset())
    } else {
        To::Id(word)
    }
}

fn word(to: To) -> (u16, bool) {
    match to {
        To::Syn(offset) => (u16::from_be_bytes(PdsSyn::default().with_psn_offset(offset).0), true),
        To::Id(id) => (id, false),
    }
}

/// The packet that a frame is to the model.
pub fn packet(parsed: &Parsed) -> Result<Packet, Unused> {
    Ok(match parsed.pds {
        Pds::Request(head, _) => {
            let mode = if matches!(PdsType::from_u8(head.kind()), Some(PdsType::RodReq | PdsType::RodCcReq)) { Mode::Rod } else { Mode::Rud };
            let bytes = parsed.payload.len() as u32;
            let fetching = |opcode: u8| opcode == SesOpcode::FetchingAtomic as u8;
            let body = match parsed.ses {
                Ses::First(ses, _) => Body { message: ses.message_id(), offset: 0, bytes, total: ses.request_length(), fetch: fetching(ses.opcode()) },
                Ses::Next(ses, _) => Body { message: ses.message_id(), offset: ses.message_offset(), bytes, total: ses.request_length(), fetch: fetching(ses.opcode()) },
                // Short forms have no message id: their answer is matched by the PSN.
                Ses::Small(ses, _) => Body { message: 0, offset: 0, bytes, total: ses.request_length().into(), fetch: fetching(ses.opcode()) },
                Ses::Medium(ses, _) => Body { message: 0, offset: 0, bytes, total: ses.request_length().into(), fetch: fetching(ses.opcode()) },
                // Of a trimmed frame nothing else is left.
                Ses::None => Body { message: 0, offset: 0, bytes: 0, total: 0, fetch: false },
                _ => return Err(Unused::ReadData),
            };
            Packet::Request { mode, psn: head.psn(), clear: head.clear_offset() as i16, spdcid: head.spdcid(), to: to(head.dpdcid(), head.syn()), retx: head.retx(), ar: head.ar(), body }
        }
        Pds::Control(head) => {
            let kind = ControlType::from_u8(head.ctl()).ok_or(Unused::Code(head.ctl()))?;
            let mode = if head.rod() { Mode::Rod } else { Mode::Rud };
            Packet::Control { kind, mode, psn: head.psn(), payload: head.payload(), spdcid: head.spdcid(), to: to(head.dpdcid(), head.syn()), retx: head.retx(), ar: head.ar() }
        }
        Pds::Ack(head, cc) => {
            let response = match parsed.ses {
                Ses::Response(ses) => Some(Response { message: ses.message_id(), code: ses.code(), length: ses.modified_length(), data: None }),
                Ses::Data(ses) => Some(Response { message: ses.read_id(), code: ses.code(), length: ses.modified_length(), data: parsed.payload.first_chunk().map(|word| u64::from_be_bytes(*word)) }),
                _ => None,
            };
            let sack = cc.map(|cc| {
                let state = NsccState(cc.state().to_be_bytes());
                let base = head.cack().wrapping_add_signed(i32::from(cc.sack_offset() as i16));
                Sack { mpr: cc.mpr(), base, bitmap: cc.bitmap(), bytes: state.rcvd_bytes(), ooo: state.ooo_count(), service: state.service_time() }
            });
            let req = AckRequest::from_u8(head.req()).ok_or(Unused::Code(head.req()))?;
            let psn = head.cack().wrapping_add_signed(i32::from(head.psn_offset() as i16));
            Packet::Ack { cack: head.cack(), psn, sack, marked: head.marked(), retx: head.retx(), req, spdcid: head.spdcid(), dpdcid: head.dpdcid(), response }
        }
        Pds::Nack(head) if head.rudi() => return Err(Unused::Rudi),
        Pds::Nack(head) => {
            let code = NackCode::from_u8(head.code()).ok_or(Unused::Code(head.code()))?;
            Packet::Nack { code, psn: head.psn(), spdcid: head.spdcid(), dpdcid: head.dpdcid(), payload: head.payload(), marked: head.marked(), retx: head.retx() }
        }
        Pds::Rudi(_) => return Err(Unused::Rudi),
        Pds::Uud(_) => return Err(Unused::Uud),
    })
}

/// The headers of a packet, and what an answer carries behind them. `description` is the message's, of requests.
pub fn headers(packet: &Packet, description: Option<&Description>) -> (Pds, Ses, Vec<u8>) {
    match *packet {
        Packet::Request { mode, psn, clear, spdcid, to, retx, ar, body } => {
            let kind = if mode == Mode::Rod { PdsType::RodReq } else { PdsType::RudReq };
            let (dpdcid, syn) = word(to);
            let head = PdsRequest::default().with_kind(kind as u8).with_next(NextHeader::Standard as u8).with_retx(retx).with_ar(ar).with_syn(syn);
            let head = head.with_clear_offset(clear as u16).with_psn(psn).with_spdcid(spdcid).with_dpdcid(dpdcid);
            (Pds::Request(head, None), description.map_or(Ses::None, |d| request(&body, d)), Vec::new())
        }
        Packet::Control { kind, mode, psn, payload, spdcid, to, retx, ar } => {
            let (dpdcid, syn) = word(to);
            let head = PdsControl::default().with_kind(PdsType::Control as u8).with_ctl(kind as u8).with_rod(mode == Mode::Rod).with_retx(retx).with_ar(ar).with_syn(syn);
            (Pds::Control(head.with_psn(psn).with_spdcid(spdcid).with_dpdcid(dpdcid).with_payload(payload)), Ses::None, Vec::new())
        }
        Packet::Ack { cack, psn, sack, marked, retx, req, spdcid, dpdcid, response } => {
            let (kind, cc) = match sack {
                None => (PdsType::Ack, None),
                Some(sack) => {
                    let state = NsccState::default().with_service_time(sack.service).with_rcvd_bytes(sack.bytes).with_ooo_count(sack.ooo);
                    let cc = PdsAckCc::default().with_mpr(sack.mpr).with_sack_offset(sack.base.wrapping_sub(cack) as u16).with_bitmap(sack.bitmap);
                    (PdsType::AckCc, Some(cc.with_state(u64::from_be_bytes(state.0))))
                }
            };
            let (next, ses, data) = match response {
                None => (NextHeader::None, Ses::None, Vec::new()),
                Some(Response { message, code, length, data: Some(data) }) => {
                    let ses =
                        SesResponseData::default().with_opcode(ResponseOpcode::WithData as u8).with_code(code).with_read_id(message).with_payload_length(WORD as u16).with_modified_length(length);
                    (NextHeader::ResponseData, Ses::Data(ses), data.to_be_bytes().to_vec())
                }
                Some(Response { message, code, length, data: None }) => {
                    let plain = code == ReturnCode::Ok as u8 || code == ReturnCode::Null as u8;
                    let opcode = if plain { ResponseOpcode::Default } else { ResponseOpcode::Response };
                    let ses = SesResponse::default().with_opcode(opcode as u8).with_code(code).with_message_id(message).with_modified_length(length);
                    (NextHeader::Response, Ses::Response(ses), Vec::new())
                }
            };
            let head = PdsAck::default().with_kind(kind as u8).with_next(next as u8).with_marked(marked).with_retx(retx).with_req(req as u8);
            let head = head.with_psn_offset(psn.wrapping_sub(cack) as u16).with_cack(cack).with_spdcid(spdcid).with_dpdcid(dpdcid);
            (Pds::Ack(head, cc), ses, data)
        }
        Packet::Nack { code, psn, spdcid, dpdcid, payload, marked, retx } => {
            let head = PdsNack::default().with_kind(PdsType::Nack as u8).with_marked(marked).with_retx(retx).with_code(code as u8).with_psn(psn);
            (Pds::Nack(head.with_spdcid(spdcid).with_dpdcid(dpdcid).with_payload(payload)), Ses::None, Vec::new())
        }
    }
}

/// The SES header of a packet of a message, in the standard form.
fn request(body: &Body, d: &Description) -> Ses {
    let opcode = if d.fetch { SesOpcode::FetchingAtomic } else { SesOpcode::Write } as u8;
    let atomic = d.fetch.then(|| SesAtomic::default().with_operation(AtomicOp::Sum as u8).with_datatype(AtomicType::Uint64 as u8));
    let operands = Operands { atomic, compare: None };
    if body.offset == 0 {
        let head = SesFirst::default().with_opcode(opcode).with_dc(true).with_rel(true).with_hd(!d.fetch).with_eom(body.last()).with_som(true).with_message_id(body.message).with_job_id(d.job);
        let head = head.with_pid(d.pid).with_index(d.index).with_offset(d.offset).with_key(d.key).with_header_data(d.header_data).with_request_length(body.total);
        Ses::First(head, operands)
    } else {
        let head = SesNext::default().with_opcode(opcode).with_dc(true).with_rel(true).with_hd(!d.fetch).with_eom(body.last()).with_message_id(body.message).with_job_id(d.job);
        let head = head.with_pid(d.pid).with_index(d.index).with_offset(d.offset).with_key(d.key);
        Ses::Next(head.with_payload_length(body.bytes as u16).with_message_offset(body.offset).with_request_length(body.total), operands)
    }
}
