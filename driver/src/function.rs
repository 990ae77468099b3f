//! An open function of a card, as its objects hold it: found by its registers, spoken to by admin commands.
use crate::admin::{AdminQueue, Answer, Command, Ticket};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ids::{range, Ids};
use crate::lives::QpTable;
use crate::network::Network;
use crate::types::Capabilities;
use ferric_abi::codes::{AdminOpcode, AdminStatus, ObjectKind};
use ferric_abi::{csr, special};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) struct Inner {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) caps: Capabilities,
    admin: Mutex<AdminQueue>,
    pub(crate) pd_ids: Ids,
    pub(crate) mr_ids: Ids,
    pub(crate) cq_ids: Ids,
    pub(crate) qp_ids: Ids,
    pub(crate) eq_ids: Ids,
    pub(crate) srq_ids: Ids,
    pub(crate) qps: QpTable,
    pub(crate) network: Network,
    /// Queue pairs of the whole card: shared receive queues have the receive rings behind theirs.
    pub(crate) all_qps: u32,
    /// Number of the function's special queue pair.
    pub(crate) gsi: u32,
}

impl Inner {
    /// The card has the feature of this bit of CAPS3.
    pub(crate) fn has(&self, feature: u32) -> bool {
        self.caps.features >> feature & 1 == 1
    }

    /// Discovers the card behind `device`, starts its admin queue and asks which object numbers are the function's.
    pub(crate) fn open(device: Arc<dyn Device>) -> Result<Self> {
        let magic = device.read32(csr::MAGIC);
        if magic != csr::MAGIC_VALUE {
            return Err(Error::NotFerric(magic));
        }
        let version = device.read32(csr::VERSION);
        if version >> 16 != csr::VERSION_VALUE >> 16 {
            return Err(Error::Version { card: version, driver: csr::VERSION_VALUE });
        }
        let [c0, c1, c2, c3] = [csr::CAPS0, csr::CAPS1, csr::CAPS2, csr::CAPS3].map(|r| device.read32(r));
        let byte = |w: u32, n: u32| w >> (8 * n) & 0xff;
        // A card that has stopped answering reads all ones.
        if [c0, c1, c2, c3].contains(&u32::MAX) || [byte(c0, 0), byte(c0, 1), byte(c0, 2), byte(c0, 3), byte(c1, 0), byte(c1, 1)].iter().any(|log| *log > 24) {
            return Err(Error::Gone);
        }
        let logs = [byte(c0, 0), byte(c0, 1), byte(c0, 2), byte(c0, 3), byte(c1, 0), byte(c0, 0)];
        let mut admin = AdminQueue::new(&device)?;
        let (ranges, function) = match admin.execute("query ranges", AdminOpcode::QueryRanges, 0, &[0]) {
            Ok(words) => (std::array::from_fn(|kind| range(words[kind]).0), words[logs.len()]),
            // A card of one function.
            Err(Error::Admin { status: AdminStatus::BadOpcode, .. }) => (logs.map(|log| 0..1 << log), 0),
            Err(e) => return Err(e),
        };
        let [qps, cqs, mrs, pds, eqs, srqs] = &ranges;
        let caps = Capabilities {
            version,
            qps: qps.len() as u32,
            cqs: cqs.len() as u32,
            mrs: mrs.len() as u32,
            pds: pds.len() as u32,
            eqs: eqs.len() as u32,
            function,
            functions: 1 << byte(c1, 1),
            width: byte(c1, 2),
            max_sge: byte(c2, 0),
            max_inline: c2 >> 8 & 0xffff,
            features: c3,
        };
        log::info!("Ferric card: {caps:?}");
        let log_share = logs[0].saturating_sub(byte(c1, 1));
        let from = |first: u32, range: &Range<u32>| range.start.max(first)..range.end;
        Ok(Self {
            admin: Mutex::new(admin),
            pd_ids: Ids::new("protection domains", ObjectKind::Pd, from(1, pds)),
            // Key 0 is never handed out, so that a zeroed key is refused.
            mr_ids: Ids::new("memory regions", ObjectKind::Mr, from(1, mrs)),
            cq_ids: Ids::new("completion queues", ObjectKind::Cq, cqs.clone()),
            // Queue pair 0 is a management one of IBTA; the other one has a number of its own in each function's share.
            qp_ids: Ids::of_queue_pairs(from(1, qps), log_share),
            eq_ids: Ids::new("event queues", ObjectKind::Eq, eqs.clone()),
            srq_ids: Ids::new("shared receive queues", ObjectKind::Srq, if c3 >> csr::FEATURE_SRQ & 1 == 1 { srqs.clone() } else { 0..0 }),
            qps: QpTable::new(1 << logs[0])?,
            network: Network::default(),
            all_qps: 1 << logs[0],
            gsi: special::special_queue_pair(function, log_share),
            caps,
            device,
        })
    }

    fn queue(&self) -> MutexGuard<'_, AdminQueue> {
        self.admin.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn admin(&self, what: &'static str, opcode: AdminOpcode, id: u32, params: &[u32]) -> Result<Answer> {
        self.queue().execute(what, opcode, id, params)
    }

    /// Posts commands, in this order, and rings once for all that the ring has room for. Each ticket wants a [`Self::answer`].
    pub(crate) fn post<'a>(&self, commands: impl Iterator<Item = &'a Command>) -> Vec<Result<Ticket>> {
        let mut queue = self.queue();
        let tickets = commands.map(|command| queue.post(command)).collect();
        queue.ring();
        tickets
    }

    /// Waits for the answer of a posted command.
    pub(crate) fn answer(&self, ticket: Result<Ticket>) -> Result<Answer> {
        self.queue().take(ticket?)
    }

    /// What other functions have of the numbers of a kind and make use of.
    fn theirs(&self, kind: ObjectKind) -> Result<Vec<Range<u32>>> {
        let mut theirs = Vec::new();
        for function in 1..self.caps.functions {
            let words = self.admin("query ranges", AdminOpcode::QueryRanges, function, &[1])?;
            let (numbers, used) = range(words[kind as usize]);
            if used {
                theirs.push(numbers);
            }
        }
        Ok(theirs)
    }

    /// Sets the numbers aside that other functions have. False: `id` is none of theirs, or the card does not say.
    fn sort(&self, ids: &Ids, id: u32) -> bool {
        self.theirs(ids.kind).is_ok_and(|theirs| {
            ids.sort(&theirs);
            theirs.iter().any(|r| r.contains(&id))
        })
    }

    /// A number that another function has not any more.
    fn take_back(&self, ids: &Ids) -> Option<u32> {
        if self.caps.function != 0 || !ids.has_lent() {
            return None;
        }
        ids.sort(&self.theirs(ids.kind).ok()?);
        ids.take()
    }

    /// Makes an object and gives its number. A number that another function's object has, or that has come into another's range, is passed over.
    pub(crate) fn create(&self, what: &'static str, opcode: AdminOpcode, ids: &Ids, params: &[u32]) -> Result<u32> {
        let mut passed = Vec::new();
        let physical = self.caps.function == 0;
        let made = loop {
            let Some(id) = ids.take().or_else(|| self.take_back(ids)) else { break Err(Error::Exhausted(ids.what)) };
            match self.admin(what, opcode, id, params) {
                Ok(_) => break Ok(id),
                Err(Error::Admin { status: AdminStatus::BadState, .. }) => passed.push(id),
                Err(e) => {
                    ids.give(id);
                    let refused = physical && matches!(e, Error::Admin { status: AdminStatus::BadId, .. });
                    if !refused || !self.sort(ids, id) {
                        break Err(e);
                    }
                }
            }
        };
        passed.into_iter().for_each(|id| ids.give(id));
        made
    }

    /// Destroys an object from a `drop`: there is nobody to tell but the log.
    pub(crate) fn destroy(&self, what: &'static str, opcode: AdminOpcode, id: u32, ids: &Ids) {
        self.destroy_then(what, opcode, id, ids, || ());
    }

    /// Destroys an object that may be in use: then it stays as it was.
    pub(crate) fn try_destroy(&self, what: &'static str, opcode: AdminOpcode, id: u32, ids: &Ids) -> Result<()> {
        match self.admin(what, opcode, id, &[]) {
            Ok(_) => {
                ids.give(id);
                Ok(())
            }
            Err(Error::Gone) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// As [`Inner::destroy`]; `gone` is called when the card has let go of the object, before another can have its number.
    pub(crate) fn destroy_then(&self, what: &'static str, opcode: AdminOpcode, id: u32, ids: &Ids, gone: impl FnOnce()) {
        match self.admin(what, opcode, id, &[]) {
            Ok(_) => {
                gone();
                ids.give(id);
            }
            // With the card everything on it has gone; it has been said once.
            Err(Error::Gone) => log::debug!("{what} {id}: the card is gone"),
            // The number stays taken: the card may still use the object.
            Err(e) => log::warn!("{what} {id}: {e}"),
        }
    }
}

pub(crate) struct PdInner {
    pub(crate) ctx: Arc<Inner>,
    pub(crate) id: u32,
}

impl Drop for PdInner {
    fn drop(&mut self) {
        self.ctx.destroy("destroy PD", AdminOpcode::DestroyPd, self.id, &self.ctx.pd_ids);
    }
}
