//! nextpnr-ecp5 constraints.

use super::header;
use crate::Board;
use std::fmt::Write;

/// Pins, I/O standards, clocks, configuration.
pub fn pins(board: &Board) -> String {
    let mut text = header("#");
    for source in board.sources {
        writeln!(text, "# Source: {source}").expect("a String takes all");
    }
    let system = board.config.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
    writeln!(text, "SYSCONFIG {system};").expect("a String takes all");
    for pin in &board.pins {
        let vector = board.top.ports.iter().any(|p| p.name == pin.port && p.vector);
        let port = if vector { format!("{}[{}]", pin.port, pin.bit) } else { pin.port.clone() };
        let mut settings = pin.standard.map(|s| format!(" IO_TYPE={s}")).unwrap_or_default();
        for (key, value) in &pin.settings {
            write!(settings, " {key}={value}").expect("a String takes all");
        }
        writeln!(text, "LOCATE COMP \"{port}\" SITE \"{}\";\nIOBUF PORT \"{port}\"{settings};", pin.ball).expect("a String takes all");
    }
    for clock in board.clocks.iter().filter(|c| !c.derived) {
        writeln!(text, "FREQUENCY PORT \"{}\" {:.3} MHZ;", clock.object, 1000.0 / clock.period).expect("a String takes all");
    }
    text
}
