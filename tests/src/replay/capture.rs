//! Capture files: classic pcap and pcapng, and what their packet comments say about the fate of each frame.
use super::error::{Error, Result};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use pcap_file::DataLink;
use std::time::Duration;

/// One frame in a capture, with the views it belongs to.
#[derive(Clone, Debug)]
pub struct Record {
    /// Number of the packet in the file, from 1.
    pub number: usize,
    /// Time stamp in nanoseconds.
    pub time: u64,
    /// Frame from the Ethernet header on, without FCS.
    pub bytes: Vec<u8>,
    /// A sender put this frame on the wire, here.
    pub sent: bool,
    /// A receiver got this frame, here.
    pub delivered: bool,
}

/// A capture: records in the order in which things happened.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// The frames. A reordered frame has one record where it was sent and one where it was delivered.
    pub records: Vec<Record>,
    /// Some packet says what became of it, so packets that say nothing were delivered once.
    pub annotated: bool,
}

/// A packet as a file has it.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Nanoseconds.
    pub time: u64,
    /// Frame without FCS.
    pub bytes: Vec<u8>,
    /// Comments, joined.
    pub comment: String,
    /// Direction of the packet flags: 1 and 2 are the two senders, 0 is not told.
    pub direction: u32,
}

impl Capture {
    /// Reads a file's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Self::from_packets(packets(bytes)?)
    }

    /// Sorts packets into views.
    pub fn from_packets(packets: Vec<Packet>) -> Result<Self> {
        let mut out = Self::default();
        for (i, p) in packets.iter().enumerate() {
            let number = i + 1;
            let fate = fate(&p.comment).map_err(|e| Error::Capture(format!("packet {number}: {e}")))?;
            out.annotated |= fate.is_some();
            let record = |sent, delivered| Record { number, time: p.time, bytes: p.bytes.clone(), sent, delivered };
            match fate.unwrap_or(Fate::Through) {
                Fate::Through | Fate::Overtook => out.records.push(record(true, true)),
                Fate::SentOnly => out.records.push(record(true, false)),
                Fate::DeliveredOnly => out.records.push(record(false, true)),
                Fate::Twice => out.records.extend([record(true, true), record(false, true)]),
                Fate::Delayed => {
                    // Sent before the frame of its own direction that overtook it.
                    let Some(at) = packets[..i].iter().rposition(|q| q.direction == p.direction && fate_is_overtook(&q.comment)) else {
                        return Err(Error::Capture(format!("packet {number}: delayed, but nothing overtook it")));
                    };
                    let at = out.records.iter().position(|r| r.number == at + 1).unwrap_or(0);
                    out.records.insert(at, record(true, false));
                    out.records.push(record(false, true));
                }
            }
        }
        Ok(out)
    }
}

/// The packets of a pcap or pcapng file.
pub fn packets(bytes: &[u8]) -> Result<Vec<Packet>> {
    match bytes.get(..4) {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => pcapng(bytes),
        Some([0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0xc3, 0xd4] | [0x4d, 0x3c, 0xb2, 0xa1] | [0xa1, 0xb2, 0x3c, 0x4d]) => pcap(bytes),
        Some(_) => Err(Error::Capture("neither pcap nor pcapng".into())),
        None => Err(Error::Capture("too short for a capture".into())),
    }
}

/// Writes packets as pcapng with nanosecond stamps.
pub fn write(packets: &[Packet]) -> Result<Vec<u8>> {
    let fail = |e: pcap_file::PcapError| Error::Capture(e.to_string());
    let mut writer = PcapNgWriter::new(Vec::new()).map_err(fail)?;
    let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
    interface.options.push(InterfaceDescriptionOption::IfTsResol(9));
    writer.write_pcapng_block(interface).map_err(fail)?;
    for p in packets {
        let mut options = vec![EnhancedPacketOption::Flags(p.direction)];
        if !p.comment.is_empty() {
            options.push(EnhancedPacketOption::Comment(p.comment.as_str().into()));
        }
        let block = EnhancedPacketBlock { interface_id: 0, timestamp: Duration::from_nanos(p.time), original_len: p.bytes.len() as u32, data: p.bytes.as_slice().into(), options };
        writer.write_pcapng_block(block).map_err(fail)?;
    }
    Ok(writer.into_inner())
}

/// What a comment says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Through,
    SentOnly,
    DeliveredOnly,
    Twice,
    Overtook,
    Delayed,
}

fn fate_is_overtook(comment: &str) -> bool {
    matches!(fate(comment), Ok(Some(Fate::Overtook)))
}

/// The vocabulary of fault comments; other comments say nothing about delivery.
fn fate(comment: &str) -> std::result::Result<Option<Fate>, String> {
    let c = comment.to_ascii_lowercase();
    let has = |s: &str| c.contains(s);
    Ok(Some(if has("delivered once") {
        Fate::Through
    } else if has("dropped") {
        Fate::SentOnly
    } else if has("duplicated") {
        if has("original") {
            Fate::Through
        } else if has("extra copy") {
            Fate::DeliveredOnly
        } else {
            Fate::Twice
        }
    } else if has("as sent") {
        Fate::SentOnly
    } else if has("as delivered") || has("delivered with") {
        Fate::DeliveredOnly
    } else if has("overtook") {
        Fate::Overtook
    } else if has("swapped") {
        Fate::Delayed
    } else if has("delivered after later") {
        return Err("the comment does not say when the delayed frame was delivered".into());
    } else {
        return Ok(None);
    }))
}

fn bad(what: &str, n: usize, e: impl std::fmt::Display) -> Error {
    Error::Capture(format!("{what} is damaged or truncated after {n} packets: {e}"))
}

fn whole(n: usize, captured: usize, original: u32) -> Result<()> {
    if captured < original as usize {
        return Err(Error::Capture(format!("packet {n} was cut to {captured} of {original} bytes by the capture's snap length")));
    }
    Ok(())
}

fn pcap(bytes: &[u8]) -> Result<Vec<Packet>> {
    let mut reader = PcapReader::new(bytes).map_err(|e| bad("pcap", 0, e))?;
    if reader.header().datalink != DataLink::ETHERNET {
        return Err(Error::Capture(format!("link type {:?} is not Ethernet", reader.header().datalink)));
    }
    let mut packets = Vec::new();
    while let Some(p) = reader.next_packet() {
        let p = p.map_err(|e| bad("pcap", packets.len(), e))?;
        whole(packets.len() + 1, p.data.len(), p.orig_len)?;
        packets.push(Packet { time: p.timestamp.as_nanos() as u64, bytes: p.data.to_vec(), comment: String::new(), direction: 0 });
    }
    Ok(packets)
}

/// Nanoseconds of a raw time stamp. The reader library takes every stamp as nanoseconds, whatever the interface says.
fn nanoseconds(raw: u128, interface: &InterfaceDescriptionBlock) -> u64 {
    let code = interface.options.iter().find_map(|o| if let InterfaceDescriptionOption::IfTsResol(r) = o { Some(*r) } else { None }).unwrap_or(6);
    let per_second = if code & 0x80 != 0 { 1u128 << (code & 0x7f).min(64) } else { 10u128.pow((code as u32).min(19)) };
    (raw * 1_000_000_000 / per_second) as u64
}

fn pcapng(bytes: &[u8]) -> Result<Vec<Packet>> {
    let mut reader = PcapNgReader::new(bytes).map_err(|e| bad("pcapng", 0, e))?;
    let mut interfaces: Vec<InterfaceDescriptionBlock<'static>> = Vec::new();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        let block = block.map_err(|e| bad("pcapng", packets.len(), e))?.into_owned();
        match block {
            Block::SectionHeader(_) => interfaces.clear(),
            Block::InterfaceDescription(i) => interfaces.push(i),
            Block::EnhancedPacket(p) => {
                let interface = interfaces.get(p.interface_id as usize).ok_or_else(|| bad("pcapng", packets.len(), "packet of an undeclared interface"))?;
                if interface.linktype != DataLink::ETHERNET {
                    return Err(Error::Capture(format!("link type {:?} is not Ethernet", interface.linktype)));
                }
                whole(packets.len() + 1, p.data.len(), p.original_len)?;
                let (mut comment, mut direction) = (String::new(), 0);
                for option in &p.options {
                    match option {
                        EnhancedPacketOption::Comment(c) => comment.push_str(c),
                        EnhancedPacketOption::Flags(f) => direction = f & 3,
                        _ => {}
                    }
                }
                packets.push(Packet { time: nanoseconds(p.timestamp.as_nanos(), interface), bytes: p.data.into_owned(), comment, direction });
            }
            _ => {}
        }
    }
    Ok(packets)
}
