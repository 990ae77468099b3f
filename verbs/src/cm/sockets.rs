//! rsockets are not there; programs that use them see that at once. `rpoll` is poll(2): stock programs call it for ordinary descriptors too.
use crate::errors::set_errno;
use std::ffi::c_int;

#[no_mangle]
unsafe extern "C" fn ferric_rpoll(fds: *mut libc::pollfd, n: libc::nfds_t, timeout: c_int) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe { libc::poll(fds, n, timeout) }
}

/// What every function that is not there jumps to: -1.
#[no_mangle]
extern "C" fn ferric_not_there() -> isize {
    set_errno(libc::EOPNOTSUPP);
    -1
}
