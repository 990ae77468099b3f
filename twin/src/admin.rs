//! The admin engine: the microprogram's interpreter with the twin's tables, registers and host memory around it.
use crate::counters::{count, COUNTERS};
use crate::host::Host;
use crate::tables::{put_word, word as word_of};
use crate::Twin;
use ferric_abi::codes::QpState;
use ferric_abi::csr::{space, ADDRESSES, NEIGHBOUR_LINE, PORT_PROMISCUOUS, PORT_RAW};
use ferric_model::admin::interpreter::{Model, World};
use ferric_model::admin::isa::{notice, output};
use ferric_model::admin::program::{assemble, engines, Plan, Sizes, TableName};
use ferric_model::admin::{stats, word};

/// Ports of `Op::Error` that mean an error: of the requester, of the responder.
const REQUESTER: u32 = 0;
/// Words of a line of `space::ADDRESS`, and the one of a search whose writing begins it.
const ADDRESS_WORDS: u8 = 6;
const SEARCH_STATE: u8 = 5;
const QPN: u32 = 0xff_ffff;

/// The tables, by their numbers on the control bus. The last ones are of who is the end of tunnels.
const TABLES: [u8; 15] =
    [space::SQ, space::RQ, space::REQ, space::RSP, space::PATH, space::CQ, space::EQ, space::MR, space::STATS, space::MCAST, space::ADDRESS, space::STATION, space::PAUSE, space::TUNNEL, space::RAW];
/// So many of them are those of tunnels.
const OF_TUNNELS: usize = 2;

/// The engine with all commands that there are; those of tunnels if it is to have them.
pub(crate) fn engine(sizes: Sizes, tunnels: bool) -> Model {
    let own = if tunnels { engines::TUNNEL } else { &[] };
    let commands = engines::VERBS.iter().chain(engines::ROCE).chain(engines::ECHO).chain(engines::PAUSE).chain(own);
    let resets = [engines::reset_roce as fn(&mut _), engines::RESET_ECHO, engines::RESET_PAUSE, engines::RESET_TUNNEL];
    let kinds = resets.len() - usize::from(!tunnels);
    let plan = Plan::new(sizes, commands, resets.into_iter().take(kinds));
    Model::new(assemble(&plan.with_tables(TABLES.into_iter().take(TABLES.len() - if tunnels { 0 } else { OF_TUNNELS }).map(TableName::Known))))
}

/// What the engine reaches.
struct Around<'a> {
    twin: &'a mut Twin,
    host: &'a mut dyn Host,
    /// It has looked for a turn in vain.
    idle: bool,
}

impl Twin {
    /// Lets the admin engine work until nobody is to have a turn. Whether there was something to do.
    pub(crate) fn run_admin(&mut self, host: &mut dyn Host) -> bool {
        if self.registers.turn().is_none() {
            return false;
        }
        let Some(mut engine) = self.admin.take() else { return false };
        let mut around = Around { twin: self, host, idle: false };
        while !around.idle {
            engine.step(&mut around);
        }
        self.admin = Some(engine);
        true
    }

    fn address_word(&mut self, line: u32, word: u8, write: Option<u32>) -> Option<u32> {
        let functions = self.registers.functions() as u32;
        let search = line.checked_sub(NEIGHBOUR_LINE).filter(|f| *f < functions);
        let bytes: &mut [u8] = match search {
            Some(f) => &mut self.station.neighbours[f as usize].0,
            None if line < functions * ADDRESSES => &mut self.station.addresses[line as usize].0,
            None => return None,
        };
        if word >= ADDRESS_WORDS {
            return None;
        }
        let old = word_of(bytes, word);
        if let Some(value) = write {
            put_word(bytes, word, value);
            if let (Some(f), SEARCH_STATE) = (search, word) {
                if let Some(frame) = self.station.ask(f as usize) {
                    count!(self, 0, "echo.echo_asked");
                    self.emit_search(f as u16, frame);
                }
            }
        }
        Some(old)
    }

    fn statistic(&self, line: u32, word: u8) -> Option<u32> {
        let (function, counter) = ((line >> stats::FUNCTION_AT) as usize, (line % (1 << stats::FUNCTION_AT)) as usize);
        let own = self.counters.of(function, counter).filter(|_| counter < COUNTERS)?;
        let sum = if u32::from(word) < stats::TOTAL { own } else { self.counters.total(counter) };
        Some(if word & 1 == 0 { sum as u32 } else { (sum >> 32) as u32 })
    }
}

impl World for Around<'_> {
    fn control(&mut self, table: u8, line: u32, word: u8, write: Option<u32>) -> (u32, bool) {
        let Some(of) = TABLES.get(usize::from(table)).copied() else { return (0, true) };
        let old = match of {
            space::STATS => self.twin.statistic(line, word),
            space::ADDRESS => self.twin.address_word(line, word, write),
            _ => self.twin.tables.word(of, line, word),
        };
        let Some(old) = old else { return (0, true) };
        if let Some(value) = write.filter(|_| !matches!(of, space::STATS | space::ADDRESS)) {
            let before = (of == space::MR).then(|| self.twin.tables.mr[line as usize]);
            if let Some(bytes) = self.twin.tables.line(of, line) {
                put_word(bytes, word, value);
            }
            // A bound window that goes is taken from its region's count.
            if let Some(mr) = before.filter(|mr| mr.valid() && mr.window() && !self.twin.tables.mr[line as usize].valid()) {
                ferric_model::keys::count(&mut self.twin.tables.mr, mr.link(), -1);
            }
            self.twin.written(self.host, of, line, word);
        }
        (old, false)
    }

    fn register(&mut self, function: u32, number: u32) -> u32 {
        self.idle |= number == word::TURN && self.twin.registers.turn().is_none();
        self.twin.registers.look(function, number)
    }

    fn fetch(&mut self, function: u32, iova: u64) -> ([u32; 32], bool) {
        let mut bytes = [0; 128];
        let fine = self.twin.dma_read(self.host, function as u16, iova, &mut bytes);
        (std::array::from_fn(|n| word_of(&bytes, n as u8)), !fine)
    }

    fn write(&mut self, function: u32, iova: u64, line: [u32; 16]) -> bool {
        let mut bytes = [0; 64];
        line.iter().enumerate().for_each(|(n, word)| put_word(&mut bytes, n as u8, *word));
        !self.twin.dma_write(self.host, function as u16, iova, &bytes)
    }

    fn output(&mut self, function: u32, port: u32, value: u32) {
        match port {
            output::RAW_QUEUE => {
                self.twin.raw_qpn = (value & PORT_RAW != 0).then_some(value & QPN);
                self.twin.listening.promiscuous = value & PORT_RAW != 0 && value & PORT_PROMISCUOUS != 0;
            }
            output::RESET_DONE => self.twin.registers.reset_done(function),
            output::REFUSED => count!(self.twin, function as u16, "admin.refused"),
            output::SERVED => self.twin.registers.served(function),
            output::AGAIN => self.twin.registers.again(function),
            // There is no cache of translations.
            _ => {}
        }
    }

    fn error(&mut self, port: u32, qpn: u32, epoch: u8) {
        match port {
            notice::DRAIN | notice::RESUME | notice::SQ_RECOVERED => self.twin.redirect(self.host, qpn, port),
            notice::LIFE => self.twin.new_life(qpn),
            REQUESTER => self.twin.requester_error(self.host, qpn, crate::CAUSE_ADMIN),
            _ => self.twin.responder_error(self.host, qpn, Some(epoch), crate::CAUSE_ADMIN),
        }
    }

    // Nothing is ever on its way when a command executes.
    fn barrier(&mut self) {}
    fn quiesce(&mut self, _writes: bool) {}
}

impl Twin {
    /// Word `word` of a line has been written over the control bus: what follows from it.
    fn written(&mut self, host: &mut dyn Host, of: u8, line: u32, word: u8) {
        let n = line as usize;
        match (of, word) {
            (space::REQ, 0) if self.tables.req[n].state() == QpState::Reset as u8 => self.requesters[n].clear(),
            (space::RSP, 0) if self.tables.rsp[n].state() == QpState::Reset as u8 => self.responders[n].clear(),
            (space::RQ, 2 | 5) => self.limit(host, line),
            (space::STATION, _) => {
                let own = &self.tables.station[n];
                let bytes = own.mac().to_be_bytes();
                self.listening.own[n] = own.valid().then(|| std::array::from_fn(|i| bytes[2 + i]));
            }
            _ => {}
        }
    }
}
