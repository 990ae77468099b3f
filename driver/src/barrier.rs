//! Order between this processor's memory and a card, which is outside the processors' shareability domain: `std`'s fences order processors only
//! (on ARM they are inner-shareable), so they are not enough between a ring and its doorbell. The same as
//! `udma_to_device_barrier` and `udma_from_device_barrier` of rdma-core.

/// What was stored before is visible to the card before what is stored afterwards: between a work request and the doorbell that announces it.
#[inline(always)]
pub fn to_device() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier; no memory, register or flag is changed.
    unsafe {
        std::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    stores();
}

/// What is loaded afterwards is not older than what was loaded before: between a phase bit and the record that it announces.
#[inline(always)]
pub fn from_device() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    loads();
}

/// x86 stores and loads in order, so that only the compiler is to be held; elsewhere the strongest fence there is.
#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
fn stores() {
    #[cfg(target_arch = "x86_64")]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
fn loads() {
    #[cfg(target_arch = "x86_64")]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Acquire);
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
