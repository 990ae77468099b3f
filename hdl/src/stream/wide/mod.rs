//! Between wide byte records and beats of `W` bits: [`WideToBeats`] and [`BeatsToWide`]. `N` (bits of the record) and
//! `W` are independent: the record may be narrower than a beat. `L` is log2(K) + 1.

mod from_beats;
mod to_beats;

pub use from_beats::BeatsToWide;
pub use to_beats::WideToBeats;
