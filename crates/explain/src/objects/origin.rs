//! What an object is.

use crate::code::CodeName;
use crate::identity::FileId;
use serde::{Deserialize, Serialize};
use std::fmt;

const MMAP: &str = "mmap";
const MREMAP: &str = "mremap";
/// The name of `mmap` where it maps memory that child processes share.
pub const SHARED_MMAP: &str = "shared mmap";
/// The name of `mmap` where it maps a file and the program's writes, if any, go to that file. What is mapped tells whether the file is
/// on a disk.
pub const MMAP_OF_FILE: &str = "mmap of a file";

/// What an object is. Pieces of the same origin are one object, such as all blocks that one line of a loop allocates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ObjectOrigin {
    /// Allocated by a function such as `malloc`, called from here.
    Allocated {
        /// The allocating function.
        by: &'static str,
        /// The address behind the call.
        site: u64,
        /// Which of the call chains led to it that are distinguished, as in [`SiteCallers`](super::SiteCallers).
        callers: Option<u8>,
    },
    /// Small blocks that were allocated by a call before this address.
    SmallBlocks {
        /// The address behind the call.
        site: u64,
    },
    /// A variable of the program or of a library.
    Variable {
        /// Its name.
        name: String,
        /// The program or library.
        module: String,
    },
    /// Thread-local storage, of all threads together.
    ThreadLocal {
        /// The variable, if its name is known.
        name: Option<String>,
    },
    /// Stacks: that of the first thread, which the kernel makes, or those of all others together.
    Stack {
        /// Which one.
        is_first: bool,
    },
    /// A mapped file.
    File {
        /// Its path.
        path: String,
    },
    /// Memory that processes share, without a file on a disk.
    SharedMemory {
        /// Its name, or where it is.
        name: String,
        /// What the kernel has in place of a file.
        file: FileId,
    },
    /// Other memory, by the name that its kind has, such as `Java heap`.
    Mapping {
        /// The name.
        name: String,
    },
}

/// The kind of an object, by which rules and the page choose what to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// Allocated by the program, by functions such as `malloc`.
    Allocated,
    /// Mapped by the program.
    Mapped,
    /// Memory that processes share.
    SharedMemory,
    /// A variable.
    Variable,
    /// Thread-local storage.
    ThreadLocal,
    /// Stacks.
    Stack,
    /// A mapped file.
    File,
    /// Other memory.
    Mapping,
    /// Its memory had been given back when the sample was looked at.
    Gone,
}

impl ObjectOrigin {
    /// Its kind.
    pub fn kind(&self) -> ObjectKind {
        match self {
            Self::Allocated { by: SHARED_MMAP, .. } | Self::SharedMemory { .. } => ObjectKind::SharedMemory,
            Self::Allocated { by: MMAP | MREMAP | MMAP_OF_FILE, .. } => ObjectKind::Mapped,
            Self::Allocated { .. } | Self::SmallBlocks { .. } => ObjectKind::Allocated,
            Self::Variable { .. } => ObjectKind::Variable,
            Self::ThreadLocal { .. } => ObjectKind::ThreadLocal,
            Self::Stack { .. } => ObjectKind::Stack,
            Self::File { .. } => ObjectKind::File,
            Self::Mapping { .. } => ObjectKind::Mapping,
        }
    }

    /// Its name, with the names of the code that called; else it is that of `Display`.
    pub fn named(&self, name: impl FnOnce(u64) -> CodeName) -> String {
        let Self::Allocated { by, site, .. } = self else { return self.to_string() };
        // The call is before the address to which it returns.
        let CodeName { function, module, file, line } = name(site.saturating_sub(1));
        let source = match (file, line) {
            (Some(file), Some(line)) => format!(" ({file}:{line})"),
            _ => String::new(),
        };
        format!("{by} in {}{source}", function.unwrap_or(module))
    }

    /// Objects of a higher layer lie in those of a lower one. Those of one layer never overlap.
    pub(super) fn layer(&self) -> usize {
        match self {
            Self::File { .. } | Self::SharedMemory { .. } | Self::Mapping { .. } => 0,
            // Allocators map the memory of their blocks, so blocks lie in mappings.
            Self::Stack { .. }
            | Self::Variable { .. }
            | Self::Allocated { by: MMAP | MREMAP | SHARED_MMAP | MMAP_OF_FILE, .. } => 1,
            // The C library puts thread-local storage at the end of the thread's stack.
            Self::ThreadLocal { .. } => 2,
            Self::Allocated { .. } | Self::SmallBlocks { .. } => 3,
        }
    }
}

impl fmt::Display for ObjectOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allocated { by, site, .. } => write!(f, "{by} at {site:#x}"),
            Self::SmallBlocks { site } => write!(f, "small blocks at {site:#x}"),
            Self::Variable { name, .. } | Self::SharedMemory { name, .. } | Self::Mapping { name } => {
                f.write_str(name)
            }
            Self::ThreadLocal { name: Some(name) } => write!(f, "{name} (thread-local)"),
            Self::ThreadLocal { name: None } => f.write_str("thread-local storage"),
            Self::Stack { is_first: true } => f.write_str("stack of the first thread"),
            Self::Stack { is_first: false } => f.write_str("stacks of the other threads"),
            Self::File { path } => f.write_str(path),
        }
    }
}
