//! The function by itself, with a guest of ours that can do what Linux never does. Linux' own ring code: model/tests/linux_rings.
mod coalesce;
mod guest;
mod hostile;
mod lend;
mod network;
mod offloads;
mod registers;
mod rings;
mod rss;
mod spread;
mod table;
