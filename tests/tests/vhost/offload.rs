//! Checksums that the device fills in or vouches for, and frames that it cuts into segments. `etherparse` judges what leaves.
use super::*;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use ferric_model::net::sums;

/// Bytes of the headers in front of a TCP segment over IPv4, and of what they begin with.
const HEADERS: usize = 54;
const IP: usize = 14;
const L4: usize = 34;
const SUM: usize = 16;
const PSH: u8 = 8;
const TCP: u8 = 6;
/// Flag of a header: the checksum has to be filled in; of a received frame: it is good.
const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
/// Kinds of segmentation.
const TCPV4: u8 = 1;

/// A TCP segment with its checksums.
fn segment(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ethernet2(OURS.0, PEER.0).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1000, 2000, 5000, 100).psh().ack(7).write(&mut bytes, payload).unwrap();
    bytes
}

/// As a driver leaves it to the device: the checksum is that of the pseudo header. `size`: bytes of payload in each segment, 0: it is not to be cut.
fn unfinished(payload: &[u8], size: usize) -> ([u8; HEADER], Vec<u8>) {
    let mut frame = segment(payload);
    let (source, destination) = frame[IP + 12..IP + 20].split_at(4);
    let sum = !sums::finish(sums::pseudo(source, destination, TCP, (frame.len() - L4) as u32));
    frame[L4 + SUM..L4 + SUM + 2].copy_from_slice(&sum.to_be_bytes());
    let half = |n: usize| (n as u16).to_le_bytes();
    let [[a, b], [c, d], [e, f]] = [half(size), half(L4), half(SUM)];
    ([NEEDS_CSUM, if size > 0 { TCPV4 } else { 0 }, HEADERS as u8, 0, a, b, c, d, e, f, 0, 0], frame)
}

/// Payload and sequence number of a frame whose lengths and checksums are right.
fn judged(frame: &[u8]) -> (Vec<u8>, u32) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (packet.net, packet.transport) else { panic!("no TCP over IPv4: {frame:02x?}") };
    assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
    assert_eq!(tcp.checksum(), tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).unwrap());
    assert_eq!(usize::from(ip.header().total_len()), frame.len() - IP);
    (tcp.payload().to_vec(), tcp.sequence_number())
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 31 + i / 256) as u8).collect()
}

/// Frames of every kind, with room for one at a time on the card: the rest waits, in order.
#[test]
fn frames_are_finished_and_cut() {
    for features in [PLAIN | CSUM | TSO | TABLES, PLAIN | CSUM | TSO | TABLES | PACKED | EVENTS] {
        let mut bench = Bench::new(Body::Twin, 1, &[OURS]);
        let mut front = Front::start(&bench.socket, features, 16);
        let (header, plain) = unfinished(&bytes(777), 0);
        front.send(0, &header, &plain);
        let whole = bytes(15_000);
        let (header, long) = unfinished(&whole, 1448);
        front.send(1, &header, &long);
        front.send(2, &[0; HEADER], &segment(&bytes(40)));
        front.kick(TX);
        (0..3).for_each(|n| assert_eq!(front.used(TX), (n, 0)));
        assert_eq!(judged(&bench.heard()), (bytes(777), 5000));
        let mut came = Vec::new();
        while came.len() < whole.len() {
            let frame = bench.heard();
            let (payload, sequence) = judged(&frame);
            assert_eq!(sequence as usize, 5000 + came.len());
            came.extend(payload);
            assert_eq!(frame[L4 + 13] & PSH != 0, came.len() == whole.len(), "PSH stands in the last segment alone");
        }
        assert!(came == whole);
        assert_eq!(judged(&bench.heard()).0, bytes(40));
        let counts = bench.end();
        assert_eq!(Counts { waits: 0, ..counts }, Counts { sent: 3, segments: 11, connections: 1, ..Default::default() });
    }
}

/// A guest that goes while the segments of its frame wait for room: all of them leave, and the next guest's frames behind them.
#[test]
fn segments_of_a_guest_that_has_gone_leave() {
    let mut bench = Bench::new(Body::Gateware, 1, &[OURS]);
    let mut front = Front::start(&bench.socket, PLAIN | CSUM | TSO, 16);
    let whole = bytes(15_000);
    let (header, long) = unfinished(&whole, 1448);
    front.send(0, &header, &long);
    front.kick(TX);
    assert_eq!(front.used(TX), (0, 0));
    drop(front);
    let came: Vec<u8> = (0..11).flat_map(|_| judged(&bench.heard()).0).collect();
    assert!(came == whole);
    let mut front = Front::start(&bench.socket, PLAIN, 16);
    front.send(0, &[0; HEADER], &segment(&bytes(40)));
    front.kick(TX);
    assert_eq!(judged(&bench.heard()).0, bytes(40));
    let counts = bench.end();
    assert!(counts.waits > 0, "{counts:?}");
    assert_eq!(Counts { waits: 0, ..counts }, Counts { sent: 2, segments: 11, connections: 2, ..Default::default() });
}

/// What the frame does not bear out, what was not agreed on, and segments that no card carries, go back.
#[test]
fn wrong_wishes_are_refused() {
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PLAIN | CSUM | TSO, 16);
    let (good, frame) = unfinished(&bytes(9000), 1000);
    let mut refused = |at: usize, value: u8| {
        let mut header = good;
        header[at] = value;
        front.send(0, &header, &frame);
        front.kick(TX);
        assert_eq!(front.used(TX), (0, 0));
    };
    // No checksum; IPv6; UDP, which was not agreed on; a sum elsewhere, and beyond the frame.
    [(0, 0), (1, 4), (1, 5), (6, 35), (8, 15), (7, 60)].into_iter().for_each(|(at, value)| refused(at, value));
    // In one piece, and in pieces, longer than the card carries; longer than any frame.
    refused(1, 0);
    refused(5, 0x22);
    front.describe(TX, 1, Front::buffer(1), (HEADER + 65_551) as u32, 0, 0);
    front.offer(TX, 1);
    front.kick(TX);
    assert_eq!(front.used(TX), (1, 0));
    front.send(2, &[0; HEADER], &segment(&bytes(41)));
    front.kick(TX);
    assert_eq!(front.used(TX), (2, 0));
    assert_eq!(judged(&bench.heard()).0, bytes(41));
    assert_eq!(bench.end(), Counts { sent: 1, sent_offload: 6, sent_long: 3, connections: 1, ..Default::default() });
}

/// The device vouches for checksums that are right, to those who take its word.
#[test]
fn good_checksums_are_vouched_for() {
    for (features, word) in [(PLAIN, 0), (PLAIN | GUEST_CSUM, DATA_VALID)] {
        let mut bench = Bench::twins();
        let mut front = Front::start(&bench.socket, features, 16);
        let mut frame = segment(&bytes(600));
        for wanted in [word, 0] {
            front.receive_into(3, 2000);
            bench.say(&frame);
            assert_eq!(front.used(RX).0, 3);
            let came = front.at(Front::buffer(3), HEADER + frame.len());
            assert_eq!((came[0], came[HEADER..] == frame), (wanted, true));
            // The next one has been changed on its way.
            frame[100] ^= 4;
        }
    }
}
