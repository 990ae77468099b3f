//! Layers around a transport that is not RoCE, against the software codecs and an independent reader.
use super::layers::Layers;
use super::sum::Ip4Sum;
use super::udp::UdpFront;
use super::{model, DATAGRAM, TRANSPORT};
use crate::records;
use crate::tb::Tb;
use etherparse::{NetSlice, SlicedPacket};
use ferric_abi::context::PathCtx;
use ferric_abi::wire::protocol;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// The parts as a transport joins them: what it has to say stands behind the IP header, or behind a UDP header of the same length.
#[derive(LogicBlock, BlockDefault)]
struct Sender {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    load: Signal<In, Bit>,
    path: Signal<In, records::PathCtx>,
    length: Signal<In, Bits<16>>,
    body: Signal<In, Bits<1024>>,
    body_len: Signal<In, Bits<8>>,
    with_udp: Signal<In, Bit>,
    dst_port: Signal<In, Bits<16>>,
    image: Signal<Out, Bits<1024>>,
    len: Signal<Out, Bits<8>>,
    #[init(Ip4Sum::new(protocol::TCP))]
    sum: Ip4Sum,
    #[init(Layers::new(protocol::TCP))]
    layers: Layers,
    udp: UdpFront,
}

#[kernel]
impl Logic for Sender {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, sum);
        self.sum.load.next = self.load.val() & !self.reset.val();
        self.sum.path.next = self.path.val();
        self.sum.length.next = self.length.val();
        self.udp.src_port.next = self.path.val().udp_sport;
        self.udp.dst_port.next = self.dst_port.val();
        self.udp.length.next = self.length.val();
        self.layers.path.next = self.path.val();
        self.layers.length.next = self.length.val();
        self.layers.total.next = self.sum.total.val();
        self.layers.body.next = self.body.val();
        if self.with_udp.val() {
            self.layers.body.next = self.body.val() | self.udp.y.val();
        }
        self.layers.body_len.next = self.body_len.val();
        self.image.next = self.layers.image.val();
        self.len.next = self.layers.len.val();
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes"))).collect()
}

#[test]
fn layers_stand_in_front_of_any_transport() {
    let mut tb = Tb::new("header_layers", Sender::default());
    for n in 0..400 {
        let rng = tb.rng();
        let path = PathCtx(rng.bytes(64).try_into().expect("64 bytes"));
        let (length, dst_port, with_udp) = (rng.range(40, 9000) as u16, rng.next_u32() as u16, rng.percent(50));
        let own = rng.bytes(rng.clone().range(1, 40) as usize);
        let mut body = vec![0; 128];
        let at = if with_udp { DATAGRAM } else { TRANSPORT };
        body[at..at + own.len()].copy_from_slice(&own);
        let body_len = at - TRANSPORT + own.len();
        tb.set_wide("path", &words(&path.0)[..]);
        tb.set_wide("body", &words(&body)[..]);
        for (port, value) in [("length", length.into()), ("body_len", body_len as u64), ("dst_port", dst_port.into()), ("with_udp", with_udp.into()), ("load", 1)] {
            tb.set(port, value);
        }
        tb.cycle();
        tb.set("load", 0);
        tb.run(1 + n % 3);
        let got: Vec<u8> = tb.get_wide("image").iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut want = model::layers(&path, protocol::TCP, length);
        if with_udp {
            want.extend(model::udp(path.udp_sport(), dst_port, length));
        }
        want.extend(&own);
        assert_eq!(tb.get("len") as usize, want.len());
        want.resize(128, 0);
        assert_eq!(got, want, "{path:?}, seed {}", tb.seed());
    }
}

/// An independent reader agrees with the model, checksum included.
#[test]
fn the_model_agrees_with_etherparse() {
    let mut rng = crate::tb::Rng::new(8);
    for _ in 0..200 {
        let path = PathCtx(rng.bytes(64).try_into().expect("64 bytes"));
        let mut frame = model::layers(&path, protocol::UDP, 40);
        frame.extend(model::udp(path.udp_sport(), 53, 40));
        frame.extend([0; 32]);
        let packet = SlicedPacket::from_ethernet(&frame).expect("a frame");
        assert_eq!(packet.vlan.is_some(), path.vlan());
        match packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header().to_header();
                assert_eq!((header.total_len, header.calc_header_checksum()), (60, header.header_checksum));
                assert!(!path.ipv6());
            }
            Some(NetSlice::Ipv6(ip)) => assert_eq!((ip.header().payload_length(), path.ipv6()), (40, true)),
            other => panic!("{other:?}"),
        }
        let Some(etherparse::TransportSlice::Udp(udp)) = packet.transport else { panic!("no UDP") };
        assert_eq!((udp.source_port(), udp.destination_port(), udp.length()), (path.udp_sport(), 53, 40));
    }
}
