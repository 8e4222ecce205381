//! Cores stay registered where everybody looks: whoever keeps them notices that somebody removed
//! the file, and registers them in the one that has the name then.
//!
//! Until that is done, and if nobody is left to do it, others see the locks in the file without a
//! name ([`crate::elsewhere`]): a registry is looked at together with all that it was before, until
//! nobody holds anything there.

use crate::held::{Locked, Reservation};
use crate::open::Registry;
use crate::record::{MAX_SLOTS, Parsed};
use crate::scan::record_at;
use numakit_sys::file;
use numakit_sys::watch::NameWatch;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// Without a word from the kernel, as when another file system hides the folder.
const SELDOM: Duration = Duration::from_secs(30);
/// Where the kernel gives no word, or registering failed.
const OFTEN: Duration = Duration::from_secs(1);
/// Somebody may remove the file again.
const TRIES: usize = 10;

/// Cores that are kept registered.
#[derive(Debug)]
pub(crate) struct Kept {
    pub held: Reservation,
    watch: Option<NameWatch>,
    /// They are not where everybody looks.
    is_behind: bool,
}

impl Kept {
    /// Not yet: somebody else keeps them.
    pub fn new(held: Reservation) -> Self {
        Self { held, watch: None, is_behind: false }
    }

    /// From now on.
    pub fn begin(&mut self) {
        self.watch = NameWatch::new(&self.held.file).ok();
        self.follow();
    }

    /// Can be read when there is reason to [`Kept::follow`].
    pub fn reason(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// After this time there is, too.
    pub fn patience(&self) -> Duration {
        if self.is_behind || self.watch.is_none() { OFTEN } else { SELDOM }
    }

    /// Descriptors that must stay open.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        [Some(self.held.descriptor()), self.reason().map(|watch| watch.as_raw_fd())].into_iter().flatten()
    }

    /// Registers the cores in the file that has the name, if they are in another one. Where that
    /// fails they stay held where they are.
    pub fn follow(&mut self) {
        if let Some(watch) = &self.watch {
            watch.clear();
        }
        for _ in 0..TRIES {
            match self.is_followed() {
                Ok(true) => {
                    self.is_behind = false;
                    return;
                }
                Ok(false) => {}
                Err(_) => break,
            }
        }
        self.is_behind = true;
    }

    /// One step; true when there is nothing left to do.
    fn is_followed(&mut self) -> io::Result<bool> {
        let path = self.held.place.path();
        if file::is_at(&self.held.file, &path).unwrap_or(false) {
            return Ok(true);
        }
        let registry = Registry::open_in(self.held.place.clone()).map_err(io::Error::other)?;
        let watch = NameWatch::new(&registry.file).ok();
        let held = register(&self.held, &registry)?;
        // The old locks go only now that the new ones are there. A core that somebody else has in this
        // file cannot be had back: that takes a holder who did not see the old locks.
        (self.held, self.watch) = (held, watch);
        Ok(false)
    }
}

/// The same cores in another file, under the first record that tells of nobody. One without a lock
/// may tell of a program that runs.
fn register(held: &Reservation, registry: &Registry) -> io::Result<Reservation> {
    let is_free = |there: &Parsed| match there {
        Parsed::Record(record) => record.ended,
        Parsed::Empty | Parsed::Damaged => true,
    };
    for slot in 0..MAX_SLOTS {
        if !is_free(&record_at(&registry.file, slot)?) {
            continue;
        }
        // Locks belong to a description: each try has one of its own.
        let own = file::open_existing(&registry.path, true)?;
        if !file::is_same(&own, &registry.file)? {
            return Err(io::Error::other("it was removed again"));
        }
        let new = Reservation { file: own, place: held.place.clone(), slot, record: held.record.clone() };
        match new.lock(is_free)? {
            Locked::NoSlot => {}
            Locked::All | Locked::AllBut(_) => return Ok(new),
        }
    }
    Err(io::Error::other("there is no room"))
}
