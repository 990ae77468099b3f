//! What holds whoever sits in the function's place: the golden model, or the gateware's engine.
use super::guest::*;
use super::packed::packed_rings;
use super::{spread, tcp, whole, PEER};
use ferric_abi::codes::VirtioCause;
use ferric_abi::csr;
use ferric_abi::virtio::net::control;
use ferric_abi::virtio::{feature, isr, status, window, NetHeader};
use ferric_driver::vfio_user::VfioUserDevice;
use ferric_sim::Rng;
use rand::{Rng as _, SeedableRng};
use std::time::{Duration, Instant};

/// Longest frame of the port, and the buffer that takes it.
const LONGEST: usize = 9018;
const BUFFER: u32 = (LONGEST + NetHeader::BYTES) as u32;

/// Frames of all lengths both ways, every byte compared; interrupts and their status; what is for others; a command.
fn both_ways(served: &Served) {
    let mut rng = Rng::seed_from_u64(3);
    let mut guest = Guest::running(served);
    guest.offer(8, BUFFER);
    let mut came = 0;
    for n in 0..40u16 {
        let length = [60, 61, 1514, LONGEST, rng.gen_range(60..LONGEST)][usize::from(n) % 5];
        let mut frame: Vec<u8> = (0..length).map(|_| rng.gen()).collect();
        guest.transmit(NetHeader::default(), &frame);
        assert!(served.received() == frame, "frame {n} of {length} bytes leaves");
        assert_eq!(guest.used(TRANSMIT), (n % SIZE, 0));
        frame[..6].copy_from_slice(&served.mac);
        served.send(&frame);
        let (header, found) = guest.received();
        assert_eq!(header, NetHeader::default().with_num_buffers(1), "frame {n}");
        assert!(found == frame, "frame {n} of {length} bytes comes");
        guest.offer(1, BUFFER);
        // For somebody else, until the driver asks for it.
        let stranger = [2, 0, 0, 0, 0, 77];
        served.send(&whole(stranger, 100));
        came += 2;
        served.assert_arrived(came);
        if n == 20 {
            assert_eq!(guest.command(&[control::RX, control::RX_PROMISC, 1]), control::OK);
        } else if n > 20 {
            assert_eq!(guest.received().1, whole(stranger, 100));
            guest.offer(1, BUFFER);
        }
    }
    assert!(guest.interrupts(TRANSMIT) > 0 && guest.interrupts(RECEIVE) > 0);
    guest.assert_status_read();
    served.assert_arrived(came);
    served.assert_counts(|c| (c.left, c.device.transmitted, c.device.rejects()), (40, 40, 0));
    served.assert_given_back();
}

/// Echoes of the longest frames, whose buffers are as Linux makes them without merged ones: five and a table.
fn long_echoes(served: &Served) {
    let mut guest = Guest::running(served);
    let buffers = [12, 4068, 4096, 4096, 4096];
    (0..SIZE).for_each(|_| guest.publish_table(RECEIVE, &buffers, true));
    guest.notify(RECEIVE);
    for n in 0..150u64 {
        let frame = whole(served.mac, 8960);
        guest.transmit(NetHeader::default(), &frame);
        assert!(served.received() == frame, "frame {n} leaves");
        served.send(&frame);
        assert!(guest.received().1 == frame, "frame {n} comes");
        // Without a notification: it has not been asked for.
        guest.publish_table(RECEIVE, &buffers, true);
    }
    served.assert_arrived(150);
}

/// Frames right behind the driver's last step, for which there have been buffers since before it: the queue takes them, though it has only begun.
fn frames_at_the_beginning(served: &Served) {
    let mut guest = Guest::connect(served);
    for life in 1..=20 {
        guest.prepare(served.taken);
        (0..4).for_each(|_| guest.publish(RECEIVE, 2048, true));
        guest.go();
        let frames = [60, 70].map(|length| whole(served.mac, length));
        frames.iter().for_each(|frame| served.send(frame));
        served.assert_arrived(2 * life);
        served.assert_counts(|c| (c.device.delivered, c.device.rejects()), (2 * life, 0));
        frames.iter().for_each(|frame| assert!(guest.received().1 == *frame));
    }
}

/// More frames at once than chains of five buffers are in stock: each finds its own.
fn bursts(served: &Served) {
    const FRAMES: u64 = 40;
    let mut guest = Guest::connect(served);
    guest.begin(served.taken & !feature::MRG_RXBUF);
    (0..SIZE).for_each(|_| guest.publish_table(RECEIVE, &[12, 4068, 4096, 4096, 4096], true));
    guest.notify(RECEIVE);
    let frames: Vec<Vec<u8>> = (0..FRAMES as usize).map(|n| whole(served.mac, 20 + n)).collect();
    frames.iter().for_each(|frame| served.send(frame));
    served.assert_arrived(FRAMES);
    served.assert_counts(|c| (c.device.delivered, c.device.rejects()), (FRAMES, 0));
    frames.iter().for_each(|frame| assert!(guest.received().1 == *frame));
}

/// The longest frames in buffers of 1,000 bytes; when there are not enough for one it is dropped whole, and they are the next one's.
fn merged_frames(served: &Served) {
    let mut guest = Guest::running(served);
    guest.offer(SIZE, 1000);
    let frame = whole(served.mac, 8960);
    let needed = (frame.len() + NetHeader::BYTES).div_ceil(1000) as u16;
    for n in 0..u64::from(SIZE / needed) {
        served.send(&frame);
        assert!(guest.merged() == (needed, frame.clone()), "frame {n}");
    }
    served.send(&frame);
    served.assert_arrived(u64::from(SIZE / needed) + 1);
    let short = whole(served.mac, 1000);
    served.send(&short);
    assert!(guest.merged() == (2, short));
    served.assert_counts(|c| (c.device.of(VirtioCause::RxSmall), c.device.rejects()), (1, 1));
    served.assert_conserved();
}

/// Frames for which there are no buffers, or too small ones, are dropped; the others are not touched by that. Then a ring whose index cannot be ends the function's work, until it is reset.
fn drops_and_lost_rings(served: &Served) {
    let mut guest = Guest::running(served);
    guest.offer(2, 300);
    served.assert_available(2);
    let sent = [whole(served.mac, 20), whole(served.mac, 400), whole(served.mac, 30), whole(served.mac, 40)];
    for (n, frame) in (1..).zip(&sent) {
        served.send(frame);
        served.assert_arrived(n);
    }
    assert_eq!([guest.received().1, guest.received().1], [sent[0].clone(), sent[2].clone()]);
    served.assert_counts(|c| (c.device.of(VirtioCause::RxSmall), c.device.of(VirtioCause::RxNoBuffer), c.device.delivered), (1, 1, 2));
    guest.jump(TRANSMIT, SIZE + 1);
    guest.notify(TRANSMIT);
    let end = Instant::now() + PATIENCE;
    while guest.register("device_status") & u64::from(status::NEEDS_RESET) == 0 {
        assert!(Instant::now() < end, "the function goes on");
    }
    assert_eq!(guest.read::<1>(window::ISR)[0] & isr::CONFIG, isr::CONFIG);
    served.assert_counts(|c| c.device.of(VirtioCause::AvailJump), 1);
    served.send(&whole(served.mac, 20));
    served.assert_arrived(5);
    served.assert_counts(|c| c.device.of(VirtioCause::RxDown), 1);
    guest.begin(served.taken);
    guest.transmit(NetHeader::default(), &[5; 60]);
    assert_eq!(served.received(), [5; 60]);
}

/// Frames both ways while the driver resets the function, the bus does, and the client dies: each ends, and the function works again.
fn resets_under_load(served: &Served) {
    let mut sent = 0;
    for round in 0..12 {
        let mut guest = Guest::running(served);
        guest.offer(SIZE, 4096);
        for _ in 0..20 {
            guest.transmit(NetHeader::default(), &[round; 900]);
            served.send(&whole(served.mac, 700));
            sent += 1;
        }
        match round % 4 {
            0 => guest.reset(),
            1 => guest.client.reset().unwrap(),
            // FLR, by the device control register.
            2 => guest.client.write(7, 0x68, &[0x10, 0xa8], false).unwrap(),
            _ => drop(guest),
        }
        served.assert_arrived(sent);
        served.drain();
    }
    let mut guest = Guest::running(served);
    guest.transmit(NetHeader::default(), &[99; 60]);
    assert_eq!(served.received(), [99; 60]);
    assert_eq!(served.server.counters(1).late, 0);
}

/// Register writes of any width anywhere, rings of anything, frames meanwhile: nothing ends but what the guest has broken itself, and a reset mends it. What the function reads is the guest's memory alone.
fn hostile_guests(served: &Served) {
    let mut rng = Rng::seed_from_u64(20);
    let mut sent = 0;
    for guest_number in 0..12 {
        let mut guest = Guest::running(served);
        guest.offer(SIZE / 2, 1600);
        for _ in 0..120 {
            match rng.gen_range(0..4) {
                0 => {
                    // Rings and tables, where descriptors lie.
                    let bytes: [u8; 16] = std::array::from_fn(|_| if rng.gen_bool(0.4) { 0 } else { rng.gen() });
                    guest.poke(BASE + rng.gen_range(0..0xbff0), &bytes);
                    guest.notify(rng.gen_range(0..3));
                }
                1 => {
                    let width = [1, 2, 4, 8, 3, 64][rng.gen_range(0..6)];
                    let bytes: Vec<u8> = (0..width).map(|_| rng.gen()).collect();
                    let offset = if rng.gen_bool(0.5) { window::COMMON + rng.gen_range(0..64) } else { rng.gen_range(0..0xffc0) };
                    guest.write(offset, &bytes);
                }
                2 => drop(guest.read::<8>(rng.gen_range(0..0xfff8))),
                _ => {
                    served.send(&whole(served.mac, rng.gen_range(0..2000)));
                    sent += 1;
                }
            }
        }
        served.assert_arrived(sent);
        guest.reset();
        guest.begin(served.taken);
        served.drain();
        guest.transmit(NetHeader::default(), &[guest_number; 61]);
        while served.received() != [guest_number; 61] {}
    }
    let counters = served.server.network(1).device;
    assert!(counters.rejects() > 0 && counters.of(VirtioCause::BadState) > 0, "{counters:?}");
    // Nobody else has noticed.
    assert_eq!(VfioUserDevice::open(&served.native).unwrap().read32(csr::MAGIC), csr::MAGIC_VALUE);
    assert!(!served.server.has_died());
    std::thread::sleep(Duration::from_millis(5));
    served.assert_conserved();
}

/// Two pairs of queues: a frame of a flow comes by the pair by which the driver last sent one, of those that it uses.
fn pairs_of_queues(served: &Served) {
    let mut guest = Guest::running(served);
    for pair in 0..2 {
        (0..8).for_each(|_| guest.publish(2 * pair, BUFFER, true));
        guest.notify(2 * pair);
    }
    let mut came = 0;
    // Which pair sends, how many the driver uses, and where the answer comes.
    for (sender, used, receiver) in [(1, 1, 0), (1, 2, 1), (0, 2, 0), (1, 2, 1), (1, 1, 0)] {
        assert_eq!(guest.command(&[control::MQ, control::MQ_PAIRS_SET, used, 0]), control::OK);
        let sent = whole([2, 0, 0, 0, 0, 1], 100 + came);
        guest.transmit_by(2 * sender + 1, NetHeader::default(), &sent);
        assert!(served.received() == sent, "frame {came} leaves");
        assert_eq!(guest.used(2 * sender + 1).1, 0);
        let frame = whole(served.mac, 200 + came);
        served.send(&frame);
        assert!(guest.received_by(2 * receiver).1 == frame, "frame {came} comes by pair {receiver}");
        came += 1;
    }
    served.assert_arrived(came as u64);
    served.assert_counts(|c| (c.left, c.device.transmitted, c.device.delivered, c.device.rejects()), (5, 5, 5, 0));
    served.assert_given_back();
}

/// A checksum is filled in, one behind the frame is not; whether one is right is said of a frame that comes, to drivers who have asked for that.
fn checksums(served: &Served) {
    for taken in [served.taken, served.taken & !(feature::CSUM | feature::GUEST_CSUM | feature::HOST_TSO4)] {
        let offloaded = taken & feature::CSUM != 0;
        let mut guest = Guest::connect(served);
        guest.begin(taken);
        guest.offer(4, 2048);
        let before = served.server.network(1).device.of(VirtioCause::BadOffload);
        let ordered = NetHeader::default().with_needs_csum(true).with_csum_start(34).with_csum_offset(16);
        guest.transmit(ordered, &tcp(PEER, 100));
        guest.transmit(ordered.with_csum_start(153), &tcp(PEER, 100));
        guest.transmit(NetHeader::default(), &tcp(PEER, 101));
        if offloaded {
            assert_eq!(served.received(), whole(PEER, 100));
        }
        assert_eq!(served.received(), tcp(PEER, 101), "it leaves as it is");
        served.assert_counts(|c| c.device.of(VirtioCause::BadOffload), before + if offloaded { 1 } else { 2 });
        let mut wrong = whole(served.mac, 500);
        wrong[100] ^= 1;
        for (frame, right) in [(whole(served.mac, 500), true), (wrong, false)] {
            served.send(&frame);
            let header = NetHeader::default().with_num_buffers(1).with_data_valid(right && offloaded);
            assert_eq!(guest.received(), (header, frame));
        }
    }
}

fn all_of_it(served: impl Fn(u16) -> Served) {
    both_ways(&served(1));
    checksums(&served(1));
    long_echoes(&served(1));
    frames_at_the_beginning(&served(1));
    bursts(&served(1));
    merged_frames(&served(1));
    packed_rings(&served(1));
    pairs_of_queues(&served(2));
    spread::frames_are_spread(&served(4));
    spread::resets_in_the_middle(&served(4));
    drops_and_lost_rings(&served(1));
    resets_under_load(&served(1));
    hostile_guests(&served(1));
}

#[test]
fn the_golden_model() {
    all_of_it(|pairs| Served::of(ferric_sim::Body::Twin, 64, pairs));
}

#[cfg(feature = "cards")]
#[test]
fn the_engine_w64() {
    all_of_it(|pairs| Served::of(ferric_sim::Body::Gateware, 64, pairs));
}
