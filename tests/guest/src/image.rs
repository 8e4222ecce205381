//! The disk of the guest: an ext4 image that is made from a folder and read back into one, both
//! without mounting it and without root.

use crate::failure::{Failure, finished, on};
use crate::fetch::program;
use std::fs;
use std::path::Path;

/// A file system without a journal: it is written once and thrown away.
const FEATURES: &str = "none,filetype,sparse_super,large_file,extent,dir_index,extra_isize";
const MIB: u64 = 1 << 20;

/// Makes an image with what is in the folder and this much room. Only what is used takes space.
pub fn make(folder: &Path, image: &Path, room_mib: u64) -> Result<(), Failure> {
    let content = size_of(folder)?;
    // Inodes and tables take a few percent.
    let size = content + content / 8 + (room_mib + 16) * MIB;
    let file = fs::File::create(image).map_err(on("create", image))?;
    file.set_len(size.next_multiple_of(MIB)).map_err(on("enlarge", image))?;
    let mut make = program("mke2fs")?;
    make.args(["-q", "-F", "-t", "ext4", "-O", FEATURES, "-m", "0", "-b", "4096", "-I", "256", "-d"]);
    finished(make.arg(folder).arg(image)).map(drop)
}

/// Brings a folder of the image, given from its root, to a folder that does not exist yet.
pub fn read(image: &Path, inside: &str, folder: &Path) -> Result<(), Failure> {
    let Some((parent, name)) = folder.parent().zip(inside.rsplit('/').next()) else {
        return Err(Failure::Request(format!("cannot bring {inside} to {}", folder.display())));
    };
    // It makes a folder of the same name in the one that it is given.
    let order = format!("rdump \"{inside}\" \"{}\"", parent.display());
    let output = finished(program("debugfs")?.args(["-R", &order]).arg(image))?;
    let made = parent.join(name);
    if !made.is_dir() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Request(format!("{inside} is not in the guest's image: {}", said.trim())));
    }
    if made != folder {
        fs::rename(&made, folder).map_err(on("rename", &made))?;
    }
    Ok(())
}

/// Bytes in a folder, every file rounded up to blocks.
fn size_of(folder: &Path) -> Result<u64, Failure> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).map_err(on("list", folder))? {
        let path = entry.map_err(on("list", folder))?.path();
        let data = fs::symlink_metadata(&path).map_err(on("look at", &path))?;
        sum += if data.is_dir() { size_of(&path)? + 4096 } else { data.len().next_multiple_of(4096) };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_comes_back_from_an_image_as_it_was() {
        if let Err(reason) = program("mke2fs").and_then(|_| program("debugfs")) {
            return numakit_skips::GUEST.skip(reason);
        }
        let top = std::env::temp_dir().join(format!("numakit image {}", std::process::id()));
        let inner = top.join("from/out/deep folder");
        fs::create_dir_all(&inner).unwrap();
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        fs::write(inner.join("bytes"), &bytes).unwrap();
        fs::write(top.join("from/out/empty"), "").unwrap();
        fs::set_permissions(top.join("from/out/empty"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("deep folder/bytes", top.join("from/out/link")).unwrap();
        let image = top.join("image");
        make(&top.join("from"), &image, 4).unwrap();
        read(&image, "/out", &top.join("back")).unwrap();
        assert_eq!(fs::read(top.join("back/deep folder/bytes")).unwrap(), bytes);
        assert_eq!(fs::read(top.join("back/link")).unwrap(), bytes);
        let mode = fs::metadata(top.join("back/empty")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        let missing = read(&image, "/nothing", &top.join("none")).unwrap_err().to_string();
        assert!(missing.starts_with("/nothing is not in the guest's image: "), "{missing}");
        fs::remove_dir_all(&top).unwrap();
    }
}
