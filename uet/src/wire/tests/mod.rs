//! Frames against captures, published vectors and crates of others.
mod captures;
mod hostile;
mod round;

use super::Registers;
use pcap_file::pcap::PcapReader;

/// Frames of a recorded file.
fn frames(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/../tests/captures/uet/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut reader = PcapReader::new(file).unwrap();
    std::iter::from_fn(|| Some(reader.next_packet()?.unwrap().data.to_vec())).collect()
}

/// Registers with which no DSCP of the samples means that a frame was trimmed.
fn registers() -> Registers {
    Registers { dscp_trimmed: 62, dscp_trimmed_last: 63, ..Registers::default() }
}
