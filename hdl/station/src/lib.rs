//! A host on the wire of a card or a block, with a network stack that we did not write: smoltcp. It resolves addresses by ARP and neighbour discovery, pings, and answers.
//!
//! A crate of its own, so that the gateware's crate is built without a network stack, and once for all who test with it.
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::icmp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress, IpCidr, Ipv6Address};
use std::collections::VecDeque;
use std::net::IpAddr;

const IDENT: u16 = 0x4711;
/// Bytes of the longest frame it sends and takes.
const LONGEST: usize = 1514;
/// EtherType of ARP, as on the wire.
const ARP: [u8; 2] = [8, 6];

/// Frames from and to the wire.
#[derive(Default)]
struct Wire {
    rx: VecDeque<Vec<u8>>,
    tx: VecDeque<Vec<u8>>,
}

struct Got(Vec<u8>);
struct Give<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Got {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Give<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Got;
    type TxToken<'a> = Give<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Got, Give<'_>)> {
        self.rx.pop_front().map(|frame| (Got(frame), Give(&mut self.tx)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Give<'_>> {
        Some(Give(&mut self.tx))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut all = DeviceCapabilities::default();
        all.medium = Medium::Ethernet;
        all.max_transmission_unit = LONGEST;
        all
    }
}

/// A host with some addresses.
pub struct Station {
    wire: Wire,
    iface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    /// Its IPv6 address, which checksums of ICMPv6 cover.
    v6: Ipv6Address,
    seq: u16,
    /// Frames it has sent.
    pub sent: u64,
    /// ARP frames among them.
    pub arps: u64,
}

impl Station {
    /// A host with this MAC address and these addresses and lengths of prefixes; at most one of IPv6.
    pub fn new(mac: [u8; 6], addresses: &[(IpAddr, u8)]) -> Self {
        let mut wire = Wire::default();
        let mut iface = Interface::new(Config::new(HardwareAddress::Ethernet(EthernetAddress(mac))), &mut wire, Instant::ZERO);
        iface.update_ip_addrs(|all| addresses.iter().for_each(|(ip, prefix)| all.push(IpCidr::new((*ip).into(), *prefix)).expect("room for an address")));
        let v6 = addresses.iter().find_map(|(ip, _)| if let IpAddr::V6(v6) = ip { Some(*v6) } else { None }).unwrap_or(Ipv6Address::UNSPECIFIED);
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 4], vec![0; 4096]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(IDENT)).expect("an ICMP socket");
        let socket = sockets.add(socket);
        Self { wire, iface, sockets, socket, v6, seq: 0, sent: 0, arps: 0 }
    }

    /// Asks `to` to give `payload` back.
    pub fn ping(&mut self, to: IpAddr, payload: &[u8]) {
        self.seq += 1;
        let checksums = ChecksumCapabilities::default();
        let socket = self.sockets.get_mut::<icmp::Socket>(self.socket);
        match to {
            IpAddr::V4(_) => {
                let request = Icmpv4Repr::EchoRequest { ident: IDENT, seq_no: self.seq, data: payload };
                let room = socket.send(request.buffer_len(), to.into()).expect("room for a ping");
                request.emit(&mut Icmpv4Packet::new_unchecked(room), &checksums);
            }
            IpAddr::V6(there) => {
                let request = Icmpv6Repr::EchoRequest { ident: IDENT, seq_no: self.seq, data: payload };
                let room = socket.send(request.buffer_len(), to.into()).expect("room for a ping");
                request.emit(&self.v6, &there, &mut Icmpv6Packet::new_unchecked(room), &checksums);
            }
        }
    }

    /// The payload that came back of the last ping; answers to older ones are let go.
    pub fn answer(&mut self) -> Option<Vec<u8>> {
        let checksums = ChecksumCapabilities::default();
        while let Ok((bytes, from)) = self.sockets.get_mut::<icmp::Socket>(self.socket).recv() {
            let (seq, data) = match from {
                IpAddress::Ipv4(_) => match Icmpv4Repr::parse(&Icmpv4Packet::new_checked(bytes).expect("an ICMP message"), &checksums) {
                    Ok(Icmpv4Repr::EchoReply { ident: IDENT, seq_no, data }) => (seq_no, data),
                    other => panic!("{other:?}"),
                },
                IpAddress::Ipv6(from) => match Icmpv6Repr::parse(&from, &self.v6, &Icmpv6Packet::new_checked(bytes).expect("an ICMPv6 message"), &checksums) {
                    Ok(Icmpv6Repr::EchoReply { ident: IDENT, seq_no, data }) => (seq_no, data),
                    other => panic!("{other:?}"),
                },
            };
            if seq == self.seq {
                return Some(data.to_vec());
            }
        }
        None
    }

    /// What it wants sent at `nanos` of its time.
    pub fn poll(&mut self, nanos: u64) -> Vec<Vec<u8>> {
        self.iface.poll(Instant::from_micros(nanos as i64 / 1000), &mut self.wire, &mut self.sockets);
        let frames: Vec<_> = self.wire.tx.drain(..).collect();
        self.sent += frames.len() as u64;
        self.arps += frames.iter().filter(|frame| frame[12..14] == ARP).count() as u64;
        frames
    }

    /// A frame from the wire.
    pub fn take(&mut self, frame: Vec<u8>) {
        self.wire.rx.push_back(frame);
    }
}
