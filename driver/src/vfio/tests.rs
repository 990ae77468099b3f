//! Diagnoses over made-up `/sys` and `/dev` trees.
use super::sysfs::{address, memlock_problem, Found, Sysfs, VFIO_PCI};
use crate::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const CARD: &str = "0000:03:00.0";
const GPU: &str = "0000:03:00.1";

struct Tree(PathBuf);

impl Tree {
    /// A machine with a Ferric card in group 7, ready for use.
    fn ready(name: &str) -> Self {
        let t = Self(std::env::temp_dir().join(format!("ferric-sysfs-{}-{name}", std::process::id())));
        let _ = fs::remove_dir_all(&t.0);
        for f in ["sys/bus/pci/drivers/nouveau", "sys/bus/pci/drivers/vfio-pci", "sys/bus/pci/drivers/pcieport", "dev/vfio"] {
            fs::create_dir_all(t.0.join(f)).unwrap();
        }
        t.function(CARD, "0xfe11", "0x0c01", Some(7), Some(VFIO_PCI));
        t.file("dev/vfio/vfio", "");
        t.file("dev/vfio/7", "");
        t.file("sys/bus/pci/drivers_probe", "");
        t
    }

    fn file(&self, path: &str, text: &str) {
        fs::write(self.0.join(path), text).unwrap();
    }

    fn function(&self, address: &str, vendor: &str, device: &str, group: Option<u32>, driver: Option<&str>) {
        let d = format!("sys/bus/pci/devices/{address}");
        fs::create_dir_all(self.0.join(&d)).unwrap();
        self.file(&format!("{d}/vendor"), &format!("{vendor}\n"));
        self.file(&format!("{d}/device"), &format!("{device}\n"));
        self.file(&format!("{d}/driver_override"), "(null)\n");
        if let Some(g) = group {
            let members = format!("sys/kernel/iommu_groups/{g}/devices");
            fs::create_dir_all(self.0.join(&members)).unwrap();
            symlink(format!("../../../../kernel/iommu_groups/{g}"), self.0.join(format!("{d}/iommu_group"))).unwrap();
            symlink(format!("../../../../bus/pci/devices/{address}"), self.0.join(format!("{members}/{address}"))).unwrap();
        }
        self.drive(address, driver);
    }

    fn drive(&self, address: &str, driver: Option<&str>) {
        let link = self.0.join(format!("sys/bus/pci/devices/{address}/driver"));
        let _ = fs::remove_file(&link);
        if let Some(d) = driver {
            symlink(format!("../../drivers/{d}"), link).unwrap();
        }
    }

    fn sysfs(&self) -> Sysfs {
        Sysfs::at(&self.0.join("sys"), &self.0.join("dev"))
    }

    /// The diagnosis has these words and its remedy those.
    fn expect(&self, name: &str, words: &str, command: &str) {
        match self.sysfs().check(name) {
            Err(Error::Open { device, problem, mend, .. }) => {
                assert_eq!(device, name);
                assert!(problem.contains(words), "`{problem}` does not say `{words}`");
                assert!(mend.contains(command), "`{mend}` does not say `{command}`");
            }
            other => panic!("{other:?} where `{words}` was expected"),
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn addresses() {
    assert_eq!(address("03:00.0").as_deref(), Some(CARD));
    assert_eq!(address("0000:AF:1f.7").as_deref(), Some("0000:af:1f.7"));
    for bad in ["", "3:0.0", "03:00", "03:00.8", "0000:03:00.00", "0000:03:0g.0", "../../etc", "0000:00:03:00.0", "03:00.0/x"] {
        assert_eq!(address(bad), None, "{bad}");
    }
}

#[test]
fn a_ready_card_is_ready() {
    let t = Tree::ready("ready");
    let ready = t.sysfs().check("03:00.0").unwrap();
    assert_eq!((ready.address.as_str(), ready.group, ready.cdev), (CARD, 7, None));
    assert_eq!(t.sysfs().list(), [Found { address: CARD.into(), is_virtual: false, driver: Some(VFIO_PCI.into()), group: Some(7) }]);
}

#[test]
fn the_device_file_for_iommufd_is_found() {
    let t = Tree::ready("cdev");
    fs::create_dir_all(t.0.join(format!("sys/bus/pci/devices/{CARD}/vfio-dev/vfio3"))).unwrap();
    fs::create_dir_all(t.0.join("dev/vfio/devices")).unwrap();
    t.file("dev/vfio/devices/vfio3", "");
    assert_eq!(t.sysfs().check(CARD).unwrap().cdev, None, "without /dev/iommu it is of no use");
    t.file("dev/iommu", "");
    fs::remove_file(t.0.join("dev/vfio/7")).unwrap();
    assert_eq!(t.sysfs().check(CARD).unwrap().cdev, Some(t.0.join("dev/vfio/devices/vfio3")));
}

#[test]
fn every_obstacle_has_its_remedy() {
    let t = Tree::ready("obstacles");
    t.expect("nonsense", "not a PCI address", "ferric list");
    t.expect("0000:09:00.0", "no such PCI function", "pci/rescan");
    t.function("0000:00:1f.0", "0x8086", "0x1234", Some(1), None);
    t.expect("0000:00:1f.0", "8086:1234, not a Ferric card", "lspci -s 0000:00:1f.0");
    t.drive(CARD, Some("nouveau"));
    t.expect(CARD, "bound to the driver nouveau", "sudo ferric bind 0000:03:00.0");
    t.drive(CARD, None);
    t.expect(CARD, "bound to no driver", "sudo ferric bind 0000:03:00.0");
    t.drive(CARD, Some(VFIO_PCI));
    t.function("0000:00:01.0", "0x8086", "0x1901", Some(7), Some("pcieport"));
    assert!(t.sysfs().check(CARD).is_ok(), "a bridge does no harm");
    t.function(GPU, "0x10de", "0x1234", Some(7), Some("nouveau"));
    t.expect(CARD, "group 7 is not viable, the kernel uses others of it: 0000:03:00.1 (nouveau)", "sudo ferric bind 0000:03:00.1");
    t.drive(GPU, None);
    fs::rename(t.0.join("dev/vfio/7"), t.0.join("dev/vfio/noiommu-7")).unwrap();
    t.expect(CARD, "without an IOMMU", "switch the IOMMU on");
    fs::remove_file(t.0.join("dev/vfio/noiommu-7")).unwrap();
    t.expect(CARD, "dev/vfio/7 does not exist", "modprobe vfio-pci");
    fs::remove_file(t.0.join(format!("sys/bus/pci/devices/{CARD}/iommu_group"))).unwrap();
    t.expect(CARD, "the IOMMU is off", "intel_iommu=on");
}

#[test]
fn failures_to_open_are_explained() {
    let t = Tree::ready("explain");
    let ready = t.sysfs().check(CARD).unwrap();
    let text = t.sysfs().explain(&ready, &std::io::Error::from_raw_os_error(libc::ENODEV), libc::ENODEV).to_string();
    assert!(text.contains("not loaded") && text.contains("sudo modprobe vfio_iommu_type1"), "{text}");
    fs::create_dir_all(t.0.join("sys/module/vfio_iommu_type1")).unwrap();
    for (errno, words, command) in [
        (libc::EACCES, "you may not open", "sudo chown $USER"),
        (libc::EBUSY, "another process", "fuser -v"),
        (libc::EMFILE, "", "ulimit -n"),
        (libc::ENOMEM, "", "memlock"),
        (libc::EIO, "error", "dmesg"),
    ] {
        let error = t.sysfs().explain(&ready, &std::io::Error::from_raw_os_error(errno), errno);
        assert!(matches!(error, Error::Open { errno: told, .. } if told == errno), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(words) && text.contains(command), "{text}");
    }
    assert!(memlock_problem(4096).contains("4096 bytes"));
}

#[test]
fn numbers_of_errors_are_found_behind_those_of_the_crates() {
    use super::errno_of;
    use std::io::Error;
    let own = vmm_sys_util::errno::Error::new(libc::EFAULT);
    let of_crate = vfio_ioctls::VfioError::IommuDmaMap(own);
    let opened = vfio_ioctls::VfioError::OpenDeviceCdev(Error::from_raw_os_error(libc::EMFILE));
    let numbers = [Error::from_raw_os_error(libc::EBUSY), Error::other(of_crate), Error::other(opened), Error::other("words")].map(|e| errno_of(&e));
    assert_eq!(numbers, [libc::EBUSY, libc::EFAULT, libc::EMFILE, 0]);
}

#[test]
fn virtual_functions_are_the_kernels_to_enable() {
    let t = Tree::ready("sriov");
    let sysfs = t.sysfs();
    let refusal = |name: &str, count| sysfs.set_virtual_functions(name, count).unwrap_err().to_string();
    assert!(refusal(CARD, 1).contains("it has no virtual functions") && refusal("0000:09:00.0", 1).contains("no such PCI function"));
    let (total, number) = (format!("sys/bus/pci/devices/{CARD}/sriov_totalvfs"), format!("sys/bus/pci/devices/{CARD}/sriov_numvfs"));
    t.file(&total, "3\n");
    t.file(&number, "0\n");
    let now = || fs::read_to_string(t.0.join(&number)).unwrap();
    assert!(refusal(CARD, 4).contains("the card has 3"));
    sysfs.set_virtual_functions("03:00.0", 2).unwrap();
    assert_eq!(now(), "2");
    sysfs.set_virtual_functions(CARD, 3).unwrap();
    assert_eq!(now(), "3");
    sysfs.set_virtual_functions(CARD, 0).unwrap();
    assert_eq!(now(), "0");
}

#[test]
fn binding_writes_what_the_kernel_wants() {
    let t = Tree::ready("bind");
    let sysfs = t.sysfs();
    let read = |p: &str| fs::read_to_string(t.0.join(p)).unwrap();
    sysfs.bind(CARD).unwrap();
    assert_eq!(read("sys/bus/pci/drivers_probe"), "", "it is bound already");
    t.drive(CARD, Some("nouveau"));
    t.file("sys/bus/pci/drivers/nouveau/unbind", "");
    sysfs.bind("03:00.0").unwrap();
    assert_eq!(read(&format!("sys/bus/pci/devices/{CARD}/driver_override")), VFIO_PCI);
    assert_eq!([read("sys/bus/pci/drivers/nouveau/unbind"), read("sys/bus/pci/drivers_probe")], [CARD, CARD]);
    t.drive(CARD, Some(VFIO_PCI));
    sysfs.unbind(CARD).unwrap();
    assert_eq!(read(&format!("sys/bus/pci/devices/{CARD}/driver_override")), "\n");
    assert_eq!(read("sys/bus/pci/drivers/vfio-pci/unbind"), CARD);
    assert!(sysfs.bind("0000:09:00.0").is_err());
    fs::remove_dir_all(t.0.join("sys/bus/pci/drivers/vfio-pci")).unwrap();
    t.drive(CARD, None);
    assert!(sysfs.bind(CARD).unwrap_err().to_string().contains("modprobe vfio-pci"));
}
