//! Noticing that an open file loses its name.

use crate::check;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Can be read when the file may have been removed, replaced or renamed.
#[derive(Debug)]
pub struct NameWatch {
    descriptor: OwnedFd,
}

impl NameWatch {
    /// Watches the file from now on. The kernel gives a user only so many watches.
    pub fn new(file: &File) -> io::Result<Self> {
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        // Losing a name is a change of the number of names, as the kernel tells it.
        let what = libc::IN_ATTRIB | libc::IN_MOVE_SELF | libc::IN_DELETE_SELF;
        // SAFETY: the descriptor belongs to nobody else; the path outlives the call.
        unsafe {
            let made = check(libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) as i64)?;
            let descriptor = OwnedFd::from_raw_fd(made as i32);
            check(libc::inotify_add_watch(descriptor.as_raw_fd(), path.as_ptr(), what) as i64)?;
            Ok(Self { descriptor })
        }
    }

    /// Forgets what happened so far.
    pub fn clear(&self) {
        let mut buffer = [0u8; 4096];
        // SAFETY: the buffer is as long as said.
        while unsafe { libc::read(self.descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } > 0
        {
        }
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
