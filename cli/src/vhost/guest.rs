//! What a front end has said of its guest: features, memory, rings. The messages themselves are the crate `vhost`'s.
use super::ring::{GuestMemory, Ring};
use ferric_abi::virtio::feature;
use ferric_model::virtio::walk::Direction;
use std::fs::File;
use std::io;
use vhost::vhost_user::message::*;
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use vhost::VhostUserMemoryRegionBase;
use vm_memory::{GuestAddress, GuestRegionMmap};

/// Rings: the one that frames are received into, and the one that they are sent from.
pub const RX: usize = 0;
pub const TX: usize = 1;
/// What guests may have. Whatever else they see in their card is QEMU's doing. Not RING_RESET: of a queue that a guest resets QEMU 11 tells a vhost-user back end nothing.
pub const OFFERED: u64 = feature::VERSION_1
    | feature::MAC
    | feature::MTU
    | feature::MRG_RXBUF
    | feature::INDIRECT_DESC
    | feature::EVENT_IDX
    | feature::RING_PACKED
    | feature::IN_ORDER
    | feature::CSUM
    | feature::GUEST_CSUM
    | feature::HOST_TSO4
    | feature::HOST_TSO6
    | feature::HOST_ECN
    | feature::HOST_USO;

/// A guest.
pub struct Guest {
    features: u64,
    memory: GuestMemory,
    /// Where the front end has its guest's memory: address there, bytes, address in the guest.
    seen: Vec<(u64, u64, u64)>,
    rings: [Ring; 2],
}

impl Default for Guest {
    fn default() -> Self {
        Self { features: 0, memory: GuestMemory::new(), seen: Vec::new(), rings: [Ring::new(Direction::Writable), Ring::new(Direction::Readable)] }
    }
}

impl Guest {
    /// Its memory, and its rings.
    pub fn parts(&mut self) -> (&GuestMemory, &mut [Ring; 2]) {
        (&self.memory, &mut self.rings)
    }

    /// Its rings.
    pub fn rings(&self) -> &[Ring; 2] {
        &self.rings
    }

    /// The front end has not said features yet.
    pub fn is_new(&self) -> bool {
        self.features == 0
    }

    /// What both sides have agreed on.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Bytes of the header in front of each frame. Drivers of the time before VERSION_1 leave out its last field, unless buffers are merged.
    pub fn header(&self) -> usize {
        if self.features & (feature::VERSION_1 | feature::MRG_RXBUF) != 0 {
            12
        } else {
            10
        }
    }

    fn ring(&mut self, index: u32) -> Result<&mut Ring> {
        self.rings.get_mut(index as usize).ok_or_else(|| refuse(format!("there is no ring {index}; there are a ring to receive, 0, and one to send, 1 (QEMU: leave out queues=)")))
    }

    /// The guest's address of what the front end has at `address`.
    fn guest_address(&self, address: u64) -> Result<u64> {
        let found = self.seen.iter().find_map(|(at, bytes, guest)| address.checked_sub(*at).filter(|offset| offset < bytes).map(|offset| guest + offset));
        found.ok_or_else(|| refuse(format!("a ring at {address:#x}, where the front end has shown no memory (QEMU: memory-backend-memfd with share=on)")))
    }

    fn check_rings(&mut self) {
        for (ring, name) in self.rings.iter_mut().zip(["receive", "send"]) {
            if !ring.check(&self.memory) {
                log::warn!("the {name} ring is not within the guest's memory; it stands until the front end starts it again");
            }
        }
    }
}

/// An answer that ends the connection, and what is said of it.
fn refuse(why: String) -> Error {
    Error::ReqHandlerError(io::Error::other(why))
}

/// What is not offered, and asked for all the same.
fn never<T>() -> Result<T> {
    Err(Error::InvalidOperation("it has not been offered"))
}

impl VhostUserBackendReqHandlerMut for Guest {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        *self = Self::default();
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        self.reset_owner()
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(OFFERED | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        let offered = self.get_features()?;
        if features & !offered != 0 {
            return Err(refuse(format!("features {:#x} have not been offered", features & !offered)));
        }
        self.features = features;
        let at_once = features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() == 0;
        for ring in &mut self.rings {
            ring.set_features(features);
            if at_once {
                ring.enable(true);
            }
        }
        Ok(())
    }

    fn set_mem_table(&mut self, regions: &[VhostUserMemoryRegion], files: Vec<File>, _postcopy: Option<bool>) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        let mut list = Vec::new();
        let mut seen = Vec::new();
        for (region, file) in regions.iter().zip(files) {
            // Copied out: the record is packed.
            let (guest, at, bytes) = (region.guest_phys_addr, region.user_addr, region.memory_size);
            let mapped = GuestRegionMmap::new(region.mmap_region(file)?, GuestAddress(guest)).ok_or_else(|| refuse(format!("memory at {guest:#x} is longer than the guest's addresses")))?;
            list.push((guest, mapped));
            seen.push((at, bytes, guest));
        }
        list.sort_by_key(|(guest, _)| *guest);
        self.memory = GuestMemory::from_regions(list.into_iter().map(|(_, mapped)| mapped).collect()).map_err(|e| refuse(format!("the guest's memory: {e}")))?;
        self.seen = seen;
        self.check_rings();
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        log::debug!("ring {index}: {num} entries");
        if !self.ring(index)?.set_size(num) {
            return Err(refuse(format!("ring {index} of {num} entries; it may have {} at most, a power of two", super::ring::MOST)));
        }
        Ok(())
    }

    fn set_vring_addr(&mut self, index: u32, _flags: VhostUserVringAddrFlags, descriptor: u64, used: u64, available: u64, _log: u64) -> Result<()> {
        log::debug!("ring {index}: at {descriptor:#x}, {available:#x}, {used:#x}");
        let [descriptor, available, used] = [self.guest_address(descriptor)?, self.guest_address(available)?, self.guest_address(used)?];
        if !self.ring(index)?.set_areas([descriptor, available, used]) {
            return Err(refuse(format!("ring {index} is not aligned")));
        }
        self.check_rings();
        Ok(())
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        log::debug!("ring {index}: from {base} on");
        self.ring(index)?.set_base(base as u16);
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let base = self.ring(index)?.stop();
        log::debug!("ring {index}: stopped at {base}");
        Ok(VhostUserVringState::new(index, base.into()))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        log::debug!("ring {index}: begins");
        self.ring(index.into())?.start(file);
        self.check_rings();
        Ok(())
    }

    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        self.ring(index.into())?.set_call(file);
        Ok(())
    }

    fn set_vring_err(&mut self, index: u8, _file: Option<File>) -> Result<()> {
        self.ring(index.into()).map(drop)
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::REPLY_ACK)
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        match features & !VhostUserProtocolFeatures::REPLY_ACK.bits() {
            0 => Ok(()),
            others => Err(refuse(format!("protocol features {others:#x} have not been offered"))),
        }
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.rings.len() as u64)
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        log::debug!("ring {index}: enabled: {enable}");
        self.ring(index)?.enable(enable);
        Ok(())
    }

    fn get_config(&mut self, _offset: u32, _size: u32, _flags: VhostUserConfigFlags) -> Result<Vec<u8>> {
        never()
    }

    fn set_config(&mut self, _offset: u32, _buf: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        never()
    }

    fn set_gpu_socket(&mut self, _gpu_backend: GpuBackend) -> Result<()> {
        never()
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        never()
    }

    fn get_inflight_fd(&mut self, _inflight: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        never()
    }

    fn set_inflight_fd(&mut self, _inflight: &VhostUserInflight, _file: File) -> Result<()> {
        never()
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        never()
    }

    fn add_mem_region(&mut self, _region: &VhostUserSingleMemoryRegion, _fd: File, _postcopy: Option<bool>) -> Result<Option<VhostUserMemoryRegionBase>> {
        never()
    }

    fn remove_mem_region(&mut self, _region: &VhostUserSingleMemoryRegion) -> Result<()> {
        never()
    }

    fn set_device_state_fd(&mut self, _direction: VhostTransferStateDirection, _phase: VhostTransferStatePhase, _fd: File) -> Result<Option<File>> {
        never()
    }

    fn check_device_state(&mut self) -> Result<()> {
        never()
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        never()
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        never()
    }
}
