//! `ferric switch trace`: what would become of a frame off the wire, or of one that a function sends, to others of the card or by the wire, by the golden model (SWITCH.md sections 4 to 7), step by step.
use super::book::{domain, ufid, Book, UPLINK, VXLAN};
use ferric_abi::codes::SwitchCause;
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_abi::switch::table::{rewrites, MOST_REWRITES};
use ferric_abi::switch::FlowKey;
use ferric_driver::switch::FlowPort;
use ferric_model::switch::decide::Facts;
use ferric_model::switch::fate::{changes, Egress, Fate};
use ferric_model::switch::flow::steps_text;
use ferric_model::switch::install::Room;
use ferric_model::switch::key::{key, Origin};
use ferric_model::switch::layers::{parse, Layers, Upper};
use ferric_model::switch::outer::{strip, Stripped};
use ferric_model::switch::tables::{packet_class, Found, MissAction, Station};
use ferric_model::switch::Switch;
use std::fmt::Write;

/// Where the VNI stands in a VXLAN packet's UDP payload, and bytes of the UDP header.
const VNI: std::ops::Range<usize> = 4..7;
const UDP: usize = 8;

/// Names of packet classes.
const NAMES: [&str; 4] = ["neither ARP nor IP", "ARP", "IPv4", "IPv6"];

/// Reads a frame as hexadecimal digits; blanks and colons may stand between them.
pub fn frame(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|c| !c.is_ascii_whitespace() && *c != b':').collect();
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().filter(|_| pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit)).and_then(|text| u8::from_str_radix(text, 16).ok());
    digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>().ok_or_else(|| "a frame is an even number of hexadecimal digits, from its destination address on and without its check sequence".into())
}

/// The function whose tunnel a frame comes through, or would if it were right.
fn through(book: &Book, frame: &[u8]) -> Option<u16> {
    let layers = parse(frame).ok()?;
    let Upper::Ip(ip) = layers.upper else { return None };
    if layers.udp_to().map(u32::from) != Some(VXLAN) {
        return None;
    }
    let vni = frame.get(ip.l4 + UDP..)?.get(VNI)?.iter().fold(0, |n, byte| n << 8 | u32::from(*byte));
    let here = |local: std::net::IpAddr| match local {
        std::net::IpAddr::V4(a) => !ip.v6 && ip.dst == u128::from(u32::from(a)),
        std::net::IpAddr::V6(a) => ip.v6 && ip.dst == u128::from(a),
    };
    let ends = book.networks().filter(|(_, t)| here(t.local));
    ends.clone().find(|(_, t)| t.vni == vni).or_else(|| ends.clone().next()).map(|(function, _)| *function)
}

/// Those fields of a key that are not zero.
fn fields(key: &FlowKey) -> String {
    let shown = FlowKey::LAYOUT.fields.iter().filter(|f| !f.name.starts_with("rsvd")).filter_map(|f| {
        let value = ferric_abi::layout::get(&key.0, FlowKey::LAYOUT.order, f.offset, f.width);
        (value != 0).then(|| format!("{}={value:#x}", f.name))
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The port of a function.
fn port_of(function: u16) -> u8 {
    (FUNCTION_PORTS + u32::from(function)) as u8
}

/// What a port is called.
fn name(port: u16) -> String {
    u32::from(port).checked_sub(FUNCTION_PORTS).map_or_else(|| format!("port {port}"), |f| format!("function {f}"))
}

/// The steps that a frame takes, a line each. `port`: what is done with frames; `None`: they pass. `from`: the function that has sent the frame; `None`: it comes off the wire.
pub fn run(book: &Book, port: Option<&FlowPort>, from: Option<u16>, frame: &[u8]) -> String {
    let mut out = String::new();
    let mut say = |line: String| _ = writeln!(out, "{line}");
    if let Some(function) = from.filter(|function| *function >= book.functions) {
        say(format!("there is no function {function}: the card has {}", book.functions));
        return out;
    }
    if let Some(function) = from {
        let domain = domain(book.network_of(function));
        let wire = match port {
            Some(FlowPort { egress: true, .. }) => "the tables are asked, whether it is for a function there or leaves by the wire",
            _ => "to the wire unasked; the tables are asked if a function there has the address, or about the copies to a group",
        };
        say(format!("from function {function}, if it may send it, in bridge domain {domain}: {wire}"));
        let origin = Origin { port: port_of(function), domain, remote: 0, geneve_option: false };
        tables(book, &mut book.model(None), port, frame, origin, None, &mut say);
        return out;
    }
    let through = through(book, frame);
    let mut switch = book.model(through);
    let stripped = strip(&switch.tables, frame, None);
    let (inner, domain, remote) = match &stripped {
        Stripped::Plain => {
            say("through no tunnel: bridge domain 0".into());
            (frame, 0, 0)
        }
        Stripped::Inner(inner) => {
            say(format!("through the tunnel of function {}, VNI {}: bridge domain {}, {} bytes inside", through.unwrap_or_default(), inner.vni, inner.domain, inner.frame.len()));
            (&inner.frame[..], inner.domain, through.map_or(inner.remote, |f| f + 1))
        }
        Stripped::Drop(cause) | Stripped::Software(cause) => {
            say(format!("dropped where the tunnel ends: {cause:?}"));
            return out;
        }
    };
    tables(book, &mut switch, port, inner, Origin { port: UPLINK as u8, domain, remote, geneve_option: false }, through, &mut say);
    out
}

/// What the tables say of a frame without its outer headers.
fn tables(book: &Book, switch: &mut Switch, port: Option<&FlowPort>, frame: &[u8], origin: Origin, through: Option<u16>, say: &mut impl FnMut(String)) {
    match (port, parse(frame)) {
        (None, _) => say("no table is asked: frames pass (ferric switch tables)".into()),
        (Some(port), Err(_)) => {
            say("the parser does not understand it: to software".into());
            if port.egress && u32::from(origin.port) != UPLINK {
                say("by the wire: it does not leave, and comes in again for the former".into());
            }
        }
        (Some(port), Ok(layers)) => decide(book, switch, port, &layers, origin, through, say),
    }
}

fn decide(book: &Book, switch: &mut Switch, port: &FlowPort, layers: &Layers, origin: Origin, through: Option<u16>, say: &mut impl FnMut(String)) {
    // A flow of another tunnel than the frame's cannot match it; those lines stay empty.
    let tunnels: &[_] = if through.is_some() { &super::book::TUNNELS } else { &[] };
    // The model has tables for either direction, which number their actions each.
    let off_the_wire = |port: u8| u32::from(port) == UPLINK;
    let asked = book.flows.iter().filter(|(_, entry)| off_the_wire(entry.line.key.in_port()) == off_the_wire(origin.port));
    let lines: Vec<_> = asked.filter_map(|(id, entry)| Some((switch.install(&entry.flow, Room::Any, tunnels).ok()?, *id, &entry.flow))).collect();
    let Some(own) = switch.tables.ports.get_mut(&origin.port) else { return };
    (own.bridge, own.miss) = (port.bridge, if port.drop_miss { MissAction::Drop } else { MissAction::Exception });
    let (own, class) = (own.clone(), packet_class(layers));
    let (key, facts) = (key(layers, origin), Facts::of(layers));
    say(format!("packet class {class} ({}), key {}", NAMES[usize::from(class)], fields(&key)));
    let direction = if off_the_wire(origin.port) { &switch.tables.inbound } else { &switch.tables.outbound };
    match direction.find(&key, class, &own, 0) {
        Found::Action(line) => {
            if let Some((_, id, flow)) = lines.iter().find(|(own, ..)| *own == line) {
                say(format!("{}, {}, actions:{}", ufid(*id), flow.matches, steps_text(&flow.steps)));
            }
        }
        Found::Station(Station::Port(to)) => say(format!("its station is {}", name(to.into()))),
        Found::Station(_) | Found::Nothing => say(if port.bridge { "no flow and no station knows it" } else { "no flow knows it" }.into()),
    }
    let verdict = switch.tables.decide(&key, &facts, &own);
    say(match Fate::of(&verdict, facts.roce, book.functions, rewrites(MOST_REWRITES)) {
        Fate::Function(function) if changes(&verdict) => format!("to function {function}, with what the actions set"),
        Fate::Function(function) => format!("to function {function}"),
        Fate::Software { unable: true } => "to software: the card does not do what the actions say".into(),
        Fate::Software { unable: false } => match SwitchCause::from_u8(verdict.cause()) {
            Some(SwitchCause::None) | None => "to software".into(),
            Some(cause) => format!("to software: {cause:?}"),
        },
        Fate::Drop(cause) => format!("dropped: {cause:?}"),
    });
    if port.egress && !off_the_wire(origin.port) {
        say(match Egress::of(&verdict) {
            Egress::Leaves => "by the wire: it leaves".into(),
            Egress::Drop(cause) => format!("by the wire: dropped: {cause:?}"),
            _ if Egress::returns(&verdict, facts.roce) => "by the wire: it does not leave, and comes in again for the former".into(),
            _ => "by the wire: dropped, software has no queue for it".into(),
        });
    }
}
