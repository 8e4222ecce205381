//! The page cache of files: on which nodes it is, moving it to other nodes, removing it, and filling it by a
//! memory policy.
//!
//! [`FileResidence::of`] changes nothing: it enters into the page table of this process only pages that are in the cache
//! already. All other functions look up afterwards what is in the cache, and return that.

mod by_use;
mod error;
mod evict;
mod find;
mod load;
mod one_sided;
mod relocate;
mod residence;
mod window;

pub use by_use::{FarSamples, PageUse, PlannedRange, RangeTarget, UsePlan};
pub use error::FilesError;
pub use evict::evict;
pub use find::{FoundFile, FoundFiles, LeftOut, find};
pub use load::{Reading, load};
pub use one_sided::{LARGE, OneSidedFile, one_sided};
pub use relocate::{Destination, Relocated, Relocation, Way};
pub use residence::{FileResidence, Piece};

/// A function that is called with the bytes done so far and the bytes of the whole file.
pub type FileProgress<'a> = &'a mut dyn FnMut(u64, u64);
