//! Code of files, and code that changes.

use super::ProcessMapping;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// Bytes that are compared at once.
pub const PAGE: usize = 4096;

/// A page of generated code is compared at most this often, in ns.
const COMPARE: u64 = 10_000_000;

/// Pages of which a copy is kept at most: 16 MiB.
const MAX_PAGES: usize = 4096;

/// Files of which code is read: opened once, and only if they are still the mapped ones.
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
            let file = File::open(&*mapping.name).ok()?;
            // A package manager may have replaced it. Some file systems show another device in `maps`.
            file.metadata().is_ok_and(|data| data.ino() == inode).then_some(file)
        });
        let Some(file) = file else { return 0 };
        file.read_at(into, mapping.offset + (address - mapping.range.start)).unwrap_or(0)
    }
}

/// Copies of pages of generated code, to notice that they change.
#[derive(Debug, Default)]
pub struct CodePages(BTreeMap<u64, Copied>);

#[derive(Debug)]
struct Copied {
    bytes: Box<[u8]>,
    compared: u64,
}

impl CodePages {
    /// The page with an address.
    pub fn page_of(address: u64) -> u64 {
        address / PAGE as u64 * PAGE as u64
    }

    /// Whether it is time to compare a page.
    pub fn is_due(&self, page: u64, now: u64) -> bool {
        self.0.get(&page).is_none_or(|copied| now.saturating_sub(copied.compared) >= COMPARE)
    }

    /// Takes the content of a page; true if it is another one than before.
    pub fn update(&mut self, page: u64, bytes: &[u8], now: u64) -> bool {
        if let Some(copied) = self.0.get_mut(&page) {
            copied.compared = now;
            let changed = *copied.bytes != *bytes;
            if changed {
                copied.bytes = bytes.into();
            }
            return changed;
        }
        // Code that runs now is found again soon.
        if self.0.len() >= MAX_PAGES {
            self.0.pop_first();
        }
        self.0.insert(page, Copied { bytes: bytes.into(), compared: now });
        false
    }

    /// Forgets pages that are no code any more.
    pub fn forget(&mut self, range: &Range<u64>) {
        self.0.retain(|page, _| !range.contains(page));
    }
}
