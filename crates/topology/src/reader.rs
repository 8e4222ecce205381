//! Reads many small files into one buffer, and collects notes about odd content.

use crate::cpus::CPU;
use crate::values;
use numakit_model::CpuSet;
use numakit_sys::{ReadError, SysRoot};
use std::fmt::{Arguments, Write};

/// More notes than this are only counted.
const MAX_NOTES: usize = 20;
/// More than the kernel returns for an attribute of /sys.
const FRONT: usize = 8192;

/// Reads the files of a root. A file that is missing is `None`; a file that cannot be read or parsed is `None` and a note.
pub(crate) struct Reader<'a> {
    pub root: &'a SysRoot,
    /// The CPUs that have a directory; `None` if the kernel does not list them.
    directories: Option<CpuSet>,
    path: String,
    content: Vec<u8>,
    length: usize,
    notes: Vec<String>,
    dropped: usize,
}

impl<'a> Reader<'a> {
    pub fn new(root: &'a SysRoot) -> Self {
        let directories = root.list(CPU).ok().map(|names| values::numbered(&names, "cpu"));
        Self {
            root,
            directories,
            path: String::new(),
            content: vec![0; FRONT],
            length: 0,
            notes: Vec::new(),
            dropped: 0,
        }
    }

    pub fn note(&mut self, note: impl Into<String>) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note.into());
        } else {
            self.dropped += 1;
        }
    }

    pub fn into_notes(mut self) -> Vec<String> {
        if self.dropped > 0 {
            self.notes.push(format!("{} more of this kind", self.dropped));
        }
        self.notes
    }

    /// Those of these CPUs that have a directory: the others have no files, and a damaged list may name many.
    pub fn with_directory(&self, cpus: &CpuSet) -> CpuSet {
        self.directories.as_ref().map_or_else(|| cpus.clone(), |there| cpus.and(there))
    }

    /// The file's content without spaces, line ends and NUL bytes around it.
    pub fn bytes(&mut self, path: Arguments<'_>) -> Option<&[u8]> {
        self.path.clear();
        // Writing to a string cannot fail.
        let _ = self.path.write_fmt(path);
        match self.fill() {
            Ok(length) => {
                self.length = length;
                Some(values::trim(&self.content[..length]))
            }
            Err(error) => {
                if !error.is_missing() {
                    self.note(error.to_string());
                }
                None
            }
        }
    }

    /// Reads a file into the buffer. A short file of /sys takes one read; others are read to their end.
    fn fill(&mut self) -> Result<usize, ReadError> {
        if self.path.starts_with("/sys/") {
            let length = self.root.front(&self.path, &mut self.content)?;
            if length < self.content.len() {
                return Ok(length);
            }
        }
        let mut whole = self.root.bytes(&self.path)?;
        let length = whole.len();
        whole.resize(length.max(FRONT), 0);
        self.content = whole;
        Ok(length)
    }

    /// The file's content as text.
    pub fn text(&mut self, path: Arguments<'_>) -> Option<&str> {
        self.value(path, |bytes| std::str::from_utf8(bytes).map(|_| ()).map_err(|_| "no text"))?;
        std::str::from_utf8(values::trim(&self.content[..self.length])).ok()
    }

    /// The file's content, parsed.
    pub fn value<T, E: std::fmt::Display>(
        &mut self,
        path: Arguments<'_>,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Option<T> {
        match parse(self.bytes(path)?) {
            Ok(value) => Some(value),
            Err(error) => {
                let note = format!("{}: {error}", self.path);
                self.note(note);
                None
            }
        }
    }

    /// A decimal number.
    pub fn number(&mut self, path: Arguments<'_>) -> Option<i64> {
        self.value(path, values::number)
    }

    /// A set from the file with its mask, or from the file with its list if there is no mask. If the two differ, the mask is
    /// right.
    pub fn set(&mut self, mask: Arguments<'_>, list: Arguments<'_>) -> Option<CpuSet> {
        let parse = |b: &[u8]| if b.is_empty() { Ok(None) } else { values::mask(b).map(Some) };
        self.value(mask, parse).flatten().or_else(|| self.list(list))
    }

    /// A set from a list such as `0-3,8`.
    pub fn list(&mut self, path: Arguments<'_>) -> Option<CpuSet> {
        self.value(path, values::list)
    }

    /// The numbers of the entries `PREFIXn` of a directory, in ascending order.
    pub fn numbered(&mut self, directory: &str, prefix: &str) -> Option<CpuSet> {
        match self.root.list(directory) {
            Ok(names) => Some(values::numbered(&names, prefix)),
            Err(error) => {
                if !error.is_missing() {
                    self.note(error.to_string());
                }
                None
            }
        }
    }
}
