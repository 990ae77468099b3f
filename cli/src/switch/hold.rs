//! `ferric switch hold`: the process that holds a card's physical function, and with it the switch. Commands come over a socket, one after the other.
use super::ask::{answer, Miss, Request, Rights, Tunnel};
use super::book::{domain, ufid, Book, Entry};
use super::card::{Card, Counts};
use super::trace;
use crate::capture::Taker;
use crate::{device, interop, serve};
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_abi::layout::{get, Layout};
use ferric_driver::switch::{FlowPort, Sender};
use ferric_driver::types::Mac;
use ferric_driver::{Config, Context, TunnelConfig};
use ferric_model::switch::flow::{parse, steps_text};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long nobody looks at the socket and at the queue.
const PAUSE: Duration = Duration::from_millis(20);

type Done = Result<String, Box<dyn Error>>;

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Physical function: its PCI address or the path of its socket.
    pub device: String,
    /// Socket to be made, for the other commands.
    #[arg(long)]
    pub socket: PathBuf,
    /// Write what the tables send to software to a pcapng, with everything else that no RDMA block wants.
    #[arg(long)]
    pub software: Option<PathBuf>,
}

/// A switch and what it was told.
pub struct Switch {
    card: Card,
    book: Book,
    senders: BTreeMap<u16, Sender>,
    next: u64,
}

/// Holds the switch until SIGINT or SIGTERM.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    serve::catch_signals();
    let context = Context::open(device::open(&options.device)?, Config::default())?;
    let mut taker = options.software.as_ref().map(|out| Taker::new(&context, out)).transpose()?;
    let switch = Arc::new(Mutex::new(Switch::new(context)?));
    let listener = ferric_sim::pci::listen(&options.socket)?;
    serve::ready("");
    while !serve::stopped() {
        hear(&listener, &switch);
        // What comes off the wire does not end the switch.
        if let Some(Err(error)) = taker.as_mut().map(Taker::take_all) {
            log::error!("what is for software is not written any more: {error}");
            taker = None;
        }
        std::thread::sleep(PAUSE);
    }
    std::fs::remove_file(&options.socket)?;
    Ok(())
}

/// Answers everybody who waits, each by a thread of its own: one who says nothing, or a letter at a time, keeps nobody waiting. Commands are carried out one after the other. What a command's process does
/// wrong costs that process its answer.
fn hear(listener: &UnixListener, switch: &Arc<Mutex<Switch>>) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let switch = switch.clone();
                std::thread::spawn(move || {
                    let heard = answer(&stream, |request| switch.lock().unwrap_or_else(|e| e.into_inner()).carry_out(request));
                    if let Err(error) = heard {
                        log::warn!("a command was not answered: {error}");
                    }
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(error) => return log::warn!("nobody is heard now: {error}"),
        }
    }
}

impl Switch {
    /// That of an open physical function: no tunnel, no flow, and frames pass.
    pub fn new(context: Context) -> Result<Self, Box<dyn Error>> {
        let functions = context.capabilities().functions as u16;
        Ok(Self { card: Card::new(context)?, book: Book { functions, ..Default::default() }, senders: BTreeMap::new(), next: 1 })
    }

    /// Does what a command says; what it prints.
    pub fn carry_out(&mut self, request: Request) -> Done {
        match request {
            Request::Show => Ok(self.show()),
            Request::Tables { miss, bridge, egress } => {
                let port = FlowPort { drop_miss: miss == Miss::Drop, bridge, egress, ..Default::default() };
                self.card.decide(&self.book, port)?;
                Ok(String::new())
            }
            Request::Pass => Ok(self.card.pass().map(|()| String::new())?),
            Request::Port { function, rights } => self.rights(function, rights.as_ref()),
            Request::Tunnel { function, tunnel } => self.tunnel(function, tunnel.as_ref()),
            Request::Station { network, mac, function } => self.station(network, &mac, function),
            Request::Add { matches, actions } => {
                let entry = self.book.entry(parse::flow(&matches, &actions, &self.book.names())?)?;
                self.card.add(self.next, &entry.line)?;
                Ok(format!("{}\n", ufid(self.insert(entry))))
            }
            Request::Delete { id } => {
                let entry = self.book.flows.get(&id).ok_or_else(|| format!("there is no flow {}", ufid(id)))?;
                self.card.remove(id, &entry.line)?;
                self.book.flows.remove(&id);
                Ok(String::new())
            }
            Request::Load { text, names, check, partial } => self.load(&text, names, check, partial),
            Request::Dump { places } => self.dump(places),
            Request::Stats { all } => self.stats(all),
            Request::Trace { from, frame } => Ok(trace::run(&self.book, self.card.port(), from, &frame)),
        }
    }

    fn insert(&mut self, entry: Entry) -> u64 {
        let id = self.next;
        self.next += 1;
        self.book.flows.insert(id, entry);
        id
    }

    fn function(&self, function: u16) -> Result<u16, String> {
        match function < self.book.functions {
            true => Ok(function),
            false => Err(format!("the card has the functions 0 to {}", self.book.functions - 1)),
        }
    }

    fn rights(&mut self, function: u16, rights: Option<&Rights>) -> Done {
        let function = self.function(function)?;
        let sender = rights.map(sender).transpose()?;
        self.card.sender(function as u8, sender.as_ref())?;
        match sender {
            Some(sender) => _ = self.senders.insert(function, sender),
            None => _ = self.senders.remove(&function),
        }
        Ok(String::new())
    }

    fn tunnel(&mut self, function: u16, tunnel: Option<&Tunnel>) -> Done {
        let function = self.function(function)?;
        if let Some(what) = self.book.speaks_of(function) {
            return Err(format!("{what} speaks of this function's network: take it away first, or it would be the next network's").into());
        }
        let config = tunnel.map(tunnel_of).transpose()?;
        self.card.tunnel(function, config.as_ref())?;
        match self.card.leader(function)? {
            Some(leader) => _ = self.book.leaders.insert(function, leader),
            None => _ = self.book.leaders.remove(&function),
        }
        match config {
            Some(config) => _ = self.book.tunnels.insert(function, config),
            None => _ = self.book.tunnels.remove(&function),
        }
        Ok(String::new())
    }

    fn station(&mut self, network: Option<u16>, mac: &str, function: Option<u16>) -> Done {
        if let Some(function) = network {
            if !self.book.tunnels.contains_key(&self.function(function)?) {
                return Err(format!("function {function} has no tunnel: ferric switch tunnel set").into());
            }
        }
        let network = network.map(|function| *self.book.leaders.get(&function).unwrap_or(&function));
        let mac: Mac = mac.parse()?;
        let port = function.map(|f| self.function(f).map(|f| (FUNCTION_PORTS + u32::from(f)) as u8)).transpose()?;
        let key = (domain(network), mac.0);
        if port.is_none() && !self.book.stations.contains_key(&key) {
            return Err("there is no such station".into());
        }
        self.card.station(key.0, mac, port)?;
        match port {
            Some(port) => _ = self.book.stations.insert(key, port),
            None => _ = self.book.stations.remove(&key),
        }
        Ok(String::new())
    }

    /// Flows as `dpctl dump-flows` prints them take the place of those that there are, between two frames.
    fn load(&mut self, text: &str, names: Vec<(String, u32)>, check: bool, partial: bool) -> Done {
        let mut book = Book { flows: BTreeMap::new(), ..self.book.clone() };
        let names = book.names().into_iter().chain(names).collect();
        let mut refused = String::new();
        let mut next = self.next;
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#')) {
            let entry = parse::dump_line(line, &names).map_err(|e| e.to_string()).and_then(|flow| book.entry(flow).map_err(|e| e.to_string()));
            match entry {
                Ok(entry) => {
                    book.flows.insert(next, entry);
                    next += 1;
                }
                Err(why) => _ = writeln!(refused, "line {number}: {why}"),
            }
        }
        let words = format!("{} flows taken, {} not\n", book.flows.len(), refused.lines().count());
        if check {
            return Ok(refused + &words);
        }
        if !refused.is_empty() && !partial {
            return Err(format!("nothing has changed, for of these flows some cannot be taken (--partial leaves them out):\n{}", refused.trim_end()).into());
        }
        if let Some(port) = self.card.port().copied() {
            self.card.decide(&book, port)?;
        }
        (self.book, self.next) = (book, next);
        Ok(refused + &words)
    }

    /// All flows as `dpctl dump-flows` prints them.
    fn dump(&mut self, places: bool) -> Done {
        let mut out = String::new();
        for (id, entry) in &self.book.flows {
            let used = self.card.used(*id)?;
            let (packets, bytes) = used.map_or((0, 0), |used| (used.packets(), used.bytes()));
            let never = if packets == 0 { ", used:never" } else { "" };
            write!(out, "{}, {}, packets:{packets}, bytes:{bytes}{never}, actions:{}", ufid(*id), entry.flow.matches, steps_text(&entry.flow.steps))?;
            if places {
                write!(out, ", dp-extra-info:{}", self.card.whereabouts(*id))?;
            }
            out.push('\n');
        }
        Ok(out)
    }

    fn show(&self) -> String {
        let mut out = match self.card.port() {
            None => "frames pass; no table is asked\n".into(),
            Some(port) => {
                let miss = if port.drop_miss { "dropped" } else { "for software" };
                let more = [(port.bridge, "; stations are asked"), (port.egress, "; what leaves by the wire is asked about")];
                let more: String = more.iter().filter(|(on, _)| *on).map(|(_, text)| *text).collect();
                format!("the tables decide, generation {}; what they do not know is {miss}{more}\n", port.generation)
            }
        };
        let mut say = |line: String| _ = writeln!(out, "{line}");
        for function in 0..self.book.functions {
            say(format!("function {function} (port {})", FUNCTION_PORTS + u32::from(function)));
            if let Some(t) = self.book.tunnels.get(&function) {
                let far = if t.any_remote { "anybody".into() } else { t.remote.to_string() };
                say(format!("  tunnel: VNI {}, {} at {}, from {far}, to {} at {}{}", t.vni, t.local, t.mac, t.remote, t.next_hop, if t.raw { ", raw queue pairs" } else { "" }));
                self.book.leaders.get(&function).into_iter().for_each(|leader| say(format!("  in the network of function {leader}")));
            }
            if let Some(sender) = self.senders.get(&function) {
                say(format!("  may send: {}", rights_text(sender)));
            }
        }
        for ((domain, mac), port) in &self.book.stations {
            let network = domain.checked_sub(1).map_or_else(|| "through no tunnel".into(), |f| format!("through the tunnel of function {f}"));
            say(format!("station {} {network}: function {}", Mac(*mac), u32::from(*port) - FUNCTION_PORTS));
        }
        say(format!("{} flows", self.book.flows.len()));
        out
    }

    fn stats(&self, all: bool) -> Done {
        let Counts { flows, senders, leavers, tunnels } = self.card.counts(self.book.functions)?;
        let mut out = String::new();
        let mut print = |name: &str, raw: &[u8], layout: &Layout| {
            for field in layout.fields.iter().filter(|f| !f.name.starts_with("rsvd")) {
                let value = get(raw, layout.order, field.offset, field.width);
                if all || value != 0 {
                    _ = writeln!(out, "{:32} {value}", format!("{name}.{}", field.name));
                }
            }
        };
        if let Some(flows) = &flows {
            print("flows", &flows.0, &ferric_abi::context::FlowCounts::LAYOUT);
        }
        for (function, sender) in senders.iter().enumerate() {
            print(&format!("sent.f{function}"), &sender.0, &ferric_abi::context::SenderCounts::LAYOUT);
        }
        for (function, leaver) in leavers.iter().enumerate() {
            print(&format!("egress.f{function}"), &leaver.0, &ferric_abi::context::EgressCounts::LAYOUT);
        }
        if let Some(tunnels) = &tunnels {
            print("tunnel", &tunnels.0, &ferric_abi::context::TunnelCounts::LAYOUT);
        }
        Ok(out)
    }
}

fn sender(rights: &Rights) -> Result<Sender, Box<dyn Error>> {
    let macs = rights.mac.iter().map(|mac| mac.parse()).collect::<Result<_, _>>()?;
    let Rights { any_ip, trunk, underlay, server, roce, .. } = *rights;
    Ok(Sender { macs, addresses: rights.ip.clone(), any_ip, trunk, underlay, server, roce })
}

fn rights_text(sender: &Sender) -> String {
    let Sender { any_ip, trunk, underlay, server, roce, .. } = *sender;
    let flags = [(any_ip, "any IP address"), (trunk, "tags"), (underlay, "to the underlay"), (server, "as a server"), (roce, "RoCE")];
    let addresses = sender.macs.iter().map(Mac::to_string).chain(sender.addresses.iter().map(ToString::to_string));
    let all: Vec<String> = addresses.chain(flags.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).into())).collect();
    match sender.macs.is_empty() {
        true => "nothing".into(),
        false => all.join(", "),
    }
}

fn tunnel_of(tunnel: &Tunnel) -> Result<TunnelConfig, Box<dyn Error>> {
    let Tunnel { any_remote, lenient, raw, tag, underlay_mtu, .. } = *tunnel;
    Ok(TunnelConfig { any_remote, lenient, raw, tag, underlay_mtu, ..interop::tunnel(&tunnel.ends)? })
}
