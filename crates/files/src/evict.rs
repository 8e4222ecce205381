//! Removing a file from the page cache.

use crate::{FilesError, FoundFile};
use numakit_sys::file_pages;
use std::fs::File;

/// Writes dirty pages to the disk, then removes all pages of the file from the cache that no process maps or locks.
/// [`FileResidence`](crate::FileResidence) tells which pages stayed.
pub fn evict(found: &FoundFile, file: &File) -> Result<(), FilesError> {
    file.sync_data().map_err(|error| found.error("its dirty pages cannot be written", error))?;
    file_pages::evict(file).map_err(|error| found.error("its pages cannot be removed from the cache", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileResidence;
    use crate::window::testing::Scratch;
    use std::io::Write;

    #[test]
    fn dirty_pages_are_written_and_leave_the_cache() {
        let scratch = Scratch::file("dirty", 1 << 20);
        File::options().append(true).open(&scratch.0).unwrap().write_all(&[1; 100_000]).unwrap();
        let found = FoundFile { path: scratch.0.clone(), id: (0, 0) };
        let file = found.open().unwrap();
        evict(&found, &file).unwrap();
        let left = FileResidence::of(&file, &mut |_, _| ()).unwrap().cached.unwrap();
        if left > 0 && scratch.may_stay() {
            return numakit_skips::MACHINE.skip("the temporary folder is memory, which is never evicted");
        }
        assert_eq!(left, 0);
    }
}
