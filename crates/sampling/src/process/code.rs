//! Code of files.

use super::ProcessMapping;
use numakit_sys::file::open_to_read;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

/// Files from which code is read. Each is opened once, and only if it is still the file that was mapped.
#[derive(Debug, Default)]
pub struct CodeFiles(HashMap<Arc<str>, Option<File>>);

impl CodeFiles {
    /// Copies bytes of a mapped file; returns how many there are.
    pub fn read(&mut self, mapping: &ProcessMapping, address: u64, into: &mut [u8]) -> usize {
        let (_, inode) = mapping.file;
        if inode == 0 {
            return 0;
        }
        let file = self.0.entry(Arc::clone(&mapping.name)).or_insert_with(|| {
            let file = open_to_read(Path::new(&*mapping.name)).ok()?;
            // A package manager may have replaced the file. Some file systems show another device in `maps`, so only the
            // inode is compared.
            file.metadata().is_ok_and(|data| data.ino() == inode).then_some(file)
        });
        let Some(file) = file else { return 0 };
        file.read_at(into, mapping.offset + (address - mapping.range.start)).unwrap_or(0)
    }
}
