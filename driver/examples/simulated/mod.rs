//! What every example starts from: two hosts, each with a simulated card, and one wire between the cards.
//!
//! Only this file knows that the cards are simulated. On a real card `Context::open` gets a `ferric_driver::vfio::VfioDevice` instead of the
//! `SimDevice`; what follows in the examples stays as it is.
use ferric_driver::eq::EventQueue;
use ferric_driver::{Access, Completion, CompletionQueue, Config, Context, CqeStatus, Mac, Mtu, Path, Pd, QpConfig, QueuePair, RtrAttr, RtsAttr};
use ferric_sim::{SimDevice, World, WorldConfig};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

/// Any error: the examples print it and end.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How often [`Host::wait`] polls before it gives up. A simulated card runs 16 clock cycles between two polls.
const POLLS: usize = 100_000;

/// A host, the driver of its card, and one of each object that an example needs.
pub struct Host {
    /// Completion queue of sends and receives. It stands first because an object has to be destroyed before what it was made from.
    pub cq: CompletionQueue,
    /// Protection domain: keys and queue pairs of one domain may be used together.
    pub pd: Pd,
    /// Event queue that the completion queue reports to when it is armed. The examples poll instead, but it has to live as long.
    _eq: EventQueue,
    /// MAC address.
    pub mac: Mac,
    /// IP address.
    pub ip: IpAddr,
}

impl Host {
    /// Polls until a request completes and returns its completion. An error status is an error here.
    pub fn wait(&mut self) -> Result<Completion> {
        for _ in 0..POLLS {
            if let Some(completion) = self.cq.poll() {
                return match completion.status {
                    CqeStatus::Success => Ok(completion),
                    status => Err(format!("request {} has failed: {status:?}", completion.wr_id).into()),
                };
            }
            // Simulated time passes only here. With a card in a machine this is a hint to the processor.
            self.cq.relax();
        }
        Err("no completion has come".into())
    }
}

/// Builds the two cards (the first time this takes minutes, afterwards they come from a cache) and opens both.
pub fn hosts() -> Result<[Host; 2]> {
    println!("building the simulated cards (minutes the first time)");
    let world = Arc::new(Mutex::new(World::new(&WorldConfig::default())?));
    let open = |number: u8| -> Result<Host> {
        let ctx = Context::open(SimDevice::new(&world, number.into(), 0), Config::default())?;
        let pd = ctx.alloc_pd()?;
        let eq = ctx.create_eq(8, 0)?;
        let cq = ctx.create_cq(64, &eq)?;
        Ok(Host { cq, pd, _eq: eq, mac: Mac([2, 0, 0, 0, 0, number + 1]), ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, number + 1)) })
    };
    Ok([open(0)?, open(1)?])
}

/// Makes a reliable connection: a queue pair on either host, both in the state RTS (ready to send).
#[allow(dead_code, reason = "datagrams need no connection")]
pub fn connected(hosts: &[Host; 2]) -> Result<[QueuePair; 2]> {
    let config = QpConfig::default();
    let mut qps = [hosts[0].pd.create_qp(&config, &hosts[0].cq, &hosts[0].cq)?, hosts[1].pd.create_qp(&config, &hosts[1].cq, &hosts[1].cq)?];
    // The peers exchange these by any means they have: a TCP socket, a file, the connection manager (`ferric_driver::cm`).
    let numbers = [qps[0].qpn(), qps[1].qpn()];
    let first_psn = [0x10, 0x20];
    for (side, qp) in qps.iter_mut().enumerate() {
        let (own, peer) = (&hosts[side], &hosts[1 - side]);
        let path = Path { dmac: peer.mac, smac: own.mac, dip: peer.ip, sip: own.ip, vlan: None, udp_sport: 0xc000, tclass: 0, hop_limit: 64, flow_label: 0 };
        // The peer may READ, WRITE and use atomics, within the rights of the regions whose keys it gets.
        qp.to_init(Access::ALL)?;
        qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: numbers[1 - side], rq_psn: first_psn[1 - side], min_rnr_timer: 12, repeat_nak: false, max_dest_rd_atomic: 16, path: Some(path) })?;
        qp.to_rts(&RtsAttr { sq_psn: first_psn[side], timeout: 14, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 16 })?;
    }
    Ok(qps)
}
