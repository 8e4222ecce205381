//! The first file system of the guest: an archive in the kernel's `newc` format.

use crate::failure::{Failure, on};
use std::fs;
use std::path::Path;

/// Mounts the image and goes on there.
const INIT: &[u8] = include_bytes!("../guest/init");
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// Busybox and the first script.
pub fn archive(busybox: &Path) -> Result<Vec<u8>, Failure> {
    let busybox = fs::read(busybox).map_err(on("read", busybox))?;
    let entries: [(&str, u32, &[u8]); 3] =
        [("bin", FOLDER, &[]), ("bin/busybox", PROGRAM, &busybox), ("init", PROGRAM, INIT)];
    newc(&entries)
}

/// Name, mode and content of each entry; folders before what is in them.
fn newc(entries: &[(&str, u32, &[u8])]) -> Result<Vec<u8>, Failure> {
    let mut archive = Vec::new();
    let trailer: (&str, u32, &[u8]) = ("TRAILER!!!", 0, &[]);
    for (inode, (name, mode, content)) in entries.iter().chain([&trailer]).enumerate() {
        let size = u32::try_from(content.len())
            .map_err(|_| Failure::Request(format!("{name} is too large for an initramfs")))?;
        let links = if *mode == FOLDER { 2 } else { 1 };
        archive.extend_from_slice(b"070701");
        // inode, mode, uid, gid, links, time, size, devices (4), length of the name, checksum
        let fields = [inode as u32, *mode, 0, 0, links, 0, size, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        for field in fields {
            archive.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        archive.extend_from_slice(name.as_bytes());
        archive.push(0);
        pad(&mut archive);
        archive.extend_from_slice(content);
        pad(&mut archive);
    }
    Ok(archive)
}

/// Headers and contents begin at multiples of 4.
fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_as_the_kernel_documents_it() {
        let archive = newc(&[("bin", FOLDER, &[]), ("init", PROGRAM, b"hello")]).unwrap();
        let header = |links: u32, inode: u32, mode: u32, size: u32, name: u32| {
            let zero = "00000000";
            format!("070701{inode:08x}{mode:08x}{zero}{zero}{links:08x}{zero}{size:08x}")
                + &zero.repeat(4)
                + &format!("{name:08x}{zero}")
        };
        let mut expected = header(2, 0, FOLDER, 0, 4) + "bin\0\0\0";
        expected += &(header(1, 1, PROGRAM, 5, 5) + "init\0\0hello\0\0\0");
        expected += &(header(1, 2, 0, 0, 11) + "TRAILER!!!\0\0\0\0");
        assert_eq!(String::from_utf8(archive).unwrap(), expected);
    }

    #[test]
    fn an_initramfs_holds_busybox_and_the_first_script() {
        let path = std::env::temp_dir().join(format!("numakit-busybox-{}", std::process::id()));
        fs::write(&path, b"elf").unwrap();
        let archive = archive(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let text = String::from_utf8(archive).unwrap();
        assert!(text.contains("bin/busybox\0") && text.contains("elf") && text.contains("switch_root"));
    }
}
