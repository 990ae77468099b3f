//! The parser and the builder against the software codecs (`ferric_uet::wire`): recorded frames, each of their truncations, random ones.
mod model;

use super::types::{Note, UetHead, STATS, STAT_BITS};
use super::{Builder, Parser};
use crate::tb::{AxisSink, AxisSource, Fields, Sink, Source, Tb};
use ferric_abi::uet::UET_CRC_BYTES;
use ferric_uet::wire::{build, parse, Message, Parsed, Registers, Ses};
use model::{cause_of, packet, random, record, Packet};
use pcap_file::pcap::PcapReader;

/// Recorded files.
const FILES: [&str; 5] = ["golden_vectors", "xdp2_uet_pds", "xdp2_uet_ses", "ns3_rud_write_1pkt", "ns3_rud_loss_retx"];

fn recorded(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/../tests/captures/uet/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
    let mut reader = PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    std::iter::from_fn(|| Some(reader.next_packet()?.unwrap().data.to_vec())).collect()
}

/// Registers with which no DSCP of the samples means that a frame was trimmed.
fn untrimmed() -> Registers {
    Registers { dscp_trimmed: 62, dscp_trimmed_last: 63, ..Registers::default() }
}

struct ParserBench {
    tb: Tb,
    beats: AxisSource,
    notes: Source,
    heads: Sink,
}

impl ParserBench {
    fn new<const W: usize, const K: usize, const L: usize>() -> Self {
        let mut tb = Tb::new(&format!("uet_parser{W}"), Parser::<W, K, L>::default());
        tb.set("port", Registers::default().port.into());
        let (beats, notes, heads) = (tb.axis_source("s", 30), tb.source("note", 30), tb.sink("m", 30));
        Self { tb, beats, notes, heads }
    }

    fn stall(&self, beats: u32, notes: u32, heads: u32) {
        self.beats.set_stall(beats);
        self.notes.set_stall(notes);
        self.heads.set_stall(heads);
    }

    /// Gives `packets`, and compares what comes with what `judge` says of each: its record, or the bit that counts it.
    fn compare(&mut self, packets: &[Packet], judge: impl Fn(&Packet) -> Result<Parsed, u64>) -> Vec<u64> {
        let note = Fields::of::<Note>();
        let fields = Fields::of::<UetHead>();
        let mut expected = Vec::new();
        let mut counts = [0; STAT_BITS];
        for packet in packets {
            self.beats.push(&packet.bytes);
            self.notes.push(note.pack(&[("native", packet.native.into()), ("trim", packet.trim.into())]));
            match judge(packet) {
                Ok(parsed) => {
                    counts[0] += 1;
                    counts[STAT_BITS - 1] += u64::from(!parsed.reserved().is_empty());
                    expected.push((packet, record(&parsed)));
                }
                Err(cause) => counts[cause as usize] += 1,
            }
        }
        // The last pulse of the packets before is over.
        self.tb.cycle();
        let (mut got, mut counted) = (0, [0; STAT_BITS]);
        let heads = &self.heads;
        let total = |counted: &[u64; STAT_BITS]| counted[..STAT_BITS - 1].iter().sum::<u64>();
        self.tb.run_until(20_000 + 2000 * packets.len() as u64, |tb| {
            let stat = tb.get("stat");
            (0..STAT_BITS).for_each(|bit| counted[bit] += stat >> bit & 1);
            while let Some(words) = heads.pop() {
                let (packet, words_expected) = expected.get(got).unwrap_or_else(|| panic!("one too many: {:x?}", fields.unpack(&words)));
                let differs: Vec<_> = fields.unpack(&words).into_iter().zip(fields.unpack(words_expected)).filter(|(a, b)| a != b).collect();
                assert!(differs.is_empty(), "got, expected: {differs:x?} of {:x?}", packet);
                got += 1;
            }
            got == expected.len() && total(&counted) == packets.len() as u64
        });
        let names = |counts: &[u64; STAT_BITS]| STATS.iter().zip(counts).map(|(name, count)| (*name, *count)).collect::<Vec<_>>();
        assert_eq!(names(&counted), names(&counts));
        counts.to_vec()
    }
}

fn by_model(registers: Registers) -> impl Fn(&Packet) -> Result<Parsed, u64> {
    move |packet| parse(&packet.frame, &registers).map_err(|bad| cause_of(bad).unwrap_or_else(|| panic!("{bad:?} is not the parser's affair: {packet:x?}")))
}

/// The recorded frames, and all of them cut behind each byte of their headers.
fn captures<const W: usize, const K: usize, const L: usize>() {
    let mut bench = ParserBench::new::<W, K, L>();
    let registers = untrimmed();
    let mut packets = Vec::new();
    for frame in FILES.iter().flat_map(|name| recorded(name)) {
        packets.extend(packet(&frame, &registers));
    }
    let whole = packets.len();
    assert!(whole > 45, "{whole} frames");
    let counts = bench.compare(&packets, by_model(registers));
    assert!(counts[0] > 20, "{counts:?}");
    let mut cut = Vec::new();
    for Packet { frame, .. } in &packets {
        for end in 35..frame.len().min(150) {
            let mut frame = frame[..end].to_vec();
            let inner = (end - 14) as u16;
            frame[16..18].copy_from_slice(&inner.to_be_bytes());
            frame[24..26].fill(0);
            let sum: u32 = frame[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            if frame[23] == ferric_abi::wire::protocol::UDP && end >= 40 {
                frame[38..40].copy_from_slice(&(inner - 20).to_be_bytes());
            }
            cut.extend(packet(&frame, &registers));
        }
    }
    bench.stall(0, 0, 20);
    let counts = bench.compare(&cut, by_model(registers));
    for name in ["uet_rx", "uet_rx_truncated", "uet_rx_pds_short", "uet_rx_ses_short", "uet_rx_payload_length", "uet_rx_tss"] {
        let bit = STATS.iter().position(|stat| *stat == name).unwrap();
        assert!(counts[bit] > 10, "{name}: {counts:?}");
    }
}

#[test]
fn recorded_frames_are_read_as_the_codecs_read_them() {
    captures::<64, 8, 4>();
    captures::<512, 64, 7>();
}

fn randoms<const W: usize, const K: usize, const L: usize>(count: usize) {
    let mut bench = ParserBench::new::<W, K, L>();
    let registers = Registers::default();
    let mut total = vec![0; STAT_BITS];
    for stalls in [(0, 0, 0), (40, 0, 0), (0, 60, 10), (10, 10, 70)] {
        bench.stall(stalls.0, stalls.1, stalls.2);
        let frames: Vec<_> = (0..count).map(|_| random(bench.tb.rng(), &registers)).collect();
        let packets: Vec<_> = frames.iter().filter_map(|frame| packet(frame, &registers)).collect();
        let counts = bench.compare(&packets, by_model(registers));
        total.iter_mut().zip(counts).for_each(|(all, one)| *all += one);
    }
    assert!(total.iter().all(|n| *n > 0), "{:?}", STATS.iter().zip(&total).collect::<Vec<_>>());
    assert!(total[0] > count as u64, "{total:?}");
}

#[test]
fn random_frames_are_read_as_the_codecs_read_them() {
    randoms::<64, 8, 4>(2500);
    randoms::<512, 64, 7>(2500);
}

/// Each reserved field alone, in a frame that has zeros in all others.
#[test]
fn each_reserved_field_is_looked_at() {
    let mut bench = ParserBench::new::<64, 8, 4>();
    let registers = untrimmed();
    let mut frames: Vec<_> = FILES.iter().flat_map(|name| recorded(name)).collect();
    frames.extend((0..4000).map(|_| random(bench.tb.rng(), &registers)));
    let mut alone = std::collections::BTreeMap::new();
    for mut frame in frames {
        if !parse(&frame, &registers).is_ok_and(|parsed| parsed.reserved().is_empty()) {
            continue;
        }
        for bit in 8 * 34..8 * frame.len().min(150) {
            frame[bit / 8] ^= 1 << (bit % 8);
            if let Ok([name]) = parse(&frame, &registers).map(|parsed| parsed.reserved()).as_deref() {
                alone.entry(name.clone()).or_insert_with(|| frame.clone());
            }
            frame[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert!(alone.keys().any(|name| name.contains("Atomic")), "{:?}", alone.keys());
    let packets: Vec<_> = alone.values().filter_map(|frame| packet(frame, &registers)).collect();
    let counts = bench.compare(&packets, by_model(registers));
    assert_eq!(counts[STAT_BITS - 1], alone.len() as u64, "{:?}", alone.keys());
}

/// Without stalls the parser takes a beat per cycle, and the record of a packet comes 13 cycles behind its last beat.
#[test]
fn the_parser_never_holds_up_the_stream() {
    let mut bench = ParserBench::new::<512, 64, 7>();
    bench.stall(0, 0, 0);
    let registers = untrimmed();
    let ack = recorded("golden_vectors").iter().filter_map(|frame| packet(frame, &registers)).find(|packet| packet.bytes.len() <= 64 && parse(&packet.frame, &registers).is_ok()).unwrap();
    let note = Fields::of::<Note>();
    for _ in 0..500 {
        bench.notes.push(note.pack(&[("native", ack.native.into())]));
        bench.beats.push(&ack.bytes);
    }
    bench.tb.run(500 + 13);
    assert_eq!(bench.heads.len(), 500);
}

struct BuilderBench {
    tb: Tb,
    heads: Source,
    beats: AxisSink,
}

impl BuilderBench {
    fn new<const W: usize, const K: usize, const L: usize>() -> Self {
        let mut tb = Tb::new(&format!("uet_builder{W}"), Builder::<W, K, L>::default());
        tb.set("port", Registers::default().port.into());
        let (heads, beats) = (tb.source("s", 30), tb.axis_sink("m", 30));
        Self { tb, heads, beats }
    }
}

/// Headers of packets that were read are built again to the bit.
fn built<const W: usize, const K: usize, const L: usize>(count: usize, stalls: (u32, u32), crc: bool) {
    let mut bench = BuilderBench::new::<W, K, L>();
    bench.heads.set_stall(stalls.0);
    bench.beats.set_stall(stalls.1);
    bench.tb.set("crc", crc.into());
    let registers = untrimmed();
    let mut parsed: Vec<Parsed> = FILES.iter().flat_map(|name| recorded(name)).filter_map(|frame| parse(&frame, &registers).ok()).collect();
    parsed.extend((0..count).filter_map(|_| parse(&random(bench.tb.rng(), &registers), &registers).ok()));
    // Reserved bits are not built, nor is the length of a payload that does not follow.
    let said = |ses: &Ses| match ses {
        Ses::Next(head, _) => Some(head.payload_length()),
        Ses::Data(head) => Some(head.payload_length()),
        Ses::DataSmall(head) => Some(head.payload_length()),
        _ => None,
    };
    parsed.retain(|parsed| parsed.reserved().is_empty() && said(&parsed.ses).is_none_or(|bytes| usize::from(bytes) == parsed.payload.len()));
    let mut kinds = [0; 16];
    let mut expected = Vec::new();
    for one in &parsed {
        let fields = Fields::of::<UetHead>();
        let mut words = record(one);
        fields.set(&mut words, "reserved", 1);
        let registers = Registers { crc, ..registers };
        let frame = build(&Message { carriage: one.carriage, pds: one.pds, ses: one.ses, payload: &one.payload }, &registers);
        let behind = one.payload.len() + if crc { UET_CRC_BYTES } else { 0 };
        let bytes = packet(&frame, &registers).unwrap().bytes;
        expected.push(bytes[..bytes.len() - behind].to_vec());
        kinds[fields.get(&words, "pds.kind") as usize] += 1;
        bench.heads.push(words);
    }
    let beats = &bench.beats;
    let mut got = 0;
    bench.tb.run_until(20_000 + 300 * expected.len() as u64, |_| {
        while let Some(bytes) = beats.pop() {
            assert_eq!(bytes, expected[got], "{:?}", parsed[got]);
            got += 1;
        }
        got == expected.len()
    });
    let all = [2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14];
    assert!(all.iter().all(|kind| kinds[*kind] > 0), "{kinds:?}");
}

#[test]
fn headers_are_built_as_the_codecs_build_them() {
    for (stalls, crc) in [((0, 0), false), ((30, 60), true)] {
        built::<64, 8, 4>(1500, stalls, crc);
        built::<512, 64, 7>(1500, stalls, crc);
    }
}
