//! What commands write into the tables of the match stage: the driver makes them, the gateware (`switch/matching`) reads them. A command names a table, a line of it, of the exact table a
//! way, too, and brings the whole line in its 896-bit record, from the lowest bit on. `CLEAR` says that the line does not count any more.

use super::{bind, Action, FlowCommand, FlowKey};
use crate::context::SenderCtx;

/// [`FlowCommand::opcode`]: the line is written, and counts from then on.
pub const WRITE: u8 = 1;
/// [`FlowCommand::opcode`]: the line does not count any more.
pub const CLEAR: u8 = 2;

/// [`FlowCommand::opcode`]: the line is read, of every table but [`ROW`] and [`REWRITE`], into line `FLOW_ANSWER` of `space::FLOW`: see [`standing`].
pub const READ: u8 = 3;

/// [`FlowCommand::table`]: masks over the key. Lines: see [`profile_line`].
pub const PROFILE: u8 = 1;
/// [`FlowCommand::table`]: exact keys, four ways. The record is a key under its profile's mask; action and generation stand in the command.
pub const EXACT: u8 = 2;
/// [`FlowCommand::table`]: actions. The record is an [`Action`].
pub const ACTION: u8 = 3;

/// [`FlowCommand::table`]: rows of wildcard rules. Lines: the group, and in the lower five bits the row. The record is the row ([`super::ternary::row`]).
pub const ROW: u8 = 4;
/// [`FlowCommand::table`]: which wildcard rules count. Lines: [`rule_line`]. Action and generation stand in the command, there is no record. A rule's rows are written while it does not count.
pub const RULE: u8 = 5;

/// [`FlowCommand::table`]: frames, bytes and last use of the actions that count, under their lines' numbers. Read as a [`super::FlowRecord`]; [`CLEAR`] reads it and sets it to zero. Nobody
/// writes it.
pub const COUNT: u8 = 6;

/// [`FlowCommand::table`]: stations of bridge domains, four ways. The record is a key ([`super::station::key`]); what it leads to ([`super::station::port`] and its like) stands in the
/// command's `action`, and its generation beside it.
pub const STATION: u8 = 7;
/// [`FlowCommand::table`]: flood groups of bridge domains. Lines: the domain. The group stands in the command's `action`, there is no record.
pub const FLOOD: u8 = 8;

/// [`FlowCommand::table`]: from which MAC addresses functions may send, and what else they may. Lines: the function. The record is a [`SenderCtx`].
pub const SENDER: u8 = 9;
/// [`FlowCommand::table`]: IP addresses that functions may send from, four ways. The record is a key ([`super::bind::key`]).
pub const BIND: u8 = 10;

/// [`FlowCommand::table`]: the MAC addresses that actions give frames. Lines: those of [`Action::rewrite`], 1 to [`rewrites`] - 1. The record is the destination's address and the source's, as on the wire. A line is
/// written, and neither cleared nor read; an action leads to it no sooner than that.
pub const REWRITE: u8 = 11;

/// Bits of a key, and of a mask.
pub const KEY_BITS: usize = 8 * FlowKey::BYTES;
/// Bits of the number of an action line in an entry.
pub const RESULT_BITS: usize = 16;
/// Bits of a line of the exact table: key, action, generation of two bits, and that it counts.
pub const EXACT_BITS: usize = KEY_BITS + RESULT_BITS + 3;
/// Bits of a line's generation.
const GENERATION_BITS: usize = 2;
/// Bytes of the line `FLOW_ANSWER` of `space::FLOW`; those behind what was read are zero.
pub const ANSWER_BYTES: usize = 64;
/// Bytes of the answer that a line of `table` fills; those behind it are zero, and need not be asked for.
pub const fn answer_bytes(table: u8) -> usize {
    let bits = match table {
        ACTION => ACTION_BITS + 1,
        RULE => RESULT_BITS + GENERATION_BITS + 1,
        STATION => super::station::KEY_BITS + super::station::RESULT_BITS + GENERATION_BITS + 1,
        FLOOD => super::station::NUMBER_BITS + 1,
        _ => 8 * ANSWER_BYTES,
    };
    bits.div_ceil(8)
}
/// Bits of an [`Action`] that mean something.
pub const ACTION_BITS: usize = 88;
/// Bits of a line of [`REWRITE`].
pub const REWRITE_BITS: usize = 96;
/// log2 of the most lines of [`REWRITE`].
pub const MOST_REWRITES: u32 = 9;
/// Lines of [`REWRITE`] beside tables whose ways have 2^`lg` lines; line 0 is never used.
pub const fn rewrites(lg: u32) -> u32 {
    1 << if lg < MOST_REWRITES { lg } else { MOST_REWRITES }
}
/// Bits of a profile's number: generation, port class, packet class, two each.
pub const PROFILE_LINE_BITS: usize = 6;

/// Number of the mask for frames of a port class (0 to 3) and a packet class (0 others, 1 ARP, 2 IPv4, 3 IPv6) in a generation (0 to 3).
pub fn profile_line(generation: u8, port_class: u8, packet_class: u8) -> u32 {
    u32::from(generation & 3) << 4 | u32::from(port_class & 3) << 2 | u32::from(packet_class & 3)
}

/// The command with a record of these bytes, at most 112.
fn command(table: u8, line: u32, record: Option<&[u8]>) -> FlowCommand {
    let mut command = FlowCommand::default();
    if let Some(record) = record {
        let at = FlowCommand::BYTES - RECORD_BYTES;
        command.0[at..at + record.len()].copy_from_slice(record);
    }
    command.with_opcode(if record.is_some() { WRITE } else { CLEAR }).with_table(table).with_line(line)
}

/// Bytes of [`FlowCommand`]'s record.
const RECORD_BYTES: usize = 112;

/// Sets the mask of a line ([`profile_line`]); `None`: the class has no exact entries.
pub fn profile(line: u32, mask: Option<&FlowKey>) -> FlowCommand {
    command(PROFILE, line, mask.map(|mask| &mask.0[..]))
}

/// Sets a line of a way of the exact table: a key under its mask, the line of its action, its generation. `None`: nothing stands there.
pub fn exact(way: u8, line: u32, entry: Option<(&FlowKey, u16, u8)>) -> FlowCommand {
    let command = command(EXACT, line, entry.map(|(key, _, _)| &key.0[..])).with_way(way);
    match entry {
        Some((_, action, generation)) => command.with_action(action).with_generation(generation),
        None => command,
    }
}

/// Reads a line of a way of the exact table: see [`entry`].
pub fn read_exact(way: u8, line: u32) -> FlowCommand {
    command(EXACT, line, None).with_opcode(READ).with_way(way)
}

/// What stands in an exact line that was read: key, line of its action, generation. `None`: nothing does.
pub fn entry(line: &[u8; ANSWER_BYTES]) -> Option<(FlowKey, u16, u8)> {
    let [key, tail] = [&line[..FlowKey::BYTES], &line[FlowKey::BYTES..]];
    let counts = tail[RESULT_BITS / 8] & 1 << GENERATION_BITS != 0;
    counts.then(|| (FlowKey(core::array::from_fn(|n| key[n])), u16::from_le_bytes([tail[0], tail[1]]), tail[RESULT_BITS / 8] & ((1 << GENERATION_BITS) - 1)))
}

/// Reads what an action has counted; `zero`: and sets it to zero.
pub fn count(line: u32, zero: bool) -> FlowCommand {
    command(COUNT, line, None).with_opcode(if zero { CLEAR } else { READ })
}

/// Reads a line of a table; those without ways have way 0.
pub fn read(table: u8, way: u8, line: u32) -> FlowCommand {
    command(table, line, None).with_opcode(READ).with_way(way)
}

/// The lowest bits of an answer from bit `at` on, at most 16 of them.
fn bits(line: &[u8; ANSWER_BYTES], at: usize, count: usize) -> u16 {
    (0..count).fold(0, |bits, n| bits | u16::from(line[(at + n) / 8] >> ((at + n) % 8) & 1) << n)
}

/// The first bytes of an answer.
fn first<const N: usize>(line: &[u8; ANSWER_BYTES]) -> [u8; N] {
    core::array::from_fn(|n| line[n])
}

/// The command that would write a line as it stands in the card, or clear it: from the command that read it and the answer. `None`: the command reads no line that is written ([`COUNT`]).
pub fn standing(read: &FlowCommand, answer: &[u8; ANSWER_BYTES]) -> Option<FlowCommand> {
    let (way, line) = (read.way(), read.line());
    // Behind a key or a record: what it leads to, its generation, and that it counts.
    let tail = |at: usize, result: usize| (bits(answer, at + result + GENERATION_BITS, 1) == 1).then(|| (bits(answer, at, result), bits(answer, at + result, GENERATION_BITS) as u8));
    let there = |at: usize| bits(answer, at, 1) == 1;
    Some(match read.table() {
        PROFILE => profile(line, there(KEY_BITS).then(|| FlowKey(first(answer))).as_ref()),
        EXACT => {
            exact(way, line, tail(KEY_BITS, RESULT_BITS).map(|(action, generation)| (FlowKey(first(answer)), action, generation)).as_ref().map(|(key, action, generation)| (key, *action, *generation)))
        }
        ACTION => {
            let mut kept = Action(first(answer));
            kept.0[ACTION_BITS / 8..].fill(0);
            action(line, there(ACTION_BITS).then_some(&kept))
        }
        RULE => rule(line, tail(0, RESULT_BITS)),
        STATION => {
            let key = first(answer);
            station(way, line, tail(super::station::KEY_BITS, super::station::RESULT_BITS).map(|(result, generation)| (&key, result, generation)))
        }
        FLOOD => flood(line as u16, there(super::station::NUMBER_BITS).then(|| bits(answer, 0, super::station::NUMBER_BITS))),
        SENDER => {
            let line_now = SenderCtx(first(answer));
            sender(line as u16, (line_now != SenderCtx::default()).then_some(&line_now))
        }
        BIND => bound(way, line, tail(bind::KEY_BITS, bind::RESULT_BITS).map(|_| first(answer)).as_ref()),
        _ => return None,
    })
}

/// Sets an action; `None`: an entry that leads to it drops its frames (`SwitchCause::NoRuleRoom`).
pub fn action(line: u32, action: Option<&Action>) -> FlowCommand {
    command(ACTION, line, action.map(|action| &action.0[..]))
}

/// Sets a line of MAC addresses, destination and source.
pub fn rewrite(line: u16, macs: [[u8; 6]; 2]) -> FlowCommand {
    command(REWRITE, line.into(), Some(macs.as_flattened()))
}

/// Sets a line of a way of the table of stations: a key, what it leads to, its generation. `None`: nothing stands there.
pub fn station(way: u8, line: u32, entry: Option<(&[u8; super::station::KEY_BITS / 8], u16, u8)>) -> FlowCommand {
    let command = command(STATION, line, entry.map(|(key, _, _)| &key[..])).with_way(way);
    match entry {
        Some((_, result, generation)) => command.with_action(result).with_generation(generation),
        None => command,
    }
}

/// Sets the flood group of a bridge domain: what is for an address that the domain does not know goes to it. `None`: the domain is not flooded.
pub fn flood(domain: u16, group: Option<u16>) -> FlowCommand {
    match group {
        Some(group) => command(FLOOD, domain.into(), Some(&[])).with_action(group),
        None => command(FLOOD, domain.into(), None),
    }
}

/// Sets what a function may send; `None`: nobody looks at it.
pub fn sender(function: u16, sender: Option<&SenderCtx>) -> FlowCommand {
    command(SENDER, function.into(), sender.map(|sender| &sender.0[..]))
}

/// Sets a line of a way of the table of addresses that functions may send from; `None`: nothing stands there.
pub fn bound(way: u8, line: u32, key: Option<&[u8; bind::KEY_BITS / 8]>) -> FlowCommand {
    command(BIND, line, key.map(|key| &key[..])).with_way(way)
}

/// Number of a wildcard rule for [`RULE`]: its group, and in the lower four bits its place there. Of all rules that a packet fits the one of the lowest number counts.
pub fn rule_line(group: u32, place: u32) -> u32 {
    group << 4 | place
}

/// Sets a row of a group of wildcard rules.
pub fn row(group: u32, value: usize, row: &[u8; RECORD_BYTES]) -> FlowCommand {
    command(ROW, group << 5 | value as u32, Some(row))
}

/// A wildcard rule counts from now on, in a generation, and leads to an action; `None`: it does not count any more.
pub fn rule(line: u32, leads: Option<(u16, u8)>) -> FlowCommand {
    match leads {
        Some((action, generation)) => command(RULE, line, Some(&[])).with_action(action).with_generation(generation),
        None => command(RULE, line, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stand_where_the_gateware_reads_them() {
        let key = FlowKey(core::array::from_fn(|n| n as u8 + 1));
        let c = exact(3, 77, Some((&key, 0xabcd, 2)));
        assert_eq!((c.opcode(), c.table(), c.way(), c.line(), c.action(), c.generation()), (WRITE, EXACT, 3, 77, 0xabcd, 2));
        assert_eq!(c.record0().to_le_bytes(), key.0[..16]);
        assert_eq!(c.record3().to_le_bytes()[..13], key.0[48..]);
        let a = Action::default().with_kind(4).with_count(true);
        assert_eq!(action(5, Some(&a)).record0().to_le_bytes(), a.0);
        assert_eq!(action(5, None), FlowCommand::default().with_opcode(CLEAR).with_table(ACTION).with_line(5));
        assert_eq!(profile(profile_line(2, 1, 3), Some(&key)).line(), 0b10_01_11);
        assert_eq!(profile(3, None).opcode(), CLEAR);
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let key = FlowKey(core::array::from_fn(|n| n as u8 + 1));
        let mut line = [0; ANSWER_BYTES];
        assert_eq!(entry(&line), None);
        line[..FlowKey::BYTES].copy_from_slice(&key.0);
        line[FlowKey::BYTES..].copy_from_slice(&[0xcd, 0xab, 0b110]);
        assert_eq!(entry(&line), Some((key, 0xabcd, 2)));
        assert_eq!(EXACT_BITS.div_ceil(8), ANSWER_BYTES);
        let c = read_exact(3, 77);
        assert_eq!((c.opcode(), c.table(), c.way(), c.line()), (READ, EXACT, 3, 77));
        assert_eq!([false, true].map(|zero| count(5, zero).opcode()), [READ, CLEAR]);
    }

    /// An answer with these bytes from its first one on, and bits above them.
    fn answer(bytes: &[u8], bits: &[(usize, u32)]) -> [u8; ANSWER_BYTES] {
        let mut line = [0; ANSWER_BYTES];
        line[..bytes.len()].copy_from_slice(bytes);
        for (at, value) in bits {
            (0..32).filter(|n| value >> n & 1 == 1).for_each(|n| line[(at + n) / 8] |= 1 << ((at + n) % 8));
        }
        line
    }

    #[test]
    fn what_stands_is_what_was_written() {
        let key = FlowKey(core::array::from_fn(|n| n as u8 + 1));
        let mut a = Action([0xa5; Action::BYTES]);
        a.0[ACTION_BITS / 8..].fill(0);
        let ctx = SenderCtx::default().with_on(true).with_mac3(77).with_trunk(true);
        let (house, own) = ([9; 8], [7; bind::KEY_BITS / 8]);
        let tail = |result: u32, bits: usize, generation: u32| result | (generation | 4) << bits;
        let cases = [
            (profile(5, Some(&key)), answer(&key.0, &[(KEY_BITS, 1)])),
            (exact(3, 77, Some((&key, 0xabcd, 2))), answer(&key.0, &[(KEY_BITS, tail(0xabcd, 16, 2))])),
            (action(9, Some(&a)), answer(&a.0, &[(ACTION_BITS, 1)])),
            (rule(rule_line(1, 13), Some((0x1234, 3))), answer(&[], &[(0, tail(0x1234, 16, 3))])),
            (station(2, 6, Some((&house, 0x2fff, 1))), answer(&house, &[(64, tail(0x2fff, 16, 1))])),
            (flood(3, Some(0xabc)), answer(&[], &[(0, 0x1abc)])),
            (sender(1, Some(&ctx)), answer(&ctx.0, &[])),
            (bound(1, 4, Some(&own)), answer(&own, &[(bind::KEY_BITS, tail(0, 1, 0))])),
        ];
        for (written, line) in cases {
            let asked = read(written.table(), written.way(), written.line());
            assert_eq!(standing(&asked, &line), Some(written), "{written:?}");
            // A line that does not count may hold anything else, but a function's.
            let mut gone = line;
            let last = (0..8 * ANSWER_BYTES).rev().find(|bit| line[bit / 8] >> (bit % 8) & 1 == 1).expect("it counts");
            if written.table() == SENDER {
                gone = answer(&[], &[]);
            }
            gone[last / 8] &= !(1 << (last % 8));
            assert_eq!(standing(&asked, &gone), Some(command(written.table(), written.line(), None).with_way(written.way())));
        }
        assert_eq!(standing(&count(5, false), &[0xff; ANSWER_BYTES]), None);
    }

    /// The card keeps the bits of an action below `rsvd0`.
    #[test]
    fn nothing_of_an_action_is_left_out() {
        let spare = Action::LAYOUT.fields.last().expect("it has fields");
        assert_eq!((spare.name, spare.offset), ("rsvd0", ACTION_BITS));
    }
}
