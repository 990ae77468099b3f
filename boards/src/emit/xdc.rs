//! Vivado constraints.

use super::header;
use crate::{Board, Clock};
use std::fmt::Write;

/// Pins, I/O standards, configuration.
pub fn pins(board: &Board) -> String {
    let mut text = header("#");
    for source in board.sources {
        writeln!(text, "# Source: {source}").expect("a String takes all");
    }
    for (key, value) in &board.config {
        writeln!(text, "set_property {key} {value} [current_design]").expect("a String takes all");
    }
    for (line, reason) in &board.extra {
        writeln!(text, "# {reason}\n{line}").expect("a String takes all");
    }
    for pin in &board.pins {
        let vector = board.top.ports.iter().any(|p| p.name == pin.port && p.vector);
        let port = if vector { format!("{{{}[{}]}}", pin.port, pin.bit) } else { pin.port.clone() };
        let mut dict = format!("PACKAGE_PIN {}", pin.ball);
        for (key, value) in pin.standard.map(|s| ("IOSTANDARD", s)).iter().chain(&pin.settings) {
            write!(dict, " {key} {value}").expect("a String takes all");
        }
        writeln!(text, "set_property -dict {{{dict}}} [get_ports {port}]").expect("a String takes all");
    }
    text
}

/// How Vivado finds a clock.
fn object(clock: &Clock) -> String {
    match clock.object.split_once('.') {
        None => format!("[get_clocks -of_objects [get_ports {}]]", clock.object),
        Some((instance, port)) => format!("[get_clocks -of_objects [get_pins {instance}/{port}]]"),
    }
}

/// Clocks, crossings, paths that are not timed.
pub fn timing(board: &Board) -> String {
    let mut text = header("#");
    for clock in board.clocks.iter().filter(|c| !c.derived) {
        writeln!(text, "create_clock -period {:.3} -name {} [get_ports {}]", clock.period, clock.name, clock.object).expect("a String takes all");
    }
    for c in &board.crossings {
        let find = |name| board.clocks.iter().find(|k| k.name == name).map(object).unwrap_or_default();
        writeln!(text, "# {} to {}: Gray pointers and synchronisers only; the skew between two bits stays below one period of the faster clock.", c.from, c.to).expect("a String takes all");
        writeln!(text, "set_max_delay -datapath_only -from {} -to {} {:.3}", find(c.from), find(c.to), c.max_delay).expect("a String takes all");
    }
    for (ports, reason) in &board.false_paths {
        writeln!(text, "# {reason}").expect("a String takes all");
        for port in ports {
            let Some(top) = board.top.ports.iter().find(|p| p.name == *port) else { continue };
            let (way, delay) = if top.dir == crate::netlist::Dir::In { ("-from", "set_input_delay") } else { ("-to", "set_output_delay") };
            let name = if top.vector { format!("{{{port}[*]}}") } else { port.to_string() };
            writeln!(text, "set_false_path {way} [get_ports {name}]\n{delay} 0 [get_ports {name}]").expect("a String takes all");
        }
    }
    text
}
