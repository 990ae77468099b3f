//! The block against its model, and both against what others make of ARP and ICMP.
use super::model::{judge, Verdict, LONGEST};
use super::Echo;
use crate::memory_target::model::{checksum, Station};
use crate::tb::{AxisSink, Source, Tb};
use etherparse::{checksum::u32_16bit_word, icmpv4, Icmpv4Slice, Icmpv4Type, PacketBuilder, SlicedPacket, TransportSlice};
use ferric_abi::wire::{Arp, Eth};

const CARD: Station = Station { mac: 0x02fe_1100_0001, ip: 0x0a00_0001 };
const PEER: Station = Station { mac: 0x0200_5e00_0002, ip: 0x0a00_0002 };

fn mac(station: Station) -> [u8; 6] {
    station.mac.to_be_bytes()[2..].try_into().expect("6 bytes")
}

/// As the MAC hands it over: padded to 60 bytes.
fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(60), 0);
    frame
}

fn ping(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(mac(PEER), mac(CARD)).ipv4(PEER.ip.to_be_bytes(), CARD.ip.to_be_bytes(), 61).icmpv4_echo_request(0x1234, 7);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).expect("a frame");
    padded(frame)
}

fn who_has() -> Vec<u8> {
    let eth = Eth::default().with_dst(0xffff_ffff_ffff).with_src(PEER.mac).with_ethertype(0x0806);
    let arp = Arp::default().with_htype(1).with_ptype(0x0800).with_hlen(6).with_plen(4).with_oper(1).with_sha(PEER.mac).with_spa(PEER.ip).with_tpa(CARD.ip);
    padded([&eth.0[..], &arp.0].concat())
}

struct Lab {
    tb: Tb,
    rx: Source,
    tx: AxisSink,
    answered: u32,
    malformed: u32,
}

impl Lab {
    fn new(stall: u32, seed: u64) -> Lab {
        let mut tb = Tb::with_seed("target_echo", Echo::default(), seed);
        let rx = tb.source_of("rx_", &["data", "keep", "last", "err"], stall);
        let tx = tb.axis_sink("tx", stall);
        tb.set("mac", CARD.mac);
        tb.set("ip", CARD.ip.into());
        Lab { tb, rx, tx, answered: 0, malformed: 0 }
    }

    fn push(&mut self, frame: &[u8], err: bool) {
        for (n, beat) in frame.chunks(8).enumerate() {
            let mut bytes = [0xa5; 8];
            bytes[..beat.len()].copy_from_slice(beat);
            let word = u64::from_le_bytes(bytes);
            let last = u32::from(8 * (n + 1) >= frame.len());
            self.rx.push_fields(&[&[word as u32, (word >> 32) as u32], &[(1 << beat.len()) - 1], &[last], &[u32::from(err) & last]]);
        }
    }

    fn run(&mut self, cycles: usize) {
        for _ in 0..cycles {
            self.answered += u32::from(self.tb.get("answered") == 1);
            self.malformed += u32::from(self.tb.get("malformed") == 1);
            self.tb.cycle();
        }
    }

    /// A frame, and all that it leads to.
    fn exchange(&mut self, frame: &[u8], err: bool) -> Verdict {
        let (answered, malformed) = (self.answered, self.malformed);
        self.push(frame, err);
        self.run(frame.len() + 80);
        let verdict = match self.tx.pop() {
            Some(answer) => Verdict::Answered(answer),
            None if self.malformed > malformed => Verdict::Malformed,
            None => Verdict::Ignored,
        };
        let counted = (self.answered - answered, self.malformed - malformed);
        assert_eq!(
            counted,
            match verdict {
                Verdict::Answered(_) => (1, 0),
                Verdict::Malformed => (0, 1),
                Verdict::Ignored => (0, 0),
            }
        );
        assert!(self.tx.pop().is_none());
        verdict
    }
}

/// The ICMP message of a frame, by etherparse, with its checksum.
fn parsed(frame: &[u8]) -> (Icmpv4Type, Vec<u8>) {
    let sliced = SlicedPacket::from_ethernet(frame).expect("a frame");
    let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("not ICMP: {sliced:?}") };
    let icmp: Icmpv4Slice = icmp;
    let sum = u32_16bit_word::add_slice(0, icmp.slice());
    assert_eq!(u32_16bit_word::ones_complement(sum), 0, "the answer's checksum");
    (icmp.icmp_type(), icmp.payload().to_vec())
}

#[test]
fn echoes_are_answered() {
    let mut lab = Lab::new(30, 1);
    for len in (0..40).chain([100, 999, 1471, 1472, LONGEST - 42]) {
        let payload = lab.tb.rng().bytes(len);
        let request = ping(&payload);
        let Verdict::Answered(answer) = lab.exchange(&request, false) else { panic!("{len}: no answer") };
        let (kind, got) = parsed(&answer);
        assert_eq!(kind, Icmpv4Type::EchoReply(etherparse::IcmpEchoHeader { id: 0x1234, seq: 7 }));
        assert_eq!(got, payload);
        assert_eq!(checksum(&answer[14..34]), 0);
        assert_eq!(judge(&request, CARD), Verdict::Answered(answer));
    }
    assert_eq!(icmpv4::TYPE_ECHO_REPLY, 0);
    assert_eq!(lab.exchange(&ping(&[1; LONGEST - 41]), false), Verdict::Malformed, "too long");
    assert_eq!(lab.exchange(&ping(&[1; 3000]), false), Verdict::Malformed);
    assert_eq!(lab.exchange(&ping(&[1; 100]), true), Verdict::Ignored, "a wrong FCS");
}

#[test]
fn arp_is_answered() {
    let mut lab = Lab::new(0, 2);
    let Verdict::Answered(answer) = lab.exchange(&who_has(), false) else { panic!("no answer") };
    // By hand, as RFC 826 has it.
    let expected = [
        &[0x02, 0x00, 0x5e, 0x00, 0x00, 0x02, 0x02, 0xfe, 0x11, 0x00, 0x00, 0x01, 0x08, 0x06][..],
        &[0, 1, 8, 0, 6, 4, 0, 2, 0x02, 0xfe, 0x11, 0x00, 0x00, 0x01, 10, 0, 0, 1, 0x02, 0x00, 0x5e, 0x00, 0x00, 0x02, 10, 0, 0, 2],
    ];
    assert_eq!(answer, expected.concat());
    // To us alone: as when a peer looks whether we are still there.
    let mut alone = who_has();
    alone[..6].copy_from_slice(&mac(CARD));
    assert_eq!(lab.exchange(&alone, false), Verdict::Answered(answer));
    // Others', answers, a tag: not ours.
    for (at, bit) in [(0, 0), (12, 0), (13, 0), (21, 1), (41, 0)] {
        let mut frame = who_has();
        frame[at] ^= 1 << bit;
        assert_eq!(lab.exchange(&frame, false), Verdict::Ignored, "byte {at}");
    }
    let tagged = [&who_has()[..12], &[0x81, 0, 0, 5], &who_has()[12..]].concat();
    assert_eq!(lab.exchange(&tagged, false), Verdict::Ignored);
    // Hardware, protocol, lengths, a sender that is many.
    for (at, bit) in [(14, 0), (15, 1), (16, 2), (17, 0), (18, 0), (19, 1), (22, 0)] {
        let mut frame = who_has();
        frame[at] ^= 1 << bit;
        assert_eq!(lab.exchange(&frame, false), Verdict::Malformed, "byte {at}");
    }
}

/// Requests with one bit changed, right checksums in some, other frames between and behind them.
#[test]
fn the_model_agrees() {
    let mut lab = Lab::new(10, 3);
    let mut seen = [0u32; 3];
    for n in 0..1500 {
        let len = lab.tb.rng().below(120) as usize;
        let payload = lab.tb.rng().bytes(len);
        let mut frame = if n % 3 == 0 { who_has() } else { ping(&payload) };
        for _ in 0..lab.tb.rng().below(3) {
            let at = lab.tb.rng().below(frame.len().min(60) as u64) as usize;
            frame[at] ^= 1 << lab.tb.rng().below(8);
        }
        if lab.tb.rng().percent(50) && frame[12..14] == [8, 0] {
            frame[24..26].fill(0);
            let sum = checksum(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            let end = (14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]))).clamp(42, frame.len());
            frame[36..38].fill(0);
            let sum = checksum(&frame[34..end]);
            frame[36..38].copy_from_slice(&sum.to_be_bytes());
        }
        if lab.tb.rng().percent(10) {
            let cut = lab.tb.rng().range(1, frame.len() as u64) as usize;
            frame.truncate(cut);
        }
        let verdict = lab.exchange(&frame, false);
        assert_eq!(verdict, judge(&frame, CARD), "frame {n}: {frame:02x?}");
        seen[match verdict {
            Verdict::Ignored => 0,
            Verdict::Malformed => 1,
            Verdict::Answered(_) => 2,
        }] += 1;
    }
    assert!(seen.iter().all(|s| *s > 100), "{seen:?}");
}

/// Noise right in front, and a request while another is worked on: that one is not heard, later ones are.
#[test]
fn one_at_a_time() {
    let mut lab = Lab::new(0, 4);
    for n in 0..200usize {
        let len = lab.tb.rng().range(1, 200) as usize;
        let noise = lab.tb.rng().bytes(len);
        lab.push(&noise, n % 2 == 0);
        let frame = if n % 2 == 0 { ping(&noise) } else { who_has() };
        assert_eq!(lab.exchange(&frame, false), judge(&frame, CARD), "after noise");
    }
    let first = ping(b"the first one");
    lab.push(&first, false);
    lab.push(&ping(b"the second"), false);
    assert_eq!(lab.exchange(&who_has(), false), judge(&first, CARD));
    lab.run(100);
    assert_eq!(lab.exchange(&who_has(), false), judge(&who_has(), CARD));
    // Nor is the rest of one that began meanwhile and ends when the answer has gone.
    let mut long = ping(&[7; 1000]);
    long[36] ^= 1;
    lab.push(&first, false);
    assert_eq!(lab.exchange(&long, false), judge(&first, CARD));
}
