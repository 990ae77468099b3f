//! `ferric vf`: virtual functions of a card come and go.
use crate::serve;
use ferric_driver::vfio::sysfs::Sysfs;
use ferric_driver::vfio_user::VfioUserDevice;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// What to do with virtual functions.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum Command {
    /// Enable them
    ///
    /// Of a served card (`ferric card serve --vfs N`) they are there until this command is ended (Ctrl-C), for it holds the physical function, and a function whose owner goes is reset. Of a card on the PCI bus
    /// they stay, and it needs root.
    Enable {
        /// Physical function: its PCI address or the path of its socket.
        device: String,
        /// How many.
        count: u16,
    },
    /// Disable those of a card on the PCI bus (root)
    Disable {
        /// PCI address of the physical function.
        device: String,
    },
}

/// Says what a served card has, enables `count` functions of it, and gives it back, to be kept.
fn enable(socket: &str, count: u16, out: &mut impl Write) -> Result<Arc<VfioUserDevice>, Box<dyn Error>> {
    let device = VfioUserDevice::connect(Path::new(socket))?;
    if let Some(v) = device.virtual_functions()? {
        writeln!(out, "up to {} virtual functions, device {:04x}, the first {} behind the physical one, {} from one to the next", v.total, v.device, v.offset, v.stride)?;
        v.bars.iter().try_for_each(|(bar, bytes)| writeln!(out, "BAR {bar} of each has {bytes} bytes"))?;
    }
    device.set_virtual_functions(count)?;
    writeln!(out, "{count} enabled")?;
    Ok(Arc::new(device))
}

/// Runs one.
pub fn run(sysfs: &Sysfs, command: &Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Enable { device, count } if device.contains('/') => {
            serve::catch_signals();
            let held = enable(device, *count, &mut std::io::stdout())?;
            serve::wait("the served card has ended", || held.virtual_functions().is_err())?;
            // Its users are told before the function is reset.
            Ok(held.set_virtual_functions(0)?)
        }
        Command::Enable { device, count } => Ok(sysfs.set_virtual_functions(device, *count)?),
        Command::Disable { device } if device.contains('/') => Err("virtual functions of a served card go when `ferric vf enable`, which holds it, is ended".into()),
        Command::Disable { device } => Ok(sysfs.set_virtual_functions(device, 0)?),
    }
}
