//! Unreliable datagrams: one queue pair sends to any other. Each request says where its datagram goes, nothing is acknowledged.
//!
//! `cargo run --example ud`
use ferric_driver::qp::{sge, Payload};
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::{Access, AddressHandle, DatagramRequest, Grh, Mtu, QpConfig, QpType, RecvRequest, Source};

mod simulated;

/// Datagrams with another Q_Key are dropped by the receiver's card.
const QKEY: u32 = 0x1234_5678;

/// Runs the example. Errors: whatever the driver or the simulation reports.
pub fn main() -> simulated::Result<()> {
    let mut hosts = simulated::hosts()?;
    let config = QpConfig { qp_type: QpType::Ud, max_inline: 64, ..QpConfig::default() };
    let mut qps = Vec::new();
    for host in &hosts {
        let mut qp = host.pd.create_qp(&config, &host.cq, &host.cq)?;
        qp.to_init_ud(QKEY)?;
        qp.to_rtr_ud(Mtu::M1024, &Source { smac: host.mac, sip: host.ip, vlan: None, udp_sport: 0xc000, flow_label: 0 })?;
        qp.to_rts_ud(0)?;
        qps.push(qp);
    }

    // A receive needs room for 40 bytes in front of the datagram: there the card puts the sender's addresses.
    let inbox = hosts[1].pd.register(vec![0; 1024].into_boxed_slice(), Access::LOCAL_WRITE)?;
    let entries = [sge(inbox.addr(), inbox.len() as u32, inbox.lkey())];
    qps[1].post_recv(&RecvRequest { wr_id: 7, sges: &entries })?;

    let text = b"to whom it may concern";
    let address = AddressHandle::new(hosts[1].mac, hosts[1].ip);
    let dest_qpn = qps[1].qpn();
    qps[0].post_send_ud(&DatagramRequest { wr_id: 1, payload: Payload::Inline(text), to: &address, dest_qpn, qkey: QKEY, imm: None, signaled: true, solicited: false })?;
    // This completion says that the datagram has left, no more.
    println!("request {} has been sent", hosts[0].wait()?.wr_id);

    let received = hosts[1].wait()?;
    let bytes = inbox.to_vec(0, received.byte_len as usize);
    let sender = bytes.first_chunk::<GRH_BYTES>().and_then(Grh::parse).ok_or("there are no addresses in front of the datagram")?;
    println!("from {} queue pair {}: {}", sender.sip, received.src_qp, String::from_utf8_lossy(&bytes[GRH_BYTES..]));
    if &bytes[GRH_BYTES..] != text || sender.sip != hosts[0].ip {
        return Err("this is not the datagram that was sent".into());
    }
    Ok(())
}
