//! The golden model: what the verbs of IBTA volume 1 (9.7, 9.8, 10.7, 10.8) say a script may and must come to. It knows no packet.
use super::program::{Crime, Verb};
use super::script::{Act, Script, WORD};
use ferric_driver::types::{CqeOpcode, CqeStatus, QpType};
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::Completion;

/// What the cards did with a script. `wr_id` is the number of the act, of requests and receives.
pub struct Observed {
    pub sent: Vec<Completion>,
    pub received: Vec<Completion>,
    /// Memory of both sides, after.
    pub after: [Vec<u8>; 2],
    /// The word of the other side as it was when a completion of the sender and of a receive was seen: `wr_id` and value.
    pub words: [Vec<(u64, u64)>; 2],
    /// Key of the window.
    pub window: u32,
}

/// Memory of which some bytes may hold what they held before or something else.
struct Memory {
    want: Vec<u8>,
    /// Other values allowed, by offset.
    also: Vec<Vec<u8>>,
    /// Anything is allowed.
    free: Vec<bool>,
}

impl Memory {
    fn new(before: &[u8]) -> Self {
        Self { want: before.to_vec(), also: vec![Vec::new(); before.len()], free: vec![false; before.len()] }
    }
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.want[at..at + bytes.len()].copy_from_slice(bytes);
    }
    /// `bytes` may have been put, in part.
    fn may_put(&mut self, at: usize, bytes: &[u8]) {
        for (i, b) in bytes.iter().enumerate() {
            self.also[at + i].push(*b);
        }
    }
    fn may_be_anything(&mut self, at: usize, len: usize) {
        self.free[at..at + len].fill(true);
    }
    fn judge(&self, after: &[u8], side: &str) -> Result<(), String> {
        for (i, got) in after.iter().enumerate() {
            if *got != self.want[i] && !self.also[i].contains(got) && !self.free[i] {
                return Err(format!("{side}, offset {i}: {got:#04x}, not {:#04x}", self.want[i]));
            }
        }
        Ok(())
    }
}

/// Status of the request that commits a crime (IBTA 9.9.3, 10.7.3, 11.6.2).
fn verdict(crime: Option<Crime>) -> CqeStatus {
    match crime {
        None => CqeStatus::Success,
        Some(Crime::Key | Crime::Bounds | Crime::Right | Crime::Gone) => CqeStatus::RemoteAccess,
        Some(Crime::Odd | Crime::Short) => CqeStatus::RemoteInvalidRequest,
        Some(Crime::LocalKey | Crime::LocalBounds) => CqeStatus::LocalProtection,
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[WORD..WORD + 8].try_into().expect("8 bytes"))
}

/// What an atomic, or a WRITE of the word, leaves behind.
fn exchanged(script: &Script, act: &Act, old: u64) -> u64 {
    match act.op.verb {
        Verb::Put | Verb::Store => word(script.payload(act)),
        Verb::FetchAdd => old.wrapping_add(act.operand),
        Verb::CompareSwap { hit: true } => act.operand,
        _ => old,
    }
}

/// Values of the word in front of every atomic, if each is executed once and in order: what `CompareSwap` has to compare with.
pub fn words(script: &Script) -> Vec<u64> {
    let mut value = word(&script.before[1]);
    script
        .acts
        .iter()
        .map(|act| {
            let old = value;
            // What the peer refuses has no effect; what only its bringer may not keep has.
            if act.op.verb.on_word() && act.op.crime.is_none_or(|c| c.is_local() && act.op.verb.asks()) {
                value = exchanged(script, act, old);
            }
            old
        })
        .collect()
}

/// Compares what was seen with what may be.
pub fn judge(script: &Script, faults: bool, seen: &Observed) -> Result<(), String> {
    match script.transport {
        QpType::Rc => reliable(script, faults, seen),
        _ => unreliable(script, faults, seen),
    }
}

fn opcode(verb: Verb) -> CqeOpcode {
    match verb {
        Verb::Send => CqeOpcode::Send,
        Verb::SendImm => CqeOpcode::SendImm,
        Verb::SendInv => CqeOpcode::SendInv,
        Verb::Write | Verb::Put => CqeOpcode::Write,
        Verb::WriteImm => CqeOpcode::WriteImm,
        Verb::Store => CqeOpcode::AtomicWrite,
        Verb::Flush => CqeOpcode::Flush,
        Verb::Read => CqeOpcode::Read,
        Verb::FetchAdd => CqeOpcode::FetchAdd,
        Verb::CompareSwap { .. } => CqeOpcode::CompareSwap,
    }
}

fn receipt(script: &Script, act: &Act, window: u32, c: &Completion) -> Result<(), String> {
    let kind = match act.op.verb {
        Verb::Send | Verb::SendInv => CqeOpcode::Recv,
        Verb::SendImm => CqeOpcode::RecvImm,
        _ => CqeOpcode::RecvWriteImm,
    };
    let grh = script.transport == QpType::Ud;
    let want = (kind, act.op.len + if grh { GRH_BYTES } else { 0 }, act.op.verb.has_imm().then_some(act.imm), act.op.solicited, grh, (act.op.verb == Verb::SendInv).then_some(window));
    let got = (c.opcode, c.byte_len as usize, c.imm, c.solicited, c.grh, c.invalidated);
    if got == want {
        Ok(())
    } else {
        Err(format!("receive {}: {got:?}, not {want:?}", c.wr_id))
    }
}

/// Where a script ends, if it does: number and crime of the first request that breaks a rule.
fn end(script: &Script) -> Option<(usize, &Act, Crime)> {
    script.acts.iter().enumerate().find_map(|(n, act)| Some((n, act, act.op.crime?)))
}

fn reliable(script: &Script, faults: bool, seen: &Observed) -> Result<(), String> {
    let end = end(script);
    let at = end.map_or(script.acts.len(), |e| e.0);
    // A peer that has refused a request answers nothing any more: when its refusal is lost, so is every answer that was lost before.
    let silent = seen.sent.iter().find(|c| c.status == CqeStatus::RetryExceeded).map(|c| c.wr_id as usize);
    // Behind a request whose answer could not be kept others may have been on their way, one that the peer refuses among them.
    let tail = end.is_some_and(|(_, act, crime)| act.op.verb.asks() && crime.is_local());
    let refuses = |act: &Act| act.op.crime.is_some_and(|crime| !crime.is_local());
    let refused = script.acts[at..].iter().take(if tail { usize::MAX } else { 1 }).any(refuses);
    let silent = silent.filter(|n| faults && *n <= at && refused);
    let (mut home, mut away) = (Memory::new(&script.before[0]), Memory::new(&script.before[1]));
    let (mut sent, mut received) = (seen.sent.iter(), seen.received.iter().peekable());
    for (n, act) in script.acts.iter().enumerate() {
        let (number, crime) = (n as u64, act.op.crime);
        let (whole, last, perhaps) = (n < at, n == at, n > at && tail);
        let status = match silent {
            Some(k) if n == k => CqeStatus::RetryExceeded,
            Some(k) if n > k => CqeStatus::WrFlush,
            _ if n > at => CqeStatus::WrFlush,
            _ => verdict(crime),
        };
        if act.op.signaled || status != CqeStatus::Success {
            match sent.next() {
                Some(c) if (c.wr_id, c.status) == (number, status) && (status != CqeStatus::Success || c.opcode == opcode(act.op.verb)) => {}
                other => return Err(format!("request {n} ends with {other:?}, not {status:?}")),
            }
        }
        let short = crime == Some(Crime::Short) && (last || perhaps);
        if act.receive.is_some() {
            let want = match received.peek().map(|c| c.status) {
                _ if whole => CqeStatus::Success,
                _ if last && short => CqeStatus::LocalLength,
                Some(CqeStatus::Success) if perhaps && crime.is_none() => CqeStatus::Success,
                Some(CqeStatus::LocalLength) if short => CqeStatus::LocalLength,
                _ => CqeStatus::WrFlush,
            };
            match received.next() {
                Some(c) if (c.wr_id, c.status) == (number, want) => {
                    if want == CqeStatus::Success {
                        receipt(script, act, seen.window, c)?;
                    }
                }
                other => return Err(format!("receive {n} ends with {other:?}, not {want:?}")),
            }
        }
        let local = last && crime.is_some_and(Crime::is_local);
        let verb = act.op.verb;
        if verb == Verb::Flush {
            // What was written before is there anyway, as `in_order` looks at it.
        } else if verb.asks() {
            let old = word(&away.want);
            match status {
                CqeStatus::Success if verb == Verb::Read => home.put(act.local, &away.want[act.remote..act.remote + act.op.len]),
                CqeStatus::Success => home.put(act.local, &old.to_le_bytes()),
                // In part, and no further than the region.
                _ if whole || local || perhaps => home.may_be_anything(act.local, act.op.len),
                _ => {}
            }
            if verb.is_atomic() && (whole || local) {
                away.put(WORD, &exchanged(script, act, old).to_le_bytes());
            } else if verb.is_atomic() && perhaps && crime.is_none_or(Crime::is_local) {
                away.may_be_anything(WORD, 8);
            }
        } else if whole {
            away.put(act.remote, script.payload(act));
        } else if short {
            away.may_put(act.remote, &script.payload(act)[..act.op.len - 1]);
        } else if local || (perhaps && crime.is_some_and(Crime::is_local)) {
            // From wherever the list points, up to what it must not touch.
            away.may_be_anything(act.remote, act.op.len);
        } else if perhaps && crime.is_none() {
            away.may_put(act.remote, script.payload(act));
        }
    }
    if let Some(c) = sent.next().or(received.next()) {
        return Err(format!("a completion too many: {c:?}"));
    }
    in_order(script, seen)?;
    home.judge(&seen.after[0], "memory of the sender")?;
    away.judge(&seen.after[1], "memory of the receiver")
}

/// When something is complete, the word shows that everything up to it has been executed, in this order (IBTA 9.5): it is as one of the requests from this one on leaves it.
fn in_order(script: &Script, seen: &Observed) -> Result<(), String> {
    // What ends in the midst of the word may leave anything there.
    if end(script).is_some_and(|(at, ..)| script.acts[at..].iter().any(|act| act.op.verb.on_word() && act.op.crime.is_none_or(Crime::is_local))) {
        return Ok(());
    }
    // The word behind each request: what the next one finds, and what there is in the end.
    let mut after = words(script);
    after.push(word(&seen.after[1]));
    for (side, words) in ["request", "receive"].into_iter().zip(&seen.words) {
        for (at, value) in words {
            let may = &after[*at as usize + 1..];
            if !may.contains(value) {
                return Err(format!("{side} {at} is complete, and the word is {value:#x}, none of {may:x?}"));
            }
        }
    }
    Ok(())
}

/// A receive's memory holds what `act` has sent. `buffer` is the act that the receive was posted for: where that is a WRITE with immediate, it writes to the same memory,
/// and on a bad wire another message may have taken the receive before.
fn lies(script: &Script, faults: bool, buffer: &Act, act: &Act, held: &[u8]) -> bool {
    let payload = script.payload(act);
    let over = if faults && buffer.op.verb == Verb::WriteImm { script.payload(buffer) } else { &[] };
    held.len() == payload.len() && held.iter().zip(payload).enumerate().all(|(i, (got, sent))| got == sent || over.get(i) == Some(got))
}

/// UC and UD: on a bad wire whole messages may be lost, and come twice or late: a first or only packet starts a message whatever its PSN
/// (IBTA 9.8.2.2). Nothing else.
fn unreliable(script: &Script, faults: bool, seen: &Observed) -> Result<(), String> {
    let mut sent = seen.sent.iter();
    for (n, act) in script.acts.iter().enumerate().filter(|(_, act)| act.op.signaled) {
        match sent.next() {
            Some(c) if (c.wr_id, c.status, c.opcode) == (n as u64, CqeStatus::Success, opcode(act.op.verb)) => {}
            other => return Err(format!("request {n} ends with {other:?}")),
        }
    }
    if let Some(c) = sent.next() {
        return Err(format!("a completion too many: {c:?}"));
    }
    let grh = if script.transport == QpType::Ud { GRH_BYTES } else { 0 };
    let mut away = Memory::new(&script.before[1]);
    let buffers: Vec<&Act> = script.acts.iter().filter(|a| a.receive.is_some()).collect();
    if seen.received.len() != buffers.len() {
        return Err(format!("{} receives of {} have ended", seen.received.len(), buffers.len()));
    }
    // Messages that have arrived, by number; receives are used in order, whatever comes.
    let (mut came, mut from, mut ended) = (vec![0; script.acts.len()], 0, false);
    for (buffer, c) in buffers.iter().zip(&seen.received) {
        if script.acts[c.wr_id as usize].remote != buffer.remote {
            return Err(format!("receive {} out of turn", c.wr_id));
        }
        ended |= c.status != CqeStatus::Success;
        let room = buffer.receive.expect("it is a receive");
        if ended {
            if c.status != CqeStatus::WrFlush {
                return Err(format!("behind a receive that nothing came for: {c:?}"));
            }
            // A message that broke off may have left its beginning.
            if faults {
                away.may_be_anything(buffer.remote, room);
            }
            continue;
        }
        let lies = |act: &Act| !act.op.verb.sends() || lies(script, faults, buffer, act, &seen.after[1][buffer.remote + grh..][..act.op.len.min(room - grh.min(room))]);
        let fits = |n: &usize| {
            let act = &script.acts[*n];
            act.op.verb.consumes() && (faults || *n >= from) && receipt(script, act, seen.window, c).is_ok() && lies(act)
        };
        let Some(n) = (0..script.acts.len()).filter(fits).min_by_key(|n| came[*n]) else { return Err(format!("nobody sent what receive {} holds: {c:?}", c.wr_id)) };
        came[n] += 1;
        from = n + 1;
        let act = &script.acts[n];
        if act.op.verb.sends() {
            away.put(buffer.remote + grh, script.payload(act));
            away.may_be_anything(buffer.remote, grh);
        }
        if faults {
            away.may_be_anything(buffer.remote, room);
        }
    }
    for (n, act) in script.acts.iter().enumerate() {
        let arrives = !faults || came[n] > 0;
        match act.op.verb {
            Verb::Write | Verb::WriteImm if arrives => away.put(act.remote, script.payload(act)),
            Verb::Write | Verb::WriteImm => away.may_put(act.remote, script.payload(act)),
            _ => {}
        }
        if act.op.verb.consumes() && (!faults && came[n] != 1 || came[n] > 2) {
            return Err(format!("message {n} came {} times", came[n]));
        }
    }
    Memory::new(&script.before[0]).judge(&seen.after[0], "memory of the sender")?;
    away.judge(&seen.after[1], "memory of the receiver")
}

#[cfg(test)]
mod tests {
    use super::super::program::{Connection, End, Op};
    use super::*;
    use ferric_driver::types::Mtu;

    fn op(verb: Verb, len: usize, crime: Option<Crime>) -> Op {
        Op { verb, len, entries: 1, inline: false, signaled: true, solicited: false, fence: false, reads_back: false, through: false, late: false, crime, data: len as u64 + 1 }
    }

    fn script(transport: QpType, ops: Vec<Op>) -> Script {
        Script::new(&Connection { transport, mtu: Mtu::M1024, v6: false, vlan: false, from: 0, psn: [0, 0], end: End::Stays, ops })
    }

    fn end(n: usize, status: CqeStatus, opcode: CqeOpcode) -> Completion {
        Completion {
            wr_id: n as u64,
            status,
            opcode,
            qpn: 0,
            is_recv: false,
            byte_len: 0,
            imm: None,
            invalidated: None,
            solicited: false,
            timestamp: 0,
            src_qp: 0,
            grh: false,
            pkey_index: 0,
            syndrome: 0,
        }
    }

    fn seen(script: &Script, sent: Vec<Completion>, received: Vec<Completion>) -> Observed {
        Observed { sent, received, after: script.before.clone(), words: Default::default(), window: 0 }
    }

    /// A SEND that came twice has taken the receive of a WRITE with immediate, which wrote to the same memory.
    #[test]
    fn a_write_may_lie_over_a_message_that_came_twice() {
        let script = script(QpType::Uc, vec![op(Verb::Send, 100, None), op(Verb::WriteImm, 13, None)]);
        let [send, write] = &script.acts[..] else { unreachable!() };
        let received = [0, 1].map(|n| Completion { byte_len: 100, is_recv: true, ..end(n, CqeStatus::Success, CqeOpcode::Recv) });
        let sent = vec![end(0, CqeStatus::Success, CqeOpcode::Send), end(1, CqeStatus::Success, CqeOpcode::WriteImm)];
        let mut seen = seen(&script, sent, received.to_vec());
        for act in [send, write] {
            seen.after[1][act.remote..act.remote + 100].copy_from_slice(script.payload(send));
        }
        seen.after[1][write.remote..write.remote + 13].copy_from_slice(script.payload(write));
        assert_eq!(judge(&script, true, &seen), Ok(()));
        // Nothing else may.
        seen.after[1][write.remote + 13] ^= 1;
        assert!(judge(&script, true, &seen).is_err());
    }

    /// A peer that has refused a later request answers nothing any more, an earlier atomic whose result was lost included.
    #[test]
    fn a_lost_answer_behind_which_the_peer_has_refused_a_request_is_not_given_again() {
        for (crime, fine) in [(Some(Crime::Key), true), (None, false)] {
            let script = script(QpType::Rc, vec![op(Verb::FetchAdd, 8, Some(Crime::LocalBounds)), op(Verb::Write, 57, crime)]);
            let sent = vec![end(0, CqeStatus::RetryExceeded, CqeOpcode::Send), end(1, CqeStatus::WrFlush, CqeOpcode::Send)];
            let mut seen = seen(&script, sent, vec![]);
            let sum = word(&script.before[1]).wrapping_add(script.acts[0].operand);
            seen.after[1][WORD..WORD + 8].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(judge(&script, true, &seen).is_ok(), fine);
        }
    }
}
