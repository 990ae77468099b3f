//! The communication manager: datagrams of any content from any peer, mixed with what a program asks for, in any order.
use arbitrary::{Arbitrary, Unstructured};
use ferric_driver::cm::wire::{Body, CmDrep, CmDreq, CmMra, CmRej, CmRep, CmReq, CmRtu, CmSidrRep, CmSidrReq, Message, MAD_BYTES};
use ferric_driver::cm::{ip_datagram_service_id, ip_service_id, Cm, Event, Local, RejectReason, Request, ServiceAnswer, ServiceQuestion, ServiceStatus};
use ferric_driver::types::{Mac, Mtu};
use ferric_driver::ud::{Grh, GRH_BYTES};
use ferric_driver::AddressHandle;
use std::net::IpAddr;
use std::time::Duration;

#[derive(Arbitrary, Debug)]
enum Step {
    /// Any bytes.
    Raw {
        from: u8,
        mad: Vec<u8>,
    },
    /// A message of the manager's with any fields; `known` puts identifiers in that exist.
    Message {
        from: u8,
        kind: u8,
        fields: [u8; 32],
        rest: u8,
        known: Option<u8>,
    },
    Time {
        ms: u16,
    },
    Listen {
        port: u8,
    },
    Unlisten {
        port: u8,
    },
    Connect {
        to: u8,
        port: u8,
        private: u8,
        v4: bool,
    },
    Accept {
        which: u8,
        private: u8,
    },
    Delay {
        which: u8,
        exponent: u8,
    },
    Confirm {
        which: u8,
    },
    Reject {
        which: u8,
        reason: u16,
    },
    Disconnect {
        which: u8,
    },
    Serve {
        port: u8,
    },
    Ask {
        to: u8,
        port: u8,
        private: u8,
    },
    Answer {
        which: u8,
        private: u8,
    },
    Forget {
        which: u8,
    },
    Headers {
        bytes: [u8; GRH_BYTES],
    },
}

fn handle(n: u8) -> AddressHandle {
    AddressHandle::new(Mac([2, 0, 0, 0, 0, n]), IpAddr::from([10, 0, 0, n]))
}

fn local(n: u8) -> Local {
    Local { qpn: n.into(), psn: 7, responder_resources: n, initiator_depth: n, rnr_retry: 7 }
}

/// A record of `N` bytes out of what there is.
fn filled<const N: usize>(fields: &[u8], rest: u8) -> [u8; N] {
    let mut out = [rest; N];
    out.iter_mut().zip(fields).for_each(|(o, b)| *o = *b);
    out
}

fn body(kind: u8, fields: &[u8], rest: u8) -> Body {
    match kind % 9 {
        0 => Body::Req(CmReq(filled(fields, rest))),
        1 => Body::Mra(CmMra(filled(fields, rest))),
        2 => Body::Rej(CmRej(filled(fields, rest))),
        3 => Body::Rep(CmRep(filled(fields, rest))),
        4 => Body::Rtu(CmRtu(filled(fields, rest))),
        5 => Body::Dreq(CmDreq(filled(fields, rest))),
        6 => Body::Drep(CmDrep(filled(fields, rest))),
        7 => Body::SidrReq(CmSidrReq(filled(fields, rest))),
        _ => Body::SidrRep(CmSidrRep(filled(fields, rest))),
    }
}

/// One input.
pub fn run(data: &[u8]) {
    let mut cm = Cm::new(0xfe11, 7);
    let mut now = Duration::from_secs(1);
    let mut ids = vec![7u32];
    let Ok(steps) = Vec::<Step>::arbitrary_take_rest(Unstructured::new(data)) else { return };
    for step in steps.iter().take(64) {
        let id = |which: u8| ids[usize::from(which) % ids.len()];
        match step {
            Step::Raw { from, mad } => {
                if let Some(m) = Message::decode(mad) {
                    assert_eq!(Message::decode(&m.encode()), Some(m), "what was read is written as it was");
                }
                cm.receive(now, handle(*from), mad);
            }
            Step::Message { from, kind, fields, rest, known } => {
                let mut fields = *fields;
                if let Some(which) = known {
                    // Every message but a REQ has the receiver's identifier second, a REQ has none.
                    fields[4..8].copy_from_slice(&id(*which).to_be_bytes());
                }
                let m = Message { tid: 1, body: body(*kind, &fields, *rest), private: vec![*rest; 300] };
                cm.receive(now, handle(*from), &m.encode());
            }
            Step::Time { ms } => {
                now += Duration::from_millis((*ms).into());
                cm.tick(now);
            }
            Step::Listen { port } => cm.listen(ip_service_id((*port).into())),
            Step::Unlisten { port } => cm.unlisten(ip_service_id((*port).into())),
            Step::Connect { to, port, private, v4 } => {
                let request = Request {
                    to: handle(*to),
                    from: if *v4 { handle(1).dip } else { IpAddr::from([0; 16]) },
                    service_id: ip_service_id((*port).into()),
                    local: local(*to),
                    mtu: Mtu::M1024,
                    retry_count: 7,
                    ack_timeout: *to,
                    ip_port: v4.then_some(9),
                    private: vec![1; (*private).into()],
                };
                ids.extend(cm.connect(now, &request));
            }
            // Refused or not: that is for the manager to say.
            Step::Accept { which, private } => drop(cm.accept(now, id(*which), &local(*which), &vec![2; (*private).into()])),
            Step::Delay { which, exponent } => drop(cm.delay(id(*which), *exponent)),
            Step::Confirm { which } => drop(cm.confirm(id(*which), &[3; 9])),
            Step::Reject { which, reason } => drop(cm.reject(id(*which), RejectReason::of(*reason), &[4; 200])),
            Step::Disconnect { which } => drop(cm.disconnect(now, id(*which), &[5; 250])),
            Step::Serve { port } => cm.serve(ip_datagram_service_id((*port).into())),
            Step::Ask { to, port, private } => {
                let question = ServiceQuestion { to: handle(*to), from: handle(1).dip, service_id: ip_datagram_service_id((*port).into()), ip_port: Some(9), private: vec![6; (*private).into()] };
                ids.extend(cm.ask_service(now, &question));
            }
            Step::Answer { which, private } => {
                let answer = ServiceAnswer { status: ServiceStatus::of(*private), qpn: 2, qkey: 3 };
                drop(cm.answer_service(now, id(*which), &answer, &vec![7; (*private).into()]));
            }
            Step::Forget { which } => cm.forget_service(id(*which)),
            Step::Headers { bytes } => drop(Grh::parse(bytes)),
        }
        while let Some(event) = cm.poll() {
            if let Event::Request { id, .. } | Event::ServiceRequest { id, .. } = event {
                ids.push(id);
            }
        }
        for (_, mad) in cm.take_outgoing() {
            assert!(mad.len() == MAD_BYTES && Message::decode(&mad).is_some(), "only messages go out");
        }
        ids.truncate(16);
    }
    // All of it ends: nobody answers any more.
    for _ in 0..64 {
        now += Duration::from_secs(3600);
        cm.tick(now);
        cm.take_outgoing();
    }
}
