//! Leaf primitives: the only place with Verilog text. A leaf has no protocol state, only storage, pure functions and
//! (for [`chaos`]) a test-only pattern generator. The words that open and close a module stand here, too (`modules`): they are no leaf, they are text. Latencies and resources: README.md.

pub mod arb;
pub mod byte_ram;
pub mod cell_ram;
pub mod chaos;
pub mod clash;
pub mod cross;
#[cfg(test)]
mod ecp5_memories;
pub mod keep_mask;
pub mod lane_ram;
pub mod leaves;
pub mod lookup;
pub mod model;
pub(crate) mod modules;
pub mod mux;
pub mod pack;
pub mod patch_ram;
pub mod popcount;
pub mod ram;
pub mod rom;
pub mod rotate;
pub mod row_ram;
pub mod sized;
pub mod slot;
pub mod spread;
pub mod sum;
pub mod tally;
#[cfg(test)]
pub(crate) mod tests;
pub mod two_writers;
mod unrolled;
pub mod word;
pub mod word_sum;
pub mod xor_matrix;

/// Models of the ECP5's cells, to simulate a board's top with.
pub(crate) const ECP5_CELLS: &str = include_str!("ecp5.v");

/// Models of the ECP5's memories, which a netlist names.
#[cfg(test)]
pub(crate) const ECP5_MEMORIES: &str = include_str!("ecp5_memories.v");

/// Reference to bit `i` of a vector of `width` bits. A one-bit port is a scalar, which Verilog does not let us index.
fn bit(name: &str, width: usize, i: usize) -> String {
    if width == 1 {
        name.into()
    } else {
        format!("{name}[{i}]")
    }
}

/// Concatenation of `bits[0]` (lowest) to the last, with runs of consecutive source bits merged into part selects:
/// simulators evaluate a part select far faster than single bits. `None` is a constant zero.
fn concat(name: &str, width: usize, bits: &[Option<usize>]) -> String {
    let mut parts = Vec::new();
    let mut i = 0;
    while i < bits.len() {
        let mut n = 1;
        match bits[i] {
            Some(first) => {
                while i + n < bits.len() && bits[i + n] == Some(first + n) {
                    n += 1;
                }
                parts.push(if n == 1 { bit(name, width, first) } else { format!("{name}[{}:{first}]", first + n - 1) });
            }
            None => {
                while i + n < bits.len() && bits[i + n].is_none() {
                    n += 1;
                }
                parts.push(format!("{n}'d0"));
            }
        }
        i += n;
    }
    parts.reverse();
    format!("{{{}}}", parts.join(", "))
}
