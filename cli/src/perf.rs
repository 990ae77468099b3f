//! `ferric perf`: a verified exchange between two driver processes, which agree over a TCP connection.
use crate::party::{Address, Party, Shape, Trouble};
use ferric_abi::codes::WrOpcode;
use ferric_driver::device::Device;
use ferric_driver::types::QpType;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// RDMA WRITE.
    Write,
    /// SEND.
    Send,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Operation.
    pub op: Op,
    /// Bytes of a message.
    pub size: usize,
    /// Messages.
    pub count: u64,
    /// Messages outstanding.
    pub window: usize,
    /// Path MTU in bytes.
    pub mtu: usize,
}

/// Largest message and window that are agreed to.
const MAX_SIZE: usize = 1 << 26;
const MAX_WINDOW: usize = 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
enum Note {
    /// The initiator's plan and address.
    Plan { plan: Plan, address: Address },
    /// The responder's answer.
    Address { address: Address },
    /// The responder is ready for messages from `from` on, `count` of them.
    Ready,
    /// Those have been sent; to be verified.
    Check { from: u64, count: u64 },
    /// They are as they should be.
    Good,
    /// Something is wrong.
    Bad { reason: String },
}

/// Outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The plan.
    pub plan: Plan,
    /// Messages whose every byte was compared by the receiver.
    pub verified: u64,
    /// Seconds of the sending alone.
    pub seconds: f64,
    /// Payload bytes per second.
    pub bytes_per_second: f64,
    /// Shortest, middle and longest time of a window, in microseconds.
    pub window_us: [f64; 3],
}

struct Link {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Link {
    fn new(stream: TcpStream, patience: Duration) -> Result<Self, Trouble> {
        let fail = |e: std::io::Error| Trouble::Peer(e.to_string());
        stream.set_read_timeout(Some(patience)).map_err(fail)?;
        stream.set_nodelay(true).map_err(fail)?;
        Ok(Self { reader: BufReader::new(stream.try_clone().map_err(fail)?), writer: stream })
    }
    fn say(&mut self, note: &Note) -> Result<(), Trouble> {
        let text = serde_json::to_string(note).map_err(|e| Trouble::Peer(e.to_string()))? + "\n";
        self.writer.write_all(text.as_bytes()).map_err(|e| Trouble::Peer(format!("the peer has gone: {e}")))
    }
    fn hear(&mut self) -> Result<Note, Trouble> {
        let mut line = String::new();
        // A line is short; more than this is no note of ours.
        let n = std::io::Read::take(&mut self.reader, 4096).read_line(&mut line).map_err(|e| Trouble::Peer(format!("the peer does not answer: {e}")))?;
        if n == 0 {
            return Err(Trouble::Peer("the peer has ended".into()));
        }
        match serde_json::from_str(&line) {
            Ok(Note::Bad { reason }) => Err(Trouble::Peer(format!("the peer says: {reason}"))),
            Ok(note) => Ok(note),
            Err(e) => Err(Trouble::Peer(format!("the peer says `{}`: {e}", line.trim_end()))),
        }
    }
}

fn shape(plan: &Plan, ip: IpAddr, patience: Duration) -> Result<Shape, Trouble> {
    let bad = |what: &str| Err(Trouble::Peer(what.into()));
    if plan.size == 0 || plan.size > MAX_SIZE || plan.window == 0 || plan.window > MAX_WINDOW || plan.count == 0 {
        return bad("a message has 1 byte to 64 MiB, a window 1 to 1024 messages, a run at least one");
    }
    match ferric_driver::types::Mtu::from_bytes(plan.mtu) {
        Some(mtu) => Ok(Shape { ip, size: plan.size, window: plan.window.min(plan.count as usize), mtu, patience, transport: QpType::Rc }),
        None => bad("the path MTU is 256, 512, 1024, 2048 or 4096"),
    }
}

/// Waits for one initiator at `listen` and receives from it. `listening` hears the address, for port 0.
pub fn respond(device: Arc<dyn Device>, ip: IpAddr, listen: SocketAddr, patience: Duration, listening: impl FnOnce(SocketAddr)) -> Result<Report, Trouble> {
    let listener = TcpListener::bind(listen).map_err(|e| Trouble::Peer(format!("{listen}: {e}")))?;
    listening(listener.local_addr().unwrap_or(listen));
    let (stream, _) = listener.accept().map_err(|e| Trouble::Peer(e.to_string()))?;
    let mut link = Link::new(stream, patience)?;
    let Note::Plan { plan, address } = link.hear()? else { return Err(Trouble::Peer("the peer does not begin with a plan".into())) };
    let result = serve(&mut link, device, ip, plan, &address, patience);
    if let Err(e) = &result {
        let _ = link.say(&Note::Bad { reason: e.to_string() });
    }
    result
}

fn serve(link: &mut Link, device: Arc<dyn Device>, ip: IpAddr, plan: Plan, peer: &Address, patience: Duration) -> Result<Report, Trouble> {
    let mut party = Party::open(device, shape(&plan, ip, patience)?)?;
    party.introduce()?;
    party.connect(peer)?;
    link.say(&Note::Address { address: party.address() })?;
    let start = Instant::now();
    let mut times = Vec::new();
    for (from, count) in windows(&plan) {
        let t = Instant::now();
        for n in from..from + count {
            party.wipe(n);
            if plan.op == Op::Send {
                party.post_receive(n)?;
            }
        }
        link.say(&Note::Ready)?;
        match link.hear()? {
            Note::Check { from: f, count: c } if (f, c) == (from, count) => {}
            other => return Err(Trouble::Peer(format!("the peer says {other:?} where it should ask for {from}+{count}"))),
        }
        for n in from..from + count {
            if plan.op == Op::Send {
                let c = party.wait()?;
                if c.wr_id != n || c.byte_len as usize != plan.size {
                    return Err(Trouble::Failed(c));
                }
            }
            party.verify(n)?;
        }
        times.push(t.elapsed());
        link.say(&Note::Good)?;
    }
    Ok(report(plan, start.elapsed(), times))
}

fn windows(plan: &Plan) -> impl Iterator<Item = (u64, u64)> {
    let (count, window) = (plan.count, plan.window as u64);
    (0..count.div_ceil(window)).map(move |w| (w * window, window.min(count - w * window)))
}

fn report(plan: Plan, spent: Duration, mut times: Vec<Duration>) -> Report {
    times.sort();
    let at = |i: usize| times.get(i).map_or(0.0, |t| t.as_secs_f64() * 1e6);
    let seconds = spent.as_secs_f64();
    let bytes_per_second = plan.count as f64 * plan.size as f64 / seconds.max(1e-9);
    Report { plan, verified: plan.count, seconds, bytes_per_second, window_us: [at(0), at(times.len() / 2), at(times.len().saturating_sub(1))] }
}

/// Connects to a responder and sends to it.
pub fn initiate(device: Arc<dyn Device>, ip: IpAddr, connect: SocketAddr, plan: Plan, patience: Duration) -> Result<Report, Trouble> {
    let mut party = Party::open(device, shape(&plan, ip, patience)?)?;
    party.introduce()?;
    let stream = TcpStream::connect(connect).map_err(|e| Trouble::Peer(format!("{connect}: {e}; is the other side running (ferric perf --listen)?")))?;
    let mut link = Link::new(stream, patience)?;
    link.say(&Note::Plan { plan, address: party.address() })?;
    let Note::Address { address } = link.hear()? else { return Err(Trouble::Peer("the peer does not say its address".into())) };
    party.connect(&address)?;
    let opcode = match plan.op {
        Op::Write => WrOpcode::Write,
        Op::Send => WrOpcode::Send,
    };
    let mut times = Vec::new();
    for (from, count) in windows(&plan) {
        (from..from + count).for_each(|n| party.fill(n));
        let Note::Ready = link.hear()? else { return Err(Trouble::Peer("the peer is not ready".into())) };
        let t = Instant::now();
        (from..from + count).try_for_each(|n| party.post(n, opcode, &address))?;
        for n in from..from + count {
            let c = party.wait()?;
            if c.wr_id != n {
                return Err(Trouble::Failed(c));
            }
        }
        times.push(t.elapsed());
        link.say(&Note::Check { from, count })?;
        let Note::Good = link.hear()? else { return Err(Trouble::Peer("the peer did not verify".into())) };
    }
    let spent = times.iter().sum();
    Ok(report(plan, spent, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_every_message_once() {
        for (count, window) in [(1, 1), (10, 3), (9, 3), (2, 100)] {
            let plan = Plan { op: Op::Write, size: 1, count, window, mtu: 1024 };
            let all: Vec<u64> = windows(&plan).flat_map(|(f, c)| f..f + c).collect();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn impossible_plans_are_refused() {
        let good = Plan { op: Op::Send, size: 64, count: 4, window: 2, mtu: 1024 };
        let check = |p: Plan| shape(&p, IpAddr::from([10, 0, 0, 1]), Duration::from_secs(1)).is_ok();
        assert!(check(good));
        for p in [Plan { size: 0, ..good }, Plan { size: MAX_SIZE + 1, ..good }, Plan { window: 0, ..good }, Plan { count: 0, ..good }, Plan { mtu: 1500, ..good }] {
            assert!(!check(p), "{p:?}");
        }
    }
}
