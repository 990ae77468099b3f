//! Both halves against the golden model (`ferric_model::switch::local`), under stalls and gaps, at both widths.

mod arrive;
mod depart;

use crate::msg::{Network, SentBy};
use crate::switch::testing::words;
use crate::tb::{Fields, Tb};
use ferric_model::switch::local as model;

/// Beats of frames on a stream that a test drives itself, by the names of its ports.
fn drive(tb: &mut Tb, stream: &str, beat: Option<(&[u8], bool)>, bytes: usize) {
    let (data, last) = beat.unwrap_or((&[], false));
    let mut all = data.to_vec();
    all.extend(tb.rng().bytes(bytes - data.len()));
    tb.set(&format!("{stream}$valid"), beat.is_some().into());
    tb.set_wide(&format!("{stream}$data"), &words(&all)[..]);
    tb.set(&format!("{stream}$keep"), if data.is_empty() { 0 } else { u64::MAX >> (64 - data.len()) });
    tb.set(&format!("{stream}$last"), last.into());
}

/// The beat that a stream shows: its bytes, and whether it is the last.
fn shown(tb: &Tb, stream: &str) -> Option<(Vec<u8>, bool)> {
    (tb.get(&format!("{stream}$valid")) == 1).then(|| {
        let bytes = tb.get(&format!("{stream}$keep")).trailing_ones() as usize;
        let data: Vec<u8> = tb.get_wide(&format!("{stream}$data")).iter().flat_map(|w| w.to_le_bytes()).collect();
        (data[..bytes].to_vec(), tb.get(&format!("{stream}$last")) == 1)
    })
}

fn packed(network: model::Network) -> Vec<u32> {
    Fields::of::<Network>().pack(&[("tunnel", network.tunnel.into()), ("function", network.function.into())])
}

/// Who has sent a frame: the function and the number of its network.
type Sender = (u16, u16);

fn packed_sender((function, number): Sender) -> Vec<u32> {
    Fields::of::<SentBy>().pack(&[("local", 1), ("function", function.into()), ("network", number.into())])
}

fn sender(tb: &Tb, port: &str) -> Option<Sender> {
    let words = tb.get_wide(port);
    let [local, function, number] = ["local", "function", "network"].map(|name| Fields::of::<SentBy>().get(&words, name) as u16);
    (local == 1).then_some((function, number))
}

fn network(tb: &Tb, port: &str) -> model::Network {
    let words = tb.get_wide(port);
    let [tunnel, function] = ["tunnel", "function"].map(|name| Fields::of::<Network>().get(&words, name) as u16);
    model::Network { tunnel: tunnel == 1, function }
}
