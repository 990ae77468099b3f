//! The state of a socket. [`Inner::progress`] is where events and messages of the peer change it.
use super::endpoint::{Done, Endpoint, Sizes};
use super::flow::{Flow, Violation};
use super::mappings::Mappings;
use super::options::Options;
use super::wire::{Message, Opening, Place};
use crate::abi::cma::{CmEvent, CmId, EventChannel};
use crate::abi::consts::*;
use crate::cm::event::{ferric_rdma_ack_cm_event, ferric_rdma_destroy_event_channel, make_channel, next};
use crate::cm::id::{ferric_rdma_create_id, ferric_rdma_destroy_id, IdObject};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::time::Instant;

/// Where a socket is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has no address.
    Fresh,
    /// It has an address.
    Bound,
    /// It takes connections.
    Listening,
    /// It has asked for a connection.
    Connecting,
    /// It is connected, and sends and receives as far as neither side has ended that.
    Open { reads: bool, writes: bool },
    /// There was no connection; the error number says why.
    Refused(c_int),
    /// One side has ended the connection.
    Ended,
    /// The connection was lost; the error number says why.
    Broken(c_int),
    /// `rclose` has been called.
    Closed,
}

/// Everything about a socket.
pub struct Inner {
    pub state: State,
    pub id: *mut CmId,
    channel: *mut EventChannel,
    pub endpoint: Option<Endpoint>,
    /// Once the peer's private data are known.
    pub flow: Option<Flow>,
    /// What the peer has said.
    pub peer: Option<Opening>,
    pub mappings: Mappings,
    pub options: Options,
    /// What `SO_ERROR` says once.
    pub error: c_int,
    /// A thread waits for the descriptor.
    pub waited_for: bool,
    /// The request has been accepted, and the peer has not said yet that it knows: nothing is sent.
    pub held: bool,
    /// When something last came or went; kept while signs of life are wanted.
    last: Instant,
}

// SAFETY: the identifier and its channel are the socket's alone, and used by one thread at a time.
unsafe impl Send for Inner {}

impl Inner {
    /// A fresh one. EMFILE and others of the system.
    pub fn new(options: Options) -> Result<Self, c_int> {
        let channel = quiet_channel()?;
        let mut id = null_mut();
        // SAFETY: a channel in use, and room for an identifier.
        if unsafe { ferric_rdma_create_id(channel, &mut id, null_mut(), RDMA_PS_TCP) } != 0 {
            let n = super::last_errno();
            // SAFETY: made above; nobody else has it.
            unsafe { ferric_rdma_destroy_event_channel(channel) };
            return Err(n);
        }
        Ok(Self::of(State::Fresh, id, channel, options))
    }

    /// One with an identifier that uses the channel alone.
    pub fn of(state: State, id: *mut CmId, channel: *mut EventChannel, options: Options) -> Self {
        Self { state, id, channel, endpoint: None, flow: None, peer: None, mappings: Mappings::default(), options, error: 0, waited_for: false, held: false, last: Instant::now() }
    }

    /// Its identifier. Not after `rclose`.
    pub fn object(&self) -> &IdObject {
        // SAFETY: an identifier in use until `close`.
        unsafe { IdObject::of(self.id) }
    }

    /// Descriptors that are readable when there is something to be done.
    pub fn fds(&self) -> impl IntoIterator<Item = c_int> {
        // SAFETY: a channel in use.
        [Some(unsafe { (*self.channel).fd }), self.endpoint_fd()].into_iter().flatten()
    }

    /// That of the endpoint.
    pub fn endpoint_fd(&self) -> Option<c_int> {
        self.endpoint.as_ref().map(Endpoint::fd)
    }

    /// Makes the endpoint with the sizes of the options.
    pub fn make_endpoint(&mut self) -> Result<(), c_int> {
        let sizes: Sizes = self.options.sizes;
        // SAFETY: the identifier is tied to a card, and goes after the endpoint.
        self.endpoint = Some(unsafe { Endpoint::new(self.id, sizes) }?);
        Ok(())
    }

    /// The peer has said what it has.
    pub fn opened(&mut self, peer: Opening) {
        let Some(endpoint) = &self.endpoint else { return };
        self.flow = Some(Flow::new(endpoint.half(), endpoint.sizes().receives, &peer));
        self.peer = Some(peer);
        self.last = Instant::now();
        self.state = State::Open { reads: true, writes: true };
    }

    /// There is a connection, on which something may still be read.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Bytes that have come and have not been read.
    pub fn unread(&self) -> u32 {
        self.flow.as_ref().map_or(0, Flow::unread)
    }

    /// Bytes that one message may have now.
    pub fn room(&self) -> u32 {
        match (&self.endpoint, &self.flow) {
            (Some(endpoint), Some(flow)) if !self.held => endpoint.room().min(flow.room()),
            _ => 0,
        }
    }

    /// The connection is lost.
    pub fn lost(&mut self, n: c_int) {
        if !matches!(self.state, State::Ended | State::Broken(_) | State::Refused(_) | State::Closed) {
            log::info!("rsocket: the connection is lost, errno {n}");
            (self.state, self.error) = (State::Broken(n), n);
        }
    }

    /// Asks to be told of the next completion; `true` if something has happened meanwhile.
    pub fn arm(&mut self) -> bool {
        self.endpoint.as_mut().is_some_and(Endpoint::arm) && self.progress()
    }

    /// Takes out what makes the descriptor readable.
    pub fn disarm(&mut self) {
        if let Some(Err(n)) = self.endpoint.as_mut().map(Endpoint::disarm) {
            self.lost(n);
        }
    }

    /// An event of the connection manager waits.
    pub fn has_events(&self) -> bool {
        self.state != State::Closed && !self.object().queue().is_empty()
    }

    /// The next event of the connection manager, for the caller to acknowledge.
    pub fn event(&mut self) -> Option<*mut CmEvent> {
        // SAFETY: an identifier and a channel in use until `close`.
        self.has_events().then(|| unsafe { next(self.channel) }.ok()).flatten()
    }

    /// Looks at everything that has come. `true`: there was something.
    pub fn progress(&mut self) -> bool {
        let mut some = false;
        // Requests are left for `raccept`.
        while self.state != State::Listening {
            let Some(event) = self.event() else { break };
            some = true;
            // SAFETY: an event in our hands; its private data are there as long as it is.
            unsafe {
                let private = private_data(event);
                self.happened((*event).event, (*event).status, &private);
                ferric_rdma_ack_cm_event(event);
            }
        }
        if self.flow.is_none() {
            return some;
        }
        let mut came = 0;
        while let Some(done) = self.endpoint.as_mut().and_then(Endpoint::poll) {
            some = true;
            if let Done::Came { message, bytes } = done {
                (came, self.held) = (came + 1, false);
                if let Err(Violation(what)) = self.came(message, bytes) {
                    log::warn!("rsocket: the peer breaks the rules: {what}");
                    self.lost(libc::EPROTO);
                }
            }
            match done {
                Done::Failed(status) if self.is_open() => {
                    log::info!("rsocket: a request failed, status {status}");
                    self.lost(libc::ECONNRESET);
                }
                Done::Sent(Message::Disconnect) if self.is_open() => self.state = State::Ended,
                _ => {}
            }
        }
        if self.is_open() {
            let posted = self.endpoint.as_ref().map_or(Ok(()), |e| e.post_receives(came)).and_then(|()| self.tell());
            if let Err(n) = posted {
                self.lost(n);
            }
        }
        if some && self.options.keep_alive {
            self.last = Instant::now();
        }
        some
    }

    fn happened(&mut self, kind: u32, status: c_int, private: &[u8]) {
        match (kind, self.state) {
            (RDMA_CM_EVENT_ESTABLISHED, State::Connecting) => match Opening::of_bytes(private) {
                Some(peer) => self.opened(peer),
                None => self.refused(libc::EPROTO),
            },
            (RDMA_CM_EVENT_ESTABLISHED, _) => self.held = false,
            (RDMA_CM_EVENT_REJECTED, State::Connecting) => self.refused(libc::ECONNREFUSED),
            (RDMA_CM_EVENT_UNREACHABLE, State::Connecting) => self.refused(libc::ETIMEDOUT),
            (RDMA_CM_EVENT_CONNECT_ERROR, State::Connecting) => self.refused(if status == 0 { libc::EIO } else { status.abs() }),
            (RDMA_CM_EVENT_DEVICE_REMOVAL, State::Connecting) => self.refused(libc::EIO),
            (RDMA_CM_EVENT_REJECTED | RDMA_CM_EVENT_UNREACHABLE, _) => self.lost(libc::ECONNRESET),
            (RDMA_CM_EVENT_DEVICE_REMOVAL, _) => self.lost(libc::EIO),
            (RDMA_CM_EVENT_DISCONNECTED, State::Open { .. }) => {
                // What came before is read first.
                self.drain();
                self.state = State::Ended;
            }
            _ => {}
        }
    }

    fn refused(&mut self, n: c_int) {
        (self.state, self.error) = (State::Refused(n), n);
    }

    /// The last messages of a connection that has ended.
    fn drain(&mut self) {
        while let Some(done) = self.endpoint.as_mut().and_then(Endpoint::poll) {
            if let Done::Came { message: message @ Message::Data(_), bytes } = done {
                if let Err(Violation(what)) = self.came(message, bytes) {
                    log::warn!("rsocket: the peer breaks the rules: {what}");
                }
            }
        }
    }

    fn came(&mut self, message: Message, bytes: u32) -> Result<(), Violation> {
        let (Some(flow), Some(endpoint)) = (&mut self.flow, &self.endpoint) else { return Ok(()) };
        match message {
            Message::Data(n) => flow.arrived(n)?,
            Message::Credits(credits) => {
                let half = (bytes as usize >= Place::BYTES).then(|| endpoint.place(flow.named()));
                flow.granted(credits, half)?;
            }
            Message::Mapped(n) => {
                flow.told_of();
                let (offset, place) = endpoint.mapping(n).ok_or(Violation("a mapping for which there is no room"))?;
                self.mappings.named(n, offset, place);
            }
            Message::Disconnect if self.is_open() => self.state = State::Ended,
            Message::Shutdown => match self.state {
                State::Open { writes: true, .. } => self.state = State::Open { reads: false, writes: true },
                State::Open { .. } => self.state = State::Ended,
                _ => {}
            },
            Message::Disconnect | Message::KeepAlive => {}
            Message::Unknown(imm) => log::debug!("rsocket: a message of an unknown kind, {imm:#x}"),
        }
        Ok(())
    }

    /// Tells the peer what it may send now, and that we live.
    pub fn tell(&mut self) -> Result<(), c_int> {
        if self.held {
            return Ok(());
        }
        let (Some(flow), Some(endpoint), Some(peer)) = (&mut self.flow, &mut self.endpoint, &self.peer) else { return Ok(()) };
        while endpoint.may_control() {
            let Some(grant) = flow.grant() else { break };
            let written = grant.half.map(|(offset, entry)| {
                let addr = peer.table.addr.wrapping_add(u64::from(entry) * Place::BYTES as u64);
                (endpoint.half_at(offset).to_bytes(peer.big_endian), Place { addr, ..peer.table })
            });
            endpoint.control(Message::Credits(grant.credits), written)?;
        }
        if self.options.keep_alive && endpoint.may_control() && self.last.elapsed().as_secs() >= self.options.keep_idle.into() {
            self.last = Instant::now();
            endpoint.control(Message::KeepAlive, None)?;
        }
        Ok(())
    }

    /// Lets go of everything. The peer hears of the end of the connection.
    pub fn close(&mut self) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.endpoint = None;
        self.mappings = Mappings::default();
        // SAFETY: the socket's own, and nobody uses them any more.
        unsafe {
            ferric_rdma_destroy_id(self.id);
            ferric_rdma_destroy_event_channel(self.channel);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// A channel whose events are taken without waiting.
pub fn quiet_channel() -> Result<*mut EventChannel, c_int> {
    let channel = make_channel()?;
    // SAFETY: just made.
    unsafe {
        if libc::fcntl((*channel).fd, libc::F_SETFL, libc::O_NONBLOCK) != 0 {
            let n = super::last_errno();
            ferric_rdma_destroy_event_channel(channel);
            return Err(n);
        }
    }
    Ok(channel)
}

/// What the peer has sent with an event of a connection.
///
/// # Safety
/// An event that has not been acknowledged.
pub unsafe fn private_data(event: *mut CmEvent) -> Vec<u8> {
    // SAFETY: by the caller's promise; events of a connection have these parameters.
    unsafe {
        let conn = (*event).param.conn;
        if conn.private_data.is_null() {
            Vec::new()
        } else {
            std::slice::from_raw_parts(conn.private_data.cast::<u8>(), conn.private_data_len.into()).to_vec()
        }
    }
}
