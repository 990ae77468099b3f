//! Frames with new fields, byte by byte as the model's edits make them.
use super::{Edit, Merge};
use crate::records::Verdict as VerdictStruct;
use crate::switch::key::tests::any_frame;
use crate::switch::key::Old;
use crate::switch::testing::{mac, old, words};
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::switch::table::rewrites;
use ferric_abi::switch::{tag_op, Verdict};
use ferric_model::switch::edit::edited;
use ferric_model::switch::layers::parse;
use std::collections::BTreeMap;

const LG: usize = 6;
const LINES: u64 = rewrites(LG as u32) as u64;

/// What a card may be told to do with a frame that goes to a function.
fn any_verdict(rng: &mut Rng) -> Verdict {
    let op = [tag_op::NONE, tag_op::SET][rng.below(2) as usize];
    let rewrite = if rng.percent(50) { rng.range(1, LINES - 1) as u16 } else { 0 };
    let verdict = Verdict::default().with_rewrite(rewrite).with_tag_op(op).with_tag(rng.next_u32() as u16);
    verdict.with_dec_ttl(rng.percent(50)).with_write_dscp(rng.percent(50)).with_dscp(rng.below(64) as u8)
}

/// A frame that the parser understands. Of IPv4 some have checksums that come out as either zero, right or wrong, and DSCPs that do not change.
fn frame(rng: &mut Rng, verdict: &Verdict) -> Vec<u8> {
    loop {
        let mut frame = any_frame(rng);
        let Ok(layers) = parse(&frame) else { continue };
        let Some(ip) = layers.ip() else { return frame };
        // A time to live that is used up never gets here.
        if verdict.dec_ttl() && ip.ttl < 2 {
            continue;
        }
        if !ip.v6 {
            let at = layers.l3;
            match rng.below(4) {
                0 => frame[at + 1] = verdict.dscp() << 2 | frame[at + 1] & 3,
                1 => {
                    let near = [0u16, 0xffff, 1, 0xfffe, 0xfeff, 0xff00, 0x100][rng.below(7) as usize];
                    let near = near.wrapping_add(rng.below(3) as u16).wrapping_sub(u16::from(frame[at + 1]) & 3);
                    frame[at + 10..at + 12].copy_from_slice(&near.to_be_bytes());
                }
                _ => {}
            }
        }
        return frame;
    }
}

/// Bits of the last word that the message has.
fn mask(fields: &Fields, mut words: Vec<u32>) -> Vec<u32> {
    if let Some(last) = words.last_mut().filter(|_| fields.width() % 32 != 0) {
        *last &= (1 << (fields.width() % 32)) - 1;
    }
    words
}

fn frames<const W: usize, const K: usize>(count: usize) {
    let mut edit = Tb::new("edit", Edit::<LG>::default());
    let mut merge = Tb::new(&format!("merge{W}"), Merge::<W>::default());
    let (verdicts, olds) = (Fields::of::<VerdictStruct>(), Fields::of::<Old>());
    let mut macs = vec![(0, 0); LINES as usize];
    for (line, macs) in macs.iter_mut().enumerate() {
        *macs = (edit.rng().next_u64() >> 16, edit.rng().next_u64() >> 16);
        edit.set("write", 1);
        edit.set("write_line", line as u64);
        edit.set_wide("write_macs", &words(&[mac(macs.0), mac(macs.1)].concat())[..]);
        edit.cycle();
    }
    edit.set("write", 0);
    let mut seen: BTreeMap<_, u64> = BTreeMap::new();
    for _ in 0..count {
        let verdict = any_verdict(edit.rng());
        let frame = frame(edit.rng(), &verdict);
        let layers = parse(&frame).expect("it was understood");
        let mut bits = verdicts.zero();
        bits.copy_from_slice(&words(&verdict.0)[..]);
        let mut fields = old(&layers, &frame);
        if layers.ip().is_none_or(|ip| ip.v6) {
            fields.push(("checksum", edit.rng().below(0x1_0000).into()));
        }
        // What is there in other cycles does not count.
        edit.set_wide("old", &olds.pack(&fields)[..]);
        edit.cycle();
        let noise: Vec<u32> = olds.zero().iter().map(|_| edit.rng().next_u32()).collect();
        edit.set_wide("old", &mask(&olds, noise)[..]);
        edit.cycle();
        edit.set_wide("verdict", &bits[..]);
        edit.cycle();
        merge.set_wide("patch", &edit.get_wide("patch")[..]);
        let want = edited(&frame, &layers, &verdict, &macs).expect("the line is there");
        let mut got = Vec::new();
        for (n, bytes) in frame.chunks(K).enumerate() {
            // Cycles without a beat in between
            while merge.rng().percent(20) {
                merge.set("valid", 0);
                let last = merge.rng().below(2);
                merge.set("last", last);
                merge.cycle();
            }
            let mut data = bytes.to_vec();
            data.resize(K, 0);
            merge.set("valid", 1);
            merge.set("last", ((n + 1) * K >= frame.len()).into());
            merge.set_wide("data", &words(&data)[..]);
            merge.begin();
            got.extend(merge.get_wide("y").iter().flat_map(|w| w.to_le_bytes()).take(bytes.len()));
            merge.end();
        }
        assert_eq!(got, want, "{verdict:?} of {frame:02x?}");
        if want != frame {
            let class = layers.ip().map(|ip| (ip.v6, verdict.write_dscp(), verdict.dec_ttl()));
            *seen.entry((layers.l3, class)).or_default() += 1;
        }
    }
    // Behind no, one and two tags: no IP; IPv4 and IPv6 with each change.
    assert!(seen.len() == 3 * (1 + 2 * 4) && seen.values().all(|n| *n > 2), "{seen:?}");
}

#[test]
fn frames_get_their_new_fields_w512() {
    frames::<512, 64>(4000);
}

#[test]
fn frames_get_their_new_fields_w64() {
    frames::<64, 8>(4000);
}
