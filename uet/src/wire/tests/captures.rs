//! The recorded frames, field by field.
use super::super::{build, crc32c, layout, parse, Addresses, Bad, Message, Parsed, Pds, Registers, Ses};
use super::{frames, registers};
use ferric_abi::uet::codes::{ControlType, NackCode, PdsType, ReturnCode, SesOpcode};
use ferric_abi::uet::{CreditState, NsccState, PdsSyn};

fn golden(n: usize) -> Parsed {
    layout(&frames("golden_vectors")[n], &registers()).unwrap()
}

#[test]
fn a_published_datagram_is_read() {
    let parsed = parse(&frames("golden_vectors")[0], &registers()).unwrap();
    let (Pds::Uud(uud), Ses::Medium(ses, operands)) = (parsed.pds, parsed.ses) else { panic!("{parsed:?}") };
    assert_eq!((uud.kind(), uud.next()), (PdsType::UudReq as u8, 2));
    assert_eq!((ses.opcode(), ses.som(), ses.eom(), ses.request_length()), (SesOpcode::DatagramSend as u8, true, true, 128));
    assert_eq!(parsed.payload, (0..128).collect::<Vec<u8>>());
    assert_eq!(operands.atomic, None);
    assert_eq!(parsed.carriage.addresses, Addresses::V4(0x0a00_0001, 0x0a00_0002));
    assert_eq!((parsed.carriage.entropy, parsed.carriage.ecn), (0xc0de, 2));
}

#[test]
fn a_published_write_is_read() {
    let parsed = golden(1);
    let (Pds::Request(pds, None), Ses::First(ses, _)) = (parsed.pds, parsed.ses) else { panic!("{parsed:?}") };
    assert_eq!((pds.kind(), pds.next(), pds.retx(), pds.ar(), pds.syn()), (PdsType::RudReq as u8, 3, true, true, false));
    assert_eq!((pds.clear_offset(), pds.psn(), pds.spdcid(), pds.dpdcid()), (0x1234, 0x0102_0304, 0x1122, 0x3344));
    assert_eq!((ses.opcode(), ses.dc(), ses.ie(), ses.rel(), ses.hd(), ses.eom(), ses.som()), (SesOpcode::Write as u8, true, false, true, true, true, true));
    assert_eq!((ses.message_id(), ses.generation(), ses.job_id(), ses.pid(), ses.index()), (0x0102, 0x12, 0x34_5678, 0xabc, 0xdef));
    assert_eq!((ses.offset(), ses.initiator(), ses.key()), (0x0102_0304_0506_0708, 0x1122_3344, 0x1020_3040_5060_7080));
    assert_eq!((ses.header_data(), ses.request_length()), (0xa1a2_a3a4_a5a6_a7a8, 8));
    assert_eq!(parsed.payload, b"ABCDEFGH");
}

#[test]
fn published_acknowledges_are_read() {
    let Pds::Ack(ack, None) = golden(2).pds else { panic!("frame 2") };
    assert_eq!((ack.kind(), ack.next(), ack.psn_offset(), ack.cack(), ack.spdcid(), ack.dpdcid()), (7, 0, 2, 0x1020_3040, 0x0102, 0x0304));
    let Pds::Ack(ack, Some(cc)) = golden(4).pds else { panic!("frame 4") };
    assert_eq!((ack.marked(), ack.retx(), ack.probe(), ack.req(), ack.psn_offset() as i16), (true, false, false, 0, -2));
    assert_eq!((cc.cc_type(), cc.mpr(), cc.sack_offset() as i16, cc.bitmap()), (0, 0x80, -16, 0x8000_0000_0000_0001));
    let state = NsccState(cc.state().to_be_bytes());
    assert_eq!((state.service_time(), state.restore(), state.penalty(), state.rcvd_bytes(), state.ooo_count()), (0x1234, true, 0x12, 0x34_5678, 0x9abc));
    let parsed = golden(6);
    let Ses::Response(response) = parsed.ses else { panic!("{parsed:?}") };
    assert_eq!((response.list(), response.opcode(), response.code(), response.message_id()), (1, 1, ReturnCode::BadGeneration as u8, 0x1234));
    assert_eq!((response.generation(), response.job_id(), response.modified_length()), (0x56, 0x78_9abc, 0x0102_0304));
}

#[test]
fn a_published_refusal_and_a_control_packet_are_read() {
    let Pds::Nack(nack) = golden(3).pds else { panic!("frame 3") };
    assert_eq!((nack.code(), nack.psn(), nack.spdcid(), nack.dpdcid(), nack.payload()), (NackCode::RodOutOfOrder as u8, 0x0102_0304, 0x1122, 0x3344, 0x0506_0708));
    let Pds::Control(control) = golden(5).pds else { panic!("frame 5") };
    assert_eq!((control.ctl(), control.rod(), control.ar(), control.syn()), (ControlType::Negotiation as u8, true, true, true));
    assert_eq!((control.opaque(), control.psn(), control.payload()), (0x1234, 0x0102_0304, 0x0102_0000));
}

#[test]
fn a_published_atomic_and_a_later_packet_are_read() {
    let parsed = golden(7);
    let Ses::First(ses, operands) = parsed.ses else { panic!("{parsed:?}") };
    assert_eq!((ses.opcode(), operands.compare), (SesOpcode::Atomic as u8, None));
    let atomic = operands.atomic.unwrap();
    assert_eq!((atomic.operation(), atomic.datatype(), atomic.control()), (1, 3, 0x5a));
    assert_eq!(parsed.payload, [0, 0, 0, 0, 0, 0, 0, 5]);
    let parsed = parse(&frames("golden_vectors")[8], &registers()).unwrap();
    let (Pds::Request(pds, _), Ses::Next(ses, _)) = (parsed.pds, parsed.ses) else { panic!("{parsed:?}") };
    assert_eq!((pds.clear_offset() as i16, ses.som(), ses.eom(), ses.payload_length(), ses.message_offset(), ses.request_length()), (-1, false, true, 1000, 4096, 5096));
    assert_eq!(parsed.payload.len(), 1000);
}

#[test]
fn native_carriage_with_its_crc_is_read() {
    let frame = &frames("golden_vectors")[9];
    let with = Registers { crc: true, ..registers() };
    let parsed = parse(frame, &with).unwrap();
    assert_eq!((parsed.carriage.native, parsed.carriage.entropy), (Some(253), 0xc0de));
    assert_eq!(parsed.payload, b"ABCDEFGH");
    for bit in [34 * 8, 40 * 8 + 3, frame.len() * 8 - 1, (frame.len() - 5) * 8] {
        let mut wrong = frame.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(parse(&wrong, &with), Err(Bad::Crc), "bit {bit}");
    }
    assert_eq!(parse(frame, &Registers { crc: true, crc_big: true, ..registers() }), Err(Bad::Crc));
}

/// A published crate judges the CRC, and so do the check values of the polynomial.
#[test]
fn the_crc_is_castagnolis() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    for bytes in frames("xdp2_uet_ses").iter().chain(&frames("golden_vectors")) {
        for end in 0..bytes.len() {
            assert_eq!(crc32c(&bytes[..end]), ::crc32c::crc32c(&bytes[..end]));
        }
    }
}

#[test]
fn secure_frames_are_named() {
    for n in 10..14 {
        assert_eq!(parse(&frames("golden_vectors")[n], &registers()), Err(Bad::Tss));
    }
}

/// Types of the second author's samples in the file's order; the two reserved types are refused by name.
#[test]
fn every_type_of_the_samples_is_read() {
    let kinds: Vec<_> = frames("xdp2_uet_pds")
        .iter()
        .map(|frame| match layout(frame, &registers()) {
            Ok(Parsed { pds: Pds::Request(head, cc), .. }) => format!("{:?}{}", PdsType::from_u8(head.kind()).unwrap(), if head.syn() { "+syn" } else { "" }) + if cc.is_some() { "+cc" } else { "" },
            Ok(Parsed { pds: Pds::Ack(_, cc), .. }) => format!("Ack{}", cc.map_or(String::new(), |cc| format!("+{}", cc.cc_type()))),
            Ok(Parsed { pds: Pds::Control(head), .. }) => format!("{:?}", ControlType::from_u8(head.ctl()).unwrap()),
            Ok(Parsed { pds: Pds::Rudi(head), .. }) => format!("{:?}", PdsType::from_u8(head.kind()).unwrap()),
            Ok(Parsed { pds: Pds::Uud(_), .. }) => "Uud".into(),
            Ok(Parsed { pds: Pds::Nack(_), .. }) => "Nack".into(),
            Err(bad) => format!("{bad:?}"),
        })
        .collect();
    let requests = ["RudReq", "RudReq+syn", "RudCcReq+cc", "RudCcReq+syn+cc", "RodReq", "RodReq+syn", "RodCcReq+cc", "RodCcReq+syn+cc"];
    let rest = ["Ack", "Ack+0", "Ack+1", "Ccx", "NextNotAllowed(4)", "Ccx", "CreditRequest", "Negotiation", "Uud", "RudiReq", "RudiResp"];
    assert_eq!(kinds, [&requests[..], &rest].concat());
}

#[test]
fn fields_of_the_samples_are_read() {
    let read = |n: usize| layout(&frames("xdp2_uet_pds")[n], &registers()).unwrap();
    let Pds::Request(head, Some(cc)) = read(3).pds else { panic!("frame 3") };
    let syn = PdsSyn(head.dpdcid().to_be_bytes());
    assert_eq!((syn.reserved_pdc(), syn.psn_offset(), cc.ccc_id(), cc.credit_target()), (true, 0x876, 0x77, 0x88_7766));
    assert_eq!((head.clear_offset(), head.psn(), head.spdcid()), (0x1234, 0x9876_5432, 0x3456));
    let Pds::Ack(_, Some(cc)) = read(10).pds else { panic!("frame 10") };
    let credit = CreditState(cc.state().to_be_bytes());
    assert_eq!((credit.credit(), credit.ooo_count()), (0x12_3456, 0x8765));
    let Pds::Rudi(rudi) = read(17).pds else { panic!("frame 17") };
    assert_eq!((rudi.packet_id(), rudi.marked(), rudi.retx()), (0x9988_7766, true, false));
}

/// Bits that are reserved and set in the samples have names, those of the published vectors are clear.
#[test]
fn reserved_bits_are_named() {
    let named: Vec<_> = frames("xdp2_uet_pds").iter().filter_map(|f| layout(f, &registers()).ok()).map(|p| p.reserved().join(" ")).collect();
    assert!(named.iter().any(|fields| fields.contains("PdsControl.rsvd")) || named.iter().any(|fields| fields.contains("PdsAckCc.rsvd0")), "{named:?}");
    let clean = frames("golden_vectors").iter().take(9).all(|f| layout(f, &registers()).unwrap().reserved().is_empty());
    assert!(clean);
    let mut frame = frames("golden_vectors")[1].clone();
    frame[14 + 20 + 8 + 12 + 8] |= 0xf0;
    assert_eq!(parse(&frame, &registers()).unwrap().reserved(), ["SesFirst.rsvd1"]);
}

/// What is read is built again to the bit, checksums of IP included. The peer's sockets had the kernel sum UDP up, which is not done here.
#[test]
fn what_is_read_is_built_again() {
    let mut built = 0;
    for name in ["golden_vectors", "xdp2_uet_pds", "xdp2_uet_ses", "ns3_rud_write_1pkt", "ns3_rud_loss_retx"] {
        for (n, frame) in frames(name).iter().enumerate() {
            let registers = Registers { crc: name == "golden_vectors" && n == 9, ..registers() };
            let Ok(parsed) = layout(frame, &registers) else { continue };
            let again = build(&Message { carriage: parsed.carriage, pds: parsed.pds, ses: parsed.ses, payload: &parsed.payload }, &registers);
            let udp = parsed.carriage.native.is_none();
            // IP identification and checksums are the sender's own affair.
            let own = |at: usize| matches!(at, 18..=21 | 24 | 25) || udp && matches!(at, 40 | 41);
            let differs: Vec<_> = (0..frame.len()).filter(|at| !own(*at) && again.get(*at) != frame.get(*at)).collect();
            assert!(differs.is_empty() && again.len() == frame.len(), "{name} {n}: {differs:?}");
            built += 1;
        }
    }
    assert!(built > 45, "{built} frames");
}
