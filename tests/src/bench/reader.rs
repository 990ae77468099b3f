//! Reads boundary traces (`cycle,card,kind,bytes,last,addr` per line) and recomputes figures from them.
use std::path::Path;

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    cycle: u64,
    card: u16,
    kind: Kind,
    bytes: u64,
    last: bool,
}

/// Event kinds the figures need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Doorbell accepted.
    Doorbell,
    /// Read address accepted.
    ReadAddress,
    /// Last beat of a read.
    ReadLast,
    /// Write address accepted.
    WriteAddress,
    /// Beat on the wire.
    TxBeat,
    /// Beat from the wire.
    RxBeat,
    /// Anything else.
    Other,
}

/// Parses a trace file.
pub fn read(path: &Path) -> Result<Vec<Line>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.lines().enumerate().map(|(n, l)| line(l).ok_or_else(|| format!("{}:{}: not a trace line", path.display(), n + 1))).collect()
}

fn line(text: &str) -> Option<Line> {
    let mut f = text.split(',');
    let cycle = f.next()?.parse().ok()?;
    let card = f.next()?.parse().ok()?;
    let kind = match f.next()? {
        "Doorbell" => Kind::Doorbell,
        "ReadAddress" => Kind::ReadAddress,
        "ReadLast" => Kind::ReadLast,
        "WriteAddress" => Kind::WriteAddress,
        "TxBeat" => Kind::TxBeat,
        "RxBeat" => Kind::RxBeat,
        _ => Kind::Other,
    };
    Some(Line { cycle, card, kind, bytes: f.next()?.parse().ok()?, last: f.next()? == "true" })
}

/// A frame on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Cycle of the first beat.
    pub first: u64,
    /// Cycle of the last beat.
    pub last: u64,
    /// Length without FCS.
    pub bytes: u64,
}

/// Frames `card` sent.
pub fn frames(trace: &[Line], card: u16) -> Vec<Frame> {
    let mut out = Vec::new();
    let mut open: Option<Frame> = None;
    for l in trace.iter().filter(|l| l.card == card && l.kind == Kind::TxBeat) {
        let f = open.get_or_insert(Frame { first: l.cycle, last: l.cycle, bytes: 0 });
        f.bytes += l.bytes;
        f.last = l.cycle;
        if l.last {
            out.extend(open.take());
        }
    }
    out
}

/// Bytes of an IPv4 RoCEv2 frame around the payload of a WRITE Middle: Ethernet, IPv4, UDP, BTH, ICRC.
const AROUND: u64 = 14 + 20 + 8 + 12 + 4;
/// An acknowledge is shorter than this, a data frame of the benches is longer.
pub const DATA: u64 = AROUND + 60;

/// Cycles the best frame sequence needs for the payload `card` sent, divided by the cycles from its first to its last data beat,
/// in percent. `mtu`: path MTU; `beat`: bytes per beat.
pub fn efficiency(trace: &[Line], card: u16, mtu: u64, beat: u64) -> Option<f64> {
    let data: Vec<Frame> = frames(trace, card).into_iter().filter(|f| f.bytes >= DATA).collect();
    let (first, last) = (data.first()?, data.last()?);
    let best: u64 = data.iter().map(|f| (mtu.min(f.bytes - AROUND) + AROUND).div_ceil(beat)).sum();
    Some(100.0 * best as f64 / (last.last - first.first + 1) as f64)
}

/// Length of an atomic's request: AtomicETH, no payload.
pub const ATOMIC: u64 = AROUND + 28;

/// Cycles from the first data frame `card` sent to the last, per message: a frame that is sent again makes the figure worse, not better.
pub fn cycles_per_message(trace: &[Line], card: u16, messages: u64) -> Option<f64> {
    cycles_per_frame(trace, card, messages, DATA)
}

/// The same with frames of at least `least` bytes.
pub fn cycles_per_frame(trace: &[Line], card: u16, messages: u64, least: u64) -> Option<f64> {
    let data: Vec<Frame> = frames(trace, card).into_iter().filter(|f| f.bytes >= least).collect();
    let (first, last) = (data.first()?, data.last()?);
    (messages > 1 && data.len() as u64 >= messages).then(|| (last.first - first.first) as f64 / (messages - 1) as f64)
}

/// Doorbell to first beat on the wire, less the time the card waited for its serial host reads (address to last beat of each).
/// Mean over the doorbells of `card`; each must be followed by one frame before the next.
pub fn doorbell_to_wire(trace: &[Line], card: u16) -> Option<f64> {
    let (mut sum, mut n) = (0u64, 0u64);
    let mut bell: Option<(u64, u64, u64)> = None; // doorbell cycle, cycles spent in reads, open read's start
    let mut in_frame = false;
    for l in trace.iter().filter(|l| l.card == card) {
        match (l.kind, &mut bell) {
            (Kind::Doorbell, _) => bell = Some((l.cycle, 0, 0)),
            (Kind::ReadAddress, Some((_, _, start))) => *start = l.cycle,
            (Kind::ReadLast, Some((_, spent, start))) => *spent += l.cycle - *start,
            (Kind::TxBeat, Some((at, spent, _))) if !in_frame => {
                sum += l.cycle - *at - *spent;
                n += 1;
                bell = None;
            }
            _ => {}
        }
        if l.kind == Kind::TxBeat {
            in_frame = !l.last;
        }
    }
    (n > 0).then(|| sum as f64 / n as f64)
}

/// Last beat of a received data frame to the first write address after it, mean, at `card`.
pub fn wire_to_dma(trace: &[Line], card: u16) -> Option<f64> {
    let (mut sum, mut n, mut bytes) = (0u64, 0u64, 0u64);
    let mut arrived = None;
    for l in trace.iter().filter(|l| l.card == card) {
        match l.kind {
            Kind::RxBeat => {
                bytes += l.bytes;
                if l.last {
                    if bytes >= DATA {
                        arrived = Some(l.cycle);
                    }
                    bytes = 0;
                }
            }
            Kind::WriteAddress => {
                if let Some(at) = arrived.take() {
                    sum += l.cycle - at;
                    n += 1;
                }
            }
            _ => {}
        }
    }
    (n > 0).then(|| sum as f64 / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(lines: &str) -> Vec<Line> {
        lines.lines().map(|l| line(l).unwrap()).collect()
    }

    /// Two Middle packets of 4096 with one idle cycle between them: 130 ideal beats in 131 cycles.
    #[test]
    fn known_answers() {
        let mut text = String::new();
        for frame in 0..2u64 {
            for beat in 0..65u64 {
                let bytes = if beat == 64 { 4096 + AROUND - 64 * 64 } else { 64 };
                text += &format!("{},0,TxBeat,{bytes},{},0\n", frame * 66 + beat, beat == 64);
            }
        }
        let t = trace(&text);
        assert_eq!(frames(&t, 0).len(), 2);
        assert!((efficiency(&t, 0, 4096, 64).unwrap() - 100.0 * 130.0 / 131.0).abs() < 1e-9);
        let t = trace("10,0,Doorbell,0,true,0\n15,0,ReadAddress,64,true,0\n265,0,ReadLast,64,true,0\n290,0,TxBeat,64,false,0\n291,0,TxBeat,64,false,0\n292,0,TxBeat,10,true,0\n300,1,RxBeat,64,false,0\n301,1,RxBeat,64,false,0\n302,1,RxBeat,10,true,0\n320,1,WriteAddress,64,true,0");
        assert_eq!(doorbell_to_wire(&t, 0), Some(30.0));
        assert_eq!(wire_to_dma(&t, 1), Some(18.0));
        assert!(line("1,2,TxBeat").is_none());
        let t = trace("0,0,TxBeat,64,false,0\n1,0,TxBeat,64,true,0\n4,0,TxBeat,64,false,0\n5,0,TxBeat,64,true,0\n8,0,TxBeat,64,false,0\n9,0,TxBeat,64,true,0");
        assert_eq!(cycles_per_message(&t, 0, 3), Some(4.0));
        // The third was the second once more.
        assert_eq!(cycles_per_message(&t, 0, 2), Some(8.0));
        assert_eq!(cycles_per_message(&t, 0, 4), None);
    }
}
