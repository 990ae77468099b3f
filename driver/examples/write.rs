//! RDMA WRITE: one host puts bytes into the memory of the other, whose program does nothing for it.
//!
//! `cargo run --example write`
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Access, SendRequest};

mod simulated;

/// Runs the example. Errors: whatever the driver or the simulation reports.
pub fn main() -> simulated::Result<()> {
    let mut hosts = simulated::hosts()?;
    let [mut qp, _peer] = simulated::connected(&hosts)?;

    // Memory that cards may use is registered: the local key lets the own card use it, the remote key the peer's.
    let source = hosts[0].pd.register(vec![0; 4096].into_boxed_slice(), Access::LOCAL_WRITE)?;
    let target = hosts[1].pd.register(vec![0; 4096].into_boxed_slice(), Access { remote_write: true, ..Access::LOCAL_WRITE })?;
    let text = b"written by the other host's card";
    source.write(0, text);

    // The target's address and remote key come from the peer, by any means.
    let entries = [sge(source.addr(), text.len() as u32, source.lkey())];
    qp.post_send(&SendRequest {
        wr_id: 1,
        opcode: WrOpcode::Write,
        payload: Payload::Sges(&entries),
        remote_addr: target.addr() + 100,
        rkey: target.rkey(),
        imm: 0,
        signaled: true,
        solicited: false,
    })?;
    // The completion says that the peer's card has acknowledged: the bytes are in the peer's memory.
    let completion = hosts[0].wait()?;
    println!("request {} has completed: {:?}", completion.wr_id, completion.status);

    let found = target.to_vec(100, text.len());
    println!("host 1 finds: {}", String::from_utf8_lossy(&found));
    if found != text {
        return Err("these are not the bytes that were written".into());
    }
    Ok(())
}
