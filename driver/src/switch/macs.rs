//! Lines of MAC addresses that actions give frames.

use crate::error::{Error, Result};
use crate::types::Mac;
use ferric_abi::switch::table;
use ferric_abi::switch::{Action, FlowCommand};
use std::collections::BTreeSet;

/// What stands in the card's lines, and which actions lead there.
#[derive(Debug)]
pub(super) struct Macs {
    /// Destination and source; line 0, which actions without addresses name, has none.
    lines: Vec<Option<[Mac; 2]>>,
    /// Action, and its line of addresses. Those of actions that nothing leads to stay until they are written anew, and of an action whose command has failed both: either may stand in the card.
    of: BTreeSet<(u16, u16)>,
}

impl Macs {
    pub(super) fn new(lines: u32) -> Self {
        Self { lines: vec![None; lines as usize], of: BTreeSet::new() }
    }

    /// See `FlowTables::rewrite`. `counts`: whether something may lead to an action.
    pub(super) fn line(&mut self, macs: [Mac; 2], counts: impl Fn(u16) -> bool, mut tell: impl FnMut(&FlowCommand) -> Result<()>) -> Result<u16> {
        if let Some(line) = self.lines.iter().position(|own| *own == Some(macs)) {
            return Ok(line as u16);
        }
        self.of.retain(|(action, _)| counts(*action));
        let taken = |line: u16| self.of.iter().any(|(_, own)| *own == line);
        let line = (1..self.lines.len() as u16).find(|line| !taken(*line)).ok_or(Error::Exhausted("lines for MAC addresses"))?;
        // Half a line is none.
        self.lines[usize::from(line)] = None;
        tell(&table::rewrite(line, macs.map(|mac| mac.0)))?;
        self.lines[usize::from(line)] = Some(macs);
        Ok(line)
    }

    /// Writes an action into a line of its table. Errors: it names addresses that are not there, and nothing is written; those of `tell`.
    pub(super) fn action(&mut self, line: u16, action: Option<&Action>, tell: impl FnOnce(&FlowCommand) -> Result<()>) -> Result<()> {
        let macs = action.map_or(0, Action::rewrite);
        if macs != 0 && self.lines.get(usize::from(macs)).is_none_or(Option::is_none) {
            return Err(Error::Invalid("the action names a line of MAC addresses that nobody has written"));
        }
        if macs != 0 {
            self.of.insert((line, macs));
        }
        tell(&table::action(line.into(), action))?;
        let old: Vec<_> = self.of.range((line, 0)..=(line, u16::MAX)).filter(|(_, own)| *own != macs).copied().collect();
        old.iter().for_each(|pair| _ = self.of.remove(pair));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn macs(n: u8) -> [Mac; 2] {
        [Mac([2, 0, 0, 0, 0, n]), Mac([2, 0, 0, 0, 1, n])]
    }

    #[test]
    fn a_line_stays_as_long_as_an_action_leads_to_it() {
        let mut m = Macs::new(4);
        let mut told = Vec::new();
        let get = |m: &mut Macs, n: u8, gone: &[u16], told: &mut Vec<u32>| {
            m.line(
                macs(n),
                |action| !gone.contains(&action),
                |command| {
                    told.push(command.line());
                    Ok(())
                },
            )
        };
        let set = |m: &mut Macs, action: u16, line: u16| m.action(action, Some(&Action::default().with_rewrite(line)), |_| Ok(()));
        for n in 1..=3 {
            assert_eq!(get(&mut m, n, &[], &mut told).unwrap(), u16::from(n));
            set(&mut m, 10 + u16::from(n), n.into()).unwrap();
        }
        // The same addresses are the same line, and a line more there is not.
        assert_eq!(get(&mut m, 2, &[], &mut told).unwrap(), 2);
        assert!(matches!(get(&mut m, 9, &[], &mut told), Err(Error::Exhausted(_))));
        // Another action leads to 2, the first one goes.
        set(&mut m, 20, 2).unwrap();
        m.action(12, None, |_| Ok(())).unwrap();
        assert!(matches!(get(&mut m, 9, &[], &mut told), Err(Error::Exhausted(_))));
        // The card has not said whether that action leads there no more.
        assert!(m.action(20, None, |_| Err(Error::Invalid("no"))).is_err());
        assert!(matches!(get(&mut m, 9, &[], &mut told), Err(Error::Exhausted(_))));
        // Nothing leads to that action any more.
        assert_eq!(get(&mut m, 9, &[20], &mut told).unwrap(), 2);
        assert_eq!(told, [1, 2, 3, 2]);
        // A line that the card may not have written is none, nor is one that there is not.
        m.action(11, None, |_| Ok(())).unwrap();
        assert!(m.line(macs(7), |_| true, |_| Err(Error::Invalid("no"))).is_err());
        assert!(set(&mut m, 30, 1).is_err() && set(&mut m, 30, 4).is_err());
        assert_eq!(get(&mut m, 1, &[], &mut told).unwrap(), 1);
    }
}
