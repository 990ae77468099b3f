//! Ultra Ethernet transport: headers of packet delivery (PDS) and of semantics (SES), by the Ultra Ethernet specification 1.0, whose tables and figures are named as `UE`, with the
//! notes of 1.0.1 to 1.0.3. The specification itself was not at hand; sizes and places are those on which independent implementations agree, and docs/uet.md names those on which they do not.
//! The model in the crate `ferric-uet` reads these records, and so do blocks of gateware (`hdl/src/uet/head`), which no card has yet.

pub mod codes;

/// Expands `$callback!` with the declarations of the headers of Ultra Ethernet; see [`crate::define_codecs`].
#[macro_export]
macro_rules! uet_records {
    ($callback:ident) => { $callback! { Big;
        #[doc = "Entropy header of native IP carriage, in the place of the UDP ports (UE 3.5.10.1)."]
        UetEntropy [4] { entropy: u16[16] "Entropy value: chooses the path."; rsvd0: u16[16] "Zero."; }
        #[doc = "First two bytes of every PDS header (UE table 3-32)."]
        PdsPrologue [2] { kind: u8[5] "Type: `PdsType`."; next: u8[4] "Next header (`NextHeader`), of a control packet its type (`ControlType`)."; flags: u8[7] "By type."; }
        #[doc = "RUD and ROD request (UE table 3-33); of the types with congestion state, `PdsRequestCc` follows."]
        PdsRequest [12] { kind: u8[5] "RudReq, RodReq, RudCcReq or RodCcReq."; next: u8[4] "SES header."; rsvd0: u8[2] "Zero."; retx: bool[1] "Sent again."; ar: bool[1] "An acknowledge is asked for."; syn: bool[1] "The peer's PDC id is not known yet; `dpdcid` is a `PdsSyn`.";
            rsvd1: u8[2] "Zero."; clear_offset: u16[16] "Signed: CLEAR_PSN less PSN, never above 0."; psn: u32[32] "PSN."; spdcid: u16[16] "PDC id of the sender."; dpdcid: u16[16] "PDC id of the receiver; with `syn`: `PdsSyn`."; }
        #[doc = "What stands in the place of the destination's PDC id while it is not known (UE table 3-33)."]
        PdsSyn [2] { reserved_pdc: bool[1] "A reserved PDC is asked for."; rsvd0: u8[3] "Zero."; psn_offset: u16[12] "PSN less Start_PSN."; }
        #[doc = "Congestion state of a request (UE 3.5.10.4)."]
        PdsRequestCc [4] { ccc_id: u8[8] "Congestion context."; credit_target: u32[24] "Credit wanted in all, in 256 bytes."; }
        #[doc = "ACK, and the first part of ACK_CC (UE table 3-35)."]
        PdsAck [12] { kind: u8[5] "Ack, AckCc or AckCcx."; next: u8[4] "SES response, or none."; rsvd0: u8[1] "Zero."; marked: bool[1] "The acknowledged request came with ECN CE."; retx: bool[1] "The acknowledged request was sent again."; probe: bool[1] "Answer to a probe.";
            req: u8[2] "What the target wants: `AckRequest`."; rsvd1: u8[1] "Zero."; psn_offset: u16[16] "Signed: acknowledged PSN less CACK; of an answer to a probe the probe's word."; cack: u32[32] "All PSNs up to it are received and need no clear."; spdcid: u16[16] "PDC id of the sender."; dpdcid: u16[16] "PDC id of the receiver."; }
        #[doc = "Second part of ACK_CC (UE table 3-36)."]
        PdsAckCc [20] { cc_type: u8[4] "What `state` is: 0 `NsccState`, 1 `CreditState`."; rsvd0: u8[4] "Zero."; mpr: u8[8] "PSNs that may be outstanding, in 128; 0: no news."; sack_offset: u16[16] "Signed: PSN of bit 0 of `bitmap` less CACK.";
            bitmap: u64[64] "Bit i: PSN base + i is received; 0 says nothing."; state: u64[64] "Congestion state."; }
        #[doc = "Congestion state for sender windows (UE table 3-36)."]
        NsccState [8] { service_time: u16[16] "Time from the request's arrival to this ACK in 128 ns; 0: not known."; restore: bool[1] "Restore the window."; penalty: u8[7] "Destination flow control."; rcvd_bytes: u32[24] "Bytes received in all, in 256."; ooo_count: u16[16] "How far out of order; all ones: not known."; }
        #[doc = "Congestion state for receiver credit (UE table 3-36)."]
        CreditState [8] { credit: u32[24] "Credit in all, in 256 bytes."; rsvd0: u32[24] "Zero."; ooo_count: u16[16] "How far out of order; all ones: not known."; }
        #[doc = "NACK (UE 3.5.10.10)."]
        PdsNack [16] { kind: u8[5] "Nack."; next: u8[4] "0."; rsvd0: u8[1] "Zero."; marked: bool[1] "The request came with ECN CE."; retx: bool[1] "The request was sent again."; rudi: bool[1] "The packet was RUDI: `psn` is its packet id."; rsvd1: u8[3] "Zero.";
            code: u8[8] "`NackCode`."; vendor: u8[8] "Zero."; psn: u32[32] "Refused PSN, or packet id."; spdcid: u16[16] "PDC id of the sender; 0: it has none."; dpdcid: u16[16] "PDC id of the receiver."; payload: u32[32] "Expected or required PSN, by code."; }
        #[doc = "Control packet (UE table 3-38)."]
        PdsControl [16] { kind: u8[5] "Control."; ctl: u8[4] "`ControlType`."; rsvd0: u8[1] "Zero."; rod: bool[1] "The PDC is ROD; of types that may make one."; retx: bool[1] "Sent again."; ar: bool[1] "An acknowledge is asked for."; syn: bool[1] "As in a request.";
            rsvd1: u8[2] "Zero."; opaque: u16[16] "Word of a probe, which comes back."; psn: u32[32] "PSN, of types that have one."; spdcid: u16[16] "PDC id of the sender."; dpdcid: u16[16] "PDC id of the receiver."; payload: u32[32] "By type."; }
        #[doc = "RUDI request and response (UE 3.5.10.7)."]
        PdsRudi [8] { kind: u8[5] "RudiReq or RudiResp."; next: u8[4] "SES header."; rsvd0: u8[1] "Zero."; marked: bool[1] "Of a response: the request came with ECN CE."; retx: bool[1] "Sent again."; rsvd1: u8[4] "Zero."; rsvd2: u16[16] "Zero."; packet_id: u32[32] "Chosen by the initiator."; }
        #[doc = "UUD request (UE 3.5.10.9)."]
        PdsUud [4] { kind: u8[5] "UudReq."; next: u8[4] "SES header."; rsvd0: u8[7] "Zero."; rsvd1: u16[16] "Zero."; }

        #[doc = "First bytes of every SES request (UE 3.4.2.1)."]
        SesHead [4] { rsvd0: u8[2] "Zero."; opcode: u8[6] "`SesOpcode`."; version: u8[2] "0."; dc: bool[1] "Answer only when the data can be seen by all."; ie: bool[1] "The initiator has failed."; rel: bool[1] "Relative address."; hd: bool[1] "Header data count."; eom: bool[1] "Last packet."; som: bool[1] "First packet."; word: u16[16] "Message id, or the length of a short form."; }
        #[doc = "Standard request, first packet of its message (UE table 3-8)."]
        SesFirst [44] { rsvd0: u8[2] "Zero."; opcode: u8[6] "`SesOpcode`."; version: u8[2] "0."; dc: bool[1] "Answer only when the data can be seen by all."; ie: bool[1] "The initiator has failed."; rel: bool[1] "Relative address."; hd: bool[1] "`header_data` counts."; eom: bool[1] "Last packet."; som: bool[1] "1.";
            message_id: u16[16] "Message, 0 only of datagrams."; generation: u8[8] "Of the resource."; job_id: u32[24] "Job."; rsvd1: u8[4] "Zero."; pid: u16[12] "Process of the fabric endpoint."; rsvd2: u8[4] "Zero."; index: u16[12] "Resource index."; offset: u64[64] "Of the buffer; deferrable: tokens.";
            initiator: u32[32] "Initiator."; key: u64[64] "Memory key or match bits."; header_data: u64[64] "Header data."; request_length: u32[32] "Bytes of the message."; }
        #[doc = "Standard request, other packets (UE table 3-9)."]
        SesNext [44] { rsvd0: u8[2] "Zero."; opcode: u8[6] "`SesOpcode`."; version: u8[2] "0."; dc: bool[1] "Answer only when the data can be seen by all."; ie: bool[1] "The initiator has failed."; rel: bool[1] "Relative address."; hd: bool[1] "The message has header data."; eom: bool[1] "Last packet."; som: bool[1] "0.";
            message_id: u16[16] "Message."; generation: u8[8] "Of the resource."; job_id: u32[24] "Job."; rsvd1: u8[4] "Zero."; pid: u16[12] "Process of the fabric endpoint."; rsvd2: u8[4] "Zero."; index: u16[12] "Resource index."; offset: u64[64] "Of the buffer; deferrable: tokens.";
            initiator: u32[32] "Initiator."; key: u64[64] "Memory key or match bits."; rsvd3: u32[18] "Zero."; payload_length: u16[14] "Bytes of payload here."; message_offset: u32[32] "First of them in the message."; request_length: u32[32] "Bytes of the message."; }
        #[doc = "Small request (UE 3.4.2.2)."]
        SesSmall [20] { rsvd0: u8[2] "Zero."; opcode: u8[6] "`SesOpcode`."; version: u8[2] "0."; dc: bool[1] "Answer only when the data can be seen by all."; ie: bool[1] "The initiator has failed."; rel: bool[1] "Relative address."; hd: bool[1] "0."; eom: bool[1] "1."; som: bool[1] "1.";
            rsvd1: u8[2] "Zero."; request_length: u16[14] "Bytes of the message."; generation: u8[8] "Of the resource."; job_id: u32[24] "Job."; rsvd2: u8[4] "Zero."; pid: u16[12] "Process of the fabric endpoint."; rsvd3: u8[4] "Zero."; index: u16[12] "Resource index."; offset: u64[64] "Of the buffer."; }
        #[doc = "Medium request (UE 3.4.2.3)."]
        SesMedium [32] { rsvd0: u8[2] "Zero."; opcode: u8[6] "`SesOpcode`."; version: u8[2] "0."; dc: bool[1] "Answer only when the data can be seen by all."; ie: bool[1] "The initiator has failed."; rel: bool[1] "Relative address."; hd: bool[1] "`data` is header data."; eom: bool[1] "1."; som: bool[1] "1.";
            rsvd1: u8[2] "Zero."; request_length: u16[14] "Bytes of the message."; generation: u8[8] "Of the resource."; job_id: u32[24] "Job."; rsvd2: u8[4] "Zero."; pid: u16[12] "Process of the fabric endpoint."; rsvd3: u8[4] "Zero."; index: u16[12] "Resource index.";
            data: u64[64] "Header data, or offset of the buffer."; initiator: u32[32] "Initiator."; key: u64[64] "Memory key or match bits."; }
        #[doc = "Extension of atomics (UE figure 3-16)."]
        SesAtomic [4] { operation: u8[8] "`AtomicOp`."; datatype: u8[8] "`AtomicType`."; control: u8[8] "Semantics."; rsvd0: u8[8] "Zero."; }
        #[doc = "Operands of the compare-and-swap family, right-aligned, behind `SesAtomic`."]
        SesCompare [32] { compare: u128[128] "Compared."; swap: u128[128] "Stored."; }
        #[doc = "Response (UE table 3-11)."]
        SesResponse [12] { list: u8[2] "0: expected, 1: overflow or unexpected."; opcode: u8[6] "`ResponseOpcode`."; version: u8[2] "0."; code: u8[6] "`ReturnCode`."; message_id: u16[16] "Message."; generation: u8[8] "Of the resource."; job_id: u32[24] "Job."; modified_length: u32[32] "Bytes delivered."; }
        #[doc = "Response with data, in the return direction or in an ACK (UE 3.4.3)."]
        SesResponseData [20] { list: u8[2] "As in a response."; opcode: u8[6] "`ResponseOpcode`."; version: u8[2] "0."; code: u8[6] "`ReturnCode`."; message_id: u16[16] "Of the response."; rsvd0: u8[8] "Zero."; job_id: u32[24] "Job."; read_id: u16[16] "Message of the request."; rsvd1: u8[2] "Zero."; payload_length: u16[14] "Bytes of payload here.";
            modified_length: u32[32] "Bytes delivered."; message_offset: u32[32] "First byte of the payload in the message."; }
        #[doc = "Response with data to a short request (UE 3.4.3)."]
        SesResponseDataSmall [12] { list: u8[2] "As in a response."; opcode: u8[6] "`ResponseOpcode`."; version: u8[2] "0."; code: u8[6] "`ReturnCode`."; rsvd0: u8[2] "Zero."; payload_length: u16[14] "Bytes of payload here."; rsvd1: u8[8] "Zero."; job_id: u32[24] "Job."; request_psn: u32[32] "PSN of the request."; }
    } };
}

uet_records!(define_codecs);
use crate::define_codecs;

/// UDP destination port (IANA).
pub const UET_PORT: u16 = 4793;
/// Protocol of native IP carriage: none is assigned, so this is one for experiments (RFC 3692), as the reference provider has it.
pub const UET_PROTOCOL: u8 = 253;
/// Bytes of the CRC-32C behind the payload.
pub const UET_CRC_BYTES: usize = 4;
/// PSNs that a unit of `mpr` stands for.
pub const MPR_UNIT: u32 = 128;
/// Bytes that a unit of `rcvd_bytes` and of credits stands for.
pub const BYTES_UNIT: u32 = 256;
