//! Two model ends on a wire.
use super::*;
use crate::wire::{Pds as Head, Ses};
use ferric_abi::uet::codes::PdsType;

const OWN: [u128; 2] = [0x0a00_0001, 0x0a00_0002];
const MAC: [u64; 2] = [0x0200_0000_0001, 0x0200_0000_0002];

struct Two {
    ends: [End; 2],
    now: u64,
    seen: Vec<Vec<u8>>,
}

fn outlook() -> Outlook {
    Outlook { registers: Registers { crc: true, ..Registers::default() }, native: None, data_dscp: 8 }
}

impl Two {
    fn new(config: Config) -> Self {
        let config = Arc::new(config);
        let mut ends = [0, 1].map(|n| End::new(config.clone(), outlook(), MAC[n], &OWN[n..=n], 1 << 16));
        for n in 0..2 {
            ends[n].neighbour(OWN[1 - n], MAC[1 - n]);
        }
        Self { ends, now: 0, seen: Vec::new() }
    }

    fn write(&mut self, from: usize, mode: Mode, at: u64, data: &[u8]) {
        let description = Description { fetch: false, job: 1, pid: 2, index: 3, offset: at, key: 5, header_data: at + 1 };
        assert!(self.ends[from].post(OWN[from], OWN[1 - from], mode, description, data.to_vec()));
    }

    /// Exchanges frames until there are none, without time passing.
    fn exchange(&mut self) {
        loop {
            let mut quiet = true;
            for n in 0..2 {
                self.ends[n].tick(self.now);
                while let Some(frame) = self.ends[n].transmit(self.now) {
                    quiet = false;
                    self.ends[1 - n].receive(&frame, self.now);
                    self.seen.push(frame);
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// Lets time pass until both ends rest.
    fn rest(&mut self) {
        while let Some(next) = self.ends.iter().filter_map(End::deadline).min() {
            self.now = self.now.max(next);
            self.exchange();
        }
        assert!(self.ends.iter().all(|end| end.pds.at_rest() && end.target.at_rest() && end.under_way() == 0));
    }
}

/// The first slice: one RUD WRITE between two ends, and its acknowledge.
#[test]
fn one_write_is_acknowledged() {
    let mut two = Two::new(Config { reap: 100_000, ..Config::default() });
    two.write(0, Mode::Rud, 100, b"sixteen bytes of");
    two.exchange();
    assert_eq!(two.seen.len(), 2);
    let [request, answer] = [0, 1].map(|n| parse(&two.seen[n], &outlook().registers).unwrap());
    let (Head::Request(head, None), Ses::First(ses, _)) = (request.pds, request.ses) else { panic!("{request:?}") };
    assert_eq!((head.kind(), head.syn(), head.ar(), head.retx(), head.dpdcid()), (PdsType::RudReq as u8, true, true, false, 0));
    assert_eq!((ses.request_length(), ses.offset(), ses.som(), ses.eom()), (16, 100, true, true));
    let (Head::Ack(ack, Some(cc)), Ses::Response(response)) = (answer.pds, answer.ses) else { panic!("{answer:?}") };
    assert_eq!((ack.cack(), ack.psn_offset(), ack.dpdcid()), (head.psn(), 0, head.spdcid()));
    assert_eq!((cc.mpr(), response.code(), response.message_id(), response.modified_length()), (4, ReturnCode::Ok as u8, ses.message_id(), 16));
    assert_eq!(answer.carriage.entropy, request.carriage.entropy);
    assert_eq!(two.ends[0].completions(), [Completion { token: 101, status: Ok(ReturnCode::Ok as u8), data: None }]);
    assert_eq!(two.ends[1].target.arrived(), [Arrived { header_data: 101, bytes: 16 }]);
    assert_eq!(&two.ends[1].target.memory[99..117], b"\0sixteen bytes of\0");
    two.rest();
    assert_eq!(two.ends[0].counters[&Counter::Closed], 1);
    assert_eq!(two.ends[1].counters[&Counter::Lingered], 1);
}

/// A packet that opens its PDC waits for nothing, and neither do those behind it.
#[test]
fn sixteen_packets_leave_before_the_first_answer() {
    for mode in [Mode::Rud, Mode::Rod] {
        let mut two = Two::new(Config { mtu: 1024, ..Config::default() });
        let data: Vec<u8> = (0..16 * 1024).map(|n| ((n * 7) >> 3) as u8).collect();
        two.write(0, mode, 0, &data);
        let frames: Vec<_> = std::iter::from_fn(|| two.ends[0].transmit(0)).collect();
        assert_eq!(frames.len(), 16);
        for frame in &frames {
            two.ends[1].receive(frame, 0);
        }
        two.exchange();
        assert!(two.ends[1].target.memory[..data.len()] == data);
        assert_eq!(two.ends[0].completions().len(), 1);
        two.rest();
    }
}

#[test]
fn errors_and_data_of_the_target_reach_the_program() {
    let mut two = Two::new(Config::default());
    two.write(0, Mode::Rud, (1 << 16) - 3, b"beyond the end");
    let description = Description { fetch: true, job: 1, pid: 2, index: 3, offset: 64, key: 5, header_data: 7 };
    for _ in 0..2 {
        assert!(two.ends[0].post(OWN[0], OWN[1], Mode::Rud, description, 40u64.to_be_bytes().to_vec()));
        two.exchange();
    }
    let done = two.ends[0].completions();
    assert_eq!(done[0].status, Ok(ReturnCode::BadAddress as u8));
    assert_eq!((done[1].data, done[2].data), (Some(0), Some(40)));
    assert_eq!(two.ends[1].target.memory[64], 80);
    two.rest();
    assert!(two.ends[1].counters[&Counter::KeptCleared] > 0);
}

#[test]
fn strangers_and_what_is_not_there_are_counted() {
    let mut two = Two::new(Config::default());
    two.write(0, Mode::Rud, 0, b"x");
    let frame = two.ends[0].transmit(0).unwrap();
    let mut wrong = frame.clone();
    let end = wrong.len() - 1;
    wrong[end] ^= 1;
    two.ends[1].receive(&wrong, 0);
    assert_eq!(two.ends[1].bad[&Bad::Crc], 1);
    two.ends[0].receive(&frame, 0);
    assert_eq!(two.ends[0].strangers, 1);
    two.ends[1].receive(&frame, 0);
    assert_eq!(two.ends[1].pds.pdcs().count(), 1);
}
