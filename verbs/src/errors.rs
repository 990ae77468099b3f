//! errno: how C programs are told.
use ferric_abi::codes::AdminStatus;
use ferric_driver::Error;
use std::ffi::c_int;

/// The number rdma-core's providers give in the same case.
pub fn errno_of(e: &Error) -> c_int {
    match e {
        // What the system says of this process, and not of the card, is told as it is.
        Error::Open { errno: n @ (libc::EBUSY | libc::EACCES | libc::EPERM | libc::EMFILE | libc::ENFILE | libc::ENOMEM), .. } => *n,
        Error::NotFerric(_) | Error::Version { .. } | Error::Open { .. } => libc::ENODEV,
        Error::Gone => libc::EIO,
        Error::Fault { .. } => libc::EFAULT,
        Error::Map { errno, .. } if *errno != 0 => *errno,
        Error::Map { .. } | Error::NoMemory { .. } | Error::Exhausted(_) | Error::QueueFull => libc::ENOMEM,
        Error::Admin { status: AdminStatus::InUse, .. } => libc::EBUSY,
        Error::Admin { status: AdminStatus::DmaError, .. } => libc::EIO,
        Error::Unsupported(_) => libc::EOPNOTSUPP,
        Error::NoNeighbour(_) => libc::EHOSTUNREACH,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// By what is typed, whatever the words are.
    #[test]
    fn numbers_do_not_depend_on_words() {
        let open = |errno| Error::Open { device: "a card in use".into(), problem: "it is in use, os error 16".into(), mend: String::new(), errno };
        let opened = [libc::EBUSY, libc::EACCES, libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOENT, libc::ECONNREFUSED, 0].map(|n| errno_of(&open(n)));
        assert_eq!(opened, [libc::EBUSY, libc::EACCES, libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENODEV, libc::ENODEV, libc::ENODEV]);
        let map = |errno| errno_of(&Error::Map { len: 1, reason: String::new(), errno });
        assert_eq!([libc::EFAULT, libc::EMFILE, 0].map(map), [libc::EFAULT, libc::EMFILE, libc::ENOMEM]);
        assert_eq!(errno_of(&Error::Fault { start: 0, len: 1 }), libc::EFAULT);
        assert_eq!(errno_of(&Error::NoMemory { bytes: 1 }), libc::ENOMEM);
    }
}
