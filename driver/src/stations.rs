//! MAC addresses whose frames a function receives (docs/admin.md, SET_STATION). An address that the card answers for brings its own.
use crate::context::Context;
use crate::error::{Error, Result};
use crate::network::Station;
use crate::types::Mac;
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::StationCtx;
use ferric_abi::csr;

const TOO_MANY: &str = "a function has 4 MAC addresses, numbers 0 to 3; let several IP addresses share one";

impl Context {
    /// Frames to `mac` are received from now on, whatever they are: it is the function's MAC address `number`, 0 to 3. Packets of queue pairs do not need this (their path says for which MAC
    /// address they are), nor do the addresses of [`Context::set_address`], which bring theirs. Errors: a group's address, or one that another function or another number has (`InUse`).
    pub fn set_station(&self, number: u32, mac: Mac) -> Result<()> {
        if number >= csr::STATIONS {
            return Err(Error::Invalid(TOO_MANY));
        }
        let _turn = self.inner.network.turn();
        self.tell_station(number, Some(Station { mac, kept: true }))
    }

    /// MAC address `number` is none any more.
    pub fn clear_station(&self, number: u32) -> Result<()> {
        if number >= csr::STATIONS {
            return Err(Error::Invalid(TOO_MANY));
        }
        let _turn = self.inner.network.turn();
        self.tell_station(number, None)
    }

    /// The function's MAC addresses by number, as this context has set them.
    pub fn stations(&self) -> Vec<(u32, Mac)> {
        (0..).zip(self.inner.network.stations()).filter_map(|(number, s)| Some((number, s?.mac))).collect()
    }

    fn tell_station(&self, number: u32, station: Option<Station>) -> Result<()> {
        let line = station.map_or(StationCtx::default(), |s| StationCtx::default().with_mac(s.mac.number()).with_valid(true));
        let words = crate::admin::words::<2>(&line.0);
        self.inner.admin("set MAC address", AdminOpcode::SetStation, number, &words)?;
        self.inner.network.note_station(number, station);
        Ok(())
    }

    /// An address wants frames to `mac`. Gives the number that it got for that, if it had none. The caller has the turn.
    pub(crate) fn hear(&self, mac: Mac) -> Result<Option<u32>> {
        let all = self.inner.network.stations();
        if all.iter().flatten().any(|s| s.mac == mac) {
            return Ok(None);
        }
        let free = (0..).zip(all).find(|(_, s)| s.is_none()).map(|(number, _)| number).ok_or(Error::Invalid(TOO_MANY))?;
        self.tell_station(free, Some(Station { mac, kept: false })).map(|()| Some(free))
    }

    /// MAC addresses that came with an address and that none has any more go. The caller has the turn.
    pub(crate) fn leave(&self) -> Result<()> {
        let network = &self.inner.network;
        let wanted = network.all();
        for (number, station) in (0..).zip(network.stations()) {
            if station.is_some_and(|s| !s.kept && wanted.iter().all(|(_, own)| own.mac != s.mac)) {
                self.tell_station(number, None)?;
            }
        }
        Ok(())
    }
}
