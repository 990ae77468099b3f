//! Random headers survive the way to bytes and back; etherparse reads the outer ones.
use super::super::{build, parse, Addresses, Carriage, Message, Operands, Pds, Registers, Ses};
use etherparse::SlicedPacket;
use ferric_abi::uet::codes::{NextHeader, PdsType, SesOpcode};
use ferric_abi::uet::{PdsAck, PdsAckCc, PdsControl, PdsNack, PdsRequest, PdsRequestCc, PdsRudi, PdsUud, SesFirst, SesMedium, SesNext, SesResponse, SesSmall};
use proptest::prelude::*;

fn carriages() -> impl Strategy<Value = Carriage> {
    let addresses = prop_oneof![any::<(u32, u32)>().prop_map(|(a, b)| Addresses::V4(a, b)), any::<(u128, u128)>().prop_map(|(a, b)| Addresses::V6(a, b))];
    let tag = prop::option::of(any::<u16>());
    (any::<(u32, u32)>(), tag, addresses, 0..60u8, 0..4u8, any::<u8>(), prop::option::of(Just(253u8)), any::<u16>())
        .prop_map(|((dst, src), tag, addresses, dscp, ecn, hops, native, entropy)| Carriage { dst_mac: dst.into(), src_mac: src.into(), tag, addresses, dscp, ecn, hops, native, entropy })
}

/// A packet of every kind with random fields; lengths and forms are made to agree.
fn packets() -> impl Strategy<Value = (Pds, Ses, Vec<u8>)> {
    (0..11u8, any::<[u8; 44]>(), any::<[u8; 20]>(), prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(kind, ses, pds, payload)| {
        let (bytes, whole) = (payload.len() as u16, payload.len() as u32);
        let first = SesFirst(ses).with_version(0).with_som(true).with_eom(true).with_opcode(SesOpcode::Send as u8).with_request_length(whole);
        let first = Ses::First(first, Operands::default());
        let request = PdsRequest(*pds.first_chunk().unwrap());
        let ack = PdsAck(*pds.first_chunk().unwrap());
        let standard = |kind: PdsType| request.with_kind(kind as u8).with_next(NextHeader::Standard as u8);
        match kind {
            0 => (Pds::Request(standard(PdsType::RudReq), None), first, payload),
            1 => (Pds::Request(standard(PdsType::RodCcReq), Some(PdsRequestCc([7; 4]))), first, payload),
            2 => {
                let small = SesSmall(*ses.first_chunk().unwrap()).with_version(0).with_som(true).with_eom(true).with_hd(false).with_opcode(SesOpcode::Write as u8).with_request_length(bytes);
                (Pds::Request(standard(PdsType::RodReq).with_next(NextHeader::Small as u8), None), Ses::Small(small, Operands::default()), payload)
            }
            3 => {
                let medium = SesMedium(*ses.first_chunk().unwrap()).with_version(0).with_som(true).with_eom(true).with_opcode(SesOpcode::TaggedSend as u8).with_request_length(bytes);
                (Pds::Request(standard(PdsType::RudReq).with_next(NextHeader::Medium as u8), None), Ses::Medium(medium, Operands::default()), payload)
            }
            4 => {
                let next = SesNext(ses).with_version(0).with_som(false).with_opcode(SesOpcode::Write as u8).with_payload_length(bytes).with_message_offset(100).with_request_length(whole + 100);
                (Pds::Request(standard(PdsType::RudReq), None), Ses::Next(next, Operands::default()), payload)
            }
            5 => (Pds::Ack(ack.with_kind(PdsType::Ack as u8).with_next(0), None), Ses::None, Vec::new()),
            6 => {
                let response = SesResponse(*ses.first_chunk().unwrap()).with_version(0);
                (Pds::Ack(ack.with_kind(PdsType::AckCc as u8).with_next(NextHeader::Response as u8), Some(PdsAckCc(pds))), Ses::Response(response), Vec::new())
            }
            7 => (Pds::Nack(PdsNack(*pds.first_chunk().unwrap()).with_kind(PdsType::Nack as u8).with_next(0)), Ses::None, Vec::new()),
            8 => (Pds::Control(PdsControl(*pds.first_chunk().unwrap()).with_kind(PdsType::Control as u8)), Ses::None, Vec::new()),
            9 => (Pds::Rudi(PdsRudi(*pds.first_chunk().unwrap()).with_kind(PdsType::RudiReq as u8).with_next(NextHeader::Standard as u8)), first, payload),
            _ => {
                let datagram = SesMedium(*ses.first_chunk().unwrap()).with_version(0).with_som(true).with_eom(true).with_opcode(SesOpcode::DatagramSend as u8).with_request_length(bytes);
                (Pds::Uud(PdsUud(*pds.first_chunk().unwrap()).with_kind(PdsType::UudReq as u8).with_next(NextHeader::Medium as u8)), Ses::Medium(datagram, Operands::default()), payload)
            }
        }
    })
}

proptest! {
    #[test]
    fn frames_come_back((pds, ses, payload) in packets(), carriage in carriages(), crc in any::<bool>(), crc_big in any::<bool>(), padding in 0..20usize) {
        let registers = Registers { crc, crc_big, dscp_trimmed: 62, dscp_trimmed_last: 63, ..Registers::default() };
        let mut frame = build(&Message { carriage, pds, ses, payload: &payload }, &registers);
        frame.extend(vec![0xa5; padding]);
        let parsed = parse(&frame, &registers).unwrap();
        prop_assert_eq!((parsed.carriage, parsed.pds, parsed.ses, parsed.payload), (carriage, pds, ses, payload));
        let others = SlicedPacket::from_ethernet(&frame).unwrap();
        if carriage.native.is_none() {
            let Some(etherparse::TransportSlice::Udp(udp)) = others.transport else { panic!("no UDP") };
            prop_assert_eq!((udp.source_port(), udp.destination_port(), udp.checksum()), (carriage.entropy, 4793, 0));
        }
        if let Some(etherparse::InternetSlice::Ipv4(ip)) = others.net {
            let header = ip.header().to_header();
            prop_assert_eq!(header.calc_header_checksum(), header.header_checksum);
            prop_assert!(header.dont_fragment);
        }
    }
}
