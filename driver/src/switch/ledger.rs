//! Commands that belong together, and what is to be done if the card fails between two of them: what the driver knows of the card's tables, and what stands there, stay the same.

use super::place::{Entry, Write};
use crate::error::{Error, Result};
use ferric_abi::switch::FlowCommand;

/// Tells the card one command.
pub(super) type Tell<'a> = &'a mut dyn FnMut(&FlowCommand) -> Result<()>;

/// A command, and the one that takes it back.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) does: FlowCommand,
    pub(super) undoes: FlowCommand,
}

/// The steps of writes to a table, whose lines `line` makes.
pub(super) fn steps(writes: &[Write], line: impl Fn(&Write) -> FlowCommand) -> Vec<Step> {
    let back = |write: &Write| Write { place: write.place, entry: write.was.clone(), was: None::<Entry> };
    writes.iter().map(|write| Step { does: line(write), undoes: line(&back(write)) }).collect()
}

/// What failed calls could not take back yet, the last step first.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    owed: Vec<FlowCommand>,
}

impl Ledger {
    /// Takes back what is left of failed calls, then does these steps, in this order. If one fails they are taken back from the last one on; what cannot be taken back now is owed, and the next call begins
    /// with it.
    ///
    /// # Errors
    /// The card's. The caller has to take its own books back.
    pub(super) fn carry_out(&mut self, tell: Tell, steps: &[Step]) -> Result<()> {
        self.settle(tell)?;
        let Some((n, error)) = steps.iter().enumerate().find_map(|(n, step)| Some((n, tell(&step.does).err()?))) else { return Ok(()) };
        // What the card refuses it has not done. Of what has no answer nobody knows.
        let done = if matches!(error, Error::Admin { .. }) { n } else { n + 1 };
        self.owed.extend(steps[..done].iter().map(|step| step.undoes));
        // The caller learns of the first error; this one shows again.
        _ = self.settle(tell);
        Err(error)
    }

    fn settle(&mut self, tell: Tell) -> Result<()> {
        while let Some(command) = self.owed.last() {
            tell(command)?;
            self.owed.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::doubles::{Card, How};
    use super::*;
    use ferric_abi::switch::table;

    /// Whichever command fails, however, and for however long: in the end all or nothing has been done.
    #[test]
    fn all_or_nothing() {
        let step = |n: u32| Step { does: table::action(n, Some(&Default::default())), undoes: table::action(n, None) };
        for how in [How::Refuses, How::Does, How::DoesNot] {
            for from in 0..6 {
                for to in from..12 {
                    let (mut card, mut ledger) = (Card { silent: from..to, how, ..Default::default() }, Ledger::default());
                    let done = ledger.carry_out(&mut |c| card.tell(c), &(0..4).map(step).collect::<Vec<_>>()).is_ok();
                    assert_eq!(done, from >= 4 || from == to);
                    // It works again.
                    card.silent = 0..0;
                    ledger.carry_out(&mut |c| card.tell(c), &[step(9)]).unwrap();
                    let stand: Vec<u32> = card.lines.keys().map(|key| key.2).collect();
                    assert_eq!(stand, if done { vec![0, 1, 2, 3, 9] } else { vec![9] }, "{how:?} {from} {to}");
                    assert!(ledger.owed.is_empty());
                }
            }
        }
    }
}
