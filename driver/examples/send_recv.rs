//! SEND and receive: the receiver posts buffers, the sender does not know where its messages go. A second message carries immediate data.
//!
//! `cargo run --example send_recv`
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Access, RecvRequest, SendRequest};

mod simulated;

/// Bytes of each receive buffer.
const BUFFER: usize = 1024;

/// Runs the example. Errors: whatever the driver or the simulation reports.
pub fn main() -> simulated::Result<()> {
    let mut hosts = simulated::hosts()?;
    let [mut sender, mut receiver] = simulated::connected(&hosts)?;
    let inbox = hosts[1].pd.register(vec![0; 2 * BUFFER].into_boxed_slice(), Access::LOCAL_WRITE)?;

    // Receives are used in the order in which they were posted. Without one the receiver's card asks the sender to try again later (RNR NAK).
    for slot in 0..2 {
        let entries = [sge(inbox.addr() + (slot * BUFFER) as u64, BUFFER as u32, inbox.lkey())];
        receiver.post_recv(&RecvRequest { wr_id: slot as u64, sges: &entries })?;
    }

    // Inline payload is copied into the request: it needs no registered memory, and the buffer is free at once.
    let messages: [(&[u8], WrOpcode, u32); 2] = [(b"first message", WrOpcode::Send, 0), (b"second message", WrOpcode::SendImm, 42)];
    for (number, (text, opcode, imm)) in messages.into_iter().enumerate() {
        sender.post_send(&SendRequest { wr_id: 100 + number as u64, opcode, payload: Payload::Inline(text), remote_addr: 0, rkey: 0, imm, signaled: true, solicited: false })?;
    }
    for (text, opcode, imm) in messages {
        let received = hosts[1].wait()?;
        let bytes = inbox.to_vec(received.wr_id as usize * BUFFER, received.byte_len as usize);
        println!("host 1 has received {} bytes: {} (immediate data: {:?})", received.byte_len, String::from_utf8_lossy(&bytes), received.imm);
        if bytes != text || received.imm != (opcode == WrOpcode::SendImm).then_some(imm) {
            return Err("this is not what was sent".into());
        }
    }
    for _ in 0..2 {
        println!("host 0: request {} has completed", hosts[0].wait()?.wr_id);
    }
    Ok(())
}
