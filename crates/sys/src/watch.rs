//! Watching whether an open file loses its name.

use crate::file::path_of;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::read;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Readable when the file may have been removed, replaced or renamed.
#[derive(Debug)]
pub struct NameWatch {
    descriptor: OwnedFd,
}

impl NameWatch {
    /// Watches the file from now on. The kernel limits the watches of a user.
    pub fn new(file: &File) -> io::Result<Self> {
        // The kernel reports a lost name as a change of the link count.
        let what = WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&descriptor, path_of(file), what)?;
        Ok(Self { descriptor })
    }

    /// Discards the events that came so far.
    pub fn clear(&self) {
        let mut buffer = [0u8; 4096];
        while read(&self.descriptor, &mut buffer).is_ok_and(|length| length > 0) {}
    }
}

impl AsFd for NameWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::readable;
    use std::time::Duration;

    #[test]
    fn a_name_that_goes_is_noticed() {
        let path =
            |name: &str| std::env::temp_dir().join(format!("numakit-watch-{name}-{}", std::process::id()));
        let (one, two) = (path("one"), path("two"));
        let file = File::create(&one).unwrap();
        let watch = NameWatch::new(&file).unwrap();
        let noticed = || {
            let ready = readable(&[watch.as_fd()], Some(Duration::ZERO)).unwrap()[0];
            watch.clear();
            ready
        };
        std::fs::write(&one, "written").unwrap();
        assert!(!noticed());
        std::fs::rename(&one, &two).unwrap();
        assert!(noticed() && !noticed());
        File::create(&one).unwrap();
        std::fs::rename(&one, &two).unwrap();
        assert!(noticed());
        let file = File::open(&two).unwrap();
        let watch = NameWatch::new(&file).unwrap();
        std::fs::remove_file(&two).unwrap();
        assert!(readable(&[watch.as_fd()], Some(Duration::ZERO)).unwrap()[0]);
    }
}
