//! Engines that make headers of up to 256 bytes, side by side: the bench plays them and the MAC.

use super::bench::words;
use crate::assembly::Assembly;
use crate::msg::{HdrDone, InlineWrite, SlotGrant, SlotReq, SlotSeal};
use crate::net::icrc::model as icrc;
use crate::net::share::slots::SlotShare;
use crate::net::tx::{for_headers, MOST_HEADER};
use crate::stream::AxisSlice;
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use ferric_abi::wire::ICRC_BYTES;
use rust_hdl::prelude::*;
use std::collections::VecDeque;

/// The ports of an engine, each with its number for the `*`, and what they stand for in a card.
pub(crate) const PORTS: [(&str, &str); 6] = [
    ("slot*", "slot_share.s_slot[*]"),
    ("grant*", "slot_share.m_grant[*]"),
    ("inline*", "slot_share.s_inline[*]"),
    ("seal*", "slot_share.s_seal[*]"),
    ("row*", "egress.s_row[*]"),
    ("done*", "egress.s_hdr[*]"),
];

/// Bytes of payload that a frame has at most.
const LONGEST: u64 = 300;

/// Numbers that a row can have.
const ROW_NUMBERS: u64 = 32;

/// So many slots are given back for so long only that nobody else has them before a row of now has come.
const RECENT: usize = 8;

/// Bytes of a packet that the ICRC masks at most, those of its headers: no shorter frame has one.
const MASKED: usize = 78;

/// The ICRC of any bytes: those of `frame` but for its last four, masked as in a RoCEv2 packet of this kind.
fn check(frame: &[u8], vlan: bool, ipv6: bool) -> [u8; ICRC_BYTES] {
    let masked = |(at, byte): (usize, &u8)| {
        let (zeros, ones) = icrc::masks(at, vlan, ipv6);
        (byte | ones) & !zeros
    };
    let bytes: Vec<u8> = frame[..frame.len() - ICRC_BYTES].iter().enumerate().map(masked).collect();
    (!icrc::crc(icrc::start(vlan), &bytes)).to_le_bytes()
}

/// A frame that has been asked for.
struct Frame {
    header: Vec<u8>,
    payload: Vec<u8>,
    /// As the wire shall see it; `None`: it comes to nothing.
    wire: Option<Vec<u8>>,
    req: Vec<u32>,
    /// `HdrDone` without its slot; `None`: the frame is raw.
    done: Option<Vec<(&'static str, u128)>>,
    /// The header is not written.
    no_path: bool,
    abort: bool,
}

impl Frame {
    /// `alone`: a header and nothing else.
    fn random(rng: &mut Rng, alone: bool) -> Self {
        let raw = !alone && rng.percent(10);
        let (vlan, ipv6) = (rng.percent(50), rng.percent(50));
        let length = match rng.below(4) {
            _ if raw => 0,
            0 => MOST_HEADER as u64 - rng.below(10),
            1 => rng.range(1, 20),
            _ => rng.range(1, MOST_HEADER as u64),
        } as usize;
        let pay_len = match raw {
            true => rng.range(1, LONGEST),
            false if alone || rng.percent(30) => 0,
            false => rng.below(LONGEST),
        } as usize;
        let plain = length + pay_len < MASKED || rng.percent(40);
        let (header, payload) = (rng.bytes(length), rng.bytes(pay_len));
        let mut wire = [&header[..], &payload].concat();
        if !plain && !raw {
            wire.extend([0; ICRC_BYTES]);
            let crc = check(&wire, vlan, ipv6);
            let end = wire.len() - ICRC_BYTES;
            wire[end..].copy_from_slice(&crc);
        }
        let (no_path, wrong, abort) = (rng.percent(4), rng.percent(4), rng.percent(4));
        let req = [("frame_len", wire.len() as u128), ("hdr_len", length as u128), ("pay_len", pay_len as u128), ("raw", raw.into())];
        let said = if wrong { length ^ MOST_HEADER } else { length };
        Frame {
            req: Fields::of::<SlotReq>().pack(&req),
            done: (!raw).then(|| vec![("len", said as u128), ("ipv6", ipv6.into()), ("vlan", vlan.into()), ("abort", no_path.into()), ("plain", plain.into())]),
            wire: (!abort && (raw || !no_path && !wrong)).then_some(wire),
            header,
            payload,
            no_path,
            abort,
        }
    }

    /// It leaves, with a header of more than half of the longest.
    fn is_long(&self) -> bool {
        self.header.len() > MOST_HEADER / 2 && self.wire.is_some()
    }
}

/// What an engine has of the port of bypass frames.
struct Bypass {
    slot: Source,
    grant: Sink,
    seal: Source,
    asked: VecDeque<Frame>,
    expected: VecDeque<Vec<u8>>,
}

/// One engine.
struct Maker {
    slot: Source,
    grant: Sink,
    inline: Source,
    seal: Source,
    row: Source,
    done: Source,
    asked: VecDeque<Frame>,
    /// `HdrDone` of the oldest frames, each behind so many rows.
    dones: VecDeque<(u64, Vec<u32>)>,
    seals: VecDeque<(u64, Vec<u32>)>,
    rows: u64,
    inlines: u64,
    expected: VecDeque<Vec<u8>>,
    /// The slots that it got last, [`RECENT`] at most.
    recent: VecDeque<u128>,
    bypass: Option<Bypass>,
}

impl Maker {
    fn new(tb: &mut Tb, number: usize, stall: u32) -> Self {
        let name = |port: usize| PORTS[port].0.replace('*', &number.to_string());
        let bypass = (number == 0 && tb.model().try_port("bypass_slot$data").is_some()).then(|| Bypass {
            slot: tb.source("bypass_slot", stall),
            grant: tb.sink("bypass_grant", stall),
            seal: tb.source("bypass_seal", stall),
            asked: VecDeque::new(),
            expected: VecDeque::new(),
        });
        Maker {
            slot: tb.source(&name(0), stall),
            grant: tb.sink(&name(1), stall),
            inline: tb.source(&name(2), stall),
            seal: tb.source(&name(3), stall),
            row: tb.source_of(&name(4), &["slot", "row", "data"], stall),
            done: tb.source(&name(5), stall),
            asked: VecDeque::new(),
            dones: VecDeque::new(),
            seals: VecDeque::new(),
            rows: 0,
            inlines: 0,
            expected: VecDeque::new(),
            recent: VecDeque::new(),
            bypass,
        }
    }

    fn write_row(&mut self, slot: u128, at: usize, bytes: &[u8]) {
        self.row.push_fields(&[&[slot as u32], &[at as u32], &words(bytes)]);
        self.rows += 1;
    }

    /// A slot has come: its header.
    fn write_header(&mut self, rng: &mut Rng, k: usize, slot: u128, frame: &mut Frame) {
        if frame.done.is_some() && !frame.no_path {
            let rows = MOST_HEADER / k;
            if rows < ROW_NUMBERS as usize && rng.percent(20) {
                // A row beyond the header's: wherever it lands, it is in this slot.
                let at = rng.range(rows as u64, ROW_NUMBERS - 1) as usize;
                self.write_row(slot, at, &rng.bytes(k));
            }
            for (at, row) in frame.header.chunks(k).enumerate() {
                let noise = rng.bytes(k - row.len());
                self.write_row(slot, at, &[row, &noise].concat());
            }
        }
        if let Some(mut done) = frame.done.take() {
            done.push(("slot", slot));
            self.dones.push_back((self.rows, Fields::of::<HdrDone>().pack(&done)));
        }
    }

    /// A slot has come: everything that fills it.
    fn granted(&mut self, rng: &mut Rng, k: usize, slot: u128, base: u128) {
        let mut frame = self.asked.pop_front().expect("a grant without request");
        self.recent.push_back(slot);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        self.write_header(rng, k, slot, &mut frame);
        for (n, piece) in frame.payload.chunks(32).enumerate() {
            self.inline.push(inline_write(base as usize + frame.header.len() + 32 * n, piece));
            self.inlines += 1;
        }
        self.seals.push_back((self.inlines, Fields::of::<SlotSeal>().pack(&[("slot", slot), ("abort", frame.abort.into())])));
        self.expected.extend(frame.wire);
    }

    /// The same of a frame that overtakes.
    fn granted_bypass(&mut self, rng: &mut Rng, k: usize, slot: u128) {
        let Some(bypass) = &mut self.bypass else { return };
        let mut frame = bypass.asked.pop_front().expect("a grant without request");
        bypass.seal.push(Fields::of::<SlotSeal>().pack(&[("slot", slot), ("abort", frame.abort.into())]));
        bypass.expected.extend(frame.wire.take());
        self.write_header(rng, k, slot, &mut frame);
    }

    /// Writes to a slot that is another engine's, and calls its header complete.
    fn disturb(&mut self, rng: &mut Rng, k: usize, slot: u128) {
        (0..rng.range(1, 3)).for_each(|_| {
            let row = rng.below(ROW_NUMBERS) as usize;
            self.write_row(slot, row, &rng.bytes(k));
        });
        self.done.push(Fields::of::<HdrDone>().pack(&[("slot", slot), ("len", rng.range(1, 256).into()), ("plain", rng.below(2).into()), ("abort", rng.below(2).into())]));
    }

    fn step(&mut self, tb: &mut Tb, k: usize) {
        let layout = Fields::of::<SlotGrant>();
        while let Some(message) = self.grant.pop() {
            let (slot, base) = (layout.get(&message, "slot"), layout.get(&message, "base"));
            self.granted(tb.rng(), k, slot, base);
        }
        while let Some(message) = self.bypass.as_ref().and_then(|bypass| bypass.grant.pop()) {
            self.granted_bypass(tb.rng(), k, layout.get(&message, "slot"));
        }
        // Each behind what it speaks for.
        if self.dones.front().is_some_and(|(rows, _)| *rows <= self.row.taken()) && tb.rng().percent(60) {
            self.done.push(self.dones.pop_front().expect("there is one").1);
        }
        if self.seals.front().is_some_and(|(inlines, _)| *inlines <= self.inline.taken()) && tb.rng().percent(60) {
            self.seal.push(self.seals.pop_front().expect("there is one").1);
        }
    }

    fn idle(&self) -> bool {
        let overtaken = self.bypass.iter().all(|bypass| bypass.asked.is_empty() && bypass.expected.is_empty());
        overtaken && self.asked.is_empty() && self.dones.is_empty() && self.seals.is_empty() && self.expected.is_empty()
    }

    /// Frames that may be the next on the wire.
    fn next(&mut self) -> impl Iterator<Item = &mut VecDeque<Vec<u8>>> {
        [&mut self.expected].into_iter().chain(self.bypass.as_mut().map(|bypass| &mut bypass.expected))
    }
}

/// `piece`, at most 32 bytes, to byte `dst` of the assembly buffer.
pub(super) fn inline_write(dst: usize, piece: &[u8]) -> Vec<u32> {
    let layout = Fields::of::<InlineWrite>();
    let mut data = piece.to_vec();
    data.resize(32, 0xee);
    let data: Vec<u32> = data.chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))).collect();
    let mut words = layout.pack(&[("dst", dst as u128), ("len", piece.len() as u128)]);
    layout.set_words(&mut words, "data", &data);
    words
}

/// Lets `frames` frames of two engines, at the ports [`PORTS`] of `tb`, go out at its port `tx`. Each has to come as it was made, those of one engine in their order,
/// though the engines write to each other's slots. The first engine also sends bypass frames, if `tb` has ports for these.
pub(crate) fn play(mut tb: Tb, k: usize, stalls: [u32; 2], frames: usize) {
    tb.allow_combinational();
    let mut makers = [0, 1].map(|number| Maker::new(&mut tb, number, stalls[number]));
    let mac = tb.axis_sink("tx", stalls[0]);
    let (mut left, mut sent, mut long) = (frames, 0, 0);
    let start = tb.cycles();
    while left > 0 || makers.iter().any(|m| !m.idle()) {
        assert!(tb.cycles() - start < 2000 + frames as u64 * 20_000 / k as u64, "stuck: {left} frames left, {sent} sent");
        for maker in &mut makers {
            if left > 0 && maker.asked.len() < 3 && maker.expected.len() < 20 && tb.rng().percent(50) {
                let frame = Frame::random(tb.rng(), false);
                long += usize::from(frame.is_long());
                maker.slot.push(&frame.req[..]);
                maker.asked.push_back(frame);
                left -= 1;
            }
            if let Some(bypass) = maker.bypass.as_mut().filter(|bypass| left > 0 && bypass.asked.is_empty() && bypass.expected.len() < 5) {
                if tb.rng().percent(20) {
                    let frame = Frame::random(tb.rng(), true);
                    long += usize::from(frame.is_long());
                    bypass.slot.push(&frame.req[..]);
                    bypass.asked.push_back(frame);
                    left -= 1;
                }
            }
            maker.step(&mut tb, k);
        }
        let one = tb.rng().below(2) as usize;
        let other = &makers[1 - one].recent;
        // It comes before the slot has been given back and is the engine's own.
        if !other.is_empty() && makers[one].row.pending() + makers[one].done.pending() == 0 && tb.rng().percent(20) {
            let slot = other[tb.rng().below(other.len() as u64) as usize];
            makers[one].disturb(tb.rng(), k, slot);
        }
        tb.cycle();
        while let Some(frame) = mac.pop() {
            let of = makers.iter_mut().flat_map(Maker::next).find(|frames| frames.front() == Some(&frame));
            of.unwrap_or_else(|| panic!("nobody's next frame: {frame:02x?}")).pop_front();
            sent += 1;
        }
    }
    tb.run(200);
    assert!(mac.pop().is_none() && sent > frames / 2 && long > frames / 4, "{sent} of {frames} frames, {long} with long headers");
}

/// The egress for two engines that make headers, the first of which sends bypass frames, too, the share of its slots, and a place for policy behind it.
pub(crate) fn engines<const W: usize, const K: usize, const LK: usize, const LS: usize>() -> impl Block {
    let mut a = Assembly::default();
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset");
    a.instance("egress", || for_headers::<W, K, LK, LS>(&[MOST_HEADER, 64], [0, 1]));
    a.instance("slot_share", || SlotShare::<2>::new(&[1, 0]));
    a.instance("policy", AxisSlice::<W, K>::default);
    a.join("egress.m", "policy.s");
    a.expose("tx", "policy.m");
    for (share, egress) in [("m_slot", "s_slot[0]"), ("s_grant", "m_slot[0]"), ("m_inline", "s_inline"), ("m_seal", "s_seal[0]")] {
        a.join(&format!("slot_share.{share}"), &format!("egress.{egress}"));
    }
    for n in ["0", "1"] {
        PORTS[..4].iter().for_each(|(port, inner)| a.expose(&port.replace('*', n), &inner.replace('*', n)));
    }
    // The engines that make headers need not have the numbers of those that send frames.
    for (n, number) in [("0", "1"), ("1", "0")] {
        PORTS[4..].iter().for_each(|(port, inner)| a.expose(&port.replace('*', n), &inner.replace('*', number)));
    }
    ["s_pay_done", "asm_we", "asm_row1", "asm_addr", "asm_data", "m_done", "m_reply_done", "stat", "look", "round", "begins", "begins_function", "hold", "shallow"]
        .iter()
        .for_each(|port| a.optional(&format!("egress.{port}")));
    for (port, inner) in [("bypass_slot", "s_slot[1]"), ("bypass_grant", "m_slot[1]"), ("bypass_seal", "s_seal[1]")] {
        a.expose(port, &format!("egress.{inner}"));
    }
    a.assemble().unwrap_or_else(|faults| panic!("{faults:#?}"))
}

#[test]
fn headers_of_two_engines_leave_as_they_were_made() {
    for (seed, stalls) in [(21, [0, 0]), (22, [0, 60]), (23, [40, 20])] {
        play(Tb::with_seed("makers64", engines::<64, 8, 3, 7>(), seed), 8, stalls, 300);
        play(Tb::with_seed("makers512", engines::<512, 64, 6, 8>(), seed), 64, stalls, 500);
    }
}
