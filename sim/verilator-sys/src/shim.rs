//! From Verilator's class header to the C++ shim that the Rust side loads.

use crate::error::Error;
use std::fmt::Write;

/// Part of the content hash: change it whenever the generated shim or the compile flags change.
pub(crate) const SHIM_VERSION: &str = "5";

/// One `VL_IN*`/`VL_OUT*` declaration.
#[derive(Debug, PartialEq)]
pub(crate) struct PortDecl {
    /// The C++ member, e.g. `s__024data`.
    pub member: String,
    /// The Verilog name, e.g. `s$data`.
    pub name: String,
    pub width: u32,
    pub input: bool,
}

/// Reads the port declarations out of `Vdut.h`.
pub(crate) fn parse_ports(header: &str, top: &str) -> Result<Vec<PortDecl>, Error> {
    header
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("VL_IN") || line.starts_with("VL_OUT"))
        .map(|line| parse_port(line).ok_or_else(|| Error::Header { top: top.into(), line: line.into() }))
        .collect()
}

/// The member of Verilator's root class (text of `Vdut___024root.h`) that holds the clock's value at the last evaluation.
/// Its name is not part of Verilator's interface: without it a cycle costs one more evaluation, nothing else. 5.006 calls it `__Vtrigrprev__TOP__clock`, later
/// ones `__Vtrigprevexpr___TOP__clock__0`.
pub(crate) fn previous_clock(root: &str) -> Option<&str> {
    let words = root.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.into_iter().find(|word| {
        let name = word.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches("__");
        word.starts_with("__Vtrig") && (word.ends_with("prev__TOP__clock") || name.ends_with("prevexpr___TOP__clock"))
    })
}

fn parse_port(line: &str) -> Option<PortDecl> {
    let (kind, rest) = line.split_once("(&")?;
    let input = kind.starts_with("VL_IN") && !kind.starts_with("VL_INOUT");
    if !input && !kind.starts_with("VL_OUT") {
        return None;
    }
    let mut args = rest.strip_suffix(");")?.split(',');
    let member = args.next()?.trim().to_string();
    let msb: u32 = args.next()?.trim().parse().ok()?;
    let lsb: u32 = args.next()?.trim().parse().ok()?;
    Some(PortDecl { name: decode(&member), member, width: msb.checked_sub(lsb)? + 1, input })
}

/// Undoes Verilator's name mangling: `__0hh` stands for the character with that code.
fn decode(member: &str) -> String {
    let mut out = String::new();
    let mut rest = member;
    while let Some(at) = rest.find("__0") {
        let code = rest.get(at + 3..at + 5).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                out.push_str(&rest[..at]);
                out.push(code as char);
                rest = &rest[at + 5..];
            }
            None => {
                out.push_str(&rest[..at + 3]);
                rest = &rest[at + 3..];
            }
        }
    }
    out + rest
}

/// The shim: a port table, the life cycle, evaluation and tracing behind C names.
///
/// `previous_clock`: the member of the root class in which Verilator keeps the clock's last value, if it has one.
pub(crate) fn generate(ports: &[PortDecl], previous_clock: Option<&str>) -> String {
    let mut table = String::new();
    let mut pointers = String::new();
    for (index, port) in ports.iter().enumerate() {
        let PortDecl { member, name, width, input } = port;
        let _ = writeln!(table, "  {{\"{name}\", {width}, {}}},", u32::from(*input));
        let _ = writeln!(pointers, "    case {index}: return &t->{member};");
    }
    let cycle = match (previous_clock, ports.iter().any(|port| port.name == "clock")) {
        (Some(member), true) => format!("t->rootp->{member} = 0; t->clock = 1; t->eval();"),
        (None, true) => "t->clock = 0; t->eval(); t->clock = 1; t->eval();".into(),
        (_, false) => "t->eval();".into(),
    };
    SHIM.replace("@TABLE@", &table)
        .replace("@POINTERS@", &pointers)
        .replace("@COUNT@", &ports.len().to_string())
        .replace("@ROOT@", if previous_clock.is_some() { "#include \"Vdut___024root.h\"" } else { "" })
        .replace("@CYCLE@", &cycle)
}

const SHIM: &str = r#"
#include "Vdut.h"
@ROOT@
struct FerricPort { const char* name; uint32_t width; uint32_t input; };
static const FerricPort kPorts[] = {
@TABLE@  {nullptr, 0, 0}
};
struct FerricModel {
  VerilatedContext context;
  Vdut* top = nullptr;
#if VM_TRACE
  VerilatedFstC* trace = nullptr;
#endif
};
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT uint32_t ferric_port_count() { return @COUNT@; }
EXPORT const FerricPort* ferric_ports() { return kPorts; }
EXPORT void* ferric_new() {
  auto* m = new FerricModel;
  m->context.threads(1);
  m->context.timeunit(-9);
  m->context.timeprecision(-9);
#if VM_TRACE
  m->context.traceEverOn(true);
#endif
  m->top = new Vdut(&m->context, "top");
  return m;
}
EXPORT void* ferric_port_storage(void* p, uint32_t index) {
  Vdut* t = static_cast<FerricModel*>(p)->top;
  switch (index) {
@POINTERS@    default: return nullptr;
  }
}
EXPORT void ferric_eval(void* p) { static_cast<FerricModel*>(p)->top->eval(); }
EXPORT void ferric_cycle(void* p) {
  Vdut* t = static_cast<FerricModel*>(p)->top;
  @CYCLE@
}
EXPORT int ferric_trace_open(void* p, const char* path) {
#if VM_TRACE
  auto* m = static_cast<FerricModel*>(p);
  m->trace = new VerilatedFstC;
  m->top->trace(m->trace, 99);
  m->trace->open(path);
  return m->trace->isOpen() ? 1 : 0;
#else
  return -1;
#endif
}
EXPORT void ferric_trace_dump(void* p, uint64_t ns) {
#if VM_TRACE
  auto* m = static_cast<FerricModel*>(p);
  if (m->trace) m->trace->dump(ns);
#endif
}
EXPORT void ferric_trace_close(void* p) {
#if VM_TRACE
  auto* m = static_cast<FerricModel*>(p);
  if (m->trace) { m->trace->close(); delete m->trace; m->trace = nullptr; }
#endif
}
EXPORT void ferric_delete(void* p) {
  auto* m = static_cast<FerricModel*>(p);
  ferric_trace_close(p);
  m->top->final();
  delete m->top;
  delete m;
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_declaration_kind() {
        let header = "    VL_IN8(&clock,0,0);\n  VL_OUTW(&a__024data,511,0,16);\n VL_IN64(&x__05Fy__0,63,0);\n";
        let ports = parse_ports(header, "t").unwrap();
        assert_eq!(ports[0], PortDecl { member: "clock".into(), name: "clock".into(), width: 1, input: true });
        assert_eq!((ports[1].name.as_str(), ports[1].width, ports[1].input), ("a$data", 512, false));
        assert_eq!(ports[2].name, "x_y__0");
        assert!(parse_ports("VL_INOUT8(&z,0,0);", "t").is_err());
    }

    #[test]
    fn the_clock_of_the_last_evaluation_is_found_in_every_version() {
        for (root, member) in [
            ("CData/*0:0*/ __Vtrigrprev__TOP__clock;", Some("__Vtrigrprev__TOP__clock")),
            ("CData/*0:0*/ __Vtrigprevexpr___TOP__clock__0;", Some("__Vtrigprevexpr___TOP__clock__0")),
            ("CData/*0:0*/ __Vtrigprevexpr___TOP__clock_rx__0;", None),
            ("CData/*0:0*/ clock;", None),
        ] {
            assert_eq!(previous_clock(root), member);
        }
    }
}
