//! Open vSwitch as the judge of the flow switch's golden model (`ferric_model::switch`): the same tables and frames go to both, and the ports and the bytes of everything that
//! leaves have to be the same. See the README of this folder.
pub mod bridge;
pub mod diff;
pub mod frames;
pub mod openflow;
pub mod oracle;
pub mod rules;
pub mod server;
pub mod tables;
pub mod tally;
pub mod tunnels;

use bridge::Bridge;
use diff::{Difference, FlowTable};
use oracle::Oracle;
use rand::Rng;
use tally::Tally;

/// One random table with so many frames; the difference, if there is one. Every third table is one of datapath flows, the others are OpenFlow's.
pub fn case(oracle: &mut Oracle, frames: usize, rng: &mut impl Rng, tally: &mut Tally) -> Result<Option<Difference>, server::Error> {
    if rng.gen_ratio(1, 3) {
        let table = FlowTable::random(rng);
        let frames = table.frames(frames, rng);
        table.run(oracle, &frames, tally)
    } else {
        let table = Bridge::random(rng);
        let frames = table.frames(frames, rng);
        table.run(oracle, &frames, tally)
    }
}

/// A folder below the system's temporary one, deleted when this is dropped. It is not made here: who fills it wants it new.
pub struct Folder(std::path::PathBuf);

impl Folder {
    /// The folder called `name`, of this process.
    pub fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("ferric-ovs-{}-{name}", std::process::id())))
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Of a folder that was not made there is nothing to delete.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
