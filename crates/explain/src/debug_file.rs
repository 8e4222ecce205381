//! Debug information in a separate file, as distributions install it for programs that have none in their own file. It is
//! found by the build ID, or by the name that the program states (.gnu_debuglink).

use numakit_model::numbers::hexadecimal;
use numakit_sys::file::open_to_read;
use object::{Object, ObjectSection, ReadCache, ReadRef};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The folder in which distributions install such files.
const FOLDER: &str = "usr/lib/debug";
/// A file with a larger checksum to compute is not read: that would take seconds.
const MAX_SUMMED: u64 = 1 << 30;

/// The file with the debug information of a program or library; `None` if the program's own file has it, or if none is
/// installed.
pub fn of(path: &Path) -> Option<PathBuf> {
    let root = root(path);
    let host = PathBuf::from("/");
    let roots = if root == host { vec![host] } else { vec![root, host] };
    find(path, &roots)
}

/// The file that debug information shares with other files, where `path` has the rest (`dwz`).
pub fn shared(path: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(open_to_read(path).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    let (name, _) = elf.gnu_debugaltlink().ok()??;
    let found = path.parent()?.join(path_of(name)?);
    found.is_file().then_some(found)
}

/// The root of the process by which a file is seen: of `/proc/PID/root/...`, the first three parts.
fn root(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let is_process = parts.next() == Some(Component::RootDir)
        && parts.next().is_some_and(|part| part.as_os_str() == "proc")
        && parts.next().is_some()
        && parts.next().is_some_and(|part| part.as_os_str() == "root");
    if is_process { path.components().take(4).collect() } else { PathBuf::from("/") }
}

fn find(path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    let cache = ReadCache::new(open_to_read(path).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    if elf.section_by_name(".debug_info").is_some_and(|section| section.size() > 0) {
        return None;
    }
    let id = elf.build_id().ok().flatten();
    let by_id = id
        .into_iter()
        .flat_map(|id| roots.iter().filter_map(|root| Some(root.join(FOLDER).join(id_path(id)?))));
    let by_id = by_id.chain(id.and_then(fetched));
    if let Some(found) = by_id.into_iter().find(|file| has_id(file, id)) {
        return Some(found);
    }
    let (name, sum) = elf.gnu_debuglink().ok()??;
    let name = path_of(name)?;
    let folder = path.parent()?;
    let beside = [folder.join(name), folder.join(".debug").join(name)];
    let seen_by = roots.first().and_then(|root| folder.strip_prefix(root).ok());
    let installed = seen_by
        .into_iter()
        .flat_map(|seen_by| roots.iter().map(move |root| root.join(FOLDER).join(seen_by).join(name)));
    // A build ID is compared at once, a checksum takes all bytes of the file.
    beside
        .into_iter()
        .chain(installed)
        .find(|file| file != path && (id.is_some() && has_id(file, id) || has_sum(file, sum)))
}

/// `xx/yyyy.debug` below the folder of build IDs.
fn id_path(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let (first, rest) = (hexadecimal(&[*first]), hexadecimal(rest));
    Some(Path::new(".build-id").join(first).join(rest + ".debug"))
}

/// Where `debuginfod-find` keeps what it has fetched.
fn fetched(id: &[u8]) -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("DEBUGINFOD_CACHE_PATH").or_else(|| {
        let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        Some(caches?.join("debuginfod_client"))
    })?;
    Some(cache.join(hexadecimal(id)).join("debuginfo"))
}

/// A name in a program, which may contain anything.
fn path_of(name: &[u8]) -> Option<&Path> {
    std::str::from_utf8(name).ok().filter(|name| !name.is_empty()).map(Path::new)
}

fn has_id(file: &Path, id: Option<&[u8]>) -> bool {
    let Ok(file) = open_to_read(file) else { return false };
    let cache = ReadCache::new(file);
    id_of(&cache).is_some_and(|found| Some(found.as_slice()) == id)
}

fn id_of<'a>(data: impl ReadRef<'a>) -> Option<Vec<u8>> {
    Some(object::File::parse(data).ok()?.build_id().ok()??.to_vec())
}

/// Whether the bytes of a file have a checksum (CRC-32).
fn has_sum(file: &Path, sum: u32) -> bool {
    let Ok(mut file) = open_to_read(file) else { return false };
    if !file.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_SUMMED) {
        return false;
    }
    let (mut hasher, mut bytes) = (crc32fast::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return hasher.finalize() == sum,
            Ok(count) => hasher.update(&bytes[..count]),
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests;
