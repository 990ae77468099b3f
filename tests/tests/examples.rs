//! The examples of `driver/examples/` run to their end: what a newcomer tries first works.
// Each example has the file `simulated` as a module of its own, since each is a program.
#![allow(clippy::duplicate_mod)]
// One copy of the gateware for all programs of this crate.
use ferric_shared as _;
#[path = "../../driver/examples/read_atomic.rs"]
mod read_atomic;
#[path = "../../driver/examples/send_recv.rs"]
mod send_recv;
#[path = "../../driver/examples/ud.rs"]
mod ud;
#[path = "../../driver/examples/write.rs"]
mod write;

#[test]
fn write_puts_bytes_into_the_peers_memory() {
    write::main().unwrap();
}

#[test]
fn send_recv_passes_messages() {
    send_recv::main().unwrap();
}

#[test]
fn read_atomic_reads_and_counts() {
    read_atomic::main().unwrap();
}

#[test]
fn ud_sends_a_datagram() {
    ud::main().unwrap();
}
