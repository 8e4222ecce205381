//! Errors, with their fixes.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a file cannot be examined or moved.
#[derive(Debug, Error)]
pub enum FilesError {
    /// A path that was given is no file that can be read.
    #[error("{path}: {error}; give a regular file that you may read, or a folder", path = path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// The folders that were given have no files.
    #[error("there is no regular file in {0}; give a file, or a folder that has some")]
    Empty(String),
    /// A call of the kernel failed.
    #[error("{path}: {what}: {error}", path = path.display())]
    Kernel {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The error.
        error: io::Error,
    },
}
