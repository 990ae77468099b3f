//! How much a card `uet` takes before it says no: of frames, PDCs, messages and kept responses. What is lost of a pool is missing here, whatever it was lost by.
use super::forge::{sum, Place};
use super::{address, grown, number, Lane, Way};
use crate::pair::Error;
use ferric_abi::uet::codes::{NackCode, NextHeader, PdsType, ReturnCode, SesOpcode};
use ferric_abi::uet::{PdsRequest, PdsSyn, SesFirst};
use ferric_driver::types::Mac;
use ferric_driver::{MemoryRegion, UetWrite};
use ferric_uet::wire::{build, parse, Addresses, Carriage, Message, Operands, Pds, Ses};
use std::net::IpAddr;

/// Peers of the probe, and the first one's number.
const PEERS: usize = 6;
const FIRST: u16 = 8;
/// Frames that come without a gap: more than the card can keep.
const BURST: usize = 900;
/// Requests whose answers have to be kept, PDCs of each of three peers, WRITEs to one that is silent: more than there are places for.
const KEPT: u32 = 100;
const PDCS: u16 = 5;
const POSTS: u32 = 80;
/// Cycles from one frame to the next, and until all has been done.
const PACE: u64 = 300;
const DONE: u64 = 20_000;
/// Cycles in which PDCs are opened, and none is given up.
const OPENED: u64 = 4000;
/// Ticks in which all places have rested.
const RESTED: u64 = 3000;

/// What was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pools {
    /// Frames of a burst.
    pub frames: u64,
    /// Responses kept.
    pub kept: u64,
    /// PDCs of targets.
    pub targets: u64,
    /// PDCs of initiators.
    pub initiators: u64,
    /// Messages, those that wait for a place among them.
    pub messages: u64,
}

fn way(n: usize) -> Way {
    Way { own: IpAddr::from([10, 8, n as u8, 1]), other: IpAddr::from([10, 8, n as u8, 2]), mac: Mac([2, 0, 0, 0, 8, n as u8 + 2]) }
}

/// A packet of 32 bytes with SYN, `n` behind Start_PSN, of the PDC that the peer calls `id`.
pub fn first(lane: &Lane, way: &Way, id: u16, n: u32, (at, key): Place) -> Vec<u8> {
    let start = 0x0100_0000 + (u32::from(id) << 8);
    let word = u16::from_be_bytes(PdsSyn::default().with_psn_offset(n as u16).0);
    let pds = PdsRequest::default().with_kind(PdsType::RudReq as u8).with_next(NextHeader::Standard as u8).with_syn(true).with_ar(true).with_psn(start + n).with_spdcid(id).with_dpdcid(word);
    let pds = pds.with_clear_offset((n as u16 + 1).wrapping_neg());
    let payload = [0x33; 32];
    let ses =
        SesFirst::default().with_opcode(SesOpcode::Write as u8).with_som(true).with_eom(true).with_message_id(n as u16 + 1).with_offset(at).with_key(key).with_request_length(payload.len() as u32);
    let addresses = match (way.other, way.own) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Addresses::V4(source.into(), destination.into()),
        (source, destination) => Addresses::V6(address(source), address(destination)),
    };
    let carriage = Carriage { dst_mac: number(lane.mac), src_mac: number(way.mac), tag: None, addresses, dscp: 8, ecn: 2, hops: 64, native: None, entropy: 0xc000 };
    build(&Message { carriage, pds: Pds::Request(pds, None), ses: Ses::First(ses, Operands::default()), payload: &payload }, &super::judge::registers())
}

fn run(lane: &Lane, cycles: u64) -> Vec<Vec<u8>> {
    (0..cycles).flat_map(|_| lane.step()).collect()
}

fn rest(lane: &Lane) {
    let until = lane.ticks() + RESTED;
    while lane.ticks() < until {
        lane.step();
    }
}

/// Fills all pools of a card where nothing is under way, one after another, and leaves them empty. `region`: of a domain of its own, which peers may write to.
pub fn probe(lane: &mut Lane, region: &MemoryRegion) -> Result<Pools, Error> {
    let place = (region.addr(), u64::from(region.rkey()));
    let pd = lane.ctx.alloc_pd()?;
    // Frames of nobody, as fast as they come.
    let mut stranger = first(lane, &way(99), 1, 0, place);
    sum(&mut stranger);
    let before = lane.counters()?;
    (0..BURST).for_each(|_| lane.receive(stranger.clone()));
    run(lane, DONE * 4);
    let frames = grown(&before, &lane.counters()?)["uet.uet_stranger"];
    // Responses that are kept: the keys are of another domain.
    lane.befriend(FIRST, &way(0), &pd)?;
    let mut answers = Vec::new();
    for n in 0..KEPT {
        lane.receive(first(lane, &way(0), 7, n, place));
        answers.extend(run(lane, PACE));
    }
    answers.extend(run(lane, DONE));
    let (mut kept, mut refused) = (0, 0);
    for parsed in answers.iter().filter_map(|frame| parse(frame, &super::judge::registers()).ok()) {
        kept += u64::from(matches!(parsed.ses, Ses::Response(head) if head.code() == ReturnCode::BadKey as u8 && !matches!(parsed.pds, Pds::Ack(ack, _) if ack.retx())));
        refused += u64::from(matches!(parsed.pds, Pds::Nack(head) if head.code() == NackCode::NoGuaranteed as u8));
    }
    lane.ctx.clear_uet_peer(FIRST)?;
    rest(lane);
    if kept + refused < u64::from(KEPT) {
        return Err(Error::Stuck(format!("of {KEPT} requests {kept} were answered and {refused} refused")));
    }
    // Targets.
    for n in 0..3 {
        lane.befriend(FIRST + n as u16, &way(n), &lane.pd)?;
    }
    let before = lane.counters()?;
    for id in 1..=PDCS {
        for n in 0..3 {
            lane.receive(first(lane, &way(n), id, 0, place));
            run(lane, 2 * PACE);
        }
    }
    run(lane, DONE);
    let targets = grown(&before, &lane.counters()?)["uet.uet_pdc_accepted"];
    (0..3).try_for_each(|n| lane.ctx.clear_uet_peer(FIRST + n))?;
    rest(lane);
    // Messages, and initiators.
    let write = |peer: u16, ordered: bool| UetWrite { peer, ordered, length: 64, addr: region.addr(), lkey: region.lkey(), raddr: 0, rkey: 0, tag: 0 };
    (0..PEERS).try_for_each(|n| lane.befriend(FIRST + n as u16, &way(n), &lane.pd))?;
    let before = lane.counters()?;
    (0..POSTS).for_each(|_| lane.ctx.uet_write(&write(FIRST, false)));
    run(lane, DONE);
    let messages = u64::from(POSTS) - grown(&before, &lane.counters()?)["uet.uet_posts_lost"];
    lane.ctx.clear_uet_peer(FIRST)?;
    rest(lane);
    lane.befriend(FIRST, &way(0), &lane.pd)?;
    let before = lane.counters()?;
    for n in 0..PEERS as u16 {
        [false, true].iter().for_each(|ordered| lane.ctx.uet_write(&write(FIRST + n, *ordered)));
    }
    run(lane, OPENED);
    let initiators = grown(&before, &lane.counters()?)["uet.uet_pdc_opened"];
    (0..PEERS as u16).try_for_each(|n| lane.ctx.clear_uet_peer(FIRST + n))?;
    rest(lane);
    while lane.ends.poll().is_some() {}
    Ok(Pools { frames, kept, targets, initiators, messages })
}
