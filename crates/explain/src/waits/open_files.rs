//! What descriptors of processes are.

use super::WaitKind;
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of open files that are remembered.
const MAX_FILES: usize = 4096;

/// An open file of a process, by its number in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpenFile(u32);

/// What an open file is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The process that waits for it.
    pub process: u32,
    /// What its link says: a path, `pipe:[123]`, `socket:[123]`.
    pub link: Arc<str>,
}

impl FileIdentity {
    /// What a thread waits for that waits for it.
    pub fn kind(&self) -> WaitKind {
        match &*self.link {
            link if link.starts_with("pipe:") => WaitKind::Pipe,
            link if link.starts_with("socket:") => WaitKind::Socket,
            link if link.starts_with("/dev/pts/") || link.starts_with("/dev/tty") => WaitKind::Terminal,
            link if link.starts_with('/') => WaitKind::File,
            "anon_inode:[timerfd]" => WaitKind::Timer,
            "anon_inode:[signalfd]" => WaitKind::Signal,
            "anon_inode:[pidfd]" => WaitKind::Child,
            _ => WaitKind::Events,
        }
    }

    /// The number in `pipe:[123]`.
    pub fn inode(&self) -> Option<u64> {
        inode(&self.link)
    }
}

/// The number in `pipe:[123]`.
pub fn inode(link: &str) -> Option<u64> {
    link.split_once(":[")?.1.strip_suffix(']')?.parse().ok()
}

/// All open files that threads waited for.
#[derive(Debug, Default)]
pub struct OpenFiles {
    places: HashMap<FileIdentity, OpenFile>,
    known: Vec<FileIdentity>,
}

impl OpenFiles {
    /// The file of a descriptor as it is now; `None` if it is closed, or there are too many.
    pub fn find(&mut self, root: &SysRoot, process: u32, descriptor: u64) -> Option<OpenFile> {
        let link = root.link(&TaskDir::of(root, process).path(&format!("fd/{}", descriptor as u32))).ok()?;
        let identity = FileIdentity { process, link: link.into() };
        if let Some(known) = self.places.get(&identity) {
            return Some(*known);
        }
        if self.known.len() >= MAX_FILES {
            return None;
        }
        let place = OpenFile(u32::try_from(self.known.len()).ok()?);
        self.known.push(identity.clone());
        self.places.insert(identity, place);
        Some(place)
    }

    /// What a file is.
    pub fn get(&self, file: OpenFile) -> Option<&FileIdentity> {
        self.known.get(file.0 as usize)
    }
}

/// The descriptors that an epoll descriptor watches.
pub fn watched(root: &SysRoot, process: u32, descriptor: u64) -> Vec<u64> {
    let text = TaskDir::of(root, process).text(&format!("fdinfo/{}", descriptor as u32)).unwrap_or_default();
    let number = |line: &str| line.strip_prefix("tfd:")?.split_ascii_whitespace().next()?.parse().ok();
    text.lines().filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    #[test]
    fn a_descriptor_is_what_its_link_says() {
        let mut tree = FileTree::new();
        for (number, link) in [(0, "/dev/pts/3"), (1, "pipe:[77]"), (2, "/var/log/x"), (3, "socket:[9]")] {
            tree.symlink(&format!("/proc/7/fd/{number}"), link);
        }
        tree.file(
            "/proc/7/fdinfo/4",
            "pos:\t0\ntfd:        5 events:       19 data: 5\ntfd: 11 events: 1 data: 0\n",
        );
        let root = SysRoot::of_tree(tree);
        let mut files = OpenFiles::default();
        let found: Vec<OpenFile> = (0..4).filter_map(|number| files.find(&root, 7, number)).collect();
        let kinds: Vec<WaitKind> = found.iter().filter_map(|file| Some(files.get(*file)?.kind())).collect();
        assert_eq!(kinds, [WaitKind::Terminal, WaitKind::Pipe, WaitKind::File, WaitKind::Socket]);
        assert_eq!(files.get(found[1]).and_then(FileIdentity::inode), Some(77));
        assert_eq!((files.find(&root, 7, 1), files.find(&root, 7, 9)), (Some(found[1]), None));
        assert_eq!((watched(&root, 7, 4), watched(&root, 7, 5)), (vec![5, 11], vec![]));
    }
}
