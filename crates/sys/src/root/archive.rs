//! Reading a capture: a tar file, plain or compressed.

use super::FileTree;
use crate::file::open_to_read;
use std::io::{self, Read, Write};
use std::path::Path;

/// The maximum size of an unpacked capture.
const MAX_BYTES: u64 = 1 << 30;
const MAX_FILES: usize = 2_000_000;

/// The tree below the outermost directory with `sys` or `proc`.
pub(super) fn read(path: &Path) -> io::Result<FileTree> {
    let mut packed = Vec::new();
    open_to_read(path)?.read_to_end(&mut packed)?;
    let plain = unpack(path, packed)?;
    let mut folder: Option<Vec<String>> = None;
    for_each_entry(&plain, |parts, _| {
        if let Some(at) = parts.iter().position(|p| p == "sys" || p == "proc").filter(|&at| at <= 2)
            && folder.as_ref().is_none_or(|known| at < known.len())
        {
            folder = Some(parts[..at].to_vec());
        }
        Ok(())
    })?;
    let folder = folder.ok_or_else(|| damaged("it holds neither a sys nor a proc folder"))?;
    let mut tree = FileTree::new();
    for_each_entry(&plain, |parts, entry| match parts.strip_prefix(folder.as_slice()) {
        Some(inside) if !inside.is_empty() => add(&mut tree, &format!("/{}", inside.join("/")), entry),
        _ => Ok(()),
    })?;
    Ok(tree)
}

type Entry<'a> = tar::Entry<'a, &'a [u8]>;

/// Calls with the directories and the name of each entry; `./` and empty parts are skipped.
fn for_each_entry(
    plain: &[u8],
    mut call: impl FnMut(Vec<String>, Entry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    for (count, entry) in tar::Archive::new(plain).entries()?.enumerate() {
        if count > MAX_FILES {
            return Err(damaged("it holds more than 2,000,000 files"));
        }
        let entry = entry.map_err(|e| damaged(&e.to_string()))?;
        let name = entry.path()?.to_string_lossy().into_owned();
        let parts = name.split('/').filter(|p| !p.is_empty() && *p != ".").map(str::to_owned);
        call(parts.collect(), entry)?;
    }
    Ok(())
}

fn add(tree: &mut FileTree, path: &str, mut entry: Entry<'_>) -> io::Result<()> {
    match entry.header().entry_type() {
        tar::EntryType::Directory => {
            tree.directory(path);
        }
        tar::EntryType::Symlink => {
            if let Some(target) = entry.link_name()? {
                tree.symlink(path, &target.to_string_lossy());
            }
        }
        tar::EntryType::Regular => {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(|e| damaged(&e.to_string()))?;
            tree.file(path, content);
        }
        _ => {}
    }
    Ok(())
}

fn unpack(path: &Path, packed: Vec<u8>) -> io::Result<Vec<u8>> {
    let reader: Box<dyn Read> = match packed.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(packed.as_slice())),
        [b'B', b'Z', b'h', ..] => Box::new(bzip2::read::MultiBzDecoder::new(packed.as_slice())),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::stream::read::Decoder::new(packed.as_slice())?),
        _ if packed.get(257..262) == Some(b"ustar") => return Ok(packed),
        _ => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{} is neither a directory nor a tar archive (.tar, .tar.gz, .tar.bz2, .tar.zst)",
                    path.display()
                ),
            ));
        }
    };
    let mut plain = Vec::new();
    let read = reader.take(MAX_BYTES + 1).read_to_end(&mut plain).map_err(|e| damaged(&e.to_string()))?;
    if read as u64 > MAX_BYTES {
        return Err(damaged("it unpacks to more than 1 GiB"));
    }
    Ok(plain)
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("damaged capture: {why}"))
}

/// Writes a capture: a tar file compressed with zstd, for [`super::SysRoot::open`]. All entries are in one directory,
/// without owner and time.
pub fn write(tree: &FileTree, to: impl Write, folder: &str) -> io::Result<()> {
    let mut builder = tar::Builder::new(zstd::stream::write::Encoder::new(to, 19)?);
    for path in tree.directories() {
        let mut header = header(tar::EntryType::Directory, 0o755);
        builder.append_data(&mut header, format!("{folder}{path}/"), io::empty())?;
    }
    for (path, target) in tree.links() {
        let mut header = header(tar::EntryType::Symlink, 0o777);
        builder.append_link(&mut header, format!("{folder}{path}"), target)?;
    }
    for (path, content) in tree.files() {
        let mut header = header(tar::EntryType::Regular, 0o644);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, format!("{folder}{path}"), content)?;
    }
    builder.into_inner()?.finish()?;
    Ok(())
}

fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    header
}
