//! The hardware's table of opcodes. Which extended headers follow the BTH says `ferric_model::net::opcode`.

use ferric_abi::wire::{Deth, Reth};
pub use ferric_model::net::opcode::Headers;

const RETH: usize = Reth::BYTES;
const DETH: usize = Deth::BYTES;

/// The entry of the hardware table: bits 0 to 5 the UDP payload's least size less pad (BTH, these headers, UDP header,
/// ICRC), then address, length, deth, aeth, immediate at 0, at 8, at 16, atomic, its
/// acknowledge, FETH.
pub(super) fn entry(headers: Headers) -> u128 {
    let imm = [0, DETH, RETH].map(|at| headers.imm == Some(at));
    let flags = [headers.address, headers.length, headers.deth, headers.aeth, imm[0], imm[1], imm[2], headers.atomic, headers.atomic_ack, headers.feth];
    let flags: u128 = flags.iter().enumerate().map(|(i, &on)| u128::from(on) << (6 + i)).sum();
    (8 + 12 + 4 + headers.len) as u128 | flags
}
