//! RDMA READ and atomics: one host reads the memory of the other and counts in it; the other's program does nothing for it.
//!
//! `cargo run --example read_atomic`
use ferric_driver::qp::sge;
use ferric_driver::{Access, AtomicOp, AtomicRequest, ReadRequest};

mod simulated;

/// Runs the example. Errors: whatever the driver or the simulation reports.
pub fn main() -> simulated::Result<()> {
    let mut hosts = simulated::hosts()?;
    let [mut qp, _peer] = simulated::connected(&hosts)?;
    let local = hosts[0].pd.register(vec![0; 4096].into_boxed_slice(), Access::LOCAL_WRITE)?;
    let remote = hosts[1].pd.register(vec![0; 4096].into_boxed_slice(), Access::ALL)?;
    let counter = 40u64;
    remote.write(0, &counter.to_le_bytes());

    // FETCH_ADD: the card of host 1 adds 2, and what was there before comes back into the first eight bytes of `local`.
    let into = [sge(local.addr(), 8, local.lkey())];
    qp.post_atomic(&AtomicRequest { wr_id: 1, op: AtomicOp::FetchAdd(2), sges: &into, remote_addr: remote.addr(), rkey: remote.rkey(), signaled: true, fence: false })?;
    // READ: the eight bytes as they are afterwards. A peer executes READs and atomics of a queue pair in the order in which they were posted.
    let into = [sge(local.addr() + 8, 8, local.lkey())];
    qp.post_read(&ReadRequest { wr_id: 2, sges: &into, remote_addr: remote.addr(), rkey: remote.rkey(), signaled: true, fence: false })?;
    for _ in 0..2 {
        println!("request {} has completed", hosts[0].wait()?.wr_id);
    }

    let number = |offset: usize| -> simulated::Result<u64> { Ok(u64::from_le_bytes(local.to_vec(offset, 8).as_slice().try_into()?)) };
    println!("FETCH_ADD has found {}, READ has found {}", number(0)?, number(8)?);
    if (number(0)?, number(8)?) != (counter, counter + 2) {
        return Err("the counter has other values".into());
    }
    Ok(())
}
