//! The function's register window: common configuration (spec 4.1.4.3), interrupt status, device configuration, notifications. A write that the driver should not make is ignored and
//! counted.
use super::device::Device;
use super::queue::Queue;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{feature, status, window, CommonConfig, Notification, NO_VECTOR};

/// Bits of the status that a driver sets, in the order in which it has to; FAILED may come at any time.
const STEPS: [u8; 4] = [status::ACKNOWLEDGE, status::DRIVER, status::FEATURES_OK, status::DRIVER_OK];

impl Device {
    /// A read of the window, 1, 2, 4 or 8 bytes from `offset` on. What is nowhere reads as zero.
    pub fn read(&mut self, offset: u32, into: &mut [u8]) {
        into.fill(0);
        let mut copy = |from: &[u8], base: u32| {
            let at = (offset - base) as usize;
            into.iter_mut().zip(from.get(at..).unwrap_or_default()).for_each(|(to, byte)| *to = *byte);
        };
        match offset {
            window::COMMON..window::ISR => copy(&self.common().0, window::COMMON),
            window::ISR => copy(&[std::mem::take(&mut self.isr)], window::ISR),
            window::DEVICE..window::NOTIFY => {
                self.seen = true;
                copy(&self.config.0, window::DEVICE);
            }
            _ => (),
        }
    }

    /// The common configuration as it reads.
    fn common(&self) -> CommonConfig {
        let word = |features: [u64; 2], select: u32| features.get(select as usize / 2).map_or(0, |two| (two >> (32 * (select % 2))) as u32);
        let mut c = CommonConfig::default();
        c.set_device_feature_select(self.selects.device_features).set_device_feature(word([self.offer.features, 0], self.selects.device_features));
        c.set_driver_feature_select(self.selects.driver_features).set_driver_feature(word([self.features, self.beyond], self.selects.driver_features));
        c.set_config_msix_vector(self.config_vector).set_num_queues(self.queues.len() as u16);
        c.set_device_status(self.status).set_config_generation(self.generation).set_queue_select(self.selects.queue);
        if let Some(q) = self.queues.get(usize::from(self.selects.queue)) {
            c.set_queue_size(q.size).set_queue_msix_vector(q.vector).set_queue_enable(q.engine.is_some().into()).set_queue_notify_off(self.selects.queue);
            c.set_queue_desc(q.areas[0]).set_queue_driver(q.areas[1]).set_queue_device(q.areas[2]).set_queue_reset(q.resets.into());
        }
        c
    }

    /// A write of the window, 1, 2 or 4 bytes from `offset` on.
    pub fn write(&mut self, offset: u32, bytes: &[u8]) {
        let mut raw = [0; 4];
        raw.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        let value = u32::from_le_bytes(raw);
        let outcome = match offset {
            window::NOTIFY.. if offset - window::NOTIFY < window::NOTIFY_SIZE => self.notified((offset - window::NOTIFY) as usize, Notification(raw), bytes.len()),
            _ if self.resets => Err(VirtioCause::BadState),
            window::COMMON..window::ISR => self.set_common((offset - window::COMMON) as usize, bytes.len(), value),
            // Nothing of the device configuration can be written: the MAC address comes by the control queue.
            _ => Err(VirtioCause::BadState),
        };
        if let Err(cause) = outcome {
            self.counters.count(cause);
        }
    }

    fn set_common(&mut self, offset: usize, width: usize, value: u32) -> Result<(), VirtioCause> {
        let (bit, bits) = (8 * offset, 8 * width);
        let whole = |f: &&ferric_abi::layout::Field| f.offset == bit && f.width == bits;
        let half = |f: &&ferric_abi::layout::Field| f.width == 64 && bits == 32 && (f.offset == bit || f.offset + 32 == bit);
        let field = CommonConfig::LAYOUT.fields.iter().find(|f| whole(f) || half(f)).ok_or(VirtioCause::BadState)?;
        match field.name {
            "device_feature_select" => self.selects.device_features = value,
            "driver_feature_select" => self.selects.driver_features = value,
            "driver_feature" => return self.take_features(value),
            "config_msix_vector" => self.config_vector = self.vector(value),
            "device_status" => return self.set_status(value as u8),
            "queue_select" => self.selects.queue = value as u16,
            "queue_enable" => return self.enable(value),
            "queue_reset" => return self.reset_queue(value),
            "queue_msix_vector" => self.selected()?.vector = self.vector(value),
            "queue_size" => self.idle_queue()?.size = value as u16,
            "queue_desc" | "queue_driver" | "queue_device" => {
                let area = ["queue_desc", "queue_driver", "queue_device"].iter().position(|name| *name == field.name).unwrap_or_default();
                let shift = bit - field.offset;
                let address = &mut self.idle_queue()?.areas[area];
                *address = *address & !(u64::from(u32::MAX) << shift) | u64::from(value) << shift;
            }
            // Read only.
            _ => return Err(VirtioCause::BadState),
        }
        Ok(())
    }

    fn vector(&self, value: u32) -> u16 {
        if value < self.offer.vectors.into() {
            value as u16
        } else {
            NO_VECTOR
        }
    }

    fn selected(&mut self) -> Result<&mut Queue, VirtioCause> {
        self.queues.get_mut(usize::from(self.selects.queue)).ok_or(VirtioCause::BadState)
    }

    /// The selected queue, if its size and addresses may be written.
    fn idle_queue(&mut self) -> Result<&mut Queue, VirtioCause> {
        self.selected().ok().filter(|q| q.engine.is_none() && !q.resets).ok_or(VirtioCause::BadState)
    }

    fn take_features(&mut self, value: u32) -> Result<(), VirtioCause> {
        if self.status & status::FEATURES_OK != 0 {
            return Err(VirtioCause::BadState);
        }
        let shift = 32 * (self.selects.driver_features % 2);
        let word = match self.selects.driver_features {
            0..2 => &mut self.features,
            2..4 => &mut self.beyond,
            _ => return Err(VirtioCause::BadState),
        };
        *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(value) << shift;
        Ok(())
    }

    /// Steps of the status come in order, and none is taken back but all (spec 3.1.1, 2.1.1).
    fn set_status(&mut self, value: u8) -> Result<(), VirtioCause> {
        if value == 0 {
            self.reset();
            return Ok(());
        }
        let settable = STEPS.iter().fold(status::FAILED, |all, step| all | step);
        let kept = self.status & settable;
        let wanted = value & settable;
        let reached = STEPS.iter().take_while(|step| wanted & **step != 0).count();
        if value & !(settable | status::NEEDS_RESET) != 0 || kept & !wanted != 0 || STEPS[reached..].iter().any(|step| wanted & step != 0) {
            return Err(VirtioCause::BadState);
        }
        if wanted & !kept & status::FEATURES_OK != 0 && !self.are_features_good() {
            self.status |= wanted & !(status::FEATURES_OK | status::DRIVER_OK);
            return Err(VirtioCause::BadFeatures);
        }
        self.status |= wanted;
        Ok(())
    }

    fn are_features_good(&self) -> bool {
        let needed = feature::VERSION_1 | feature::ACCESS_PLATFORM;
        self.beyond == 0 && self.features & !self.offer.features == 0 && self.features & needed == needed && feature::are_complete(self.features)
    }

    fn enable(&mut self, value: u32) -> Result<(), VirtioCause> {
        let late = self.status & status::DRIVER_OK != 0 && self.features & feature::RING_RESET == 0;
        let settled = self.status & status::FEATURES_OK != 0 && self.status & status::NEEDS_RESET == 0;
        let (role, features, max) = (self.role(self.selects.queue), self.features, self.offer.max_size);
        let queue = self.idle_queue()?;
        if value != 1 || late || !settled {
            return Err(VirtioCause::BadState);
        }
        let role = role.ok_or(VirtioCause::BadEnable)?;
        queue.enable(features, max, role).then_some(()).ok_or(VirtioCause::BadEnable)
    }

    /// Reset of the selected queue (spec 2.6.1): its ring ends, the register reads 1 until no frame of it is out, its other registers are as new.
    fn reset_queue(&mut self, value: u32) -> Result<(), VirtioCause> {
        let (allowed, max) = (self.features & feature::RING_RESET != 0, self.offer.max_size);
        let queue = self.selected()?;
        if value != 1 || !allowed || queue.engine.is_none() {
            return Err(VirtioCause::BadState);
        }
        queue.stop();
        queue.clear(max);
        queue.resets = true;
        self.settle();
        Ok(())
    }

    /// A notification (spec 4.1.5.2). How far the driver says that it has come is not used: the ring says the same.
    fn notified(&mut self, offset: usize, value: Notification, width: usize) -> Result<(), VirtioCause> {
        let wanted = if self.features & feature::NOTIFICATION_DATA != 0 { 4 } else { 2 };
        let place = window::NOTIFY_MULTIPLIER as usize * usize::from(value.queue());
        let engine = self.queues.get_mut(usize::from(value.queue())).and_then(|queue| queue.engine.as_mut());
        let engine = engine.filter(|_| width == wanted && offset == place && !self.resets).ok_or(VirtioCause::BadNotify)?;
        engine.notify();
        if self.runs() {
            Ok(())
        } else {
            Err(VirtioCause::BadNotify)
        }
    }
}
