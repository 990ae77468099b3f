//! Every memory of a top: what the Verilog asks for, and what it was mapped to.

use super::cells::{kind, Kind};
use super::netlist::Module;
use std::collections::BTreeMap;

/// An array called `cells` in a leaf of `prim`.
#[derive(Debug, PartialEq)]
pub struct Memory {
    /// Path below the top, parts joined by `.`.
    pub path: String,
    /// Arrays of one shape side by side: the lanes of a memory with a row address per lane.
    pub lanes: u64,
    pub rows: u64,
    /// Bits of a row.
    pub width: u64,
    pub writes: usize,
    pub reads: usize,
    /// Cells of each kind.
    pub cells: BTreeMap<String, u64>,
}

impl Memory {
    pub fn bits(&self) -> u64 {
        self.lanes * self.rows * self.width
    }
}

/// The memories in the text of `top`, largest first, with their cells in `module`, its flat netlist.
pub fn read(verilog: &str, top: &str, module: &Module) -> Vec<Memory> {
    let mut found: Vec<Memory> = Vec::new();
    let mut path = String::new();
    for line in verilog.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("module ") {
            let name = rest.split(['(', ' ', ';']).next().unwrap_or_default();
            path = name.strip_prefix(top).unwrap_or(name).trim_start_matches('$').replace('$', ".");
        } else if let Some((width, rows)) = declaration(line) {
            found.push(Memory { path: path.clone(), lanes: 1, rows, width, writes: 0, reads: 0, cells: BTreeMap::new() });
        } else if let Some(memory) = found.last_mut().filter(|m| m.path == path) {
            let (writes, reads) = accesses(line);
            memory.writes += writes;
            memory.reads += reads;
        }
    }
    // A member of an array of blocks is called `name$0` by either.
    let mut arrays: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (name, cell) in &module.cells {
        if let (Some((array, _)), Some(Kind::Block | Kind::LutRam(_))) = (name.rsplit_once(".cells."), kind(&cell.kind)) {
            *arrays.entry(array.replace('$', ".")).or_default().entry(cell.kind.clone()).or_default() += 1;
        }
    }
    for memory in &mut found {
        let below = |array: &str| array.strip_prefix(memory.path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(".lanes["));
        let own: Vec<_> = arrays.iter().filter(|(array, _)| below(array)).collect();
        memory.lanes = own.len().max(1) as u64;
        for (kind, count) in own.into_iter().flat_map(|(_, cells)| cells) {
            *memory.cells.entry(kind.clone()).or_default() += count;
        }
    }
    found.sort_by_key(|m| std::cmp::Reverse(m.bits()));
    found
}

/// Write and read ports in a line of a leaf's text. Loops and blocking assignments to the array are its first contents.
fn accesses(line: &str) -> (usize, usize) {
    let count = |text: &str| text.matches("cells[").count();
    match line.split_once("<=") {
        _ if line.contains("init_i") => (0, 0),
        Some((before, after)) => (count(before), count(after)),
        None => (0, line.split_once(" = ").map_or(0, |(_, after)| count(after))),
    }
}

/// Bits of a row and rows of `reg [B-1:0] cells [0:R-1];`.
fn declaration(line: &str) -> Option<(u64, u64)> {
    let (before, after) = line.split_once("] cells [0:")?;
    let high: u64 = before.rsplit_once("reg [")?.1.strip_suffix(":0")?.parse().ok()?;
    Some((high + 1, after.split(']').next()?.parse::<u64>().ok()? + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_shapes() {
        let text = "module t$a$ram(clock);\n(* ram_style = \"block\" *) reg [7:0] cells [0:63];\ninteger init_i;\n\
            initial for (init_i = 0; init_i <= 63; init_i = init_i + 1) cells[init_i] = 8'd0;\n\
            always @(posedge clock) if (write_en) cells[write_addr] <= write_data;\nalways @(posedge clock) read_data <= cells[read_addr];\n\
            endmodule\nmodule t$b(clock);\nreg [0:0] cells [0:3];\nwire [0:0] word0 = cells[read_addr0];\nwire [0:0] word1 = cells[read_addr1];\nendmodule\n\
            module t$c$1(clock);\nreg [3:0] cells [0:1];\nendmodule";
        let cell = |kind: &str| format!("{{\"type\": \"{kind}\", \"port_directions\": {{}}, \"connections\": {{}}}}");
        let netlist = format!(
            "{{\"modules\": {{\"t\": {{\"ports\": {{}}, \"netnames\": {{}}, \"cells\": {{\"a.ram.cells.0.0\": {0}, \"a.ram.cells.0.1\": {0}, \"c$1.cells.0.0\": {0}, \"x\": {1}}}}}}}}}",
            cell("RAMB18E2"),
            cell("LUT2")
        );
        let module = super::super::netlist::read(&netlist, "t").unwrap_or_else(|e| panic!("{e}"));
        let found = read(text, "t", &module);
        let shapes: Vec<_> = found.iter().map(|m| (m.path.as_str(), m.rows, m.width, m.writes, m.reads, m.bits())).collect();
        assert_eq!(shapes, [("a.ram", 64, 8, 1, 1, 512), ("c.1", 2, 4, 0, 0, 8), ("b", 4, 1, 0, 2, 4)]);
        assert_eq!(found[0].cells, BTreeMap::from([("RAMB18E2".to_string(), 2)]));
        assert_eq!(found[1].cells, BTreeMap::from([("RAMB18E2".to_string(), 1)]));
        assert!(found[2].cells.is_empty());
    }
}
