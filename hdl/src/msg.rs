//! Messages between blocks. Every one travels on a valid/ready [`crate::bus`] port, registered at both ends.
//! Widths of identifiers are the contract's: function 12, queue and context 24, epoch 8.
#![allow(missing_docs)]
use rust_hdl::prelude::*;

/// One bit is a `Bit`, so that it can stand in conditions.
macro_rules! width {
    (1) => { Bit };
    ($w:tt) => { Bits<$w> };
}

/// Declares a message: a `LogicStruct` plus its field table for test benches (`name, width`, first field lowest).
macro_rules! messages {
    ($( $(#[doc = $doc:literal])* $name:ident { $( $field:ident : $w:tt, )* } )*) => { $(
        $(#[doc = $doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
        pub struct $name { $( pub $field: width!($w) ),* }
        impl $name {
            /// Field names and widths, first field in the lowest bits.
            pub const FIELDS: &'static [(&'static str, usize)] = &[ $( (stringify!($field), $w) ),* ];
        }
    )* };
}

macro_rules! rx_desc {
    ($( $field:ident : $width:tt $doc:literal; )*) => {
        messages! {
            /// A received frame that passed `net`: its metadata as `ferric_abi::meta` lists them.
            RxDesc { $( $field: $width, )* }
        }
    };
}
ferric_abi::frame_metadata!(rx_desc);

/// Bits of an order's `transport`: as many as the transport that needs most (RoCE: `roce/word.rs`).
pub const TRANSPORT: usize = 85;

messages! {
    // ---- host side -------------------------------------------------------------------------------------------------
    /// A doorbell after address decode. kind: 0 SQ, 1 RQ, 2 CQ, 3 EQ. `arm` bits only for CQ.
    DoorbellMsg { kind: 2, id: 24, index: 16, arm: 1, arm_solicited: 1, function: 12, }
    /// A WQE-carrying doorbell: the first 64 bytes of the work request; function stamped from the address.
    WqeDoorbell { function: 12, data: 512, }

    /// Small read (work requests, page-table lines, admin commands): `rows` 64-byte rows (1..8) from a 64-byte aligned IOVA.
    RdCmd { iova: 64, function: 12, rows: 4, tag: 8, }
    /// Answer to `RdCmd`: its rows in order, rows of one command contiguous; `err` set on every row of a failed read.
    RdRow { tag: 8, row: 3, last: 1, err: 1, data: 512, }
    /// Payload read: up to 4096 bytes, not crossing 4 KiB, scattered into the assembly buffer from byte `dst` on.
    PayCmd { iova: 64, function: 12, len: 13, dst: 18, slot: 8, }
    /// One `PayCmd` finished.
    PayDone { slot: 8, err: 1, }
    /// Small write: `len` (8, 16, 32, 64) bytes to an IOVA aligned to `len`. Ordered with all other writes of the card.
    WrSmall { iova: 64, function: 12, len: 7, tag: 8, data: 512, }
    /// Payload write command: up to 4096 bytes not crossing 4 KiB; its data follow on the AXI-Stream port, lane `l` of the
    /// first beat going to `iova & ~(K-1) + l` (already aligned by the sender, keep = strobes).
    WrCmd { iova: 64, function: 12, len: 13, tag: 8, }
    /// A write was answered by the host. Order of commands per port.
    WrDone { tag: 8, err: 1, }

    // ---- control bus -----------------------------------------------------------------------------------------------
    /// Control-bus request as the master makes it: 32-bit word `word` of line `line` of table `table`. Tables are numbered by the card's list.
    CtlAsk { table: 8, line: 24, word: 6, write: 1, data: 32, }
    /// The same as it comes to the table, which does not learn its number. `rsvd`: zero; a narrower number stood there once, and without the place every table would be another block in its text, though not in its gates.
    CtlReq { rsvd: 4, line: 24, word: 6, write: 1, data: 32, }
    /// Control-bus answer, one per request, in order. `err`: no such line.
    CtlResp { data: 32, err: 1, }

    // ---- send queue ------------------------------------------------------------------------------------------------
    /// A send work request offered to the requester. `head`: its first 32 bytes (`WqeHead`). `flush`: queue is in error,
    /// nothing was fetched. `err`: the fetch failed. `handle`: buffer holding the whole request, free it with `SqFree`. `sge`: the 16 bytes behind the head, `more`: the 16 behind those.
    SqWqe { qpn: 24, index: 16, epoch: 8, function: 12, handle: 8, flush: 1, err: 1, head: 256, sge: 128, more: 128, }
    /// From the requester to the send-queue unit. op: 0 rewind to `index` and run, 1 rewind and park, 2 resume, 3 flush from `index` on.
    /// `epoch`: the queue's new epoch (ops 0, 1, 3).
    SqCmd { qpn: 24, op: 2, index: 16, epoch: 8, }
    /// A 16-byte granule (`Sge`, or 16 bytes of inline data) of a work request buffer: read request and answer. `more`: of a send queue's buffer, the granule behind
    /// an even one, so that 32 bytes of inline data come at a time.
    WqeRead { handle: 8, granule: 5, }
    WqeData { data: 128, more: 128, err: 1, }
    /// A send work request wanted once more: entries for the answer to a READ or an atomic. The answer names its buffer, which is
    /// being filled (`WqeRead` waits); free it with `WqeFree`.
    WqeAgain { qpn: 24, index: 16, }
    WqeHandle { handle: 8, }
    /// Gives a work request buffer back.
    WqeFree { handle: 8, }

    // ---- requester -------------------------------------------------------------------------------------------------
    /// One packet to send. `ext`: 0 none, 1 RETH. `pay_off`: first payload byte inside the message.
    /// `free`: last user of `handle`. `sge`: first entry of the list. `notify`: report departure with `TxDone` (transports without ACK).
    /// `has_atomic`: AtomicETH from `raddr`, `rkey`, `operand` (swap or addend) and `compare`. `has_atomic_ack`: AtomicAckETH, its original value
    /// in `operand`, behind the AETH. `reply`: of the responder: no work request buffer, the payload is one piece of memory in `sge`, read with
    /// the peer's right to READ. `has_deth`: of a datagram: DETH with the Q_Key in `rkey`, addressed to the MAC, class and hop limit in `raddr`
    /// (`WqeHead`) and the IP address in `compare` and `operand` (high and low half). `has_feth`, with `has_imm`: of a FLUSH, whose FETH in `imm` stands in front of the RETH.
    TxOp { qpn: 24, epoch: 8, function: 12, pd: 24, qp_type: 3, ipv6: 1, vlan: 1, opcode: 8, dest_qpn: 24, psn: 24, ack_req: 1, solicited: 1,
        pay_off: 32, pay_len: 13, has_reth: 1, raddr: 64, rkey: 32, dma_len: 32, has_imm: 1, imm: 32,
        handle: 8, num_sge: 8, inline_data: 1, free: 1, wqe_index: 16, notify: 1, sge: 128,
        has_aeth: 1, aeth: 32, has_atomic: 1, has_atomic_ack: 1, operand: 64, compare: 64, reply: 1, has_deth: 1, has_feth: 1, round: 2, }
    /// A packet left (`status` 0) or could not be built (`status` = `CqeStatus`). `reply`: one of the responder's. `notify`: as in its order.
    TxDone { qpn: 24, epoch: 8, psn: 24, wqe_index: 16, status: 8, reply: 1, notify: 1, }
    /// Header of one outgoing packet for the header builder. `kind`: 0 request, 1 acknowledge. `pay_len` without pad.
    HdrOp { kind: 1, slot: 8, qpn: 24, opcode: 8, dest_qpn: 24, psn: 24, ack_req: 1, solicited: 1, pad: 2, pay_len: 13,
        has_reth: 1, raddr: 64, rkey: 32, dma_len: 32, has_imm: 1, imm: 32, has_aeth: 1, aeth: 32,
        has_atomic: 1, has_atomic_ack: 1, operand: 64, compare: 64, has_deth: 1, has_feth: 1, }
    /// Egress slot request: `frame_len` = header + payload + pad + ICRC bytes; `bypass`: header-only frame that may overtake (ACK); `raw`: no header (`hdr_len` 0), no ICRC.
    /// `client`: whose header it has, by its number at the egress; of a request at port 0 the list of the card says it (`net/share`).
    SlotReq { frame_len: 14, hdr_len: 9, pay_len: 13, bypass: 1, raw: 1, client: 3, }
    /// Slot granted: byte address of the frame's first byte in the assembly buffer.
    SlotGrant { slot: 8, base: 18, }
    /// The gatherer has issued all reads of a slot (`reads` many). `abort`: drop the frame. `notify`: send `TxDone`. `function`: whose frame it is.
    /// `request`: one of a requester's, not sent any more when its queue pair is in another round than `round` (`roce/rounds`).
    SlotSeal { slot: 8, reads: 9, abort: 1, notify: 1, qpn: 24, epoch: 8, psn: 24, wqe_index: 16, status: 8, reply: 1, request: 1, round: 2, function: 12, }

    // ---- memory keys -----------------------------------------------------------------------------------------------
    /// Key check and translation of one access that does not cross 4 KiB at `va`. `chk_len`: bytes from `va` that must lie
    /// inside the region (at least the access itself). `access`: bit 0 local read (always allowed), 1 local write, 2 remote write, 3 remote read, 4 atomic, 5 FLUSH,
    /// which touches no page, so that `iova` says nothing. `whole`: bounds do not count.
    MrReq { key: 32, pd: 24, function: 12, qpn: 24, va: 64, chk_len: 32, access: 6, whole: 1, }
    /// `status`: 0 ok, 1 key, 2 protection domain or function, 3 bounds, 4 permission, 5 page absent, 6 table fetch failed.
    MrResp { iova: 64, status: 3, }
    /// The peer wants `key` invalid: a region or window of this protection domain and function. Answered once it is, with `MrResp` statuses:
    /// 0 done, 1 no such key (or none for the peer), 2 protection domain or function, 4 not of a kind that work requests change.
    MrChange { key: 32, pd: 24, function: 12, qpn: 24, }
    MrChanged { status: 3, }
    /// Local operation of queue pair `qpn`, work request `index`: `register` 0 local invalidation of `key`, 1 registration of the region with these
    /// rights (`access`: bit 0 local write, then remote write, read, atomic), bounds, page table and size of its pages. Answered by a `TxDone` with status 0xfe, or `CqeStatus` MwBind.
    MrWork { register: 1, bind: 1, key: 32, pd: 24, function: 12, qpn: 24, index: 16, access: 4, page_size: 2, start: 64, length: 64, table: 64, }

    // ---- receive ---------------------------------------------------------------------------------------------------
    /// Of an acknowledge, a READ response or an ATOMIC acknowledge what the requester looks at; the fields mean what they mean in `RxDesc`.
    RxAnswer { handle: 12, pay_off: 8, pay_len: 13, opcode: 8, dest_qpn: 24, psn: 24, aeth: 32, operand: 64, }
    /// Of a request or a raw frame what `roce/mcast` and the responder look at; the fields mean what they mean in `RxDesc`.
    RxRequest { handle: 12, frame_len: 14, ipv6: 1, has_vlan: 1, vlan_tci: 16, raw: 1, pay_off: 8, pay_len: 13, pad: 2, opcode: 8, solicited: 1, ack_req: 1,
        pkey: 16, dest_qpn: 24, psn: 24, va: 64, rkey: 32, dma_len: 32, imm: 32, qkey: 32, src_qpn: 24, operand: 64, compare: 64, multicast: 1, tunnel: 1, function: 12, }
    /// Of which network a received frame is; the fields mean what they mean in `RxDesc`.
    Network { tunnel: 1, function: 12, }
    /// Who has sent a frame: `local`: that function of this card, whose network is called `network` if it has a tunnel; else it came off the wire, and the rest means nothing.
    SentBy { local: 1, function: 6, network: 6, }
    /// Between whom a received packet travels, for `roce/peer`: the queue pair and the addresses as numbers (MAC: first byte on the wire highest; IPv4 in the low
    /// 32 bits), `vid` the VLAN identifier of its tag; `tunnel` and `function` as in `RxDesc`. `datagram`: opcode of the UD class.
    PeerAsk { qpn: 24, datagram: 1, dmac: 48, sip: 128, dip: 128, ipv6: 1, vlan: 1, vid: 12, tunnel: 1, function: 12, }
    /// Cell buffer read: `len` bytes from byte `off` of frame `handle`; the answer is a stream of aligned beats (first
    /// byte in lane `off % K`). `free`: free the frame afterwards. `len` 0 with `free`: only free.
    CellRead { handle: 12, off: 14, len: 14, free: 1, }
    /// Receive work request wanted by the responder from receive ring `ring`, that of a queue pair or of a shared receive queue, for `qpn`. `again`: the
    /// buffer of request `index`, which `qpn` has in hand, has been taken away: it is to be fetched once more. `taken`: buffer `victim` has been taken away from
    /// `loser`; it comes back by `WqeFree`.
    RqAlloc { ring: 24, qpn: 24, again: 1, index: 16, taken: 1, victim: 6, loser: 24, late: 1, }
    /// `ok` 0: none posted, or, `dead`, the shared receive queue is in error. `handle`: buffer being filled (read it with `WqeRead`, which waits). `index` means nothing
    /// of a request fetched once more.
    RqGrant { ok: 1, dead: 1, handle: 6, index: 16, }
    /// A receive work request to be flushed (queue in error), or `op` 0. From the receive-queue unit to the responder.
    RqFlush { qpn: 24, index: 16, }
    /// Command to the receive-queue unit: start flushing queue `qpn`. Never one on a shared receive queue.
    RqCmd { qpn: 24, }

    /// Placement order, per packet, in order, of any transport. `kind`: 0 nothing to place (acknowledge only), 1 WRITE, 2 SEND or raw, 3 flush completion (without `cqe`: of the last receive, see `CqeReq`), 4 barrier, or,
    /// with `again`, life `epoch` of `qpn` begins: whatever is kept of an earlier one is forgotten,
    /// 5 READ request, 6 atomic request, 8 response to be placed by a send work request's list, 9 such a response of which the bytes are those of `operand`. 5 and 6: one key check of `chk_len` bytes (none if 0),
    /// nothing is moved; `flush`, of a READ of no bytes: a FLUSH, whose FETH is in `imm`; `byte_len`: bytes to read; `opcode`: `CqeOpcode` CompareSwap or FetchAdd, of a WRITE AtomicWrite if it is answered as a READ of no bytes is; `again`: a duplicate: fails in silence.
    /// `has_frame`: `handle` must be freed. `chk_len`: bytes of the WRITE still to come from `va` (bounds of the whole message on its first packet).
    /// `grh`: of a datagram, whose first 40 bytes are the GRH area. `soft`: of an unreliable queue pair: what the message itself is to blame for costs
    /// that message only, up to the next order that is `first` of one.
    /// `inv`: last packet of a SEND with invalidate: the key in `imm`, when all else went well. It has to be of the queue pair's protection domain, `own_pd`; `pd` may be that of a shared receive queue.
    /// `atomic`: of a frame that asks for an atomic, whatever becomes of it: what comes behind it waits until `roce/reply` has been told.
    /// `late`: `rq_handle` and `rq_index` come with the next grant at placement; orders of one message follow each other up to the one that is `done`.
    /// 8 with `again`: places nothing, and is told of (`ReadDone`) when all before it is in host memory.
    /// `done`: message complete: write a CQE if `cqe`. `ack`: the peer is to be answered; `replies`: it is told of failures (else the transport has no word for them).
    /// `transport`: what the transport wants to know again with the outcome; nobody between looks into it.
    PlaceOp { qpn: 24, epoch: 8, function: 12, pd: 24, kind: 4, has_frame: 1, handle: 12, pay_off: 8, pay_len: 13, va: 64, key: 32, chk_len: 32,
        rq_handle: 6, rq_index: 16, free_rq: 1, msg_off: 32, done: 1, cqe: 1, rcqn: 24, opcode: 8, has_imm: 1, imm: 32, solicited: 1, byte_len: 32, src_qpn: 24,
        ack: 1, replies: 1, again: 1, operand: 64, compare: 64, grh: 1, soft: 1, first: 1, inv: 1, atomic: 1, own_pd: 24, late: 1, flush: 1, transport: TRANSPORT, }
    /// Completion order: the placement's outcome. `writes`: DMA writes to wait for. `status`: 0 ok, else `MrResp` status + 8, or 1 receive too small, 2 bad receive request, 4 key that may not be invalidated.
    /// `va`: of a READ as in its order; of an atomic the IOVA. `atomic` as in its order; `keyed`: its key was asked for, in `phase` (`rdma/mr/drain.rs`).
    DoneOp { qpn: 24, epoch: 8, function: 12, kind: 4, writes: 8, status: 8, access_local: 1, done: 1, cqe: 1, rcqn: 24, opcode: 8, has_imm: 1, imm: 32, solicited: 1,
        byte_len: 32, src_qpn: 24, rq_index: 16, ack: 1, replies: 1, again: 1, pd: 24, va: 64, key: 32, operand: 64, compare: 64, grh: 1, soft: 1, inv: 1, atomic: 1, keyed: 1, phase: 1, transport: TRANSPORT, }
    /// What the transport is to answer, and what became of the order (`outcome`). `kind`: 0 acknowledge, or the refusal that `outcome` stands for, 3 none, a new life begins, 1 READ of `len` bytes at `va` with `key`,
    /// 2 atomic on the 8 bytes at IOVA `va`. `add`: FETCH_ADD. `done`, `again`, `atomic`, `keyed`, `phase`, `transport`: as in `DoneOp`. `mute`: nothing is to be sent, an atomic comes to nothing; of the rest only
    /// `qpn`, `atomic`, `keyed` and `phase` count.
    ReplyOp { qpn: 24, epoch: 8, function: 12, pd: 24, kind: 2, outcome: 2, done: 1, again: 1, add: 1,
        va: 64, key: 32, len: 32, operand: 64, compare: 64, atomic: 1, keyed: 1, phase: 1, mute: 1, transport: TRANSPORT, }
    /// RoCE's acknowledge with `syndrome`, coalesced per queue pair unless a NAK.
    AckOp { qpn: 24, function: 12, dest_qpn: 24, psn: 24, msn: 24, syndrome: 8, ipv6: 1, vlan: 1, }
    /// An answer packet to a READ or an atomic has been placed (`status` 0: the last of its request) or could not be (`CqeStatus`: any packet). `transport`: the low 24 bits of its
    /// order's. `status` 0xff: all answers of the queue pair that had been accepted when it failed are in host memory (`transport` says nothing).
    ReadDone { qpn: 24, transport: 24, status: 8, }
    /// A queue pair must go to error. `cause`: `CqeStatus` of the failure. `side`: 0 requester noticed, 1 responder noticed.
    QpError { qpn: 24, epoch: 8, side: 1, cause: 8, }

    // ---- completion and events -------------------------------------------------------------------------------------
    /// Completion to be written. `last`: no completion, but the event behind all completions of `qpn` on this queue: it has had its last receive
    /// from a shared receive queue.
    CqeReq { cqn: 24, function: 12, qpn: 24, wqe_index: 16, status: 8, opcode: 8, is_recv: 1, imm_valid: 1, imm: 32, solicited: 1, byte_len: 32, src_qp: 24, syndrome: 8, grh: 1, inv: 1, last: 1, }
    /// Event to be written.
    EqeReq { eqn: 8, kind: 8, id: 24, cause: 16, }
    /// MSI-X request to the shell.
    MsixReq { function: 12, vector: 16, }

    // ---- small helpers between neighbours --------------------------------------------------------------------------
    /// Move `len` bytes (1..4096, not crossing 4 KiB at `iova`) from byte `off` of frame `handle` to the host. `free`: free the
    /// frame afterwards. `len` 0: only free. `write`: counts as one DMA write for `DoneOp.writes` (always when len > 0). `direct`: the bytes are those of `data`, not of a frame; `off` is 0.
    MoveOp { handle: 12, off: 14, len: 13, iova: 64, function: 12, free: 1, direct: 1, data: 64, }
    /// Inline data into the assembly buffer: `len` bytes (1..32) to byte `dst`.
    InlineWrite { dst: 18, len: 6, data: 256, }
    /// The header of `slot` is in the header RAM, `len` bytes. `ipv6`, `vlan`: where the ICRC starts. `abort`: no path. `plain`: the frame gets no ICRC, its last bytes are payload like those before.
    HdrDone { slot: 8, len: 9, ipv6: 1, vlan: 1, abort: 1, plain: 1, }
    /// Outstanding work request `index` of queue `qpn`: its last PSN, whether it wants a CQE, and its opcode.
    TrackWrite { qpn: 24, index: 16, last_psn: 24, signaled: 1, opcode: 4, }
    TrackRead { qpn: 24, index: 16, }
    /// `next_psn`: last PSN of the work request behind, if there is one; `next_asks`: it is a READ or an atomic.
    TrackEntry { last_psn: 24, signaled: 1, opcode: 4, next_psn: 24, next_asks: 1, }

    // ---- congestion ------------------------------------------------------------------------------------------------
    /// What congestion control may want to know of queue pair `context`. `kind`: 0 a frame came with CE in its `ecn` bits, 1 a congestion notification packet came.
    /// `time`, `rtt` in ticks (`rtt` 0: not measured); `bytes` of the frame; `telemetry` 0: none.
    CcEvent { context: 24, kind: 3, time: 32, ecn: 2, rtt: 32, bytes: 14, telemetry: 32, }
    /// What is to change: `rate` in bytes per 256 ticks, `window` in bytes, `path` the index of one of its paths; 0 leaves as it is.
    CcUpdate { context: 24, rate: 32, window: 32, path: 8, }

    // ---- transport checksums -----------------------------------------------------------------------------------------
    /// What a frame on its way out wants: with `fills` the checksum of all bytes from `start` on, as they stand, at byte `at`. `queue` leaves with it.
    L4Order { queue: 16, fills: 1, start: 16, at: 17, }
    /// What a received frame's headers say of its transport checksum: whether it `checks` if the `size` bytes from byte `start` on, and `seed`, sum up to all ones. `seed` has a carry in bit 16.
    L4Packet { checks: 1, start: 8, size: 16, seed: 17, }
    /// The transport checksum of a frame, and IPv4's, are there and right: `good`; `checked`: all but the sum was such that it could be.
    L4Verdict { good: 1, checked: 1, }

    // ---- virtio ----------------------------------------------------------------------------------------------------
    /// A queue of the virtio engine may have something to do.
    VqNotify { queue: 16, }
    /// A head that has been found in an available ring, below its size; `desc` is the ring's address. `sums`: checksums are offloaded (`VqAvail`). Of a `packed` ring: the place `head` under the wrap counter `wrap`, where a chain may begin.
    /// `keeps`: it became available before the driver's index was read that showed the head in front of it, of the same queue, or may have; so bytes that were read since then are as good for it.
    /// `news`: heads of a split ring that are new from it on, 1 to 32, 32 for more; of a packed ring 1.
    VqHead { queue: 16, function: 12, receive: 1, indirect: 1, merged: 1, sums: 1, packed: 1, wrap: 1, desc: 64, size: 16, head: 16, keeps: 1, news: 6, }
    /// What is at that place of a packed ring: `none`, no chain is available there; `lost`, one of which nobody knows where it ends; else a chain of `slots` descriptors of the ring. But for
    /// `none` its end has still to be shown.
    VqWalked { none: 1, lost: 1, slots: 16, }
    /// A buffer of a chain, `len` bytes, not 0; or, `ends`, the chain is over: `id` is what is to be given back, `total` its bytes (all ones: 2^18 - 1 or more), `cause` the
    /// `VirtioCause` for which it may not be used, or 0; `slots`: descriptors of a packed ring that it takes, 0: it is lost.
    VqPiece { queue: 16, function: 12, merged: 1, sums: 1, id: 16, slots: 16, ends: 1, cause: 5, total: 18, addr: 64, len: 32, }
    /// To the stock: a chain of a receive queue is asked for, so many behind the oldest (`ahead`), or the oldest is taken out (`pop`): its buffers follow, unless it is to be thrown away (`mute`).
    VqTake { queue: 16, pop: 1, mute: 1, ahead: 8, }
    /// A chain in stock. `bad`: it has no buffers, and is only to be given back. `merged`: a frame may take several. `sums`: the driver takes the device's word for a checksum.
    VqChain { valid: 1, bad: 1, merged: 1, sums: 1, id: 16, slots: 16, function: 12, total: 18, count: 8, }
    /// A received frame for a queue, `len` bytes in buffer `handle`.
    VqFrame { queue: 16, handle: 12, len: 14, }
    /// A chain is done with, `len` bytes have been written into it. `follows`: the driver may not see it before the next one of its queue. `none`: it is no chain, and is only counted. `slots`: descriptors of a packed ring that it takes; 0: the chain is lost, and only counted.
    VqUse { queue: 16, id: 16, slots: 16, len: 32, follows: 1, none: 1, }
    /// A ring has been looked at for one chain more: whether it has come.
    VqLooked { queue: 16, found: 1, }
    /// Write of 2 bytes, or 4 (`wide`), to an IOVA aligned to them; 2 bytes stand in both halves of `data`.
    VqPut { iova: 64, function: 12, wide: 1, data: 32, }
    /// A chain or frame of a queue has been rejected: `VirtioCause`. `lost`: nothing more is taken from its ring, or given back into it.
    VqTold { queue: 16, cause: 5, lost: 1, }
    /// The function that a received frame is for, if its filter lets it through.
    VsFor { function: 12, }
    /// What steering looks at in a frame. `whole`: its Ethernet header is there; `mac`: destination, the first byte in the uppermost bits; `tag`: a VLAN tag, of `vlan`. `v4`, `v6`: the packet's addresses are there;
    /// `ports`: TCP's or UDP's (`tcp`), too. `place`: of the flow.
    VsHead { whole: 1, mac: 48, tag: 1, vlan: 12, v4: 1, v6: 1, ports: 1, tcp: 1, place: 10, }
    /// A frame of the flow at this place leaves by this transmit queue.
    VsNote { queue: 16, place: 10, }
    /// Where a frame goes; or, `cause` is not 0, it is dropped: `VsCause`.
    VsVerdict { function: 12, cause: 3, queue: 16, }
    /// A frame for this function has been dropped: `VsCause`.
    VsDropped { function: 12, cause: 3, }

    // ---- timers ----------------------------------------------------------------------------------------------------
    /// Timer command. `kind`: 0 retransmission, 1 RNR. `start` 0: stop. `ticks`: from now.
    TimerCmd { qpn: 24, start: 1, kind: 1, ticks: 32, }
    /// Timer expired.
    TimerEvent { qpn: 24, kind: 1, }
}
