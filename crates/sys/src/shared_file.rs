//! A file in memory that this process makes and programs map, by a name that they get in their environment. It has no name of its own, so
//! that nothing is left behind.

use crate::memory::SharedWords;
use crate::{check, clock};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// When the memory of a file is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Now: where there is too little, that is an error here and not a signal later.
    Now,
    /// By the program that writes to a part, which takes it before.
    Later,
}

/// The file, and its words.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    words: SharedWords,
    token: u64,
}

impl SharedFile {
    /// Makes a file of this many words. No program can change its size, so that accesses to its mapping never fail.
    pub(crate) fn create(len: usize, taken: Taken) -> io::Result<Self> {
        let file = memory_file()?;
        let words = match taken {
            Taken::Now => SharedWords::of_file(&file, len)?,
            Taken::Later => SharedWords::with_holes(&file, len)?,
        };
        seal(&file)?;
        let token = clock::monotonic().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id());
        Ok(Self { file, words, token })
    }

    /// A number that is in the file and in its name: in a container, the path may be that of another file.
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// The name by which a library finds it: its path for other processes, and its token.
    pub(crate) fn name(&self) -> String {
        let (process, number) = (std::process::id(), self.file.as_raw_fd());
        format!("/proc/{process}/fd/{number}:{:x}", self.token)
    }

    /// Writes words at their places.
    pub(crate) fn set(&self, words: impl IntoIterator<Item = (usize, u64)>) {
        words.into_iter().for_each(|(at, word)| self.words[at].store(word, Relaxed));
    }

    /// A second view of the same memory, as another process has it.
    #[cfg(test)]
    pub(crate) fn view(&self) -> io::Result<Self> {
        let words = SharedWords::of_file(&self.file, self.words.len())?;
        Ok(Self { file: self.file.try_clone()?, words, token: self.token })
    }

    /// How large it is, and how much memory it has.
    #[cfg(test)]
    pub(crate) fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.file.metadata()
    }

    /// Changes its size in bytes, which is refused.
    #[cfg(test)]
    pub(crate) fn resize(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    /// A word that is used as its first half.
    pub(crate) fn half(&self, at: usize) -> &AtomicU32 {
        self.words.half(at)
    }
}

impl Deref for SharedFile {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.words
    }
}

/// A file in memory that can be sealed.
fn memory_file() -> io::Result<File> {
    let create = |flags: libc::c_uint| {
        // SAFETY: the name is a C string; the call takes no other pointer.
        check(unsafe { libc::memfd_create(c"numakit-ring".as_ptr(), flags) }.into())
    };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Some systems refuse files that could be executed; kernels before 6.3 do not know the flag.
    let file = create(flags | libc::MFD_NOEXEC_SEAL).or_else(|_| create(flags))?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(file as i32) })
}

/// Keeps the programs from changing the size of the file.
fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open; the call takes no pointer.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }.into())?;
    Ok(())
}
