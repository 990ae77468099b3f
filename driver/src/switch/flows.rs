//! The flow tables of a card that decide about received frames (docs/admin.md, SET_FLOW and SET_FLOW_PORT; docs/switch.md). The driver knows what stands in every line; the card only writes lines.
//!
//! All rules are replaced at once by a generation: the new set is written beside the old one with the next generation's number (0 to 3), and [`FlowTables::decide`] changes over between two
//! frames. Actions have no generation: the new set leads to lines that the old one does not use.
//!
//! A call that the card fails has changed nothing, or what it has changed is taken back before the next one does anything. Where no answer has come an action, a flood group and what a port does may be
//! either the old or the new one: the driver keeps no books of these.

use super::bound::Senders;
use super::ledger::{steps, Ledger, Step, Tell};
use super::macs::Macs;
use super::place::{Entry, Table, Write};
use super::port::{generation, number, FlowPort, Sets, CLASSES};
use super::rules::{Rule, Rules};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::types::Mac;
use ferric_abi::codes::AdminOpcode;
use ferric_abi::csr;
use ferric_abi::switch::station;
use ferric_abi::switch::table::{self, profile_line, KEY_BITS};
use ferric_abi::switch::ternary::{say, Said};
use ferric_abi::switch::{Action, FlowCommand, FlowKey, FlowRecord};

/// Bits of the middle word of a key's hash.
const MIDDLE: usize = 64;
/// Numbers of 12 bits: bridge domains, groups, lines of the encapsulation table; and uplinks.
const NUMBERS: u16 = 1 << station::NUMBER_BITS;
const UPLINKS: u8 = 4;

/// Where a station is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Station {
    /// Behind a port: 8 and a function's number.
    Port(u8),
    /// Behind a tunnel: a line of the encapsulation table, and the uplink. The card cannot go there yet: software gets such frames.
    Remote(u16, u8),
    /// What is for it goes to a group; software gets such frames, too.
    Group(u16),
}

/// Packets of which a wildcard rule sees which bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// IPv6.
    V6,
    /// All others.
    Others,
}

/// The flow tables of a card, as its physical function has written them.
#[derive(Debug)]
pub struct FlowTables {
    pub(super) lines: u32,
    pub(super) masks: [Option<FlowKey>; 64],
    pub(super) exact: Table<KEY_BITS, MIDDLE>,
    pub(super) stations: Table<{ station::KEY_BITS }, MIDDLE>,
    pub(super) rules: Rules,
    pub(super) senders: Senders,
    pub(super) ledger: Ledger,
    pub(super) sets: Sets,
    pub(super) macs: Macs,
}

impl FlowTables {
    /// The tables of a card that its physical function has just opened: they are empty, and frames pass. Errors: the card has none; another than the physical function asks.
    pub fn open(context: &Context) -> Result<Self> {
        if !context.has_flows() {
            return Err(Error::Unsupported("decide about frames by flow tables"));
        }
        let words = context.inner.admin("query flow tables", AdminOpcode::QueryObject, csr::FLOW_COMMAND, &[csr::space::FLOW.into(), 0])?;
        let sizes = words[csr::FLOW_SIZES as usize];
        let [lg, groups, addresses] = [0, csr::FLOW_GROUPS_AT, csr::FLOW_BINDS_AT].map(|at| sizes >> at & ((1 << csr::FLOW_GROUPS_AT) - 1));
        Ok(Self::of_sizes(lg, groups as usize, addresses))
    }

    /// Empty ones: 2^`lg` lines in a way, groups of wildcard rules, 2^`addresses` lines in a way of addresses.
    pub(super) fn of_sizes(lg: u32, groups: usize, addresses: u32) -> Self {
        Self {
            lines: 1 << lg,
            masks: [None; 64],
            exact: Table::new(lg),
            stations: Table::new(lg),
            rules: Rules::new(groups),
            senders: Senders::new(addresses),
            ledger: Ledger::default(),
            sets: Sets::default(),
            macs: Macs::new(table::rewrites(lg)),
        }
    }

    /// Lines of the action table.
    pub fn actions(&self) -> usize {
        self.lines as usize
    }

    /// Wildcard rules that there is room for.
    pub fn rules(&self) -> usize {
        self.rules.room()
    }

    /// The line of MAC addresses, destination and source, for [`Action::rewrite`]: the one where they stand, or one that no action leads to gets them. It stays as long as an action leads to it, so write that one
    /// before the next call. Errors: actions lead to all lines.
    pub fn rewrite(&mut self, context: &Context, macs: [Mac; 2]) -> Result<u16> {
        self.macs.line(macs, |action| self.sets.has(action), |command| context.write_flow(command))
    }

    /// Writes an action, or takes one away: an entry that leads there drops its frames then. A frame in the same cycle meets the old one. Errors: no such line; a line of MAC addresses that
    /// nobody has written ([`FlowTables::rewrite`]); a meter, which the card does not have. What else the card cannot carry out (docs/switch.md) sends the frame to software.
    pub fn set_action(&mut self, context: &Context, line: u16, action: Option<&Action>) -> Result<()> {
        if u32::from(line) >= self.lines {
            return Err(Error::Invalid("the action table has no such line"));
        }
        if action.is_some_and(|action| action.meter() != 0) {
            return Err(Error::Invalid("the card has no meters: the flow has to stay in software"));
        }
        self.macs.action(line, action, |command| context.write_flow(command))?;
        self.sets.told(line, action.is_some());
        Ok(())
    }

    /// The bits of the key that count for exact entries of a generation, of frames of a port class and a packet class (0 others, 1 ARP, 2 IPv4, 3 IPv6); `None`: there are none. Entries of
    /// the class that are there already stand under the old mask. Errors: numbers above 3.
    pub fn set_mask(&mut self, context: &Context, of: u8, port: u8, packet: u8, mask: Option<&FlowKey>) -> Result<()> {
        generation(of)?;
        number("port classes are 0 to 3", port, CLASSES)?;
        number("packet classes are 0 to 3", packet, CLASSES)?;
        let line = profile_line(of, port, packet);
        let step = Step { does: table::profile(line, mask), undoes: table::profile(line, self.masks[line as usize].as_ref()) };
        self.ledger.carry_out(&mut |command| context.write_flow(command), &[step])?;
        self.masks[line as usize] = mask.copied();
        Ok(())
    }

    /// The key of an entry of a class: its bits under the class's mask. Errors: the class has no mask.
    fn masked(&self, of: u8, port: u8, packet: u8, key: &FlowKey) -> Result<[u8; FlowKey::BYTES]> {
        generation(of)?;
        number("port classes are 0 to 3", port, CLASSES)?;
        number("packet classes are 0 to 3", packet, CLASSES)?;
        let mask = self.masks[profile_line(of, port, packet) as usize].ok_or(Error::Invalid("frames of this class have no mask yet"))?;
        Ok(std::array::from_fn(|n| key.0[n] & mask.0[n]))
    }

    /// An exact entry of a generation for frames of a class, which leads to an action; or the one of the same key gets another action. Errors: no mask for the class; no room where the key
    /// may stand, and nothing has changed then.
    pub fn insert(&mut self, context: &Context, of: u8, [port, packet]: [u8; 2], key: &FlowKey, action: u16) -> Result<()> {
        let key = self.masked(of, port, packet, key)?;
        self.put(&mut |command| context.write_flow(command), Entry { key: key.into(), generation: of, result: action.into() })
    }

    pub(super) fn put(&mut self, tell: Tell, entry: Entry) -> Result<()> {
        let writes = self.exact.insert(entry).map_err(|_| Error::Exhausted("lines for the flow's key"))?;
        self.ledger.carry_out(tell, &steps(&writes, placed)).inspect_err(|_| self.exact.take_back(&writes))
    }

    /// Takes an entry away; whether there was one. Errors: as of [`FlowTables::insert`].
    pub fn remove(&mut self, context: &Context, of: u8, [port, packet]: [u8; 2], key: &FlowKey) -> Result<bool> {
        let key = self.masked(of, port, packet, key)?;
        self.take(&mut |command| context.write_flow(command), &key, of)
    }

    pub(super) fn take(&mut self, tell: Tell, key: &[u8], of: u8) -> Result<bool> {
        let writes: Vec<_> = self.exact.remove(key, of).into_iter().collect();
        self.ledger.carry_out(tell, &steps(&writes, placed)).inspect_err(|_| self.exact.take_back(&writes))?;
        Ok(!writes.is_empty())
    }

    /// Wildcard rule `number`: packets that have the bits of `key` where `mask` has ones, and no exact entry. Of several the lowest number counts. Errors: no such number; the card's rules do
    /// not see a bit of the mask; no packet can fit.
    pub fn set_rule(&mut self, context: &Context, number: usize, packets: Packets, [key, mask]: [&FlowKey; 2], action: u16, of: u8) -> Result<()> {
        generation(of)?;
        let pattern = match say(key, mask, packets == Packets::V6) {
            Said::By(pattern) => pattern,
            Said::Never => return Err(Error::Invalid("no such packet can fit the rule")),
            Said::Not => return Err(Error::Invalid("the card's wildcard rules do not see all bits of the mask")),
        };
        self.change_rule(&mut |command| context.write_flow(command), number, Some(Rule { pattern, action, generation: of }))
    }

    pub(super) fn change_rule(&mut self, tell: Tell, number: usize, rule: Option<Rule>) -> Result<()> {
        let was = self.rules.get(number).copied();
        let steps = self.rules.change(number, rule).map_err(|_| Error::Invalid("the card has no wildcard rule of this number"))?;
        self.ledger.carry_out(tell, &steps).inspect_err(|_| self.rules.take_back(number, was))
    }

    /// Takes a wildcard rule away, if there is one. Errors: no such number.
    pub fn clear_rule(&mut self, context: &Context, number: usize) -> Result<()> {
        self.change_rule(&mut |command| context.write_flow(command), number, None)
    }

    /// A station of a bridge domain in a generation: domain 0 is that of frames through no tunnel, f + 1 that of function f's. It comes, or moves. Errors: a domain of more than 12 bits, a number
    /// that the card's table has no bits for; no room where the address may stand, and nothing has changed then.
    pub fn set_station(&mut self, context: &Context, of: u8, domain: u16, mac: Mac, to: Station) -> Result<()> {
        let result = match to {
            Station::Port(port) => station::port(port),
            Station::Remote(line, uplink) if line < NUMBERS && uplink < UPLINKS => station::remote(line, uplink),
            Station::Group(group) if group < NUMBERS => station::group(group),
            _ => return Err(Error::Invalid("groups and lines of encapsulation are 0 to 4095, uplinks 0 to 3")),
        };
        let key = address(of, domain, mac)?;
        let writes = self.stations.insert(Entry { key: key.into(), generation: of, result: result.into() }).map_err(|_| Error::Exhausted("lines for the station's address"))?;
        self.ledger.carry_out(&mut |command| context.write_flow(command), &steps(&writes, housed)).inspect_err(|_| self.stations.take_back(&writes))
    }

    /// Takes a station away; whether there was one. Errors: as of [`FlowTables::set_station`].
    pub fn remove_station(&mut self, context: &Context, of: u8, domain: u16, mac: Mac) -> Result<bool> {
        self.evict(&mut |command| context.write_flow(command), &address(of, domain, mac)?, of)
    }

    pub(super) fn evict(&mut self, tell: Tell, key: &[u8], of: u8) -> Result<bool> {
        let writes: Vec<_> = self.stations.remove(key, of).into_iter().collect();
        self.ledger.carry_out(tell, &steps(&writes, housed)).inspect_err(|_| self.stations.take_back(&writes))?;
        Ok(!writes.is_empty())
    }

    /// The group that gets what is for an address that a bridge domain has no station for; `None`: no table knows such a frame then. In every generation. Software gets it, for the card makes no
    /// copies yet. Errors: the card has no flood group for the domain; a group beyond 4095.
    pub fn set_flood(&self, context: &Context, domain: u16, group: Option<u16>) -> Result<()> {
        if u32::from(domain) >= self.lines.min(NUMBERS.into()) {
            return Err(Error::Invalid("the card has no flood group for this bridge domain"));
        }
        if group.is_some_and(|group| group >= NUMBERS) {
            return Err(Error::Invalid("groups are 0 to 4095"));
        }
        context.write_flow(&table::flood(domain, group))
    }

    /// What the flows that lead to an action have counted, if its `count` is set: whole and good frames that have gone by it since the tables were emptied or [`FlowTables::forget`], whatever
    /// became of them. `last_use` is a tick as of [`Context::flow_tick`]. Errors: no such line.
    pub fn used(&self, context: &Context, line: u16) -> Result<FlowRecord> {
        self.counted(context, line, false)
    }

    /// The same, and the counters become zero behind that: no frame is counted twice, and none is left out.
    pub fn forget(&mut self, context: &Context, line: u16) -> Result<FlowRecord> {
        self.counted(context, line, true)
    }

    fn counted(&self, context: &Context, line: u16, zero: bool) -> Result<FlowRecord> {
        if u32::from(line) >= self.lines {
            return Err(Error::Invalid("the action table has no such line"));
        }
        let mut record = FlowRecord::default();
        record.0.copy_from_slice(&context.read_flow(&table::count(line.into(), zero))?[..FlowRecord::BYTES]);
        Ok(record)
    }

    /// From the next frame on the tables decide, by this generation. A frame that is under way is wholly of the old one. Errors: numbers above 3.
    pub fn decide(&self, context: &Context, port: &FlowPort) -> Result<()> {
        context.set_flow_port(Some(port))
    }
}

pub(super) fn placed(write: &Write) -> FlowCommand {
    let key = write.entry.as_ref().map(|entry| FlowKey(std::array::from_fn(|n| entry.key[n])));
    let entry = write.entry.as_ref().zip(key.as_ref()).map(|(entry, key)| (key, entry.result as u16, entry.generation));
    table::exact(write.place.way, write.place.line.into(), entry)
}

/// The key of a station of a generation.
fn address(of: u8, domain: u16, mac: Mac) -> Result<[u8; station::KEY_BITS / 8]> {
    generation(of)?;
    match domain < NUMBERS {
        true => Ok(station::key(domain, mac.number())),
        false => Err(Error::Invalid("bridge domains are 0 to 4095")),
    }
}

pub(super) fn housed(write: &Write) -> FlowCommand {
    let entry = write.entry.as_ref().map(|entry| (std::array::from_fn(|n| entry.key[n]), entry.result as u16, entry.generation));
    table::station(write.place.way, write.place.line.into(), entry.as_ref().map(|(key, result, generation)| (key, *result, *generation)))
}

#[cfg(test)]
mod tests {
    use super::super::doubles::{Card, How};
    use super::super::place::Place;
    use super::*;

    /// A table that is nearly full, in which entries move, and rules: a call that fails has changed nothing in the end, whichever command failed, and no entry was nowhere meanwhile.
    #[test]
    fn calls_that_fail_change_nothing() {
        let entry = |n: u32, result: u32| Entry { key: (0..61).map(|i| (n * 31 + i) as u8).collect(), generation: 1, result };
        let in_card = |card: &Card| card.lines.iter().filter(|((table, ..), _)| *table == table::EXACT).map(|((_, way, line), c)| (*way, *line, *c)).collect::<Vec<_>>();
        let stands = |t: &FlowTables| {
            let at =
                |way, line| t.exact.at(Place { way, line: line as u16 }).map(|entry| (way, line, placed(&Write { place: Place { way, line: line as u16 }, entry: Some(entry.clone()), was: None })));
            (0..4).flat_map(|way| (0..64).filter_map(move |line| at(way, line))).collect::<Vec<_>>()
        };
        let (mut moves, mut failed) = (0, 0);
        let (mut card, mut t) = (Card::default(), FlowTables::of_sizes(6, 2, 3));
        for n in 0..240 {
            let (at, how) = (n as usize % 4, [How::Refuses, How::Does, How::DoesNot][n as usize / 4 % 3]);
            (card.silent, card.how) = (card.told + at..card.told + at + 1 + n as usize % 5, how);
            let before = (card.told, stands(&t));
            if t.put(&mut |c| card.tell(c), entry(n, n)).is_err() {
                failed += 1;
                assert_eq!(stands(&t), before.1);
            }
            moves += usize::from(card.told > before.0 + 1 && card.how == How::Does);
            card.silent = 0..0;
            _ = t.put(&mut |c| card.tell(c), entry(n, n));
            assert_eq!(in_card(&card), stands(&t), "{n}");
        }
        assert!(moves > 5 && failed > 50, "{moves} {failed}");
        // Wildcard rules: the old one counts again, with its rows.
        let pattern = |port: u16| {
            let key = FlowKey::default().with_dst_port(port);
            let Said::By(pattern) = say(&key, &key, false) else { panic!("it can be said") };
            pattern
        };
        let rule = |n: u16| Rule { pattern: pattern(n), action: n, generation: 1 };
        t.change_rule(&mut |c| card.tell(c), 15, Some(rule(80))).unwrap();
        t.change_rule(&mut |c| card.tell(c), 16, Some(rule(81))).unwrap();
        let before = card.lines.clone();
        for at in 0..34 {
            for how in [How::Refuses, How::Does, How::DoesNot] {
                (card.silent, card.how) = (card.told + at..card.told + at + 3, how);
                t.change_rule(&mut |c| card.tell(c), 15, Some(rule(443))).unwrap_err();
                assert_eq!(t.rules.get(15), Some(&rule(80)));
                card.silent = 0..0;
                t.change_rule(&mut |c| card.tell(c), 27, None).unwrap();
                assert_eq!(card.lines, before, "{how:?} {at}");
            }
        }
        t.change_rule(&mut |c| card.tell(c), 15, None).unwrap();
        assert_eq!(t.rules.get(15), None);
    }

    #[test]
    fn a_line_that_is_cleared_names_no_key() {
        let mut table = Table::<KEY_BITS, MIDDLE>::new(6);
        let writes = table.insert(Entry { key: [7; 61].into(), generation: 2, result: 5 }).unwrap();
        let command = placed(&writes[0]);
        assert_eq!((command.opcode(), command.table(), command.action(), command.generation()), (table::WRITE, table::EXACT, 5, 2));
        let gone = placed(&table.remove(&[7; 61], 2).unwrap());
        assert_eq!((gone.opcode(), gone.way(), gone.line()), (table::CLEAR, command.way(), command.line()));
    }
}
