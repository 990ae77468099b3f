//! The golden models: what each part of the card has to do, in software, written from the standards and the design documents. The block tests of the gateware
//! (`ferric-hdl`) compare with them; the functional twin (`ferric-twin`) is made of them. So each rule stands here once.
//!
//! | module | what it models | gateware |
//! |---|---|---|
//! | [`admin`] | the admin engine: the microprogram itself, and its interpreter | `host/admin` |
//! | [`net`] | parsing, ICRC, headers below the transport, MAC addresses, ARP, neighbour discovery and pings | `net`, `engines/echo` |
//! | [`roce`] | RoCEv2 headers, peers, groups, packets of a request, judgement of a request | `roce` |
//! | [`keys`] | memory keys: checks, translation, windows | `rdma/mr` |
//! | [`switch`] | the flow switch and the tunnel endpoint | none yet |
//! | [`virtio`] | queues, registers and headers of a virtio network function | none yet |
//! | [`rings`] | send, receive and completion rings | `host/sq`, `host/rq`, `host/cq` |

pub mod admin;
pub mod keys;
pub mod net;
pub mod rings;
pub mod roce;
pub mod switch;
pub mod virtio;
