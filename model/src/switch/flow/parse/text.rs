//! A text and how far it has been read.
use super::{Error, Ports};

pub struct Text<'a> {
    whole: &'a str,
    at: usize,
    ports: &'a Ports,
}

/// A place in a text.
#[derive(Clone, Copy)]
pub struct Place(usize);

impl Place {
    /// Says that `wanted` was expected here.
    pub fn error(self, wanted: &str) -> Error {
        Error { at: self.0, what: format!("expected {wanted}") }
    }
}

impl<'a> Text<'a> {
    pub fn new(whole: &'a str, ports: &'a Ports) -> Self {
        Self { whole, at: 0, ports }
    }

    fn rest(&self) -> &'a str {
        &self.whole[self.at..]
    }

    pub fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    pub fn place(&self) -> Place {
        Place(self.whole[..self.at].chars().count() + 1)
    }

    pub fn error(&self, wanted: &str) -> Error {
        self.place().error(wanted)
    }

    pub fn sees(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    pub fn digit(&self) -> bool {
        self.rest().starts_with(|c: char| c.is_ascii_digit())
    }

    pub fn eat(&mut self, what: &str) -> bool {
        let there = self.sees(what);
        if there {
            self.at += what.len();
        }
        there
    }

    pub fn expect(&mut self, what: &str) -> Result<(), Error> {
        self.space();
        if self.eat(what) {
            Ok(())
        } else {
            Err(self.error(&format!("`{what}`")))
        }
    }

    pub fn expect_open(&mut self) -> Result<(), Error> {
        self.expect("(")
    }

    pub fn space(&mut self) {
        self.at = self.whole.len() - self.rest().trim_start().len();
    }

    /// The characters that `is` holds for, from here on.
    pub fn word_of(&mut self, is: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let end = rest.find(|c| !is(c)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    /// A name.
    pub fn word(&mut self) -> String {
        self.word_of(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// Everything up to the bracket that closes the one before.
    pub fn balanced(&mut self) -> Result<String, Error> {
        let (rest, mut open) = (self.rest(), 0usize);
        for (i, c) in rest.char_indices() {
            match c {
                '(' => open += 1,
                ')' if open == 0 => {
                    self.at += i;
                    return Ok(rest[..i].to_owned());
                }
                ')' => open -= 1,
                _ => {}
            }
        }
        self.at = self.whole.len();
        Err(self.error("`)`"))
    }

    /// A number, decimal or behind `0x` hexadecimal.
    pub fn number(&mut self) -> Option<u128> {
        if self.eat("0x") || self.eat("0X") {
            u128::from_str_radix(&self.word_of(|c| c.is_ascii_hexdigit()), 16).ok()
        } else {
            self.word_of(|c| c.is_ascii_digit()).parse().ok()
        }
    }

    pub fn mac(&mut self) -> Option<u128> {
        let word = self.word_of(|c| c.is_ascii_hexdigit() || c == ':');
        let bytes: Vec<&str> = word.split(':').collect();
        if bytes.len() != 6 {
            return None;
        }
        bytes.iter().try_fold(0, |v, b| u8::from_str_radix(b, 16).ok().map(|b| v << 8 | u128::from(b)))
    }

    pub fn ip4(&mut self) -> Option<u128> {
        let word = self.word_of(|c| c.is_ascii_digit() || c == '.');
        word.parse::<std::net::Ipv4Addr>().ok().map(|a| u32::from(a).into())
    }

    pub fn ip6(&mut self) -> Option<u128> {
        let word = self.word_of(|c| c.is_ascii_hexdigit() || c == ':' || c == '.');
        word.parse::<std::net::Ipv6Addr>().ok().map(u128::from)
    }

    /// The number of a port, or the name of one that is known.
    pub fn port(&mut self) -> Option<u128> {
        let word = self.word_of(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        self.named(&word).map(u128::from)
    }

    /// The port that `word` says, by number or name.
    pub fn named(&self, word: &str) -> Option<u32> {
        let number = word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
        number.or_else(|| self.ports.get(word).copied())
    }
}
