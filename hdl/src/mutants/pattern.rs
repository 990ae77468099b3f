//! The patterns that say where a defect goes: literal text with two wildcards.

use std::ops::Range;

/// One element of a pattern.
enum Item {
    Char(char),
    /// `#`: a run of hexadecimal digits (an offset into a record, which moves when a field is added).
    Digits,
    /// A space: any run of white space, line ends included.
    Space,
}

/// A parsed pattern. The part between two backticks is what gets replaced; without backticks it is the whole match.
pub struct Pattern {
    items: Vec<Item>,
    /// Items of the part that is replaced.
    part: Range<usize>,
}

impl Pattern {
    /// Reads a pattern. Errors: backticks that are not a pair, nothing to match.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let (mut items, mut ticks) = (Vec::new(), Vec::new());
        for c in text.chars() {
            match c {
                '`' => ticks.push(items.len()),
                '#' => items.push(Item::Digits),
                c if c.is_whitespace() => items.push(Item::Space),
                c => items.push(Item::Char(c)),
            }
        }
        let part = match ticks[..] {
            [] => 0..items.len(),
            [start, end] => start..end,
            _ => return Err(format!("`{text}` has {} backticks, not two", ticks.len())),
        };
        if items.is_empty() {
            return Err("an empty pattern".into());
        }
        Ok(Pattern { items, part })
    }

    /// The parts to be replaced, in order; matches do not overlap.
    pub fn find_all(&self, text: &str) -> Vec<Range<usize>> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < text.len() {
            match self.match_at(text, at) {
                Some((part, end)) => {
                    found.push(part);
                    at = end.max(at + 1);
                }
                None => at += text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        found
    }

    /// The replaced part and the end of a match that starts at `start`. A name that merely ends or goes on with the pattern is not a match.
    fn match_at(&self, text: &str, start: usize) -> Option<(Range<usize>, usize)> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let before = text[..start].chars().next_back();
        if before.is_some_and(word) && text[start..].starts_with(word) {
            return None;
        }
        let (mut at, mut part) = (start, start..start);
        for (n, item) in self.items.iter().enumerate() {
            if n == self.part.start {
                part.start = at;
            }
            let rest = &text[at..];
            at += match item {
                Item::Char(c) => rest.starts_with(*c).then_some(c.len_utf8())?,
                Item::Digits => run(rest, |c| c.is_ascii_hexdigit())?,
                Item::Space => run(rest, char::is_whitespace)?,
            };
            if n + 1 == self.part.end {
                part.end = at;
            }
        }
        if self.part.is_empty() {
            part.end = part.start;
        }
        let last = text[..at].chars().next_back();
        if last.is_some_and(word) && text[at..].starts_with(word) {
            return None;
        }
        Some((part, at))
    }
}

/// Length of the run of such characters at the start; `None` if there is none.
fn run(text: &str, is: impl Fn(char) -> bool) -> Option<usize> {
    let end = text.find(|c| !is(c)).unwrap_or(text.len());
    (end > 0).then_some(end)
}
