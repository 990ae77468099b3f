//! Open vSwitch as the judge of the flow switch's golden model (`ferric_model::switch`): the same tables and frames go to both, and the ports and the bytes of everything that
//! leaves have to be the same. See the README of this folder.
pub mod diff;
pub mod frames;
pub mod oracle;
pub mod server;
pub mod tables;
pub mod tally;
