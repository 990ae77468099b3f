//! Sending: a queue pair's next packet.
use crate::counters::count;
use crate::host::Host;
use crate::memory::Fault;
use crate::requester::{Request, HALF, PSN};
use crate::Twin;
use ferric_abi::codes::{CqeStatus, QpState, QpType, WrOpcode};
use ferric_abi::context::{MrCtx, PathCtx, ReqCtx};
use ferric_abi::host::WqeHead;
use ferric_abi::wire::{pmtu, ICRC_BYTES};
use ferric_model::keys::{bind, invalidate, register, Asker};
use ferric_model::net::icrc::seal;
use ferric_model::roce::header::{put_header, Op};
use ferric_model::roce::requester::{packet, packet_count, WorkRequest, ASK_EVERY, TRACKED, WINDOW};

/// Room for headers and ICRC of any packet.
const AROUND: usize = 128;
/// PSNs of a READ that is sent alone.
const LONG_READ: u32 = 1 << 22;

/// What became of an attempt to send.
enum Went {
    /// Something was done: try again.
    On,
    /// Nothing can be done now.
    Nothing,
}

impl Twin {
    /// Sends up to `packets` packets. True: there may be more to send.
    pub(crate) fn send_turn(&mut self, host: &mut dyn Host, qpn: u32, packets: usize) -> bool {
        self.ahead.forget();
        (0..packets).all(|sent| {
            self.ahead.may_send(packets - sent);
            matches!(self.send_next(host, qpn), Went::On)
        })
    }

    fn send_next(&mut self, host: &mut dyn Host, qpn: u32) -> Went {
        let n = qpn as usize;
        let (req, ring) = (self.tables.req[n], self.tables.sq[n]);
        let index = req.next_index();
        let past_error = req.error_pending() && index.wrapping_sub(req.error_index()) as i16 >= 0;
        if !self.is_live(qpn) || req.rnr_wait() || past_error || !ring.valid() || ring.parked() || index == ring.producer() {
            return Went::Nothing;
        }
        let fresh = index == req.sent_index();
        if fresh && req.state() == QpState::Sqd as u8 {
            return Went::Nothing;
        }
        let place = usize::from(index.wrapping_sub(req.una_index()));
        if place == self.requesters[n].work.len() {
            let slot = match self.requesters[n].direct(index) {
                Some(slot) => slot,
                None => self.fetch_send(host, qpn, index),
            };
            count!(self, 0, "sq.sq_offered");
            self.requesters[n].work.push_back(Request::new(slot, &req));
        }
        if fresh {
            if let Some(went) = self.begin(host, qpn, &req, index, place) {
                return went;
            }
        }
        if req.next_psn().wrapping_sub(req.una_psn()) & PSN >= WINDOW {
            return Went::Nothing;
        }
        self.send_packet(host, qpn, &req, place, fresh)
    }

    /// A request whose turn comes for the first time. `None`: its first packet may go.
    fn begin(&mut self, host: &mut dyn Host, qpn: u32, req: &ReqCtx, index: u16, place: usize) -> Option<Went> {
        let r = &self.requesters[qpn as usize].work[place];
        if let Some(status) = r.refused {
            self.local_error(host, qpn, index, status);
            return Some(Went::Nothing);
        }
        let request = r.request.clone()?;
        let outstanding = index.wrapping_sub(req.una_index());
        let waits = outstanding >= TRACKED
            || request.fence && req.rd_out() > 0 && request.opcode != WrOpcode::Nop
            // An answer is in memory at once: what is not completed is not answered, and `rd_open` is not needed.
            || request.asks() && req.rd_out() >= req.max_rd_atomic()
            || request.opcode == WrOpcode::LocalInv && outstanding > 0;
        if waits {
            return Some(Went::Nothing);
        }
        if request.asks() && packet_count(QpType::Rc, request.length, pmtu::bytes(req.pmtu()) as u32) >= LONG_READ && req.next_psn() != req.una_psn() {
            return Some(Went::Nothing);
        }
        if request.opcode != WrOpcode::Nop && !request.is_local() {
            return None;
        }
        if request.is_local() && self.operate(qpn, req, &request, place) != 0 {
            self.local_error(host, qpn, index, CqeStatus::MwBind);
            return Some(Went::Nothing);
        }
        let work = &mut self.requesters[qpn as usize].work[place];
        (work.first_psn, work.psns) = (req.next_psn(), 0);
        self.tables.req[qpn as usize].set_sent_index(index.wrapping_add(1));
        self.go_to(qpn, index.wrapping_add(1));
        self.retire(host, qpn);
        Some(Went::On)
    }

    /// Executes a local operation; its `key_status`.
    fn operate(&mut self, qpn: u32, req: &ReqCtx, request: &WorkRequest, place: usize) -> u8 {
        let by = Asker { pd: req.pd(), function: req.function(), qpn };
        let slot = &self.requesters[qpn as usize].work[place].slot;
        let part = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| slot.bytes[WqeHead::BYTES + at + i]));
        let rights = MrCtx::default()
            .with_local_write(request.imm >> 1 & 1 == 1)
            .with_remote_write(request.imm >> 2 & 1 == 1)
            .with_remote_read(request.imm >> 3 & 1 == 1)
            .with_remote_atomic(request.imm >> 4 & 1 == 1)
            .with_start(request.raddr)
            .with_length(part(8));
        let (part_of_region, table) = (rights.length() != 0, part(0));
        let regions = &mut self.tables.mr;
        let status = match request.opcode {
            WrOpcode::LocalInv => invalidate(regions, request.imm, by, false),
            WrOpcode::RegMr => register(regions, request.rkey, by, &rights.with_page_size((request.imm >> 5 & 3) as u8).with_table(table)),
            _ => bind(regions, request.rkey, table as u32, by, &rights),
        };
        match (status, request.opcode) {
            (0, WrOpcode::LocalInv) => count!(self, 0, "mr.invalidated"),
            (0, WrOpcode::RegMr) => count!(self, 0, "mr.registered"),
            (0, _) if part_of_region => count!(self, 0, "mr.bound"),
            // Bound to nothing.
            (0, _) => count!(self, 0, "mr.invalidated"),
            _ => count!(self, 0, "mr.changes_refused"),
        }
        status
    }

    fn send_packet(&mut self, host: &mut dyn Host, qpn: u32, req: &ReqCtx, place: usize, fresh: bool) -> Went {
        let n = qpn as usize;
        let kind = QpType::from_u8(req.qp_type()).unwrap_or(QpType::Raw);
        let mtu = pmtu::bytes(req.pmtu()) as u32;
        let psn = req.next_psn();
        let work = &mut self.requesters[n].work[place];
        let Some(request) = work.request.clone() else { return Went::Nothing };
        if fresh {
            (work.first_psn, work.psns) = (psn, packet_count(kind, request.length, mtu));
        }
        let number = psn.wrapping_sub(work.first_psn) & PSN;
        let p = packet(kind, &request, mtu, work.first_psn, number);
        let taken = if request.asks() { work.psns - number } else { 1 };
        let next = psn.wrapping_add(taken) & PSN;
        let fills = next.wrapping_sub(req.una_psn()) & PSN >= WINDOW;
        let ack_req = kind == QpType::Rc && (p.last || fills || psn % ASK_EVERY == ASK_EVERY - 1);
        let datagram = kind == QpType::Ud;
        let mut op = Op { qpn, opcode: p.opcode, dest_qpn: req.dest_qpn(), psn, ack_req, solicited: p.solicited, pay_len: p.length as u16, ..Op::default() };
        op.pad = ((4 - p.length % 4) % 4) as u8;
        (op.feth, op.reth, op.imm, op.atomic) = (p.feth, p.reth, p.imm, p.atomic);
        if datagram {
            op.dest_qpn = u32::from(work.head.dest_high()) << 16 | u32::from(work.head.dest_low());
            let dip = u128::from_le_bytes(std::array::from_fn(|i| work.slot.bytes[WqeHead::BYTES + i]));
            op.deth = Some((request.rkey, request.raddr, dip));
        }
        let path = self.tables.path[n];
        match self.compose(host, qpn, kind, place, &op, &path, (p.offset, p.length)) {
            Ok(frame) if kind == QpType::Raw => self.emit_raw(req.function(), frame),
            Ok(frame) => self.emit(req.function(), frame),
            Err(fault) => {
                count!(self, 0, "egress.tx_aborted");
                self.local_error(host, qpn, req.next_index(), fault.of_request());
                return Went::Nothing;
            }
        }
        count!(self, req.function(), "req_tx.tx_packets");
        let r = &mut self.tables.req[n];
        r.set_next_psn(next);
        if next.wrapping_sub(r.max_psn()) & PSN < HALF {
            r.set_max_psn(next);
        }
        let index = req.next_index();
        if fresh {
            r.set_sent_index(index.wrapping_add(1));
            if request.asks() {
                r.set_rd_out(req.rd_out() + 1);
            }
        }
        if p.last {
            self.ahead.forget();
            r.set_msg_offset(0).set_in_msg(false);
            self.go_to(qpn, index.wrapping_add(1));
        } else {
            r.set_msg_offset(p.offset + p.length).set_in_msg(true);
        }
        if kind == QpType::Rc {
            if !req.timer_on() {
                self.restart_timer(qpn);
            }
        } else {
            // Gone is acknowledged.
            self.tables.req[n].set_una_psn(next);
            self.retire(host, qpn);
        }
        Went::On
    }

    /// The frame of a packet, with its payload out of host memory.
    #[allow(clippy::too_many_arguments)] // of a packet
    fn compose(&mut self, host: &mut dyn Host, qpn: u32, kind: QpType, place: usize, op: &Op, path: &PathCtx, (offset, length): (u32, u32)) -> Result<Vec<u8>, Fault> {
        let length = length as usize;
        let mut frame = Vec::with_capacity(AROUND + length);
        if kind != QpType::Raw {
            put_header(&mut frame, &op.as_heard(self.log_share), path);
        }
        let tail = if kind == QpType::Raw { 0 } else { usize::from(op.pad) + ICRC_BYTES };
        if length > 0 {
            // Taken out meanwhile, so that the list can be read while memory is.
            let work = std::mem::take(&mut self.requesters[qpn as usize].work);
            let result = self.payload(host, qpn, &work[place], kind == QpType::Ud, offset, length, &mut frame);
            self.requesters[qpn as usize].work = work;
            result?;
        }
        frame.resize(frame.len() + tail, 0);
        if kind != QpType::Raw {
            seal(&mut frame);
        }
        Ok(frame)
    }

    #[allow(clippy::too_many_arguments)] // of a packet
    fn payload(&mut self, host: &mut dyn Host, qpn: u32, work: &Request, datagram: bool, offset: u32, length: usize, frame: &mut Vec<u8>) -> Result<(), Fault> {
        if work.head.opcode() == WrOpcode::AtomicWrite as u8 {
            // The operand in front of the list.
            frame.extend_from_slice(&work.slot.bytes[WqeHead::BYTES..WqeHead::BYTES + length]);
            return Ok(());
        }
        if work.head.inline_data() {
            frame.extend_from_slice(work.inline(datagram, offset as usize, length).ok_or(Fault::List)?);
            return Ok(());
        }
        let (owner, list) = (self.owner(qpn), work.list(datagram).ok_or(Fault::List)?);
        let left = work.head.length().saturating_sub(offset) as usize;
        self.append(frame, offset.into(), length, left, |twin, out| twin.gather(host, owner, list, offset.into(), out))
    }
}
