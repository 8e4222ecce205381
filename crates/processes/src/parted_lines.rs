//! Files of processes that are read in parts: the kernel holds a lock of the process while it prints one page of text, and
//! releases it after that.

use numakit_sys::proc::TaskDir;
use numakit_sys::{ReadError, RootFile, SysRoot};

/// Bytes per read; the kernel returns at most a page.
const PART: usize = 4096;

/// Maximum length of a line; the rest of a longer one is left out.
const LONGEST_LINE: usize = 64 << 10;

/// A file that is being read, line by line.
#[derive(Debug)]
pub struct PartedLines {
    source: RootFile,
    offset: u64,
    rest: Vec<u8>,
}

impl PartedLines {
    /// Opens a file of a process.
    pub fn open(root: &SysRoot, pid: u32, file: &str) -> Result<Self, ReadError> {
        let source = TaskDir::of(root, pid).source(file)?;
        Ok(Self { source, offset: 0, rest: Vec::new() })
    }

    /// Reads the next part, and passes on the lines that it completes. False at the end of the file.
    pub fn advance(&mut self, mut each: impl FnMut(&[u8])) -> Result<bool, ReadError> {
        let mut part = [0; PART];
        let length = self.source.read_at(&mut part, self.offset)?;
        self.offset += length as u64;
        for piece in part[..length].split_inclusive(|&b| b == b'\n') {
            if self.rest.len() < LONGEST_LINE {
                self.rest.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                each(&self.rest);
                self.rest.clear();
            }
        }
        Ok(length > 0)
    }
}
