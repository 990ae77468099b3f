//! What the kernel says about PCI functions, and what stands between one and this process. Paths are relative to two
//! roots, so that tests can put trees of their own in their place.
use crate::error::{Error, Result};
use ferric_abi::pci;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The driver that gives functions to user space.
pub const VFIO_PCI: &str = "vfio-pci";
/// The module that maps memory for a container. It has parameters, so that `/sys/module` shows it built in as well.
const IOMMU_TYPE1: &str = "vfio_iommu_type1";

/// The system's view of its devices.
#[derive(Clone, Debug)]
pub struct Sysfs {
    sys: PathBuf,
    dev: PathBuf,
}

/// A Ferric function on the PCI bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Domain, bus, device and function.
    pub address: String,
    /// It is a virtual function.
    pub is_virtual: bool,
    /// Kernel driver it is bound to.
    pub driver: Option<String>,
    /// IOMMU group.
    pub group: Option<u32>,
}

/// How a function can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Domain, bus, device and function.
    pub address: String,
    /// Its folder.
    pub path: PathBuf,
    /// Its IOMMU group.
    pub group: u32,
    /// Its device file for iommufd, where the kernel has one.
    pub cdev: Option<PathBuf>,
}

/// Completes and checks a PCI address: `03:00.0` is in domain 0.
pub fn address(text: &str) -> Option<String> {
    let full = if text.matches(':').count() == 1 { format!("0000:{text}") } else { text.to_lowercase() };
    let (rest, function) = full.rsplit_once('.')?;
    let parts: Vec<&str> = rest.split(':').collect();
    let hex = |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_hexdigit());
    let [domain, bus, device] = parts[..] else { return None };
    (hex(domain, 4) && hex(bus, 2) && hex(device, 2) && matches!(function.as_bytes(), [b'0'..=b'7'])).then(|| full.to_lowercase())
}

fn link_name(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_string_lossy().into_owned())
}

fn hex16(path: &Path) -> Option<u16> {
    u16::from_str_radix(fs::read_to_string(path).ok()?.trim().trim_start_matches("0x"), 16).ok()
}

impl Sysfs {
    /// This machine.
    pub fn system() -> Self {
        Self::at(Path::new("/sys"), Path::new("/dev"))
    }

    /// Trees in place of `/sys` and `/dev`.
    pub fn at(sys: &Path, dev: &Path) -> Self {
        Self { sys: sys.into(), dev: dev.into() }
    }

    fn devices(&self) -> PathBuf {
        self.sys.join("bus/pci/devices")
    }

    fn device(&self, address: &str) -> PathBuf {
        self.devices().join(address)
    }

    fn driver(&self, address: &str) -> Option<String> {
        link_name(&self.device(address).join("driver"))
    }

    fn group(&self, address: &str) -> Option<u32> {
        link_name(&self.device(address).join("iommu_group"))?.parse().ok()
    }

    fn identity(&self, address: &str) -> Option<[u16; 2]> {
        let d = self.device(address);
        Some([hex16(&d.join("vendor"))?, hex16(&d.join("device"))?])
    }

    /// Every Ferric function, by address.
    pub fn list(&self) -> Vec<Found> {
        let Ok(entries) = fs::read_dir(self.devices()) else { return Vec::new() };
        let mut found: Vec<Found> = entries
            .flatten()
            .filter_map(|e| {
                let address = e.file_name().to_string_lossy().into_owned();
                let [vendor, device] = self.identity(&address)?;
                let ours = vendor == pci::VENDOR_ID && (device == pci::DEVICE_ID || device == pci::VF_DEVICE_ID);
                ours.then(|| Found { is_virtual: device == pci::VF_DEVICE_ID, driver: self.driver(&address), group: self.group(&address), address })
            })
            .collect();
        found.sort_by(|a, b| a.address.cmp(&b.address));
        found
    }

    /// Everything is as it must be for this process to open the function, or what is not and which command mends it.
    pub fn check(&self, name: &str) -> Result<Ready> {
        let no = |problem: String, mend: String| Err(Error::Open { device: name.into(), problem, mend, errno: libc::ENODEV });
        let Some(address) = address(name) else {
            return no("not a PCI address, which looks like 0000:03:00.0".into(), "see which there are: ferric list".into());
        };
        let path = self.device(&address);
        if !path.exists() {
            return no("there is no such PCI function".into(), "see which there are: ferric list; look again for cards: echo 1 | sudo tee /sys/bus/pci/rescan".into());
        }
        match self.identity(&address) {
            Some([pci::VENDOR_ID, pci::DEVICE_ID | pci::VF_DEVICE_ID]) => {}
            Some([v, d]) => return no(format!("it is {v:04x}:{d:04x}, not a Ferric card ({:04x}:{:04x})", pci::VENDOR_ID, pci::DEVICE_ID), format!("see what it is: lspci -s {address}")),
            None => return no("its identifiers cannot be read".into(), format!("see what it is: lspci -s {address}")),
        }
        let Some(group) = self.group(&address) else {
            return no("it has no IOMMU group: the IOMMU is off, or the machine has none".into(),
                "switch it on in the firmware set-up (VT-d, AMD-Vi) and on the kernel command line, then start again: sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&intel_iommu=on iommu=pt /' /etc/default/grub && sudo update-grub && sudo reboot".into());
        };
        match self.driver(&address) {
            Some(d) if d == VFIO_PCI => {}
            Some(d) => return no(format!("it is bound to the driver {d}"), format!("give it to {VFIO_PCI}: sudo ferric bind {address}")),
            None => return no("it is bound to no driver".into(), format!("give it to {VFIO_PCI}: sudo ferric bind {address}")),
        }
        let strangers = self.strangers(group);
        if !strangers.is_empty() {
            let names: Vec<String> = strangers.iter().map(|(a, d)| format!("{a} ({d})")).collect();
            let addresses: Vec<&str> = strangers.iter().map(|(a, _)| a.as_str()).collect();
            return no(
                format!("its IOMMU group {group} is not viable, the kernel uses others of it: {}", names.join(", ")),
                format!("give up those too, if you can: sudo ferric bind {}", addresses.join(" ")),
            );
        }
        let cdev = fs::read_dir(path.join("vfio-dev")).ok().and_then(|mut d| d.next()).and_then(|e| e.ok()).map(|e| self.dev.join("vfio/devices").join(e.file_name()));
        let cdev = cdev.filter(|c| c.exists() && self.dev.join("iommu").exists());
        let file = self.dev.join(format!("vfio/{group}"));
        if cdev.is_none() {
            for f in [&self.dev.join("vfio/vfio"), &file] {
                if !f.exists() {
                    let noiommu = self.dev.join(format!("vfio/noiommu-{group}")).exists();
                    return if noiommu {
                        no("VFIO runs without an IOMMU, which would let the card reach all of memory".into(), "switch the IOMMU on: see docs/vm.md".into())
                    } else {
                        no(format!("{} does not exist", f.display()), format!("load the module: sudo modprobe {VFIO_PCI}"))
                    };
                }
            }
        }
        Ok(Ready { address, path, group, cdev })
    }

    /// Other members of a group that a kernel driver holds, with that driver. Bridges and stubs do no harm.
    fn strangers(&self, group: u32) -> Vec<(String, String)> {
        let Ok(members) = fs::read_dir(self.sys.join(format!("kernel/iommu_groups/{group}/devices"))) else { return Vec::new() };
        let harmless = |d: &str| [VFIO_PCI, "pci-stub", "pcieport"].contains(&d);
        let mut list: Vec<_> = members.flatten().map(|m| m.file_name().to_string_lossy().into_owned()).filter_map(|a| self.driver(&a).filter(|d| !harmless(d)).map(|d| (a, d))).collect();
        list.sort();
        list
    }

    /// Why a device file could not be opened, and what mends it. `errno`: the system's number, where `e` has it in words only.
    pub fn explain(&self, ready: &Ready, e: &io::Error, errno: i32) -> Error {
        let file = ready.cdev.clone().unwrap_or_else(|| self.dev.join(format!("vfio/{}", ready.group)));
        let shown = file.display();
        let (problem, mend) = match errno {
            libc::EACCES | libc::EPERM => (format!("you may not open {shown}"), format!("make it yours: sudo chown $USER {shown}")),
            libc::EBUSY => ("another process has it".into(), format!("see which: sudo fuser -v {shown}")),
            libc::EMFILE | libc::ENFILE => (format!("{e}"), "raise the limit on open files: ulimit -n".into()),
            libc::ENOMEM => (memlock_problem(0), memlock_mend()),
            // A container takes no IOMMU then, and says only that there is no such device.
            _ if ready.cdev.is_none() && !self.sys.join("module").join(IOMMU_TYPE1).exists() => {
                (format!("the kernel's module {IOMMU_TYPE1} is not loaded"), format!("load it: sudo modprobe {IOMMU_TYPE1}"))
            }
            _ => (format!("{shown}: {e}"), "see what the kernel says: sudo dmesg | tail".into()),
        };
        Error::Open { device: ready.address.clone(), problem, mend, errno }
    }

    /// Gives a function to `vfio-pci`.
    pub fn bind(&self, name: &str) -> Result<()> {
        self.rebind(name, VFIO_PCI)
    }

    /// Gives a function back to the kernel, which probes its drivers again.
    pub fn unbind(&self, name: &str) -> Result<()> {
        self.rebind(name, "\n")
    }

    /// Has the kernel show `count` virtual functions of a physical one, whose driver has to support that. Those that are there go first: the kernel changes no number but from or to 0.
    pub fn set_virtual_functions(&self, name: &str, count: u16) -> Result<()> {
        let fail = |problem: String, mend: String, errno| Error::Open { device: name.into(), problem, mend, errno };
        let folder = address(name).map(|a| self.device(&a)).filter(|d| d.exists());
        let folder = folder.ok_or_else(|| fail("there is no such PCI function".into(), "see which there are: ferric list".into(), libc::ENODEV))?;
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u16>().ok();
        let (Some(total), Some(now)) = (read("sriov_totalvfs"), read("sriov_numvfs")) else {
            return Err(fail("it has no virtual functions".into(), "see which functions are physical: ferric list".into(), libc::ENODEV));
        };
        if count > total {
            return Err(fail(format!("{count} virtual functions are wanted, and the card has {total}"), "ask for fewer".into(), libc::ERANGE));
        }
        let write = |count: u16| {
            fs::write(folder.join("sriov_numvfs"), count.to_string()).map_err(|e| {
                let mend = match e.kind() {
                    io::ErrorKind::PermissionDenied => "this needs root: run it with sudo".to_string(),
                    _ => format!("{VFIO_PCI} enables them only when it is told that it may: echo 1 | sudo tee /sys/module/vfio_pci/parameters/enable_sriov"),
                };
                fail(format!("sriov_numvfs: {e}"), mend, e.raw_os_error().unwrap_or(0))
            })
        };
        if now == count {
            return Ok(());
        }
        if now > 0 {
            write(0)?;
        }
        if count > 0 {
            write(count)?;
        }
        Ok(())
    }

    fn rebind(&self, name: &str, to: &str) -> Result<()> {
        let address = address(name).filter(|a| self.device(a).exists()).ok_or_else(|| Error::Open {
            device: name.into(),
            problem: "there is no such PCI function".into(),
            mend: "see which there are: ferric list".into(),
            errno: libc::ENODEV,
        })?;
        let driver = self.driver(&address);
        if driver.as_deref() == Some(to) {
            return Ok(());
        }
        let write = |path: PathBuf, text: &str| {
            fs::write(&path, text).map_err(|e| {
                let mend = match e.kind() {
                    io::ErrorKind::PermissionDenied => "this needs root: run it with sudo".to_string(),
                    io::ErrorKind::NotFound if to == VFIO_PCI => format!("load the module: sudo modprobe {VFIO_PCI}"),
                    _ => "see what the kernel says: sudo dmesg | tail".to_string(),
                };
                Error::Open { device: address.clone(), problem: format!("{}: {e}", path.display()), mend, errno: e.raw_os_error().unwrap_or(0) }
            })
        };
        if to == VFIO_PCI && !self.sys.join("bus/pci/drivers").join(VFIO_PCI).exists() {
            return Err(Error::Open { device: address, problem: format!("the driver {VFIO_PCI} is not loaded"), mend: format!("load it: sudo modprobe {VFIO_PCI}"), errno: libc::ENODEV });
        }
        write(self.device(&address).join("driver_override"), to)?;
        if driver.is_some() {
            write(self.device(&address).join("driver/unbind"), &address)?;
        }
        write(self.sys.join("bus/pci/drivers_probe"), &address)
    }
}

/// The limit on locked memory, in bytes; `u64::MAX`: none.
pub fn memlock() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid structure.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    if limit.rlim_cur == libc::RLIM_INFINITY {
        u64::MAX
    } else {
        limit.rlim_cur
    }
}

/// What is wrong when the kernel will not pin memory.
pub fn memlock_problem(len: usize) -> String {
    let more = if len > 0 { format!("; {len} bytes more were wanted") } else { String::new() };
    match memlock() {
        u64::MAX => format!("the kernel has no memory left to pin{more}"),
        limit => format!("the limit on locked memory is {} KiB{more}", limit >> 10),
    }
}

/// What to do about it.
pub fn memlock_mend() -> String {
    "raise it for this shell: sudo prlimit --pid $$ --memlock=unlimited; for good: echo \"$USER - memlock unlimited\" | sudo tee /etc/security/limits.d/ferric.conf, and log in again".into()
}
