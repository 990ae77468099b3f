//! Frames and actions at random, and what the model says of them.
use super::*;

pub fn off_the_wire(tunnel: bool, function: u16) -> Whence {
    Whence { network: (tunnel, function), sender: None }
}

pub fn any_whence(rng: &mut Rng) -> Whence {
    let network = match rng.below(6) {
        0..2 => (false, 0),
        2 => (false, 0xfff),
        _ => (true, rng.below(u64::from(NF)) as u16),
    };
    let function = rng.below(u64::from(NF)) as u16;
    Whence { network, sender: rng.percent(30).then(|| (function, if network.0 { rng.below(u64::from(NF)) as u16 } else { 0 })) }
}

pub fn origin(whence: Whence) -> Origin {
    Origin::received(whence.network.0, whence.network.1, whence.sender)
}

/// What the block sees of a frame, and that it is cut: of one that is longer than the window that is known when it ends.
pub(in crate::switch) fn seen(frame: &[u8]) -> (Result<Layers, Deep>, bool) {
    match parse(frame) {
        Err(Deep::Truncated) if frame.len() > WINDOW => (parse(&[frame, &[0; 70_000]].concat()), true),
        layers => (layers, false),
    }
}

/// Any frame, of any length up to one far longer than what the block holds, or a packet that may be RoCE; some are cut behind the window.
pub fn any(rng: &mut Rng, n: usize) -> Vec<u8> {
    let mut frame = match n % 4 {
        0 => roce(rng),
        _ => any_frame(rng),
    };
    if frame.is_empty() {
        frame.push(0);
    }
    match n % 10 {
        0 => frame.resize(frame.len().max(60) + rng.below(3000) as usize, 0xa5),
        1 if frame.len() > 14 + 2 => {
            // An IPv4 packet that says that it is longer than it is.
            frame.resize(130 + rng.below(400) as usize, 0x5a);
            frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
            let says = frame.len() as u16 - 14 + rng.below(3) as u16;
            frame[16..18].copy_from_slice(&says.to_be_bytes());
            frame[20..22].fill(0);
        }
        2 => frame.resize(60, 0),
        _ => {}
    }
    frame
}

/// UDP over IPv4 to RoCE's port.
pub fn roce(rng: &mut Rng) -> Vec<u8> {
    let length = 16 + rng.below(200) as usize;
    let payload = rng.bytes(length);
    let mut frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, rng.below(4) as u8, 8, 0, 0x45, 0][..], &(28 + payload.len() as u16).to_be_bytes(), &[0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
    frame.extend([10, 0, 0, 1, 10, 0, 0, rng.below(4) as u8, 0xc0, rng.below(4) as u8, 0x12, 0xb7]);
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// Actions to a function or a port that is none, plain ones and such as change the frame, by MAC addresses of these lines; the others are any.
pub fn action(rng: &mut Rng, rewrites: Range<u64>) -> Action {
    match rng.below(5) {
        4 => {
            // Now and then a line that there is not
            let rewrite = if rng.percent(10) {
                rng.range(REWRITES, 1023) as u16
            } else if rng.percent(60) {
                rng.range(rewrites.start.max(1), rewrites.end - 1) as u16
            } else {
                0
            };
            let (op, tag, dscp) = ([tag_op::NONE, tag_op::SET][rng.below(2) as usize], rng.next_u32() as u16, rng.below(64) as u8);
            let to = Action::default().with_kind(1).with_number(rng.range(8, 11) as u16).with_count(rng.percent(80)).with_rewrite(rewrite).with_tag_op(op).with_tag(tag);
            to.with_dec_ttl(rng.percent(50)).with_write_dscp(rng.percent(50)).with_dscp(dscp)
        }
        0 if rng.percent(50) => Action::default().with_kind(1 + rng.below(2) as u8).with_number(1).with_count(rng.percent(80)).with_write_dscp(rng.percent(25)).with_no_roce(rng.percent(30)),
        0..2 => {
            let to = Action::default().with_kind(1).with_number(rng.range(6, 13) as u16).with_count(rng.percent(80));
            to.with_dec_ttl(rng.percent(40)).with_write_dscp(rng.percent(40)).with_dscp(rng.below(64) as u8)
        }
        2 => Action::default().with_kind([0, 0, 0, 0, 1, 2, 3, 4][rng.below(8) as usize]).with_count(rng.percent(80)).with_no_roce(rng.percent(75)).with_number(9),
        _ => any_action(rng),
    }
}

/// Under which of [`EGRESS`] a frame that is about to leave counts.
pub fn place(fate: Egress) -> usize {
    let name = match fate {
        Egress::Leaves => "left",
        Egress::Deep => "deep",
        Egress::Software => "software",
        Egress::Elsewhere => "elsewhere",
        Egress::Drop(cause) => dropped(cause),
    };
    EGRESS.iter().position(|n| *n == name).expect("it is counted")
}

pub fn dropped(cause: SwitchCause) -> &'static str {
    use SwitchCause::*;
    match cause {
        Acl => "acl",
        Miss => "miss",
        NoRuleRoom => "no_rule_room",
        RoceDenied => "roce_denied",
        PortDown => "port_down",
        ExceptionNoQueue => "exception_no_queue",
        other => panic!("{other:?}"),
    }
}
