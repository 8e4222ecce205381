//! A file in windows: so that large files need little address space and little memory for the states of their pages.

use numakit_sys::file_pages::FileWindow;
use numakit_sys::proc::{TaskDir, numa_maps, smaps};
use numakit_sys::{SysRoot, sched};
use std::fs::File;
use std::io;

/// Bytes of a window.
const WINDOW: u64 = 64 << 20;

/// Calls `visit` with each window of a file, the number of its first page in the file, and its length. Windows are at most
/// `limit` bytes long, rounded up to whole pages.
pub(crate) fn each<E: From<io::Error>>(
    file: &File,
    size: u64,
    limit: u64,
    mut visit: impl FnMut(&FileWindow, u64) -> Result<(), E>,
) -> Result<(), E> {
    let page = sched::page_size();
    let step = limit.clamp(page, WINDOW).next_multiple_of(page);
    for offset in (0..size).step_by(step as usize) {
        let window = FileWindow::map(file, offset, step.min(size - offset) as usize)?;
        visit(&window, offset / page)?;
    }
    Ok(())
}

/// The pages of a window that are cached.
pub(crate) fn cached(window: &FileWindow) -> io::Result<Vec<u32>> {
    let cached = window.cached()?;
    Ok((0u32..).zip(cached).filter(|(_, cached)| *cached).map(|(page, _)| page).collect())
}

/// The bytes of a window on each node, from `numa_maps`: those that were touched.
pub(crate) fn on_nodes(window: &FileWindow) -> io::Result<Vec<(u32, u64)>> {
    let text = own("numa_maps")?;
    for line in text.split(|byte| *byte == b'\n') {
        let mut nodes = Vec::new();
        let found = numa_maps::line(line, sched::page_size(), |_, node, bytes| nodes.push((node, bytes)));
        if found.is_some_and(|(start, _)| start == window.start()) {
            return Ok(nodes);
        }
    }
    Ok(Vec::new())
}

/// The bytes of a window that are mapped as huge pages; none if the kernel does not say.
pub(crate) fn in_huge_pages(window: &FileWindow) -> io::Result<Option<u64>> {
    Ok(smaps::huge_file_bytes(&own("smaps")?, window.start()))
}

fn own(file: &str) -> io::Result<Vec<u8>> {
    TaskDir::own(&SysRoot::host()).bytes(file).map_err(|error| io::Error::new(error.kind, error.to_string()))
}

#[cfg(test)]
pub(crate) mod testing {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    /// A file or folder of a test.
    pub(crate) struct Scratch(pub PathBuf);

    impl Scratch {
        pub(crate) fn folder(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("numakit-files-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        /// A file of this length that is on the disk.
        pub(crate) fn file(name: &str, bytes: usize) -> Self {
            let path = std::env::temp_dir().join(format!("numakit-files-{name}-{}", std::process::id()));
            fs::write(&path, vec![7; bytes]).unwrap();
            fs::File::open(&path).unwrap().sync_all().unwrap();
            Self(path)
        }

        /// Whether pages may stay in the cache whatever is done: the file system is in memory, or it is an overlay, which
        /// may be in memory.
        pub(crate) fn may_stay(&self) -> bool {
            let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(&self.0).output().unwrap();
            assert!(kind.status.success(), "{kind:?}");
            matches!(String::from_utf8_lossy(&kind.stdout).trim(), "tmpfs" | "ramfs" | "overlayfs")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = match self.0.is_dir() {
                true => fs::remove_dir_all(&self.0),
                false => fs::remove_file(&self.0),
            };
        }
    }
}
