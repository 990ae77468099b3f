//! errno: how C programs are told.
use ferric_abi::codes::AdminStatus;
use ferric_driver::Error;
use std::ffi::c_int;

/// The number rdma-core's providers give in the same case.
pub fn errno_of(e: &Error) -> c_int {
    match e {
        Error::Open { problem, .. } if problem.contains("in use") => libc::EBUSY,
        Error::NotFerric(_) | Error::Version { .. } | Error::Open { .. } => libc::ENODEV,
        Error::Gone => libc::EIO,
        Error::Map { .. } | Error::Exhausted(_) | Error::QueueFull => libc::ENOMEM,
        Error::Admin { status: AdminStatus::InUse, .. } => libc::EBUSY,
        Error::Admin { status: AdminStatus::DmaError, .. } => libc::EIO,
        Error::AdminTimeout(_) => libc::ETIMEDOUT,
        Error::Admin { .. } | Error::Invalid(_) | Error::State => libc::EINVAL,
        #[allow(unreachable_patterns)]
        _ => libc::EINVAL,
    }
}

/// Sets `errno`.
pub fn set_errno(n: c_int) {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = n };
}

/// For functions that give a pointer: null with `errno`.
pub fn pointer<T>(what: &str, r: Result<*mut T, c_int>) -> *mut T {
    r.unwrap_or_else(|n| {
        log::debug!("{what}: errno {n}");
        set_errno(n);
        std::ptr::null_mut()
    })
}

/// For functions that give 0 or an error number (most verbs).
pub fn number(what: &str, r: Result<(), c_int>) -> c_int {
    r.err().map_or(0, |n| {
        log::debug!("{what}: errno {n}");
        n
    })
}

/// For functions that give 0 or -1 with `errno`.
pub fn minus_one(what: &str, r: Result<(), c_int>) -> c_int {
    r.map_or_else(
        |n| {
            log::debug!("{what}: errno {n}");
            set_errno(n);
            -1
        },
        |()| 0,
    )
}

/// A driver's result with its `errno`, and a line in the log for people.
pub trait Errno<T> {
    /// `what` was to be done.
    fn errno(self, what: &str) -> Result<T, c_int>;
}

impl<T> Errno<T> for Result<T, Error> {
    fn errno(self, what: &str) -> Result<T, c_int> {
        self.map_err(|e| {
            log::warn!("{what}: {e}");
            errno_of(&e)
        })
    }
}
