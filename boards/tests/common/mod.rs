//! Images made for tests, and a folder of one's own.
#![allow(dead_code)] // Each test program uses a part of it.

use std::path::{Path, PathBuf};

/// Configuration data of a Xilinx part: padding, synchronisation, IDCODE, more.
pub fn configuration(idcode: u32) -> Vec<u8> {
    let mut data = vec![0xff; 32];
    data.extend([0xaa, 0x99, 0x55, 0x66, 0x20, 0, 0, 0, 0x30, 0x01, 0x80, 0x01]);
    data.extend(idcode.to_be_bytes());
    data.extend([0x20, 0, 0, 0].repeat(16));
    data
}

/// A `.bit` as Vivado writes it.
pub fn bit(part: &str, idcode: u32) -> Vec<u8> {
    let mut file = vec![0, 9, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0, 0, 1];
    for (key, text) in [(b'a', "ferric_u50;UserID=0XFFFFFFFF;Version=2024.1"), (b'b', part), (b'c', "2026/11/21"), (b'd', "23:00:00")] {
        file.push(key);
        file.extend((text.len() as u16 + 1).to_be_bytes());
        file.extend(text.bytes());
        file.push(0);
    }
    let data = configuration(idcode);
    file.push(b'e');
    file.extend((data.len() as u32).to_be_bytes());
    file.extend(data);
    file
}

fn record(kind: u8, address: u16, data: &[u8]) -> String {
    let mut bytes = vec![data.len() as u8, (address >> 8) as u8, address as u8, kind];
    bytes.extend(data);
    let sum = bytes.iter().fold(0u8, |s, b| s.wrapping_add(*b)).wrapping_neg();
    bytes.push(sum);
    format!(":{}\n", bytes.iter().map(|b| format!("{b:02X}")).collect::<String>())
}

/// Intel HEX of `data` from `address` on.
pub fn mcs(address: u32, data: &[u8]) -> String {
    let mut text = String::new();
    for (i, chunk) in data.chunks(16).enumerate() {
        let here = address + 16 * i as u32;
        if i == 0 || here & 0xffff == 0 {
            text += &record(4, 0, &[(here >> 24) as u8, (here >> 16) as u8]);
        }
        text += &record(0, here as u16, chunk);
    }
    text + &record(1, 0, &[])
}

/// An ECP5 `.bit` as ecppack writes it.
pub fn ecp5(idcode: u32, bytes: usize) -> Vec<u8> {
    let mut file = b"\xff\x00Part: LFE5UM5G-85F-8CABGA554\x00\xff\xff\xff\xbd\xb3\xff\xff\xff\xff\x3b\x00\x00\x00\xe2\x00\x00\x00".to_vec();
    file.extend(idcode.to_be_bytes());
    file.resize(bytes.max(file.len()), 0);
    file
}

/// A folder that is removed in the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ferric-boards-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, bytes).expect("written");
        path
    }

    /// A program that is a shell script.
    pub fn program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.file(name, format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
