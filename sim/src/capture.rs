//! pcapng of a link, with a comment on every injected fault.
use crate::error::Error;
use crate::fabric::Fate;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::DataLink;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// Nanoseconds per cycle at 250 MHz.
pub const CYCLE_NS: u64 = 4;

/// A capture file of one link, both directions.
pub struct Capture {
    writer: PcapNgWriter<BufWriter<File>>,
}

impl Capture {
    /// Creates the file.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let fail = |e: &dyn std::fmt::Display| Error::Capture(format!("{}: {e}", path.display()));
        let file = File::create(path).map_err(|e| fail(&e))?;
        let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(|e| fail(&e))?;
        let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
        // Time stamps are nanoseconds.
        interface.options.push(InterfaceDescriptionOption::IfTsResol(9));
        writer.write_pcapng_block(interface).map_err(|e| fail(&e))?;
        Ok(Self { writer })
    }

    /// Writes a frame sent at `cycle` in `direction` (1: from the first card, 2: from the second) and what became of it.
    pub fn frame(&mut self, cycle: u64, direction: u32, frame: &[u8], fate: Fate, delivered: Option<&[u8]>) -> Result<(), Error> {
        let comment = match fate {
            Fate::Delivered => None,
            Fate::Dropped => Some("DROPPED by the fabric"),
            Fate::Duplicated => Some("duplicated by the fabric: delivered twice"),
            Fate::Reordered => Some("delayed by the fabric: delivered after later frames"),
            Fate::Corrupted => Some("corrupted by the fabric: as sent, the next frame is as delivered"),
        };
        self.block(cycle, direction, frame, comment)?;
        match delivered {
            Some(bad) => self.block(cycle, direction, bad, Some("corrupted by the fabric: as delivered")),
            None => Ok(()),
        }
    }

    /// Writes a frame seen `nanos` after the start, and what is said of it.
    pub fn frame_at(&mut self, nanos: u64, direction: u32, frame: &[u8], comment: Option<&str>) -> Result<(), Error> {
        self.block(nanos / CYCLE_NS, direction, frame, comment)
    }

    /// Everything that was written is in the file behind this, for whoever reads it meanwhile.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.writer.get_mut().flush().map_err(|e| Error::Capture(e.to_string()))
    }

    fn block(&mut self, cycle: u64, direction: u32, frame: &[u8], comment: Option<&str>) -> Result<(), Error> {
        let mut options = vec![EnhancedPacketOption::Flags(direction)];
        options.extend(comment.map(|c| EnhancedPacketOption::Comment(Cow::Borrowed(c))));
        let block = EnhancedPacketBlock { interface_id: 0, timestamp: Duration::from_nanos(cycle * CYCLE_NS), original_len: frame.len() as u32, data: Cow::Borrowed(frame), options };
        self.writer.write_pcapng_block(block).map(drop).map_err(|e| Error::Capture(e.to_string()))
    }
}
