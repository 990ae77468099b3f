//! The peer's own network stack: smoltcp, for ARP and ping.
use crate::memory_target::model::Station;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::icmp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, Icmpv4Packet, Icmpv4Repr, IpAddress, IpCidr, Ipv4Address};
use std::collections::VecDeque;

const IDENT: u16 = 0x4711;

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
        all.max_transmission_unit = 1514;
        all
    }
}

/// A host with an address.
pub(super) struct Neighbour {
    wire: Wire,
    iface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    seq: u16,
    due: u64,
    /// ARP requests it has sent.
    pub(super) arps: u32,
}

fn v4(ip: u32) -> Ipv4Address {
    Ipv4Address::from(ip.to_be_bytes())
}

impl Neighbour {
    pub(super) fn new(here: Station) -> Neighbour {
        let mut wire = Wire::default();
        let mac: [u8; 6] = here.mac.to_be_bytes()[2..].try_into().expect("6 bytes");
        let mut iface = Interface::new(Config::new(HardwareAddress::Ethernet(EthernetAddress(mac))), &mut wire, Instant::ZERO);
        iface.update_ip_addrs(|all| all.push(IpCidr::new(IpAddress::Ipv4(v4(here.ip)), 24)).expect("room for an address"));
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 4], vec![0; 4096]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(IDENT)).expect("an ICMP socket");
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Neighbour { wire, iface, sockets, socket, seq: 0, due: 0, arps: 0 }
    }

    /// Asks the card to give `payload` back.
    pub(super) fn ping(&mut self, card: Station, payload: &[u8]) {
        self.seq += 1;
        let request = Icmpv4Repr::EchoRequest { ident: IDENT, seq_no: self.seq, data: payload };
        let socket = self.sockets.get_mut::<icmp::Socket>(self.socket);
        let room = socket.send(request.buffer_len(), IpAddress::Ipv4(v4(card.ip))).expect("room for a ping");
        request.emit(&mut Icmpv4Packet::new_unchecked(room), &ChecksumCapabilities::default());
    }

    /// The payload that came back.
    pub(super) fn answer(&mut self) -> Option<Vec<u8>> {
        let socket = self.sockets.get_mut::<icmp::Socket>(self.socket);
        let (bytes, _) = socket.recv().ok()?;
        let packet = Icmpv4Packet::new_checked(bytes).expect("an ICMP message");
        match Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()) {
            Ok(Icmpv4Repr::EchoReply { ident: IDENT, seq_no, data }) if seq_no == self.seq => Some(data.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    /// A frame that it wants sent, in cycle `now` of 8 ns.
    pub(super) fn poll(&mut self, now: u64) -> Option<Vec<u8>> {
        if now >= self.due {
            self.due = now + 500;
            self.iface.poll(Instant::from_micros(now as i64 / 125), &mut self.wire, &mut self.sockets);
        }
        let frame = self.wire.tx.pop_front()?;
        self.arps += u32::from(frame[12..14] == [8, 6]);
        Some(frame)
    }

    /// A frame from the wire.
    pub(super) fn take(&mut self, frame: Vec<u8>) {
        self.wire.rx.push_back(frame);
    }
}
