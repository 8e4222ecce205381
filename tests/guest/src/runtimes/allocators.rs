//! Allocators that programs are started with: ours, that of the C library, and those of others that can be had here.

use super::{Files, LIBRARIES, with_libraries};
use crate::failure::Failure;
use crate::packages::{self, Set};
use crate::programs;

/// One that can be preloaded.
#[derive(Debug, Clone)]
pub struct Allocator {
    /// What people call it.
    pub name: &'static str,
    /// What `LD_PRELOAD` is in the guest: a library, or nothing.
    pub preload: String,
    /// The library and those that it needs.
    pub files: Files,
}

/// Where ours is in the guest.
const OURS: &str = "/usr/lib/libnumalloc.so";
const PEERS: [(&str, &Set, &str); 2] = [
    ("jemalloc", &packages::JEMALLOC, "libjemalloc.so.2"),
    ("mimalloc", &packages::MIMALLOC, "libmimalloc.so.2.0"),
];

/// Ours first, then that of the C library. What others lack here is printed.
pub fn allocators() -> Result<Vec<Allocator>, Failure> {
    let mut files = Files::default();
    files.add(programs::libnumalloc()?, OURS);
    let ours = Allocator { name: "libnumalloc", preload: OURS.to_owned(), files };
    let glibc = Allocator { name: "glibc", preload: String::new(), files: Files::default() };
    let mut all = vec![ours, glibc];
    for (name, set, library) in PEERS {
        match peer(name, set, library) {
            Ok(peer) => all.push(peer),
            Err(failure) if failure.is_missing() => {
                numakit_skips::RUNTIMES.skip_part(format!("no {name}: {failure}"));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(all)
}

fn peer(name: &'static str, set: &Set, library: &str) -> Result<Allocator, Failure> {
    let root = set.unpacked()?;
    let path = root.join(LIBRARIES).join(library);
    let files = with_libraries(Files::default(), &root, &[path])?;
    Ok(Allocator { name, preload: format!("/{LIBRARIES}/{library}"), files })
}
