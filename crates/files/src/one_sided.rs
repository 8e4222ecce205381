//! Large files whose cached pages are on one node while processes with threads on several nodes map them.

use crate::window;
use numakit_processes::{TaskNodes, threads_by_node};
use numakit_sys::file::open_to_read;
use numakit_sys::file_pages::{self, FileWindow};
use numakit_sys::proc::maps::MapsEntry;
use numakit_sys::proc::{self, TaskDir};
use numakit_sys::{SysRoot, sched};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Smaller files are not looked at.
pub const LARGE: u64 = 1 << 30;

/// Windows of a file that are looked at, and the pages of each.
const SAMPLE: (u64, u64) = (64, 64);

/// Minimum share of the sampled pages that are cached, and minimum share of these that are on one node.
const SHARES: (f64, f64) = (0.1, 0.9);

/// A file whose cached pages are on one node, and a process that maps it from other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneSidedFile {
    /// The process.
    pub pid: u32,
    /// The name of its program.
    pub command: String,
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// The node that has at least nine tenths of the cached pages.
    pub node: u32,
    /// The threads of the process by the node where they run or ran last.
    pub threads: BTreeMap<u32, u64>,
}

/// Those of these processes, or of all. Pages are sampled; what this user may not examine is left out.
pub fn one_sided(root: &SysRoot, nodes: &TaskNodes, pids: Option<&[u32]>, minimum: u64) -> Vec<OneSidedFile> {
    let all = || proc::processes(root).unwrap_or_default();
    let (mut found, mut known) = (Vec::new(), HashMap::new());
    for pid in pids.map_or_else(all, <[u32]>::to_vec) {
        let process = TaskDir::of(root, pid);
        let Ok(text) = process.text("maps") else { continue };
        let large = large_files(&text, minimum);
        let Some(stat) = process.stat().ok().filter(|_| !large.is_empty()) else { continue };
        let threads = threads_by_node(root, nodes, pid, &stat);
        if threads.len() < 2 {
            continue;
        }
        for (path, inode) in large {
            let seen = known.entry(inode).or_insert_with(|| homes(Path::new(path), inode, minimum));
            if let Some((size, node)) = *seen {
                let (command, path, threads) = (stat.name(), PathBuf::from(path), threads.clone());
                found.push(OneSidedFile { pid, command, path, size, node, threads });
            }
        }
    }
    found
}

/// The files of which a process maps at least this much.
fn large_files(maps: &str, minimum: u64) -> Vec<(&str, u64)> {
    let mut mapped: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for entry in maps.lines().filter_map(MapsEntry::parse).filter(|entry| entry.name.starts_with('/')) {
        *mapped.entry((entry.name, entry.inode)).or_default() += entry.range.end - entry.range.start;
    }
    mapped.into_iter().filter(|(_, bytes)| *bytes >= minimum).map(|(file, _)| file).collect()
}

/// The size of a file and the node of most of its cached pages; `None` if the path leads to a different file now, if too
/// little of it is cached, or if no node has nearly all of it.
fn homes(path: &Path, inode: u64, minimum: u64) -> Option<(u64, u32)> {
    let file = open_to_read(path).ok()?;
    let there = file.metadata().ok()?;
    if there.ino() != inode || there.len() < minimum || !file_pages::tells_cached(&file).ok()? {
        return None;
    }
    let (nodes, looked_at) = sample(&file, there.len()).ok()?;
    let cached: u64 = nodes.values().sum();
    let (node, most) = nodes.into_iter().max_by_key(|(node, bytes)| (*bytes, std::cmp::Reverse(*node)))?;
    let enough = cached as f64 >= looked_at as f64 * SHARES.0;
    (enough && most as f64 >= cached as f64 * SHARES.1).then_some((there.len(), node))
}

/// The cached bytes by node of windows that are evenly distributed over a file, and the bytes of the windows.
fn sample(file: &File, size: u64) -> io::Result<(BTreeMap<u32, u64>, u64)> {
    let page = sched::page_size();
    let (windows, length) = (SAMPLE.0, SAMPLE.1 * page);
    let step = (size / windows).max(length) / page * page;
    let (mut nodes, mut looked_at) = (BTreeMap::new(), 0);
    for offset in (0..size).step_by(step as usize) {
        let window = FileWindow::map(file, offset, length.min(size - offset) as usize)?;
        window.touch(&window::cached(&window)?)?;
        for (node, bytes) in window::on_nodes(&window)? {
            *nodes.entry(node).or_default() += bytes;
        }
        looked_at += u64::from(window.pages()) * page;
    }
    Ok((nodes, looked_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::testing::Scratch;

    #[test]
    fn a_file_that_is_cached_on_one_node_has_it() {
        let scratch = Scratch::file("home", 20 << 20);
        let inode = std::fs::metadata(&scratch.0).unwrap().ino();
        let (size, node) = homes(&scratch.0, inode, 1 << 20).unwrap();
        assert_eq!(size, 20 << 20);
        let file = open_to_read(&scratch.0).unwrap();
        let (nodes, looked_at) = sample(&file, size).unwrap();
        assert_eq!(nodes.get(&node).copied(), Some(looked_at), "{nodes:?}");
        assert!((16 << 20..=20 << 20).contains(&looked_at), "{looked_at}");
        assert_eq!(homes(&scratch.0, inode + 1, 1 << 20), None, "another file");
        assert_eq!(homes(&scratch.0, inode, 1 << 30), None, "too small");
        file_pages::evict(&file).unwrap();
        let left = sample(&file, size).unwrap().0;
        if !left.is_empty() && scratch.may_stay() {
            return numakit_skips::MACHINE.skip("the temporary folder is memory, which is never evicted");
        }
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(homes(&scratch.0, inode, 1 << 20), None, "not cached");
    }

    #[test]
    fn mappings_of_a_file_are_added_up() {
        let maps = "1000-3000 r--p 0 fe:00 5 /a\n4000-6000 r--p 2000 fe:00 5 /a\n7000-8000 r--p 0 fe:00 6 /b\n\
            10000-90000 rw-p 0 00:00 0 [heap]\n";
        assert_eq!(large_files(maps, 0x4000), [("/a", 5)]);
        assert_eq!(large_files(maps, 0x1000), [("/a", 5), ("/b", 6)]);
    }
}
