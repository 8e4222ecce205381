//! Keeps a reservation in the file that has the registry's name: if the file is removed, the process that
//! supervises the program registers the cores in the new one.
//!
//! Until then, and if that process is killed, others find the locks in the removed file ([`crate::removed`]).

use crate::open::Registry;
use crate::record::{MAX_SLOTS, Parsed};
use crate::reservation::{Locked, Reservation};
use crate::scan::read_record;
use numakit_sys::file;
use numakit_sys::watch::NameWatch;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// Time between two checks, in case the kernel does not notify: for example, if another file system hides the folder.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Time between two attempts, if the kernel cannot notify or registering failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The file may be removed again.
const MAX_ATTEMPTS: usize = 10;

/// A reservation that follows the registry's name.
#[derive(Debug)]
pub struct Registration {
    /// The cores.
    pub reservation: Reservation,
    watch: Option<NameWatch>,
    /// The reservation is in a file without the registry's name.
    is_outdated: bool,
}

impl Registration {
    /// Makes a registration that does not watch the file, since another process does.
    pub fn new(reservation: Reservation) -> Self {
        Self { reservation, watch: None, is_outdated: false }
    }

    /// Watches the file from now on.
    pub fn start_watching(&mut self) {
        self.watch = NameWatch::new(&self.reservation.file).ok();
        self.update();
    }

    /// Becomes readable when [`Registration::update`] should be called.
    pub fn watch_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// The time after which [`Registration::update`] should be called even if the descriptor is not readable.
    pub fn update_interval(&self) -> Duration {
        if self.is_outdated || self.watch.is_none() { RETRY_INTERVAL } else { CHECK_INTERVAL }
    }

    /// Descriptors that must stay open.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        [Some(self.reservation.descriptor()), self.watch_descriptor().map(|watch| watch.as_raw_fd())]
            .into_iter()
            .flatten()
    }

    /// Registers the cores in the file that has the registry's name, if they are in a different one. If that fails, they
    /// stay reserved in that one.
    pub fn update(&mut self) {
        if let Some(watch) = &self.watch {
            watch.clear();
        }
        for _ in 0..MAX_ATTEMPTS {
            match self.update_once() {
                Ok(true) => {
                    self.is_outdated = false;
                    return;
                }
                Ok(false) => {}
                Err(_) => break,
            }
        }
        self.is_outdated = true;
    }

    /// One attempt to register the cores. True if they are in the right file afterwards.
    fn update_once(&mut self) -> io::Result<bool> {
        let path = self.reservation.location.path();
        if file::is_at(&self.reservation.file, &path).unwrap_or(false) {
            return Ok(true);
        }
        let registry = Registry::open_in(self.reservation.location.clone()).map_err(io::Error::other)?;
        let watch = NameWatch::new(&registry.file).ok();
        let reservation = register(&self.reservation, &registry)?;
        // The old locks are released only after the new ones are acquired. If another program has a core in the new file, it
        // keeps the core: it did not see the old locks.
        (self.reservation, self.watch) = (reservation, watch);
        Ok(false)
    }
}

/// Reserves the same cores in another file, with the first free record there. A record without a lock is not free: it may
/// belong to a program that runs.
fn register(reservation: &Reservation, registry: &Registry) -> io::Result<Reservation> {
    let is_free = |there: &Parsed| match there {
        Parsed::Record(record) => record.ended,
        Parsed::Empty | Parsed::Damaged => true,
    };
    for slot in 0..MAX_SLOTS {
        if !is_free(&read_record(&registry.file, slot)?) {
            continue;
        }
        // Locks belong to an open file description, so each attempt opens the file.
        let own = file::open_existing(&registry.path, true)?;
        if !file::is_same(&own, &registry.file)? {
            return Err(io::Error::other("it was removed again"));
        }
        let new = Reservation {
            file: own,
            location: reservation.location.clone(),
            slot,
            record: reservation.record.clone(),
        };
        match new.lock(is_free)? {
            Locked::NoSlot => {}
            Locked::All | Locked::AllBut(_) => return Ok(new),
        }
    }
    Err(io::Error::other("it has no free record"))
}
