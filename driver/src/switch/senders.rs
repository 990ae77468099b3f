//! What functions may send (docs/switch.md, Isolation): the physical function's software says from which addresses, and the card drops everything else. Nothing that a function writes changes it.

use super::flows::FlowTables;
use super::ledger::{steps, Step, Tell};
use super::place::{Entry, Write};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::types::Mac;
use ferric_abi::context::{SenderCounts, SenderCtx};
use ferric_abi::csr::{self, FUNCTION_PORTS, STATIONS};
use ferric_abi::switch::bind::{self, KEY_BITS};
use ferric_abi::switch::table;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What a function may send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// Source MAC addresses, at most four, of which ARP and neighbour discovery may speak, too. None: it may send nothing.
    pub macs: Vec<Mac>,
    /// Source IP addresses, of which ARP and neighbour discovery may speak, too. The unspecified address is always free, for a host that has none yet.
    pub addresses: Vec<IpAddr>,
    /// It may send from any IP address.
    pub any_ip: bool,
    /// It may send tagged frames.
    pub trunk: bool,
    /// It may send tunnel packets, and to the addresses where the card's tunnels end.
    pub underlay: bool,
    /// It may answer DHCP, and advertise itself as a router.
    pub server: bool,
    /// It may send RoCE.
    pub roce: bool,
}

/// The key of an address of a function.
fn key(function: u8, address: IpAddr) -> [u8; KEY_BITS / 8] {
    let port = FUNCTION_PORTS as u8 + function;
    match address {
        IpAddr::V4(v4) => bind::key(port, false, u32::from(v4).into()),
        IpAddr::V6(v6) => bind::key(port, true, v6.into()),
    }
}

fn line(sender: &Sender) -> Result<SenderCtx> {
    if sender.macs.len() > STATIONS as usize {
        return Err(Error::Invalid("a function may have four source MAC addresses"));
    }
    let mac = |n: usize| sender.macs.get(n).map_or(0, |mac| mac.number());
    let ctx = SenderCtx::default().with_on(true).with_have((1 << sender.macs.len()) - 1).with_mac0(mac(0)).with_mac1(mac(1)).with_mac2(mac(2)).with_mac3(mac(3));
    Ok(ctx.with_any_ip(sender.any_ip).with_trunk(sender.trunk).with_underlay(sender.underlay).with_server(sender.server).with_roce(sender.roce))
}

fn bound(write: &Write) -> ferric_abi::switch::FlowCommand {
    let key = write.entry.as_ref().map(|entry| std::array::from_fn(|n| entry.key[n]));
    table::bound(write.place.way, write.place.line.into(), key.as_ref())
}

impl FlowTables {
    /// What a function may send from the next frame on; the card drops what else it sends, and counts it for the function by cause ([`Context::sender_counts`]). `None`: nobody looks at what it
    /// sends, which is so until somebody says otherwise.
    ///
    /// While it changes the function never has more than the new rights, or the old ones: addresses that it loses go first, then it gets the new MAC addresses and rights in one cycle, then new addresses.
    /// A reset of the function takes all of it away, and it may send nothing until it is given a line again: whoever has its number next does not speak for it. A reset of the physical function does so with
    /// every function that is verified but the physical one, which is free then.
    ///
    /// # Errors
    /// More than four MAC addresses; no such function; no room for the addresses. Nothing has changed then. If the card fails, its function has its old addresses again, but if the new line may have got
    /// into the card the function may send nothing until this succeeds: it may have been reset meanwhile, and its next owner is not to speak for the one before. What cannot be taken back at once is taken
    /// back before the next change of these tables.
    pub fn set_sender(&mut self, context: &Context, function: u8, sender: Option<&Sender>) -> Result<()> {
        if u32::from(function) >= context.inner.caps.functions {
            return Err(Error::Invalid("the card has no such function"));
        }
        let ctx = sender.map(line).transpose()?;
        let new: BTreeSet<IpAddr> = sender.iter().flat_map(|sender| sender.addresses.iter().copied()).collect();
        self.change_sender(&mut |command| context.write_flow(command), function, ctx, new)
    }

    fn change_sender(&mut self, tell: Tell, function: u8, ctx: Option<SenderCtx>, new: BTreeSet<IpAddr>) -> Result<()> {
        let old = self.senders.of.get(&function).cloned().unwrap_or_default();
        let mut table = self.senders.table.clone();
        let gone: Vec<Write> = old.difference(&new).filter_map(|address| table.remove(&key(function, *address), 0)).collect();
        let mut come = Vec::new();
        for address in new.difference(&old) {
            let entry = Entry { key: key(function, *address).into(), generation: 0, result: 0 };
            come.extend(table.insert(entry).map_err(|_| Error::Exhausted("lines for a function's address"))?);
        }
        let line = |ctx: Option<&SenderCtx>| table::sender(function.into(), ctx);
        let mut all = steps(&gone, bound);
        all.push(Step { does: line(ctx.as_ref()), undoes: line(Some(&SenderCtx::default().with_on(true))) });
        all.extend(steps(&come, bound));
        self.ledger.carry_out(tell, &all)?;
        self.senders.table = table;
        self.senders.of.insert(function, new);
        Ok(())
    }

    /// Addresses that functions may send from, of all of them, that there is room for.
    pub fn addresses(&self) -> usize {
        self.senders.table.lines()
    }
}

impl Context {
    /// What became of the frames that a function has sent while it was verified, since the card was switched on; for the physical function only. Counters that move meanwhile are read one after the
    /// other. Errors: the card has no flow tables; no such function.
    pub fn sender_counts(&self, function: u8) -> Result<SenderCounts> {
        if !self.has_flows() {
            return Err(Error::Unsupported("verify what functions send"));
        }
        if u32::from(function) >= self.inner.caps.functions {
            return Err(Error::Invalid("the card has no such function"));
        }
        let mut counts = SenderCounts::default();
        self.read_counts("query sender counts", [csr::space::FLOW.into(), csr::FLOW_SENDERS + u32::from(function)], &mut counts.0)?;
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::doubles::{Card, How};
    use super::super::place::Place;
    use super::*;
    use ferric_abi::switch::FlowCommand;
    use std::collections::BTreeMap;

    #[test]
    fn a_line_says_which_addresses_count() {
        let mac = |n| Mac([2, 0, 0, 0, 0, n]);
        let sender = Sender { macs: vec![mac(1), mac(2)], trunk: true, roce: true, ..Default::default() };
        let ctx = line(&sender).unwrap();
        assert_eq!((ctx.have(), ctx.mac0(), ctx.mac1(), ctx.mac2()), (3, 0x0200_0000_0001, 0x0200_0000_0002, 0));
        assert!(ctx.on() && ctx.trunk() && ctx.roce() && !ctx.any_ip() && !ctx.underlay() && !ctx.server());
        assert_eq!(line(&Sender::default()).unwrap(), SenderCtx::default().with_on(true), "nothing may be sent");
        assert!(line(&Sender { macs: (0..5).map(mac).collect(), ..Default::default() }).is_err());
    }

    /// Whichever command of a change fails, and however: what the driver knows stands in the card, and until the change succeeds nobody sends more than before.
    #[test]
    fn a_change_that_fails_halfway() {
        let address = |n: u8| IpAddr::from([10, 0, 0, n]);
        let [before, after] = [0..6, 3..9].map(|range| range.map(address).collect::<BTreeSet<_>>());
        let rights = |n| Some(SenderCtx::default().with_on(true).with_have(1).with_mac0(n));
        let shut = table::sender(1, Some(&SenderCtx::default().with_on(true)));
        let stands = |tables: &FlowTables| {
            let table = &tables.senders.table;
            let places = (0..4).flat_map(|way| (0..8).map(move |line| Place { way, line })).filter_map(|place| table.at(place).map(|entry| (place, entry.key.clone())));
            places.collect::<BTreeMap<_, _>>()
        };
        let in_card = |card: &Card| {
            let lines = card.lines.iter().filter(|((table, ..), _)| *table == table::BIND);
            let entry = |c: &FlowCommand| c.0[16..16 + KEY_BITS / 8].into();
            lines.map(|((_, way, line), c)| (Place { way: *way, line: *line as u16 }, entry(c))).collect::<BTreeMap<_, Box<[u8]>>>()
        };
        for how in [How::Refuses, How::Does, How::DoesNot] {
            for at in 0..7 {
                for length in [1, 2, 20] {
                    let (mut card, mut tables) = (Card::default(), FlowTables::of_sizes(3, 2, 3));
                    tables.change_sender(&mut |c| card.tell(c), 1, rights(1), before.clone()).unwrap();
                    let (told, was) = (card.told, stands(&tables));
                    (card.silent, card.how) = (told + at..told + at + length, how);
                    tables.change_sender(&mut |c| card.tell(c), 1, rights(2), after.clone()).unwrap_err();
                    assert_eq!((stands(&tables), tables.senders.of[&1].clone()), (was, before.clone()));
                    // Another function's change comes through, and takes back what is left.
                    card.silent = 0..0;
                    tables.change_sender(&mut |c| card.tell(c), 2, rights(3), [address(77)].into()).unwrap();
                    assert_eq!(stands(&tables), in_card(&card), "{how:?} {at} {length}");
                    let line = card.lines[&(table::SENDER, 0, 1)];
                    let certainly_not = at < 3 || at == 3 && how == How::Refuses;
                    assert_eq!(line, if certainly_not { table::sender(1, rights(1).as_ref()) } else { shut }, "{how:?} {at} {length}");
                    tables.change_sender(&mut |c| card.tell(c), 1, rights(2), after.clone()).unwrap();
                    assert_eq!((stands(&tables), card.lines[&(table::SENDER, 0, 1)]), (in_card(&card), table::sender(1, rights(2).as_ref())));
                    assert_eq!(stands(&tables).len(), after.len() + 1);
                }
            }
        }
    }

    #[test]
    fn functions_and_versions_have_keys_of_their_own() {
        let v4: IpAddr = [10, 0, 0, 1].into();
        let v6 = IpAddr::from(u128::from(u32::from_be_bytes([10, 0, 0, 1])).to_be_bytes());
        assert_eq!(key(0, v4), bind::key(8, false, 0x0a00_0001));
        assert!(key(0, v4) != key(1, v4) && key(0, v4) != key(0, v6));
    }
}
