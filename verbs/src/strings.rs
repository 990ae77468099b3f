//! Names of numbers, link rates, and files of sysfs.
use std::ffi::{c_char, c_int, c_uint, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn name(names: &[&'static CStr], n: c_uint) -> *const c_char {
    names.get(n as usize).copied().unwrap_or(c"unknown").as_ptr()
}

#[no_mangle]
extern "C" fn ibv_wc_status_str(status: c_uint) -> *const c_char {
    name(
        &[
            c"success",
            c"local length error",
            c"local QP operation error",
            c"local EE context operation error",
            c"local protection error",
            c"Work Request Flushed Error",
            c"memory window bind error",
            c"bad response error",
            c"local access error",
            c"remote invalid request error",
            c"remote access error",
            c"remote operation error",
            c"transport retry counter exceeded",
            c"RNR retry counter exceeded",
            c"local RDD violation error",
            c"remote invalid RD request",
            c"aborted error",
            c"invalid EE context number",
            c"invalid EE context state",
            c"fatal error",
            c"response timeout error",
            c"general error",
            c"tag matching error",
            c"tag matching rendezvous incomplete",
        ],
        status,
    )
}

#[no_mangle]
extern "C" fn ibv_node_type_str(node: c_int) -> *const c_char {
    name(&[c"unknown", c"InfiniBand channel adapter", c"InfiniBand switch", c"InfiniBand router", c"iWARP NIC", c"usNIC", c"usNIC UDP", c"unspecified"], node.max(0) as c_uint)
}

#[no_mangle]
extern "C" fn ibv_port_state_str(state: c_uint) -> *const c_char {
    name(&[c"no state change (NOP)", c"PORT_DOWN", c"PORT_INIT", c"PORT_ARMED", c"PORT_ACTIVE", c"PORT_ACTIVE_DEFER"], state)
}

#[no_mangle]
extern "C" fn ibv_event_type_str(event: c_uint) -> *const c_char {
    name(
        &[
            c"CQ error",
            c"local work queue catastrophic error",
            c"invalid request local work queue error",
            c"local access violation work queue error",
            c"communication established",
            c"send queue drained",
            c"path migrated",
            c"path migration request error",
            c"local catastrophic error",
            c"port active",
            c"port error",
            c"LID change",
            c"P_Key change",
            c"SM change",
            c"SRQ catastrophic error",
            c"SRQ limit reached",
            c"last WQE reached",
            c"client reregistration",
            c"GID table change",
            c"WQ fatal",
        ],
        event,
    )
}

/// `ibv_rate` and megabits per second.
const RATES: [(c_uint, c_int); 23] = [
    (2, 2_500),
    (5, 5_000),
    (3, 10_000),
    (6, 20_000),
    (4, 30_000),
    (7, 40_000),
    (8, 60_000),
    (9, 80_000),
    (10, 120_000),
    (11, 14_062),
    (12, 56_250),
    (13, 112_500),
    (14, 168_750),
    (15, 25_781),
    (16, 103_125),
    (17, 206_250),
    (18, 309_375),
    (19, 28_125),
    (20, 53_125),
    (21, 425_000),
    (22, 637_500),
    (23, 850_000),
    (24, 1_275_000),
];

#[no_mangle]
extern "C" fn ibv_rate_to_mbps(rate: c_uint) -> c_int {
    RATES.iter().find(|r| r.0 == rate).map_or(-1, |r| r.1)
}

#[no_mangle]
extern "C" fn mbps_to_ibv_rate(mbps: c_int) -> c_uint {
    RATES.iter().find(|r| r.1 == mbps).map_or(0, |r| r.0)
}

/// Since rdma-core 57.
#[no_mangle]
extern "C" fn ibv_wr_opcode_str(opcode: c_uint) -> *const c_char {
    const NAMES: [&CStr; 16] = [
        c"rdma-write",
        c"rdma-write-with-imm",
        c"send",
        c"send-with-imm",
        c"rdma-read",
        c"atomic-cmp-and-swp",
        c"atomic-fetch-and-add",
        c"local-inv",
        c"bind-mw",
        c"send-with-inv",
        c"tso",
        c"driver1",
        UNKNOWN,
        UNKNOWN,
        c"flush",
        c"atomic-write",
    ];
    const UNKNOWN: &CStr = c"unknown";
    NAMES.get(opcode as usize).copied().unwrap_or(UNKNOWN).as_ptr()
}

#[no_mangle]
extern "C" fn ibv_rate_to_mult(rate: c_uint) -> c_int {
    RATES.iter().find(|r| r.0 == rate).map_or(-1, |r| r.1 / 2_500)
}

#[no_mangle]
extern "C" fn mult_to_ibv_rate(mult: c_int) -> c_uint {
    RATES.iter().find(|r| mult > 0 && r.1 / 2_500 == mult).map_or(0, |r| r.0)
}

#[no_mangle]
extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}

/// Reads a file of sysfs without its last newline; there are none about our cards.
#[no_mangle]
unsafe extern "C" fn ibv_read_sysfs_file(dir: *const c_char, file: *const c_char, buf: *mut c_char, size: usize) -> c_int {
    if dir.is_null() || file.is_null() || buf.is_null() || size == 0 {
        return -1;
    }
    // SAFETY: strings with a zero at the end, by the caller's promise.
    let [dir, file] = unsafe { [CStr::from_ptr(dir), CStr::from_ptr(file)] }.map(|s| OsStr::from_bytes(s.to_bytes()));
    if dir.is_empty() {
        return -1;
    }
    let Ok(mut bytes) = std::fs::read(Path::new(dir).join(file)) else { return -1 };
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    bytes.truncate(size - 1);
    // SAFETY: at most `size` bytes with the zero.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), buf, bytes.len());
        buf.add(bytes.len()).write(0);
    }
    bytes.len() as c_int
}
