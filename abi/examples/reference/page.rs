//! The text of `docs/reference.md`. Everything in it comes from the declarations of this crate; numbers and sentences are
//! never typed here twice.
use ferric_abi::codes;
use ferric_abi::csr::REGISTERS;
use ferric_abi::layout::{Field, Layout, Order};
use ferric_abi::meta::FRAME_METADATA;
use ferric_abi::target;
use ferric_abi::uet::codes as uet_codes;
use ferric_abi::virtio::feature;
use std::fmt::Write;

/// Where the page lies.
pub const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference.md");

macro_rules! layouts {
    ($module:ident, $order:ident; $( #[doc = $doc:literal] $name:ident [$bytes:literal] { $($fields:tt)* } )*) => {
        &[ $( ferric_abi::$module::$name::LAYOUT ),* ]
    };
}
macro_rules! host_layouts { ($($t:tt)*) => { layouts!(host, $($t)*) }; }
macro_rules! context_layouts { ($($t:tt)*) => { layouts!(context, $($t)*) }; }
macro_rules! wire_layouts { ($($t:tt)*) => { layouts!(wire, $($t)*) }; }
macro_rules! switch_layouts { ($($t:tt)*) => { layouts!(switch, $($t)*) }; }
macro_rules! uet_layouts { ($($t:tt)*) => { layouts!(uet, $($t)*) }; }
macro_rules! virtio_layouts { ($($t:tt)*) => { layouts!(virtio, $($t)*) }; }
macro_rules! target_layouts { ($($t:tt)*) => { layouts!(target, $($t)*) }; }

/// Records in host memory and doorbells.
pub const HOST: &[Layout] = ferric_abi::host_records!(host_layouts);
/// Lines of the card's tables.
pub const CONTEXT: &[Layout] = ferric_abi::context_records!(context_layouts);
/// Headers on the wire.
pub const WIRE: &[Layout] = ferric_abi::wire_records!(wire_layouts);
/// The memory target's set-up protocol.
pub const TARGET: &[Layout] = ferric_abi::target_records!(target_layouts);

/// Tables and commands of the flow switch.
pub const SWITCH: &[Layout] = ferric_abi::switch_records!(switch_layouts);

/// Rings, configuration and headers of VirtIO.
pub const VIRTIO: &[Layout] = ferric_abi::virtio_records!(virtio_layouts);

/// Headers of Ultra Ethernet.
pub const UET: &[Layout] = ferric_abi::uet_records!(uet_layouts);

/// One code list: its name and its entries (name, number, meaning).
pub struct Codes {
    /// Name of the enum.
    pub name: &'static str,
    /// Name, number and meaning of every code.
    pub entries: Vec<(&'static str, u8, &'static str)>,
}

macro_rules! code_lists {
    ($codes:ident: $($name:ident),*) => {
        vec![ $( Codes { name: stringify!($name), entries: $codes::$name::ALL.iter().map(|(_, name, n, doc)| (*name, *n, *doc)).collect() } ),* ]
    };
}

/// Every code list; a test compares the names with the source of `codes`.
pub fn code_lists() -> Vec<Codes> {
    code_lists!(codes: WrOpcode, CqeOpcode, CqeStatus, QpState, QpType, EventKind, AdminOpcode, ObjectKind, AdminStatus, DropCause, TargetOp, TargetStatus, SwitchCause, VirtioCause)
}

/// The lists of Ultra Ethernet.
pub fn uet_code_lists() -> Vec<Codes> {
    code_lists!(uet_codes: PdsType, NextHeader, ControlType, AckRequest, NackCode, SesOpcode, ResponseOpcode, ReturnCode, AtomicOp, AtomicType)
}

/// A documented constant of `csr.rs`.
struct Constant {
    module: String,
    name: String,
    value: String,
    doc: String,
}

/// The doc comments and values of the plain constants of `csr.rs`, read from its source: they have no list in the code.
fn constants() -> Vec<Constant> {
    let (mut out, mut doc, mut module) = (Vec::new(), String::new(), String::new());
    for line in include_str!("../../src/csr.rs").lines() {
        let text = line.trim();
        if let Some(d) = text.strip_prefix("/// ") {
            doc.push_str(if doc.is_empty() { "" } else { " " });
            doc.push_str(d);
            continue;
        }
        if let Some(name) = text.strip_prefix("pub mod ") {
            module = name.trim_end_matches(" {").to_string();
        } else if let Some((name, rest)) = text.strip_prefix("pub const ").and_then(|t| t.split_once(": ")) {
            let value = rest.split_once(" = ").map_or(rest, |(_, v)| v).trim_end_matches(';');
            out.push(Constant { module: module.clone(), name: name.to_string(), value: value.to_string(), doc: plain(&doc) });
        } else if text == "}" {
            module.clear();
        }
        doc.clear();
    }
    out
}

/// Rust's link brackets mean nothing on the page.
fn plain(doc: &str) -> String {
    doc.replace("[`", "`").replace("`]", "`").replace("crate::", "")
}

/// The whole page.
pub fn render() -> String {
    let mut p = String::new();
    write_page(&mut p).expect("writing to a string");
    p
}

fn write_page(p: &mut String) -> std::fmt::Result {
    writeln!(p, "# Register, descriptor and header reference\n")?;
    writeln!(p, "Generated from the crate `ferric-abi` by `cargo run -p ferric-abi --example reference`; do not edit. The test `reference` of that crate fails when this page and the code differ.\n")?;
    writeln!(p, "- [Registers](#registers)\n- [Doorbells](#doorbells)\n- [Control bus](#control-bus)\n- [Host records](#host-records)\n- [Context lines](#context-lines)\n- [Frame metadata](#frame-metadata)\n- [Wire headers](#wire-headers)\n- [Memory target](#memory-target)\n- [Flow switch](#flow-switch)\n- [VirtIO](#virtio)\n- [Ultra Ethernet](#ultra-ethernet)\n- [Codes](#codes)\n")?;

    writeln!(p, "## Registers\n")?;
    writeln!(p, "32-bit registers in the BAR window of a function (64 KiB each: `address = function << 16 | offset`).\n")?;
    writeln!(p, "| offset | name | access | meaning |\n|---|---|---|---|")?;
    for r in REGISTERS {
        writeln!(p, "| `{:#05x}` | {} | {:?} | {} |", r.offset, r.name, r.access, cell(r.doc))?;
    }

    let constants = constants();
    writeln!(p, "\n## Doorbells\n\nOffsets in the same window, and constants of the BAR. A doorbell is a posted 8-byte write of the record `Doorbell`.\n")?;
    writeln!(p, "| name | value | meaning |\n|---|---|---|")?;
    // REGISTERS is the list that was printed above.
    for c in constants.iter().filter(|c| c.module.is_empty() && c.value != "$offset" && !c.value.starts_with('&')) {
        writeln!(p, "| {} | `{}` | {} |", c.name, c.value, cell(&c.doc))?;
    }
    writeln!(p, "\n## Control bus\n\nTables behind the admin engine, by the numbers that QUERY_OBJECT knows; up to 255. On the control bus a table has another number, its place in the card's list. A table of an engine's own need not be here.\n")?;
    writeln!(p, "| space | number | meaning |\n|---|---|---|")?;
    for c in constants.iter().filter(|c| c.module == "space") {
        writeln!(p, "| {} | {} | {} |", c.name, c.value, cell(&c.doc))?;
    }
    writeln!(p)?;

    let target = format!("Set-up of the card without a host: UDP port {}, first word `{:#x}`, version {}. Network byte order.", target::PORT, target::MAGIC, target::VERSION);
    let sections = [
        ("Host records", "Little-endian. `bits` counts from bit 0 of byte 0; `word` is the 32-bit word and the bits inside it.", HOST),
        ("Context lines", "Little-endian lines of the card's tables, written over the control bus in 32-bit words.", CONTEXT),
        ("Wire headers", "Network byte order. `bits` counts as the RFCs do: bit 0 is the most significant bit of byte 0.", WIRE),
        ("Memory target", &target, TARGET),
        ("Flow switch", "Little-endian. The golden model uses these records; of the gateware, the engine `flows` takes keys, actions, commands and verdicts.", SWITCH),
        ("VirtIO", "Little-endian; `spec` is VIRTIO 1.3. The golden model uses these records, the gateware the descriptors of split rings and the header of frames.", VIRTIO),
        ("Ultra Ethernet", "Network byte order, as the wire headers; `UE` is the Ultra Ethernet specification 1.0. The golden model uses these records, and so do the parser and the builder of headers in the gateware, which no card has yet.", UET),
    ];
    for (title, intro, layouts) in sections {
        writeln!(p, "## {title}\n\n{intro}\n")?;
        for l in layouts {
            layout(p, l)?;
        }
    }

    writeln!(p, "### Features of VirtIO\n\nThose that a card knows; which a function offers is its own affair.\n\n| bit | name | needs one of | meaning |\n|---|---|---|---|")?;
    for f in feature::ALL {
        let needs: Vec<&str> = feature::ALL.iter().filter(|other| f.needs >> other.bit & 1 == 1).map(|other| other.name).collect();
        writeln!(p, "| {} | {} | {} | {} |", f.bit, f.name, needs.join(", "), cell(f.doc))?;
    }
    writeln!(p)?;

    writeln!(p, "## Frame metadata\n\nWhat travels with every received frame inside the card, lowest bits first.\n")?;
    writeln!(p, "| field | bits | meaning |\n|---|---|---|")?;
    for (name, width, doc) in FRAME_METADATA {
        writeln!(p, "| `{name}` | {width} | {} |", cell(doc))?;
    }

    writeln!(p, "\n## Codes\n")?;
    for list in code_lists().into_iter().chain(uet_code_lists()) {
        writeln!(p, "### {}\n\n| number | name | meaning |\n|---|---|---|", list.name)?;
        for (name, n, doc) in list.entries {
            writeln!(p, "| {n} | {name} | {} |", cell(doc))?;
        }
        writeln!(p)?;
    }
    Ok(())
}

fn layout(p: &mut String, l: &Layout) -> std::fmt::Result {
    writeln!(p, "### {}\n\n{} {} bytes.\n", l.name, l.doc, l.bytes)?;
    match l.order {
        Order::Little => writeln!(p, "| bits | word | field | meaning |\n|---|---|---|---|")?,
        Order::Big => writeln!(p, "| bits | byte | field | meaning |\n|---|---|---|---|")?,
    }
    for run in runs(l.fields) {
        let (first, last) = (run[0].offset, run[run.len() - 1].offset + run[run.len() - 1].width - 1);
        let place = match l.order {
            Order::Little => word(first, last),
            Order::Big if first / 8 == last / 8 => format!("{}", first / 8),
            Order::Big => format!("{}-{}", first / 8, last / 8),
        };
        let (name, doc) = if is_reserved(&run[0]) { ("-".to_string(), "Reserved, zero.".to_string()) } else { (format!("`{}`", run[0].name), cell(run[0].doc)) };
        let bits = match l.order {
            Order::Little => span(last, first),
            Order::Big => span(first, last),
        };
        writeln!(p, "| {bits} | {place} | {name} | {doc} |")?;
    }
    writeln!(p)
}

fn is_reserved(f: &Field) -> bool {
    f.name.starts_with("rsvd")
}

/// Fields one by one, neighbouring reserved ones together.
fn runs(fields: &[Field]) -> Vec<&[Field]> {
    fields.chunk_by(|a, b| is_reserved(a) && is_reserved(b)).collect()
}

fn span(a: usize, b: usize) -> String {
    if a == b {
        format!("{a}")
    } else {
        format!("{a}:{b}")
    }
}

fn word(first: usize, last: usize) -> String {
    if first / 32 == last / 32 {
        format!("{} [{}]", first / 32, span(last % 32, first % 32))
    } else {
        format!("{}-{}", first / 32, last / 32)
    }
}

/// Text that cannot break a table row.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
