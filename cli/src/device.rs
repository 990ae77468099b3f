//! Devices by name.
use ferric_driver::device::Device;
use ferric_driver::vfio::VfioDevice;
use ferric_driver::vfio_user::VfioUserDevice;
use ferric_driver::Error;
use std::path::Path;
use std::sync::Arc;

/// Opens `name`: the path of a vfio-user socket (anything with a slash), or a PCI address.
pub fn open(name: &str) -> Result<Arc<dyn Device>, Error> {
    if name.contains('/') {
        VfioUserDevice::open(Path::new(name))
    } else {
        VfioDevice::open(name)
    }
}
