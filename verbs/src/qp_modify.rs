//! `ibv_modify_qp`: which attributes a transition must and may name (IBTA 11.2.5.2), and what the driver is told.
use crate::abi::attr::QpAttr;
use crate::abi::consts::*;
use crate::abi::objects::Qp;
use crate::ah::route;
use crate::config::mac_of;
use crate::context::ContextObject;
use crate::errors::{number, Errno};
use crate::mr::access_of;
use crate::qp::{QpInner, QpObject};
use crate::query::MAX_RD_ATOMIC;
use ferric_driver::types::{Mtu, Path, RtrAttr, RtsAttr};
use ferric_driver::ud::Source;
use ferric_driver::QpState;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

/// Attributes a transition must name, and those it may name; `None`: there is no such transition. The table is that of the kernel's `ib_modify_qp_is_ok`,
/// which every other device is asked through (IBTA 11.2.5.2).
fn attributes(kind: c_uint, from: c_uint, to: c_uint) -> Option<(c_uint, c_uint)> {
    if kind == IBV_QPT_RAW_PACKET {
        return match (from, to) {
            (_, IBV_QPS_RESET) | (IBV_QPS_INIT..=IBV_QPS_ERR, IBV_QPS_ERR) => Some((0, 0)),
            (IBV_QPS_RESET, IBV_QPS_INIT) => Some((IBV_QP_PORT, 0)),
            (IBV_QPS_INIT, IBV_QPS_INIT) => Some((0, IBV_QP_PORT)),
            (IBV_QPS_INIT, IBV_QPS_RTR) | (IBV_QPS_RTR | IBV_QPS_RTS, IBV_QPS_RTS) => Some((0, 0)),
            _ => None,
        };
    }
    let (rc, ud) = (kind == IBV_QPT_RC, kind == IBV_QPT_UD);
    let keys = IBV_QP_PKEY_INDEX | if ud { IBV_QP_QKEY } else { IBV_QP_ACCESS_FLAGS };
    let rnr = if rc { IBV_QP_MIN_RNR_TIMER } else { 0 };
    let moves = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
    let later = IBV_QP_CUR_STATE | if ud { IBV_QP_QKEY } else { IBV_QP_ACCESS_FLAGS | moves } | rnr;
    let reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    Some(match (from, to) {
        (_, IBV_QPS_RESET) => (0, 0),
        // From every state but RESET, where there is nothing to flush.
        (IBV_QPS_INIT..=IBV_QPS_ERR, IBV_QPS_ERR) => (0, 0),
        (IBV_QPS_RESET, IBV_QPS_INIT) => (keys | IBV_QP_PORT, 0),
        (IBV_QPS_INIT, IBV_QPS_INIT) => (0, keys | IBV_QP_PORT),
        (IBV_QPS_INIT, IBV_QPS_RTR) if ud => (0, keys),
        (IBV_QPS_INIT, IBV_QPS_RTR) => {
            let connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
            (connected | if rc { IBV_QP_MAX_DEST_RD_ATOMIC } else { 0 } | rnr, keys | IBV_QP_ALT_PATH)
        }
        (IBV_QPS_RTR, IBV_QPS_RTS) => (IBV_QP_SQ_PSN | if rc { reliable } else { 0 }, later),
        (IBV_QPS_RTS | IBV_QPS_SQD, IBV_QPS_RTS) => (0, later),
        (IBV_QPS_SQE, IBV_QPS_RTS) if !rc => (0, later & !moves),
        (IBV_QPS_RTS, IBV_QPS_SQD) => (0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
        (IBV_QPS_SQD, IBV_QPS_SQD) => (0, keys | if ud { 0 } else { IBV_QP_AV | moves } | if rc { IBV_QP_PORT | reliable | IBV_QP_MAX_DEST_RD_ATOMIC } else { 0 } | rnr),
        _ => return None,
    })
}

/// Takes the attributes named by `mask` over into `old`, those of values the card cannot have refused.
fn merge(old: &QpAttr, new: &QpAttr, mask: c_uint) -> Result<QpAttr, c_int> {
    let mut a = *old;
    let has = |bit: c_uint| mask & bit != 0;
    let check = |ok: bool| if ok { Ok(()) } else { Err(libc::EINVAL) };
    if has(IBV_QP_PKEY_INDEX) {
        check(new.pkey_index == 0)?;
    }
    if has(IBV_QP_PORT) {
        check(new.port_num == 1)?;
        a.port_num = 1;
    }
    if has(IBV_QP_ACCESS_FLAGS) {
        let peers = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
        check(new.qp_access_flags & !(IBV_ACCESS_LOCAL_WRITE | peers) == 0)?;
        a.qp_access_flags = new.qp_access_flags;
    }
    if has(IBV_QP_QKEY) {
        a.qkey = new.qkey;
    }
    if has(IBV_QP_AV) {
        a.ah_attr = new.ah_attr;
    }
    if has(IBV_QP_PATH_MTU) {
        check((1..=5).contains(&new.path_mtu))?;
        a.path_mtu = new.path_mtu;
    }
    if has(IBV_QP_DEST_QPN) {
        check(new.dest_qp_num >> 24 == 0)?;
        a.dest_qp_num = new.dest_qp_num;
    }
    if has(IBV_QP_RQ_PSN) {
        a.rq_psn = new.rq_psn & 0xff_ffff;
    }
    if has(IBV_QP_SQ_PSN) {
        a.sq_psn = new.sq_psn & 0xff_ffff;
    }
    if has(IBV_QP_MAX_DEST_RD_ATOMIC) {
        check(new.max_dest_rd_atomic <= MAX_RD_ATOMIC)?;
        a.max_dest_rd_atomic = new.max_dest_rd_atomic;
    }
    if has(IBV_QP_MAX_QP_RD_ATOMIC) {
        check(new.max_rd_atomic <= MAX_RD_ATOMIC)?;
        a.max_rd_atomic = new.max_rd_atomic;
    }
    if has(IBV_QP_MIN_RNR_TIMER) {
        check(new.min_rnr_timer < 32)?;
        a.min_rnr_timer = new.min_rnr_timer;
    }
    if has(IBV_QP_TIMEOUT) {
        check(new.timeout < 32)?;
        a.timeout = new.timeout;
    }
    if has(IBV_QP_RETRY_CNT) {
        check(new.retry_cnt < 8)?;
        a.retry_cnt = new.retry_cnt;
    }
    if has(IBV_QP_RNR_RETRY) {
        check(new.rnr_retry < 8)?;
        a.rnr_retry = new.rnr_retry;
    }
    // There is no second path to migrate to.
    check(!has(IBV_QP_ALT_PATH) && (!has(IBV_QP_PATH_MIG_STATE) || new.path_mig_state == 0))?;
    Ok(a)
}

fn mtu(n: c_uint) -> Mtu {
    [Mtu::M256, Mtu::M512, Mtu::M1024, Mtu::M2048, Mtu::M4096][(n as usize).clamp(1, 5) - 1]
}

/// Any of the ports RoCE takes source ports from; the same for one pair of queue pairs, so that their packets take one way.
fn source_port(qpn: u32, dest: u32) -> u16 {
    0xc000 | ((qpn.wrapping_mul(31) ^ dest.wrapping_mul(17)) & 0x3fff) as u16
}

fn to_rtr(context: &ContextObject, inner: &mut QpInner, a: &QpAttr) -> Result<(), c_int> {
    let sip = context.shared.named.ip;
    let smac = mac_of(sip);
    if inner.kind == IBV_QPT_UD {
        let source = Source { smac, sip, vlan: None, udp_sport: source_port(inner.driver.qpn(), 0), flow_label: 0 };
        return inner.driver.to_rtr_ud(Mtu::M4096, &source).errno("queue pair to RTR");
    }
    if inner.kind == IBV_QPT_RAW_PACKET {
        let attr = RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None };
        return inner.driver.to_rtr(access_of(0), &attr).errno("queue pair to RTR");
    }
    let to = route(context, &a.ah_attr)?;
    let path = Path {
        dmac: to.dmac,
        smac,
        dip: to.dip,
        sip,
        vlan: None,
        udp_sport: source_port(inner.driver.qpn(), a.dest_qp_num),
        tclass: to.tclass,
        hop_limit: to.hop_limit,
        flow_label: a.ah_attr.grh.flow_label & 0xf_ffff,
    };
    let attr =
        RtrAttr { mtu: mtu(a.path_mtu), dest_qpn: a.dest_qp_num, rq_psn: a.rq_psn, min_rnr_timer: a.min_rnr_timer, repeat_nak: false, max_dest_rd_atomic: a.max_dest_rd_atomic, path: Some(path) };
    inner.driver.to_rtr(access_of(a.qp_access_flags), &attr).errno("queue pair to RTR")
}

fn to_rts(context: &ContextObject, inner: &mut QpInner, a: &QpAttr) -> Result<(), c_int> {
    if inner.kind == IBV_QPT_UD {
        return inner.driver.to_rts_ud(a.sq_psn).errno("queue pair to RTS");
    }
    // Zero means no time-out at all.
    let timeout = if a.timeout == 0 { 0 } else { a.timeout.max(context.shared.least_ack_timeout) };
    let attr = RtsAttr { sq_psn: a.sq_psn, timeout, retry_cnt: a.retry_cnt, rnr_retry: a.rnr_retry, max_rd_atomic: a.max_rd_atomic };
    inner.driver.to_rts(&attr).errno("queue pair to RTS")
}

/// Modifies a queue pair.
pub fn modify(context: &ContextObject, inner: &mut QpInner, new: &QpAttr, mask: c_uint) -> Result<(), c_int> {
    let to = if mask & IBV_QP_STATE != 0 { new.qp_state } else { inner.attr.qp_state };
    let from = match inner.attr.qp_state {
        // An unreliable one may have gone there by itself.
        state @ (IBV_QPS_RTS | IBV_QPS_SQD) if to == IBV_QPS_RTS && inner.kind != IBV_QPT_RC => {
            let failed = inner.driver.query().errno("queue pair")?.state == QpState::SqError;
            if failed {
                IBV_QPS_SQE
            } else {
                state
            }
        }
        state => state,
    };
    if mask & IBV_QP_CUR_STATE != 0 && new.cur_qp_state != from {
        return Err(libc::EINVAL);
    }
    let (must, may) = attributes(inner.kind, from, to).ok_or(libc::EINVAL)?;
    let given = mask & !IBV_QP_STATE;
    if given & must != must || given & !(must | may) != 0 {
        return Err(libc::EINVAL);
    }
    let mut a = merge(&inner.attr, new, mask)?;
    match (from, to) {
        (_, IBV_QPS_RESET) => {
            inner.driver.to_reset().errno("queue pair to RESET")?;
            a = QpAttr { cap: a.cap, ..Default::default() };
        }
        (_, IBV_QPS_ERR) => inner.driver.to_error().errno("queue pair to ERROR")?,
        (IBV_QPS_RESET, IBV_QPS_INIT) if inner.kind == IBV_QPT_UD => inner.driver.to_init_ud(a.qkey).errno("queue pair to INIT")?,
        (IBV_QPS_RESET, IBV_QPS_INIT) => inner.driver.to_init(access_of(a.qp_access_flags)).errno("queue pair to INIT")?,
        // Rights are told again with RTR; a Q_Key is not.
        (IBV_QPS_INIT, IBV_QPS_INIT) if a.qkey == inner.attr.qkey => {}
        (IBV_QPS_INIT, IBV_QPS_RTR) if a.qkey == inner.attr.qkey => to_rtr(context, inner, &a)?,
        // From here on the card's rights and keys stay what they are.
        (IBV_QPS_RTR, IBV_QPS_RTS) if a.qkey == inner.attr.qkey && a.qp_access_flags == inner.attr.qp_access_flags => to_rts(context, inner, &a)?,
        (IBV_QPS_RTS, IBV_QPS_RTS) if a.qkey == inner.attr.qkey && a.qp_access_flags == inner.attr.qp_access_flags && a.min_rnr_timer == inner.attr.min_rnr_timer => {}
        // The card changes nothing of a queue pair that is drained.
        (IBV_QPS_SQD, IBV_QPS_SQD) if given == 0 => {}
        (IBV_QPS_RTS, IBV_QPS_SQD) => inner.driver.to_sqd().errno("queue pair to SQD")?,
        (IBV_QPS_SQD | IBV_QPS_SQE, IBV_QPS_RTS) if a.qkey == inner.attr.qkey && a.qp_access_flags == inner.attr.qp_access_flags && a.min_rnr_timer == inner.attr.min_rnr_timer => {
            inner.driver.resume().errno("queue pair to RTS")?;
        }
        _ => return Err(libc::EOPNOTSUPP),
    }
    a.qp_state = to;
    inner.attr = a;
    Ok(())
}

/// Modifies a queue pair.
#[no_mangle]
pub unsafe extern "C" fn ibv_modify_qp(qp: *mut Qp, attr: *mut QpAttr, mask: c_int) -> c_int {
    // SAFETY: handles and attributes of the caller's, by its promise.
    let (object, context, new) = unsafe { (QpObject::of(qp), ContextObject::of((*qp).context), &*attr) };
    let mut inner = object.inner.lock();
    if mask as c_uint & IBV_QP_EN_SQD_ASYNC_NOTIFY != 0 {
        object.tell_drained.store(new.en_sqd_async_notify != 0, Ordering::Release);
    }
    let done = modify(context, &mut inner, new, mask as c_uint);
    if done.is_ok() {
        // SAFETY: a handle in use; no reference to what the program sees exists.
        unsafe { (*object.seen()).qp_base.state = inner.attr.qp_state };
    }
    number("ibv_modify_qp", done)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [c_uint; 7] = [IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR];

    #[test]
    fn transitions_are_those_of_the_specification() {
        use IBV_QPS_ERR as ERR;
        use IBV_QPS_INIT as INIT;
        use IBV_QPS_RESET as RESET;
        use IBV_QPS_RTR as RTR;
        use IBV_QPS_RTS as RTS;
        use IBV_QPS_SQD as SQD;
        use IBV_QPS_SQE as SQE;
        // Line by line as in `qp_state_table` of the kernel.
        let table: [(c_uint, &[c_uint]); 7] = [
            (RESET, &[RESET, INIT]),
            (INIT, &[RESET, ERR, INIT, RTR]),
            (RTR, &[RESET, ERR, RTS]),
            (RTS, &[RESET, ERR, RTS, SQD]),
            (SQD, &[RESET, ERR, RTS, SQD]),
            (SQE, &[RESET, ERR, RTS]),
            (ERR, &[RESET, ERR]),
        ];
        for kind in [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD] {
            for (from, to) in table {
                // Send errors do not stop a reliable queue pair's sends alone.
                let is = |next| to.contains(&next) && !(kind == IBV_QPT_RC && from == SQE && next == RTS);
                STATES.iter().for_each(|next| assert_eq!(attributes(kind, from, *next).is_some(), is(*next), "{kind}: {from} to {next}"));
                // These name nothing, not even the state there was.
                [RESET, ERR].iter().filter(|n| is(**n)).for_each(|next| assert_eq!(attributes(kind, from, *next), Some((0, 0))));
            }
        }
        assert_eq!(attributes(IBV_QPT_RC, 9, ERR), None);
        let named = |kind| attributes(kind, INIT, RTR).unwrap().0;
        assert_eq!(named(IBV_QPT_UD), 0);
        assert_eq!(named(IBV_QPT_RC) & !named(IBV_QPT_UC), IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        // The state there was may be named from RTR on, and where sends begin or go on.
        for (from, to) in table.iter().flat_map(|(f, to)| to.iter().map(move |t| (*f, *t))) {
            if let Some((_, may)) = attributes(IBV_QPT_UC, from, to) {
                assert_eq!(may & IBV_QP_CUR_STATE != 0, to == RTS, "{from} to {to}");
            }
        }
        assert_eq!(attributes(IBV_QPT_UC, SQE, RTS), Some((0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS)));
        assert_eq!(attributes(IBV_QPT_UD, SQD, SQD), Some((0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY)));
    }

    #[test]
    fn values_the_card_cannot_have_are_refused() {
        let old = QpAttr::default();
        for (mask, new) in [
            (IBV_QP_PORT, QpAttr { port_num: 2, ..old }),
            (IBV_QP_PKEY_INDEX, QpAttr { pkey_index: 1, ..old }),
            (IBV_QP_PATH_MTU, QpAttr { path_mtu: 6, ..old }),
            (IBV_QP_DEST_QPN, QpAttr { dest_qp_num: 1 << 24, ..old }),
            (IBV_QP_MAX_QP_RD_ATOMIC, QpAttr { max_rd_atomic: 17, ..old }),
            (IBV_QP_MAX_DEST_RD_ATOMIC, QpAttr { max_dest_rd_atomic: 17, ..old }),
            (IBV_QP_RETRY_CNT, QpAttr { retry_cnt: 8, ..old }),
            (IBV_QP_RNR_RETRY, QpAttr { rnr_retry: 8, ..old }),
            (IBV_QP_TIMEOUT, QpAttr { timeout: 32, ..old }),
            (IBV_QP_ACCESS_FLAGS, QpAttr { qp_access_flags: 16, ..old }),
            (IBV_QP_ALT_PATH, old),
        ] {
            assert_eq!(merge(&old, &new, mask).err(), Some(libc::EINVAL), "{mask:#x}");
            assert!(mask == IBV_QP_ALT_PATH || merge(&old, &new, 0).is_ok());
        }
    }
}
