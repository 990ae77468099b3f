//! Wildcard rules in the card's rows (the gateware's `switch/tcam`). The driver knows what every row holds; the card only writes whole rows. A rule does not count while its rows are written.

use super::ledger::Step;
use ferric_abi::switch::table::{self, rule_line};
use ferric_abi::switch::ternary::{row, Pattern, ROWS, RULES};
use ferric_abi::switch::FlowCommand;

/// A wildcard rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What a packet has to be.
    pub pattern: Pattern,
    /// Line of the action table.
    pub action: u16,
    /// Generation, 0 to 3.
    pub generation: u8,
}

/// The line of the card's table of rules that a rule's number is.
pub(super) fn line(number: usize) -> u32 {
    rule_line((number / RULES) as u32, (number % RULES) as u32)
}

/// The card has no rule of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule {number}: the card has room for {room}")]
pub struct NoSuchRule {
    /// The number asked for.
    pub number: usize,
    /// Rules that the card has room for, from number 0 on.
    pub room: usize,
}

/// The rules of a card, by number: of those that a packet fits the lowest counts.
#[derive(Debug)]
pub struct Rules {
    groups: Vec<[Option<Rule>; RULES]>,
}

impl Rules {
    /// No rules, in as many groups of 14 as the card has.
    pub fn new(groups: usize) -> Self {
        Self { groups: vec![[None; RULES]; groups] }
    }

    /// How many rules there may be.
    pub fn room(&self) -> usize {
        self.groups.len() * RULES
    }

    /// The rule of this number. `None` also where there is no such number.
    pub fn get(&self, number: usize) -> Option<&Rule> {
        self.groups.get(number / RULES)?[number % RULES].as_ref()
    }

    /// Numbers of rules, of a generation, or of none: those are free.
    pub fn of(&self, generation: Option<u8>) -> Vec<usize> {
        (0..self.room()).filter(|number| self.get(*number).map(|rule| rule.generation) == generation).collect()
    }

    /// Puts a rule in the place of whatever had this number. The commands are in the order in which the card has to get them; until the last one is done neither rule counts.
    ///
    /// # Errors
    /// There is no such number.
    pub fn set(&mut self, number: usize, rule: Rule) -> Result<Vec<FlowCommand>, NoSuchRule> {
        let mut commands: Vec<_> = self.clear(number)?.into_iter().collect();
        let (group, place) = (number / RULES, number % RULES);
        self.groups[group][place] = Some(rule);
        let patterns = self.groups[group].map(|rule| rule.map(|rule| rule.pattern));
        commands.extend((0..ROWS).map(|value| table::row(group as u32, value, &row(&patterns, value))));
        commands.push(table::rule(rule_line(group as u32, place as u32), Some((rule.action, rule.generation))));
        Ok(commands)
    }

    /// Takes a rule away; `None`: there was none.
    ///
    /// # Errors
    /// There is no such number.
    pub fn clear(&mut self, number: usize) -> Result<Option<FlowCommand>, NoSuchRule> {
        let (group, place, room) = (number / RULES, number % RULES, self.room());
        let rule = self.groups.get_mut(group).map(|rules| &mut rules[place]).ok_or(NoSuchRule { number, room })?;
        Ok(rule.take().map(|_| table::rule(rule_line(group as u32, place as u32), None)))
    }

    /// [`Rules::set`] or [`Rules::clear`], with what takes each command back: from the last one on, so that neither rule counts while rows change.
    pub(super) fn change(&mut self, number: usize, rule: Option<Rule>) -> Result<Vec<Step>, NoSuchRule> {
        let was = self.get(number).map(|rule| (rule.action, rule.generation));
        let before = self.groups.get(number / RULES).map(|group| group.map(|rule| rule.map(|rule| rule.pattern)));
        let commands = match rule {
            Some(rule) => self.set(number, rule)?,
            None => self.clear(number)?.into_iter().collect(),
        };
        let before = before.unwrap_or([None; RULES]);
        let mut value = 0;
        let back = |does: FlowCommand| {
            let undoes = match (does.table(), does.opcode()) {
                (table::ROW, _) => {
                    value += 1;
                    table::row((number / RULES) as u32, value - 1, &row(&before, value - 1))
                }
                (_, table::CLEAR) => table::rule(does.line(), was),
                _ => table::rule(does.line(), None),
            };
            Step { does, undoes }
        };
        Ok(commands.into_iter().map(back).collect())
    }

    /// A change was taken back: the number has its rule again.
    pub(super) fn take_back(&mut self, number: usize, was: Option<Rule>) {
        self.groups[number / RULES][number % RULES] = was;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferric_abi::switch::ternary::{say, Said};
    use ferric_abi::switch::FlowKey;

    #[test]
    fn a_rule_is_taken_off_written_and_put_on() {
        let key = FlowKey::default().with_dst_port(80);
        let Said::By(pattern) = say(&key, &key, false) else { panic!("it can be said") };
        let mut rules = Rules::new(2);
        assert_eq!((rules.room(), rules.clear(15)), (28, Ok(None)));
        let first = rules.set(15, Rule { pattern, action: 7, generation: 1 }).unwrap();
        assert_eq!((first.len(), first[0].table(), first[0].line()), (ROWS + 1, table::ROW, 1 << 5));
        assert_eq!(first[ROWS], table::rule(rule_line(1, 1), Some((7, 1))));
        let again = rules.set(15, Rule { pattern, action: 8, generation: 1 }).unwrap();
        assert_eq!(again[0], table::rule(rule_line(1, 1), None));
        assert_eq!(again[1..=ROWS], first[..ROWS]);
        assert_eq!(rules.get(15).map(|rule| rule.action), Some(8));
        let none = NoSuchRule { number: 28, room: 28 };
        assert_eq!(rules.get(28), None);
        assert_eq!(rules.clear(28), Err(none));
        assert_eq!(rules.set(28, Rule { pattern, action: 8, generation: 1 }), Err(none));
    }
}
