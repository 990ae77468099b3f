//! Frames to the MAC and back through both blocks.

use super::*;
use crate::tb::Clocks;

const CLOCKS: [(u64, u64); 3] = [(4000, 3103), (3103, 4000), (4000, 9000)];

#[test]
fn short_frames_are_padded_with_zeros_and_others_pass() {
    for (core, mac) in CLOCKS {
        let mut tb = Clocks::new("mac_tx_w512", MacTx::<512, 64>::default(), &[("clock", Some("reset"), core), ("mac_clock", Some("mac_reset"), mac)]);
        let (s, m) = (tb.axis_source(0, "s", 20), tb.axis_sink(1, "m", 30));
        let lengths = (1..70).chain([127, 128, 129, 700, 1500, 4200, 9000]);
        let frames: Vec<Vec<u8>> = lengths.map(|len| tb.rng().bytes(len)).collect();
        frames.iter().for_each(|f| s.push(f));
        for frame in frames {
            let mut got = m.pop();
            while got.is_none() {
                tb.step();
                assert!(tb.edges(0) < 100_000);
                got = m.pop();
            }
            let mut want = frame;
            want.resize(want.len().max(60), 0);
            assert_eq!(got, Some(want));
        }
    }
}

#[test]
fn received_frames_come_whole_with_their_error_flag_or_are_counted() {
    for (core, mac) in CLOCKS {
        let mut tb = Clocks::new("mac_rx_w512", MacRx::<512, 64>::default(), &[("mac_clock", Some("mac_reset"), mac), ("clock", Some("reset"), core)]);
        tb.run(1, 20);
        let s = tb.source_of(0, "s", &["data", "keep", "last", "/s_err"], 5);
        let m = tb.sink_of(1, "m", &["data", "keep", "last", "/m_err"], 60);
        let sizes: Vec<u64> = (0..400).map(|_| tb.rng().range(1, 24)).collect();
        // Every beat carries the frame's number.
        for (n, beats) in sizes.iter().enumerate() {
            for beat in 1..=*beats {
                let mut data = [n as u32; 16];
                data[1] = beat as u32;
                s.push_fields(&[&data, &[!0, !0], &[u32::from(beat == *beats)], &[n as u32 % 3 / 2]]);
            }
        }
        let mut dropped = 0;
        let mut rest = 20_000;
        while rest > 0 {
            rest -= u64::from(s.pending() == 0);
            assert_eq!(tb.get("s$ready"), 1);
            if tb.step() == 1 {
                dropped += tb.get("dropped") as usize;
            }
        }
        let (mut got, mut beats) = (0, 0);
        let mut previous = None;
        while let Some(fields) = m.pop_fields() {
            let n = fields[0][0];
            beats += 1;
            assert_eq!(u64::from(fields[0][1]), beats, "frame {n} misses a beat");
            assert!(previous.is_none_or(|p| p < n));
            if fields[2][0] == 1 {
                assert_eq!((beats, fields[3][0]), (sizes[n as usize], n % 3 / 2));
                (got, beats, previous) = (got + 1, 0, Some(n));
            }
        }
        assert_eq!((beats, got + dropped), (0, sizes.len()));
        assert!(got > 50 && (dropped > 0 || mac > core), "{got} {dropped}");
    }
}
