//! The boards.

mod alveo;
mod ecpix5;
mod f2;
mod u250;
mod u50;

pub use ecpix5::lamp;

use crate::netlist::Wiring;
use crate::{Board, Pin};

/// Every board, with all descriptions built.
pub fn all() -> Vec<Board> {
    vec![u50::board(), u250::board(), f2::board(), ecpix5::board()]
}

/// The board of that name.
pub fn find(key: &str) -> Option<Board> {
    all().into_iter().find(|b| b.key == key)
}

/// Pins from a table: `port ball standard KEY=VALUE ...`, one a line. A port's balls are in the order of its bits, with `+`
/// between them; the standard of a transceiver is `-`.
fn pins(table: &'static str) -> Vec<Pin> {
    let mut found = Vec::new();
    for line in table.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let mut words = line.split_whitespace();
        let (Some(port), Some(balls), Some(standard)) = (words.next(), words.next(), words.next()) else { panic!("not a line of pins: {line}") };
        let settings: Vec<_> = words.map(|w| w.split_once('=').unwrap_or_else(|| panic!("no setting: {w}"))).collect();
        for (bit, ball) in balls.split('+').enumerate() {
            found.push(Pin { port: port.into(), bit: bit as u32, ball: ball.into(), standard: Some(standard).filter(|s| *s != "-"), settings: settings.clone() });
        }
    }
    found
}

/// Connects the AXI4 or AXI4-Lite channels that two naming styles share: `aw_addr` here, `awaddr` there.
fn axi<'a>(mut wiring: Wiring<'a>, ours: &str, theirs: &str, fields: &str) -> Wiring<'a> {
    for field in fields.split_whitespace() {
        wiring = wiring.wire(&format!("{ours}{field}={theirs}{}", field.replace('_', "")));
    }
    wiring
}

/// Fields of AXI4-Lite.
const LITE: &str = "aw_valid aw_ready aw_addr w_valid w_ready w_data w_strb b_valid b_ready b_resp ar_valid ar_ready ar_addr r_valid r_ready r_data r_resp";
/// Write channels as the core has them.
const WRITES: &str = "aw_valid aw_ready aw_addr aw_len w_valid w_ready w_data w_strb w_last b_valid b_ready b_resp";
/// Read channels as the core has them, without the id.
const READS: &str = "ar_valid ar_ready ar_addr ar_len r_valid r_ready r_data r_resp r_last";
