//! Socket addresses.
use crate::abi::cma::SockAddr;
use std::ffi::{c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

/// A socket address of the program's.
pub unsafe fn address(at: *const c_void) -> Result<SocketAddr, c_int> {
    if at.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: a socket address of its family, by the callers' promise.
    unsafe {
        match c_int::from(at.cast::<u16>().read_unaligned()) {
            libc::AF_INET => {
                let a = at.cast::<libc::sockaddr_in>().read_unaligned();
                Ok(SocketAddr::new(IpAddr::V4(u32::from_be(a.sin_addr.s_addr).into()), u16::from_be(a.sin_port)))
            }
            libc::AF_INET6 => {
                let a = at.cast::<libc::sockaddr_in6>().read_unaligned();
                Ok(SocketAddr::new(IpAddr::V6(a.sin6_addr.s6_addr.into()), u16::from_be(a.sin6_port)))
            }
            _ => Err(libc::EAFNOSUPPORT),
        }
    }
}

/// A socket address for the program, and its size.
pub fn sockaddr(a: SocketAddr) -> (SockAddr, u32) {
    let mut out = SockAddr([0; 128]);
    out.0[2..4].copy_from_slice(&a.port().to_be_bytes());
    let family = match a.ip() {
        IpAddr::V4(ip) => {
            out.0[4..8].copy_from_slice(&ip.octets());
            libc::AF_INET
        }
        IpAddr::V6(ip) => {
            out.0[8..24].copy_from_slice(&ip.octets());
            libc::AF_INET6
        }
    };
    out.0[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    (out, if a.is_ipv4() { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() } as u32)
}

/// A port that no identifier of this process has had lately.
pub fn ephemeral() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id() as u16;
    49152 + NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(start) % 16384
}
